"""Comparing stored runs of suites that are not the same: what pairs is compared, and the rest is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from projects import APP, CONFIG, MakeProject, Oloproof, case

#: A system that gives every question the answer `grey`, where the small one says `blue`.
GREY = APP.replace('text="blue"', 'text="grey"')
WORDS = """
from pathlib import Path

def allowed(*, input, expected, output, context):
    return output["answer"] in Path(__file__).with_name("words.txt").read_text().split()
"""
OWN = {"type": "python", "object": "checks:allowed", "criterion": "allowed"}


def rewrite(folder: Path, cases: list[dict[str, Any]]) -> None:
    (folder / "cases.jsonl").write_text("".join(json.dumps(each) + "\n" for each in cases))


def reconfigure(folder: Path, **config: Any) -> None:
    (folder / "oloproof.yaml").write_text(json.dumps(CONFIG | config))


def test_renamed_and_reordered_cases_pair_and_those_that_flip_are_named(
    make_project: MakeProject, quick: Oloproof
) -> None:
    cases = [case("one"), case("two"), case("three", "green")]
    folder = make_project(cases=cases)
    assert quick("run", cwd=folder).returncode == 0
    rewrite(folder, [cases[2], cases[1] | {"id": "zwei"}, cases[0]])
    (folder / "app.py").write_text(GREY)
    assert quick("run", cwd=folder).returncode == 0
    finished = quick("compare", "latest", "latest~1", cwd=folder)
    assert " · 3 paired cases" in finished.lines[0]
    assert "Renamed, and paired: two is now zwei" in finished.lines
    assert "New failures of correct: zwei, one" in finished.lines
    assert not [line for line in finished.lines if line.startswith(("Only in", "Edited"))]


def test_an_evaluator_under_a_new_name_is_compared_and_its_old_name_told(
    make_project: MakeProject, quick: Oloproof
) -> None:
    folder = make_project()
    assert quick("run", cwd=folder).returncode == 0
    contains, hits = CONFIG["evaluators"]
    reconfigure(folder, evaluators=[hits, contains | {"criterion": "right"}])
    assert quick("run", cwd=folder).returncode == 0
    finished = quick("compare", "latest", "latest~1", cwd=folder)
    assert [line.split(":")[0] for line in finished.lines[1:3]] == ["hit_rate_at_1", "right"]
    assert "Compared under another name: right (was correct)" in finished.lines


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("words.txt", "grey", "Not compared: allowed (a file that it reads differs: words.txt)"),
        ("checks.py", WORDS.replace("in Path", "not in Path"), "Not compared: allowed (its code differs)"),
        ("checks.py", "# A comment\n" + WORDS, None),
    ],
    ids=["its data", "its code", "a comment in its code"],
)
def test_a_custom_evaluator_that_changed_in_any_way_is_not_compared_in_silence(
    make_project: MakeProject, quick: Oloproof, file: str, text: str, told: str | None
) -> None:
    files = {"checks.py": WORDS, "words.txt": "blue"}
    folder = make_project(evaluators=[*CONFIG["evaluators"], OWN], files=files)
    assert quick("run", cwd=folder).returncode == 0
    (folder / file).write_text(text)
    assert quick("run", cwd=folder).returncode == 0
    lines = quick("compare", "latest", "latest~1", cwd=folder).lines
    assert [line for line in lines if line.startswith("Not compared")] == ([told] if told else [])
    assert any(line.startswith("allowed: ") for line in lines) is (told is None)


def test_order_of_cases_and_evaluators_and_number_of_workers_change_no_difference(
    make_project: MakeProject, quick: Oloproof
) -> None:
    half = APP.replace('{"answer": context[0].text', '{"answer": context[len(input["question"]) % 2].text')
    cases = [case(f"{'x' * (n % 7)}{n}", metadata={"group": str(n % 3)}) for n in range(24)]
    folder = make_project(cases=cases, slices=["metadata.group"])
    assert quick("run", cwd=folder).returncode == 0
    (folder / "app.py").write_text(half)
    reconfigure(folder, slices=["metadata.group"])
    assert quick("run", cwd=folder).returncode == 0
    rewrite(folder, cases[::-1])
    (folder / ".oloproof" / "store.sqlite3").rename(folder / "kept.sqlite3")
    contains, hits = CONFIG["evaluators"]
    reconfigure(folder, slices=["metadata.group"], evaluators=[hits, contains], execution={"workers": 3})
    assert quick("run", cwd=folder).returncode == 0
    (folder / "app.py").write_text(APP)
    assert quick("run", cwd=folder).returncode == 0

    def figures(*runs: str) -> Any:
        found = quick("compare", *runs, "--json", cwd=folder).record["comparison"]
        rows = [row | {"metrics": sorted(row["metrics"], key=str)} for row in found["slice_rows"]]
        flips = [
            each | {key: sorted(each[key]) for key in ("new_failures", "fixed")} for each in found["flips"]
        ]
        return sorted(found["metrics"], key=str), rows, sorted(flips, key=str)

    again = figures("latest~1", "latest")
    (folder / "kept.sqlite3").rename(folder / ".oloproof" / "store.sqlite3")
    first = figures("latest", "latest~1")
    assert first == again
    (correct,) = [metric for metric in first[0] if metric["criterion"] == "correct"]
    assert -1 < correct["difference"] < 0


def test_slice_lines_are_printed_up_to_sixty_or_all_or_none(
    make_project: MakeProject, quick: Oloproof
) -> None:
    cases = [case(f"case {n}", metadata={"group": f"g{n:02}"}) for n in range(40)]
    folder = make_project(cases=cases, slices=["metadata.group"])
    for _ in range(2):
        assert quick("run", cwd=folder).returncode == 0

    def lines(*more: str) -> list[str]:
        printed = quick("compare", "latest", "latest~1", *more, cwd=folder).lines
        return [line for line in printed if line.startswith(("Slices", "  metadata.group=", "  and "))]

    assert len(lines()) == 62
    assert lines()[-1] == "  and 20 more slice lines; --slices all shows them"
    assert len(lines("--slices", "all")) == 81
    assert lines("--slices", "none") == []
