"""oloproof.yaml: the suite, the system under test, the evaluators, and how to run them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from oloproof.errors import ConfigurationError
from oloproof.evaluators import AnyEvaluator, JudgeEvaluator
from oloproof.evaluators.python import function_path
from oloproof.settings.fields import (
    Count,
    CountOrZero,
    ListOf,
    OptionalCount,
    OptionalText,
    Settings,
    Text,
    Version,
)
from oloproof.settings.inside import outside
from oloproof.settings.validation import validate
from oloproof.settings.wording import capped, hint, nearest, shortened
from oloproof.settings.yamlfile import KeyPath, LoadedYaml, SourceLines, load_yaml, parse_yaml

_SLICES = ("relevant_position", "context_truncated")
#: What these look like, for editors that check a configuration while it is written.
_OBJECT_SCHEMA = {"type": "string", "pattern": r"^\w+(\.\w+)*:\w+(\.\w+)*$"}
_SLICE_SCHEMA = {"type": "string", "pattern": rf"^({'|'.join(_SLICES)}|metadata(\.[^.]+)+)$"}


def _object_path(text: str) -> str:
    module, colon, name = text.partition(":")
    if not (colon and all(part.isidentifier() for part in (*module.split("."), *name.split(".")))):
        raise ValueError(f'expected module:Class such as app:SupportRag, found "{shortened(text)}"')
    return text


def _slice(text: str) -> str:
    head, *keys = text.split(".")
    if text in _SLICES or (head == "metadata" and keys and all(keys)):
        return text
    meant = nearest(text, _SLICES)
    if meant is None and head != "metadata" and all((head, *keys)):
        meant = f"metadata.{shortened(text)}"
    known = f"known are metadata.KEY, {' and '.join(_SLICES)}"
    raise ValueError(f'unknown slice "{shortened(text)}"; {f"did you mean {meant}?" if meant else known}')


class RagSettings(Settings):
    """The class under test, and overrides of the settings it declares.

    `model_fields_set` tells an override of None (`token_budget: null`, no budget) from none at all.
    """

    object: Annotated[str, AfterValidator(_object_path), WithJsonSchema(_OBJECT_SCHEMA)]
    depth: OptionalCount = None
    top_k: OptionalCount = None
    token_budget: Count | None = None
    index_version: OptionalText = None


class SystemSettings(Settings):
    """The system under test; name and version default to what the class declares."""

    name: OptionalText = None
    version: OptionalText = None
    rag: RagSettings


class ExecutionSettings(Settings):
    """How stages are run: `workers` processes, and in each up to `threads` calls at once. `timeout_seconds` is per
    call, `retries` after a call that failed; `memory_mb` is the address space that a worker may have; `env` names the
    variables that the project's code may see, besides those that no program does without (default: all)."""

    workers: Annotated[int, Field(ge=1, le=256)] = 1
    threads: Annotated[int, Field(ge=1, le=256)] = 1
    timeout_seconds: Annotated[float, Field(gt=0, le=1_000_000)] = 60.0
    retries: CountOrZero = 0
    memory_mb: Annotated[int, Field(ge=64, le=10_000_000)] | None = None
    env: ListOf[Text] | None = None


class DiagnosisSettings(Settings):
    """What the diagnosis of new failures may cost, and the pass/fail criterion it follows."""

    max_cases: Count = 50
    max_generate_calls: Count = 400
    criterion: OptionalText = None


class ExperimentSettings(Settings):
    """What the bot may try on recorded retrievals when the diagnosis suggests it: functions that are called with a
    case's input and its candidates, and return these reordered."""

    rerankers: ListOf[Annotated[str, AfterValidator(function_path)]] = ()


class PriceSettings(Settings):
    """What a model costs per million tokens."""

    input: Annotated[float, Field(ge=0)]
    output: Annotated[float, Field(ge=0)]


