"""`oloproof runs`."""

from __future__ import annotations

import argparse

from oloproof.cli.output import emit, emit_record
from oloproof.cli.stored import existing_store, has_store
from oloproof.jsonform import to_json
from oloproof.report.run_text import runs_text
from oloproof.run_records import Run


def command(given: argparse.Namespace) -> int:
    runs: list[Run] = []
    if has_store(given.config) or not given.config.exists():
        with existing_store(given.config) as store:
            runs = store.runs.newest(given.limit)
    if given.json:
        emit_record([to_json(run) for run in runs])
    else:
        emit(runs_text(runs))
    return 0
