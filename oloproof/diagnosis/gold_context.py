"""The gold-context diagnosis: failed cases again with the gold passages, and again unchanged as the control."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from oloproof.diagnosis.child_runs import ChildCase, ChildRuns
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
from oloproof.diagnosis.records import DiagnosedCase, Diagnosis
from oloproof.errors import ConfigurationError
from oloproof.evaluation import Clock, Judging
from oloproof.evaluators.relevance import RelevanceUnit
from oloproof.execution.driver import Driver
from oloproof.execution.replay_steps import ReplaySteps
from oloproof.execution.steps import Steps
from oloproof.records import Candidate, Case
from oloproof.run_records import Run
from oloproof.store.results import Results
from oloproof.store.runs import Runs


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
    clock: Clock
    driver: Driver
    commit: Callable[[], None]
    judging: Callable[[Sequence[Any]], Judging]
    session: str
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
        self._children = ChildRuns(
            run=self.run,
            record=self._record,
            runs=self.runs,
            clock=self.clock,
            driver=self.driver,
            commit=self.commit,
            judging=self.judging,
            done=self._progressed,
        )
        self._unit: RelevanceUnit = "chunk" if self.run.relevance_unit == "chunk" else "document"

    def diagnose(self, only: Sequence[str] | None = None) -> Diagnosis:
        """Diagnose the failed cases of the criterion, all or `only` those named; gives the stored diagnosis."""
        failed = list(self._failed_cases(only))
        selected = [f for f in failed if self._left_out(f.case) is None]
        self._done, self._planned = 0, 2 * len(selected)
        gold_run, gold = self._children.execute("gold context", selected, self._with_gold)
        control_run, control = self._children.execute("control", selected, self._repeated("control"))
        cases = [self._diagnosed(f, gold.get(f.case.id), control.get(f.case.id)) for f in failed]
        cases.sort(key=lambda case: case.case_id)
        return Diagnosis(self.run.id, self.criterion, "gold-context", gold_run, control_run, tuple(cases))

    def repeat(self, case_ids: Sequence[str], kind: str = "control") -> dict[str, Outcome]:
        """Execute cases of the run again, unchanged, whatever they came to; gives the outcome of each."""
        recorded = list(recorded_cases(self.runs.rows(self.run.id, case_ids), self.runs, self.results))
        self._done, self._planned = 0, len(recorded)
        _, found = self._children.execute(kind, recorded, self._repeated(kind))
        return {case_id: each.outcome for case_id, each in found.items()}

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
        self, failed: RecordedCase, gold: ChildCase | None, control: ChildCase | None
    ) -> DiagnosedCase:
        case, execution = failed.case, failed.execution
        left_out = self._left_out(case)
        outcomes: tuple[Outcome, Outcome] | None = None
        if left_out is not None:
            verdict = left_out
        else:
            outcomes = (gold.outcome if gold else "missing", control.outcome if control else "missing")
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

    def _with_gold(self, failed: RecordedCase) -> Steps:
        gold = failed.case.gold_context or ()
        ids = self.results.put_texts(passage.text for passage in gold)
        passages = [
            (Candidate(p.doc_id, p.chunk_id, 1.0, name), p.text) for p, name in zip(gold, ids, strict=True)
        ]
        return self.steps.given_context(failed.case, passages)

    def _repeated(self, kind: str) -> Callable[[RecordedCase], Steps]:
        """Repeats are told apart from each other by what they are for, and from those of another diagnosis."""

        def steps(recorded: RecordedCase) -> Steps:
            salt = f"{self.session} {kind} {recorded.case.id}".encode("utf-8", "surrogatepass")
            return self.steps.repeat(recorded.case, recorded.execution, salt)

        return steps

    def _progressed(self) -> None:
        self._done += 1
        self.progress(self._done, self._planned)
