"""The betting interval of the mean of scores in a known range, and of paired differences; the p-values to it.

It is valid at every number of cases. Missing cases always widen: the lower end takes each as the worst value, the upper
end as the best. Equal values are collapsed and sorted first, so the order of the cases never changes a digit.

numpy is imported where it is used: most commands never need it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from oloproof.records import Interval
from oloproof.statistics.roots import DEEPEST, Excess, alpha_of, check_cases, root

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray: TypeAlias = NDArray[np.float64]

#: Bets of the betting interval: the fractions 1/21 .. 20/21 of the wealth.
_BETS = 20
#: From this many distinct values on, the wealth is first bounded on block means of the sorted values.
_BLOCKS = 256
#: Bets whose wealth stays below exp(-45) of the threshold cannot move an end in any digit of a double.
_NEGLIGIBLE = 45.0


def bounded_mean_betting(
    values: Sequence[float] | FloatArray,
    missing: int = 0,
    confidence: float = 0.95,
    lower: float = 0.0,
    upper: float = 1.0,
) -> Interval:
    """Interval of the mean of scores known to lie in [lower, upper], in the unit of the scores.

    `values` has shape (n,); `missing` more cases could not be measured: the lower end takes each of them as
    `lower`, the upper end as `upper`. The interval is every mean that neither of two hedged bets (the mean
    wealth over 20 constant fractions, once betting on a larger mean and once on a smaller one) refutes
    at wealth 2/alpha. It never has zero width and contains the mean of the values.

    Raises ValueError for a value that is NaN or out of range, for no case at all, or when confidence is not
    strictly between 0 and 1.

    Source: Waudby-Smith & Ramdas, "Estimating means of bounded random variables by betting", JRSS-B 2024
    (the hedged capital with a grid of Kelly bets, read at the last case).
    """
    return _betting(values, missing, confidence, lower, upper, "bounded_mean_betting")


def paired_difference_betting(
    differences: Sequence[float] | FloatArray, missing: int = 0, confidence: float = 0.95
) -> Interval:
    """Interval of the mean of paired differences in [-1, 1], for scores and for pass/fail criteria alike.

    `differences` has shape (n,), candidate minus baseline; a `missing` pair (either side missing) counts as
    -1 for the lower end and as +1 for the upper end. Method, errors and source: `bounded_mean_betting`
    on (d + 1) / 2, mapped back.
    """
    return _betting(differences, missing, confidence, -1.0, 1.0, "paired_difference_betting")


# ------------------------------------------------------------------------------------------------ the bets


class _Sample(NamedTuple):
    """Distinct positive values (the largest is 1.0) and their counts, each of shape (n,); how many zeros."""

    values: FloatArray
    counts: FloatArray
    zeros: float

    @property
    def mean(self) -> float:
        return float((self.values * self.counts).sum() / (self.counts.sum() + self.zeros))


class _Shares(NamedTuple):
    """The distinct values as shares of their range, ascending, what they fall short of its upper end by, and their
    counts, each of shape (n,); and how many more are missing."""

    values: FloatArray
    shortfalls: FloatArray
    counts: NDArray[np.int64] | FloatArray
    missing: float

    @property
    def mirrored(self) -> _Shares:
        return _Shares(self.shortfalls[::-1], self.values[::-1], self.counts[::-1], self.missing)


def _shares_of(
    values: Sequence[float] | FloatArray,
    missing: float,
    lower: float,
    upper: float,
    counts: FloatArray | None = None,
) -> _Shares:
    import numpy as np

    if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
        raise ValueError(f"the range must be finite and not empty, got [{lower}, {upper}]")
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1:
        raise ValueError(f"values must be one-dimensional, got shape {numbers.shape}")
    check_cases(numbers.size, missing)
    distinct, weights = (
        np.unique(numbers, return_counts=True)
        if counts is None
        else (numbers[counts > 0], counts[counts > 0])
    )
    if distinct.size and not (distinct[0] >= lower and distinct[-1] <= upper):  # NaN sorts last, fails too
        raise ValueError(f"values must lie in [{lower}, {upper}], got {distinct[0]} to {distinct[-1]}")
    span = upper - lower
    return _Shares((distinct - lower) / span, (upper - distinct) / span, weights, missing)


def _betting(
    values: Sequence[float] | FloatArray,
    missing: int,
    confidence: float,
    lower: float,
    upper: float,
    method: str,
) -> Interval:
    threshold = math.log(2.0 / alpha_of(confidence))
    shares = _shares_of(values, missing, lower, upper)
    span = upper - lower
    rise = _smallest_mean(shares, threshold)
    fall = _smallest_mean(shares.mirrored, threshold)
    return Interval(lower + span * rise, upper - span * fall, confidence, method)


def betting_p_above(
    values: Sequence[float] | FloatArray,
    missing: float,
    bound: float,
    lower: float = 0.0,
    upper: float = 1.0,
    counts: FloatArray | None = None,
) -> float:
    """The smallest alpha at which the whole betting interval lies above `bound`; 1.0 when none does. Arguments and
    errors are those of `bounded_mean_betting`; with `counts`, which need not be whole, `values` are distinct and
    ascending, and each counts that often."""
    return _p_above(_shares_of(values, missing, lower, upper, counts), (bound - lower) / (upper - lower))


def betting_p_below(
    values: Sequence[float] | FloatArray,
    missing: float,
    bound: float,
    lower: float = 0.0,
    upper: float = 1.0,
    counts: FloatArray | None = None,
) -> float:
    """The smallest alpha at which the whole betting interval lies below `bound`; 1.0 when none does. See
    `betting_p_above`."""
    shares = _shares_of(values, missing, lower, upper, counts).mirrored
    return _p_above(shares, (upper - bound) / (upper - lower))


def _p_above(shares: _Shares, bound: float) -> float:
    """Twice the reciprocal of what the bet on a mean larger than `bound` has won."""
    sample = _sample_of(shares)
    if sample is None or bound >= sample.mean * float(shares.values[-1]):
        return 1.0
    if bound <= 0.0:
        return 0.0
    log_wealth, _ = _excess_of(sample, 0.0)(-math.log(bound / float(shares.values[-1])))
    return 1.0 if log_wealth <= math.log(2.0) else 2.0 * math.exp(-log_wealth)


def _smallest_mean(shares: _Shares, threshold: float) -> float:
    """The smallest mean in [0, 1] at which the bet on a larger mean stays below the threshold.

    Missing values count as 0. Returns 0.0 when no value is positive, and when the end is below what a double can hold.
    """
    sample = _sample_of(shares)
    if sample is None:
        return 0.0
    depth = root(_excess_of(sample, threshold), -math.log(sample.mean))
    return 0.0 if depth >= DEEPEST else float(shares.values[-1]) * math.exp(-depth)


def _sample_of(shares: _Shares) -> _Sample | None:
    """What a bet on a larger mean sees; None when no value is positive."""
    positive = shares.values > 0.0
    if not positive.any():
        return None
    weights = shares.counts.astype(float)
    zeros = shares.missing + float(weights[~positive].sum())
    return _Sample(shares.values[positive] / float(shares.values[-1]), weights[positive], zeros)


def _excess_of(sample: _Sample, threshold: float) -> Excess:
    """The excess over the threshold of the mean wealth over all bets (see `Excess`).

    The wealth of one bet is the product over the values x of 1 - f + f * x / m. The logarithm is concave, so
    replacing sorted values by the means of their blocks can only raise it: with many distinct values, bets
    that are negligible even on the block means (for large n all but the smallest few) are left out.
    """
    import numpy as np

    fractions = np.arange(1, _BETS + 1) / (_BETS + 1.0)
    outline = _block_means(sample) if sample.values.size > 2 * _BLOCKS else None

    def excess(depth: float) -> tuple[float, float]:
        bets = fractions
        if outline is not None:
            bound, _ = _log_wealths(outline, bets, depth)
            bets = bets[bound >= min(threshold - _NEGLIGIBLE, float(bound.max()))]
        log_wealth, slope = _log_wealths(sample, bets, depth)
        top = float(log_wealth.max())
        shares = np.exp(log_wealth - top)
        total = float(shares.sum())
        return top + math.log(total / _BETS) - threshold, float((shares * slope).sum()) / total

    return excess


def _log_wealths(sample: _Sample, bets: FloatArray, depth: float) -> tuple[FloatArray, FloatArray]:
    """Per bet the logarithm of its wealth at m = exp(-depth) and its derivative by depth; shape (bets,)."""
    import numpy as np

    stakes = bets * math.exp(depth)
    factors = np.multiply.outer(stakes, sample.values)
    factors += (1.0 - bets)[:, np.newaxis]
    slope = stakes * (sample.values * sample.counts / factors).sum(axis=1)
    log_wealth = (np.log(factors, out=factors) * sample.counts).sum(axis=1) + sample.zeros * np.log1p(-bets)
    return log_wealth, slope


def _block_means(sample: _Sample) -> _Sample:
    """The sample with its sorted values replaced by the means of _BLOCKS blocks of neighbours."""
    import numpy as np

    starts = np.linspace(0, sample.values.size, _BLOCKS, endpoint=False).astype(np.intp)
    counts = np.add.reduceat(sample.counts, starts)
    sums = np.add.reduceat(sample.values * sample.counts, starts)
    return _Sample(sums / counts, counts, sample.zeros)
