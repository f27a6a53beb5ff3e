"""The gold-context diagnosis: failed cases again with the gold passages, and again unchanged as the control."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from oloproof.diagnosis.child_runs import ChildCase, ChildRuns
from oloproof.diagnosis.controls import Control, Controlled, execute_controls
from oloproof.diagnosis.labels import (
    JUDGES_RETRIEVAL,
    NO_GOLD_CONTEXT,
    Outcome,
    Verdict,
    best_relevant_position,
    facts_of,
    label_of,
)
from oloproof.diagnosis.recorded import RecordedCase, recorded_cases
from oloproof.diagnosis.records import GOLD_CONTEXT, DiagnosedCase, Diagnosis
from oloproof.errors import ConfigurationError
from oloproof.evaluation import Clock
from oloproof.evaluators.relevance import RelevanceUnit
from oloproof.execution.driver import Driver
from oloproof.execution.replay_steps import ReplaySteps
from oloproof.execution.steps import Steps
from oloproof.judging import Judging
from oloproof.records import Candidate, Case
from oloproof.run_records import CaseRow, EvaluatorRecord, Run
from oloproof.store.results import Results
from oloproof.store.runs import Runs
from oloproof.store.unstable import UnstableCases


@dataclass
class Diagnosing:
    """What a diagnosis works with: a stored run, the present system, the store, and a driver over its workers.

    Repeats are stored under the name of their `session`: one that was broken off is gone on with under its name, and
    another never finds them. `progress(done, total)` is called after each re-execution."""

    run: Run
    criterion: str
    steps: ReplaySteps
    runs: Runs
    results: Results
    unstable: UnstableCases
    clock: Clock
    driver: Driver
    commit: Callable[[], None]
    judging: Callable[[Sequence[Any]], Judging]
    session: str
    progress: Callable[[int, int], None] = lambda done, total: None
    record: EvaluatorRecord = field(init=False)
    children: ChildRuns = field(init=False)

    def __post_init__(self) -> None:
        index = self.run.evaluator_index(self.criterion)
        if index is None or self.run.evaluators[index].kind != "pass_fail":
            known = ", ".join(e.criterion for e in self.run.evaluators if e.kind == "pass_fail")
            raise ConfigurationError(
                f"{self.criterion} is not a pass/fail criterion of {self.run.id}; there are: {known}"
            )
        self._index = index
        self._done = self._planned = 0
        self.record = self.run.evaluators[index]
        self.unit: RelevanceUnit = "chunk" if self.run.relevance_unit == "chunk" else "document"
        self.children = ChildRuns(
            run=self.run,
            record=self.record,
            runs=self.runs,
            clock=self.clock,
            driver=self.driver,
            commit=self.commit,
            judging=self.judging,
            done=self._step,
        )

    def diagnose(self, only: Sequence[str] | None = None, control: Control | None = None) -> Diagnosis:
        """Diagnose the failed cases of the criterion, all or `only` those named."""
        control = control or Control()
        rows = self._failed_rows(only)
        failed = list(recorded_cases(rows, self.runs, self.results))
        selected = [each for each in failed if self._left_out(each.case) is None]
        self.plan((1 + control.repeats) * len(selected))
        # The control comes first, so that an app that passes every second call is seen to.
        control_runs, controlled = self.control(control, "control", selected)
        gold_run, gold = self.children.execute("gold context", selected, self._with_gold)
        return Diagnosis(
            run=self.run.id,
            criterion=self.criterion,
            intervention=GOLD_CONTEXT,
            gold_run=gold_run,
            control_runs=control_runs,
            cases=tuple(
                self._diagnosed(each, gold.get(each.case.id), controlled.get(each.case.id)) for each in failed
            ),
            full_control=control.full,
            unrecorded=sum(row.execution is not None for row in rows) - len(failed),
        )

    def repeat(self, case_ids: Sequence[str], kind: str = "control") -> dict[str, Outcome]:
        """Execute cases of the run again, unchanged, whatever they came to; gives the outcome of each."""
        recorded = list(recorded_cases(self.runs.rows(self.run.id, case_ids), self.runs, self.results))
        self.plan(len(recorded))
        _, controlled = self.control(Control(), kind, recorded)
        return {case_id: each.outcome for case_id, each in controlled.items()}

    def control(
        self, control: Control, kind: str, selected: Sequence[RecordedCase]
    ) -> tuple[tuple[str, ...], dict[str, Controlled]]:
        """The control of these cases: its child runs, and what each case came to. The store remembers those that did
        not come out as they did in the run."""
        before = self.steps.calls["generate"]
        runs, controlled = execute_controls(control, kind, self.session, self.children, self.steps, selected)
        if self.steps.calls["generate"] > before:  # else it was broken off later on, and these are remembered
            self.unstable.note(
                self.criterion, (self._differed(each, controlled[each.case.id]) for each in selected)
            )
            self.commit()
        return runs, controlled

    def _differed(self, recorded: RecordedCase, control: Controlled) -> tuple[bytes, int, int]:
        passed = recorded.row.judgments[self._index].passed
        differed = control.observed - control.passes if passed else control.passes
        return recorded.row.pair, differed, control.observed

    def failed_cases(self, only: Sequence[str] | None = None) -> list[RecordedCase]:
        """The cases that fail the criterion in the run, all or `only` those named, by their ids."""
        return list(recorded_cases(self._failed_rows(only), self.runs, self.results))

    def _failed_rows(self, only: Sequence[str] | None) -> list[CaseRow]:
        wanted = None if only is None else set(only)
        rows = [
            row
            for row in self.runs.rows(self.run.id)
            if row.judgments[self._index].failed and (wanted is None or row.case_id in wanted)
        ]
        return sorted(rows, key=lambda row: row.case_id)

    def plan(self, executions: int) -> None:
        """How many re-executions there are going to be."""
        self._done, self._planned = 0, executions

    # -------------------------------------------------------------------------------------- cases

    def _step(self) -> None:
        self._done += 1
        self.progress(self._done, self._planned)

    def _diagnosed(
        self, failed: RecordedCase, gold: ChildCase | None, control: Controlled | None
    ) -> DiagnosedCase:
        case, execution = failed.case, failed.execution
        verdict = self._left_out(case)
        if gold is not None and control is not None:
            texts = self.results.texts(c.text_id for c in execution.context)
            facts = facts_of(case, execution, texts.values(), self.unit, gold.outcome, control.outcome)
            verdict = label_of(facts)
        assert verdict is not None
        return DiagnosedCase(
            case_id=case.id,
            label=verdict.label,
            reason=verdict.reason,
            strength=verdict.strength,
            best_position=best_relevant_position(case, execution.candidates, self.unit),
            top_k=execution.top_k,
            kept=execution.kept,
            gold=gold.outcome if gold else None,
            control=control.outcome if control else None,
            control_passes=control.passes if control else 0,
            retrievals_differed=control.differed if control else 0,
        )

    def _left_out(self, case: Case) -> Verdict | None:
        """Why a gold context cannot tell anything of a case, None when it can."""
        if self.record.reads == "retrieval":
            return JUDGES_RETRIEVAL
        return None if case.gold_context else NO_GOLD_CONTEXT

    def _with_gold(self, failed: RecordedCase) -> Steps:
        gold = failed.case.gold_context or ()
        ids = self.results.put_texts(passage.text for passage in gold)
        passages = [
            (Candidate(p.doc_id, p.chunk_id, 1.0, name), p.text) for p, name in zip(gold, ids, strict=True)
        ]
        return self.steps.given_context(failed.case, passages)
