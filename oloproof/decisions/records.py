"""What a decision is made of and what it comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from oloproof.records import Interval


class RuleState(StrEnum):
    PASS = "PASS"
    FAIL = "FAIL"
    INSUFFICIENT_EVIDENCE = "INSUFFICIENT_EVIDENCE"
    MANUAL_REVIEW = "MANUAL_REVIEW"


@dataclass(frozen=True)
class Outlook:
    """About how many `more` cases (or pairs) would settle a rule if they go like those that were seen, and which way:
    `settles` is PASS or FAIL. `chance` is how often the rule is settled at that size, either way, when the cases to
    come are drawn from those seen. When no number would do it these are None, and `obstacle` says why; see
    `oloproof.decisions.outlook`."""

    settles: RuleState | None = None
    more: int | None = None
    chance: float | None = None
    obstacle: str | None = None


@dataclass(frozen=True)
class JudgeStanding:
    """How a judge stands to what its policy asks for before a rule may rest on it. Of `labels` answers that people
    labelled, and the judge as it is defined at present was asked about, both said the same of `agreement` (a share,
    None of none); `interval` is that share's. The judge was not asked about `unasked` more. `missing_labels` is how
    many more it takes at least, if it agrees with all of them. `minimum_labels` and `minimum_agreement` are the
    policy's; they and `missing_labels` are None when the policy sets none, and then no number of labels is enough."""

    labels: int
    unasked: int
    agreement: float | None
    interval: Interval
    minimum_labels: int | None = None
    minimum_agreement: float | None = None
    missing_labels: int | None = None

    @property
    def met(self) -> bool:
        """Whether rules may rest on it."""
        if self.minimum_labels is None or self.minimum_agreement is None:
            return False
        return self.labels >= self.minimum_labels and self.interval.lower >= self.minimum_agreement


@dataclass(frozen=True)
class Decision:
    """One rule decided. What it read: the estimate and interval of a metric or difference, or counts; of `observed`
    cases, or pairs, while `missing` more gave no result.

    `scope` is `all` or the slice that the rule is about. `adjusted_p` is what the p-value of its failing comes to
    within its `family`. `always_blocks` is set when there was too little to decide on; then the gate blocks whatever
    `block_on` says; `tolerated` when the state is not PASS and the rule's own policy does not block on it. `outlook`
    says what would settle a rule that is open, where that was asked. `judge` is set when the metric is a judge's.
    """

    rule: str
    metric: str
    kind: str
    asks: str
    state: RuleState
    reason: str
    estimate: float | None = None
    interval: Interval | None = None
    counts: Mapping[str, int] | None = None
    always_blocks: bool = False
    tolerated: bool = False
    scope: str = "all"
    family: str | None = None
    adjusted_p: float | None = None
    observed: int = 0
    missing: int = 0
    outlook: Outlook | None = None
    judge: JudgeStanding | None = None


class GateState(StrEnum):
    ALLOW = "ALLOW"
    WARN = "WARN"
    BLOCK = "BLOCK"


@dataclass(frozen=True)
class Gate:
    """The outcome of all rules. `reason` is a reason code when something other than a rule decided (`no_policy`,
    `partial_run`, `no_observations`, `baseline_absent`, `baseline_failed`), else None. `detail` says more where
    there is more to say, such as the error that made the baseline fail."""

    state: GateState
    exit_code: int
    decisions: tuple[Decision, ...]
    reason: str | None = None
    detail: str = ""
