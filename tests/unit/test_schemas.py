"""The schemas are those of the models, and accept and refuse what the models do."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ValidationError
from test_comment import blocked_report, everything

from oloproof.jsonform import to_json
from oloproof.settings.caselines import case_problems
from oloproof.settings.policy import PolicyConfig
from oloproof.settings.project import ProjectConfig
from oloproof_ci.outcome import OUTCOME_VERSION, Failure, JobOutcome, SuiteOutcome
from oloproof_ci.schemas import schemas, text

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "schemas"
EXAMPLES = ROOT / "examples"


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads((FOLDER / f"{name}.schema.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", schemas())
def test_the_file_is_what_the_models_say(name: str) -> None:
    schema = schemas()[name]
    assert (FOLDER / name).read_text(encoding="utf-8") == text(schema), (
        "run `.venv/bin/python -m oloproof_ci.schemas` and look at what changed"
    )
    Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize(
    "path", sorted(EXAMPLES.glob("*/*.yaml")), ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_each_example_names_its_schema_and_follows_it(path: Path) -> None:
    written = path.read_text(encoding="utf-8")
    named = written.splitlines()[0].removeprefix("# yaml-language-server: $schema=")
    schema = json.loads((path.parent / named).read_text(encoding="utf-8"))
    Draft202012Validator(schema).validate(yaml.safe_load(written))


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/data/*.jsonl")), ids=lambda path: path.name)
def test_the_cases_of_the_examples_follow_theirs(path: Path) -> None:
    if path.name == "corpus.jsonl":
        return
    cases = validator("case")
    for line in path.read_text(encoding="utf-8").splitlines():
        cases.validate(json.loads(line))


@pytest.mark.parametrize("report", [blocked_report(), everything()], ids=["golden", "with everything"])
def test_a_report_follows_its_schema(report: Any) -> None:
    validator("report").validate(to_json(report))
    suites = (
        SuiteOutcome("oloproof.yaml", report, None),
        SuiteOutcome("b.yaml", None, Failure(2, "x")),
    )
    outcome = JobOutcome(OUTCOME_VERSION, "a" * 40, 12, 1, 1, "CI", "", suites)
    validator("outcome").validate(to_json(outcome))


# ------------------------------------------------------------------- one change at a time, everywhere

PROJECT: dict[str, Any] = {
    "version": 1,
    "project": "support",
    "dataset": "cases.jsonl",
    "system": {
        "name": "support",
        "version": "1",
        "rag": {"object": "app.rag:Rag", "depth": 6, "top_k": 2, "token_budget": 40, "index_version": "kb-1"},
    },
    "evaluators": [
        {
            "type": "contains",
            "criterion": "correct",
            "field": "answer",
            "expected_field": "a",
            "ignore_case": True,
        },
        {"type": "regex", "criterion": "dated", "field": "answer", "pattern": "x"},
        {"type": "hit_rate", "k": 2, "relevance_unit": "chunk"},
        {"type": "python", "object": "checks:polite", "criterion": "polite", "scale": "score"},
        {"type": "citation_validity", "require_citations": True},
    ],
    "relevance_unit": "document",
    "slices": ["metadata.topic", "relevant_position"],
    "min_slice_support": 4,
    "execution": {"workers": 2, "threads": 1, "timeout_seconds": 5.5, "retries": 0, "memory_mb": 512},
    "diagnosis": {"max_cases": 5, "criterion": "correct"},
    "identity": {"env": ["MODEL"], "ignore_files": ["*.log"], "on_stale_index": "error"},
    "prepare": "make index",
}
POLICY: dict[str, Any] = {
    "version": 1,
    "confidence_level": 0.9,
    "difference_method": "exact",
    "max_missing_fraction": 0.2,
    "block_on": ["FAIL"],
    "warn_on": ["INSUFFICIENT_EVIDENCE"],
    "on_partial_run": "warn",
    "on_suite_change": "review",
    "families": ["topics"],
    "rules": [
        {"id": "a", "metric": "m", "kind": "min", "min": 0.5, "min_support": 3, "max_missing_fraction": 0.1},
        {"id": "b", "metric": "m", "kind": "max", "max": 0.5, "requires_manual_review": True},
        {"id": "c", "metric": "m", "kind": "observed_count", "max_failures": 1},
        {"id": "d", "metric": "m", "kind": "non_inferiority", "margin": 0.5, "direction": "max"},
        {"id": "e", "metric": "m", "kind": "superiority", "difference_method": "bounded"},
        {"id": "f", "metric": "m", "kind": "equivalence", "margin": 1},
        {
            "id": "g",
            "metric": "m",
            "kind": "new_failures",
            "max": 0,
            "scope": "slice/metadata.topic=a",
            "family": "t",
        },
    ],
}
CASE: dict[str, Any] = {
    "id": "one",
    "input": {"question": "Why?"},
    "expected": {
        "answer": "so",
        "relevant": [{"doc_id": "d1", "chunk_id": "c1", "grade": 0.5}],
        "gold_context": [{"doc_id": "d1", "text": "so", "chunk_id": "c1"}],
    },
    "metadata": {"topic": "a"},
}
VALUES: tuple[Any, ...] = (None, True, 0, 1, -1, 7, 0.25, 2.5, "", " ", "x", "a:b", [], ["x"], {}, {"x": 1})


def changed(document: Any) -> Iterator[tuple[str, Any]]:
    """The document with one value replaced, one key or entry left out, or one key more, in every possible place."""

    def places(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        yield path
        inner = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        for key, each in inner:
            yield from places(each, (*path, key))

    for path in places(document, ()):
        if path:
            for value in VALUES:
                yield f"{path} = {value!r}", _with(document, path, value)
            yield f"{path} left out", _without(document, path)
        if isinstance(_at(document, path), dict):
            yield f"{path} with one key more", _with(document, (*path, "unheard_of"), 1)


def _at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def _with(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    copied = copy.deepcopy(document)
    _at(copied, path[:-1])[path[-1]] = value
    return copied


def _without(document: Any, path: tuple[Any, ...]) -> Any:
    copied = copy.deepcopy(document)
    del _at(copied, path[:-1])[path[-1]]
    return copied


def takes(model: type[BaseModel]) -> Callable[[Any], bool]:
    def accepted(document: Any) -> bool:
        try:
            model.model_validate(document)
        except ValidationError:
            return False
        return True

    return accepted


@pytest.mark.parametrize(
    ("name", "document", "accepted"),
    [
        ("oloproof", PROJECT, takes(ProjectConfig)),
        ("policy", POLICY, takes(PolicyConfig)),
        ("case", CASE, lambda case: not case_problems(case, chunked=False)),
    ],
    ids=["oloproof", "policy", "case"],
)
def test_schema_and_model_agree_on_every_single_change(
    name: str, document: Any, accepted: Callable[[Any], bool]
) -> None:
    schema = validator(name)
    assert schema.is_valid(document)
    assert accepted(document)
    disagreed = [what for what, each in changed(document) if schema.is_valid(each) != accepted(each)]
    assert disagreed == []
