"""`oloproof runs`."""

from __future__ import annotations

import argparse
import json

from oloproof.jsonform import to_json
from oloproof.report.run_text import runs_text
from oloproof.workplace import opened_store


def command(given: argparse.Namespace) -> int:
    with opened_store(given.config.absolute().parent) as store:
        runs = store.runs.newest(given.limit)
    if given.json:
        print(json.dumps([to_json(run) for run in runs], indent=2, ensure_ascii=False))
    else:
        print(runs_text(runs))
    return 0
