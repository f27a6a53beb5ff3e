"""`oloproof plan`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from oloproof.cli.output import emit, emit_record
from oloproof.cli.stored import existing_store, project_checks
from oloproof.comparison import Comparison
from oloproof.decisions.deciding import check_policies, decide_comparison, decide_run
from oloproof.decisions.prospects import MOST_CASES, prospects_of
from oloproof.decisions.records import Gate
from oloproof.diagnosis.attribution import StageSwap
from oloproof.errors import ConfigurationError
from oloproof.jsonform import from_json, to_json
from oloproof.judge_checks import known_checks
from oloproof.paired_runs import PairedRuns
from oloproof.report.plan_text import prospects_text, settling_text
from oloproof.settings.policy import Policy
from oloproof.settings.project import load_project
from oloproof.suite import evaluator_records
from oloproof.workplace import COMPARE_POLICY, RELEASE_POLICY, Store, load_policies, scan_suite


def command(given: argparse.Namespace) -> int:
    policies = _policies(given)
    text, record = _ahead(given, policies) if given.id is None else _decided(given, policies)
    if given.json:
        emit_record(record)
    else:
        emit(text)
    return 0


def _policies(given: argparse.Namespace) -> list[Policy]:
    folder = given.config.parent
    found = load_policies(given.policy, folder, RELEASE_POLICY, COMPARE_POLICY)
    if not found:
        raise ConfigurationError(
            f"{folder / RELEASE_POLICY}: neither this nor {COMPARE_POLICY} is there; name a policy with --policy FILE"
        )
    return found


def _ahead(given: argparse.Namespace, policies: Sequence[Policy]) -> tuple[str, Any]:
    """What a number of cases can decide, before anything ran."""
    project = load_project(given.config)
    evaluators = evaluator_records(project.config.evaluators)
    check_policies(policies, evaluators, project.config.slices, ("run", "pair"))
    cases = given.cases or scan_suite(project).cases
    if cases > MOST_CASES:
        raise ConfigurationError(f"--cases: a plan looks at up to {MOST_CASES:,} cases, found {cases:,}")
    prospects = prospects_of(policies, evaluators, cases, project_checks(project, evaluators))
    return prospects_text(cases, prospects), {"cases": cases, "rules": [to_json(each) for each in prospects]}


def _decided(given: argparse.Namespace, policies: Sequence[Policy]) -> tuple[str, Any]:
    """What would settle the rules that a run or a comparison leaves open."""
    if given.cases:
        raise ConfigurationError("--cases plans before anything ran; leave it out, or leave out the id")
    with existing_store(given.config) as store:
        kind, identity = store.runs.resolve(given.id)
        if kind == "run":
            gate = _run_gate(given, store, identity, policies)
        elif kind == "comparison":
            gate = _comparison_gate(given, store, identity, policies)
        else:
            raise ConfigurationError(f"{given.id} is a {kind}; a plan is made of a run or a comparison")
    record = {"id": identity, "rules": [to_json(decision) for decision in gate.decisions]}
    return settling_text(identity, gate.decisions), record


def _run_gate(given: argparse.Namespace, store: Store, identity: str, policies: Sequence[Policy]) -> Gate:
    run = store.runs.get(identity)
    check_policies(policies, run.evaluators, run.slices, ("run",))
    checks = known_checks(given.config.absolute().parent, run.evaluators, store)
    return decide_run(run, policies, lambda: store.runs.rows(run.id), checks, foresee=True)


def _comparison_gate(
    given: argparse.Namespace, store: Store, identity: str, policies: Sequence[Policy]
) -> Gate:
    """The gate of a stored comparison, decided again on what its runs hold."""
    record = store.runs.document(identity)
    comparison = from_json(Comparison, json.dumps(record["comparison"]))
    swaps = [from_json(StageSwap, json.dumps(each)) for each in record.get("swaps", ())]
    candidate, baseline = store.runs.get(comparison.candidate), store.runs.get(comparison.baseline)
    check_policies(policies, candidate.evaluators, candidate.slices, ("run", "pair"))
    rows = store.runs.rows
    pairs = PairedRuns(candidate, baseline, rows(candidate.id), rows(baseline.id))
    unstable = {swap.criterion: swap.unstable for swap in swaps}
    checks = known_checks(given.config.absolute().parent, candidate.evaluators, store)
    return decide_comparison(
        pairs, comparison, policies, lambda: rows(candidate.id), unstable, checks, foresee=True
    )
