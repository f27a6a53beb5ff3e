"""Foreign text on a terminal: it stays on its line, moves no cursor and turns no direction."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oloproof.report.tables import grid
from oloproof.report.terminal import plain, plain_json, plain_lines

#: Joiners shape letters and emoji, a soft hyphen is invisible: neither moves or forges anything.
HARMLESS_FORMAT = set("\u200c\u200d\xad")


def dangerous(text: str) -> set[str]:
    return {c for c in text if unicodedata.category(c) in ("Cc", "Zl", "Zp")} | set(
        "\u061c\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
    ) & set(text)


@given(st.text())
def test_no_text_keeps_a_dangerous_character_or_leaves_its_line(text: str) -> None:
    assert not dangerous(plain(text))
    assert len(plain(text).splitlines()) <= 1


@given(st.recursive(st.none() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_made_plain_is_json_of_the_same_value(value: object) -> None:
    shown = plain_json(json.dumps(value, ensure_ascii=False, indent=2))
    assert json.loads(shown) == value
    assert not dangerous(shown) - {"\n"}


@pytest.mark.parametrize("text", ["Größe", "税 🙂", "a | b", "עברית", "👩\u200d🔬", "C:\\new", ""])
def test_ordinary_text_of_any_language_stays_as_it_is(text: str) -> None:
    assert plain(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x9b31m", "\\x9b31m"),
        ("\u2028", "\\u2028"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\U000e0041", "\\U000e0041"),
        ("\x00\x7f", "\\x00\\x7f"),
    ],
)
def test_what_is_dangerous_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_lines_of_foreign_text_are_escaped_one_by_one() -> None:
    assert plain_lines("one\x1b[2J\ntwo\rthree\u2028four") == ["one\\x1b[2J", "two", "three", "four"]


def test_a_table_is_neither_wrapped_nor_cut_nor_read_as_numbers() -> None:
    lines = grid(["Name", "Value"], [["x" * 300, "1e5"], ["", "007"]])
    assert len({len(line) for line in lines}) == 1
    assert lines[3] == f"│ {'x' * 300} │ 1e5   │"
    assert "007" in lines[4]
