"""What a pull request changes of its own cases, found in the two case files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from oloproof.pairing import EvaluatorChange, RenamedCase
from oloproof.run_records import EvaluatorRecord
from oloproof_ci.report import SuiteChanges
from oloproof_ci.suite_changes import MAX_SHOWN, changed_cases, differing_lines, with_evaluators


def case(name: str, answer: Any = "yes", **metadata: Any) -> dict[str, Any]:
    return {
        "id": name,
        "input": {"question": f"Is it {name}?"},
        "expected": {"answer": answer},
        "metadata": metadata,
    }


def lines(cases: Sequence[Any]) -> bytes:
    return "".join(json.dumps(each) + "\n" for each in cases).encode()


def changes(folder: Path, before: Sequence[Any] | bytes, after: Sequence[Any] | bytes) -> SuiteChanges:
    then, now = (each if isinstance(each, bytes) else lines(each) for each in (before, after))
    path = folder / "cases.jsonl"
    path.write_bytes(now)
    differing = differing_lines(path, then)
    return changed_cases(*differing, "old.jsonl", lambda case: case.metadata.get("last") == "failed")


def test_the_same_cases_in_another_order_or_notation_are_no_change(tmp_path: Path) -> None:
    cases = [case("a"), case("b"), case("c", topic="x")]
    spread = "\n\n".join(json.dumps(each, indent=None, separators=(" , ", " : ")) for each in reversed(cases))
    assert changes(tmp_path, cases, b"\xef\xbb\xbf" + spread.encode()) == SuiteChanges()


def test_every_case_that_differs_is_found(tmp_path: Path) -> None:
    before = [
        case("kept"),
        case("gone"),
        case("wrong", "21 days", topic="a"),
        case("old name"),
        case("moved", topic="a"),
    ]
    renamed = case("old name") | {"id": "new name"}
    after = [
        renamed,
        case("added"),
        case("wrong", "3 weeks", topic="b"),
        case("moved", topic="b"),
        case("kept"),
    ]
    found = changes(tmp_path, before, after)
    assert (found.added, found.removed) == (("added",), ("gone",))
    assert found.renamed == (RenamedCase("old name", "new name"),)
    assert [(e.case_id, e.places, e.before, e.after, e.line) for e in found.edited] == [
        ("wrong", ("expected.answer", "metadata.topic"), "21 days", "3 weeks", 3),
        ("moved", ("metadata.topic",), "a", "b", 4),
    ]


def test_removed_cases_that_failed_when_last_measured_are_told_apart(tmp_path: Path) -> None:
    before = [case("kept", last="failed"), case("hard", last="failed"), case("easy", last="passed")]
    found = changes(tmp_path, before, before[:1])
    assert (found.removed, found.removed_failing) == (("hard", "easy"), ("hard",))


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({"answer": "a"}, {}, ("expected.answer", "a", None)),
        ({}, {"answer": ""}, ("expected.answer", None, "")),
        ({"answer": None}, {"answer": "null"}, ("expected.answer", "null", "null")),
        ({"answer": 1}, {"answer": True}, ("expected.answer", "1", "true")),
        ({"list": [1, 2]}, {"list": [2, 1]}, ("expected.list", "[1,2]", "[2,1]")),
        ({"deep": {"er": 1}}, {"deep": {"er": 2}}, ("expected.deep.er", "1", "2")),
        ({"deep": {"er": 1}}, {"deep": "flat"}, ("expected.deep", '{"er":1}', "flat")),
    ],
)
def test_an_edit_shows_what_stood_and_stands(
    tmp_path: Path, before: Any, after: Any, told: tuple[str, str | None, str | None]
) -> None:
    cases = [{"id": "a", "input": 1, "expected": expected} for expected in (before, after)]
    (edited,) = changes(tmp_path, cases[:1], cases[1:]).edited
    assert (edited.places, edited.before, edited.after) == ((told[0],), told[1], told[2])


def test_of_very_many_edits_all_are_named_and_the_first_are_shown(tmp_path: Path) -> None:
    count = MAX_SHOWN + 5
    found = changes(
        tmp_path, [case(str(n)) for n in range(count)], [case(str(n), "no") for n in range(count)]
    )
    assert len(found.edited) == count
    assert [bool(each.places) for each in found.edited] == [True] * MAX_SHOWN + [False] * 5


@pytest.mark.parametrize(
    ("before", "problem"),
    [
        (b'{"id": "a", "input": 1}\n{"id": "b"\n', "old.jsonl:2: not valid JSON"),
        (b'\n{"id": 7, "input": 1}\n', "old.jsonl:2: the id 7 is a number"),
    ],
    ids=["no JSON", "no case"],
)
def test_a_base_whose_cases_cannot_be_read_says_why(
    tmp_path: Path, before: bytes | None, problem: str
) -> None:
    found = changes(tmp_path, before, [case("a")])
    assert found.problem.startswith(problem)
    assert found == SuiteChanges(problem=found.problem)


def test_files_that_an_evaluator_reads_are_looked_up_in_the_base() -> None:
    there = {"same.txt": b"", "other.txt": b"then"}
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    data = {"same.txt": empty, "other.txt": empty, "new.txt": empty, "folder/": "1"}
    head = EvaluatorRecord("own", "pass_fail", "answer", {"type": "python"}, data)
    base = EvaluatorRecord("own", "pass_fail", "answer", {"type": "python"})
    found = with_evaluators(SuiteChanges(added=("a",)), [head], [base], lambda path: there.get(path.name))
    assert found == SuiteChanges(
        added=("a",), evaluators=(EvaluatorChange("own", "data", ("new.txt", "other.txt")),)
    )
