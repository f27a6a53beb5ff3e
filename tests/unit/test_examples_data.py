"""The examples' data have the properties that the documentation and the transcripts build on.

The apps are called directly and the context is assembled here, so nothing of the engine is involved: when
a transcript changes and these tests pass, the change is in the engine.
"""

from __future__ import annotations

import importlib.util
import json
import math
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from oloproof import Passage

EXAMPLES = Path(__file__).parents[2] / "examples"
SUPPORT = EXAMPLES / "support_rag"
FAQ = EXAMPLES / "building_faq"


def load_module(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def assemble(
    candidates: tuple[Passage, ...], top_k: int, budget: int, count: Callable[[Passage], int]
) -> tuple[Passage, ...]:
    """The first `top_k` passages, up to the first that does not fit the budget."""
    context: list[Passage] = []
    used = 0
    for passage in candidates[:top_k]:
        used += count(passage)
        if used > budget:
            break
        context.append(passage)
    return tuple(context)


@dataclass(frozen=True)
class Outcome:
    """One case: whether it passes, also with its gold passage, and where its relevant passages went."""

    passed: bool
    passed_with_gold: bool
    answer: dict[str, Any]
    positions: tuple[int, ...]
    candidates: tuple[Passage, ...]
    context: tuple[Passage, ...]
    truncated: bool


def evaluate(
    system: Any, cases: list[dict[str, Any]], *, depth: int, top_k: int, budget: int
) -> dict[str, Outcome]:
    outcomes = {}
    for case in cases:
        expected = case["expected"]
        relevant = {unit["doc_id"] for unit in expected["relevant"]}
        gold = tuple(Passage(p["doc_id"], 1.0, p["text"]) for p in expected["gold_context"])
        candidates = system.retrieve(case["input"], depth).candidates
        context = assemble(candidates, top_k, budget, system.count_tokens)
        answer = system.generate(case["input"], context)
        outcomes[case["id"]] = Outcome(
            passed=expected["answer"] in answer["answer"],
            passed_with_gold=expected["answer"] in system.generate(case["input"], gold)["answer"],
            answer=answer,
            positions=tuple(n for n, p in enumerate(candidates, 1) if p.doc_id in relevant),
            candidates=candidates,
            context=context,
            truncated=len(context) < len(candidates[:top_k]),
        )
    return outcomes


def failed(outcomes: dict[str, Outcome]) -> set[str]:
    return {ident for ident, outcome in outcomes.items() if not outcome.passed}


# ------------------------------------------------------------------------------------- support_rag


@pytest.fixture(scope="module")
def support_cases() -> list[dict[str, Any]]:
    return read_json_lines(SUPPORT / "data" / "support.jsonl")


@pytest.fixture(scope="module")
def support_system() -> Any:
    return load_module(SUPPORT / "app.py", "example_support_rag").SupportRag()


@pytest.fixture(scope="module")
def support(support_system: Any, support_cases: list[dict[str, Any]]) -> dict[str, Outcome]:
    return evaluate(support_system, support_cases, depth=6, top_k=2, budget=40)


def test_the_support_set_has_thirteen_distinct_questions_over_fourteen_documents(
    support_cases: list[dict[str, Any]],
) -> None:
    assert len({case["input"]["question"] for case in support_cases}) == 13
    assert len({case["id"] for case in support_cases}) == 13
    assert len(read_json_lines(SUPPORT / "data" / "corpus.jsonl")) == 14


def test_every_support_question_has_one_relevant_document_and_its_exact_text_as_gold(
    support_cases: list[dict[str, Any]],
) -> None:
    texts = {d["doc_id"]: d["text"] for d in read_json_lines(SUPPORT / "data" / "corpus.jsonl")}
    for case in support_cases:
        (unit,) = case["expected"]["relevant"]
        assert case["expected"]["gold_context"] == [{"doc_id": unit["doc_id"], "text": texts[unit["doc_id"]]}]


def test_the_case_of_the_design_document_is_kept_to_the_letter() -> None:
    first = (SUPPORT / "data" / "support.jsonl").read_text(encoding="utf-8").splitlines()[0]
    assert first == (
        '{"id":"refund_annual","input":{"question":"How long do refunds take for annual plans?"},'
        '"expected":{"answer":"14 days","relevant":[{"doc_id":"kb-01"}],"gold_context":[{"doc_id":"kb-01",'
        '"text":"Refunds for annual plans are issued within 14 days of an approved request. '
        'Support reviews each request on the same business day."}]},"metadata":{"topic":"billing"}}'
    )


def test_ten_relevant_documents_come_first_two_second_and_one_not_at_all(support: dict[str, Outcome]) -> None:
    by_position = Counter(outcome.positions for outcome in support.values())
    assert by_position == {(1,): 10, (2,): 2, (): 1}
    assert support["refund_review"].positions == support["security_review"].positions == (2,)
    assert support["money_back"].positions == ()


def test_candidates_are_ordered_by_shared_words_and_ties_by_the_corpus(support: dict[str, Outcome]) -> None:
    for outcome in support.values():
        order = [(-(passage.score or 0.0), passage.doc_id) for passage in outcome.candidates]
        assert order == sorted(order)
        assert all(passage.score for passage in outcome.candidates)


def test_nine_support_cases_pass_and_every_citation_is_valid(support: dict[str, Outcome]) -> None:
    assert failed(support) == {"money_back", "refund_review", "seat_count", "security_review"}
    for outcome in support.values():
        assert set(outcome.answer["citations"]) <= {passage.doc_id for passage in outcome.context}


def test_ndcg_of_the_support_set_is_ten_ones_two_seconds_and_a_zero(support: dict[str, Outcome]) -> None:
    gains = [1 / math.log2(outcome.positions[0] + 1) for outcome in support.values() if outcome.positions]
    assert math.fsum(gains) / 13 == pytest.approx((10 + 2 / math.log2(3)) / 13, abs=1e-12)


def test_three_of_four_failures_recover_with_the_gold_passage(support: dict[str, Outcome]) -> None:
    assert {ident for ident in failed(support) if support[ident].passed_with_gold} == {
        "money_back",
        "refund_review",
        "security_review",
    }


def test_seat_count_fails_with_the_right_passage_in_hand(support: dict[str, Outcome]) -> None:
    outcome = support["seat_count"]
    assert outcome.positions == (1,)
    assert "five seats" in outcome.answer["answer"]


def test_an_empty_context_is_answered_without_a_citation(support: dict[str, Outcome]) -> None:
    assert support["money_back"].answer == {
        "answer": "I could not find that in the knowledge base.",
        "citations": [],
    }


def test_a_larger_budget_changes_six_contexts_and_no_verdict(
    support: dict[str, Outcome], support_system: Any, support_cases: list[dict[str, Any]]
) -> None:
    larger = evaluate(support_system, support_cases, depth=6, top_k=2, budget=120)
    truncated = {ident for ident, outcome in support.items() if outcome.truncated}
    assert len(truncated) == 6
    assert truncated >= {"refund_review", "security_review"}
    assert {ident for ident in support if support[ident].context != larger[ident].context} == truncated
    assert failed(larger) == failed(support)


def test_a_larger_top_k_recovers_nothing(
    support: dict[str, Outcome], support_system: Any, support_cases: list[dict[str, Any]]
) -> None:
    assert failed(evaluate(support_system, support_cases, depth=6, top_k=4, budget=40)) == failed(support)


def test_the_worse_app_loses_four_answers_at_four_different_stages_and_gains_one(
    support: dict[str, Outcome], support_cases: list[dict[str, Any]], tmp_path: Path
) -> None:
    shutil.copytree(SUPPORT / "data", tmp_path / "data")
    shutil.copy(EXAMPLES / "support_rag_worse" / "app.py", tmp_path / "app.py")
    system = load_module(tmp_path / "app.py", "example_support_rag_worse").SupportRag()
    worse = evaluate(system, support_cases, depth=6, top_k=2, budget=40)

    assert failed(worse) - failed(support) == {
        "extra_seat",
        "invoice_date",
        "plan_downgrade",
        "trial_length",
    }
    assert failed(support) - failed(worse) == {"seat_count"}
    assert worse["extra_seat"].positions == ()
    assert worse["trial_length"].positions == (3,)
    assert worse["plan_downgrade"].positions == (2,)
    assert worse["plan_downgrade"].truncated
    assert worse["invoice_date"].positions == (1,)
    recovered = {ident for ident in failed(worse) - failed(support) if worse[ident].passed_with_gold}
    assert recovered == {"extra_seat", "plan_downgrade", "trial_length"}


# ------------------------------------------------------------------------------------ building_faq


@pytest.fixture(scope="module")
def faq_directory() -> Iterator[Path]:
    """The example's own directory on the path, as when its files are run where they stand."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FAQ))
        patch.delitem(sys.modules, "sentences", raising=False)
        yield FAQ
        sys.modules.pop("sentences", None)


@pytest.fixture(scope="module")
def faq_cases() -> list[dict[str, Any]]:
    return read_json_lines(FAQ / "data" / "faq.jsonl")


@pytest.fixture(scope="module")
def faq(faq_directory: Path, faq_cases: list[dict[str, Any]]) -> dict[str, Outcome]:
    system = load_module(faq_directory / "app.py", "example_building_faq").BuildingFaq()
    return evaluate(system, faq_cases, depth=10, top_k=3, budget=120)


def test_the_converter_reproduces_the_committed_files(faq_directory: Path) -> None:
    rendered = load_module(faq_directory / "convert.py", "example_building_faq_convert").render()
    assert {path.name for path in rendered} == {"corpus.jsonl", "faq.jsonl"}
    for path, text in rendered.items():
        assert path.read_bytes() == text.encode(), f"{path.name} is out of date: python convert.py"


def test_the_faq_holds_503_cases_and_497_distinct_questions(faq_cases: list[dict[str, Any]]) -> None:
    assert len(faq_cases) == 503
    assert len({case["id"] for case in faq_cases}) == 503
    assert len({case["input"]["question"] for case in faq_cases}) == 497


def test_a_question_asked_twice_has_both_documents_relevant_and_its_own_as_gold(
    faq_cases: list[dict[str, Any]],
) -> None:
    twice = [case for case in faq_cases if len(case["expected"]["relevant"]) == 2]
    assert len(twice) == 12
    for case in twice:
        (gold,) = case["expected"]["gold_context"]
        assert gold["doc_id"] == case["id"]
        assert gold in [
            {"doc_id": document["doc_id"], "text": document["text"]}
            for document in read_json_lines(FAQ / "data" / "corpus.jsonl")
        ]


def test_every_expected_answer_stands_in_its_gold_passage(faq_cases: list[dict[str, Any]]) -> None:
    for case in faq_cases:
        assert case["expected"]["answer"].strip()
        assert case["expected"]["answer"] in case["expected"]["gold_context"][0]["text"]


def test_the_areas_are_coarse_enough_to_say_something(faq_cases: list[dict[str, Any]]) -> None:
    sizes = Counter(case["metadata"]["area"] for case in faq_cases)
    assert len(sizes) == 6
    assert min(sizes.values()) >= 30


def test_the_faq_figures_are_those_of_its_readme(faq: dict[str, Outcome]) -> None:
    passed = sum(outcome.passed for outcome in faq.values())
    hits = sum(any(position <= 3 for position in outcome.positions) for outcome in faq.values())
    truncated = sum(outcome.truncated for outcome in faq.values())
    lost = [outcome.positions for outcome in faq.values() if not outcome.passed]
    missed = sum(not positions for positions in lost)
    low = sum(bool(positions) and positions[0] > 3 for positions in lost)
    readme = (FAQ / "README.md").read_text(encoding="utf-8")
    assert f"| answer_correct | {passed} of 503, {passed / 503:.1%} |" in readme
    assert f"| hit_rate_at_3 | {hits} of 503, {hits / 503:.1%} |" in readme
    text = " ".join(readme.split())
    assert (
        f"in {missed} of the {len(lost)} no relevant passage is among the ten retrieved, in {low} the" in text
    )
    assert f"in {truncated} of all cases" in text


def test_no_faq_retrieval_names_a_document_twice(faq: dict[str, Outcome]) -> None:
    for outcome in faq.values():
        ids = [passage.doc_id for passage in outcome.candidates]
        assert len(set(ids)) == len(ids) <= 10


def test_faq_failures_come_from_every_stage(faq: dict[str, Outcome]) -> None:
    lost = [outcome for outcome in faq.values() if not outcome.passed]
    assert any(not outcome.passed_with_gold for outcome in lost)
    assert any(not outcome.positions for outcome in lost)
    assert any(outcome.positions and outcome.positions[0] > 3 for outcome in lost)
    assert any(outcome.positions and len(outcome.context) < outcome.positions[0] <= 3 for outcome in lost)
    assert any(outcome.positions and outcome.positions[0] <= len(outcome.context) for outcome in lost)


@pytest.mark.parametrize(
    ("setting", "value", "new_failures", "fixed"), [("STEMMER", "None", 9, 8), ("B", "0.4", 5, 10)]
)
def test_a_changed_retriever_flips_the_cases_that_the_readme_counts(
    faq: dict[str, Outcome],
    faq_cases: list[dict[str, Any]],
    tmp_path: Path,
    setting: str,
    value: str,
    new_failures: int,
    fixed: int,
) -> None:
    source = (FAQ / "app.py").read_text(encoding="utf-8")
    changed, edits = re.subn(rf"(?m)^{setting} = .*$", f"{setting} = {value}", source)
    assert edits == 1
    shutil.copytree(FAQ / "data", tmp_path / "data")
    (tmp_path / "app.py").write_text(changed, encoding="utf-8")
    system = load_module(tmp_path / "app.py", f"example_building_faq_{setting.lower()}").BuildingFaq()
    after = evaluate(system, faq_cases, depth=10, top_k=3, budget=120)

    assert len(failed(after) - failed(faq)) == new_failures
    assert len(failed(faq) - failed(after)) == fixed
    row = f"| `{setting} = {value}` | {new_failures} | {fixed} |"
    assert row in (FAQ / "README.md").read_text(encoding="utf-8")
