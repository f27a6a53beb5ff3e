"""`oloproof compare`."""

from __future__ import annotations

import argparse
import time

from oloproof.cli.output import emit, emit_record
from oloproof.cli.stored import existing_store
from oloproof.comparison import Comparison, compare_runs
from oloproof.decisions.deciding import check_policies, decide_comparison
from oloproof.errors import ConfigurationError
from oloproof.jsonform import to_json
from oloproof.report.comparison_text import comparison_text
from oloproof.workplace import COMPARE_POLICY, load_policies


def command(given: argparse.Namespace) -> int:
    policies = load_policies(given.policy, given.config.parent, COMPARE_POLICY)
    with existing_store(given.config) as store:
        candidate, baseline = store.runs.find_run(given.candidate), store.runs.find_run(given.baseline)
        if candidate.id == baseline.id:
            raise ConfigurationError(f"{candidate.id} cannot be its own baseline; name two runs")
        check_policies(policies, candidate.evaluators, ("run", "pair"))

        def compare(confidence: float) -> Comparison:
            rows = store.runs.rows
            return compare_runs(candidate, baseline, rows(candidate.id), rows(baseline.id), confidence)

        comparison = compare(policies[0].config.confidence_level if policies else 0.95)
        gate = decide_comparison(
            comparison, candidate, baseline, policies, compare, rows=lambda: store.runs.rows(candidate.id)
        )
        record = {"comparison": to_json(comparison), "gate": to_json(gate)}
        store.runs.put_document(comparison.id, "comparison", time.time(), record)
    if given.json:
        emit_record({"id": comparison.id, **record})
    else:
        emit(comparison_text(comparison, gate))
    return gate.exit_code
