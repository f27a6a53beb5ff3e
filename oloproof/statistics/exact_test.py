"""One-sided exact tests of a paired difference of two rates: how often chance gives an outcome as far out as the
observed one. Sources: see `oloproof.statistics.exact_difference`, whose interval inverts these.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from oloproof.statistics.binomial import clopper_pearson

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

#: How often the nuisance parameter's confidence set may miss it: no p-value is below this.
GAMMA = 1e-4
#: In how many places the nuisance parameter is looked at first, and then about the worst of them.
_NODES, _FINER_NODES = 33, 9
#: Statistics that differ by less are equal: including too much only widens.
_TIE = 1e-9
#: Outcomes that cannot weigh more than exp of this are left out; all together they weigh less than 1e-13.
_NEGLIGIBLE = -40.0


class PairCounts(NamedTuple):
    """How many pairs are better, worse, and there at all."""

    better: int
    worse: int
    total: int

    @property
    def mirrored(self) -> PairCounts:
        return PairCounts(self.worse, self.better, self.total)


class _Outcomes(NamedTuple):
    """Every outcome of n pairs: how many are better, worse and the same, shape (outcomes, 3), and the logarithm of
    how many orders each can come in, shape (outcomes,)."""

    counts: FloatArray
    log_orders: FloatArray


@lru_cache(maxsize=8)
def _outcomes(total: int) -> _Outcomes:
    import numpy as np

    better, worse = np.divmod(np.arange((total + 1) ** 2), total + 1)
    possible = better + worse <= total
    counts = np.stack([better[possible], worse[possible], total - better[possible] - worse[possible]], axis=1)
    log_factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, total + 1)))])
    log_orders = log_factorials[total] - log_factorials[counts].sum(axis=1)
    return _Outcomes(counts.astype(np.float64), log_orders)


@lru_cache(maxsize=64)  # for many observations of equal size, as a plan has them
def _statistics(total: int, difference: float) -> tuple[FloatArray, FloatArray]:
    return score_statistics(_outcomes(total).counts, difference)


class OneSidedTests:
    """The one-sided tests of what was observed: each of a difference, when smaller ones speak against it."""

    def __init__(self, counts: PairCounts) -> None:
        better, worse, total = counts
        self.estimate = (better - worse) / total
        self._total, self._outcomes = total, _outcomes(total)
        self._observed = better * (2 * total + 3 - better) // 2 + worse  # its place among the outcomes
        differing = clopper_pearson(better + worse, total, 0, 1 - GAMMA)
        self._fewest, self._most = differing.lower, differing.upper

    def largest_p(self, inner: float, outer: float) -> float:
        """At least as large as the p-value of every difference from `inner` to `outer`, and equal where both are one.

        All outcomes count that are extreme at either end or midway; the smaller the difference, the likelier are they.
        """
        import numpy as np

        # P(worse), given the difference and that P(better) + P(worse) is in its confidence set.
        least = max(0.0, -outer, (self._fewest - outer) / 2)
        most = min((1.0 - inner) / 2, (self._most - inner) / 2)
        if least > most:
            return GAMMA
        extreme, likeliest = self._extreme(inner)
        if outer > inner:
            extreme = extreme | self._extreme((inner + outer) / 2)[0] | self._extreme(outer)[0]
        counts, log_orders = self._outcomes.counts[extreme], self._outcomes.log_orders[extreme]
        # The logarithm is concave in the parameter, so this is the most that an outcome can weigh within its set.
        weights = (counts * _logarithms(likeliest[extreme].clip(least, most), inner)).sum(axis=1) + log_orders
        heavy = weights > _NEGLIGIBLE
        counts, log_orders = counts[heavy], log_orders[heavy]
        nodes = np.linspace(least, most, _NODES)
        found = _probabilities(counts, log_orders, nodes, inner)
        worst = int(found.argmax())
        around = nodes[max(worst - 1, 0)], nodes[min(worst + 1, _NODES - 1)]
        again = _probabilities(counts, log_orders, np.linspace(*around, _FINER_NODES), inner)
        return float(max(found[worst], again.max())) + GAMMA

    def _extreme(self, difference: float) -> tuple[NDArray[np.bool_], FloatArray]:
        """Which outcomes are at least as far out as the observed one, and the likeliest P(worse) of each."""
        statistics, likeliest = _statistics(self._total, difference)
        return statistics <= statistics[self._observed] + _TIE, likeliest


def score_statistics(counts: FloatArray, difference: float) -> tuple[FloatArray, FloatArray]:
    """Tango's statistic of each outcome at a difference strictly between -1 and 1, and the P(worse) that is then the
    likeliest; both of shape (outcomes,)."""
    import numpy as np

    better, worse = counts[:, 0], counts[:, 1]
    total = counts[0].sum()
    linear = better + worse - (2 * total - better + worse) * difference
    constant = 8 * total * worse * difference * (1 - difference)
    # The root of a quadratic, written so that nothing cancels.
    sums = np.sqrt(np.maximum(linear**2 + constant, 0.0)) + np.abs(linear)
    others = np.divide(constant, sums, out=np.zeros_like(sums), where=sums > 0)
    likeliest = np.where(linear > 0, sums, others) / (4 * total)
    variance = total * np.maximum(2 * likeliest + difference * (1 - difference), 0.0)
    excess = better - worse - total * difference
    certain = np.where(excess == 0.0, 0.0, np.copysign(np.inf, excess))  # where nothing varies
    return np.divide(excess, np.sqrt(variance), out=certain, where=variance > 0), likeliest


def _logarithms(worse: FloatArray, difference: float) -> FloatArray:
    """Of the probabilities that a pair is better, worse and the same; shape (len(worse), 3)."""
    import numpy as np

    rates = np.stack([worse + difference, worse, 1.0 - difference - 2 * worse], axis=1)
    return np.asarray(np.log(np.maximum(rates, 1e-300)))


def _probabilities(
    counts: FloatArray, log_orders: FloatArray, worse: FloatArray, difference: float
) -> FloatArray:
    """How probable it is that one of the outcomes comes, at each of several P(worse); shape of `worse`."""
    import numpy as np

    exponents = counts @ _logarithms(worse, difference).T
    exponents += log_orders[:, np.newaxis]
    return np.asarray(np.exp(exponents, out=exponents).sum(axis=0))
