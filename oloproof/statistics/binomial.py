"""The exact interval of a rate, and the p-values that belong to it.

Missing cases always widen: the lower end takes each as failed, the upper end as passed.
"""

from __future__ import annotations

import math

from oloproof.records import Interval
from oloproof.statistics.roots import DEEPEST, Excess, alpha_of, check_cases, root

#: When the falling terms of a sum are this small relative to it, the rest no longer matters.
_NEGLIGIBLE_TERM = 2.0**-54


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
    check_cases(observed, missing)
    total = observed + missing
    tail = alpha_of(confidence) / 2
    lower = lower_end(passed, total, tail)
    upper = 1.0 - lower_end(observed - passed, total, tail)
    return Interval(lower, upper, confidence, "clopper_pearson")


def clopper_pearson_p_above(passed: int, observed: int, missing: int, bound: float) -> float:
    """The smallest alpha at which the whole interval lies above `bound`; 1.0 when none does."""
    check_cases(observed, missing)
    total = observed + missing
    if passed <= bound * total:
        return 1.0
    if bound <= 0.0:
        return 0.0
    excess, _ = _tail_excess(passed, total, 1.0)(-math.log(bound))
    return min(1.0, 2 * math.exp(-excess))


def clopper_pearson_p_below(passed: int, observed: int, missing: int, bound: float) -> float:
    """The smallest alpha at which the whole interval lies below `bound`; 1.0 when none does."""
    return clopper_pearson_p_above(observed - passed, observed, missing, 1.0 - bound)


def lower_end(passed: int, total: int, tail: float) -> float:
    """The rate at which `passed` or more of `total` has probability `tail`, at most 1/2; 0 when none passed."""
    if passed == 0:
        return 0.0
    if passed == total:
        return float(tail ** (1.0 / total))
    # At the observed rate the probability is at least 1/2, since there `passed` is both the mean and a median.
    depth = root(_tail_excess(passed, total, tail), -math.log(passed / total))
    return 0.0 if depth >= DEEPEST else math.exp(-depth)


def _tail_excess(passed: int, total: int, tail: float) -> Excess:
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
