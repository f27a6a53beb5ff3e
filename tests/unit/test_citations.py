"""citation_validity: an answer may cite only what it was given."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oloproof.evaluators import CitationValidity
from oloproof.records import FAILED, PASSED, Candidate, Case, Execution, Judgment, StageError, State

CASE = Case("a", {}, {}, {}, None, None)
MALFORMED = Judgment(State.MISSING, None, "citations_malformed")

#: The third passage was retrieved, but is not part of the context.
CANDIDATES = (
    Candidate("kb-01", None, 0.9, "t1"),
    Candidate("kb-02", "p3", 0.8, "t2"),
    Candidate("kb-03", None, 0.7, "t3"),
)


def judge(citations: Any, evaluator: CitationValidity | None = None, **changes: Any) -> Judgment:
    settings = {"top_k": 2, "kept": 2, "output": {"answer": "yes", "citations": citations}, **changes}
    candidates = settings.pop("candidates", CANDIDATES)
    return (evaluator or CitationValidity()).judge(CASE, Execution(b"", candidates, **settings))


def test_citing_passages_of_the_context_passes() -> None:
    assert judge(["kb-01"]) == PASSED
    assert judge(["kb-01", "kb-02", "kb-01"]) == PASSED


def test_a_citation_may_name_the_chunk() -> None:
    assert judge(["kb-02#p3"]) == PASSED
    assert judge(["kb-02#p4"]) == FAILED
    assert judge(["kb-01#p3"]) == FAILED


def test_citing_what_was_retrieved_but_left_out_of_the_context_fails() -> None:
    assert judge(["kb-03"]) == FAILED


def test_one_wrong_citation_among_right_ones_fails() -> None:
    assert judge(["kb-01", "kb-99"]) == FAILED
    assert judge([""]) == FAILED
    assert judge(["KB-01"]) == FAILED


def test_ids_may_hold_the_separator() -> None:
    candidates = (Candidate("faq#7", None, None, None), Candidate("a#b", "c#d", None, None))
    assert judge(["faq#7", "a#b", "a#b#c#d"], candidates=candidates) == PASSED
    assert judge(["faq"], candidates=candidates) == FAILED
    assert judge(["a#b#c"], candidates=candidates) == FAILED


def test_with_gold_passages_as_context_these_are_what_may_be_cited() -> None:
    gold = (Candidate("kb-03", None, 1.0, "t3"),)
    assert judge(["kb-03"], gold=gold) == PASSED
    assert judge(["kb-01"], gold=gold) == FAILED


@pytest.mark.parametrize("output", [{}, {"citations": None}, {"citations": []}])
def test_citing_nothing_passes_unless_citations_are_required(output: dict[str, Any]) -> None:
    assert judge(None, output=output) == PASSED
    assert judge(None, CitationValidity(require_citations=True), output=output) == FAILED


@pytest.mark.parametrize("citations", ["kb-01", 1, True, {"kb-01": 1}, [1], ["kb-01", None], [["kb-01"]]])
def test_anything_else_than_a_list_of_strings_is_missing(citations: Any) -> None:
    assert judge(citations) == MALFORMED
    assert judge(citations, CitationValidity(require_citations=True)) == MALFORMED


def test_citations_may_stand_in_another_field() -> None:
    evaluator = CitationValidity(field="sources.ids")
    assert judge(None, evaluator, output={"sources": {"ids": ["kb-01"]}}) == PASSED
    assert judge(None, evaluator, output={"sources": {"ids": ["kb-99"]}}) == FAILED


def test_errored_case_is_missing_with_the_kind_of_error() -> None:
    error = StageError("generate", "invalid_return", "not JSON")
    assert judge(None, output=None, error=error) == Judgment(State.MISSING, None, "invalid_return")


@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner), max_leaves=5))
def test_no_citations_make_it_raise(citations: Any) -> None:
    assert judge(citations).state in (State.OBSERVED, State.MISSING)


def test_it_names_itself_and_depends_on_no_expected_value() -> None:
    evaluator = CitationValidity()
    assert evaluator.criterion_name == "citations_valid"
    assert evaluator.expected_key(CASE) == ""
    assert evaluator.case_problem(CASE) is None
    assert evaluator.definition() == {
        "type": "citation_validity",
        "criterion": "citations_valid",
        "field": "citations",
        "require_citations": False,
        "code_version": 1,
    }
