"""Each suite of a checkout evaluated: a report, or what went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from oloproof.errors import EXIT_UNFINISHED, ConfigurationError, OloproofError
from oloproof.settings.inside import outside
from oloproof.settings.project import load_project
from oloproof_ci.action.checkout import Sides
from oloproof_ci.action.inputs import Inputs
from oloproof_ci.earlier import EarlierResults
from oloproof_ci.gate_policies import PolicyFiles
from oloproof_ci.git import Repository
from oloproof_ci.lodging import Lodgings
from oloproof_ci.outcome import Failure, SuiteOutcome
from oloproof_ci.preview import Preview
from oloproof_ci.suites import CONFIG, find_config
from oloproof_ci.watching import PrintedProgress


def failed(config: str, error: Exception) -> SuiteOutcome:
    """The outcome of a suite that raised."""
    if isinstance(error, OloproofError):
        return SuiteOutcome(config, None, Failure(error.exit_code, str(error)))
    message = f"internal error: {type(error).__name__}: {error}\nplease report it"
    return SuiteOutcome(config, None, Failure(EXIT_UNFINISHED, message))


def evaluate_suites(
    repository: Repository, sides: Sides, inputs: Inputs, lodgings: Lodgings, earlier: EarlierResults
) -> tuple[SuiteOutcome, ...]:
    """Evaluate every suite that the inputs name, one after the other; one that fails stops none of the others."""
    try:
        configs = _configurations(inputs, repository)
    except OloproofError as error:
        return (failed(CONFIG, error),)
    return tuple(_evaluate(repository, sides, inputs, lodgings, earlier, config) for config in configs)


def _configurations(inputs: Inputs, repository: Repository) -> Sequence[Path]:
    configs = [Path(name) for name in inputs.config] or [find_config(Path(), "input config", repository)]
    if len(set(configs)) < len(configs):
        raise ConfigurationError("input config: names a file twice")
    return configs


def _evaluate(
    repository: Repository,
    sides: Sides,
    inputs: Inputs,
    lodgings: Lodgings,
    earlier: EarlierResults,
    config: Path,
) -> SuiteOutcome:
    watch = PrintedProgress()
    try:
        named = [Path(name) for name in inputs.policy]
        policies = PolicyFiles.of(named, config.parent, inputs.policy_from)
        _refuse_strays("config", [config])
        _refuse_strays("policy", policies.paths)
        project = load_project(config)
        preview = Preview(
            repository, project, policies, watch, sides.head, lodgings, earlier, inputs.diagnose
        )
        report = preview.report_alone() if sides.base is None else preview.report(sides.base)
    except Exception as error:  # noqa: BLE001 - whatever it is, the pull request must be told
        return failed(str(config), error)
    finally:
        watch.clear()
    return SuiteOutcome(str(config), report, None)


def _refuse_strays(setting: str, paths: Sequence[Path]) -> None:
    for path in paths:
        if strays := outside(str(path), Path.cwd()):
            raise ConfigurationError(f"input {setting}: {strays}")
