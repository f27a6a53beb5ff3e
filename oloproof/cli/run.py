"""`oloproof run`."""

from __future__ import annotations

import argparse

from oloproof.cli.output import emit, emit_record
from oloproof.cli.progress import Progress
from oloproof.hosting import hosted
from oloproof.settings.project import load_project


def command(given: argparse.Namespace) -> int:
    progress = Progress()
    try:
        project = load_project(given.config)
        with hosted(project) as host:
            # Importing the rest takes about as long as a worker does to start.
            from oloproof.cli.running import run

            record, text, code = run(given, project, host, progress)
    finally:
        progress.clear()
    if given.json:
        emit_record(record)
    else:
        emit(text)
    return code
