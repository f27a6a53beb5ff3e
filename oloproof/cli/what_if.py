"""`oloproof what-if`."""

from __future__ import annotations

import argparse

from oloproof.cli.interventions import named_reranker
from oloproof.cli.output import emit, emit_record
from oloproof.cli.progress import Progress
from oloproof.cli.stored import existing_store
from oloproof.diagnosis.what_if import WhatIf, affordable_criteria, settings_grid, try_settings
from oloproof.errors import ConfigurationError
from oloproof.execution.host import AppHost
from oloproof.hosting import hosted
from oloproof.jsonform import to_json
from oloproof.reexecution import replaying
from oloproof.report.dataset_text import dataset_lines
from oloproof.report.what_if_text import what_if_text
from oloproof.run_records import Run
from oloproof.settings.cases import case_file_digest
from oloproof.settings.project import load_project
from oloproof.workplace import Store, guarded

#: The fields of a setting that can be asked for.
AXES = ("top_k", "token_budget", "reranker")


def command(given: argparse.Namespace) -> int:
    axes = [axis for axis in AXES if getattr(given, axis)]
    if not axes:
        raise ConfigurationError("name what to change: --top-k, --token-budget or --reranker")
    project = load_project(given.config)
    progress = Progress(noun="replays")
    try:
        with existing_store(given.config) as store, hosted(project) as host:
            run = store.runs.find_run(given.id)
            criterion = _criterion(given.criterion, project.config.diagnosis.criterion, run)
            _check(run)
            progress.say(f"importing {project.config.system.rag.object}")
            found = _try(given, run, criterion, host, store, progress)
            known = store.unstable.of_run(run.id)
            costs = host.judge_costs
    finally:
        progress.clear()
    edited = dataset_lines(run, project.dataset_shown, case_file_digest(project.dataset))
    if given.json:
        marks = {"dataset_edited": bool(edited), "unstable": to_json(known), "judges": to_json(costs)}
        emit_record({**to_json(found), **marks})
    else:
        emit("\n".join([*edited, what_if_text(found, run, criterion, axes, known, costs)]))
    return 0


def _try(
    given: argparse.Namespace, run: Run, criterion: str, host: AppHost, store: Store, progress: Progress
) -> WhatIf:
    if given.token_budget and not host.description.counts_tokens:
        raise ConfigurationError(
            f"--token-budget: {host.checkout.target} has no method count_tokens(self, passage) -> int, and tokens are "
            "never estimated"
        )
    rerankers = [named_reranker(name, host, store) for name in given.reranker or ()]
    settings = settings_grid(run, given.top_k or (), given.token_budget or (), rerankers)
    total = len(settings) * run.attempted
    criteria = affordable_criteria(run, criterion)
    replays = replaying(run, host, store, lambda done: progress(done, total), criteria)
    with guarded(host, store):
        return try_settings(run, replays, settings)


def _check(run: Run) -> None:
    if run.parent is not None:
        raise ConfigurationError(f"{run.id} is the {run.kind} run of a diagnosis; replay {run.parent} itself")
    if not run.finished:
        raise ConfigurationError(
            f"{run.id} was interrupted, so not all of its cases are known; `oloproof run` goes on from there"
        )


def _criterion(wanted: str | None, configured: str | None, run: Run) -> str:
    """The criterion of the table: the one that is asked for, else the one that is configured, if the run has it, else
    the first pass/fail one that judges answers, best without a model, or the first of all."""
    if wanted is not None and run.evaluator_index(wanted) is None:
        names = ", ".join(e.criterion for e in run.evaluators)
        raise ConfigurationError(f"{run.id} has no criterion {wanted}; it has {names}")
    for name in (wanted, configured):
        if name is not None and run.evaluator_index(name) is not None:
            return name
    free = affordable_criteria(run)
    ranked = sorted(
        run.evaluators, key=lambda e: (e.kind != "pass_fail", e.reads != "answer", e.criterion not in free)
    )
    return ranked[0].criterion
