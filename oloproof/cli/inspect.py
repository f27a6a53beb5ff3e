"""`oloproof inspect`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from oloproof.cli.output import emit, emit_record
from oloproof.cli.stored import existing_store
from oloproof.cli.stored_cases import case_view, reexecutions, row_record, view_record
from oloproof.comparison import Comparison
from oloproof.decisions.deciding import check_policies, decide_run
from oloproof.decisions.records import Gate
from oloproof.diagnosis.attribution import StageSwap
from oloproof.diagnosis.records import Diagnosis
from oloproof.errors import ConfigurationError
from oloproof.jsonform import from_json, to_json
from oloproof.judge_checks import known_checks
from oloproof.report.case_text import case_lines, case_text
from oloproof.report.comparison_text import comparison_text
from oloproof.report.diagnosed_case_text import diagnosed_case_text
from oloproof.report.diagnosis_text import diagnosed_case_line, known_lines
from oloproof.report.run_text import run_text
from oloproof.report.terminal import plain
from oloproof.report.unstable_text import unstable_lines
from oloproof.run_records import CaseRow, Run
from oloproof.workplace import RELEASE_POLICY, Store, load_policies


def command(given: argparse.Namespace) -> int:
    if given.criterion and not given.failures:
        raise ConfigurationError("--criterion narrows --failures; give both")
    if given.case and given.failures:
        raise ConfigurationError("--case shows one case, --failures lists several; give one of them")
    with existing_store(given.config) as store:
        kind, identity = store.runs.resolve(given.id)
        if kind == "run":
            run = store.runs.get(identity)
            text, record = _case(given, store, run) if given.case else _run(given, store, run)
        elif given.failures:
            raise ConfigurationError(f"--failures lists the cases of a run; {given.id} is a {kind}")
        elif kind == "diagnosis":
            text, record = _diagnosis(given, store, identity)
        else:
            text, record = _comparison(given, store, identity)
    if given.json:
        emit_record(record)
    else:
        emit(text)
    return 0


def _run(given: argparse.Namespace, store: Store, run: Run) -> tuple[str, Any]:
    rows = store.runs.rows(run.id)
    if given.failures:
        rows = _failures(rows, run, given.criterion)
    chosen = list(rows)
    unstable = store.unstable.of_run(run.id)
    marks = unstable_lines(unstable, [e.criterion for e in run.evaluators])
    if given.failures:
        count = "1 failed or errored case" if len(chosen) == 1 else f"{len(chosen)} failed or errored cases"
        text = "\n".join([f"Run {run.id} · {count}", *(case_lines(run, chosen) if chosen else ()), *marks])
    elif run.parent is None:
        gate, problem = _decided(given, store, run)
        text = "\n".join([run_text(run, gate, lambda: chosen, unstable), *map(plain, problem.splitlines())])
    else:
        text = "\n".join([f"Run {run.id} · {run.kind} of {run.parent}", *case_lines(run, chosen), *marks])
    cases = [row_record(row) for row in chosen]
    return text, {"run": to_json(run), "cases": cases, "unstable": to_json(unstable)}


def _decided(given: argparse.Namespace, store: Store, run: Run) -> tuple[Gate | None, str]:
    """The run's gate under the present policy, or why that does not fit a run that may be old."""
    try:
        policies = load_policies(None, given.config.parent, RELEASE_POLICY)
        check_policies(policies, run.evaluators, run.slices, ("run",))
        checks = known_checks(given.config.absolute().parent, run.evaluators, store)
    except ConfigurationError as error:
        return None, f"Gate: not decided; {error}"
    return decide_run(run, policies, lambda: store.runs.rows(run.id), checks), ""


def _failures(rows: Iterable[CaseRow], run: Run, criterion: str | None) -> Iterator[CaseRow]:
    index = None
    if criterion is not None:
        index = run.evaluator_index(criterion)
        if index is None:
            names = ", ".join(e.criterion for e in run.evaluators)
            raise ConfigurationError(f"{run.id} has no criterion {criterion}; it has {names}")
    gates = [i for i, e in enumerate(run.evaluators) if e.kind == "pass_fail"] if index is None else [index]
    for row in rows:
        if row.error is not None or any(row.judgments[i].failed for i in gates):
            yield row


def _case(given: argparse.Namespace, store: Store, run: Run) -> tuple[str, Any]:
    view = case_view(store, run, given.case)
    unstable = [each for each in store.unstable.of_run(run.id) if each.case_id == view.case.id]
    record = {**row_record(view.row), **view_record(view), "unstable": to_json(unstable)}
    marks = unstable_lines(unstable, [e.criterion for e in run.evaluators])
    return "\n".join([case_text(run, view), *marks]), record


def _diagnosis(given: argparse.Namespace, store: Store, identity: str) -> tuple[str, Any]:
    record = store.runs.document(identity)
    diagnosis = from_json(Diagnosis, json.dumps(record))
    unstable = store.unstable.of_run(diagnosis.run)
    if not given.case:
        lines = [diagnosed_case_line(case, diagnosis) for case in diagnosis.cases]
        lines += known_lines(diagnosis, unstable)
        return "\n".join(lines), {"id": identity, **record, "unstable": to_json(unstable)}
    case = diagnosis.case(given.case)
    if case is None:
        raise ConfigurationError(
            f"the diagnosis has no case {given.case!r}; `oloproof inspect {identity[:19]}` lists its cases"
        )
    run = store.runs.get(diagnosis.run)
    view, again = case_view(store, run, given.case), list(reexecutions(store, diagnosis, given.case))
    known = known_lines(replace(diagnosis, cases=(case,)), unstable)
    text = "\n".join([diagnosed_case_text(identity, diagnosis, case, run, view, again), *known])
    executions = [
        {"run": each.run.id, "kind": each.kind, **row_record(each.view.row), **view_record(each.view)}
        for each in again
    ]
    recorded = {**row_record(view.row), **view_record(view)}
    return text, {"id": identity, "diagnosed": to_json(case), "recorded": recorded, "executions": executions}


def _comparison(given: argparse.Namespace, store: Store, identity: str) -> tuple[str, Any]:
    if given.case:
        raise ConfigurationError("--case shows a case of a run or a diagnosis; name one of the compared runs")
    record = store.runs.document(identity)
    comparison = from_json(Comparison, json.dumps(record["comparison"]))
    gate = from_json(Gate, json.dumps(record["gate"]))
    unstable = store.unstable.of_run(comparison.candidate)
    swaps = None
    if "swaps" in record:
        swaps = [from_json(StageSwap, json.dumps(swap)) for swap in record["swaps"]]
    text = comparison_text(identity, comparison, gate, unstable=unstable, swaps=swaps)
    return text, {"id": identity, **record, "unstable": to_json(unstable)}
