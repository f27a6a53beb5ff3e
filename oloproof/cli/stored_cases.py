"""Single cases as the store has them, with all that is known of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from oloproof.diagnosis.records import Diagnosis
from oloproof.errors import ConfigurationError
from oloproof.records import Execution
from oloproof.report.case_text import CaseView, fate
from oloproof.report.diagnosed_case_text import Reexecution
from oloproof.run_records import CaseRow, Run, judgment_to_json
from oloproof.settings.cases import case_from_json
from oloproof.workplace import Store


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
    return CaseView(row, case, execution, store.results.texts(c.text_id for c in passages))


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
    return record


def _before_error(store: Store, run: Run, row: CaseRow) -> Execution | None:
    """What is recorded of a case in which a stage after `retrieve` failed."""
    found = None if row.retrieval is None else store.results.retrieval(row.retrieval)
    if found is None:
        return None
    return Execution(b"", found.candidates, run.system.top_k, row.kept, None, row.error)
