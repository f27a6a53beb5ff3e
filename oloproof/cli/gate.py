"""`oloproof gate`."""

from __future__ import annotations

import argparse

from oloproof.cli.output import emit, emit_record
from oloproof.cli.stored import existing_store
from oloproof.decisions.deciding import check_policies, decide_run
from oloproof.jsonform import to_json
from oloproof.judge_checks import known_checks
from oloproof.report.decisions_text import decision_lines, gate_line, no_policy_text
from oloproof.workplace import RELEASE_POLICY, load_policies


def command(given: argparse.Namespace) -> int:
    policies = load_policies(given.policy, given.config.parent, RELEASE_POLICY)
    with existing_store(given.config) as store:
        run = store.runs.find_run(given.id)
        check_policies(policies, run.evaluators, run.slices, ("run",))
        checks = known_checks(given.config.absolute().parent, run.evaluators, store)
        gate = decide_run(run, policies, lambda: store.runs.rows(run.id), checks)
    if given.json:
        emit_record({"run": run.id, "gate": to_json(gate)})
    else:
        emit(
            "\n".join(
                [f"Run {run.id}{no_policy_text(gate)}", *decision_lines(gate.decisions), gate_line(gate)]
            )
        )
    return gate.exit_code
