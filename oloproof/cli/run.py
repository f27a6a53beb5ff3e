"""`oloproof run`."""

from __future__ import annotations

import argparse
import json

from oloproof.cli.progress import Progress
from oloproof.decisions.deciding import check_policies, decide_run
from oloproof.evaluation import Suite
from oloproof.jsonform import to_json
from oloproof.report.run_text import run_text
from oloproof.settings.cases import scan_cases
from oloproof.settings.project import load_project
from oloproof.workplace import RELEASE_POLICY, evaluate, hosted, load_policies, opened_store


def command(given: argparse.Namespace) -> int:
    project = load_project(given.config)
    with hosted(project) as host:
        policies = load_policies(given.policy, given.config.parent, RELEASE_POLICY)
        facts = scan_cases(project.dataset, project.config.evaluators, shown=project.dataset_shown)
        system = host.system()
        suite = Suite.of(project, facts, system.name)
        check_policies(policies, suite.evaluator_records(), ("run",))
        progress = Progress()
        with opened_store(project.root) as store:
            run = evaluate(suite, system, host, store, progress)
            progress.clear()
            gate = decide_run(run, policies, lambda: store.runs.rows(run.id))
    if given.json:
        print(json.dumps({"run": to_json(run), "gate": to_json(gate)}, indent=2, ensure_ascii=False))
    else:
        print(run_text(run, gate))
    return gate.exit_code
