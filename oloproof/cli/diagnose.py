"""`oloproof diagnose`."""

from __future__ import annotations

import argparse
import time

from oloproof.cli.interventions import check_options, replayed_setting
from oloproof.cli.output import emit, emit_record
from oloproof.cli.progress import Progress
from oloproof.cli.stored import existing_store
from oloproof.diagnosis.controls import Control
from oloproof.diagnosis.records import GOLD_CONTEXT, Diagnosis
from oloproof.diagnosis.replay_diagnosis import diagnose_replay, stored_labels
from oloproof.diagnosis.replays import Setting
from oloproof.errors import ConfigurationError
from oloproof.execution.host import AppHost
from oloproof.hosting import hosted
from oloproof.jsonform import to_json
from oloproof.reexecution import diagnosing, diagnosis_session
from oloproof.report.dataset_text import dataset_lines
from oloproof.report.diagnosis_text import diagnosis_text
from oloproof.run_records import Run
from oloproof.settings.cases import case_file_digest
from oloproof.settings.project import load_project
from oloproof.workplace import Store, guarded


def command(given: argparse.Namespace) -> int:
    check_options(given)
    project = load_project(given.config)
    progress = Progress(noun="re-executions")
    try:
        with existing_store(given.config) as store, hosted(project) as host:
            run = store.runs.find_run(given.id)
            _check_criterion(run, given.criterion)
            progress.say(f"importing {project.config.system.rag.object}")
            control = Control(given.repeats, given.control == "full")
            with guarded(host, store):
                if given.intervention == GOLD_CONTEXT:
                    diagnosis = _diagnose(run, given.criterion, control, host, store, progress)
                else:
                    setting = replayed_setting(given, run, host, store)
                    diagnosis = _replay(run, given.criterion, setting, control, host, store, progress)
            known = store.unstable.of_run(run.id)
            costs = host.judge_costs
    finally:
        progress.clear()
    edited = dataset_lines(run, project.dataset_shown, case_file_digest(project.dataset))
    if given.json:
        marks = {"dataset_edited": bool(edited), "unstable": to_json(known), "judges": to_json(costs)}
        emit_record({"id": diagnosis.id, **to_json(diagnosis), **marks})
    else:
        emit("\n".join([*edited, diagnosis_text(diagnosis, known, costs)]))
    return 0


def _diagnose(
    run: Run, criterion: str, control: Control, host: AppHost, store: Store, progress: Progress
) -> Diagnosis:
    with diagnosis_session(store, [(run, criterion)], GOLD_CONTEXT, repr(control)) as session:
        found = diagnosing(run, criterion, host, store, session, progress, retrieval=control.full)
        diagnosis = found.diagnose(control=control)
        store.runs.put_document(diagnosis.id, "diagnosis", time.time(), to_json(diagnosis))
    return diagnosis


def _replay(
    run: Run,
    criterion: str,
    setting: Setting,
    control: Control,
    host: AppHost,
    store: Store,
    progress: Progress,
) -> Diagnosis:
    """The replay, with the labels of the gold context, which are found now unless a diagnosis has them already."""
    with diagnosis_session(store, [(run, criterion)], "replay", repr(setting), repr(control)) as session:
        found = diagnosing(run, criterion, host, store, session, progress, retrieval=True)
        labels = stored_labels(found)
        if labels is None:
            diagnosis = found.diagnose(control=control)
            store.runs.put_document(diagnosis.id, "diagnosis", time.time(), to_json(diagnosis))
            labels = diagnosis.id, diagnosis
        replay = diagnose_replay(found, setting, *labels, control.repeats)
        store.runs.put_document(replay.id, "diagnosis", time.time(), to_json(replay))
    return replay


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
