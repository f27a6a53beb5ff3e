"""Whether a judge agrees with people well enough for a rule to rest on it."""

from __future__ import annotations

from oloproof.decisions.records import JudgeStanding
from oloproof.judges.checks import JudgeCheck
from oloproof.settings.policy import JudgeBar
from oloproof.statistics.agreement import rate_interval

#: More labels than this nobody makes.
MOST_LABELS = 1_000_000


def standing_of(check: JudgeCheck, bar: JudgeBar | None, confidence: float) -> JudgeStanding:
    """How a judge stands to the bar of a policy. Answers that the judge gave no verdict on count against it."""
    counts = check.agreement
    interval = rate_interval(counts.agreed, counts.compared, counts.missing, confidence)
    agreement = counts.agreed / counts.compared if counts.compared else None
    if bar is None:
        return JudgeStanding(counts.labels, check.unasked, agreement, interval)
    return JudgeStanding(
        counts.labels,
        check.unasked,
        agreement,
        interval,
        bar.minimum_labels,
        bar.minimum_agreement,
        missing_labels(check, bar, confidence),
    )


def missing_labels(check: JudgeCheck, bar: JudgeBar, confidence: float) -> int | None:
    """How many more labels it takes at least, with which the judge would have to agree each time, as with those that it
    was not asked about yet; None when more than a million would."""
    counts = check.agreement
    agreed, labels = counts.agreed + check.unasked, counts.labels + check.unasked

    def enough(more: int) -> bool:
        if labels + more < bar.minimum_labels:
            return False
        reached = rate_interval(agreed + more, labels + more, 0, confidence)
        return reached.lower >= bar.minimum_agreement

    if enough(0):
        return 0
    low, high = 0, 1
    while not enough(high):
        if high >= MOST_LABELS:
            return None
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
