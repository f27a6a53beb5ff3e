"""Input that cannot be used is refused: exit code 2, file, line and key, and nothing is stored."""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest
from projects import (
    APP,
    COMPARE,
    DIAGNOSE,
    RELEASE,
    Finished,
    MakeProject,
    Oloproof,
    case,
    command,
    environment,
    stored_runs,
)


def refused(finished: Finished, folder: Path) -> str:
    """The message of a command that ended with exit code 2 and stored nothing."""
    assert finished.returncode == 2
    assert finished.stdout == ""
    assert stored_runs(folder) == 0
    assert "Traceback" not in finished.stderr.splitlines()[0]
    assert all(line.startswith(("oloproof: ", "    ")) for line in finished.stderr.splitlines())
    return finished.stderr


def rag(**settings: Any) -> dict[str, Any]:
    return {"rag": {"object": "app:Rag", **settings}}


def test_an_app_that_does_not_import_shows_the_end_of_its_own_traceback(
    make_project: MakeProject, quick: Oloproof
) -> None:
    deep = "def f(n):\n    if n == 0:\n        import nothing_of_this_name\n    else:\n        f(n - 1)\n\nf(30)\n"
    folder = make_project(APP + "import deep\n", files={"deep.py": deep})
    told = refused(quick("run", cwd=folder), folder).splitlines()
    assert told[0].startswith("oloproof: oloproof.yaml")
    assert "app:Rag could not be imported from" in told[0]
    assert "ModuleNotFoundError: No module named 'nothing_of_this_name'" in told[0]
    assert len(told) == 11
    assert told[-1] == "    ModuleNotFoundError: No module named 'nothing_of_this_name'"
    assert told[-2].strip() == "import nothing_of_this_name"
    assert not any("oloproof/worker" in line or "importlib" in line for line in told)


@pytest.mark.parametrize(
    ("app", "told"),
    [
        ("def broken(:\n", "SyntaxError: invalid syntax (app.py, line 1)"),
        ("import sys; sys.exit(0)\n", "the code called sys.exit(0)"),
        ("import os; os._exit(0)\n", "the worker ended with exit status 0"),
        ("raise ValueError('\\x1b[2J\\nred')\n", "ValueError: \\x1b[2J"),
        (APP.replace("top_k=2", "top_k=0"), "ValueError: rag_system: top_k must be at least 1, got 0"),
        (
            APP.replace("depth=3", "depth=True"),
            "TypeError: rag_system: depth must be a whole number, got True",
        ),
        (
            APP.replace("def generate", "def produce"),
            "TypeError: rag_system: class Rag has no method generate",
        ),
    ],
)
def test_an_app_that_fails_while_it_is_imported_is_refused(
    make_project: MakeProject, quick: Oloproof, app: str, told: str
) -> None:
    folder = make_project(app)
    message = refused(quick("run", cwd=folder), folder)
    assert told in message
    assert "\x1b" not in message


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (
            "app:helper",
            "app:helper is not a RAG system: expected a class decorated with @rag_system(...), found an",
        ),
        (
            "app:Plain",
            "app:Plain is not a RAG system: expected a class decorated with @rag_system(...), found class",
        ),
        ("app:Nothing", "module app has no Nothing"),
        ("elsewhere:Rag", "there is no module elsewhere in "),
        ("app", 'expected module:Class such as app:SupportRag, found "app"'),
    ],
)
def test_an_object_that_is_no_rag_system_is_refused(
    make_project: MakeProject, quick: Oloproof, target: str, told: str
) -> None:
    app = APP + "\ndef helper():\n    pass\n\nclass Plain:\n    pass\n"
    folder = make_project(app, system={"rag": {"object": target}})
    message = refused(quick("run", cwd=folder), folder)
    assert message.startswith("oloproof: oloproof.yaml")
    assert "system.rag.object: " in message
    assert told in message