class JudgeSettings(Settings):
    """What the questions of all judges of one run may come to: how many at once, how many in all, what they may cost.
    `prices` are per million tokens, by model."""

    max_in_flight: Annotated[int, Field(ge=1, le=256)] = 8
    max_calls: OptionalCount = None
    max_cost: Annotated[float, Field(gt=0)] | None = None
    prices: dict[str, PriceSettings] = Field(default_factory=dict)


class IdentitySettings(Settings):
    """Environment variables that change results, files whose contents do not (patterns of paths from the top of the
    repository), and what happens when a file that retrievals read has changed under an unchanged index_version."""

    env: ListOf[Text] = ()
    ignore_files: ListOf[Text] = ()
    on_stale_index: Literal["rerun", "error"] = "rerun"


class CacheSettings(Settings):
    """How large the stage results may grow that a job saves for later ones, and what `oloproof cache prune` leaves."""

    max_mb: Annotated[int, Field(ge=1, le=10_000)] = 500


class ProjectConfig(Settings):
    """The contents of oloproof.yaml."""

    version: Version
    project: OptionalText = None
    dataset: Text
    system: SystemSettings
    evaluators: Annotated[ListOf[AnyEvaluator], Field(min_length=1)]
    relevance_unit: Literal["document", "chunk"] = "document"
    slices: ListOf[Annotated[str, AfterValidator(_slice), WithJsonSchema(_SLICE_SCHEMA)]] = ()
    min_slice_support: Count = 5
    # Defaults are made by model_construct: they need no checks, for which each class would have to be built by itself.
    execution: ExecutionSettings = ExecutionSettings.model_construct()
    diagnosis: DiagnosisSettings = DiagnosisSettings.model_construct()
    experiments: ExperimentSettings = ExperimentSettings.model_construct()
    identity: IdentitySettings = IdentitySettings.model_construct()
    cache: CacheSettings = CacheSettings.model_construct()
    judges: JudgeSettings = JudgeSettings.model_construct()
    prepare: OptionalText = None


@dataclass(frozen=True, slots=True)
class Project:
    """A configuration file with its place.

    `path` is the file as the user named it, `root` its directory and `dataset` the case file, both absolute;
    `dataset_shown` is the case file as messages name it. `lines` knows where each key stands.
    """

    path: Path
    root: Path
    config: ProjectConfig
    dataset: Path
    dataset_shown: str
    lines: SourceLines


def load_project(path: Path) -> Project:
    """Read oloproof.yaml. Raises ConfigurationError with every problem, file and line.

    Ranking evaluators without a relevance unit of their own get the suite's.
    """
    return _project(path, load_yaml(path, "`oloproof init MODULE:CLASS` writes one for a class"))


def parse_project(path: Path, text: str) -> Project:
    """The configuration that a text would be, were it written to `path`. Raises as `load_project` does."""
    return _project(path, parse_yaml(text.encode(), f"{path} (not written)"))


def _project(path: Path, loaded: LoadedYaml) -> Project:
    config = validate(ProjectConfig, loaded)
    root = Path(os.path.abspath(path)).parent
    problems = list(_contradictions(config, loaded.lines))
    if strays := outside(config.dataset, root):
        problems.append(loaded.lines.problem(("dataset",), strays))
    rubrics = {}
    for index, evaluator in enumerate(config.evaluators):
        if isinstance(evaluator, JudgeEvaluator) and evaluator.rubric_file is not None:
            try:
                rubrics[index] = _rubric(evaluator.rubric_file, root)
            except ValueError as error:
                problems.append(loaded.lines.problem(("evaluators", index, "rubric_file"), str(error)))
    if problems:
        raise ConfigurationError(*capped(problems))
    evaluators = tuple(
        each.with_rubric(rubrics[index]) if isinstance(each, JudgeEvaluator) and index in rubrics else each
        for index, each in enumerate(_with_unit(e, config.relevance_unit) for e in config.evaluators)
    )
    return Project(
        path=path,
        root=root,
        config=config.model_copy(update={"evaluators": evaluators}),
        dataset=root / config.dataset,
        dataset_shown=str(path.parent / config.dataset),
        lines=loaded.lines,
    )


