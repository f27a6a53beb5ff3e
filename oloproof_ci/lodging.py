"""Where a checkout's code runs: under which interpreter, as which user, in which environment, and where the results
of it are kept."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from oloproof.evaluators import JudgeEvaluator
from oloproof.settings.project import Project, ProjectConfig
from oloproof.worker.account import Account
from oloproof_ci.git import without_local_variables

#: A shorter value is no key that others are searched for.
SHORTEST_KEY = 8


@dataclass(frozen=True)
class Lodging:
    """Everything of its surroundings that a checkout's code gets. `account` is None where it runs as we do. `keys` is
    the environment in which the keys of its judges are found, None where that is this process's own."""

    environment: Mapping[str, str]
    interpreter: str = sys.executable
    account: Account | None = None
    keys: Mapping[str, str] | None = None


def without_judge_keys(environment: Mapping[str, str], config: ProjectConfig) -> dict[str, str]:
    """An environment without the keys of judges, which are not the system's, unless execution.env says that they are.

    No variable of another name passes such a key on either, unless it is as short as words that stand there by chance.
    """
    named = config.execution.env or ()
    judges = {each.key_variable for each in config.evaluators if isinstance(each, JudgeEvaluator)} - set(
        named
    )
    keys = {key for name in judges if name and len(key := environment.get(name, "")) >= SHORTEST_KEY}
    return {
        name: value
        for name, value in environment.items()
        if name in named or not (name in judges or value in keys)
    }


class Lodgings(Protocol):
    """Finds each checkout its place."""

    def of(self, project: Project) -> Lodging:
        """Where the code of a configuration's checkout runs. Raises OloproofError when its packages cannot be had."""

    def store(self, project: Project) -> Path:
        """The folder that the store of a configuration is kept in."""

    def reading(self) -> AbstractContextManager[None]:
        """While it lasts, a checkout's files are read with no more rights than its code has: by the time they are, it
        may have laid links in their places."""


class OwnLodgings:
    """On a person's machine: their interpreter and environment, as themselves, the store beside the configuration."""

    def of(self, project: Project) -> Lodging:
        return Lodging(without_local_variables(os.environ))

    def store(self, project: Project) -> Path:
        return project.root

    def reading(self) -> AbstractContextManager[None]:
        return nullcontext()
