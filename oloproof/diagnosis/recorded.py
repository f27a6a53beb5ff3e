"""What a stored run recorded of its cases, and whether the present system is the one that it measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from oloproof.errors import ConfigurationError
from oloproof.evaluators import AnyEvaluator
from oloproof.identity.system import System
from oloproof.records import Case, Execution
from oloproof.run_records import CaseRow, Run
from oloproof.settings.cases import case_from_json
from oloproof.store.results import Results
from oloproof.store.runs import Runs

#: How many cases are loaded at once.
WINDOW = 200


@dataclass(frozen=True, slots=True)
class RecordedCase:
    """A case as a run recorded it."""

    row: CaseRow
    case: Case
    execution: Execution


def recorded_cases(rows: Iterable[CaseRow], runs: Runs, results: Results) -> Iterator[RecordedCase]:
    """Cases of a run as it recorded them, loaded as they are needed; those that errored are left out."""
    chosen = list(rows)
    for start in range(0, len(chosen), WINDOW):
        part = chosen[start : start + WINDOW]
        bodies = runs.bodies([row.body for row in part])
        executions = results.executions([row.execution for row in part if row.execution])
        for row in part:
            execution = executions.get(row.execution or b"")
            if execution is not None:
                yield RecordedCase(row, case_from_json(bodies[row.body]), execution)


def evaluator_from(definition: Any) -> Any:
    """The evaluator that a run's record describes."""
    from pydantic import TypeAdapter

    settings = {key: value for key, value in definition.items() if key not in ("code_version", "code")}
    if "rubric" in settings:  # of a judge, whether it stood in the configuration, in a file or nowhere
        settings["rubric_text"] = settings.pop("rubric")
    evaluator: Any = TypeAdapter(AnyEvaluator).validate_python(settings)
    return evaluator.with_code(definition["code"]) if "code" in definition else evaluator


def check_same_system(run: Run, system: System, *, retrieval: bool) -> None:
    """Refuse to execute a run's cases again with a system that is not the one that the run measured. With `retrieval`
    the recorded retrievals are going to be taken for this system's own, so its settings for them count too."""
    then, now = run.system, system
    if (then.name, then.version, then.object) != (now.name, now.version, now.object):
        raise ConfigurationError(
            f"{run.id} measured {then.name} {then.version} ({then.object}), but the configuration now names "
            f"{now.name} {now.version} ({now.object}); make a run of it with `oloproof run` and take that"
        )
    if then.environment != now.environment:
        raise ConfigurationError(
            f"a variable that identity.env names has changed since {run.id}; set it back, or make a run with "
            "`oloproof run` and take that"
        )
    if then.prepare != now.prepare:
        raise ConfigurationError(
            f"the prepare command, or a script that it runs, has changed since {run.id}; make a run with "
            "`oloproof run` and take that"
        )
    if retrieval:
        for name in ("index_version", "depth"):
            if getattr(then, name) != getattr(now, name):
                raise ConfigurationError(
                    f"{run.id} retrieved with {name} {getattr(then, name)}, and it is {getattr(now, name)} now; make a "
                    "run of that with `oloproof run` and take it"
                )
    counted = () if then.token_budget is None else ("count_tokens",)
    stages = ("retrieve", *counted, "generate")
    changed = [
        stage for stage in stages if getattr(then.fingerprints, stage) != getattr(now.fingerprints, stage)
    ]
    if changed:
        raise ConfigurationError(
            f"the code of {' and '.join(changed)} has changed since {run.id}, so its cases cannot be re-executed as "
            f"they were; `oloproof identity --diff {run.id}` says what changed; make a run of the present code with "
            "`oloproof run` and take that"
        )
