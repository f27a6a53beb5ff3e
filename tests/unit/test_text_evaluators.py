"""contains, exact_match and regex."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from oloproof.evaluators import AnyEvaluator, Contains, Evaluator, ExactMatch, Regex
from oloproof.records import FAILED, PASSED, Case, Execution, Judgment, StageError, State

COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"

contains = Contains(criterion="answer_correct", field="answer", expected_field="answer")
exact = ExactMatch(criterion="answer_exact", field="answer", expected_field="answer")
by_case = Regex(criterion="answer_pattern", field="answer", expected_field="answer")

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def case(**expected: Any) -> Case:
    return Case("a", {}, expected, {}, None, None)


def execution(output: Mapping[str, Any] | None, error: StageError | None = None) -> Execution:
    return Execution(b"", (), 2, 0, output, error)


def judge(evaluator: Evaluator, answer: Any, expected: Any) -> Judgment:
    return evaluator.judge(case(answer=expected), execution({"answer": answer}))


def missing(reason: str) -> Judgment:
    return Judgment(State.MISSING, None, reason)


# ------------------------------------------------------------------------------------------------- comparing


def test_contains_looks_anywhere_in_the_answer() -> None:
    assert judge(contains, "Refunds take 14 days.", "14 days") == PASSED
    assert judge(contains, "Refunds take 5 days.", "14 days") == FAILED


def test_contains_is_literal_about_case_and_white_space() -> None:
    assert judge(contains, "14 Days", "14 days") == FAILED
    assert judge(contains, "14  days", "14 days") == FAILED
    assert judge(contains, "a.c", "abc") == FAILED


def test_exact_match_takes_the_whole_answer() -> None:
    assert judge(exact, "14 days", "14 days") == PASSED
    assert judge(exact, "14 days.", "14 days") == FAILED
    assert judge(exact, "", "") == PASSED
    assert judge(exact, "x", "") == FAILED


@pytest.mark.parametrize("evaluator", [contains, exact, by_case], ids=lambda e: e.type)
@pytest.mark.parametrize("answer", [COMPOSED, DECOMPOSED])
@pytest.mark.parametrize("expected", [COMPOSED, DECOMPOSED])
def test_one_character_typed_in_two_ways_is_equal(evaluator: Evaluator, answer: str, expected: str) -> None:
    assert judge(evaluator, answer, expected) == PASSED


def test_a_letter_is_not_found_inside_an_accented_one() -> None:
    assert judge(contains, DECOMPOSED, "cafe") == FAILED


@pytest.mark.parametrize(
    ("answer", "expected"), [("14 DAYS", "14 days"), ("STRASSE", "Straße"), ("CAFE\u0301", COMPOSED)]
)
def test_ignore_case_folds_both_sides(answer: str, expected: str) -> None:
    assert judge(contains.model_copy(update={"ignore_case": True}), answer, expected) == PASSED
    assert judge(exact.model_copy(update={"ignore_case": True}), answer, expected) == PASSED
    assert judge(exact, answer, expected) == FAILED


def test_regex_is_searched_anywhere() -> None:
    regex = Regex(criterion="days", field="answer", pattern=r"\b\d+ days\b")
    assert judge(regex, "Within 14 days.", None) == PASSED
    assert judge(regex, "Within two weeks.", None) == FAILED
    assert judge(regex, "Within 14 DAYS.", None) == FAILED
    assert judge(regex.model_copy(update={"ignore_case": True}), "Within 14 DAYS.", None) == PASSED


def test_each_case_may_bring_its_own_regex() -> None:
    assert judge(by_case, "14 days", r"^\d+ days$") == PASSED
    assert judge(by_case, "two weeks", r"^\d+ days$") == FAILED


def test_field_may_be_a_dotted_path() -> None:
    nested = Contains(criterion="c", field="result.text", expected_field="final.answer")
    written = case(final={"answer": "14"})
    assert nested.judge(written, execution({"result": {"text": "14 days"}})) == PASSED
    assert nested.judge(written, execution({"result.text": "14 days"})) == PASSED
    assert nested.judge(written, execution({"result": "14 days"})) == missing("output_field_absent")
    assert nested.judge(written, execution({"result": ["14 days"]})) == missing("output_field_absent")


# --------------------------------------------------------------------------------------- outputs gone wrong

every_evaluator = pytest.mark.parametrize("evaluator", [contains, exact, by_case], ids=lambda e: e.type)


@every_evaluator
def test_output_without_the_field_is_missing(evaluator: Evaluator) -> None:
    assert evaluator.judge(case(answer="x"), execution({})) == missing("output_field_absent")
    assert evaluator.judge(case(answer="x"), execution(None)) == missing("output_field_absent")


@every_evaluator
@pytest.mark.parametrize("answer", [None, 14, 1.5, True, ["x"], {"x": "x"}])
def test_output_that_is_no_text_is_missing(evaluator: Evaluator, answer: Any) -> None:
    assert judge(evaluator, answer, "x") == missing("output_field_not_text")


@every_evaluator
@pytest.mark.parametrize("kind", ["exception", "timeout", "crash"])
def test_errored_case_is_missing_with_the_kind_of_error(evaluator: Evaluator, kind: str) -> None:
    errored = execution(None, StageError("generate", kind, "went wrong"))
    assert evaluator.judge(case(answer="x"), errored) == missing(kind)


@given(json_values, json_values)
def test_no_output_and_no_expected_value_make_an_evaluator_raise(answer: Any, expected: Any) -> None:
    for evaluator in (contains, exact, by_case):
        judgment = judge(evaluator, answer, expected)
        if evaluator.case_problem(case(answer=expected)) is not None:
            assert judgment.state is State.MISSING


# ------------------------------------------------------------------------------------ cases gone wrong


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        (None, "null"),
        ("", "empty"),
        (" \n", "blank"),
        (14, "the number 14"),
        (True, "true"),
        (["x"], "a list"),
        ({"x": 1}, "an object"),
    ],
)
def test_contains_refuses_an_expected_value_that_any_answer_would_meet_or_miss(
    expected: Any, words: str
) -> None:
    problem = f"expected.answer is {words}; contains needs a non-empty string"
    assert contains.case_problem(case(answer=expected)) == problem
    assert judge(contains, "any answer", expected) == missing("expected_value_unusable")


@every_evaluator
def test_case_without_the_expected_field_has_a_problem(evaluator: Evaluator) -> None:
    problem = evaluator.case_problem(case(relevant=[]))
    assert problem is not None
    assert problem.startswith("expected.answer is not declared; ")


def test_exact_match_takes_an_empty_string_but_no_null() -> None:
    assert exact.case_problem(case(answer="")) is None
    assert exact.case_problem(case(answer=None)) == "expected.answer is null; exact_match needs a string"


def test_regex_of_a_case_must_compile() -> None:
    assert by_case.case_problem(case(answer=r"\d+")) is None
    assert by_case.case_problem(case(answer="a[")) == (
        "expected.answer is not a valid regular expression: unterminated character set at position 1"
    )
    assert by_case.case_problem(case(answer="")) == (
        "expected.answer is empty; regex needs a regular expression in a non-empty string"
    )
    assert judge(by_case, "a[", "a[") == missing("expected_value_unusable")


def test_regex_in_the_settings_leaves_the_case_alone() -> None:
    regex = Regex(criterion="days", field="answer", pattern="days")
    assert regex.case_problem(case()) is None
    assert regex.expected_key(case(answer="x")) == ""


# ------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pattern": "(ab"}, "unterminated subpattern at position 0"),
        ({"pattern": "a{99999999999999999999}"}, "too large"),
        ({"pattern": ""}, "at least 1 character"),
        ({}, "exactly one of pattern and expected_field"),
        ({"pattern": "a", "expected_field": "answer"}, "exactly one of pattern and expected_field"),
    ],
)
def test_wrong_regex_settings_are_refused_with_the_position(changes: dict[str, Any], words: str) -> None:
    entry = {"type": "regex", "criterion": "c", "field": "answer", **changes}
    with pytest.raises(ValidationError, match=words):
        TypeAdapter(AnyEvaluator).validate_python(entry)


def test_a_doubtful_pattern_raises_no_warning() -> None:
    assert judge(Regex(criterion="c", field="answer", pattern="[[a]"), "a", None) == PASSED


@pytest.mark.parametrize("absent", ["criterion", "field", "expected_field"])
def test_text_evaluators_need_their_names(absent: str) -> None:
    entry = {"type": "contains", "criterion": "c", "field": "answer", "expected_field": "answer"}
    del entry[absent]
    with pytest.raises(ValidationError, match=absent):
        TypeAdapter(AnyEvaluator).validate_python(entry)


def test_judgment_depends_on_the_expected_field_only() -> None:
    assert contains.expected_key(case(answer="x", relevant=[])) == '"x"'
    assert contains.expected_key(case(answer="x")) != contains.expected_key(case(answer="y"))
    assert contains.expected_key(case()) == ""


def test_definition_holds_every_setting() -> None:
    assert contains.definition() == {
        "type": "contains",
        "criterion": "answer_correct",
        "field": "answer",
        "expected_field": "answer",
        "ignore_case": False,
        "code_version": 1,
    }
    assert contains.binary_on(case())
    assert (contains.kind, contains.reads) == ("pass_fail", "answer")
