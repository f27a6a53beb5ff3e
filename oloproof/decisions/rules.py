"""The state of each rule from what was measured.

Every rule reads an interval or counts, and answers PASS, FAIL or INSUFFICIENT_EVIDENCE with a reason code.
"""

from __future__ import annotations

from dataclasses import dataclass

from oloproof.decisions.records import Decision, RuleState
from oloproof.records import Interval, Metric
from oloproof.settings.rules import (
    AnyRule,
    EquivalenceRule,
    MaxRule,
    MinRule,
    NewFailuresRule,
    NonInferiorityRule,
    ObservedCountRule,
    SuperiorityRule,
)

PASS, FAIL, OPEN = RuleState.PASS, RuleState.FAIL, RuleState.INSUFFICIENT_EVIDENCE


@dataclass(frozen=True)
class PairedFacts:
    """What a rule on a pair reads of its metric. `new_failures` counts the cases that passed in the baseline and fail
    in the candidate, `unstable` those among them that a control did not confirm. `identical` is true when nothing
    that could change a result differs between the two systems."""

    difference: float | None
    interval: Interval | None
    paired: int
    missing: int
    new_failures: int = 0
    unstable: int = 0
    identical: bool = False


def decide_on_run(rule: AnyRule, metric: Metric, interval: Interval | None) -> Decision:
    """A rule on one run; `interval` is the metric's at the policy's confidence."""
    if metric.observed == 0:
        return _nothing_observed(rule, metric.missing)
    if isinstance(rule, MinRule):
        assert interval is not None
        state, reason = _minimum(interval, rule.min)
        return _decision(rule, state, reason, metric.estimate, interval)
    if isinstance(rule, MaxRule):
        assert interval is not None
        state, reason = _maximum(interval, rule.max)
        return _decision(rule, state, reason, metric.estimate, interval)
    assert isinstance(rule, ObservedCountRule)
    failures = metric.observed - round(metric.total)
    counts = {"failures": failures, "missing": metric.missing, "observed": metric.observed}
    if failures > rule.max_failures:
        return _decision(rule, FAIL, "observed_failures_exceed_limit", counts=counts)
    if failures + metric.missing > rule.max_failures:
        return _decision(rule, OPEN, "missing_could_change_outcome", counts=counts)
    return _decision(rule, PASS, "observed_failures_within_limit", counts=counts)


def decide_on_pair(rule: AnyRule, facts: PairedFacts) -> Decision:
    """A rule on a candidate paired with a baseline."""
    if facts.paired == 0:
        return _nothing_observed(rule, facts.missing)
    if isinstance(rule, NewFailuresRule):
        return _new_failures(rule, facts)
    assert isinstance(rule, NonInferiorityRule | SuperiorityRule | EquivalenceRule)
    assert facts.interval is not None
    if facts.identical:
        state = FAIL if isinstance(rule, SuperiorityRule) else PASS
        return _decision(rule, state, "systems_identical", facts.difference, facts.interval)
    if isinstance(rule, EquivalenceRule):
        state, reason = _equivalent(facts.interval, rule.margin)
    elif isinstance(rule, SuperiorityRule):
        state, reason = (_superior if rule.direction == "min" else _superior_below)(facts.interval)
    else:
        decide = _non_inferior if rule.direction == "min" else _non_inferior_above
        state, reason = decide(facts.interval, rule.margin)
    return _decision(rule, state, reason, facts.difference, facts.interval)


def _minimum(interval: Interval, bar: float) -> tuple[RuleState, str]:
    if interval.lower >= bar:
        return PASS, "lower_bound_meets_minimum"
    if interval.upper < bar:
        return FAIL, "upper_bound_below_minimum"
    return OPEN, "interval_overlaps_threshold"


def _maximum(interval: Interval, bar: float) -> tuple[RuleState, str]:
    if interval.upper <= bar:
        return PASS, "upper_bound_meets_maximum"
    if interval.lower > bar:
        return FAIL, "lower_bound_above_maximum"
    return OPEN, "interval_overlaps_threshold"


def _non_inferior(interval: Interval, margin: float) -> tuple[RuleState, str]:
    if interval.lower > -margin:
        return PASS, "lower_bound_above_margin"
    if interval.upper < -margin:
        return FAIL, "upper_bound_below_margin"
    return OPEN, "interval_overlaps_margin"


def _non_inferior_above(interval: Interval, margin: float) -> tuple[RuleState, str]:
    """Where lower is better."""
    if interval.upper < margin:
        return PASS, "upper_bound_below_margin"
    if interval.lower > margin:
        return FAIL, "lower_bound_above_margin"
    return OPEN, "interval_overlaps_margin"


def _superior(interval: Interval) -> tuple[RuleState, str]:
    if interval.lower > 0:
        return PASS, "difference_above_zero"
    if interval.upper <= 0:
        return FAIL, "difference_below_zero"
    return OPEN, "interval_overlaps_zero"


def _superior_below(interval: Interval) -> tuple[RuleState, str]:
    """Where lower is better."""
    if interval.upper < 0:
        return PASS, "difference_below_zero"
    if interval.lower >= 0:
        return FAIL, "difference_above_zero"
    return OPEN, "interval_overlaps_zero"


def _equivalent(interval: Interval, margin: float) -> tuple[RuleState, str]:
    if -margin < interval.lower and interval.upper < margin:
        return PASS, "interval_within_margins"
    if interval.upper < -margin or interval.lower > margin:
        return FAIL, "interval_outside_margins"
    return OPEN, "interval_overlaps_margins"


def _new_failures(rule: NewFailuresRule, facts: PairedFacts) -> Decision:
    stable = facts.new_failures - facts.unstable
    counts = {
        "new_failures": stable,
        "unstable": facts.unstable,
        "missing": facts.missing,
        "paired": facts.paired,
    }
    if stable > rule.max:
        return _decision(rule, FAIL, "new_failures_above_limit", counts=counts)
    if stable + facts.unstable > rule.max:
        return _decision(rule, OPEN, "unstable_could_change_outcome", counts=counts)
    if stable + facts.unstable + facts.missing > rule.max:
        return _decision(rule, OPEN, "missing_could_change_outcome", counts=counts)
    return _decision(rule, PASS, "new_failures_within_limit", counts=counts)


def _nothing_observed(rule: AnyRule, missing: int) -> Decision:
    return _decision(rule, OPEN, "no_observations", counts={"missing": missing}, always_blocks=True)


def _decision(
    rule: AnyRule,
    state: RuleState,
    reason: str,
    estimate: float | None = None,
    interval: Interval | None = None,
    counts: dict[str, int] | None = None,
    always_blocks: bool = False,
) -> Decision:
    return Decision(
        rule.id, rule.metric, rule.kind, rule.asks(), state, reason, estimate, interval, counts, always_blocks
    )
