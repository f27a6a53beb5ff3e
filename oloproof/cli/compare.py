"""`oloproof compare`."""

from __future__ import annotations

import argparse
import time

from oloproof.canonical import content_id
from oloproof.cli.output import emit, emit_record
from oloproof.cli.stored import existing_store
from oloproof.cli.swaps import stage_swaps
from oloproof.decisions.deciding import check_policies, comparing_confidence, decide_comparison
from oloproof.errors import ConfigurationError
from oloproof.jsonform import to_json
from oloproof.judge_checks import known_checks
from oloproof.paired_runs import PairedRuns
from oloproof.report.comparison_text import MAX_SLICE_LINES, comparison_text
from oloproof.workplace import COMPARE_POLICY, RELEASE_POLICY, load_policies


def command(given: argparse.Namespace) -> int:
    if not given.swap and (given.base_config or given.criterion):
        option = "--base-config" if given.base_config else "--criterion"
        raise ConfigurationError(f"{option} is for --swap; give that too")
    policies = load_policies(given.policy, given.config.parent, RELEASE_POLICY, COMPARE_POLICY)
    with existing_store(given.config) as store:
        candidate, baseline = store.runs.find_run(given.candidate), store.runs.find_run(given.baseline)
        if candidate.id == baseline.id:
            raise ConfigurationError(f"{candidate.id} cannot be its own baseline; name two runs")
        for run in (candidate, baseline):
            if run.parent is not None:
                raise ConfigurationError(
                    f"{run.id} is the {run.kind} run of a diagnosis of {run.parent}; compare runs of whole suites"
                )
        check_policies(policies, candidate.evaluators, candidate.slices, ("run", "pair"))

        rows = store.runs.rows
        pairs = PairedRuns(candidate, baseline, rows(candidate.id), rows(baseline.id))
        comparison = pairs.comparison(comparing_confidence(policies))
        swaps, costs = (
            stage_swaps(given, store, comparison, (candidate, baseline), policies)
            if given.swap
            else ((), None)
        )
        unstable_by = {swap.criterion: swap.unstable for swap in swaps}
        checks = known_checks(given.config.absolute().parent, candidate.evaluators, store)
        gate = decide_comparison(pairs, comparison, policies, lambda: rows(candidate.id), unstable_by, checks)
        record = {"comparison": to_json(comparison), "gate": to_json(gate)}
        if given.swap:
            record["swaps"] = [to_json(swap) for swap in swaps]
        identity = content_id(record)
        store.runs.put_document(identity, "comparison", time.time(), record)
        unstable = store.unstable.of_run(candidate.id)
    if given.json:
        asked = {"judges": to_json(costs)} if given.swap else {}
        emit_record({"id": identity, **record, "unstable": to_json(unstable), **asked})
    else:
        shown = {"all": None, "none": 0}.get(given.slices, MAX_SLICE_LINES)
        made = swaps if given.swap else None
        emit(comparison_text(identity, comparison, gate, shown, unstable, made, costs))
    return gate.exit_code
