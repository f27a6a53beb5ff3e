"""What is judged and the sheets it is written to, whatever the texts hold."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oloproof.errors import ConfigurationError
from oloproof.judges.prompts import Evidence
from oloproof.labels.files import Label, read_labels, write_labels
from oloproof.labels.items import Item, item_from_json
from oloproof.labels.sampling import sample
from oloproof.labels.sheets import guarded, read_sheet, sheet_text

TEXT = st.text(max_size=60)
NASTY = st.text(st.sampled_from("=+-@\t\r\n;,|\"' a\u2028\x85\0＝\ufeff\xa0\x0b"), max_size=30)
ITEMS = st.builds(
    lambda answer, name, text, asked: Item(
        "groundedness_judge", "", {"q": asked}, answer, ((Evidence(1, name, text),),)
    ),
    TEXT | NASTY,
    TEXT,
    TEXT | NASTY,
    TEXT,
)
ITEM = Item(
    "citation_support_judge",
    "",
    "How long?",
    "14 days",
    ((Evidence(1, "a", "one"), Evidence(3, "a#2", "three")), (Evidence(2, "b", "two"),)),
)


@given(st.lists(ITEMS, max_size=4))
def test_an_item_comes_back_from_a_sheet_as_it_was(items: list[Item]) -> None:
    lines = sheet_text(items, "c", "run_1", "jsonl").splitlines()
    assert [item_from_json(json.loads(line)) for line in lines] == items


@given(NASTY | TEXT)
def test_no_cell_begins_like_a_formula_wherever_lines_are_split(text: str) -> None:
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL).writerow([guarded(text), "next"])
    for delimiter in ",;\t|":
        for row in csv.reader(io.StringIO(written.getvalue(), newline=""), delimiter=delimiter):
            starts = [cell.lstrip(' "\0\ufeff\xa0\x0b\x85\u2028')[:1] for cell in row]
            assert not {"=", "+", "-", "@", "＝", "＋", "－", "＠"}.intersection(starts)
            assert not [cell for cell in row if cell[:1] in ("\t", "\r")]


def test_guarding_a_long_text_takes_no_time() -> None:
    assert len(guarded("\n" * 300_000)) == 300_001
    assert len(guarded('; "' * 100_000)) == 300_000


def test_the_digest_is_that_of_what_is_judged_in_whatever_order() -> None:
    turned = Item(*ITEM_PARTS[:4], (ITEM.groups[1], ITEM.groups[0][::-1]))
    assert turned.id == ITEM.id
    numbered = Item(
        *ITEM_PARTS[:4], tuple(tuple(Evidence(e.number + 5, e.name, e.text) for e in g) for g in ITEM.groups)
    )
    assert numbered.id == ITEM.id
    for position, other in enumerate(("groundedness_judge", "strict", "How?", "15 days")):
        parts = [*ITEM_PARTS]
        parts[position] = other
        assert Item(*parts).id != ITEM.id
    assert Item(*ITEM_PARTS, expected={}).id != ITEM.id
    moved = ((*ITEM.groups[0], *ITEM.groups[1]), ())
    assert Item(*ITEM_PARTS[:4], moved).id != ITEM.id


ITEM_PARTS: tuple[Any, ...] = (ITEM.judge, ITEM.rubric, ITEM.input, ITEM.answer, ITEM.groups)


def test_a_later_sample_goes_on_where_the_earlier_one_ended() -> None:
    items = [Item("rubric_judge", "r", number, "a", ((),)) for number in range(40)]
    first = sample(items, 10, 3)
    assert sample(items[::-1], 10, 3) == first
    later = sample(items, 10, 3, {item.id for item in first})
    assert [*first, *later] == sample(items, 20, 3)
    assert first != sample(items, 10, 4)


def test_labels_are_written_whole_and_read_back(tmp_path: Path) -> None:
    labels = {
        ITEM.id: Label(ITEM, "fail", "Ann"),
        "other": Label(Item("rubric_judge", "r", None, "x", ((),)), "unsure"),
    }
    labels = {label.item.id: label for label in labels.values()}
    write_labels(tmp_path, "c", labels)
    assert read_labels(tmp_path, "c") == labels
    assert [path.name for path in (tmp_path / "labels").iterdir()] == ["c.jsonl"]
    assert read_labels(tmp_path, "other") == {}


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": ""},
        {"verdict": "maybe"},
        {"verdict": 1},
        {"answer": "13 days"},
        {"judge": "other"},
        {"groups": [[9]]},
        {"groups": [[1.0]]},
        {"groups": []},
        {"groups": [[[]]]},
        {"passages": [[1, "a"]]},
        {"passages": [[True, "a", "one"], [3, "a#2", "three"], [2, "b", "two"]]},
        {"passages": [[1, "a", "one"], [3, "a#2", "three"], [2, "b", "two"], [1, "a", "one"]]},
        {"passages": {}},
        {"item": None},
        {"by": "x" * 101},
        {"by": "\u202e"},
    ],
)
def test_a_label_that_is_wrong_is_told_with_its_line(tmp_path: Path, change: dict[str, Any]) -> None:
    path = write_labels(tmp_path, "c", {ITEM.id: Label(ITEM, "pass")})
    path.write_text("\n" + json.dumps({**json.loads(path.read_text()), **change}) + "\n")
    with pytest.raises(ConfigurationError, match=r"^labels/c\.jsonl:2: "):
        read_labels(tmp_path, "c")


def test_labels_behind_a_link_out_of_the_repository_are_refused(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (tmp_path / "secret").write_text("key")
    (project / "labels").mkdir()
    (project / "labels/c.jsonl").symlink_to(tmp_path / "secret")
    with pytest.raises(ConfigurationError, match="leads out of the repository") as caught:
        read_labels(project, "c")
    assert "key" not in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe",
        b"a,b\n1,2\n",
        b'verdict,criterion,item\n"pass',
        b'{"verdict": NaN}\n',
        b'{"a":' + b"[" * 90_000,
    ],
)
def test_what_is_no_sheet_is_refused_in_a_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "sheet.csv"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"sheet\.csv"):
        read_sheet(path)


def test_an_empty_sheet_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    path.write_bytes(b"")
    assert read_sheet(path) == ([], 0)
