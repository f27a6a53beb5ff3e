"""The composition root: clock and store are made here and passed on, as workers are in `hosting`. The command line and
the bot use both."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from oloproof.evaluation import Clock, Evaluation
from oloproof.execution.host import AppHost
from oloproof.execution.replay_steps import ReplaySteps
from oloproof.hosting import prices
from oloproof.identity.system import System
from oloproof.ids import ulid
from oloproof.judges.asking import Asking
from oloproof.judges.costs import Ledger
from oloproof.judging import Judging
from oloproof.labels.checking import LabelledAnswers, ask_about
from oloproof.labels.correcting import corrected_rates
from oloproof.run_records import Run
from oloproof.settings.cases import CaseFileFacts, iter_cases, scan_cases
from oloproof.settings.policy import Policy, load_policy
from oloproof.settings.project import Project
from oloproof.store.database import FILE, FOLDER, Database
from oloproof.store.judge_calls import JudgeCalls
from oloproof.store.results import Outlines, Results
from oloproof.store.runs import Runs
from oloproof.store.unfinished import Unfinished
from oloproof.store.unstable import UnstableCases
from oloproof.suite import Suite
from oloproof.validity.outlook import Outlook, outlook

RELEASE_POLICY = "release.yaml"
COMPARE_POLICY = "compare.yaml"


@dataclass(frozen=True)
class Store:
    """An open store with its parts."""

    database: Database
    results: Results
    runs: Runs
    outlines: Outlines
    unfinished: Unfinished
    unstable: UnstableCases

    @classmethod
    def open(cls, folder: Path) -> Store:
        """The store of the project in `folder`, made when it is not there."""
        database = Database(folder / FOLDER / FILE)
        unfinished = Unfinished(folder / FOLDER)
        return cls(
            database,
            Results(database),
            Runs(database),
            Outlines(database),
            unfinished,
            UnstableCases(database),
        )


@contextmanager
def opened_store(folder: Path) -> Iterator[Store]:
    store = Store.open(folder)
    try:
        yield store
    finally:
        store.database.close()


def system_clock() -> Clock:
    """Time and randomness of this machine."""
    return Clock(
        seconds=time.time,
        run_id=lambda: "run_" + new_ulid(),
        stamp=lambda: datetime.now(UTC).isoformat(timespec="seconds"),
    )


def new_ulid() -> str:
    """A fresh ULID."""
    return ulid(int(time.time() * 1000), os.urandom(10))


def scan_suite(project: Project) -> CaseFileFacts:
    """Check the project's whole case file. Raises ConfigurationError with every problem."""
    config = project.config
    return scan_cases(project.dataset, config.evaluators, config.relevance_unit, shown=project.dataset_shown)


def case_steps(host: AppHost, system: System, store: Store, *, only_look: bool = False) -> ReplaySteps:
    """The steps of a host's cases, under the settings of `system`. With `only_look` they are not meant to be followed
    past their first call, and leave nothing in the store."""
    config = host.project.config
    return ReplaySteps(
        system,
        store.results,
        host.files(store.results),
        time.time,
        retries=config.execution.retries,
        stale_is_error=config.identity.on_stale_index == "error" and not only_look,
        keep=not only_look,
    )


def evaluate(
    suite: Suite,
    host: AppHost,
    store: Store,
    progress: Callable[[int, int], None],
    judge: AppHost | None = None,
    fresh_judgments: bool = False,
    about: Sequence[LabelledAnswers] = (),
) -> Run:
    """Evaluate a host's system on a suite, into a store. `judge` runs the user's own evaluators, when that is not the
    same host. With `fresh_judgments` models are asked again what they have answered before. Judges are first asked
    `about` answers that people labelled."""
    steps = case_steps(host, host.system(store.outlines), store)
    judges = judging(suite.evaluators, host, store, judge, fresh_judgments)
    evaluation = Evaluation(
        suite=suite,
        steps=steps,
        judging=judges,
        ingredients=host.ingredients,
        runs=store.runs,
        clock=system_clock(),
        commit=store.database.commit,
        progress=progress,
    )
    with guarded(host, store):
        if judges.asking is not None:
            ask_about(about, judges.asking, host.driver(store.database.commit))
        run = evaluation.run(host.driver)
    corrected = tuple(corrected_rates(run, about, store.runs, store.results))
    if corrected:
        run = replace(run, corrected=corrected)
        store.runs.put(run)
        store.database.commit()
    return run


def foreseen(suite: Suite, host: AppHost, store: Store) -> Outlook:
    """What an evaluation of the host's system would do."""
    steps = case_steps(host, host.system(store.outlines), store, only_look=True)
    return outlook(iter_cases(suite.facts), steps, judging(suite.evaluators, host, store))


def judging(
    evaluators: Sequence[Any],
    host: AppHost,
    store: Store,
    judge: AppHost | None = None,
    fresh: bool = False,
) -> Judging:
    """What judges a host's executions; `judge` runs the user's own evaluators, when that is not the same host. With
    `fresh` models are asked anew."""
    files = (judge or host).files(store.results)
    asking = None
    if any(evaluator.asks_model for evaluator in evaluators):
        project = (judge or host).project
        whole = None if host.provider is None else host.provider.ledger
        ledger = Ledger(prices(project), whole)
        asking = Asking(JudgeCalls(store.database, time.time), ledger, fresh)
    return Judging(evaluators, store.results, files, None if judge is None else judge.ask, asking)


@contextmanager
def guarded(host: AppHost, store: Store, *others: AppHost) -> Iterator[None]:
    """While stages run: what a worker answers after the source of an app has changed is not stored."""

    def check() -> None:
        for each in (host, *others):
            each.check_unchanged()

    store.database.guard = check
    try:
        yield
    finally:
        store.database.guard = None


def load_policies(given: Sequence[Path] | None, folder: Path, *defaults: str) -> list[Policy]:
    """The policies named, or those of the default ones beside the configuration that are there."""
    paths = given or [path for path in (folder / name for name in defaults) if path.exists()]
    return [load_policy(path) for path in paths]