def _rubric(named: str, root: Path) -> str:
    """The text of a rubric's file. Raises ValueError that says what is wrong with it."""
    if strays := outside(named, root):
        raise ValueError(strays)
    try:
        text = (root / named).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{named} is not UTF-8 text") from None
    except OSError as error:
        raise ValueError(f"{named} cannot be read ({error.strerror or error})") from None
    if not text.strip():
        raise ValueError(f"{named} is empty; write down what an answer must meet")
    return text


def check_against(project: Project, depth: int, top_k: int) -> None:
    """Check what depends on the settings in force, the class's own or overridden ones.

    Raises ConfigurationError when top_k or the k of an evaluator is above depth.
    """
    problems = []
    if top_k > depth:
        problems.append(
            project.lines.problem(
                _rag_setting(project.config.system.rag, "top_k", "depth"),
                f"top_k is {top_k} but depth is {depth}: no more than depth passages are ever retrieved; "
                "lower top_k or raise depth",
            )
        )
    for index, evaluator in enumerate(project.config.evaluators):
        k = getattr(evaluator, "k", None)
        if k is not None and k > depth:
            problems.append(
                project.lines.problem(
                    ("evaluators", index, "k"),
                    f"k is {k} but depth is {depth}, so every case would be missing; lower k or raise depth",
                )
            )
    if problems:
        raise ConfigurationError(*capped(problems))


def _rag_setting(rag: RagSettings, *names: str) -> KeyPath:
    """The first of the settings that stands in the file; the class that declares them where none does."""
    given = [name for name in names if name in rag.model_fields_set]
    return ("system", "rag", given[0] if given else "object")


def _with_unit(evaluator: AnyEvaluator, unit: Literal["document", "chunk"]) -> AnyEvaluator:
    if getattr(evaluator, "relevance_unit", unit) is None:
        return evaluator.with_unit(unit)  # type: ignore[union-attr]
    return evaluator


def _contradictions(config: ProjectConfig, lines: SourceLines) -> Iterator[str]:
    """Problems between settings that are well-formed each for itself."""
    first: dict[str, int] = {}
    for index, evaluator in enumerate(config.evaluators):
        criterion = evaluator.criterion_name
        earlier = first.setdefault(criterion, index)
        if earlier != index:
            line = lines.line("evaluators", earlier)
            yield lines.problem(
                ("evaluators", index),
                f"yields the criterion {criterion}, as evaluators[{earlier}] on line {line} does; "
                "remove one or name it differently",
            )
    for index, name in enumerate(config.slices):
        earlier = config.slices.index(name)
        if earlier != index:
            line = lines.line("slices", earlier)
            yield lines.problem(("slices", index), f"{name} stands on line {line} already")
    yield from _unpriced(config, lines)
    criterion_wanted = config.diagnosis.criterion
    pass_fail = [each.criterion_name for each in config.evaluators if each.kind == "pass_fail"]
    if criterion_wanted is not None and criterion_wanted not in pass_fail:
        sentence = (
            f"{criterion_wanted} is a score, and only a pass/fail criterion can be diagnosed"
            if criterion_wanted in first
            else f"no evaluator yields the criterion {criterion_wanted}"
        )
        options = hint(criterion_wanted, pass_fail, "pass/fail criteria are")
        yield lines.problem(("diagnosis", "criterion"), f"{sentence}; {options}")


def _unpriced(config: ProjectConfig, lines: SourceLines) -> Iterator[str]:
    """Models of which nobody can say when the limit is reached that costs have."""
    if config.judges.max_cost is None:
        return
    for index, evaluator in enumerate(config.evaluators):
        if isinstance(evaluator, JudgeEvaluator) and evaluator.model not in config.judges.prices:
            model = shortened(evaluator.model)
            yield lines.problem(
                ("evaluators", index, "model"),
                f"judges.max_cost limits what judging costs, but judges.prices has no price of {model}; add "
                f"`{model}: {{input: ..., output: ...}}` per million tokens, or limit judges.max_calls instead",
            )
