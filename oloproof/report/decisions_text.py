"""Decisions and gate as lines."""

from __future__ import annotations

from collections.abc import Sequence

from oloproof.decisions.records import Decision, Gate
from oloproof.report.standing_text import standing_text
from oloproof.report.terminal import plain
from oloproof.statistics.exact_difference import METHOD as EXACT
from oloproof.statistics.figures import points_interval

#: What is said of a gate that something other than a rule decided.
GATE_REASONS = {
    "no_policy": "no policy: nothing gates",
    "partial_run": "the run is not complete",
    "no_observations": "nothing was observed",
    "missingness_exceeds_policy": "too many cases errored",
    "baseline_absent": "the base has no such configuration",
    "baseline_failed": "the base could not be measured",
}


def decision_lines(decisions: Sequence[Decision]) -> list[str]:
    """The heading and one line a rule: id, metric, what it asks, state, reason code. Before them, how the judges stand
    that rules read."""
    if not decisions:
        return []
    return [
        *judge_lines(decisions),
        "Decisions",
        *(f"  {plain(d.rule)}  {about_text(d)}  {_asks(d)}  {d.state.value}  {d.reason}" for d in decisions),
    ]


def judge_lines(decisions: Sequence[Decision]) -> list[str]:
    """How each judge stands that a rule reads, once a judge and bar."""
    found = {f"  {d.metric}: {standing_text(d.judge)}": None for d in decisions if d.judge is not None}
    return ["Judges held against people", *found] if found else []


def no_policy_text(gate: Gate) -> str:
    """What a heading ends in when nothing gates."""
    return f" · {GATE_REASONS['no_policy']}" if gate.reason == "no_policy" else ""


def gate_line(gate: Gate) -> str:
    """`Gate: BLOCK (exit 3)`, and why when it was not a rule that decided."""
    line = f"Gate: {gate.state.value} (exit {gate.exit_code})"
    if gate.reason:
        line += f" · {GATE_REASONS.get(gate.reason, gate.reason)}"
        if gate.detail:
            line += f" ({plain(gate.detail)})"
    return line


def about_text(decision: Decision) -> str:
    """The metric, and the slice of the cases where the rule is not about all of them."""
    return decision.metric if decision.scope == "all" else f"{decision.metric}  {plain(decision.scope)}"


def _asks(decision: Decision) -> str:
    """What the rule asks; with its exact interval, which the figures above are not made by."""
    interval = decision.interval
    if interval is None or interval.method != EXACT:
        return decision.asks
    return f"{decision.asks}, exact {points_interval(interval)}"
