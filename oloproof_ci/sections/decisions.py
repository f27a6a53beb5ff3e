"""The table of decisions: what each rule asks, what was found, and its state."""

from __future__ import annotations

from oloproof.decisions.records import Decision, Gate, RuleState
from oloproof.report.outlook_text import outlook_text
from oloproof.settings.rules import ALL
from oloproof.statistics.exact_difference import METHOD as EXACT
from oloproof_ci.adapting import SUITE_CHANGE
from oloproof_ci.markdown import code, shortened, table
from oloproof_ci.report import Report
from oloproof_ci.sections.figures import (
    USUAL_CONFIDENCE,
    asks_text,
    confidence_text,
    difference_text,
    estimate_text,
    interval_text,
    is_rate,
)
from oloproof_ci.sections.room import Room
from oloproof_ci.sections.suite import counts_text
from oloproof_ci.sections.words import counted, named, rule_reason, words

#: Kinds of rules that read a difference between two runs.
PAIR_KINDS = {"non_inferiority", "superiority", "equivalence"}
#: Kinds of rules that count cases, with the count that they limit.
COUNTING_KINDS = {"new_failures": "new_failures", "observed_count": "failures"}

#: How many characters of a slice and its value are shown.
_SCOPE = 30

#: Which exit code says that rules in a state block, and the order in which rules are told: the worst first.
_BLOCKING_EXIT = {RuleState.FAIL: 1, RuleState.MANUAL_REVIEW: 4, RuleState.INSUFFICIENT_EVIDENCE: 3}
_ORDER = (*_BLOCKING_EXIT, RuleState.PASS)


def decisions_section(report: Report, room: Room) -> str:
    """One row a rule, in the order of the policies; empty when there is none."""
    gate = report.gate
    if not gate.decisions:
        return ""
    shown = gate.decisions
    if len(shown) > room.rules:
        shown = tuple(sorted(shown, key=lambda d: _ORDER.index(d.state)))[: room.rules]
    rows = [
        [_icon(d, gate), named(d.rule), _asks(d, report), found_text(d, report), _state(d)] for d in shown
    ]
    text = table(
        [("", "center"), ("Rule", "left"), ("Asks", "left"), ("Found", "left"), ("State", "left")], rows
    )
    rest = len(gate.decisions) - len(shown)
    return f"{text}\n\nand {counted(rest, 'more rule')}" if rest else text


def blocks(decision: Decision, gate: Gate) -> bool:
    """Whether a rule is among what blocks, as far as the exit code tells."""
    if decision.tolerated:
        return False
    return decision.always_blocks or _BLOCKING_EXIT.get(decision.state) == gate.exit_code


def worst_first(gate: Gate) -> list[Decision]:
    """The rules that did not pass, those that block before the others, then by state."""
    still_open = [d for d in gate.decisions if d.state is not RuleState.PASS]
    return sorted(still_open, key=lambda d: (not blocks(d, gate), _ORDER.index(d.state)))


def asked(decision: Decision, report: Report) -> str:
    """What the rule asks, without its metric."""
    return words(asks_text(decision, is_rate(report, decision.metric)))


def found_text(decision: Decision, report: Report) -> str:
    """What the rule read: counts, or an estimate with its interval."""
    counts = decision.counts
    if counts is not None:
        return _counts_text(decision.kind, dict(counts))
    rate = is_rate(report, decision.metric)
    if decision.kind in PAIR_KINDS:
        figures = difference_text(decision.estimate, decision.interval, rate)
    else:
        figures = f"{estimate_text(decision.estimate, rate)} {interval_text(decision.interval, rate)}"
    if decision.interval is not None and decision.interval.method == EXACT:
        figures += " (exact)"
    if decision.interval is not None and decision.interval.confidence != USUAL_CONFIDENCE:
        figures += f" at {confidence_text(decision.interval.confidence)}"
    return figures


def _counts_text(kind: str, counts: dict[str, int]) -> str:
    """`3 of 13 pairs, 0 unstable`, `0 of 13 cases`, or nothing, with what is missing."""
    if kind == SUITE_CHANGE:
        return counts_text(tuple(counts.items()))
    missing = f", {counts['missing']} missing" if counts.get("missing") else ""
    if kind == "new_failures" and "new_failures" in counts:
        pairs = counted(counts.get("paired", 0), "pair")
        return f"{counts['new_failures']} of {pairs}, {counts.get('unstable', 0)} unstable{missing}"
    if kind == "observed_count" and "failures" in counts:
        return f"{counts['failures']} of {counted(counts.get('observed', 0), 'case')}{missing}"
    return f"nothing{missing}"


def _asks(decision: Decision, report: Report) -> str:
    asks, metric = asked(decision, report), named(decision.metric)
    if decision.kind == SUITE_CHANGE:
        return asks
    metric = f"{metric}{scope_text(decision)}"
    return f"{asks} of {metric}" if decision.kind in COUNTING_KINDS else f"{metric} {asks}"


def scope_text(decision: Decision) -> str:
    """` where metadata.topic=billing` of a rule on a slice; nothing of one on all cases."""
    if decision.scope == ALL:
        return ""
    return f" where {code(shortened(decision.scope.removeprefix('slice/'), _SCOPE))}"


def _state(decision: Decision) -> str:
    """The state, why, and about what would settle it."""
    outlook = outlook_text(decision.outlook)
    return f"{code(decision.state.value)}<br>{rule_reason(decision)}{'; ' if outlook else ''}{outlook}"


def _icon(decision: Decision, gate: Gate) -> str:
    if decision.state is RuleState.PASS:
        return "✅"
    return "⛔" if blocks(decision, gate) else "⚠️"
