"""Names and codes in the comment's words."""

from __future__ import annotations

from collections.abc import Sequence

from oloproof.decisions.records import Decision, GateState, RuleState
from oloproof_ci.markdown import code, prose, shortened
from oloproof_ci.report import NewFailure, Report

#: How many characters of a name, a sentence, a warning and an answer are shown.
NAME, SENTENCE, WARNING, ANSWER = 60, 200, 400, 120

GATE_ICONS = {GateState.ALLOW: "✅", GateState.WARN: "⚠️", GateState.BLOCK: "⛔"}

#: What the reason codes of decisions say; those that read an interval say the same for every kind of rule.
_MET, _MISSED, _OPEN = (
    "the whole interval meets this",
    "the whole interval misses this",
    "the interval allows both answers",
)
RULE_REASONS = {
    "lower_bound_meets_minimum": _MET,
    "upper_bound_below_minimum": _MISSED,
    "interval_overlaps_threshold": _OPEN,
    "upper_bound_meets_maximum": _MET,
    "lower_bound_above_maximum": _MISSED,
    "observed_failures_within_limit": "within the limit",
    "observed_failures_exceed_limit": "above the limit",
    "missing_could_change_outcome": "missing results could change it",
    "interval_overlaps_margin": _OPEN,
    "interval_overlaps_margins": _OPEN,
    "interval_overlaps_zero": _OPEN,
    "interval_within_margins": _MET,
    "interval_outside_margins": _MISSED,
    "systems_identical": "nothing that could change a result differs",
    "new_failures_within_limit": "within the limit",
    "new_failures_above_limit": "above the limit",
    "unstable_could_change_outcome": "unstable cases could change it",
    "no_observations": "nothing was observed",
    "missingness_exceeds_policy": "too many results are missing",
    "insufficient_support": "too few cases",
    "evaluator_not_validated": "the judge was not checked well enough against people",
    "policy_requires_review": "the policy wants a person to look",
    "not_excluded_after_correction": "the interval misses this, but for one of several questions not clearly enough",
}
#: Whether these are met depends on which direction is better, so on the state.
_DIRECTED_REASONS = {
    "lower_bound_above_margin",
    "upper_bound_below_margin",
    "difference_above_zero",
    "difference_below_zero",
}

#: What the reason code of a label says of its case.
LABEL_REASONS = {
    "relevant_not_retrieved": "no relevant passage was retrieved",
    "relevant_ranked_below_top_k": "relevant passages rank below top_k",
    "relevant_dropped_from_context": "relevant passages were left out of the context",
    "part_of_relevant_not_retrieved": "some relevant passages were not retrieved",
    "part_of_relevant_ranked_below_top_k": "some relevant passages rank below top_k",
    "part_of_relevant_dropped_from_context": "some relevant passages were left out of the context",
    "recovered_with_relevant_in_context": "the relevant passage stood beside others",
    "fails_with_gold_context": "fails with the gold passage too",
    "unstable_under_control": "passes when repeated unchanged",
    "no_relevance_labels": "the case names no relevant passage",
    "relevance_unit_mismatch": "the retrieval names no chunks",
    "gold_text_not_in_context": "the gold text stood in no passage",
    "recovered_with_relevant_alone": "the relevant passage stood alone already",
    "intervention_evidence_missing": "a re-execution gave nothing to judge",
    "no_gold_context": "the case has no gold context",
    "criterion_judges_retrieval": "a gold context says nothing of a retrieval",
    "over_budget": "more cases fail than are diagnosed",
    "switched_off": "the diagnosis is switched off",
}


def counted(count: int, noun: str) -> str:
    """`1 case`, `2 cases`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def named(text: str) -> str:
    """A name (of a rule, a metric, a case, a file) as inline code."""
    return code(shortened(text, NAME))


def words(text: str) -> str:
    """A few words (of a setting, a factor, a branch) as part of a sentence."""
    return prose(shortened(text, NAME))


def listed(names: Sequence[str], limit: int) -> str:
    """Names in a row; of many the first, with a count of the rest."""
    shown = ", ".join(named(name) for name in names[:limit])
    rest = len(names) - min(limit, len(names))
    if not rest:
        return shown
    return f"{shown} and {rest} more" if shown else f"{rest} not named here"


def base_name(report: Report) -> str:
    """What the reader calls the base."""
    return named(report.base_commit.ref) if report.base_commit else "the base"


def rule_reason(decision: Decision) -> str:
    """Why a rule is in its state, in words; a code that has none is shown as it is."""
    if decision.reason in _DIRECTED_REASONS:
        return _MET if decision.state is RuleState.PASS else _MISSED
    return RULE_REASONS.get(decision.reason) or code(decision.reason[:NAME])


def label_reason(case: NewFailure) -> str:
    """What a case's label says of it, in words."""
    return LABEL_REASONS.get(case.reason) or code(case.reason[:NAME])
