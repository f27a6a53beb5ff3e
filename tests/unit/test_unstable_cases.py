"""Unstable cases are remembered with the share of their repeats, until many repeats in a row hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from oloproof.report.unstable_text import MAX_NAMED, unstable_lines
from oloproof.store.database import Database
from oloproof.store.unstable import ENOUGH_REPEATS, UnstableCase, UnstableCases

PAIR, OTHER = b"p" * 32, b"o" * 32


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "store.sqlite3")
    yield database
    database.close()


def known(store: Database, pair: bytes = PAIR, name: str = "flaky") -> tuple[UnstableCase, ...]:
    """What is remembered of a run with one case."""
    row = ("run", 0, name, b"", pair, None, "[]", "[]", None, "{}", "", "[]", None, 0)
    store.write("INSERT OR REPLACE INTO run_case VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [row])
    return UnstableCases(store).of_run("run")


def note(store: Database, differed: int, observed: int, criterion: str = "correct") -> None:
    UnstableCases(store).note(criterion, [(PAIR, differed, observed)])


def test_a_case_whose_repeats_hold_is_not_remembered(store: Database) -> None:
    note(store, 0, 3)
    assert known(store) == ()


def test_the_repeats_of_an_unstable_case_add_up_those_that_held_included(store: Database) -> None:
    note(store, 1, 1)
    note(store, 0, 2)
    note(store, 2, 3)
    assert known(store) == (UnstableCase("flaky", "correct", 3, 6),)


def test_a_case_is_forgotten_when_enough_repeats_at_once_hold(store: Database) -> None:
    note(store, 1, 1)
    note(store, 0, ENOUGH_REPEATS - 1)
    assert known(store) != ()
    note(store, 0, ENOUGH_REPEATS)
    assert known(store) == ()


def test_each_criterion_is_remembered_for_itself(store: Database) -> None:
    note(store, 1, 1, "correct")
    note(store, 1, 2, "complete")
    assert [each.criterion for each in known(store)] == ["complete", "correct"]


def test_a_case_with_another_input_or_expected_value_is_another_case(store: Database) -> None:
    note(store, 1, 1)
    assert known(store, OTHER) == ()


def test_a_renamed_case_is_still_known(store: Database) -> None:
    note(store, 1, 1)
    assert known(store, name="renamed") == (UnstableCase("renamed", "correct", 1, 1),)


def test_reports_name_the_first_of_many_and_only_the_criteria_that_they_tell_of() -> None:
    many = [UnstableCase(f"case\x1b {n:02d}", "correct", 1, 2) for n in range(MAX_NAMED + 3)]
    other = UnstableCase("other", "complete", 1, 1)
    (line,) = unstable_lines([*many, other], ["correct"])
    assert line.startswith("Unstable when repeated before: case\\x1b 00 (differed in 1 of 2 repeats), case")
    assert line.endswith("(differed in 1 of 2 repeats) and 3 more")
    (line,) = unstable_lines([many[0], other], ["correct", "complete"])
    assert line.endswith("(correct differed in 1 of 2 repeats), other (complete differed in 1 of 1 repeat)")
    assert unstable_lines([other], ["correct"]) == []
