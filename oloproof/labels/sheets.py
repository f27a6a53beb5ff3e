"""Blind sheets: what people are to judge, without a word of what the judge said.

JSONL sheets hold all that a label needs. CSV sheets are for spreadsheet programs: a cell that one would take for a
formula begins with an apostrophe, and so does what would become a cell of its own in a program that splits lines at
another character. What was judged is not read back from those, since such programs change long texts, but found in the
run that the line names.

Source of the characters: https://owasp.org/www-community/attacks/CSV_Injection
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from oloproof.canonical import canonical_json
from oloproof.errors import ConfigurationError
from oloproof.labels.files import Problems, json_line, read_json_object, read_name, read_verdict
from oloproof.labels.items import Item, item_from_json

Format = Literal["jsonl", "csv"]
COLUMNS = ("verdict", "by", "question", "input", "answer", "expected", "passages", "criterion", "run", "item")
#: What spreadsheet programs take for the beginning of a formula, where a cell begins or might begin, behind what some
#: leave out.
_FORMULA = re.compile(
    r"""(\A|[;,|\t\r\n])([\s\0-\x1f"'\u200b-\u200f\u2060\ufeff]{0,30}?)(?=[=+\-@＝＋－＠])"""
)


@dataclass(frozen=True)
class SheetLine:
    """A line that holds a verdict. `item` is the digest of what was judged, `content` the same in full where the line
    has it."""

    number: int
    item: str
    verdict: str
    by: str
    criterion: str
    run: str
    content: Item | None = None


def sheet_text(items: Sequence[Item], criterion: str, run: str, form: Format) -> str:
    """A sheet of items, with empty verdicts."""
    if form == "jsonl":
        return "".join(
            json_line(
                {"verdict": "", "by": "", "question": item.question, "criterion": criterion, "run": run}
                | item.to_json()
            )
            for item in items
        )
    written = io.StringIO()
    writer = csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for item in items:
        shown = [_shown(item.input), item.answer, "" if item.expected is None else _shown(item.expected)]
        passages = "\n\n".join(f"[{each.number}] {each.name}\n{each.text}" for each in item.passages)
        cells = ["", "", item.question, *shown, passages, criterion, run, item.id]
        writer.writerow([guarded(cell) for cell in cells])
    # The mark at the beginning tells spreadsheet programs that it is UTF-8.
    return "\ufeff" + written.getvalue()


def guarded(cell: str) -> str:
    """A cell of which no spreadsheet program takes anything for a formula."""
    found = _FORMULA.sub(r"\1\2'", cell)
    return f"'{found}" if found.startswith(("\t", "\r", "\n")) else found


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value)


def read_sheet(path: Path) -> tuple[list[SheetLine], int]:
    """The lines that hold a verdict, and how many hold none yet. Raises ConfigurationError with every line that is
    wrong, up to 20."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: is not UTF-8 text; save the sheet as UTF-8") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read ({error.strerror or error})") from None
    problems = Problems(str(path))
    found, empty = [], 0
    for number, record in _records(path, text, problems):
        try:
            line = _line(number, record)
        except ValueError as error:
            problems.add(number, str(error))
            continue
        if line is None:
            empty += 1
        else:
            found.append(line)
    problems.end()
    return found, empty


def _line(number: int, record: dict[str, Any]) -> SheetLine | None:
    verdict = read_verdict(record.get("verdict"))
    if not verdict:
        return None
    names = {}
    for name in ("item", "criterion", "run"):
        value = record.get(name, "")
        if not isinstance(value, str) or not (value or name == "run"):
            raise ValueError(f"{name} is missing; leave the columns of the sheet as they are")
        names[name] = value.strip()
    content = item_from_json(record) if "groups" in record else None
    return SheetLine(
        number, names["item"], verdict, read_name(record.get("by")), names["criterion"], names["run"], content
    )


def _records(path: Path, text: str, problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each line's number and what it holds."""
    if text.lstrip().startswith("{"):
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                try:
                    yield number, read_json_object(line)
                except ValueError as error:
                    problems.add(number, str(error))
        return
    header = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=header.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))
    yield from _rows(path, reader, problems)


def _rows(path: Path, reader: Any, problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    columns: list[str] = []
    start = 1
    rows: Iterable[list[str]] = reader
    try:
        for row in rows:
            number, start = start, reader.line_num + 1
            if not columns:
                columns = [cell.strip().casefold() for cell in row]
                absent = [name for name in ("verdict", "criterion", "item") if name not in columns]
                if absent:
                    sentence = f"{path}:1: the sheet has no column {', '.join(absent)}"
                    raise ConfigurationError(f"{sentence}; give a sheet that `oloproof labels export` wrote")
            elif any(cell.strip() for cell in row):
                yield number, dict(zip(columns, row, strict=False))
    except csv.Error as error:
        problems.add(start, f"is no CSV ({error})")
