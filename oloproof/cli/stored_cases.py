"""Single cases as the store has them, with all that is known of each."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from oloproof.diagnosis.recorded import evaluator_from
from oloproof.diagnosis.records import Diagnosis
from oloproof.errors import ConfigurationError
from oloproof.judges.asking import concluded, said, settled
from oloproof.judges.verdicts import Verdict
from oloproof.records import Case, Execution, Judgment, State
from oloproof.report.case_text import CaseView, fate
from oloproof.report.diagnosed_case_text import Reexecution
from oloproof.run_records import CaseRow, Run, judgment_to_json
from oloproof.settings.cases import case_from_json
from oloproof.store.judge_calls import JudgeCalls
from oloproof.workplace import Store

if TYPE_CHECKING:
    from oloproof.evaluators import JudgeEvaluator


def case_view(store: Store, run: Run, case_id: str) -> CaseView:
    """A case of a run. Raises ConfigurationError when the run has none of that id."""
    row = next(store.runs.rows(run.id, [case_id]), None)
    if row is None:
        raise ConfigurationError(
            f"{run.id} has no case {case_id!r}; `oloproof inspect {run.id} --json` lists them"
        )
    case = case_from_json(store.runs.bodies([row.body])[row.body])
    if row.execution is not None:
        execution = store.results.executions([row.execution]).get(row.execution)
    else:
        execution = _before_error(store, run, row)
    if execution is not None:  # that of a replay whose context stayed as it was is the run's
        execution = replace(execution, top_k=run.system.top_k)
    passages = (*execution.candidates, *execution.context) if execution else ()
    if row.execution is not None and not row.log:  # a hit printed when it was made
        row = row._replace(log=store.results.printed(row.execution))
    texts = store.results.texts(c.text_id for c in passages)
    return CaseView(row, case, execution, texts, _judges_words(store, run, row, case, execution, texts))


def _judges_words(
    store: Store,
    run: Run,
    row: CaseRow,
    case: Case,
    execution: Execution | None,
    texts: Mapping[str | None, str | None],
) -> dict[str, list[list[Judgment | Verdict]]]:
    """What each judge said of the case, where that is kept and is what the run's judgment came from."""
    found: dict[str, list[list[Judgment | Verdict]]] = {}
    if execution is None or row.error is not None:
        return found
    context = [[c.doc_id, c.chunk_id, c.score, texts.get(c.text_id)] for c in execution.context]
    for record, judgment in zip(run.evaluators, row.judgments, strict=True):
        if not str(record.definition.get("type", "")).endswith("_judge"):
            continue
        judge = evaluator_from(record.definition)
        questions = judge.questions(case, execution, context)
        if isinstance(questions, Judgment):
            continue
        samples = list(said(judge, questions, JudgeCalls(store.database, time.time)))
        if _came_from(judge, samples, judgment):
            found[record.criterion] = samples
    return found


def _came_from(judge: JudgeEvaluator, samples: list[list[Judgment | Verdict]], judgment: Judgment) -> bool:
    """Whether answers lead to a judgment; those that were asked for anew since may not."""
    if not all(samples):
        return judgment.state is State.MISSING and any(samples)
    came = concluded(judge, [settled(each) for each in samples])
    return (came.state, came.value) == (judgment.state, judgment.value)


def reexecutions(store: Store, diagnosis: Diagnosis, case_id: str) -> Iterator[Reexecution]:
    """What a diagnosed case came to in the child runs that executed it: gold context, controls, replay."""
    replay = diagnosis.replay
    runs = [diagnosis.gold_run, *diagnosis.control_runs]
    if replay is not None:
        runs += [replay.run, *replay.control_runs]
    for run_id in runs:
        if run_id is not None:
            child = store.runs.get(run_id)
            if next(store.runs.rows(run_id, [case_id]), None) is not None:
                yield Reexecution(child, case_view(store, child, case_id))


def row_record(row: CaseRow) -> dict[str, Any]:
    """A case of a run as JSON: what it came to."""
    return {
        "case_id": row.case_id,
        "judgments": [judgment_to_json(judgment) for judgment in row.judgments],
        "slices": list(row.tags),
        "error": None if row.error is None else row.error._asdict(),
        "seconds": dict(row.seconds),
        "log": row.log,
        "attempts": [attempt._asdict() for attempt in row.attempts],
    }


def view_record(view: CaseView) -> dict[str, Any]:
    """A case as JSON: its contents, its candidates and its answer."""
    record: dict[str, Any] = {"case": view.case.to_json()}
    execution = view.execution
    if execution is not None:
        record["candidates"] = [
            {
                "position": position,
                "doc_id": c.doc_id,
                "chunk_id": c.chunk_id,
                "score": c.score,
                "context": fate(position, execution),
                "text": view.texts.get(c.text_id),
            }
            for position, c in enumerate(execution.candidates, 1)
        ]
        record["output"] = execution.output
    if view.said:
        record["judges"] = {
            name: [[_said_record(each) for each in samples] for samples in said]
            for name, said in view.said.items()
        }
    return record


def _said_record(said: Judgment | Verdict) -> dict[str, Any]:
    if isinstance(said, Judgment):
        return {"reason": said.reason, "detail": said.detail}
    quotes = [{"passage": number, "text": words} for number, words in said.quotes]
    return {"verdict": said.verdict, "rationale": said.rationale, "quotes": quotes}


def _before_error(store: Store, run: Run, row: CaseRow) -> Execution | None:
    """What is recorded of a case in which a stage after `retrieve` failed."""
    found = None if row.retrieval is None else store.results.retrieval(row.retrieval)
    if found is None:
        return None
    return Execution(b"", found.candidates, run.system.top_k, row.kept, None, row.error)
