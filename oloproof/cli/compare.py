"""`oloproof compare`."""

from __future__ import annotations

import argparse
import json
import time

from oloproof.comparison import Comparison, compare_runs
from oloproof.decisions.deciding import decide_comparison
from oloproof.jsonform import to_json
from oloproof.report.comparison_text import comparison_text
from oloproof.workplace import COMPARE_POLICY, load_policies, opened_store


def command(given: argparse.Namespace) -> int:
    policies = load_policies(given.policy, given.config.parent, COMPARE_POLICY)
    with opened_store(given.config.absolute().parent) as store:
        candidate, baseline = store.runs.find_run(given.candidate), store.runs.find_run(given.baseline)

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
        print(json.dumps({"id": comparison.id, **record}, indent=2, ensure_ascii=False))
    else:
        print(comparison_text(comparison, gate))
    return gate.exit_code
