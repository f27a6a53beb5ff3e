"""How a judge compares with people, and what a pass rate comes to when its errors are taken off.

People and judge say pass or fail of the same answers. Answers on which the judge said nothing are missing, and widen
every interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from oloproof.records import Interval
from oloproof.statistics.betting import paired_difference_betting
from oloproof.statistics.binomial import clopper_pearson
from oloproof.statistics.exact_difference import MOST_PAIRS, exact_paired_difference
from oloproof.statistics.roots import alpha_of

WHOLE = (0.0, 1.0)


@dataclass(frozen=True)
class Agreement:
    """Counts of answers: what people said, then what the judge said. `good_missing` and `bad_missing` are answers that
    people passed and failed, and on which the judge said nothing."""

    good_passed: int = 0
    good_failed: int = 0
    bad_passed: int = 0
    bad_failed: int = 0
    good_missing: int = 0
    bad_missing: int = 0

    @property
    def agreed(self) -> int:
        return self.good_passed + self.bad_failed

    @property
    def compared(self) -> int:
        return self.good_passed + self.good_failed + self.bad_passed + self.bad_failed

    @property
    def missing(self) -> int:
        return self.good_missing + self.bad_missing

    @property
    def labels(self) -> int:
        return self.compared + self.missing


def rate_interval(hits: int, seen: int, missing: int, confidence: float) -> Interval:
    """Clopper-Pearson's interval of a rate, the whole range where nothing is known."""
    if seen + missing == 0:
        return Interval(*WHOLE, confidence, "clopper_pearson")
    return clopper_pearson(hits, seen, missing, confidence)


def kappa(counts: Agreement) -> float | None:
    """Cohen's kappa of the answers compared; None when both always said the same one thing, or nothing.

    Source: Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 1960.
    """
    if counts.compared == 0:
        return None
    good = (counts.good_passed + counts.good_failed) / counts.compared
    passed = (counts.good_passed + counts.bad_passed) / counts.compared
    by_chance = good * passed + (1 - good) * (1 - passed)
    observed = counts.agreed / counts.compared
    return None if by_chance == 1.0 else (observed - by_chance) / (1 - by_chance)


def kappa_interval(counts: Agreement, confidence: float = 0.95) -> Interval:
    """An interval of kappa that is valid at every number of answers.

    Kappa is a function of the share of good answers and of the hit rates on good and on bad ones. Each of the three has
    its Clopper-Pearson interval at alpha/3, so all three hold together with the stated confidence (Bonferroni), and the
    interval is what kappa can be within them. That is wider than the usual one from a normal approximation, which is
    not valid for the few dozen answers that people label.

    Source of the identity kappa = 2 p (1 - p) (sensitivity + specificity - 1) / (p (1 - q) + (1 - p) q), p and q being
    the shares that people and judge pass: Kraemer, "Ramifications of a population model for kappa as a coefficient of
    reliability", Psychometrika 1979.
    """
    each = 1.0 - alpha_of(confidence) / 3
    good = counts.good_passed + counts.good_failed
    bad = counts.bad_passed + counts.bad_failed
    of_good = rate_interval(counts.good_passed, good, counts.good_missing, each)
    of_bad = rate_interval(counts.bad_failed, bad, counts.bad_missing, each)
    share = rate_interval(good + counts.good_missing, counts.labels, 0, each)
    lower = min(_kappas(of_good.lower, of_bad.lower, share))
    upper = max(_kappas(of_good.upper, of_bad.upper, share))
    return Interval(lower, upper, confidence, "bonferroni_box")


def _kappas(of_good: float, of_bad: float, share: Interval) -> list[float]:
    """Kappa at the shares of good answers where it is largest and smallest. It rises with both hit rates; in the share
    its absolute value rises, then falls, with the top where the errors' pull is even."""
    wrong = (1 - of_good, 1 - of_bad)
    roots = [math.sqrt(each) for each in wrong]
    top = roots[1] / sum(roots) if sum(roots) else 0.5
    shares = (share.lower, min(max(top, share.lower), share.upper), share.upper)
    return [_kappa_at(p, of_good, of_bad) for p in shares]


def _kappa_at(share: float, of_good: float, of_bad: float) -> float:
    passed = share * of_good + (1 - share) * (1 - of_bad)
    by_chance = share * (1 - passed) + (1 - share) * passed
    youden = of_good + of_bad - 1
    if by_chance == 0.0:  # all answers are good, or all bad, and the judge says so of each
        return 1.0
    return 2 * share * (1 - share) * youden / by_chance


@dataclass(frozen=True)
class CorrectedRate:
    """What people would pass of a run's answers, as a judge's verdicts and its errors on `labels` of them tell.
    `missing` labels stand for answers of which one of the two verdicts is not known."""

    criterion: str
    raw: float
    estimate: float
    interval: Interval
    labels: int
    missing: int


def corrected_rate(
    criterion: str,
    passed: int,
    observed: int,
    unjudged: int,
    errors: tuple[int, int, int],
    missing: int,
    confidence: float = 0.95,
) -> CorrectedRate | None:
    """The judge's pass rate (`passed` of `observed` answers, `unjudged` more missing) plus the mean of people's verdict
    less the judge's on labelled answers; None without any. `errors` counts labelled answers that the judge failed and
    people passed, on which both agree, and that it passed and people failed; `missing` more are not known.

    The interval is the sum of two, each at alpha/2: Clopper-Pearson's of the judge's rate, and that of the mean
    difference, which is the exact one up to 150 labels and the betting one above. It holds at every number of answers,
    when the labelled ones are a random sample of them.

    Source: Angelopoulos, Bates, Fannjiang, Jordan & Zrnic, "Prediction-powered inference", Science 382 (2023), with
    finite-sample intervals for its two parts.
    """
    too_strict, agreed, too_lenient = errors
    labels = sum(errors)
    if not observed or not labels:
        return None
    half = 1.0 - alpha_of(confidence) / 2
    rate = clopper_pearson(passed, observed, unjudged, half)
    if labels + missing <= MOST_PAIRS:
        off = exact_paired_difference(too_strict, too_lenient, labels, missing, half)
    else:
        differences = [1.0] * too_strict + [0.0] * agreed + [-1.0] * too_lenient
        off = paired_difference_betting(differences, missing, half)
    raw = passed / observed
    estimate = min(1.0, max(0.0, raw + (too_strict - too_lenient) / labels))
    lower, upper = max(0.0, rate.lower + off.lower), min(1.0, rate.upper + off.upper)
    interval = Interval(lower, upper, confidence, "prediction_powered")
    return CorrectedRate(criterion, raw, estimate, interval, labels, missing)
