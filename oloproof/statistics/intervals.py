"""Confidence intervals, valid at every number of cases.

A rate gets the exact binomial interval; a mean of a bounded score, and a mean of paired differences, get the
betting interval. Missing cases always widen: the lower end takes each as the worst value, the upper end as
the best. Equal values are collapsed and sorted first, so the order of the cases never changes a digit.

numpy is imported where it is used: most commands never need it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from oloproof.records import Interval

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
#: When the falling terms of a sum are this small relative to it, the rest no longer matters.
_NEGLIGIBLE_TERM = 2.0**-54
#: exp(700) is close to the largest double; an end that far below the largest value counts as 0.
_DEEPEST = 700.0
#: Newton steps on a convex function with a bracket to fall back on; 60 bisections alone would be enough.
_MAX_STEPS = 200
#: A last step this small (relative change of the end) leaves an error of its square.
_LAST_STEP = 1e-9


def clopper_pearson(passed: int, observed: int, missing: int = 0, confidence: float = 0.95) -> Interval:
    """Exact interval of a rate, in [0, 1].

    `passed` of `observed` cases passed and `missing` more could not be measured: the lower end counts each of
    them as failed, the upper end as passed. Raises ValueError when the counts do not fit together, when
    there is no case at all, or when confidence is not strictly between 0 and 1.

    Source: Clopper & Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 1934.
    """
    if not 0 <= passed <= observed:
        raise ValueError(f"passed must be between 0 and observed, got {passed} of {observed}")
    total = _total_cases(observed, missing)
    tail = alpha_of(confidence) / 2
    lower = _clopper_pearson_lower(passed, total, tail)
    upper = 1.0 - _clopper_pearson_lower(observed - passed, total, tail)
    return Interval(lower, upper, confidence, "clopper_pearson")


def _clopper_pearson_lower(passed: int, total: int, tail: float) -> float:
    """The rate at which `passed` or more of `total` has probability `tail`; 0 when none passed."""
    if passed == 0:
        return 0.0
    if passed == total:
        return float(tail ** (1.0 / total))
    # At the observed rate the probability is at least 1/2, since there `passed` is both the mean and a median.
    depth = _root(_tail_excess(passed, total, tail), -math.log(passed / total))
    return 0.0 if depth >= _DEEPEST else math.exp(-depth)


def _tail_excess(passed: int, total: int, tail: float) -> _Excess:
    """By how much `passed` or more of `total` is rarer than `tail` at the rate exp(-depth).

    The probability is that of exactly `passed`, times the sum of what each larger number has relative to it; below the
    observed rate those terms only fall.
    """
    log_ways = math.lgamma(total + 1) - math.lgamma(passed + 1) - math.lgamma(total - passed + 1)

    def excess(depth: float) -> tuple[float, float]:
        failure = -math.expm1(-depth)
        odds = math.exp(-depth) / failure
        term = relative = 1.0
        for number in range(passed, total):
            term *= odds * (total - number) / (number + 1)
            relative += term
            if term <= _NEGLIGIBLE_TERM * relative:
                break
        exactly = log_ways - passed * depth + (total - passed) * math.log(failure)
        return math.log(tail) - exactly - math.log(relative), passed / relative

    return excess


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


# ------------------------------------------------------------------------------------- the betting interval


class _Sample(NamedTuple):
    """Distinct positive values (the largest is 1.0) and their counts, each of shape (n,); how many zeros."""

    values: FloatArray
    counts: FloatArray
    zeros: float


#: From the depth s of a mean or rate m = exp(-s) below the largest value to how far it is beyond what the data
#: allow, as a difference of logarithms; and the derivative. Convex and increasing in s. For a mean: the logarithm of
#: the wealth that bets on a larger mean, less that of the threshold.
_Excess: TypeAlias = Callable[[float], tuple[float, float]]


def _betting(
    values: Sequence[float] | FloatArray,
    missing: int,
    confidence: float,
    lower: float,
    upper: float,
    method: str,
) -> Interval:
    import numpy as np

    threshold = math.log(2.0 / alpha_of(confidence))
    if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
        raise ValueError(f"the range must be finite and not empty, got [{lower}, {upper}]")
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1:
        raise ValueError(f"values must be one-dimensional, got shape {numbers.shape}")
    _total_cases(numbers.size, missing)
    distinct, counts = np.unique(numbers, return_counts=True)
    if distinct.size and not (distinct[0] >= lower and distinct[-1] <= upper):  # NaN sorts last, fails too
        raise ValueError(f"values must lie in [{lower}, {upper}], got {distinct[0]} to {distinct[-1]}")
    span = upper - lower
    rise = _smallest_mean((distinct - lower) / span, counts, missing, threshold)
    fall = _smallest_mean(((upper - distinct) / span)[::-1], counts[::-1], missing, threshold)
    return Interval(lower + span * rise, upper - span * fall, confidence, method)


def _smallest_mean(shares: FloatArray, counts: NDArray[np.int64], missing: int, threshold: float) -> float:
    """The smallest mean in [0, 1] at which the bet on a larger mean stays below the threshold.

    `shares` are the distinct values in [0, 1], ascending; `missing` more count as 0. Returns 0.0 when no
    value is positive, and when the end is below what a double can hold.
    """
    positive = shares > 0.0
    if not positive.any():
        return 0.0
    largest = float(shares[-1])
    weights = counts.astype(float)
    zeros = missing + float(weights[~positive].sum())
    sample = _Sample(shares[positive] / largest, weights[positive], zeros)
    mean = float((sample.values * sample.counts).sum() / (sample.counts.sum() + zeros))
    depth = _root(_excess_of(sample, threshold), -math.log(mean))
    return 0.0 if depth >= _DEEPEST else largest * math.exp(-depth)


def _root(excess: _Excess, shallow: float) -> float:
    """Where a convex increasing function crosses zero, between `shallow` (there it is negative) and _DEEPEST.

    Newton's method; from a point with positive excess its steps approach the root from one side. A step that
    leaves the bracket is replaced by a bisection. Returns _DEEPEST when the root lies beyond it.
    """
    if excess(_DEEPEST)[0] <= 0.0:
        return _DEEPEST
    low, high = max(shallow, 0.0), _DEEPEST
    depth = low
    for _ in range(_MAX_STEPS):
        value, slope = excess(depth)
        if value < 0.0:
            low = depth
        else:
            high = depth
        step = value / slope if slope > 0.0 else math.inf
        if abs(step) <= _LAST_STEP:
            return depth - step
        depth -= step
        if not low < depth < high:
            depth = (low + high) / 2
    return depth


def _excess_of(sample: _Sample, threshold: float) -> _Excess:
    """The excess over the threshold of the mean wealth over all bets (see `_Excess`).

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


# ------------------------------------------------------------------------------------------ what both check


def alpha_of(confidence: float) -> float:
    """How often an interval of a confidence may miss. Raises ValueError when the confidence is none."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must be strictly between 0 and 1, got {confidence}")
    return 1.0 - confidence


def _total_cases(observed: int, missing: int) -> int:
    if missing < 0:
        raise ValueError(f"missing must not be negative, got {missing}")
    if observed + missing == 0:
        raise ValueError("an interval needs at least one case, observed or missing")
    return observed + missing
