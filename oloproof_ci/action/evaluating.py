"""Each suite of a checkout evaluated: a report, or what went wrong."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from oloproof_ci.report import Report, Warning
from oloproof_ci.suites import CONFIG, find_config
from oloproof_ci.watching import PrintedProgress


def failed(config: str, error: Exception) -> SuiteOutcome:
    """The outcome of a suite that raised."""
    if isinstance(error, OloproofError):
        return SuiteOutcome(config, None, Failure(error.exit_code, str(error)))
    message = f"internal error: {type(error).__name__}: {error}\nplease report it; "
    message += "with debug logging (the secret ACTIONS_STEP_DEBUG) the job's log shows where it happened"
    return SuiteOutcome(config, None, Failure(EXIT_UNFINISHED, message))


@dataclass(frozen=True)
class SuiteEvaluation:
    """Evaluates the suites that the inputs name, one after the other; one that fails stops none of the others. With
    `debug` an error of our own is printed with where it was raised."""

    repository: Repository
    sides: Sides
    inputs: Inputs
    lodgings: Lodgings
    earlier: EarlierResults
    debug: bool

    def outcomes(self) -> tuple[SuiteOutcome, ...]:
        try:
            configs = self._configurations()
        except OloproofError as error:
            return (failed(CONFIG, error),)
        return tuple(self._evaluate(config) for config in configs)

    def _configurations(self) -> Sequence[Path]:
        named = [Path(name) for name in self.inputs.config]
        configs = named or [find_config(Path(), "input config", self.repository)]
        if len(set(configs)) < len(configs):
            raise ConfigurationError("input config: names a file twice")
        return configs

    def _evaluate(self, config: Path) -> SuiteOutcome:
        watch = PrintedProgress()
        try:
            return SuiteOutcome(str(config), self._report(config, watch), None)
        except Exception as error:  # noqa: BLE001 - whatever it is, the pull request must be told
            if self.debug and not isinstance(error, OloproofError):
                traceback.print_exc()
            return failed(str(config), error)
        finally:
            watch.clear()

    def _report(self, config: Path, watch: PrintedProgress) -> Report:
        inputs, sides = self.inputs, self.sides
        named = [Path(name) for name in inputs.policy]
        policies = PolicyFiles.of(named, config.parent, inputs.policy_from)
        _refuse_strays("config", [config])
        _refuse_strays("policy", policies.paths)
        # Code of a suite before this one has run: the file may be a link by now.
        with self.lodgings.reading():
            project = load_project(config)
        preview = Preview(
            self.repository,
            project,
            policies,
            watch,
            sides.head,
            self.lodgings,
            self.earlier,
            inputs.diagnose,
        )
        if sides.base is not None:
            return preview.report(sides.base)
        report = preview.report_alone()
        if not sides.left_out:
            return report
        return replace(report, warnings=(*report.warnings, Warning("not_compared", sides.left_out)))


def _refuse_strays(setting: str, paths: Sequence[Path]) -> None:
    for path in paths:
        if strays := outside(str(path), Path.cwd()):
            raise ConfigurationError(f"input {setting}: {strays}")
