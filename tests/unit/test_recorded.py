"""What a stored run recorded: its evaluators come back as they judged."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from oloproof.diagnosis.recorded import evaluator_from
from oloproof.evaluators import AnyEvaluator

FIELDS = {"criterion": "correct", "field": "answer", "expected_field": "answer"}
MODEL = {"provider": "openai_compatible", "model": "m", "base_url": "http://127.0.0.1:8000/v1"}


@pytest.mark.parametrize(
    "settings",
    [
        {"type": "contains", **FIELDS},
        {"type": "exact_match", **FIELDS, "ignore_case": True},
        {"type": "regex", "criterion": "polite", "field": "answer", "pattern": "please"},
        {"type": "hit_rate", "k": 2},
        {"type": "recall", "k": 3, "relevance_unit": "chunk"},
        {"type": "mrr", "k": 5},
        {"type": "ndcg", "k": 6},
        {"type": "citation_validity", "require_citations": True},
        {"type": "groundedness_judge", **MODEL, "api_key_env": "KEY", "timeout_seconds": 5},
        {"type": "citation_support_judge", **MODEL, "rubric_text": "The passage says so."},
        {"type": "rubric_judge", **MODEL, "criterion": "kind", "rubric_text": "The answer is kind."},
    ],
    ids=lambda settings: settings["type"],
)
def test_an_evaluator_comes_back_from_its_definition(settings: dict[str, Any]) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(AnyEvaluator)
    evaluator = adapter.validate_python(settings)
    again = evaluator_from(evaluator.definition())
    assert again.definition() == evaluator.definition()
    assert type(again) is type(evaluator)


def test_the_code_of_the_user_s_own_evaluator_comes_back_too() -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(AnyEvaluator)
    evaluator = adapter.validate_python({"type": "python", "criterion": "own", "object": "checks:own"})
    known = evaluator.with_code("c0de")
    assert evaluator_from(known.definition()).definition() == known.definition()


def test_every_kind_of_evaluator_is_tried() -> None:
    (union, *_) = AnyEvaluator.__args__  # type: ignore[attr-defined]
    kinds = {each.model_fields["type"].default for each in union.__args__}
    marks = test_an_evaluator_comes_back_from_its_definition.pytestmark  # type: ignore[attr-defined]
    assert kinds == {settings["type"] for settings in marks[0].args[1]} | {"python"}
