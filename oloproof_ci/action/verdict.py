"""The verdict: what all suites together come to, as an exit code and a commit status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from oloproof.decisions.records import GateState
from oloproof.errors import EXIT_CONFIGURATION, EXIT_OK, EXIT_RULE_FAILED, EXIT_UNFINISHED
from oloproof_ci.outcome import SuiteOutcome

FailOn = Literal["block", "warn", "never"]
StatusState = Literal["success", "failure", "error"]

#: Exit codes from the most telling down.
_PRECEDENCE = (EXIT_CONFIGURATION, EXIT_UNFINISHED, EXIT_RULE_FAILED, 4, 3)
_ORDER = (GateState.ALLOW, GateState.WARN, GateState.BLOCK)


@dataclass(frozen=True)
class Verdict:
    """`gate` is the worst of the suites', BLOCK when one could not be evaluated. `enforced` is false when `fail-on`
    lets a gate pass that would else fail."""

    gate: GateState
    reason: str
    exit_code: int
    status: StatusState
    enforced: bool


def decide(outcomes: Sequence[SuiteOutcome], fail_on: FailOn) -> Verdict:
    """The verdict over suites, of which there is at least one. What could not be evaluated fails whatever `fail_on`
    says: there is no gate that it could let pass."""
    worst = max(outcomes, key=lambda outcome: _ORDER.index(outcome.gate_state))
    gate = worst.gate_state
    failed = [outcome for outcome in outcomes if outcome.failure is not None]
    if failed:
        code = _worst_code([outcome.exit_code for outcome in failed])
        return Verdict(gate, failed[0].reason, code, "error", True)
    code = _worst_code([outcome.exit_code for outcome in outcomes])
    fails = {"block": gate is GateState.BLOCK, "warn": gate is not GateState.ALLOW, "never": False}[fail_on]
    if not fails:
        return Verdict(gate, worst.reason, EXIT_OK, "success", gate is not GateState.BLOCK)
    return Verdict(gate, worst.reason, code or EXIT_RULE_FAILED, "failure", True)


def _worst_code(codes: Sequence[int]) -> int:
    return next((code for code in _PRECEDENCE if code in codes), EXIT_OK)
