"""`oloproof gate`."""

from __future__ import annotations

import argparse
import json

from oloproof.decisions.deciding import decide_run
from oloproof.jsonform import to_json
from oloproof.report.decisions_text import decision_lines, gate_line
from oloproof.workplace import RELEASE_POLICY, load_policies, opened_store


def command(given: argparse.Namespace) -> int:
    policies = load_policies(given.policy, given.config.parent, RELEASE_POLICY)
    with opened_store(given.config.absolute().parent) as store:
        run = store.runs.find_run(given.id)
        gate = decide_run(run, policies, lambda: store.runs.rows(run.id))
    if given.json:
        print(json.dumps({"run": run.id, "gate": to_json(gate)}, indent=2, ensure_ascii=False))
    else:
        print("\n".join([f"Run {run.id}", *decision_lines(gate.decisions), gate_line(gate)]))
    return gate.exit_code
