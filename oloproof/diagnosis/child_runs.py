"""Child runs: cases of a stored run executed again in one way, judged, and stored as a run of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from oloproof.diagnosis.labels import Outcome
from oloproof.diagnosis.recorded import RecordedCase, evaluator_from
from oloproof.evaluation import Clock, Judged
from oloproof.execution.driver import Driver
from oloproof.execution.steps import Steps, StepsTo
from oloproof.identity.system import System
from oloproof.judging import Judging
from oloproof.measurement.metrics import MetricSum
from oloproof.records import Case, Execution, Judgment, StageError
from oloproof.run_records import CacheCounts, CaseRow, EvaluatorRecord, Run, Tally
from oloproof.store.runs import Runs, case_digest, pair_digest


class ChildCase(NamedTuple):
    """What a case came to in a child run; `error` is set when it gave no answer. `differs` is what the maker of the
    child run wanted to know of the execution."""

    judgment: Judgment
    error: StageError | None
    differs: bool

    @property
    def outcome(self) -> Outcome:
        return outcome_of(self.judgment)


@dataclass
class ChildRuns:
    """Makes child runs of one run, judged by one of its criteria. `done()` is called after each case."""

    run: Run
    record: EvaluatorRecord
    runs: Runs
    clock: Clock
    driver: Driver
    commit: Callable[[], None]
    judging: Callable[[Sequence[object]], Judging]
    done: Callable[[], None] = field(default=lambda: None)

    def execute(
        self,
        kind: str,
        selected: Sequence[RecordedCase],
        steps: Callable[[RecordedCase], Steps],
        *,
        differs: Callable[[RecordedCase, Execution], bool] = lambda recorded, execution: False,
        system: System | None = None,
    ) -> tuple[str | None, dict[str, ChildCase]]:
        """Execute the selected cases; gives the child's id (None when there are none) and what each case came to.
        `differs` is asked of each execution; `system` is the child's, where it is not that of the run."""
        if not selected:
            return None, {}
        run_id, started = self.clock.run_id(), self.clock.seconds()
        judging = self.judging([evaluator_from(self.record.definition)])
        total = MetricSum(self.record.criterion)
        found: dict[str, ChildCase] = {}
        rows: list[tuple[CaseRow, Case]] = []
        stage_seconds = 0.0
        work = (
            ((position, recorded), _judged(recorded.case, steps(recorded), judging))
            for position, recorded in enumerate(selected)
        )
        for (position, recorded), (execution, (judgment,)) in self.driver.run(work):
            case = recorded.case
            total.add(judgment, True)
            found[case.id] = ChildCase(judgment, execution.error, differs(recorded, execution))
            stage_seconds += sum(execution.seconds.values())
            rows.append((_row(position, case, execution, judgment), case))
            self.done()
        self.runs.append(run_id, rows)
        self.runs.put(
            replace(
                self.run,
                id=run_id,
                kind=kind,
                parent=self.run.id,
                created=self.clock.stamp(),
                system=system or self.run.system,
                evaluators=(self.record,),
                slices=(),
                cases=len(selected),
                attempted=len(rows),
                errored=sum(each.error is not None for each in found.values()),
                cache=CacheCounts(Tally(), Tally(judging.hits, judging.misses), Tally(), Tally(), 0),
                metrics=(total.metric(),),
                slice_rows=(),
                seconds=self.clock.seconds() - started,
                stage_seconds=stage_seconds,
                finished=True,
                stale=None,
                judges=judging.costs,
                ingredients={},
            )
        )
        self.commit()
        return run_id, found


def outcome_of(judgment: Judgment) -> Outcome:
    """What a pass/fail judgment comes to; missing when it says neither."""
    if judgment.value is None:
        return "missing"
    return "passed" if judgment.passed else "failed"


def _judged(case: Case, steps: Steps, judging: Judging) -> StepsTo[Judged]:
    execution = yield from steps
    judgments = yield from judging.judge(case, execution)
    return execution, judgments


def _row(position: int, case: Case, execution: Execution, judgment: Judgment) -> CaseRow:
    return CaseRow(
        position=position,
        case_id=case.id,
        body=case_digest(case),
        pair=pair_digest(case),
        execution=execution.id if execution.error is None else None,
        judgments=(judgment,),
        tags=(),
        error=execution.error,
        seconds=execution.seconds,
        log=execution.log,
        attempts=execution.attempts,
        retrieval=execution.retrieval if execution.error else None,
        kept=execution.kept if execution.error else 0,
    )
