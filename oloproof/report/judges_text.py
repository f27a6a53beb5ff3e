"""What judging took, and why a judge said what it said, as text."""

from __future__ import annotations

from collections.abc import Sequence

from oloproof.judges.costs import JudgeCosts
from oloproof.judges.verdicts import Verdict
from oloproof.records import Judgment
from oloproof.report.terminal import plain


def costs_text(costs: JudgeCosts) -> str:
    """`12 calls, 9,310 tokens in, 402 out, cost 0.0312 · 30 answers from the store, which saves 0.0781`; without costs
    where no model has a price."""
    parts = [_counted(costs.calls, "call")]
    if costs.calls:
        parts.append(f"{costs.input:,} tokens in, {costs.output:,} out")
    if costs.cost:
        parts.append(f"cost {money(costs.cost)}")
    text = ", ".join(parts)
    if costs.unpriced:
        text += f" ({costs.unpriced} of them to models without a price)"
    if costs.avoided:
        saved = f", which saves {money(costs.saved)}" if costs.saved else ""
        text += f" · {_counted(costs.avoided, 'answer')} from the store{saved}"
    return text


def costs_lines(costs: JudgeCosts | None) -> list[str]:
    """`Judges: ...`, where a judge was asked or an answer kept it from being asked."""
    return [] if costs is None or costs == JudgeCosts() else [f"Judges: {costs_text(costs)}"]


def money(amount: float) -> str:
    """An amount in the currency of the user's prices, to at least two digits that say something."""
    return f"{amount:,.2f}" if amount >= 1 else f"{amount:.4f}" if amount >= 0.001 else f"{amount:.2g}"


def samples_lines(samples: Sequence[Sequence[Judgment | Verdict]]) -> list[str]:
    """What a judge said of each question, a line a sample."""
    lines = []
    for number, answers in enumerate(samples, 1):
        for answer in answers:
            of = f"question {number}: " if len(samples) > 1 else ""
            if isinstance(answer, Judgment):
                lines.append(f"{of}no verdict ({answer.reason}: {plain(answer.detail or '')})")
                continue
            lines.append(f"{of}{answer.verdict}: {plain(answer.rationale)}")
            lines += [f"  passage {passage}: “{plain(words)}”" for passage, words in answer.quotes]
    return lines


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