@pytest.mark.parametrize(
    ("settings", "key", "told"),
    [
        (rag(token_budget=5), "token_budget", "app:Rag has no method count_tokens(self, passage) -> int"),
        (rag(top_k=4), "top_k", "top_k is 4 but depth is 3"),
        (rag(depth=1), "depth", "top_k is 2 but depth is 1"),
        (rag(top_k=0), "top_k", "must be at least 1, found 0"),
        (rag(depth=-1), "depth", "must be at least 1, found -1"),
        (rag(token_budget=0), "token_budget", "must be at least 1, found 0"),
        (rag(index_version=""), "index_version", "must not be empty"),
        (rag(topk=2), "topk", "unknown key; did you mean top_k?"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_with_file_and_key(
    make_project: MakeProject, quick: Oloproof, settings: dict[str, Any], key: str, told: str
) -> None:
    folder = make_project(system=settings)
    message = refused(quick("run", cwd=folder), folder)
    assert message.startswith("oloproof: oloproof.yaml:")
    assert f"system.rag.{key}" in message
    assert told in message


def test_a_k_above_depth_is_refused_at_its_line(make_project: MakeProject, quick: Oloproof) -> None:
    evaluators = [{"type": "hit_rate", "k": 3}, {"type": "recall", "k": 4}]
    folder = make_project(evaluators=evaluators)
    message = refused(quick("run", cwd=folder), folder)
    text = (folder / "oloproof.yaml").read_text().splitlines()
    line = 1 + next(number for number, each in enumerate(text) if '"k": 4' in each)
    assert message.startswith(f"oloproof: oloproof.yaml:{line}: evaluators[1].k: k is 4 but depth is 3")


@pytest.mark.parametrize(
    ("cases", "told"),
    [
        ("", "cases.jsonl: holds no cases"),
        ("\n  \n", "cases.jsonl: holds no cases"),
        (
            '{"id": "a", "input": 1}\n{"id": "a", "input": 2}\n',
            'cases.jsonl:2: the id "a" stands on line 1 already',
        ),
        ('{"id": 7, "input": 1}\n', "cases.jsonl:1: the id 7 is a number"),
        ('{"id": "a"}\n', "cases.jsonl:1: no input"),
        ('{"id": "a", "input": NaN}\n', "cases.jsonl:1: NaN is not a JSON number"),
        ('{"id": "a", \n', "cases.jsonl:1: not valid JSON"),
        (
            json.dumps(case("a", "")) + "\n",
            "cases.jsonl:1: expected.answer is empty; contains needs a non-empty",
        ),
        (
            json.dumps({**case("a"), "expected": {"answer": None}}) + "\n",
            "cases.jsonl:1: expected.answer is null",
        ),
    ],
)
def test_a_case_file_that_cannot_be_used_is_refused_with_its_line(
    make_project: MakeProject, quick: Oloproof, cases: str, told: str
) -> None:
    folder = make_project(cases=cases)
    assert told in refused(quick("run", cwd=folder), folder)


def test_twenty_bad_lines_are_told_at_once_and_the_rest_is_counted(
    make_project: MakeProject, quick: Oloproof
) -> None:
    folder = make_project(cases="nonsense\n" * 25)
    told = refused(quick("run", cwd=folder), folder).splitlines()
    assert [line.split(": ")[1] for line in told[:20]] == [f"cases.jsonl:{number}" for number in range(1, 21)]
    assert told[20:] == ["oloproof: and 5 more problems"]


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (COMPARE, "release.yaml: no rule applies to a single run, so nothing would gate"),
        (
            RELEASE.replace("correct", "corect"),
            "no evaluator yields the metric corect; did you mean correct?",
        ),
        (RELEASE.replace("max_failures: 1", "max_failures: -1"), "must be at least 0, found -1"),
        ("{version: 1, rules: []}", "rules: needs at least 1 entry, found none"),
        ("", "release.yaml: the file is empty"),
    ],
)
def test_a_policy_that_cannot_decide_is_refused_before_anything_runs(
    make_project: MakeProject, quick: Oloproof, policy: str, told: str
) -> None:
    folder = make_project(files={"release.yaml": policy})
    assert told in refused(quick("run", cwd=folder), folder)


@pytest.mark.parametrize(
    "arguments", [("run",), ("runs",), ("inspect", "latest"), ("gate", "latest"), DIAGNOSE]
)
def test_a_folder_without_a_project_is_refused_and_stays_empty(
    tmp_path: Path, quick: Oloproof, arguments: tuple[str, ...]
) -> None:
    finished = quick(*arguments, cwd=tmp_path)
    assert finished.returncode == 2
    assert "oloproof.yaml" in finished.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_none_is_refused_and_left_alone(make_project: MakeProject, quick: Oloproof) -> None:
    folder = make_project(files={".oloproof/store.sqlite3": "these are my notes\n" * 100})
    finished = quick("run", cwd=folder)
    assert finished.returncode == 2
    assert "cannot be opened as a store" in finished.stderr
    assert (folder / ".oloproof/store.sqlite3").read_text() == "these are my notes\n" * 100


def test_a_store_that_cannot_be_written_is_not_to_be_moved_away(
    make_project: MakeProject, quick: Oloproof, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_project(files={".oloproof/store.sqlite3": "these are my notes\n" * 100})
    monkeypatch.setattr(os, "access", lambda *_: False)
    finished = quick("run", cwd=folder)
    assert finished.returncode == 2
    assert finished.stderr.endswith("; the store and its folder must be writable\n")


def test_a_disk_that_is_full_before_there_is_a_store_ends_the_run_and_not_the_store(
    make_project: MakeProject, oloproof: Oloproof
) -> None:
    folder = make_project()
    line = shlex.join(command("run"))
    finished = subprocess.run(
        ["bash", "-c", f"ulimit -f 50; exec {line}"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 5
    assert "the store failed" in finished.stderr
    assert oloproof("run", cwd=folder).returncode == 0


def test_a_store_of_another_version_is_refused_and_left_alone(
    make_project: MakeProject, quick: Oloproof
) -> None:
    folder = make_project()
    assert quick("run", cwd=folder).returncode == 0
    connection = sqlite3.connect(folder / ".oloproof/store.sqlite3")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    finished = quick("run", cwd=folder)
    assert finished.returncode == 2
    assert "made by another version of Oloproof (schema 99, this one reads " in finished.stderr
    assert stored_runs(folder) == 1


def test_problems_name_files_as_seen_from_where_the_command_was_given(
    make_project: MakeProject, quick: Oloproof
) -> None:
    folder = make_project(cases='{"id": 1}\n')
    config = f"{folder.name}/oloproof.yaml"
    message = refused(quick("run", "--config", config, cwd=folder.parent), folder)
    assert f"{folder.name}/cases.jsonl:1: " in message


def test_another_distribution_named_oloproof_is_refused(
    make_project: MakeProject, oloproof: Oloproof, tmp_path: Path
) -> None:
    (tmp_path / "oloproof-0.3.1.dist-info").mkdir()
    folder = make_project()
    path = os.pathsep.join([str(Path(__file__).parents[2]), str(tmp_path)])
    message = refused(oloproof("run", cwd=folder, env={"PYTHONPATH": path}), folder)
    assert (
        f"{tmp_path}/oloproof-0.3.1.dist-info: another distribution named oloproof is installed here"
        in message
    )
    assert "pip uninstall oloproof oloproof-ci" in message


@pytest.mark.parametrize(
    "arguments", [(), ("bogus",), ("run", "--bogus"), ("runs", "--limit", "0"), ("inspect",)]
)
def test_wrong_usage_exits_with_2(tmp_path: Path, oloproof: Oloproof, arguments: tuple[str, ...]) -> None:
    finished = oloproof(*arguments, cwd=tmp_path)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr.startswith("usage: oloproof")
