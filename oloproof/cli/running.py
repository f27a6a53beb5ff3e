"""What `oloproof run` does once the app is being imported."""

from __future__ import annotations

import argparse
from typing import Any

from oloproof.cli.progress import Progress
from oloproof.decisions.deciding import check_policies, decide_run
from oloproof.execution.host import AppHost
from oloproof.jsonform import to_json
from oloproof.judge_checks import checks_of, labels_of, to_ask_about
from oloproof.report.run_text import run_text
from oloproof.settings.project import Project
from oloproof.suite import Suite, evaluator_records
from oloproof.workplace import RELEASE_POLICY, evaluate, load_policies, opened_store, scan_suite


def run(
    given: argparse.Namespace, project: Project, host: AppHost, progress: Progress
) -> tuple[Any, str, int]:
    """The run as a record and as text, and the exit code; see `oloproof run --help` for what is `given`."""
    policies = load_policies(given.policy, given.config.parent, RELEASE_POLICY)
    facts = scan_suite(project)
    records = evaluator_records(project.config.evaluators)
    labels = labels_of(project.root, records)
    progress.say(f"importing {project.config.system.rag.object}")
    name = host.check()
    host.check_evaluators()
    check_policies(policies, records, project.config.slices, ("run",))
    progress.say(f"0 of {facts.cases} cases")
    with opened_store(project.root) as store:
        suite = Suite.of(project, facts, name, host.evaluators(store.outlines))
        about = to_ask_about(project, policies, labels)
        run = evaluate(suite, host, store, progress, fresh_judgments=given.fresh_judgments, about=about)
        checks = checks_of(run.evaluators, labels, store)
        gate = decide_run(run, policies, lambda: store.runs.rows(run.id), checks)
        unstable = store.unstable.of_run(run.id)
        text = "" if given.json else run_text(run, gate, lambda: store.runs.rows(run.id), unstable)
    record = {"run": to_json(run), "gate": to_json(gate), "unstable": to_json(unstable)}
    return record, text, gate.exit_code
