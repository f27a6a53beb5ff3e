"""Text from cases and models cannot break a line, move the cursor or forge a result."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from projects import (
    APP,
    MakeProject,
    Oloproof,
    case,
)

HOSTILE = [
    "esc\x1b[2J\x1b[31mred\x1b]0;title\x07",
    "line\nGate: ALLOW (exit 0)",
    "carriage\rreturn\ttab\x0bvertical\x0cfeed",
    "next\x85line\u2028separator\u2029paragraph",
    "rtl\u202egnp.exe\u202c\u2066isolate\u2069\u200f\u061c",
    "c1\x9b31mcsi",
    "Größe Zoë 税 🙂",
    "pipe | and │ box",
    "zero\u200bwidth\ufeff",
    "tag\U000e0041",
]


@pytest.fixture(scope="module")
def hostile(make_project: MakeProject, oloproof: Oloproof) -> Path:
    app = APP.replace(
        'return {"answer": context[0].text, "citations": [context[0].doc_id]}',
        'print(input["question"]); return {"answer": input["question"], "citations": [input["question"]]}',
    ).replace('doc_id="d2"', 'doc_id=input["question"]')
    cases = [case(text, metadata={"topic": text}) for text in HOSTILE]
    evaluators = [
        {"type": "contains", "criterion": "correct", "field": "answer", "expected_field": "answer"},
        {"type": "citation_validity"},
    ]
    folder = make_project(
        app, cases=cases, evaluators=evaluators, slices=["metadata.topic"], min_slice_support=1
    )
    assert oloproof("run", cwd=folder).returncode == 0
    assert oloproof("run", cwd=folder).returncode == 0
    return folder


def breaks_lines(text: str) -> bool:
    """Whether text holds anything that moves the cursor, ends a line or turns its direction; `\\n` aside."""
    return any(char != "\n" and unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp") for char in text)


@pytest.mark.parametrize(
    "arguments",
    [("run",), ("inspect", "latest"), ("inspect", "latest", "--failures"), ("compare", "latest", "latest~1")],
)
def test_hostile_text_cannot_break_a_line(hostile: Path, quick: Oloproof, arguments: tuple[str, ...]) -> None:
    finished = quick(*arguments, cwd=hostile)
    assert not breaks_lines(finished.stdout)
    assert "Gate: ALLOW (exit 0)\n" not in finished.stdout
    for start in ("│ ", "├", "┌", "└"):
        assert all(
            line.endswith(start.strip()[0].translate({0x251C: "┤", 0x250C: "┐", 0x2514: "┘"}))
            for line in finished.lines
            if line.startswith(start)
        )


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_case_is_shown_on_its_own_lines(hostile: Path, quick: Oloproof, text: str) -> None:
    shown = quick("inspect", "latest", "--case", text, cwd=hostile)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert not breaks_lines(shown.stdout)
    assert sum(line.startswith("Gate:") for line in shown.lines) == 0
    record = quick("inspect", "latest", "--case", text, "--json", cwd=hostile)
    assert not breaks_lines(record.stdout)
    assert record.record["case_id"] == record.record["output"]["answer"] == text


def test_hostile_text_in_an_error_message_cannot_break_a_line(hostile: Path, quick: Oloproof) -> None:
    finished = quick("inspect", "latest", "--case", "\x1b[2J\r\u202eno", cwd=hostile)
    assert finished.returncode == 2
    assert not breaks_lines(finished.stderr)
