"""The sentence that says why one rule did not pass: in bold what is the matter, then what the rule asks for."""

from __future__ import annotations

import re

from oloproof.decisions.records import Decision, RuleState
from oloproof.report.standing_text import standing_text
from oloproof_ci.adapting import SUITE_CHANGE
from oloproof_ci.report import Report
from oloproof_ci.sections.decisions import COUNTING_KINDS, PAIR_KINDS, asked, found_text, scope_text
from oloproof_ci.sections.words import base_name, counted, named

#: What is said of a rule that its metric does not come to, whatever it asks.
_UNDECIDED = {
    "missingness_exceeds_policy": "**Too many results of {metric} are missing**, {missing} of {total}",
    "insufficient_support": "**{metric} was observed on too few cases**, {seen}",
    "evaluator_not_validated": "**{metric} comes from a judge that was not checked well enough against people**{judge}",
}


def rule_sentence(decision: Decision, report: Report) -> str:
    """Why one rule did not pass."""
    rule, metric = f"rule {named(decision.rule)}", f"{named(decision.metric)}{scope_text(decision)}"
    found, asks, base = found_text(decision, report), asked(decision, report), base_name(report)
    if tells_new_errors(decision, report):
        return f"{_new_errors(decision, report, metric)}; {rule} {_allows(asks)}."
    undecided = _undecided(decision, report, rule, metric, found)
    if undecided is not None:
        return undecided
    counting = decision.kind in COUNTING_KINDS
    asks_that = f"asks for {asks} of {metric}" if counting else f"asks that {metric} is {asks}"
    if decision.state is RuleState.MANUAL_REVIEW:
        return f"**A person has to decide**: {rule} {asks_that}; found {found}."
    if counting:
        return f"{_count_claim(decision, metric, base)}; {rule} {_allows(asks)}."
    if decision.state is RuleState.INSUFFICIENT_EVIDENCE:
        return f"**The evidence does not settle it**: {rule} {asks_that}; found {found}."
    if decision.reason == "systems_identical":
        return f"**Nothing that could change {metric} differs from {base}**; {rule} asks for {asks}."
    if decision.kind == "non_inferiority":
        limit = asks.removeprefix("worse by ").removeprefix("higher by ")
        return f"**{metric} is worse here than on {base}**: {found}; {rule} allows {limit}."
    if decision.kind in PAIR_KINDS:
        return f"**{metric} differs from {base} by {found}**; {rule} asks for {asks}."
    return f"**{metric} is {found} here**; {rule} asks for {asks}."


def tells_new_errors(decision: Decision, report: Report) -> bool:
    """Whether the sentence on a rule says how many cases error that pass in the base: they may be new failures, and
    that is what keeps the rule open."""
    reasons = ("missing_could_change_outcome", "missingness_exceeds_policy")
    return decision.kind == "new_failures" and decision.reason in reasons and report.errors.newly > 0


def _undecided(decision: Decision, report: Report, rule: str, metric: str, found: str) -> str | None:
    """The sentence on a rule that could not be decided by what its metric came to, whatever it asks."""
    if decision.kind == SUITE_CHANGE:
        return f"**A person has to look at this**: the policy asks for it, with {found} here."
    if decision.reason == "no_observations":
        if all(known.criterion != decision.metric for known in report.head.metrics):
            base = base_name(report)
            return f"**Nothing yields {metric} here**, which {rule} of {base} reads, so it cannot be decided."
        missing = (decision.counts or {}).get("missing", 0)
        rest = f"; {counted(missing, 'result')} missing" if missing else ""
        return f"**Nothing was observed for {metric}**: {rule} has nothing to decide on{rest}."
    if decision.reason not in _UNDECIDED:
        return None
    seen, total = decision.observed, decision.observed + decision.missing
    matter = _UNDECIDED[decision.reason].format(
        metric=metric,
        seen=counted(seen, "case"),
        missing=decision.missing,
        total=total,
        judge=_judge(decision),
    )
    return f"{matter}, so {rule} cannot be decided."


def _judge(decision: Decision) -> str:
    """How the judge stands that a rule reads."""
    return "" if decision.judge is None else f" ({standing_text(decision.judge)})"


def _count_claim(decision: Decision, metric: str, base: str) -> str:
    """What was counted, in bold: the failures, or what keeps the count open."""
    counts = decision.counts or {}
    count = counts.get(COUNTING_KINDS[decision.kind], 0)
    unstable, missing = counts.get("unstable", 0), counts.get("missing", 0)
    if decision.reason == "unstable_could_change_outcome":
        does = "does" if unstable == 1 else "do"
        rest = f", {count} {'holds' if count == 1 else 'hold'}" if count else ""
        return f"**{counted(unstable, 'new failure')} of {metric} {does} not hold when repeated**{rest}"
    fails = "fails" if count == 1 else "fail"
    if decision.reason == "missing_could_change_outcome":
        are, rest = "is" if missing == 1 else "are", f", {count} {fails}" if count else ""
        results = counted(missing, "result")
        return f"**{results} of {metric} {are} missing and could change the outcome**{rest}"
    if decision.kind == "new_failures":
        passes = "passes" if count == 1 else "pass"
        return f"**{counted(count, 'case')} that {passes} on {base} {fails} here**"
    return f"**{counted(count, 'case')} {fails} {metric} here**"


def _new_errors(decision: Decision, report: Report, metric: str) -> str:
    """`3 cases that pass on main error here, which leaves 4 results open`, and the failures that were seen."""
    newly, count = report.errors.newly, (decision.counts or {}).get("new_failures", 0)
    passes, error = ("passes", "errors") if newly == 1 else ("pass", "error")
    seen = f", {count} {'fails' if count == 1 else 'fail'}" if count else ""
    results = counted((decision.counts or {}).get("missing", decision.missing), "result")
    claim = f"**{counted(newly, 'case')} that {passes} on {base_name(report)} {error} here**"
    return f"{claim}, which leaves {results} of {metric} open{seen}"


def _allows(asks: str) -> str:
    limit = re.fullmatch(r"at most (\d+) (?:new )?failures?", asks)
    return f"allows {limit[1]}" if limit else f"asks for {asks}"
