"""`oloproof compare --swap`: the new failures of a comparison, attributed to what differs between the two systems."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from oloproof.cli.progress import Progress
from oloproof.comparison import Comparison, Flips
from oloproof.diagnosis.attribution import StageSwap
from oloproof.diagnosis.budget import CallBudget, sample
from oloproof.diagnosis.criteria import followed_criteria
from oloproof.errors import ConfigurationError
from oloproof.execution.host import AppHost
from oloproof.hosting import hosted
from oloproof.judges.costs import JudgeCosts
from oloproof.reexecution import diagnosing, diagnosis_session, measured_system, stage_swapping
from oloproof.run_records import Run
from oloproof.settings.policy import Policy
from oloproof.settings.project import DiagnosisSettings, Project, load_project
from oloproof.validity.difference import ASSEMBLY, JUDGE, Identified, differences
from oloproof.workplace import Store, guarded

#: How many calls of `generate` the repeats of a case take, and how many differing names a refusal gives.
REPEATS_EACH, MAX_NAMED = 2, 5


def stage_swaps(
    given: argparse.Namespace,
    store: Store,
    comparison: Comparison,
    runs: tuple[Run, Run],
    policies: Sequence[Policy],
) -> tuple[tuple[StageSwap, ...], JudgeCosts | None]:
    """The swaps of each criterion that is followed, or that --criterion names, and what judges took for them; `runs`
    are candidate and baseline. Raises ConfigurationError when one of the checkouts is not what its run measured."""
    project = load_project(_config(runs[0], given.config))
    chosen = _chosen(given.criterion, project.config.diagnosis, comparison, runs[0], policies)
    if not any(flips.new_failures for flips in chosen):
        return (), None
    base_project = load_project(given.base_config or _config(runs[1], given.config))
    progress = Progress(noun="re-executions")
    try:
        with _hosts(project, base_project) as hosts:
            progress.say(f"importing {project.config.system.rag.object}")
            for run, host, is_base in zip(runs, hosts, (False, True), strict=True):
                _check_at_hand(run, host, store, is_base)
            swapping = _Swapping(store, comparison, runs, hosts, project, progress)
            return swapping.swap([flips for flips in chosen if flips.new_failures]), hosts[0].judge_costs
    finally:
        progress.clear()


class _Swapping:
    """The repeats and swaps of one comparison, within one budget of calls."""

    def __init__(
        self,
        store: Store,
        comparison: Comparison,
        runs: tuple[Run, Run],
        hosts: tuple[AppHost, AppHost],
        project: Project,
        progress: Progress,
    ) -> None:
        config = project.config
        self._store, self._progress = store, progress
        (self._head, self._base), (self._head_host, self._base_host) = runs, hosts
        self._max_cases = config.diagnosis.max_cases
        self._budget = CallBudget(config.diagnosis.max_generate_calls, 1 + config.execution.retries)
        self._former = {case.after: case.before for case in comparison.renamed}
        self._criteria = {c.criterion: c.detail[0] for c in comparison.evaluators if c.change == "renamed"}

    def swap(self, criteria: Sequence[Flips]) -> tuple[StageSwap, ...]:
        failures = [(self._head, flips.criterion) for flips in criteria]
        with (
            guarded(self._head_host, self._store, self._base_host),
            diagnosis_session(self._store, failures, "swap", self._base.id) as session,
        ):
            return tuple(self._one(flips, session) for flips in criteria)

    def _one(self, flips: Flips, session: str) -> StageSwap:
        head, base = (self._head, self._head_host), (self._base, self._base_host)
        swapping = stage_swapping(head, base, flips.criterion, self._store, self._former)
        chosen: tuple[str, ...] = ()
        if swapping.attributes:
            limit = min(self._max_cases, self._budget.cases(REPEATS_EACH))
            chosen = sample(flips.new_failures, limit)
        before = self._former_ids(chosen)
        ours = diagnosing(head[0], flips.criterion, head[1], self._store, session, self._progress)
        theirs = diagnosing(
            base[0],
            self._criteria.get(flips.criterion, flips.criterion),
            base[1],
            self._store,
            session,
            self._progress,
            judge=head[1],
        )
        found, found_before = ours.repeat(chosen), theirs.repeat(before, "base control")
        self._budget.spent += ours.steps.calls["generate"] + theirs.steps.calls["generate"]
        repeats = {
            name: (found.get(name), found_before.get(self._former.get(name, name)))
            for name in flips.new_failures
        }
        return swapping.swap(repeats, self._budget)

    def _former_ids(self, case_ids: Sequence[str]) -> list[str]:
        return [self._former.get(name, name) for name in case_ids]


def _chosen(
    criterion: str | None,
    settings: DiagnosisSettings,
    comparison: Comparison,
    candidate: Run,
    policies: Sequence[Policy],
) -> list[Flips]:
    if criterion is None:
        names = followed_criteria(policies, settings.criterion, candidate.evaluators)
        return [flips for name in names if (flips := comparison.flips_of(name)) is not None]
    found = comparison.flips_of(criterion)
    if found is None:
        known = ", ".join(flips.criterion for flips in comparison.flips) or "there is none"
        raise ConfigurationError(
            f"{criterion} is not a pass/fail criterion that both runs share; known: {known}"
        )
    return [found]


@contextmanager
def _hosts(head: Project, base: Project) -> Iterator[tuple[AppHost, AppHost]]:
    """The apps of both checkouts, which may be one."""
    with hosted(head) as ours:
        if base.root == head.root and base.path.name == head.path.name:
            yield ours, ours
        else:
            with hosted(base, provider=ours.provider) as theirs:
                yield ours, theirs


def _config(run: Run, config: Path) -> Path:
    """The configuration that a run was made with, where it still lies beside the one given, which names the store."""
    recorded = config.parent / Path(run.config).name
    return recorded if recorded.exists() else config


def _check_at_hand(run: Run, host: AppHost, store: Store, is_base: bool) -> None:
    """Refuse a checkout whose code, settings or files are not those that the run measured."""
    try:
        measured_system(run, host, store, retrieval=True)
    except ConfigurationError as error:
        now = Identified(host.system(store.outlines), (), host.ingredients)
        changes = differences(Identified(run.system, (), run.ingredients), now)
        names = [c.name for c in changes if not set(c.stages) <= {ASSEMBLY, JUDGE}]
        what = f"{', '.join(names[:MAX_NAMED])} differ" if names else str(error)
        way_out = "make a run of the present code with `oloproof run` and compare that"
        if is_base:
            way_out = (
                "check out what it measured, as with `git worktree add ../base COMMIT`, and name its configuration "
                "with --base-config ../base/oloproof.yaml"
            )
        raise ConfigurationError(
            f"{host.project.path}: --swap executes the code that {run.id} measured, and this is not it ({what}); "
            f"{way_out}"
        ) from None
