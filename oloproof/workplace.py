"""The composition root: clock, store and workers are made here and passed on. The command line and the bot use it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from oloproof.canonical import canonical_json, digest
from oloproof.diagnosis.child_runs import ChildRuns
from oloproof.diagnosis.gold_context import Diagnosing
from oloproof.diagnosis.recorded import check_same_system
from oloproof.diagnosis.replays import Replaying
from oloproof.diagnosis.stage_swap import Side, StageSwapping
from oloproof.errors import ConfigurationError
from oloproof.evaluation import Clock, Evaluation, Judging, Suite
from oloproof.execution.host import AppHost
from oloproof.execution.replay_steps import ReplaySteps
from oloproof.identity.system import System
from oloproof.ids import ulid
from oloproof.installation import check_installation
from oloproof.judges.asking import Asking
from oloproof.judges.calling import Limits, Price, Provider
from oloproof.run_records import EvaluatorRecord, Run
from oloproof.settings.cases import CaseFileFacts, iter_cases, scan_cases
from oloproof.settings.policy import Policy, load_policy
from oloproof.settings.project import Project
from oloproof.store.database import FILE, FOLDER, Database
from oloproof.store.judge_calls import JudgeCalls
from oloproof.store.results import Outlines, Results
from oloproof.store.runs import Runs
from oloproof.store.unfinished import Unfinished
from oloproof.store.unstable import UnstableCases
from oloproof.validity.outlook import Outlook, outlook
from oloproof.worker.account import Account

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


@contextmanager
def hosted(
    project: Project,
    environment: Mapping[str, str] | None = None,
    named: Mapping[str, str] | None = None,
    *,
    interpreter: str = sys.executable,
    account: Account | None = None,
    provider: Provider | None = None,
) -> Iterator[AppHost]:
    """The project's app, being imported in the background; its workers end with the block. See `AppHost` for the
    environments, which default to this process's own, and for the account. `provider` is asked what judges want to
    know, when they share it with others."""
    check_installation()
    host = AppHost(
        project,
        os.environ if environment is None else environment,
        interpreter=interpreter,
        named=named,
        account=account,
        provider=provider or model_provider(project),
    )
    try:
        # The figures will need it, and loading it takes about as long as a worker does to start.
        import_module("numpy")
        yield host
    finally:
        host.close()


def model_provider(project: Project) -> Provider | None:
    """What a project's judges ask; None when it has none. Keys come from this process's environment alone."""
    if not any(evaluator.asks_model for evaluator in project.config.evaluators):
        return None
    settings = project.config.judges
    limits = Limits(settings.max_in_flight, settings.max_calls, settings.max_cost, prices(project))
    return Provider(os.environ, limits, _say)


def _say(text: str) -> None:
    """A line for whoever waits."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(f"judges: {text}", file=sys.stderr, flush=True)


def prices(project: Project) -> dict[str, Price]:
    """What models cost, by name."""
    return {name: Price(each.input, each.output) for name, each in project.config.judges.prices.items()}


def system_clock() -> Clock:
    """Time and randomness of this machine."""
    return Clock(
        seconds=time.time,
        run_id=lambda: "run_" + _ulid(),
        stamp=lambda: datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _ulid() -> str:
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
) -> Run:
    """Evaluate a host's system on a suite, into a store. `judge` runs the user's own evaluators, when that is not the
    same host. With `fresh_judgments` models are asked again what they have answered before."""
    steps = case_steps(host, host.system(store.outlines), store)
    evaluation = Evaluation(
        suite=suite,
        steps=steps,
        judging=judging(suite.evaluators, host, store, judge, fresh_judgments),
        ingredients=host.ingredients,
        runs=store.runs,
        clock=system_clock(),
        commit=store.database.commit,
        progress=progress,
    )
    with guarded(host, store):
        return evaluation.run(host.driver)


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
        calls = JudgeCalls(store.database, time.time)
        asking = Asking(calls, prices((judge or host).project), fresh)
    return Judging(evaluators, store.results, files, None if judge is None else judge.ask, asking)


def measured_system(run: Run, host: AppHost, store: Store, *, retrieval: bool) -> System:
    """The system that a run measured, as the host can execute it again. Raises ConfigurationError when the present
    code, or a file that it reads, is no longer what it was; the code of the retrieval counts with `retrieval`."""
    now = host.system(store.outlines)
    counted = () if run.system.token_budget is None else ("count_tokens",)
    check_same_system(run, now, ("retrieve", *counted, "generate") if retrieval else ("generate",))
    files = host.files(store.results)
    read = store.results.file_sets_of(run.id)
    sets = read["generate"] | (read["retrieve"] if retrieval else set())
    seen: set[bytes] = set()
    changed = sorted({name for each in sets for name in files.changed(each, seen)})
    if changed:
        raise ConfigurationError(
            f"{', '.join(changed[:5])}: changed since {run.id}, whose stages read it, so its cases cannot be "
            "re-executed as they were; make a run of the present state with `oloproof run` and take that, or name the "
            "file under identity.ignore_files when it is no input of the app"
        )
    return replace(now, top_k=run.system.top_k, token_budget=run.system.token_budget)


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


