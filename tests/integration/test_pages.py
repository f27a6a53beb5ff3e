"""The pages of docs/ say what the commands print: each is run, command by command, in a copy of the example.

A `console` block is a session, in which `...` stands for any lines; a `yaml` block whose first line names a file is
that file. Ids are replaced on both sides.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from projects import ROOT, environment
from test_transcripts import without_ids

from oloproof.records import Interval
from oloproof.settings.policy import PolicyConfig
from oloproof.settings.rules import DifferenceRule, Rule
from oloproof.statistics.betting import paired_difference_betting
from oloproof.statistics.exact_difference import exact_paired_difference
from oloproof.statistics.figures import points_interval

PAGES = ["slices.md", "comparison-rules.md"]
_BLOCK = re.compile(r"^```(console|yaml)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def steps(page: Path) -> Iterator[tuple[str, str]]:
    """The page's files and commands in order: (name or command, contents or what is printed)."""
    for kind, body in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "yaml":
            if named := re.match(r"# (\S+\.yaml)\n", body):
                yield f"write {named[1]}", body
            continue
        for command in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            line, _, printed = command.partition("\n")
            yield line, printed


def fits(printed: list[str], wanted: list[str]) -> bool:
    """Whether the lines are those that are wanted, in which `...` stands for any number of lines."""
    if not wanted:
        return not printed
    if wanted[0] == "...":
        return any(fits(printed[start:], wanted[1:]) for start in range(len(printed) + 1))
    return bool(printed) and printed[0] == wanted[0] and fits(printed[1:], wanted[1:])


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_its_commands_print(page: str, copy_example: Callable[[str], Path]) -> None:
    folder = copy_example("support_rag")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    commands = 0
    for step, text in steps(ROOT / "docs" / page):
        if step.startswith("write "):
            (folder / step.removeprefix("write ")).write_text(text, encoding="utf-8")
            continue
        done = subprocess.run(
            step,
            shell=True,
            cwd=folder,
            env=environment(PATH=path),
            capture_output=True,
            check=False,
            text=True,
        )
        commands += 1
        printed = without_ids(done.stdout).splitlines()
        assert done.stderr == "", step
        assert fits(printed, text.splitlines()), f"{step} printed\n{done.stdout}"
    assert commands >= 4


def test_every_key_of_a_policy_and_a_rule_is_explained_with_its_default() -> None:
    text = (ROOT / "docs" / "comparison-rules.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    told = {key for row in rows for key in re.findall(r"`(\w+)", row.split("|")[1])}
    for key, field in PolicyConfig.model_fields.items():
        if key in ("version", "rules"):
            continue
        (row,) = [row for row in rows if row.startswith(f"| `{key}` | ")]
        default = {"block_on": "all three", "warn_on": "none", "families": "none", "judges": "none"}.get(
            key, f"`{field.default}`"
        )
        assert row.split(" | ")[1] == default
    for rule in (*Rule.__subclasses__(), *DifferenceRule.__subclasses__()):
        assert set(rule.model_fields) - told == set(), rule


def test_the_table_of_intervals_is_what_the_methods_give() -> None:
    def betting(pairs: int) -> Interval:
        return paired_difference_betting([0.0] * pairs)

    def exact(pairs: int) -> Interval:
        return exact_paired_difference(0, 0, pairs)

    text = (ROOT / "docs" / "comparison-rules.md").read_text(encoding="utf-8")
    methods = (betting, exact)
    ends = [points_interval(interval(13)).strip("[]").split("+")[1] for interval in methods]
    assert f"| 13 pairs, none changed | ±{ends[0]} points | ±{ends[1]} points |" in text
    for start, margin in (
        ("pairs, none changed, that settle a margin of 5 points", 0.05),
        ("the same, 2 points", 0.02),
    ):
        told = re.search(rf"^\| {start} \| (\d+) \| (\d+) \|$", text, re.MULTILINE)
        assert told
        for interval, pairs in zip(methods, map(int, told.groups()), strict=True):
            assert interval(pairs).lower > -margin
            assert interval(pairs - 1).lower <= -margin


@pytest.mark.parametrize("page", PAGES)
def test_a_page_links_to_what_is_there(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    links = [target.partition("#")[0] for target in re.findall(r"\]\(([^)]+)\)", text)]
    assert links
    assert [link for link in links if "://" not in link and not (ROOT / "docs" / link).exists()] == []
