"""What is executed, and what is taken from the store."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from projects import (
    APP,
    CASES,
    DIAGNOSE,
    Finished,
    MakeProject,
    Oloproof,
    case,
    noted,
)

COUNTING = """
from pathlib import Path
from oloproof import Passage, Retrieval, rag_system

def note(what):
    with Path(__file__).with_name("calls.txt").open("a") as file:
        file.write(what + "\\n")

@rag_system(name="counting", version="1", depth=3, top_k=2, token_budget=100, index_version="1")
class Rag:
    def __init__(self):
        note("construct")

    def retrieve(self, input, depth):
        note("retrieve")
        return Retrieval(query=input, depth=depth, candidates=(Passage(doc_id="d1", score=1.0, text="blue"),))

    def generate(self, input, context):
        note("generate")
        return {"answer": context[0].text}

    def count_tokens(self, passage):
        note("count_tokens")
        return 1
"""


def test_when_everything_hits_nothing_of_the_app_is_called(
    make_project: MakeProject, quick: Oloproof
) -> None:
    folder = make_project(COUNTING)
    assert quick("run", cwd=folder).returncode == 0
    calls = noted(folder)
    assert (calls["construct"], calls["retrieve"], calls["generate"]) == (1, 3, 3)
    assert calls["count_tokens"] == 1  # one passage
    again = quick("run", cwd=folder)
    assert noted(folder) == {}
    assert "Cache: execution 3 hit/0 miss; judgment 6 hit/0 miss" in again.lines
    assert "Stages: retrieve 0 hit/0 miss; generate 0 hit/0 miss" in again.lines


@pytest.mark.parametrize("execution", [{"workers": 2}, {"threads": 8}])
def test_a_passage_is_counted_once_however_many_cases_have_it(
    make_project: MakeProject, quick: Oloproof, execution: dict[str, int]
) -> None:
    app = COUNTING.replace('note("count_tokens")', 'note("count_tokens"); import time; time.sleep(0.2)')
    folder = make_project(app, cases=[case(str(n)) for n in range(30)], execution=execution)
    assert quick("run", "--json", cwd=folder).record["run"]["errored"] == 0
    assert noted(folder)["count_tokens"] == 1


def test_each_case_reports_a_count_that_fails(make_project: MakeProject, quick: Oloproof) -> None:
    app = COUNTING.replace("return 1", "import time; time.sleep(0.05); raise ValueError(passage.doc_id)")
    folder = make_project(app, cases=[case(str(n)) for n in range(8)], execution={"threads": 4})
    done = quick("run", cwd=folder)
    assert "Errored: 8 of 8 cases" in done.stdout
    assert "  0 and 7 more: count_tokens: ValueError: d1" in done.lines


def test_what_is_no_part_of_an_execution_calls_nothing_either(
    make_project: MakeProject, quick: Oloproof
) -> None:
    folder = make_project(COUNTING)
    assert quick("run", cwd=folder).returncode == 0
    noted(folder)
    config = folder / "oloproof.yaml"
    settings = json.loads(config.read_text())
    settings |= {"project": "renamed", "execution": {"workers": 2}, "slices": ["metadata.topic"]}
    settings["evaluators"].append({"type": "citation_validity"})
    config.write_text(json.dumps(settings))
    changed = [
        case(f"new-{each['id']}", metadata={"topic": "x"}) | {"input": each["input"]}
        for each in reversed(CASES)
    ]
    (folder / "cases.jsonl").write_text("".join(json.dumps(each) + "\n" for each in changed))
    moved = folder.with_name(folder.name + "-moved")
    folder.rename(moved)
    again = quick("run", cwd=moved)
    assert noted(moved) == {}
    assert "Stages: retrieve 0 hit/0 miss; generate 0 hit/0 miss" in again.lines


def test_equal_inputs_run_once_and_are_reported(make_project: MakeProject, quick: Oloproof) -> None:
    same = [case(name) | {"input": {"question": "same"}} for name in ("a", "b", "c")]
    folder = make_project(COUNTING, cases=[*same, case("other")], execution={"workers": 2})
    finished = quick("run", cwd=folder)
    calls = noted(folder)
    assert (calls["retrieve"], calls["generate"]) == (2, 2)
    assert "Cache: execution 2 hit/2 miss; judgment 4 hit/4 miss" in finished.lines
    assert "Equal inputs: 2 cases have the input of another case and its execution" in finished.lines
    assert "4 / 4 observed" in finished.stdout


def test_prepare_runs_once_before_the_first_miss_and_not_when_everything_hits(
    make_project: MakeProject, quick: Oloproof
) -> None:
    folder = make_project(COUNTING, prepare="echo prepare >> calls.txt; echo this is not the result")
    first = quick("run", cwd=folder)
    calls = noted(folder)
    assert calls.pop("prepare") == 1
    assert list(calls) == ["construct", "retrieve", "count_tokens", "generate"]
    assert first.lines[0].startswith("Run run_")
    assert "this is not the result" not in first.stdout
    assert quick("run", cwd=folder).returncode == 0
    assert noted(folder) == {}
    with (folder / "cases.jsonl").open("a") as file:
        file.write(json.dumps(case("new")) + "\n")
    assert quick("run", cwd=folder).returncode == 0
    assert noted(folder) == {"prepare": 1, "construct": 1, "retrieve": 1, "generate": 1}


def test_an_app_that_needs_what_prepare_makes_is_imported_after_it(
    make_project: MakeProject, quick: Oloproof
) -> None:
    app = "INDEX = open('index.txt').read()\n" + APP
    folder = make_project(app, prepare="echo built > index.txt")
    finished = quick("run", cwd=folder)
    assert (finished.returncode, finished.stderr) == (0, "")


def test_a_prepare_that_fails_ends_the_run_with_its_last_lines(
    make_project: MakeProject, quick: Oloproof
) -> None:
    folder = make_project(prepare="seq 1 50; echo no disk left >&2; exit 3")
    finished = quick("run", cwd=folder)
    assert (finished.returncode, finished.stdout) == (5, "")
    told = finished.stderr.splitlines()
    assert "prepare: the command" in told[0]
    assert "ended with exit status 3" in told[0]
    assert told[1:] == [f"    {n}" for n in range(42, 51)] + ["    no disk left"]


def test_what_errored_is_tried_again_by_the_next_run(make_project: MakeProject, quick: Oloproof) -> None:
    broken = APP.replace("return {", "open(input['question']); return {")
    folder = make_project(broken, cases=[case("one"), case("two")])
    assert "Errored: 2 of 2 cases" in quick("run", cwd=folder).stdout
    (folder / "one").touch()
    (folder / "two").touch()
    again = quick("run", cwd=folder)
    assert "Errored" not in again.stdout
    assert "Stages: retrieve 2 hit/0 miss; generate 0 hit/2 miss" in again.lines


@pytest.mark.parametrize("example", ["support_rag", "building_faq"])
def test_every_command_works_on_the_examples(
    copy_example: Callable[[str], Path], quick: Oloproof, example: str
) -> None:
    folder = copy_example(example)
    first = quick("run", cwd=folder)
    second = quick("run", cwd=folder)
    assert first.returncode == second.returncode == 0
    assert second.lines[0].split(" · ")[1:] == first.lines[0].split(" · ")[1:]
    assert "Stages: retrieve 0 hit/0 miss; generate 0 hit/0 miss" in second.lines
    compared = quick("compare", "latest", "latest~1", cwd=folder)
    assert compared.returncode == 0
    assert "systems_identical" in compared.stdout
    diagnosed = quick(*DIAGNOSE[:-1], "answer_correct", cwd=folder)
    assert (diagnosed.returncode, diagnosed.stderr) == (0, "")
    failures = quick("inspect", "latest", "--failures", cwd=folder)
    assert failures.lines[1].startswith("┌")


def test_two_changes_within_one_second_are_told_apart_although_python_cannot(
    make_project: MakeProject, quick: Oloproof
) -> None:
    """It goes by the whole second and the size, and would run the first change's bytecode as the second one."""
    folder = make_project()
    app, second = folder / "app.py", int(time.time()) + 60
    first = app.read_text()
    os.utime(app, (second, second))
    assert rate_of_correct(quick("run", cwd=folder)) == "66.7%"
    assert list((folder / "__pycache__").glob("app.*.pyc"))
    app.write_text(first.replace("blue", "grey"))
    os.utime(app, (second + 0.5, second + 0.5))
    assert rate_of_correct(quick("run", cwd=folder)) == "0.0%"


def rate_of_correct(finished: Finished) -> str:
    (row,) = [line for line in finished.lines if line.startswith("│ correct ")]
    return row.split("│")[2].strip()
