"""One diagnosed case as text: its label, how it failed, and what it came to when it was executed again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oloproof.diagnosis.records import DiagnosedCase, Diagnosis
from oloproof.report.case_text import CaseView, case_text, outcome_lines
from oloproof.report.diagnosis_text import diagnosed_case_line
from oloproof.run_records import Run


@dataclass(frozen=True)
class Reexecution:
    """A case of a child run: what it came to under an intervention, or repeated without one."""

    run: Run
    view: CaseView

    @property
    def kind(self) -> str:
        return self.run.kind


def diagnosed_case_text(
    identity: str,
    diagnosis: Diagnosis,
    diagnosed: DiagnosedCase,
    run: Run,
    recorded: CaseView,
    again: Sequence[Reexecution],
) -> str:
    """What `oloproof inspect DIAGNOSIS --case ID` prints: the run's case with its passages, and below it the answers
    with the gold context and when it was repeated."""
    lines = [
        f"Diagnosis {identity} · {diagnosis.intervention} · {diagnosis.criterion}",
        diagnosed_case_line(diagnosed, diagnosis),
        case_text(run, recorded),
    ]
    if not again:
        lines.append("Not executed again")
    for each in again:
        lines.append(f"Executed again: {each.kind} ({each.run.id})")
        lines += [f"  {line}" for line in outcome_lines(each.run, each.view)]
    return "\n".join(lines)
