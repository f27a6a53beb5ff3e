"""`oloproof identity`."""

from __future__ import annotations

import argparse

from oloproof.cli.output import emit, emit_record
from oloproof.cli.stored import existing_store
from oloproof.identity.difference import differences
from oloproof.jsonform import to_json
from oloproof.report.identity_text import STAGES, changes_text, identity_text
from oloproof.settings.project import load_project
from oloproof.workplace import hosted


def command(given: argparse.Namespace) -> int:
    project = load_project(given.config)
    with hosted(project) as host:
        system = host.system()
        ingredients = host.ingredients
        if given.diff is None:
            stages = [given.stage] if given.stage else list(STAGES)
            record = {
                "system": to_json(system),
                "ingredients": {s: dict(ingredients.get(s, {})) for s in stages},
            }
            text = identity_text(system, ingredients, stages)
        else:
            with existing_store(given.config) as store:
                run = store.runs.find_run(given.diff)
            changes = [
                change
                for change in differences(run.system, system, run.ingredients, ingredients)
                if given.stage is None or given.stage in change.stages
            ]
            record = {"run": run.id, "changes": [to_json(change) for change in changes]}
            text = changes_text(run.id, changes)
    if given.json:
        emit_record(record)
    else:
        emit(text)
    return 0
