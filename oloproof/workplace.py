"""The composition root: clock, store and workers are made here and passed on. The command line and the bot use it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from oloproof.evaluation import Clock, Evaluation, Suite
from oloproof.execution.host import AppHost
from oloproof.identity.system import System
from oloproof.ids import ulid
from oloproof.installation import check_installation
from oloproof.run_records import Run
from oloproof.settings.cases import CaseFileFacts, scan_cases
from oloproof.settings.policy import Policy, load_policy
from oloproof.settings.project import Project
from oloproof.store.database import FILE, FOLDER, Database
from oloproof.store.results import Results
from oloproof.store.runs import Runs

RELEASE_POLICY = "release.yaml"
COMPARE_POLICY = "compare.yaml"


@dataclass(frozen=True)
class Store:
    """An open store with its two halves."""

    database: Database
    results: Results
    runs: Runs

    @classmethod
    def open(cls, folder: Path) -> Store:
        """The store of the project in `folder`, made when it is not there."""
        database = Database(folder / FOLDER / FILE)
        return cls(database, Results(database), Runs(database))


@contextmanager
def opened_store(folder: Path) -> Iterator[Store]:
    store = Store.open(folder)
    try:
        yield store
    finally:
        store.database.close()


@contextmanager
def hosted(project: Project, environment: dict[str, str] | None = None) -> Iterator[AppHost]:
    """The project's app, being imported in the background; its workers end with the block."""
    check_installation()
    host = AppHost(project, dict(os.environ) if environment is None else environment)
    try:
        # The figures will need it, and loading it takes about as long as a worker does to start.
        import_module("numpy")
        yield host
    finally:
        host.close()


def system_clock() -> Clock:
    """Time and randomness of this machine."""
    return Clock(
        seconds=time.time,
        run_id=lambda: "run_" + ulid(int(time.time() * 1000), os.urandom(10)),
        stamp=lambda: datetime.now(UTC).isoformat(timespec="seconds"),
    )


def scan_suite(project: Project) -> CaseFileFacts:
    """Check the project's whole case file. Raises ConfigurationError with every problem."""
    config = project.config
    return scan_cases(project.dataset, config.evaluators, config.relevance_unit, shown=project.dataset_shown)


def evaluate(
    suite: Suite,
    system: System,
    host: AppHost,
    store: Store,
    progress: Callable[[int, int], None],
) -> Run:
    """Evaluate a system on a suite, into a store."""
    evaluation = Evaluation(
        suite=suite,
        system=system,
        runs=store.runs,
        results=store.results,
        clock=system_clock(),
        commit=store.database.commit,
        progress=progress,
    )
    return evaluation.run(host.driver)


def load_policies(given: Sequence[Path] | None, folder: Path, default: str) -> list[Policy]:
    """The policies named, or the default one beside the configuration when it is there."""
    if given:
        return [load_policy(path) for path in given]
    path = folder / default
    return [load_policy(path)] if path.exists() else []
