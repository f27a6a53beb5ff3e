"""What each kind of rule claims of an interval: when it passes, when it fails, and the reason codes of both.

A rule passes when all of its passing claims hold, and fails when one of its failing claims does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, assert_never

from oloproof.decisions.evidence import Tested, lies_beyond
from oloproof.records import Interval
from oloproof.settings.rules import (
    EquivalenceRule,
    MaxRule,
    MinRule,
    NonInferiorityRule,
    SuperiorityRule,
)

IntervalRule = MinRule | MaxRule | NonInferiorityRule | SuperiorityRule | EquivalenceRule


class Claim(NamedTuple):
    """That the interval lies wholly above or below a bound; with `touching` it may end there."""

    side: Literal["above", "below"]
    bound: float
    touching: bool = False

    def holds(self, interval: Interval) -> bool:
        beyond = interval.lower - self.bound if self.side == "above" else self.bound - interval.upper
        return beyond >= 0.0 if self.touching else beyond > 0.0

    def p_value(self, evidence: Tested) -> float:
        """The smallest alpha at which it holds."""
        return (evidence.p_above if self.side == "above" else evidence.p_below)(self.bound)


@dataclass(frozen=True)
class Claims:
    """What a rule claims; `overlaps` is the reason when it neither passes nor fails."""

    passing: tuple[Claim, ...]
    passes: str
    failing: tuple[Claim, ...]
    fails: str
    overlaps: str

    def pass_at(self, alpha: float, evidence: Tested) -> bool:
        """Whether the rule passes by the interval that may miss with probability alpha."""
        return all(lies_beyond(evidence, claim.side, claim.bound, alpha) for claim in self.passing)

    def fail_at(self, alpha: float, evidence: Tested) -> bool:
        """Whether the rule fails by that interval."""
        return any(lies_beyond(evidence, claim.side, claim.bound, alpha) for claim in self.failing)

    def p_of_failing(self, evidence: Tested) -> float:
        """The smallest alpha at which the rule fails."""
        return min(claim.p_value(evidence) for claim in self.failing)


def claims_of(rule: IntervalRule) -> Claims:
    """The claims of a rule, as the table of decisions has them."""
    match rule:
        case MinRule():
            return Claims(
                (Claim("above", rule.min, touching=True),),
                "lower_bound_meets_minimum",
                (Claim("below", rule.min),),
                "upper_bound_below_minimum",
                "interval_overlaps_threshold",
            )
        case MaxRule():
            return Claims(
                (Claim("below", rule.max, touching=True),),
                "upper_bound_meets_maximum",
                (Claim("above", rule.max),),
                "lower_bound_above_maximum",
                "interval_overlaps_threshold",
            )
        case NonInferiorityRule():
            return _non_inferiority(rule)
        case SuperiorityRule():
            return _superiority(rule)
        case EquivalenceRule():
            return Claims(
                (Claim("above", -rule.margin), Claim("below", rule.margin)),
                "interval_within_margins",
                (Claim("below", -rule.margin), Claim("above", rule.margin)),
                "interval_outside_margins",
                "interval_overlaps_margins",
            )
    assert_never(rule)


def _non_inferiority(rule: NonInferiorityRule) -> Claims:
    above, below = "lower_bound_above_margin", "upper_bound_below_margin"
    if rule.direction == "min":
        bound = -rule.margin
        return Claims(
            (Claim("above", bound),), above, (Claim("below", bound),), below, "interval_overlaps_margin"
        )
    bound = rule.margin
    return Claims(
        (Claim("below", bound),), below, (Claim("above", bound),), above, "interval_overlaps_margin"
    )


def _superiority(rule: SuperiorityRule) -> Claims:
    above, below = "difference_above_zero", "difference_below_zero"
    better, worse = (Claim("above", 0.0), Claim("below", 0.0, touching=True))
    if rule.direction == "min":
        return Claims((better,), above, (worse,), below, "interval_overlaps_zero")
    better, worse = (Claim("below", 0.0), Claim("above", 0.0, touching=True))
    return Claims((better,), below, (worse,), above, "interval_overlaps_zero")
