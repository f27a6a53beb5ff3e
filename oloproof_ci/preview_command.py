"""`oloproof-ci preview`: finds what to measure, and writes what came of it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from oloproof.cli.output import emit, emit_record
from oloproof.jsonform import to_json
from oloproof.settings.project import load_project
from oloproof.store.database import FOLDER
from oloproof_ci.comment import comment
from oloproof_ci.gate_policies import PolicyFiles
from oloproof_ci.git import Repository
from oloproof_ci.preview import Preview
from oloproof_ci.report_files import COMMENT, REPORT, discard, write
from oloproof_ci.suites import find_config
from oloproof_ci.watching import PrintedProgress


def command(given: argparse.Namespace) -> int:
    if given.out:
        discard(given.out)
    config = given.config or find_config(Path())
    out = given.out or _folder(config) / FOLDER / "preview"
    discard(out)
    project = load_project(config)
    repository = Repository(project.root)
    policies = PolicyFiles.of(given.policy, config.parent, given.policy_from)
    watch = PrintedProgress()
    try:
        report = Preview(repository, project, policies, watch).report(repository.base(given.base))
    finally:
        watch.clear()
    text, record = comment(report), to_json(report)
    write(out, COMMENT, text)
    write(out, REPORT, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    if given.json:
        emit_record(record)
    else:
        emit(text.removesuffix("\n"))
    if sys.stderr is not None:
        with suppress(OSError):  # whoever reads the messages may have left as well
            print(f"Wrote {_shown(out / COMMENT)} and {_shown(out / REPORT)}", file=sys.stderr)
    return report.gate.exit_code


def _folder(config: Path) -> Path:
    """The folder that a configuration stands in, or that was named in its place."""
    return config.absolute() if config.is_dir() else config.absolute().parent


def _shown(path: Path) -> str:
    """A path as a person would type it: relative when it lies below the current folder."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
