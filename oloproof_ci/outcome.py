"""What a job has to report: one outcome for each suite. This is report.json, the whole of what another job needs to
render and post it."""

from __future__ import annotations

from dataclasses import dataclass

from oloproof.decisions.records import GateState
from oloproof_ci.report import Report
from oloproof_ci.sections.decisions import blocks, worst_first

OUTCOME_VERSION = 1


@dataclass(frozen=True)
class Failure:
    """Why a suite could not be evaluated: the exit code, and what is wrong, in sentences."""

    exit_code: int
    message: str


@dataclass(frozen=True)
class SuiteOutcome:
    """One suite, named by its configuration's path in the repository: its report, or the failure."""

    config: str
    report: Report | None
    failure: Failure | None

    @property
    def gate_state(self) -> GateState:
        return GateState.BLOCK if self.report is None else self.report.gate.state

    @property
    def exit_code(self) -> int:
        if self.failure is not None:
            return self.failure.exit_code
        assert self.report is not None
        return self.report.gate.exit_code

    @property
    def reason(self) -> str:
        """The code of what decided: `failed`, the gate's own reason, or the ids of the rules that decided; empty when
        nothing stands against the change."""
        if self.report is None:
            return "failed"
        gate = self.report.gate
        if gate.reason:
            return gate.reason
        still_open = worst_first(gate)
        blocking = [decision for decision in still_open if blocks(decision, gate)]
        return "" if gate.state is GateState.ALLOW else ", ".join(d.rule for d in blocking or still_open)


@dataclass(frozen=True)
class JobOutcome:
    """Everything that one attempt of one job has to report. `head_sha` is the commit it is about, `job` its name, and
    `leg` tells jobs of one matrix apart."""

    version: int
    head_sha: str
    pull_request: int | None
    run_id: int
    run_attempt: int
    job: str
    leg: str
    suites: tuple[SuiteOutcome, ...]
