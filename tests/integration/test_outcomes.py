"""How a run ends: interrupted, without a result, or with the gate that its rules come to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from projects import (
    APP,
    COMPARE,
    RELEASE,
    SLOW,
    Finished,
    MakeProject,
    Oloproof,
    case,
    command,
    environment,
    marked_processes,
    noted,
)

from oloproof.cli import guarded

# --------------------------------------------------------------------------------------------- interruption


def interrupt(folder: Path, number: signal.Signals, marker: str) -> Finished:
    """Start a run and send it a signal while its fourth answer is being generated."""
    (folder / "calls.txt").unlink(missing_ok=True)
    with subprocess.Popen(
        command("run"),
        cwd=folder,
        env=environment(TEST_MARK=marker),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        deadline = time.monotonic() + 30
        while noted(folder, keep=True).get("generate", 0) < 4:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        running.send_signal(number)
        stdout, stderr = running.communicate(timeout=20)
    return Finished(running.returncode, stdout.decode(), stderr.decode())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_that_a_library_makes_an_error_of_its_own_of_is_one_all_the_same(
    number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted_within_a_library() -> int:
        try:
            os.kill(os.getpid(), number)
            time.sleep(5)
        except KeyboardInterrupt as error:
            raise ValueError("no schema") from error
        return 0

    before = signal.getsignal(number)
    assert guarded(interrupted_within_a_library, "oloproof", traceback=False) == 5
    assert capsys.readouterr().err.startswith("oloproof: interrupted; what finished before is kept")
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_with_5_and_the_next_one_goes_on_from_what_is_kept(
    make_project: MakeProject, oloproof: Oloproof, number: signal.Signals
) -> None:
    folder = make_project(SLOW, cases=[case(f"case {n}") for n in range(8)], files={"release.yaml": RELEASE})
    marker = f"oloproof-test-{os.urandom(8).hex()}"
    interrupted = interrupt(folder, number, marker)
    assert (interrupted.returncode, interrupted.stdout) == (5, "")
    assert interrupted.stderr.startswith("oloproof: interrupted; what finished before is kept")
    assert len(interrupted.stderr.splitlines()) == 1
    assert marked_processes(marker) == []

    listed = oloproof("runs", cwd=folder)
    assert "unfinished" in listed.stdout
    decided = oloproof("gate", "latest", cwd=folder)
    assert decided.returncode == 5
    assert decided.lines[-1].startswith("Gate: BLOCK (exit 5) · the run is not complete")

    cache = oloproof("run", "--json", cwd=folder).record["run"]["cache"]
    (execution_hits, execution_misses), (_, generate_misses) = cache["execution"], cache["generate"]
    assert 3 <= execution_hits < 8
    assert execution_hits + execution_misses == 8
    assert generate_misses == execution_misses


def test_a_comparison_with_an_unfinished_run_blocks(make_project: MakeProject, oloproof: Oloproof) -> None:
    folder = make_project(SLOW, cases=[case(f"case {n}") for n in range(6)], files={"compare.yaml": COMPARE})
    assert oloproof("run", cwd=folder).returncode == 0
    (folder / "app.py").write_text(SLOW.replace("time.sleep(", "time.sleep(1.0 * "))
    assert interrupt(folder, signal.SIGINT, "unmarked").returncode == 5
    finished = oloproof("compare", "latest", "latest~1", cwd=folder)
    assert finished.returncode == 5
    assert "Gate: BLOCK (exit 5) · the run is not complete" in finished.lines[-1]


# ----------------------------------------------------------------------------------------------------- gate


def test_a_run_in_which_every_case_errored_ends_with_5_and_says_why(
    make_project: MakeProject, quick: Oloproof
) -> None:
    app = APP.replace("return Retrieval", "raise RuntimeError('index is gone')\n        return Retrieval")
    folder = make_project(app, files={"release.yaml": RELEASE})
    finished = quick("run", cwd=folder)
    assert finished.returncode == 5
    assert "  one and 2 more: retrieve: RuntimeError: index is gone" in finished.lines
    assert "none-wrong  correct  at most 1 failure  INSUFFICIENT_EVIDENCE  no_observations" in finished.stdout
    assert finished.lines[-1].startswith("Gate: BLOCK (exit 5) · nothing was observed")


@pytest.fixture(scope="module")
def measured(make_project: MakeProject, oloproof: Oloproof) -> Path:
    """A project with a run in which two of three cases passed."""
    folder = make_project()
    assert oloproof("run", cwd=folder).returncode == 0
    return folder


@pytest.mark.parametrize(
    ("rule", "code", "reason"),
    [
        ("kind: observed_count, max_failures: 1", 0, "observed_failures_within_limit"),
        ("kind: observed_count, max_failures: 0", 1, "observed_failures_exceed_limit"),
        ("kind: min, min: 0.09", 0, "lower_bound_meets_minimum"),
        ("kind: min, min: 0.5", 3, "interval_overlaps_threshold"),
        ("kind: min, min: 0.995", 1, "upper_bound_below_minimum"),
    ],
)
def test_the_exit_code_follows_from_the_rule(
    measured: Path, quick: Oloproof, tmp_path: Path, rule: str, code: int, reason: str
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"{{version: 1, rules: [{{id: it, metric: correct, {rule}}}]}}")
    finished = quick("gate", "latest", "--policy", policy, cwd=measured)
    assert finished.returncode == code
    assert finished.lines[-2].split()[-1] == reason
    assert f"(exit {code})" in finished.lines[-1]


def test_without_a_policy_nothing_gates_and_that_is_said(make_project: MakeProject, quick: Oloproof) -> None:
    finished = quick("run", cwd=make_project())
    assert finished.returncode == 0
    assert finished.lines[-1] == "Gate: ALLOW (exit 0) · no policy: nothing gates"


def test_a_new_failure_is_named_and_blocks(make_project: MakeProject, quick: Oloproof) -> None:
    folder = make_project(files={"compare.yaml": COMPARE})
    assert quick("run", cwd=folder).returncode == 0
    (folder / "app.py").write_text(APP.replace('text="blue"', 'text="grey"'))
    assert quick("run", cwd=folder).returncode == 0
    finished = quick("compare", "latest", "latest~1", cwd=folder)
    assert finished.returncode == 1
    assert "New failures of correct: one, two" in finished.lines
    assert "  none-new  correct  at most 0 new failures  FAIL  new_failures_above_limit" in finished.lines


def test_cases_that_do_not_pair_are_named_and_never_compared(
    make_project: MakeProject, quick: Oloproof
) -> None:
    folder = make_project(cases=[case("same"), case("edited"), case("gone")], files={"compare.yaml": COMPARE})
    assert quick("run", cwd=folder).returncode == 0
    changed = [case("new"), case("edited", "green"), case("same")]
    (folder / "cases.jsonl").write_text("".join(json.dumps(each) + "\n" for each in changed))
    assert quick("run", cwd=folder).returncode == 0
    finished = quick("compare", "latest", "latest~1", cwd=folder)
    assert finished.lines[0].endswith(" · 1 paired case")
    assert "Only in the candidate: new" in finished.lines
    assert "Only in the baseline: gone" in finished.lines
    assert "Edited, so not paired: edited" in finished.lines
    assert finished.returncode == 0


def test_an_evaluator_changed_under_the_same_name_is_not_compared(
    make_project: MakeProject, quick: Oloproof
) -> None:
    folder = make_project(files={"compare.yaml": COMPARE})
    assert quick("run", cwd=folder).returncode == 0
    config = folder / "oloproof.yaml"
    settings = json.loads(config.read_text())
    settings["evaluators"][0]["ignore_case"] = True
    config.write_text(json.dumps(settings))
    assert quick("run", cwd=folder).returncode == 0
    finished = quick("compare", "latest", "latest~1", cwd=folder)
    assert "Not compared: correct (its settings differ: ignore_case)" in finished.lines
    assert finished.returncode == 3
    assert finished.lines[-2].endswith("INSUFFICIENT_EVIDENCE  no_observations")


def test_order_of_cases_and_evaluators_and_number_of_workers_change_no_figure(
    copy_example: Callable[[str], Path], quick: Oloproof
) -> None:
    folder = copy_example("support_rag")
    first = quick("run", "--json", cwd=folder).record["run"]
    cases, config = folder / "data" / "support.jsonl", folder / "oloproof.yaml"
    cases.write_text("".join(sorted(cases.read_text().splitlines(keepends=True), reverse=True)))
    settings = yaml.safe_load(config.read_text())
    settings["evaluators"].reverse()
    config.write_text(yaml.safe_dump(settings | {"execution": {"workers": 4}, "project": "again"}))
    (folder / ".oloproof" / "store.sqlite3").unlink()
    again = quick("run", "--json", cwd=folder).record["run"]
    assert again["cache"]["generate"] == [0, 13]
    assert sorted(again["metrics"], key=str) == sorted(first["metrics"], key=str)
    for ours, theirs in zip(first["slice_rows"], again["slice_rows"], strict=True):
        assert ours | {"metrics": sorted(ours["metrics"], key=str)} == theirs | {
            "metrics": sorted(theirs["metrics"], key=str)
        }
