"""Where a pull request's code runs while the action is at work: apart from us, with the packages that it asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from oloproof.checkouts import watched_folder
from oloproof.settings.project import Project
from oloproof.worker.account import seeing_as
from oloproof_ci.action.inputs import Inputs
from oloproof_ci.action.secrets import holds_secret
from oloproof_ci.environment import Environments, Wanted
from oloproof_ci.git import GitAccess, without_local_variables
from oloproof_ci.isolation import Isolation, isolated
from oloproof_ci.lodging import Lodging, without_judge_keys


class Quarters:
    """The lodgings of one job: the same user for all checkouts, a virtual environment for each that needs its own."""

    def __init__(
        self, isolation: Isolation, environments: Environments, environment: Mapping[str, str]
    ) -> None:
        self._isolation = isolation
        self._environments = environments
        self._environment = environment

    def of(self, project: Project) -> Lodging:
        """Where a checkout's code runs. Raises ConfigurationError when its packages cannot be installed."""
        seen = without_judge_keys(self._environment, project.config)
        withheld = self._environment.keys() - seen.keys()
        interpreter = self._environments.interpreter(watched_folder(project.root), withheld)
        variables = {**seen, **self._environments.variables(interpreter)}
        return Lodging(variables, interpreter, self._isolation.account, keys=self._environment)

    def store(self, project: Project) -> Path:
        """A folder for the store that the project's code cannot enter, one for each configuration's folder."""
        inside = project.root.relative_to(watched_folder(project.root))
        return self._isolation.store / inside

    def reading(self) -> AbstractContextManager[None]:
        """Read as the workspace's owner, which its code may run as."""
        return seeing_as(self._isolation.owner)


@contextmanager
def opened_quarters(
    workspace: Path, environment: Mapping[str, str], inputs: Inputs
) -> Iterator[tuple[Quarters, GitAccess]]:
    """The lodgings of a job's code, and how git is to be used beside it; the runner's folders are shut meanwhile."""
    with isolated(workspace, environment) as isolation:
        clean = without_local_variables(isolation.environment(environment))
        wanted = Wanted(inputs.requirements, inputs.install, inputs.python_version)
        environments = Environments(isolation.environments, wanted, clean, isolation.account)
        environments.check_named(workspace)
        settings = (("safe.directory", str(workspace.resolve())),)
        git = {name: value for name, value in clean.items() if not holds_secret(name)}
        access = GitAccess(git, isolation.owner, isolation.account, settings)
        yield Quarters(isolation, environments, clean), access
