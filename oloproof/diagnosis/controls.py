"""The control: cases executed again without any intervention, as often as is asked for, never from the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oloproof.diagnosis.child_runs import ChildCase, ChildRuns
from oloproof.diagnosis.labels import Outcome
from oloproof.diagnosis.recorded import RecordedCase
from oloproof.execution.replay_steps import ReplaySteps
from oloproof.execution.steps import Steps
from oloproof.records import Execution


@dataclass(frozen=True)
class Control:
    """How a control is executed: how many times, and whether it repeats the retrieval too."""

    repeats: int = 1
    full: bool = False


@dataclass(frozen=True, slots=True)
class Controlled:
    """What the repeats of a case came to together: passed when any passed, missing when any other gave no result, else
    failed. `passes` counts those that passed, `observed` those with a result, `differed` those whose retrieval came
    out different."""

    outcome: Outcome
    passes: int
    observed: int
    differed: int

    @classmethod
    def of(cls, repeats: Sequence[ChildCase]) -> Controlled:
        outcomes = [each.outcome for each in repeats]
        passes, lost = outcomes.count("passed"), outcomes.count("missing")
        whole: Outcome = "passed" if passes else "missing" if lost else "failed"
        return cls(whole, passes, len(outcomes) - lost, sum(each.differs for each in repeats))


def execute_controls(
    control: Control,
    kind: str,
    session: str,
    children: ChildRuns,
    steps: ReplaySteps,
    selected: Sequence[RecordedCase],
) -> tuple[tuple[str, ...], dict[str, Controlled]]:
    """The ids of the child runs, one for each repeat, and what each case came to. A repeat is told apart from others
    by its number, what it is for, and the session."""
    ids: list[str] = []
    found: dict[str, list[ChildCase]] = {each.case.id: [] for each in selected}
    kind = f"full {kind}" if control.full else kind
    for number in range(control.repeats if selected else 0):

        def again(recorded: RecordedCase, number: int = number) -> Steps:
            salt = f"{session} {kind} {number} {recorded.case.id}".encode("utf-8", "surrogatepass")
            if control.full:
                return steps.repeat_all(recorded.case, salt)
            return steps.repeat(recorded.case, recorded.execution, salt)

        child, cases = children.execute(kind, selected, again, differs=_retrieval_differs)
        ids += [] if child is None else [child]
        for case_id, came in cases.items():
            found[case_id].append(came)
    return tuple(ids), {case_id: Controlled.of(repeats) for case_id, repeats in found.items()}


def _retrieval_differs(recorded: RecordedCase, execution: Execution) -> bool:
    """Whether other passages were retrieved, or in another order; scores alone do not count."""
    if not execution.retrieved:
        return False
    then, now = (
        [(c.doc_id, c.chunk_id, c.text_id) for c in each.candidates]
        for each in (recorded.execution, execution)
    )
    return then != now