def check_evaluators(records: Sequence[EvaluatorRecord], run: Run, host: AppHost, store: Store) -> None:
    """Refuse to judge by a function of the user's whose code is no longer that which judged the run."""
    for record in records:
        name, code = record.definition.get("object"), record.definition.get("code")
        if name is not None and code is not None and host.code_of(name, store.outlines) != code:
            raise ConfigurationError(
                f"the code of {name}, which judges {record.criterion}, has changed since {run.id}; make a run with "
                "`oloproof run` and take that"
            )


@contextmanager
def diagnosis_session(store: Store, failures: Iterable[tuple[Run, str]], *request: str) -> Iterator[str]:
    """The name of a diagnosis while it is under way: that of an equal one that was broken off, else a new one.

    Equal are diagnoses of the same executions, those that failed `failures`, pairs of run and criterion, under the same
    `request`. It is finished when the block ends, which is after the diagnosis has been stored.
    """
    parts: list[str | bytes] = ["diagnosis", *request]
    for run, criterion in failures:
        index = run.evaluator_index(criterion)
        if index is not None:
            parts += [criterion, canonical_json(run.evaluators[index].definition)]
            parts += sorted(
                r.execution for r in store.runs.rows(run.id) if r.judgments[index].failed and r.execution
            )
    with store.unfinished.undertaking(digest(*parts), _ulid) as session:
        yield session
        store.database.commit()


def diagnosing(
    run: Run,
    criterion: str,
    host: AppHost,
    store: Store,
    session: str,
    progress: Callable[[int, int], None] | None = None,
    judge: AppHost | None = None,
    retrieval: bool = False,
) -> Diagnosing:
    """What diagnoses the failures of a criterion of a stored run, with the app that a host has at hand. `judge` runs
    the user's own evaluators, when that is not the same host; `retrieval` says whether what is going to be executed
    takes the retrieval for the present system's too. Raises ConfigurationError when the present app is not what the
    run measured."""
    recorded = measured_system(run, host, store, retrieval=retrieval)
    check_evaluators([e for e in run.evaluators if e.criterion == criterion], run, judge or host, store)
    return Diagnosing(
        run=run,
        criterion=criterion,
        steps=case_steps(host, recorded, store),
        runs=store.runs,
        results=store.results,
        unstable=store.unstable,
        clock=system_clock(),
        driver=host.driver(store.database.commit),
        commit=store.database.commit,
        judging=lambda evaluators: judging(evaluators, host, store, judge),
        session=session,
        progress=progress or (lambda done, total: None),
    )


def stage_swapping(
    head: tuple[Run, AppHost],
    base: tuple[Run, AppHost],
    criterion: str,
    store: Store,
    former: Mapping[str, str] | None = None,
) -> StageSwapping:
    """What swaps stages between two runs whose apps are both at hand. The head's worker runs the user's own evaluators.
    `former` gives the ids that cases have in the base's run where these are others. Raises ConfigurationError when an
    app is not what its run measured."""
    run, judge = head
    index = run.evaluator_index(criterion)
    assert index is not None  # the runs were compared by it

    def side(measured: Run, host: AppHost) -> Side:
        recorded = measured_system(measured, host, store, retrieval=True)
        children = ChildRuns(
            run=run,
            record=run.evaluators[index],
            runs=store.runs,
            clock=system_clock(),
            driver=host.driver(store.database.commit),
            commit=store.database.commit,
            judging=lambda evaluators: judging(evaluators, host, store, None if host is judge else judge),
        )
        return Side(measured, case_steps(host, recorded, store), children)

    return StageSwapping(side(*base), side(*head), criterion, store.runs, store.results, former or {})


def replaying(
    run: Run, host: AppHost, store: Store, progress: Callable[[int], None] | None = None
) -> Replaying:
    """What replays the recorded retrievals of a stored run, with the app that a host has at hand. Raises
    ConfigurationError when that is not what the run measured."""
    recorded = measured_system(run, host, store, retrieval=True)
    check_evaluators(run.evaluators, run, host, store)
    return Replaying(
        run=run,
        steps=case_steps(host, recorded, store),
        runs=store.runs,
        results=store.results,
        driver=host.driver(store.database.commit),
        judging=lambda evaluators: judging(evaluators, host, store),
        progress=progress or (lambda done: None),
    )


def load_policies(given: Sequence[Path] | None, folder: Path, *defaults: str) -> list[Policy]:
    """The policies named, or those of the default ones beside the configuration that are there."""
    paths = given or [path for path in (folder / name for name in defaults) if path.exists()]
    return [load_policy(path) for path in paths]
