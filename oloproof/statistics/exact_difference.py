"""The exact interval of a paired difference of two rates, and the p-values that belong to it.

For pass/fail criteria: each pair is better (the candidate alone passed), worse (the baseline alone passed) or the same,
and the difference is P(better) - P(worse). Up to 150 pairs the interval holds every difference that neither of two
one-sided exact tests at alpha/2 refutes. Such a test adds up the probabilities of all outcomes whose score statistic is
at least as far out as the observed one, in the worst case over the nuisance parameter, which is how many pairs differ
at all; the worst case is taken over a confidence set of that number, at a price of gamma. Where what is accepted has
holes, the interval spans them. With more pairs, or next to certainty, a closed form takes its place.

Sources: the statistic is Tango's ("Equivalence test and confidence interval for the difference in proportions for the
paired-sample design", Statistics in Medicine 1998); the inversion of two one-sided exact unconditional tests is Chan &
Zhang's ("Test-based exact confidence intervals for the difference of two binomial proportions", Biometrics 1999); the
set of the nuisance parameter is Berger & Boos's ("P values maximized over a confidence set for the nuisance parameter",
JASA 1994).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from oloproof.records import Interval
from oloproof.statistics.binomial import clopper_pearson, lower_end
from oloproof.statistics.roots import alpha_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

METHOD = "paired_difference_exact"
#: The most pairs that are enumerated.
MOST_PAIRS = 150
#: How often the nuisance parameter's confidence set may miss it. Nothing below this can be significant, so from
#: 1 - _LEAST_ALPHA of confidence on the closed form is used.
GAMMA = 1e-4
_LEAST_ALPHA = 10 * GAMMA
#: What a p-value of the closed form is reported as when it is smaller.
_LEAST_CLOSED_P = 1e-100
#: In how many places the nuisance parameter is looked at first, and then about the worst of them.
_NODES, _FINER_NODES = 33, 9
#: Statistics that differ by less are equal: including too much only widens.
_TIE = 1e-9
#: Outcomes that cannot weigh more than exp of this are left out; all together they weigh less than 1e-13.
_NEGLIGIBLE = -40.0
#: An end is known to this, and a p-value to this share of it; what is reported is on the refuted side.
_PRECISION = 1e-6
_P_PRECISION = 1e-6
#: The largest difference that is tested: at 1 itself the statistic has no variance.
_LARGEST = 1.0 - 1e-7


class PairCounts(NamedTuple):
    """How many pairs are better, worse, and there at all."""

    better: int
    worse: int
    total: int

    @property
    def mirrored(self) -> PairCounts:
        return PairCounts(self.worse, self.better, self.total)


def exact_paired_difference(
    better: int, worse: int, paired: int, missing: int = 0, confidence: float = 0.95
) -> Interval:
    """Interval of P(better) - P(worse), in [-1, 1], from `paired` pairs of which `better` and `worse` differ.

    `missing` more pairs have a side missing: the lower end counts each as worse, the upper end as better. Raises
    ValueError when the counts do not fit together, when there is no pair at all, or when confidence is not strictly
    between 0 and 1. Method and sources: see this module.
    """
    alpha = alpha_of(confidence)
    low, high = _ends(better, worse, paired, missing)
    return Interval(-_upper(low.mirrored, alpha), _upper(high, alpha), confidence, METHOD)


def exact_p_below(better: int, worse: int, paired: int, missing: int, bound: float) -> float:
    """The smallest alpha at which the whole interval lies below `bound`; 1.0 when none does."""
    _, high = _ends(better, worse, paired, missing)
    return _p_below(high, bound)


def exact_p_above(better: int, worse: int, paired: int, missing: int, bound: float) -> float:
    """The smallest alpha at which the whole interval lies above `bound`; 1.0 when none does."""
    low, _ = _ends(better, worse, paired, missing)
    return _p_below(low.mirrored, -bound)


def _ends(better: int, worse: int, paired: int, missing: int) -> tuple[PairCounts, PairCounts]:
    """What the lower and the upper end are computed from."""
    if min(better, worse, missing) < 0 or better + worse > paired:
        raise ValueError(
            f"{better} better and {worse} worse of {paired} pairs, {missing} missing, do not fit"
        )
    total = paired + missing
    if total == 0:
        raise ValueError("an interval needs at least one pair, observed or missing")
    return PairCounts(better, worse + missing, total), PairCounts(better + missing, worse, total)


def _upper(counts: PairCounts, alpha: float) -> float:
    """The upper end; the lower one is that of the mirrored counts, with the other sign."""
    if counts.better == counts.total:
        return 1.0
    if counts.total > MOST_PAIRS or alpha < _LEAST_ALPHA:
        return _closed_upper(counts, alpha)
    return _outermost(_Tests(counts), alpha / 2)


def _closed_upper(counts: PairCounts, alpha: float) -> float:
    """The exact upper end of P(better) less the exact lower end of P(worse), each with a tail of alpha/4."""
    better, worse, total = counts
    most = 1.0 - lower_end(total - better, total, alpha / 4)
    return min(1.0, most - lower_end(worse, total, alpha / 4))


def _p_below(counts: PairCounts, bound: float) -> float:
    estimate = (counts.better - counts.worse) / counts.total
    if estimate >= bound:
        return 1.0
    if counts.total > MOST_PAIRS:
        return _closed_p_below(counts, bound)
    p = min(1.0, 2 * _largest_p(_Tests(counts), bound))
    return p if p >= _LEAST_ALPHA else min(_LEAST_ALPHA, _closed_p_below(counts, bound))


def _closed_p_below(counts: PairCounts, bound: float) -> float:
    """By bisection of the logarithm of alpha."""
    low, high = math.log(_LEAST_CLOSED_P), 0.0
    if _closed_upper(counts, _LEAST_CLOSED_P) < bound:
        return _LEAST_CLOSED_P
    while high - low > _P_PRECISION:
        middle = (low + high) / 2
        if _closed_upper(counts, math.exp(middle)) < bound:
            high = middle
        else:
            low = middle
    return math.exp(high)


def _outermost(tests: _Tests, level: float) -> float:
    """The largest difference that the tests do not refute at `level`, or a hair more.

    From the far end inwards, ranges of differences are refuted whole, or halved.
    """
    ranges = [(tests.estimate, _LARGEST)]
    while ranges:
        inner, outer = ranges.pop()
        if tests.largest_p(inner, outer) <= level:
            continue
        if outer - inner <= _PRECISION:
            return outer if outer < _LARGEST else 1.0
        middle = (inner + outer) / 2
        ranges += [(inner, middle), (middle, outer)]
    raise AssertionError("the estimate itself cannot be refuted")


def _largest_p(tests: _Tests, bound: float) -> float:
    """The largest p-value of a difference of at least `bound`."""
    largest = tests.largest_p(bound, bound)
    ranges = [(bound, _LARGEST)] if bound < _LARGEST else []
    while ranges:
        inner, outer = ranges.pop()
        most = tests.largest_p(inner, outer)
        if most <= largest * (1 + _P_PRECISION):
            continue
        if outer - inner <= _PRECISION:
            largest = most
            continue
        middle = (inner + outer) / 2
        largest = max(largest, tests.largest_p(middle, middle))
        ranges += [(middle, outer), (inner, middle)]
    return largest


# ------------------------------------------------------------------------------------------ the exact test


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


class _Tests:
    """The one-sided tests of what was observed: each of a difference, when smaller ones speak against it."""

    def __init__(self, counts: PairCounts) -> None:
        better, worse, total = counts
        self.estimate = (better - worse) / total
        self._outcomes = _outcomes(total)
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
        statistics, likeliest = score_statistics(self._outcomes.counts, difference)
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
