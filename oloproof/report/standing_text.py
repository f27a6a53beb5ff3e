"""How a judge stands to the bar of a policy, in words."""

from __future__ import annotations

from collections.abc import Sequence

from oloproof.decisions.records import JudgeStanding
from oloproof.statistics.agreement import CorrectedRate
from oloproof.statistics.figures import percent, percent_interval


def standing_text(judge: JudgeStanding) -> str:
    """`agrees with people on 90.0% [73.4%, 97.9%] of 30 labelled answers; needs 80.0% of 30: 12 more labels`."""
    return f"{agreement_text(judge)}; {lacks_text(judge)}"


def agreement_text(judge: JudgeStanding) -> str:
    """What is known of the judge."""
    if judge.agreement is None and not judge.labels:
        return "never compared with people"
    share = "nothing" if judge.agreement is None else percent(judge.agreement)
    return f"agrees with people on {share} {percent_interval(judge.interval)} of {_answers(judge.labels)}"


def lacks_text(judge: JudgeStanding) -> str:
    """What is missing before rules may rest on the judge."""
    if judge.minimum_labels is None or judge.minimum_agreement is None:
        return "the policy has no `judges` that it could meet, so it decides nothing"
    bar = (
        f"the policy asks for at least {percent(judge.minimum_agreement)} on at least {judge.minimum_labels}"
    )
    if judge.met:
        return f"{bar}: met"
    parts = []
    if judge.unasked:
        parts.append(f"it was not asked about {judge.unasked} labelled ones yet")
    if judge.missing_labels is None:
        parts.append("no number of labels would be enough")
    elif judge.missing_labels:
        parts.append(f"at least {_labels(judge.missing_labels)} missing")
    return f"{bar}: {', '.join(parts)}"


def corrected_lines(rates: Sequence[CorrectedRate]) -> list[str]:
    """The pass rates that people would have found, beside those that judges found on the same answers."""
    return [f"Corrected: {corrected_text(rate)}" for rate in rates]


def corrected_text(rate: CorrectedRate) -> str:
    """`polite 71.0% [58.2%, 83.9%] for the judge's errors on 50 labelled answers; as judged 75.0%`."""
    missing = f", {rate.missing} of which no error is known" if rate.missing else ""
    of = _answers(rate.labels + rate.missing)
    figures = f"{percent(rate.estimate)} {percent_interval(rate.interval)}"
    return f"{rate.criterion} {figures} by the judge's errors on {of}{missing}; as judged {percent(rate.raw)}"


def _answers(count: int) -> str:
    return "1 labelled answer" if count == 1 else f"{count:,} labelled answers"


def _labels(count: int) -> str:
    return "1 more label is" if count == 1 else f"{count:,} more labels are"
