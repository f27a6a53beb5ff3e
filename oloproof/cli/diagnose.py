"""`oloproof diagnose`."""

from __future__ import annotations

import argparse
import time

from oloproof.cli.output import emit, emit_record
from oloproof.cli.progress import Progress
from oloproof.cli.stored import existing_store
from oloproof.diagnosis.records import Diagnosis
from oloproof.errors import ConfigurationError
from oloproof.execution.host import AppHost
from oloproof.jsonform import to_json
from oloproof.report.diagnosis_text import diagnosis_text
from oloproof.run_records import Run
from oloproof.settings.project import load_project
from oloproof.workplace import Store, diagnosing, diagnosis_session, hosted


def command(given: argparse.Namespace) -> int:
    project = load_project(given.config)
    progress = Progress(noun="re-executions")
    try:
        with existing_store(given.config) as store, hosted(project) as host:
            run = store.runs.find_run(given.id)
            _check_criterion(run, given.criterion)
            progress.say(f"importing {project.config.system.rag.object}")
            diagnosis = _diagnose(run, given.criterion, host, store, progress)
    finally:
        progress.clear()
    if given.json:
        emit_record({"id": diagnosis.id, **to_json(diagnosis)})
    else:
        emit(diagnosis_text(diagnosis))
    return 0


def _diagnose(run: Run, criterion: str, host: AppHost, store: Store, progress: Progress) -> Diagnosis:
    with diagnosis_session(store, [(run, criterion)], "gold-context") as session:
        diagnosis = diagnosing(run, criterion, host, store, session, progress).diagnose()
        store.runs.put_document(diagnosis.id, "diagnosis", time.time(), to_json(diagnosis))
    return diagnosis


def _check_criterion(run: Run, criterion: str) -> None:
    """Refuse what a gold context cannot tell anything of."""
    if run.parent is not None:
        raise ConfigurationError(
            f"{run.id} is the {run.kind} run of a diagnosis; diagnose {run.parent} itself"
        )
    index = run.evaluator_index(criterion)
    if index is not None and run.evaluators[index].reads == "retrieval":
        known = [e.criterion for e in run.evaluators if e.kind == "pass_fail" and e.reads == "answer"]
        raise ConfigurationError(
            f"{criterion} judges the retrieval, and a gold context takes the place of the retrieval; diagnose a "
            f"pass/fail criterion of the answer: {', '.join(known) or 'this run has none'}"
        )
