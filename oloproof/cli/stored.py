"""The store as the commands that only read it find it: they never make one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from oloproof.errors import ConfigurationError
from oloproof.judge_checks import known_checks
from oloproof.judges.checks import JudgeCheck
from oloproof.run_records import EvaluatorRecord
from oloproof.settings.project import Project
from oloproof.store.database import FILE, FOLDER
from oloproof.workplace import Store, opened_store


def has_store(config: Path) -> bool:
    """Whether there is a store beside a configuration file."""
    return (config.parent / FOLDER / FILE).exists()


@contextmanager
def existing_store(config: Path) -> Iterator[Store]:
    """The store beside a configuration file. Raises ConfigurationError when there is none yet."""
    if not has_store(config):
        what = "make a run with `oloproof run`"
        if not config.exists():
            what = f"there is no {config} either; name the configuration with --config PATH"
        raise ConfigurationError(f"{config.parent / FOLDER / FILE}: nothing is stored here yet; {what}")
    with opened_store(config.absolute().parent) as store:
        yield store


def project_checks(project: Project, evaluators: Sequence[EvaluatorRecord]) -> dict[str, JudgeCheck]:
    """What is known of a project's judges; without a store none was asked about anything."""
    if not has_store(project.path):
        return {}
    with existing_store(project.path) as store:
        return known_checks(project.root, evaluators, store)
