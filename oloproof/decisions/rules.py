"""The state of each rule from what was measured.

Every rule reads an interval or counts, and answers PASS, FAIL, INSUFFICIENT_EVIDENCE or MANUAL_REVIEW with a reason
code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from oloproof.decisions.claims import IntervalRule, claims_of
from oloproof.decisions.records import Decision, RuleState
from oloproof.records import Interval
from oloproof.settings.rules import AnyRule, NewFailuresRule, ObservedCountRule, SuperiorityRule

PASS, FAIL, OPEN = RuleState.PASS, RuleState.FAIL, RuleState.INSUFFICIENT_EVIDENCE
REVIEW = RuleState.MANUAL_REVIEW

#: Why a rule whose interval alone would fail does not, as one of several questions.
CORRECTED = "not_excluded_after_correction"

_Verdict = tuple[RuleState, str]


@dataclass(frozen=True)
class Facts:
    """What a rule reads: of a run its cases, of a pair of runs the pairs that were observed on both sides.

    `estimate` and `interval` are those of the metric or of its difference; they are None when nothing was observed, and
    for rules that count. `failures` are the failures seen, or the cases that passed in the baseline and fail in the
    candidate, `unstable` those among the latter that a control did not confirm. `identical` is true when nothing that
    could change a result differs between the two systems. `validated` is false when the criterion is a judge's that was
    never checked against people. `missing_limit` is the share of missing results that the policy bears; `adjusted_p`
    what a failing rule's p-value comes to within its family, None where there is none.
    """

    observed: int
    missing: int
    estimate: float | None = None
    interval: Interval | None = None
    failures: int = 0
    unstable: int = 0
    identical: bool = False
    validated: bool = True
    missing_limit: float = 1.0
    adjusted_p: float | None = None


def decide(rule: AnyRule, facts: Facts) -> Decision:
    """The decision on one rule."""
    # Between identical systems nothing rests on what is missing.
    limit = facts.missing_limit * (facts.observed + facts.missing)
    saw_enough = facts.observed > 0 and (facts.identical or facts.missing <= limit)
    state, reason = _verdict(rule, facts) if saw_enough else (OPEN, _saw_too_little(facts))
    if rule.requires_manual_review and saw_enough and state is not FAIL:
        state, reason = REVIEW, "policy_requires_review"
    return Decision(
        rule=rule.id,
        metric=rule.metric,
        kind=rule.kind,
        asks=rule.asks(),
        state=state,
        reason=reason,
        estimate=facts.estimate,
        interval=facts.interval,
        counts=_counts(rule, facts),
        always_blocks=not saw_enough,
        scope=rule.scope,
        family=rule.family,
        adjusted_p=facts.adjusted_p,
        observed=facts.observed,
        missing=facts.missing,
    )


def _saw_too_little(facts: Facts) -> str:
    return "missingness_exceeds_policy" if facts.observed else "no_observations"


def _verdict(rule: AnyRule, facts: Facts) -> _Verdict:
    """The verdict on what was observed."""
    if (
        not facts.validated and not facts.identical
    ):  # between identical systems nothing rests on its judgments
        return OPEN, "evaluator_not_validated"
    if isinstance(rule, ObservedCountRule | NewFailuresRule):
        counted = (
            _observed_count(rule, facts)
            if isinstance(rule, ObservedCountRule)
            else _new_failures(rule, facts)
        )
        # Failures that were seen are a fact, however few cases there are.
        return counted if counted[0] is FAIL or _supported(rule, facts) else (OPEN, "insufficient_support")
    if facts.identical:
        return (FAIL if isinstance(rule, SuperiorityRule) else PASS), "systems_identical"
    if not _supported(rule, facts):
        return OPEN, "insufficient_support"
    return _by_interval(rule, facts)


def _supported(rule: AnyRule, facts: Facts) -> bool:
    """Whether there are as many cases as the rule wants; identical systems need none."""
    return facts.identical or facts.observed >= (rule.min_support or 0)


def _by_interval(rule: IntervalRule, facts: Facts) -> _Verdict:
    assert facts.interval is not None
    claims = claims_of(rule)
    if all(claim.holds(facts.interval) for claim in claims.passing):
        return PASS, claims.passes
    if not any(claim.holds(facts.interval) for claim in claims.failing):
        return OPEN, claims.overlaps
    if facts.adjusted_p is not None and facts.adjusted_p > 1.0 - facts.interval.confidence:
        return OPEN, CORRECTED
    return FAIL, claims.fails


def _observed_count(rule: ObservedCountRule, facts: Facts) -> _Verdict:
    if facts.failures > rule.max_failures:
        return FAIL, "observed_failures_exceed_limit"
    if facts.failures + facts.missing > rule.max_failures:
        return OPEN, "missing_could_change_outcome"
    return PASS, "observed_failures_within_limit"


def _new_failures(rule: NewFailuresRule, facts: Facts) -> _Verdict:
    if facts.failures - facts.unstable > rule.max:
        return FAIL, "new_failures_above_limit"
    if facts.failures > rule.max:
        return OPEN, "unstable_could_change_outcome"
    if facts.failures + facts.missing > rule.max:
        return (PASS, "systems_identical") if facts.identical else (OPEN, "missing_could_change_outcome")
    return PASS, "new_failures_within_limit"


def _counts(rule: AnyRule, facts: Facts) -> Mapping[str, int] | None:
    """What a counting rule counted; of any other rule, when it saw nothing, what is missing."""
    if not facts.observed:
        return {"missing": facts.missing}
    if isinstance(rule, NewFailuresRule):
        return {
            "new_failures": facts.failures - facts.unstable,
            "unstable": facts.unstable,
            "missing": facts.missing,
            "paired": facts.observed,
        }
    if isinstance(rule, ObservedCountRule):
        return {"failures": facts.failures, "missing": facts.missing, "observed": facts.observed}
    return None
