"""A plan as text: what would settle open rules, and what a number of cases can decide at all."""

from __future__ import annotations

from collections.abc import Sequence

from oloproof.decisions.prospects import MOST_CASES, Prospect
from oloproof.decisions.records import Decision, RuleState
from oloproof.report.decisions_text import about_text
from oloproof.report.outlook_text import outlook_text
from oloproof.report.tables import grid
from oloproof.report.terminal import plain
from oloproof.statistics.figures import percent_ceiling, percent_floor, points_ceiling


def settling_text(identity: str, decisions: Sequence[Decision]) -> str:
    """What `oloproof plan` prints of a run or a comparison: a row a rule."""
    if not decisions:
        return f"Plan for {identity}: no rule applies"
    rows = [[plain(d.rule), about_text(d), d.asks, d.state.value, _size(d), _settles(d)] for d in decisions]
    headers = ["Rule", "Metric", "Asks", "State", "Seen", "What would settle it"]
    return "\n".join([f"Plan for {identity}", *grid(headers, rows)])


def _size(decision: Decision) -> str:
    missing = f", {decision.missing} missing" if decision.missing else ""
    return f"{decision.observed}{missing}"


def _settles(decision: Decision) -> str:
    if decision.state is not RuleState.INSUFFICIENT_EVIDENCE:
        return "a person" if decision.state is RuleState.MANUAL_REVIEW else "settled"
    return outlook_text(decision.outlook) or f"not more cases: {decision.reason}"


def prospects_text(cases: int, prospects: Sequence[Prospect]) -> str:
    """What `oloproof plan --cases N` prints: a row a rule, and how many of them so many cases can let pass."""
    rows = [[plain(p.rule), p.metric, _asks(p), _at_this_size(p), _needed(p)] for p in prospects]
    able = sum(each.can_pass for each in prospects)
    noun = "case" if cases == 1 else "cases"
    lines = [f"What {cases:,} {noun} can decide: {able} of {len(rows)} rules can pass"]
    lines += grid(["Rule", "Metric", "Asks", f"With {cases:,} {noun}", "Cases to pass at best"], rows)
    if any(each.scope != "all" for each in prospects):
        lines.append(f"Rules on a slice are taken to have {cases:,} {noun} in it.")
    return "\n".join(lines)


def _asks(prospect: Prospect) -> str:
    return prospect.asks if prospect.scope == "all" else f"{prospect.asks}, {plain(prospect.scope)}"


_NOUNS = {
    "failures": ("failure", "failures"),
    "passes": ("pass", "passes"),
    "worst_scores": ("score at its worst", "scores at their worst"),
    "worse_pairs": ("worse pair", "worse pairs"),
    "better_pairs": ("better pair", "better pairs"),
}


def _at_this_size(prospect: Prospect) -> str:
    """When the rule passes and when it fails with so many cases."""
    if prospect.counted is None:
        parts = ["is decided by the cases seen, however few"]
    else:
        parts = [_passes(prospect), _fails(prospect)]
    if prospect.cases < (prospect.min_support or 0):
        parts.insert(0, f"cannot pass below min_support {prospect.min_support}")
    if not prospect.validated:
        parts.insert(0, "cannot pass: the judge was not checked well enough against people")
    if prospect.requires_manual_review:
        parts.insert(0, "asks for a person unless it fails")
    return "; ".join(part for part in parts if part)


def _passes(prospect: Prospect) -> str:
    counted = prospect.counted or "failures"
    if prospect.bears is None:
        return f"cannot pass: {_best(prospect)}"
    if counted == "better_pairs":
        return f"passes from {_number(prospect.bears, counted)} on, when none is worse"
    if prospect.bears == 0:
        return f"passes only without a {_NOUNS[counted][0]}"
    return f"passes with at most {_number(prospect.bears, counted)}"


def _fails(prospect: Prospect) -> str:
    if prospect.fails_from is None:
        return "cannot fail"
    counted = "worse_pairs" if prospect.counted == "better_pairs" else prospect.counted or "failures"
    return f"fails from {_number(prospect.fails_from, counted)} on"


def _best(prospect: Prospect) -> str:
    """How far the interval of the best outcome reaches."""
    reach = prospect.reach
    if reach is None:
        return "not even when every pair is better"
    if prospect.counted == "worse_pairs":
        return f"when no pair differs, the interval still reaches {points_ceiling(abs(reach))} points"
    if prospect.kind == "max":
        return f"at best, the interval reaches up to {percent_ceiling(reach)}"
    return f"at best, the interval reaches down to {percent_floor(reach)}"


def _needed(prospect: Prospect) -> str:
    if prospect.counted is None:
        return f"{prospect.min_support:,}" if prospect.min_support else "any"
    if prospect.needed is None:
        return f"none up to {MOST_CASES:,}"
    support, exact = prospect.min_support or 0, prospect.needed_exact
    text = f"{max(prospect.needed, support):,}"
    if exact is not None and max(exact, support) < prospect.needed:
        text += f" ({max(exact, support):,} with difference_method: exact)"
    return text


def _number(count: int, counted: str) -> str:
    one, several = _NOUNS[counted]
    return f"{count:,} {one if count == 1 else several}"
