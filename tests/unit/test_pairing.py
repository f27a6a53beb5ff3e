"""Which cases of two suites are the same, and which evaluators judge in the same way."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from oloproof.pairing import Change, EvaluatorChange, RenamedCase, pair_cases, pair_evaluators
from oloproof.run_records import EvaluatorRecord


def keys(**contents: str) -> list[tuple[str, bytes]]:
    return [(case_id, content.encode()) for case_id, content in contents.items()]


def test_equal_ids_and_contents_pair_in_the_candidates_order() -> None:
    pairs = pair_cases(keys(c="3", a="1", b="2"), keys(a="1", b="2", c="3"))
    assert (list(pairs.candidate), list(pairs.baseline)) == ([0, 1, 2], [2, 0, 1])
    assert (pairs.added, pairs.removed, pairs.edited, pairs.renamed) == ((), (), (), ())


def test_what_does_not_pair_is_named() -> None:
    pairs = pair_cases(keys(kept="1", edited="2b", added="4"), keys(kept="1", edited="2a", removed="3"))
    assert list(pairs.candidate) == [0]
    assert (pairs.added, pairs.removed, pairs.edited) == (("added",), ("removed",), ("edited",))


def test_a_renamed_case_pairs_and_both_its_names_are_told() -> None:
    pairs = pair_cases(keys(x="0", new="1"), keys(old="1", x="0"))
    assert (list(pairs.candidate), list(pairs.baseline)) == ([0, 1], [1, 0])
    assert pairs.renamed == (RenamedCase("old", "new"),)
    assert (pairs.added, pairs.removed, pairs.edited) == ((), (), ())


def test_two_cases_that_swapped_their_ids_pair_by_their_contents() -> None:
    pairs = pair_cases(keys(a="2", b="1"), keys(a="1", b="2"))
    assert (list(pairs.candidate), list(pairs.baseline)) == ([0, 1], [1, 0])
    assert set(pairs.renamed) == {RenamedCase("b", "a"), RenamedCase("a", "b")}


def test_a_case_that_took_the_content_of_another_leaves_its_own_behind() -> None:
    pairs = pair_cases(keys(a="2"), keys(a="1", b="2"))
    assert pairs.renamed == (RenamedCase("b", "a"),)
    assert (pairs.added, pairs.removed, pairs.edited) == ((), ("a",), ())


def test_of_equal_cases_each_pairs_once() -> None:
    for ours in (keys(c="1", d="1", e="1"), keys(e="1", d="1", c="1")):
        for theirs in (keys(a="1", b="1"), keys(b="1", a="1")):
            pairs = pair_cases(ours, theirs)
            assert set(pairs.renamed) == {RenamedCase("a", "c"), RenamedCase("b", "d")}
            assert pairs.added == ("e",)


def test_the_order_of_the_cases_changes_no_pair() -> None:
    drawing = random.Random(7)
    ours = keys(**{f"c{n}": str(n if n % 5 else n % 4 + 1000) for n in range(60)})
    theirs = keys(**{f"c{n}" if n % 7 else f"old{n}": str(n if n % 9 else 1000) for n in range(70)})

    def outcome(a: list[tuple[str, bytes]], b: list[tuple[str, bytes]]) -> Any:
        found = pair_cases(a, b)
        paired = {(a[i][0], b[j][0]) for i, j in zip(found.candidate, found.baseline, strict=True)}
        return paired, set(found.renamed), set(found.added), set(found.removed), set(found.edited)

    first = outcome(ours, theirs)
    for _ in range(5):
        drawing.shuffle(ours)
        drawing.shuffle(theirs)
        assert outcome(ours, theirs) == first


# ----------------------------------------------------------------------------------------- evaluators


def evaluator(
    criterion: str = "correct", *, data: Mapping[str, str | None] | None = None, **definition: Any
) -> EvaluatorRecord:
    settings = {"type": "contains", "field": "answer", "criterion": criterion, "code_version": 1}
    return EvaluatorRecord(criterion, "pass_fail", "answer", settings | definition, data or {})


def test_equal_evaluators_pair_whatever_their_order() -> None:
    pairs = pair_evaluators([evaluator("a"), evaluator("b")], [evaluator("b"), evaluator("a")])
    assert [(e.criterion, i, j) for e, i, j in pairs.shared] == [("a", 0, 1), ("b", 1, 0)]
    assert pairs.changes == ()


@pytest.mark.parametrize(
    ("now", "before", "change", "detail"),
    [
        (evaluator(field="text"), evaluator(), "settings", ("field",)),
        (evaluator(k=3), evaluator(), "settings", ("k",)),
        (evaluator(code_version=2), evaluator(), "code", ()),
        (evaluator(code="f1"), evaluator(code="f2"), "code", ()),
        (evaluator(data={"words.txt": "1"}), evaluator(data={"words.txt": "2"}), "data", ("words.txt",)),
        (evaluator(data={"words.txt": None}), evaluator(data={"words.txt": "2"}), "data", ("words.txt",)),
    ],
    ids=[
        "a setting",
        "a new setting",
        "our code",
        "the user's code",
        "a file it reads",
        "a file that is gone",
    ],
)
def test_an_evaluator_changed_under_its_name_is_not_shared(
    now: EvaluatorRecord, before: EvaluatorRecord, change: Change, detail: tuple[str, ...]
) -> None:
    pairs = pair_evaluators([now], [before])
    assert pairs.shared == ()
    assert pairs.changes == (EvaluatorChange("correct", change, detail),)


def test_files_that_only_one_run_had_to_read_are_no_change() -> None:
    now, before = evaluator(data={"a": "1", "b": "2"}), evaluator(data={"a": "1", "c": "3"})
    assert pair_evaluators([now], [before]).changes == ()


def test_an_evaluator_under_a_new_name_is_renamed_and_still_compared() -> None:
    pairs = pair_evaluators([evaluator("right")], [evaluator("correct")])
    assert pairs.changes == (EvaluatorChange("right", "renamed", ("correct",)),)
    assert [e.criterion for e, _, _ in pairs.shared] == ["right"]


def test_evaluators_of_one_side_are_added_or_removed() -> None:
    pairs = pair_evaluators([evaluator("new", field="x")], [evaluator("old", field="y")])
    assert pairs.changes == (EvaluatorChange("new", "added"), EvaluatorChange("old", "removed"))
    assert pairs.shared == ()


def test_a_copy_under_a_second_name_is_added_and_the_first_stays() -> None:
    pairs = pair_evaluators([evaluator("correct"), evaluator("copy")], [evaluator("correct")])
    assert pairs.changes == (EvaluatorChange("copy", "added"),)
    assert [e.criterion for e, _, _ in pairs.shared] == ["correct"]
