"""`oloproof diagnose`."""

from __future__ import annotations

import argparse
import json

from oloproof.diagnosis.gold_context import Diagnosing
from oloproof.jsonform import to_json
from oloproof.report.diagnosis_text import diagnosis_text
from oloproof.settings.project import load_project
from oloproof.workplace import hosted, opened_store, system_clock


def command(given: argparse.Namespace) -> int:
    project = load_project(given.config)
    clock = system_clock()
    with hosted(project) as host, opened_store(project.root) as store:
        run = store.runs.find_run(given.id)
        diagnosing = Diagnosing(
            run=run,
            criterion=given.criterion,
            system=host.system(),
            runs=store.runs,
            results=store.results,
            clock=clock,
            driver=host.driver(store.database.commit),
            commit=store.database.commit,
        )
        diagnosis = diagnosing.diagnose()
        record = to_json(diagnosis)
        store.runs.put_document(diagnosis.id, "diagnosis", clock.seconds(), record)
    if given.json:
        print(json.dumps({"id": diagnosis.id, **record}, indent=2, ensure_ascii=False))
    else:
        print(diagnosis_text(diagnosis))
    return 0
