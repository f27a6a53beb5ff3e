"""The command line as a user meets it: the ids it takes, and what it prints where."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from projects import (
    APP,
    COMPARE,
    DIAGNOSE,
    RELEASE,
    SLOW,
    MakeProject,
    Oloproof,
    case,
    command,
    environment,
)


@pytest.fixture(scope="module")
def project(make_project: MakeProject, oloproof: Oloproof) -> Path:
    """A project with two runs, a diagnosis with its child runs, and a comparison."""
    gold = {"gold_context": [{"doc_id": "d1", "text": "green"}]}
    cases = [
        case("one"),
        case("two"),
        {**(failing := case("three", "green")), "expected": failing["expected"] | gold},
    ]
    folder = make_project(cases=cases, files={"release.yaml": RELEASE, "compare.yaml": COMPARE})
    for _ in range(2):
        assert oloproof("run", cwd=folder).returncode == 0
    assert oloproof(*DIAGNOSE, cwd=folder).returncode == 0
    assert oloproof("compare", "latest", "latest~1", cwd=folder).returncode == 0
    return folder


COMMANDS: Mapping[str, tuple[str, ...]] = {
    "run": ("run",),
    "runs": ("runs",),
    "inspect a run": ("inspect", "latest"),
    "inspect failures": ("inspect", "latest", "--failures"),
    "inspect a case": ("inspect", "latest", "--case", "three"),
    "diagnose": DIAGNOSE,
    "compare": ("compare", "latest", "latest~1"),
    "gate": ("gate", "latest"),
}


def run_ids(folder: Path, oloproof: Oloproof) -> list[str]:
    """The parent runs, newest first."""
    return [run["id"] for run in oloproof("runs", "--json", cwd=folder).record]


# ------------------------------------------------------------------------------------------------------ ids


def test_a_run_is_found_by_any_unique_prefix_with_or_without_run_(project: Path, quick: Oloproof) -> None:
    newest, older = run_ids(project, quick)[:2]
    length = next(n for n in range(len(newest)) if newest[:n] != older[:n])
    for name in (newest, newest[: length + 12], newest[4 : length + 12].lower()):
        assert quick("inspect", name, "--json", cwd=project).record["run"]["id"] == newest


def test_a_prefix_of_several_runs_is_refused_and_names_them(project: Path, quick: Oloproof) -> None:
    finished = quick("inspect", "run_", cwd=project)
    assert finished.returncode == 2
    assert "'run_' fits more than one: run_" in finished.stderr


def test_a_diagnosis_and_a_comparison_are_found_by_a_prefix(project: Path, quick: Oloproof) -> None:
    for arguments in (DIAGNOSE, ("compare", "latest", "latest~1")):
        identity = quick(*arguments, "--json", cwd=project).record["id"]
        digest = identity.removeprefix("sha256:")
        for name in (identity, identity[:20], digest[:14], digest[:14].upper()):
            assert quick("inspect", name, "--json", cwd=project).record["id"] == identity


def test_latest_is_the_newest_run_and_never_a_child_run(project: Path, quick: Oloproof) -> None:
    newest, older = run_ids(project, quick)[:2]
    record = quick(*DIAGNOSE, "--json", cwd=project).record
    children = [record["gold_run"], *record["control_runs"]]
    assert min(children) > newest  # made later than the run itself
    assert quick("inspect", "latest", "--json", cwd=project).record["run"]["id"] == newest
    assert quick("inspect", "latest~1", "--json", cwd=project).record["run"]["id"] == older
    assert not set(children) & set(run_ids(project, quick))
    child = quick("inspect", children[0], cwd=project)
    assert child.lines[0] == f"Run {children[0]} · gold context of {newest}"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("latest~99999999999999999999999", "there is no run latest~99999999999999999999999"),
        ("latest~-1", "after latest~ comes a whole number"),
        ("latest~", "after latest~ comes a whole number"),
        ("latest~1_0", "after latest~ comes a whole number"),
        ("nothing", "no run, comparison or diagnosis 'nothing'"),
        ("", "no run, comparison or diagnosis ''"),
        ("%", "no run, comparison or diagnosis '%'"),
    ],
)
def test_an_id_that_is_none_is_refused(project: Path, quick: Oloproof, name: str, told: str) -> None:
    finished = quick("inspect", name, cwd=project)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert told in finished.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("inspect", "latest", "--case", "four"), "has no case 'four'"),
        (("inspect", "latest", "--failures", "--criterion", "corect"), "has no criterion corect"),
        (("inspect", "latest", "--criterion", "correct"), "--criterion narrows --failures"),
        (("inspect", "latest", "--case", "one", "--failures"), "give one of them"),
        ((*DIAGNOSE[:-1], "hit_rate_at_1"), "hit_rate_at_1 judges the retrieval"),
        ((*DIAGNOSE[:-1], "corect"), "corect is not a pass/fail criterion of run_"),
        (("compare", "latest", "latest"), "cannot be its own baseline"),
        (("gate", "latest", "--policy", "compare.yaml"), "no rule applies to a single run"),
        (("gate", "latest", "--policy", "nowhere.yaml"), "nowhere.yaml: no such file"),
    ],
)
def test_what_does_not_fit_the_stored_run_is_refused(
    project: Path, quick: Oloproof, arguments: tuple[str, ...], told: str
) -> None:
    finished = quick(*arguments, cwd=project)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert told in finished.stderr


def test_a_run_is_needed_where_a_comparison_is_named(project: Path, quick: Oloproof) -> None:
    comparison = quick("compare", "latest", "latest~1", "--json", cwd=project).record["id"]
    finished = quick("gate", comparison, cwd=project)
    assert finished.returncode == 2
    assert "is a comparison; a run is needed here" in finished.stderr


# --------------------------------------------------------------------------------------------------- output


@pytest.mark.parametrize("name", COMMANDS)
def test_json_parses_and_is_all_there_is_on_standard_output(
    project: Path, oloproof: Oloproof, name: str
) -> None:
    finished = oloproof(*COMMANDS[name], "--json", cwd=project)
    assert finished.returncode == 0
    assert finished.stderr == ""
    assert finished.record


def test_only_cases_that_failed_are_listed_on_request(project: Path, quick: Oloproof) -> None:
    finished = quick("inspect", "latest", "--failures", cwd=project)
    assert "1 failed or errored case" in finished.lines[0]
    assert [line.split()[1] for line in finished.lines[4:-1]] == ["three"]
    hits = quick("inspect", "latest", "--failures", "--criterion", "hit_rate_at_1", cwd=project)
    assert hits.lines[1:] == []


def test_a_case_is_shown_with_everything_that_is_known_of_it(project: Path, quick: Oloproof) -> None:
    shown = quick("inspect", "latest", "--case", "three", cwd=project).stdout
    assert 'Input: {"question": "three"}' in shown
    assert 'Expected: {"answer": "green", "relevant": [{"doc_id": "d1"}]}' in shown
    assert "Gold context d1: green" in shown
    assert "│ 1    │ d1      │ 2     │ kept    │ yes      │ blue │" in shown
    assert 'Answer: {"answer": "blue", "citations": ["d1"]}' in shown
    assert "  correct: failed\n  hit_rate_at_1: passed\n" in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_narrow_terminals_and_poor_encodings_change_nothing_in_a_pipe(
    project: Path, oloproof: Oloproof, name: str
) -> None:
    plain = {
        "LANG": "C",
        "LC_ALL": "C",
        "PYTHONIOENCODING": "ascii",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONUTF8": "0",
    }
    finished = oloproof(*COMMANDS[name], cwd=project, env={"COLUMNS": "20", "LINES": "3", **plain})
    assert (finished.returncode, finished.stderr) == (0, "")
    if name in ("run", "runs", "inspect a run", "compare", "diagnose"):
        assert max(map(len, finished.lines)) > 80
    assert "…" not in finished.stdout


@pytest.mark.parametrize(
    "arguments", [("runs",), ("inspect", "latest"), ("compare", "latest", "latest~1"), ("--help",)]
)
def test_a_reader_that_leaves_is_no_error(project: Path, arguments: tuple[str, ...]) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            command(*arguments),
            cwd=project,
            env=environment(),
            stdout=write,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_head_gets_its_line_and_nobody_complains(project: Path) -> None:
    program = " ".join(command("inspect", "latest", "--json"))
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{program} | head -1"],
        cwd=project,
        env=environment(),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"{\n", b"")


def test_the_gates_exit_code_stands_though_the_reader_left(
    make_project: MakeProject, oloproof: Oloproof
) -> None:
    policy = RELEASE.replace("max_failures: 1", "max_failures: 0")
    folder = make_project(files={"release.yaml": policy})
    assert oloproof("run", cwd=folder).returncode == 1
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        command("gate", "latest"),
        cwd=folder,
        env=environment(),
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize("closed", ["1", "2"])
def test_a_command_without_an_output_stream_goes_on_to_its_exit_code(project: Path, closed: str) -> None:
    program = " ".join(command("gate", "latest"))
    done = subprocess.run(
        ["bash", "-c", f"exec {closed}>&-; exec {program}"],
        cwd=project,
        env=environment(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert b"Traceback" not in done.stdout + done.stderr


def test_a_full_disk_behind_standard_output_is_told(project: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command("runs"), cwd=project, env=environment(), stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 5
    assert done.stderr == b"oloproof: standard output cannot be written (No space left on device)\n"


def test_a_terminal_sees_one_line_of_progress_that_is_taken_away_again(
    make_project: MakeProject, oloproof: Oloproof
) -> None:
    folder = make_project(SLOW, cases=[case("one"), case("two")])
    ours, theirs = os.openpty()
    done = subprocess.run(
        command("run"), cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=theirs, check=True
    )
    os.close(theirs)
    seen = os.read(ours, 65_536).decode()
    os.close(ours)
    assert "\n" not in seen
    assert seen.startswith("\rimporting app:Rag\x1b[K\r0 of 2 cases\x1b[K\r1 of 2 cases")
    assert seen.endswith("\r\x1b[K")
    assert b"importing" not in done.stdout
    assert b"\x1b" not in done.stdout


def test_traceback_is_shown_on_request_and_keeps_the_exit_code(project: Path, quick: Oloproof) -> None:
    finished = quick("inspect", "nothing", "--traceback", cwd=project)
    assert finished.returncode == 2
    assert "Traceback (most recent call last):" in finished.stderr
    assert finished.stderr.splitlines()[-1].startswith("oloproof: no run, comparison or diagnosis 'nothing'")


# -------------------------------------------------------------------------------------------------- imports


def test_import_oloproof_loads_the_standard_library_only() -> None:
    program = "import sys; before = set(sys.modules); import oloproof; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    names = {name.partition(".")[0] for name in done.stdout.split()}
    assert names - sys.stdlib_module_names == {"oloproof"}
    assert "pydantic" not in done.stdout


def test_what_judges_and_decides_is_imported_while_the_app_is() -> None:
    program = "import sys, oloproof.cli.run; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "oloproof.execution.host" in loaded
    assert not loaded & {"oloproof.evaluation", "oloproof.decisions", "oloproof.labels", "numpy"}


def test_an_app_meets_no_package_of_ours_in_its_process(make_project: MakeProject, quick: Oloproof) -> None:
    app = APP.replace(
        '{"answer": context[0].text,',
        '{"answer": context[0].text, "modules": sorted(__import__("sys").modules),',
    )
    folder = make_project(app, cases=[case("one")])
    assert quick("run", cwd=folder).returncode == 0
    output = quick("inspect", "latest", "--case", "one", "--json", cwd=folder).record["output"]
    loaded = {name.partition(".")[0] for name in output["modules"]}
    foreign = {name for name in loaded - sys.stdlib_module_names if not name.startswith("_")}
    assert foreign <= {"oloproof", "app", "sitecustomize"}
    ours = {name for name in output["modules"] if name.startswith("oloproof")}
    assert {name for name in ours if not name.startswith("oloproof.worker")} == {
        "oloproof",
        "oloproof.contract",
        "oloproof.jsontext",
    }


@pytest.mark.parametrize(
    ("program", "told"),
    [("oloproof check", "3 cases"), ("oloproof_ci preview", "not inside a git repository")],
)
def test_a_projects_modules_take_the_place_of_none_of_ours(
    make_project: MakeProject, program: str, told: str
) -> None:
    """`python -m` puts the folder it is called in before all others."""
    taken = dict.fromkeys(
        ("yaml.py", "random.py", "pydantic.py", "requests.py"), "raise RuntimeError(__name__)\n"
    )
    folder = make_project(files=taken)
    done = subprocess.run(
        [sys.executable, "-m", *program.split()],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "RuntimeError" not in done.stderr
    assert told in done.stdout + done.stderr
