"""The exact interval of a paired difference of two rates, and the p-values that belong to it.

For pass/fail criteria: each pair is better (the candidate alone passed), worse (the baseline alone passed) or the same,
and the difference is P(better) - P(worse). Up to 150 pairs the interval holds every difference that neither of two
one-sided exact tests at alpha/2 refutes. Such a test adds up the probabilities of all outcomes whose score statistic is
at least as far out as the observed one, in the worst case over the nuisance parameter, which is how many pairs differ
at all; the worst case is taken over a confidence set of that number, at a price of gamma. Where what is accepted has
holes, the interval spans them. With more pairs, or next to certainty, a closed form takes its place. Over all outcomes
of up to 40 pairs, at a fine grid of both rates, a 95% interval holds the truth in at least 95.03% of all cases.

Sources: the statistic is Tango's ("Equivalence test and confidence interval for the difference in proportions for the
paired-sample design", Statistics in Medicine 1998); the inversion of two one-sided exact unconditional tests is Chan &
Zhang's ("Test-based exact confidence intervals for the difference of two binomial proportions", Biometrics 1999); the
set of the nuisance parameter is Berger & Boos's ("P values maximized over a confidence set for the nuisance parameter",
JASA 1994).
"""

from __future__ import annotations

import math

from oloproof.records import Interval
from oloproof.statistics.binomial import lower_end
from oloproof.statistics.exact_test import GAMMA, OneSidedTests, PairCounts
from oloproof.statistics.roots import alpha_of

METHOD = "paired_difference_exact"
#: The most pairs that are enumerated.
MOST_PAIRS = 150
#: Nothing below GAMMA can be significant, so from 1 - _LEAST_ALPHA of confidence on the closed form is used.
_LEAST_ALPHA = 10 * GAMMA
#: What a p-value of the closed form is reported as when it is smaller.
_LEAST_CLOSED_P = 1e-100
#: An end is known to this, and a p-value to this share of it; what is reported is on the refuted side.
_PRECISION = 1e-6
_P_PRECISION = 1e-6
#: The largest difference that is tested: at 1 itself the statistic has no variance.
_LARGEST = 1.0 - 1e-7


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


def exact_lies_below(better: int, worse: int, paired: int, missing: int, bound: float, alpha: float) -> bool:
    """Whether the whole interval that may miss with probability alpha lies below `bound`; faster than the p-value."""
    _, high = _ends(better, worse, paired, missing)
    return _lies_below(high, bound, alpha)


def exact_lies_above(better: int, worse: int, paired: int, missing: int, bound: float, alpha: float) -> bool:
    """Whether the whole interval that may miss with probability alpha lies above `bound`; faster than the p-value."""
    low, _ = _ends(better, worse, paired, missing)
    return _lies_below(low.mirrored, -bound, alpha)


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
    return _outermost(OneSidedTests(counts), alpha / 2)


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
    p = min(1.0, 2 * _largest_p(OneSidedTests(counts), bound))
    return p if p >= _LEAST_ALPHA else min(_LEAST_ALPHA, _closed_p_below(counts, bound))


def _lies_below(counts: PairCounts, bound: float, alpha: float) -> bool:
    if counts.total > MOST_PAIRS or alpha < _LEAST_ALPHA:
        return _closed_upper(counts, alpha) < bound
    if (counts.better - counts.worse) / counts.total >= bound:
        return False
    tests = OneSidedTests(counts)
    ranges = [(bound, _LARGEST)] if bound < _LARGEST else []
    while ranges:
        inner, outer = ranges.pop()
        if tests.largest_p(inner, inner) > alpha / 2:
            return False
        if tests.largest_p(inner, outer) > alpha / 2:
            if outer - inner <= _PRECISION:
                return False
            middle = (inner + outer) / 2
            ranges += [(middle, outer), (inner, middle)]
    return True


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


def _outermost(tests: OneSidedTests, level: float) -> float:
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


def _largest_p(tests: OneSidedTests, bound: float) -> float:
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
