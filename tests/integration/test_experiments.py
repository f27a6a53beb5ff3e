"""Candidate experiments, tried in a preview on the recorded retrieval: what they recover and what they break."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from previews import Edit, Repository, entered, make_repository

#: Answers "blue" where a passage of the context says so. d4 is as long as three others.
APP = """
import os

from oloproof import Passage, Retrieval, rag_system

TEXTS = {"d1": "blue", "d2": "red", "d3": "green", "d4": "a long story"}


def note(stage):
    with open(os.environ["NOTES"], "a") as file:
        file.write(stage + "\\n")


def found(question):
    return ["d1", "d4", "d2"] if "heavy" in question else ["d1", "d2", "d3"]


def by_name(input, candidates):
    note("rerank")
    return sorted(candidates, key=lambda passage: passage.doc_id)


def raises(input, candidates):
    raise ValueError("no |order|")


@rag_system(name="tried", version="1", depth=3, top_k=2, token_budget=13, index_version="1")
class Rag:
    def retrieve(self, input, depth):
        note("retrieve")
        names = found(input["question"])
        passages = [Passage(doc_id=name, score=1.0 / n, text=TEXTS[name]) for n, name in enumerate(names, 1)]
        return Retrieval(query=input, depth=depth, candidates=tuple(passages))

    def generate(self, input, context):
        note("generate")
        if "narrow" in input["question"] and len(context) > 2:
            return {"answer": "too much"}
        return {"answer": " ".join(passage.text for passage in context)}

    def count_tokens(self, passage):
        return 12 if passage.doc_id == "d4" else 4
"""
CONFIG = {
    "version": 1,
    "dataset": "cases.jsonl",
    "system": {"rag": {"object": "app:Rag"}},
    "evaluators": [
        {"type": "contains", "criterion": "correct", "field": "answer", "expected_field": "answer"}
    ],
}
QUESTIONS = ("late one", "late two", "heavy one", "heavy two", "narrow", *(f"plain {n}" for n in range(6)))
#: Four new failures: two whose passage ranks third, and two whose passage the budget drops.
WORSE: Edit = (
    "app.py",
    'return ["d1", "d4", "d2"] if "heavy" in question else ["d1", "d2", "d3"]',
    'if "late" in question:\n        return ["d2", "d3", "d1"]\n'
    '    return ["d4", "d1", "d2"] if "heavy" in question else ["d1", "d2", "d3"]',
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    gold = [{"doc_id": "d1", "text": "blue"}]
    expected = {"answer": "blue", "relevant": [{"doc_id": "d1"}], "gold_context": gold}
    cases = [
        {"id": question.replace(" ", "_"), "input": {"question": question}, "expected": expected}
        for question in QUESTIONS
    ]
    return make_repository(tmp_path_factory.mktemp("tried"), APP, CONFIG, cases)


@pytest.fixture
def repository(
    made: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Repository]:
    yield entered(made, monkeypatch, capsys)
    made.git("checkout", "--quiet", "--force", "main")


def tried(report: Any) -> dict[str, Any]:
    (found,) = report["failures"]
    return {each["setting"]: each for each in found["experiments"]}


def test_each_candidate_that_can_be_replayed_is_tried_on_what_fails_and_what_passes(
    repository: Repository,
) -> None:
    report = repository.preview(WORSE, experiments={"rerankers": ["app:by_name"]})
    found = tried(report)
    assert list(found) == ["top-k 3", "token-budget 16", "reranker app:by_name"]
    assert {name: (sorted(each["recovered"]), each["broken"]) for name, each in found.items()} == {
        "top-k 3": (["late_one", "late_two"], ["narrow"]),
        "token-budget 16": (["heavy_one", "heavy_two"], []),
        "reranker app:by_name": (["heavy_one", "heavy_two", "late_one", "late_two"], []),
    }
    # Only contexts that change are generated: the budget's in the two heavy cases, top_k's in all others.
    assert [each["calls"] for each in found.values()] == [9, 2, 4]
    assert {(each["failures"], each["passing"]) for each in found.values()} == {(4, 7)}
    assert repository.calls["retrieve"] == 2 * len(QUESTIONS)
    assert (
        "**Tried on the recorded retrieval** (hypotheses to test): `top-k 3` recovers 2 of 4 and breaks 1 of 7 "
        "(`narrow`) · `token-budget 16` recovers 2 of 4 and breaks 0 of 7 · `reranker app:by_name` recovers 4 of 4 and "
        "breaks 0 of 7"
    ) in repository.text


def test_beyond_the_budget_the_failures_and_a_sample_of_the_rest_are_tried(repository: Repository) -> None:
    # Gold runs (one, of four equal contexts apart from their questions) and repeats take twelve, the swaps none.
    report = repository.preview(WORSE, diagnosis={"max_generate_calls": 24})
    (failures,) = report["failures"]
    assert failures["calls"] <= 24
    found = tried(report)["top-k 3"]
    assert (found["failures"], found["all_failures"], found["all_passing"]) == (4, 4, 7)
    assert found["passing"] < 7
    assert sorted(found["recovered"]) == ["late_one", "late_two"]
    assert f"breaks {len(found['broken'])} of {found['passing']} tried, of 7" in repository.text
    assert "of 7,\n" not in repository.text


def test_what_the_budget_does_not_reach_is_named_as_not_tried(repository: Repository) -> None:
    """Gold runs and repeats leave two calls for four settings."""
    rerankers = {"rerankers": ["app:by_name", "app:raises"]}
    report = repository.preview(WORSE, diagnosis={"max_generate_calls": 12}, experiments=rerankers)
    assert tried(report)["top-k 3"]["error"] == "no call of generate is left of the budget"
    assert "`top-k 3` could not be tried: no call of generate is left of the budget" in repository.text
    assert report["failures"][0]["calls"] <= 12


def test_a_reranker_that_raises_is_named_with_its_case_and_the_rest_is_reported(
    repository: Repository,
) -> None:
    report = repository.preview(
        WORSE, experiments={"rerankers": ["app:raises", "app:missing", "nowhere:best", "app:by_name"]}
    )
    found = tried(report)
    assert "the reranker app:raises failed on the case" in found["reranker app:raises"]["error"]
    assert "no |order|" in found["reranker app:raises"]["error"]
    assert "app:missing" in found["reranker app:missing"]["error"]
    assert "nowhere" in found["reranker nowhere:best"]["error"]
    assert found["reranker app:raises"]["failures"] == 0
    assert "`reranker app:raises` could not be tried: the reranker app:raises failed" in repository.text
    assert len(found["reranker app:by_name"]["recovered"]) == 4


def test_nothing_is_tried_where_nothing_on_the_recorded_retrieval_could_help(repository: Repository) -> None:
    mute = (
        "app.py",
        'return {"answer": " ".join(passage.text for passage in context)}',
        'return {"answer": "?"}',
    )
    report = repository.preview(mute, experiments={"rerankers": ["app:by_name"]})
    assert tried(report) == {}
    assert "Tried on the recorded retrieval" not in repository.text


def test_a_reranker_that_is_no_function_path_is_refused_with_its_line(repository: Repository) -> None:
    repository.edit(
        ("oloproof.yaml", '"version": 1', '"version": 1, "experiments": {"rerankers": ["by_name"]}')
    )
    assert repository.oloproof("run") == 2
    assert "oloproof.yaml:1: experiments.rerankers[0]: expected module:function" in repository.errors
