"""`oloproof identity`."""

from __future__ import annotations

import argparse
from typing import Any

from oloproof.cli.output import emit, emit_record
from oloproof.cli.stored import existing_store
from oloproof.execution.host import AppHost
from oloproof.hosting import hosted
from oloproof.jsonform import to_json
from oloproof.report.identity_text import changes_text, identity_text
from oloproof.settings.cases import iter_cases
from oloproof.settings.project import load_project
from oloproof.store.runs import pair_digest
from oloproof.suite import Suite, evaluator_records
from oloproof.validity.difference import STAGES, Identified, differences
from oloproof.validity.readings import changed_cases, changed_files
from oloproof.workplace import Store, foreseen, scan_suite


def command(given: argparse.Namespace) -> int:
    project = load_project(given.config)
    with hosted(project) as host:
        if given.diff is None:
            record, text = _shown(host, given.stage)
        else:
            with existing_store(given.config) as store:
                record, text = _compared(host, store, given.diff, given.stage)
    if given.json:
        emit_record(record)
    else:
        emit(text)
    return 0


def _shown(host: AppHost, stage: str | None) -> tuple[dict[str, Any], str]:
    system = host.system()
    if stage is None:
        host.evaluators()
    ingredients = host.ingredients
    groups = [stage] if stage else [*STAGES, *(name for name in ingredients if name not in STAGES)]
    record = {
        "system": to_json(system),
        "ingredients": {group: dict(ingredients.get(group, {})) for group in groups},
    }
    return record, identity_text(system, ingredients, groups)


def _compared(host: AppHost, store: Store, wanted: str, stage: str | None) -> tuple[dict[str, Any], str]:
    run = store.runs.find_run(wanted)
    system = host.system(store.outlines)
    evaluators = host.evaluators(store.outlines)
    suite = Suite.of(host.project, scan_suite(host.project), host.check(), evaluators)
    then = Identified(run.system, run.evaluators, run.ingredients)
    now = Identified(system, evaluator_records(evaluators), host.ingredients)
    cases = ((case.input_given, pair_digest(case)) for case in iter_cases(suite.facts))
    changes = [
        change
        for change in (
            *differences(then, now),
            *changed_files(run, store.runs, store.results, host.files(store.results)),
            *changed_cases(run, store.runs, cases),
        )
        if stage is None or stage in change.stages
    ]
    ahead = foreseen(suite, host, store)
    record = {"run": run.id, "changes": [to_json(change) for change in changes], "outlook": to_json(ahead)}
    return record, changes_text(run.id, changes, ahead)
