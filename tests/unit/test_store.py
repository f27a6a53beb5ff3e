"""The store's entries: waiting or written, an entry is found, stands once, and is not lost when the store closes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from oloproof.store import database as module
from oloproof.store.database import Database


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "store.sqlite3")
    yield database
    database.close()


def entry(number: int, text: str = "text") -> tuple[str, str]:
    return f"{number:06d}", text


def written(store: Database) -> int:
    """How many entries another process would see."""
    with sqlite3.connect(store.path) as other:
        (count,) = other.execute("SELECT count(*) FROM text").fetchone()
    other.close()
    return int(count)


def test_an_entry_is_found_before_and_after_it_is_written(store: Database) -> None:
    store.add("text", [entry(1)])
    assert written(store) == 0
    assert store.find("text", "000001") == entry(1)
    store.commit()
    assert written(store) == 1
    assert store.find("text", "000001") == entry(1)
    assert store.find("text", "000002") is None


def test_many_are_looked_up_at_once_whether_written_or_waiting(store: Database) -> None:
    numbers = range(3 * module.MAX_IDS)
    store.add("text", [entry(number) for number in numbers if number % 3 == 0])
    store.commit()
    store.add("text", [entry(number) for number in numbers if number % 3 == 1])
    found = store.find_all("text", [entry(number)[0] for number in numbers])
    assert sorted(found.values()) == [entry(number) for number in numbers if number % 3 != 2]


@pytest.mark.parametrize("commit_between", [False, True])
def test_the_first_entry_of_an_id_stands(store: Database, commit_between: bool) -> None:
    store.add("text", [entry(1, "first")])
    if commit_between:
        store.commit()
    store.add("text", [entry(1, "second")])
    store.commit()
    assert store.find("text", "000001") == entry(1, "first")


def test_entries_are_written_without_being_asked_when_many_wait(store: Database) -> None:
    for number in range(module.MAX_WAITING):
        store.add("text", [entry(number)])
    assert written(store) == module.MAX_WAITING


def test_closing_writes_what_waits(tmp_path: Path) -> None:
    first = Database(tmp_path / "store.sqlite3")
    first.add("text", [entry(1)])
    first.close()
    second = Database(tmp_path / "store.sqlite3")
    assert second.find("text", "000001") == entry(1)
    second.close()
