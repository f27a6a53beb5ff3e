"""The base as something to measure: its app beside the head's, or why there is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from oloproof.errors import OloproofError
from oloproof.execution.host import AppHost
from oloproof.hosting import hosted
from oloproof.judges.calling import Provider
from oloproof.settings.project import Project, load_project
from oloproof_ci.lodging import Lodging, Lodgings
from oloproof_ci.new_failures import Measured
from oloproof_ci.places import CheckoutPlace


@dataclass(frozen=True)
class Baseline:
    """The base's run, or the reason why there is none."""

    measured: Measured | None
    reason: str = ""
    detail: str = ""
    #: How many seconds ago the run was made, when an earlier job made it.
    since: float | None = None


def lodged(
    project: Project,
    lodging: Lodging,
    named: Mapping[str, str] | None = None,
    provider: Provider | None = None,
) -> AbstractContextManager[AppHost]:
    """A project's app where it is lodged; `named` and `provider` as in `hosted`."""
    return hosted(
        project,
        lodging.environment,
        named,
        interpreter=lodging.interpreter,
        account=lodging.account,
        provider=provider,
        keys=lodging.keys,
    )


@contextmanager
def hosted_base(
    config: Path, place: CheckoutPlace, lodgings: Lodgings, head: AppHost
) -> Iterator[tuple[AppHost | None, Baseline | None]]:
    """The base's app, or why there is none to measure. Judges are the head's, and so is what they may cost."""
    if not config.exists():
        yield None, Baseline(None, "baseline_absent", f"there is no {config.name} at its place in the base")
        return
    try:
        with lodgings.reading():
            project = load_project(config)
        lodging = lodgings.of(project)
    except OloproofError as error:
        yield None, Baseline(None, "baseline_failed", str(error))
        return
    moved = replace(lodging, environment=place.environment(lodging.environment, head))
    with lodged(project, moved, lodging.environment, head.provider) as host:
        yield host, _not_the_base(host, place)


def _not_the_base(host: AppHost, place: CheckoutPlace) -> Baseline | None:
    """A failed baseline when the base's app imports modules of the head, which would be measured as its own."""
    try:
        foreign = [path for path in host.description.modules.values() if place.is_the_heads(path)]
    except OloproofError as error:
        return Baseline(None, "baseline_failed", str(error))
    if not foreign:
        return None
    return Baseline(
        None,
        "baseline_failed",
        f"the base's app imports {foreign[0]}, which is the head's file; make the path to it relative, or import it "
        "from the configuration's folder",
    )
