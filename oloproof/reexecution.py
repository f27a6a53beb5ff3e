"""What executes cases of stored runs again: diagnoses, stage swaps and replays, made here as `workplace` makes runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from oloproof.canonical import canonical_json, digest
from oloproof.diagnosis.child_runs import ChildRuns
from oloproof.diagnosis.gold_context import Diagnosing
from oloproof.diagnosis.recorded import check_same_system
from oloproof.diagnosis.replays import Replaying
from oloproof.diagnosis.stage_swap import Side, StageSwapping
from oloproof.errors import ConfigurationError
from oloproof.execution.host import AppHost
from oloproof.identity.system import System
from oloproof.run_records import EvaluatorRecord, Run
from oloproof.workplace import Store, case_steps, judging, new_ulid, system_clock


def measured_system(run: Run, host: AppHost, store: Store, *, retrieval: bool) -> System:
    """The system that a run measured, as the host can execute it again. Raises ConfigurationError when the present
    code, or a file that it reads, is no longer what it was; what the retrieval reads counts with `retrieval`."""
    now = host.system(store.outlines)
    check_same_system(run, now, retrieval=retrieval)
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


def check_evaluators(records: Sequence[EvaluatorRecord], run: Run, host: AppHost, store: Store) -> None:
    """Refuse to judge by a function of the user's whose code is no longer that which judged the run."""
    for record in records:
        name, code = record.definition.get("object"), record.definition.get("code")
        if name is not None and code is not None and host.code_of(name, store.outlines) != code:
            raise ConfigurationError(
                f"the code of {name}, which judges {record.criterion}, has changed since {run.id}; make a run with "
                "`oloproof run` and take that"
            )


def _at_hand(evaluators: Sequence[Any], host: AppHost, store: Store) -> list[Any]:
    """The configured evaluators in place of those that a run's record describes, where they judge the same: they know
    what changes no verdict, such as where a model's key stands. Raises ConfigurationError where a judge has none: then
    nobody says whether its model may still be asked, and with which key."""
    configured = {_judged_by(each): each for each in host.evaluators(store.outlines)}
    found = []
    for each in evaluators:
        same = configured.get(_judged_by(each))
        if same is None and each.asks_model:
            raise ConfigurationError(
                f"{host.project.path}: has no judge like {each.criterion_name} of the run, which asked {each.model} "
                "(its model, rubric and other settings have to be the same); put it back, or make a run with "
                "`oloproof run` and take that"
            )
        found.append(each if same is None else same.model_copy(update={"criterion": each.criterion_name}))
    return found


def _judged_by(evaluator: Any) -> str:
    """What an evaluator judges by, whatever its criterion is called."""
    return canonical_json({**evaluator.definition(), "criterion": None})


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
    with store.unfinished.undertaking(digest(*parts), new_ulid) as session:
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
    takes the retrieval for the present system's too, so that its settings have to be those of the run. Raises
    ConfigurationError when the present app is not what the run measured."""
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
        judging=lambda evaluators: judging(_at_hand(evaluators, judge or host, store), host, store, judge),
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
            judging=lambda evaluators: judging(
                _at_hand(evaluators, judge, store), host, store, None if host is judge else judge
            ),
        )
        return Side(measured, case_steps(host, recorded, store), children)

    return StageSwapping(side(*base), side(*head), criterion, store.runs, store.results, former or {})


def replaying(
    run: Run,
    host: AppHost,
    store: Store,
    progress: Callable[[int], None] | None = None,
    criteria: Collection[str] | None = None,
) -> Replaying:
    """What replays the recorded retrievals of a stored run, with the app that a host has at hand; with `criteria`
    nothing else is judged. Raises ConfigurationError when the app is not what the run measured."""
    if criteria is not None:
        run = replace(run, evaluators=tuple(e for e in run.evaluators if e.criterion in criteria))
    recorded = measured_system(run, host, store, retrieval=True)
    check_evaluators(run.evaluators, run, host, store)
    return Replaying(
        run=run,
        steps=case_steps(host, recorded, store),
        runs=store.runs,
        results=store.results,
        driver=host.driver(store.database.commit),
        judging=lambda evaluators: judging(_at_hand(evaluators, host, store), host, store),
        progress=progress or (lambda done: None),
    )
