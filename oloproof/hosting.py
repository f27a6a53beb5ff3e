"""A project's app with what it needs of this machine. Apart from `workplace`, so that a command can import the rest
while the app is being imported."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING

from oloproof.execution.host import AppHost
from oloproof.installation import check_installation
from oloproof.judges.costs import Price
from oloproof.settings.project import Project

if TYPE_CHECKING:
    from oloproof.judges.calling import Provider
    from oloproof.worker.account import Account


@contextmanager
def hosted(
    project: Project,
    environment: Mapping[str, str] | None = None,
    named: Mapping[str, str] | None = None,
    *,
    interpreter: str = sys.executable,
    account: Account | None = None,
    provider: Provider | None = None,
    keys: Mapping[str, str] | None = None,
) -> Iterator[AppHost]:
    """The project's app, being imported in the background; its workers end with the block. See `AppHost` for the
    environments, which default to this process's own, and for the account. `provider` is asked what judges want to
    know, when they share it with others; else one is made, which finds its keys in `keys`, by default in the
    `environment`."""
    check_installation()
    environment = os.environ if environment is None else environment
    host = AppHost(
        project,
        environment,
        interpreter=interpreter,
        named=named,
        account=account,
        provider=provider or model_provider(project, environment if keys is None else keys),
    )
    try:
        if any(evaluator.kind == "score" for evaluator in project.config.evaluators):
            _load_numpy()
        yield host
    finally:
        host.close()


def _load_numpy() -> None:
    """The intervals of scores will need it, and loading it takes about as long as a worker does to start. Its linear
    algebra, of which we need little, would start a thread for each core, and each would keep busy waiting for a while.
    """
    name = "OPENBLAS_NUM_THREADS"
    if name in os.environ:
        import_module("numpy")
        return
    os.environ[name] = "1"
    try:
        import_module("numpy")
    finally:
        del os.environ[name]


def model_provider(project: Project, keys: Mapping[str, str]) -> Provider | None:
    """What a project's judges ask; None when it has none. `keys` is the environment in which alone their keys are
    found: a configuration names both the variable and where its value is sent."""
    if not any(evaluator.asks_model for evaluator in project.config.evaluators):
        return None
    from oloproof.judges.calling import Limits, Provider

    settings = project.config.judges
    limits = Limits(settings.max_in_flight, settings.max_calls, settings.max_cost, prices(project))
    return Provider(keys, limits, _say)


def _say(text: str) -> None:
    """A line for whoever waits."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(f"judges: {text}", file=sys.stderr, flush=True)


def prices(project: Project) -> dict[str, Price]:
    """What models cost, by name."""
    return {name: Price(each.input, each.output) for name, each in project.config.judges.prices.items()}
