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
class Decision:
    """One rule decided. `found` is what it read: the estimate and interval of a metric or difference, or counts.

    `always_blocks` is set when there was nothing to decide on; then the gate blocks whatever `block_on` says.
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
