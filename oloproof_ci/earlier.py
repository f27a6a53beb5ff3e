"""Results of earlier jobs: stage results for every run, and the run of a commit for pull requests into it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Protocol

from oloproof.canonical import content_id
from oloproof.errors import ConfigurationError
from oloproof.identity.system import System
from oloproof.jsonform import to_json
from oloproof.report.run_text import FAULTS
from oloproof.run_records import CacheCounts, Run, Tally
from oloproof.settings.project import Project
from oloproof.suite import Suite, evaluator_records
from oloproof.workplace import Store

NO_CALLS = Tally()


class EarlierResults(Protocol):
    """Where results of earlier jobs come from, and where this job's go. What fails is told elsewhere."""

    def restore(self, project: Project, suite: str, index_version: str, folder: Path) -> None:
        """Bring stage results into the store that is kept in `folder`."""

    def baseline(self, suite: str, commit: str, inputs: str, folder: Path) -> str | None:
        """Bring the run on a commit into that store, and give its id, when there is one with these inputs."""

    def seed(self, suite: str, commit: str, inputs: str, run: str) -> None:
        """Keep a run for pull requests into its commit."""


def run_inputs(suite: Suite, system: System) -> str:
    """The digest of everything that a run on a commit depends on: the system with its code, packages and variables,
    the cases, the evaluators and how their judgments are summed."""
    record = {
        "system": to_json(system),
        "cases": suite.facts.sha256,
        "evaluators": [to_json(each) for each in evaluator_records(suite.evaluators)],
        "relevance_unit": suite.relevance_unit,
        "slices": [*suite.slices, suite.min_slice_support],
    }
    return content_id(record)


def is_whole(run: Run) -> bool:
    """Whether a run came to its end, every case gave an answer and no judge or evaluator failed: only then is it what a
    run would come to again. What errors say may also quote what is nobody else's business."""
    failed = any(reason.startswith(FAULTS) for each in run.metrics for reason in each.missing_reasons)
    return run.finished and run.attempted == run.cases and not run.errored and not failed


def reusable_run(run: str, store: Store, suite: Suite, system: System) -> Run | None:
    """An earlier run as one that took no call, when it is whole and was made of the same; its id comes from outside,
    so it is looked at closely."""
    try:
        found = store.runs.get(run)
    except (ConfigurationError, ValueError, TypeError, KeyError):
        return None
    same = (
        is_whole(found)
        and found.cases == suite.facts.cases
        and found.system == system
        and found.dataset_digest == suite.facts.sha256
        and found.evaluators == evaluator_records(suite.evaluators)
        and (found.relevance_unit, found.slices) == (suite.relevance_unit, suite.slices)
        and found.min_slice_support == suite.min_slice_support
    )
    if not same:
        return None
    cache = CacheCounts(Tally(found.cases), Tally(found.cases), NO_CALLS, NO_CALLS, 0)
    return replace(found, cache=cache, seconds=0.0, stage_seconds=0.0, stale=None)


def seconds_since(run: Run, now: float) -> float:
    """How long before `now` a run began."""
    return now - datetime.fromisoformat(run.created).timestamp()
