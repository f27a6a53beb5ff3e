"""The gold-context diagnosis: failed cases again with the gold passages, and again unchanged as the control."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from oloproof.diagnosis.labels import (
    JUDGES_RETRIEVAL,
    NO_GOLD_CONTEXT,
    Outcome,
    Verdict,
    best_relevant_position,
    facts_of,
    label_of,
)
from oloproof.diagnosis.recorded import RecordedCase, evaluator_from, recorded_cases
from oloproof.diagnosis.records import DiagnosedCase, Diagnosis
from oloproof.errors import ConfigurationError
from oloproof.evaluation import Clock, Judged, Judging
from oloproof.evaluators.relevance import RelevanceUnit
from oloproof.execution.driver import Driver
from oloproof.execution.replay_steps import ReplaySteps
from oloproof.execution.steps import Steps, StepsTo
from oloproof.measurement.metrics import MetricSum
from oloproof.records import Candidate, Case, Execution, Judgment
from oloproof.run_records import CacheCounts, CaseRow, Run, Tally
from oloproof.store.results import Results
from oloproof.store.runs import Runs, case_digest, pair_digest


@dataclass
class Diagnosing:
    """What a diagnosis works with: a stored run, the present system, the store, and a driver over its workers.
    `progress(done, total)` is called after each re-execution."""

    run: Run
    criterion: str
    steps: ReplaySteps
    runs: Runs
    results: Results
    clock: Clock
    driver: Driver
    commit: Callable[[], None]
    judging: Callable[[Sequence[Any]], Judging]
    progress: Callable[[int, int], None] = lambda done, total: None

    def __post_init__(self) -> None:
        index = self.run.evaluator_index(self.criterion)
        if index is None or self.run.evaluators[index].kind != "pass_fail":
            known = ", ".join(e.criterion for e in self.run.evaluators if e.kind == "pass_fail")
            raise ConfigurationError(
                f"{self.criterion} is not a pass/fail criterion of {self.run.id}; there are: {known}"
            )
        self._index = index
        self._done = self._planned = 0
        self._record = self.run.evaluators[index]
        self._evaluator = evaluator_from(self._record.definition)
        self._unit: RelevanceUnit = "chunk" if self.run.relevance_unit == "chunk" else "document"

    def diagnose(self, only: Sequence[str] | None = None) -> Diagnosis:
        """Diagnose the failed cases of the criterion, all or `only` those named; gives the stored diagnosis."""
        failed = list(self._failed_cases(only))
        selected = [f for f in failed if self._left_out(f.case) is None]
        self._done, self._planned = 0, 2 * len(selected)
        gold_run, gold = self._child("gold context", selected, self._with_gold)
        control_run, control = self._child("control", selected, self._unchanged)
        cases = [self._diagnosed(f, gold.get(f.case.id), control.get(f.case.id)) for f in failed]
        cases.sort(key=lambda case: case.case_id)
        return Diagnosis(self.run.id, self.criterion, "gold-context", gold_run, control_run, tuple(cases))

    def repeat(self, case_ids: Sequence[str]) -> dict[str, Outcome]:
        """Execute cases of the run again, unchanged, whatever they came to; gives the outcome of each."""
        recorded = list(recorded_cases(self.runs.rows(self.run.id, case_ids), self.runs, self.results))
        self._done, self._planned = 0, len(recorded)
        _, judgments = self._child("control", recorded, self._unchanged)
        return {case_id: _outcome(judgment) for case_id, judgment in judgments.items()}

    # ------------------------------------------------------------------------------- selection

    def _failed_cases(self, only: Sequence[str] | None) -> Iterator[RecordedCase]:
        wanted = None if only is None else set(only)
        rows = (
            row
            for row in self.runs.rows(self.run.id)
            if row.judgments[self._index].failed and (wanted is None or row.case_id in wanted)
        )
        return recorded_cases(rows, self.runs, self.results)

    def _diagnosed(
        self, failed: RecordedCase, gold: Judgment | None, control: Judgment | None
    ) -> DiagnosedCase:
        case, execution = failed.case, failed.execution
        left_out = self._left_out(case)
        outcomes: tuple[Outcome, Outcome] | None = None
        if left_out is not None:
            verdict = left_out
        else:
            outcomes = (_outcome(gold), _outcome(control))
            texts = self.results.texts(c.text_id for c in execution.context)
            verdict = label_of(facts_of(case, execution, texts.values(), self._unit, *outcomes))
        return DiagnosedCase(
            case_id=case.id,
            label=verdict.label,
            reason=verdict.reason,
            strength=verdict.strength,
            best_position=best_relevant_position(case, execution.candidates, self._unit),
            top_k=execution.top_k,
            kept=execution.kept,
            gold=outcomes[0] if outcomes else None,
            control=outcomes[1] if outcomes else None,
        )

    def _left_out(self, case: Case) -> Verdict | None:
        """Why a gold context cannot tell anything of a case, None when it can."""
        if self._record.reads == "retrieval":
            return JUDGES_RETRIEVAL
        return None if case.gold_context else NO_GOLD_CONTEXT

    # -------------------------------------------------------------------------------- child runs

    def _with_gold(self, failed: RecordedCase, _: bytes) -> Steps:
        gold = failed.case.gold_context or ()
        ids = self.results.put_texts(passage.text for passage in gold)
        passages = [
            (Candidate(p.doc_id, p.chunk_id, 1.0, name), p.text) for p, name in zip(gold, ids, strict=True)
        ]
        return self.steps.given_context(failed.case, passages)

    def _unchanged(self, failed: RecordedCase, salt: bytes) -> Steps:
        return self.steps.repeat(failed.case, failed.execution, salt)

    def _judged(self, case: Case, steps: Steps, judging: Judging) -> StepsTo[Judged]:
        execution = yield from steps
        judgments = yield from judging.judge(case, execution)
        return execution, judgments

    def _child(
        self, kind: str, selected: Sequence[RecordedCase], steps: Callable[[RecordedCase, bytes], Steps]
    ) -> tuple[str | None, dict[str, Judgment]]:
        """Execute the selected cases in one way, judge them, and store that as a run of its own."""
        if not selected:
            return None, {}
        run_id = self.clock.run_id()
        started = self.clock.seconds()
        judging = self.judging([self._evaluator])
        total = MetricSum(self.criterion)
        outcomes: dict[str, Judgment] = {}
        rows: list[tuple[CaseRow, Case]] = []
        errored = 0
        stage_seconds = 0.0
        work = (
            ((position, recorded), self._judged(recorded.case, steps(recorded, run_id.encode()), judging))
            for position, recorded in enumerate(selected)
        )
        for (position, failed), (execution, (judgment,)) in self.driver.run(work):
            total.add(judgment, True)
            outcomes[failed.case.id] = judgment
            errored += execution.error is not None
            stage_seconds += sum(execution.seconds.values())
            rows.append((_row(position, failed.case, execution, judgment), failed.case))
            self._done += 1
            self.progress(self._done, self._planned)
        cache = CacheCounts(Tally(), Tally(judging.hits, judging.misses), Tally(), Tally(), 0)
        self.runs.append(run_id, rows)
        self.runs.put(
            replace(
                self.run,
                id=run_id,
                kind=kind,
                parent=self.run.id,
                created=self.clock.stamp(),
                evaluators=(self._record,),
                slices=(),
                cases=len(selected),
                attempted=len(rows),
                errored=errored,
                cache=cache,
                metrics=(total.metric(),),
                slice_rows=(),
                seconds=self.clock.seconds() - started,
                stage_seconds=stage_seconds,
                finished=True,
            )
        )
        self.commit()
        return run_id, outcomes


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


def _outcome(judgment: Judgment | None) -> Outcome:
    if judgment is None or judgment.value is None:
        return "missing"
    return "passed" if judgment.passed else "failed"
