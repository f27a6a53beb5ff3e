"""A run that is killed outright loses what was in flight, and nothing that had finished before."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from projects import SLOW, MakeProject, Oloproof, case, command, environment

CASES = 120
#: The case in flight, and what finished in the moments before: entries are written every 20 ms at the latest.
LOST = 8


def calls(folder: Path) -> int:
    """How often generate was called so far."""
    path = folder / "calls.txt"
    return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.mark.parametrize("seconds", ["0.005", "0.05"])
def test_the_next_run_executes_again_only_what_was_in_flight(
    make_project: MakeProject, oloproof: Oloproof, seconds: str
) -> None:
    folder = make_project(SLOW.replace("0.2", seconds), cases=[case(f"case {n}") for n in range(CASES)])
    with subprocess.Popen(
        command("run"), cwd=folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as running:
        while calls(folder) < CASES // 2:
            assert running.poll() is None
            time.sleep(0.01)
        running.send_signal(signal.SIGKILL)
    assert oloproof("run", cwd=folder).returncode == 0
    assert CASES <= calls(folder) <= CASES + LOST


POINTS = 50
FIGURES = ("metrics", "slice_rows", "attempted", "errored", "finished")


def figures(oloproof: Oloproof, folder: Path) -> list[object]:
    """What a run came to, case by case, without what differs from run to run."""
    run = oloproof("run", "--json", cwd=folder).record["run"]
    cases = oloproof("inspect", "latest", "--json", cwd=folder).record["cases"]
    rows = [(each["case_id"], each["judgments"], each["error"]) for each in cases]
    return [rows, {name: run[name] for name in FIGURES}]


def test_a_suite_killed_at_50_points_comes_to_what_an_undisturbed_one_does(
    make_project: MakeProject, oloproof: Oloproof
) -> None:
    """Every other run is killed while it starts, at a random time, the others once they have made some calls; every
    store in between is read by the next run."""
    cases = [case(f"case {n}", "blue" if n % 3 else "green") for n in range(450)]
    app = SLOW.replace("0.2", "0.01")
    undisturbed = figures(oloproof, make_project(app, cases=cases))
    folder = make_project(app, cases=cases)
    randomness = random.Random(20261129)
    for point in range(POINTS):
        before = calls(folder)
        with subprocess.Popen(
            command("run"), cwd=folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as running:
            if point % 2:
                time.sleep(randomness.uniform(0.0, 0.45))
            else:
                wanted = before + randomness.randint(1, 6)
                while calls(folder) < wanted:
                    assert running.poll() is None
                    time.sleep(0.001)
            running.send_signal(signal.SIGKILL)
            assert running.stderr is not None
            assert running.stderr.read() == b""
    assert figures(oloproof, folder) == undisturbed


@pytest.mark.parametrize("room", [20_000, 100_000, 300_000])
def test_a_full_disk_ends_the_run_and_the_next_one_goes_on(
    make_project: MakeProject, oloproof: Oloproof, room: int
) -> None:
    """No file may grow beyond `room`, which fails as a full disk does."""
    cases = [case(f"case {n}" + "x" * 500, "blue" if n % 3 else "green") for n in range(300)]
    app = SLOW.replace("0.2", "0")
    folder = make_project(app, cases=cases)
    limited = f"import resource, runpy; resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room})); "
    done = subprocess.run(
        [sys.executable, "-c", limited + "runpy.run_module('oloproof', run_name='__main__')", "run"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 5
    assert "store.sqlite3: the store failed (disk I/O error); what was stored before is kept" in done.stderr
    assert figures(oloproof, folder) == figures(oloproof, make_project(app, cases=cases))


def test_two_runs_at_once_on_one_store_both_finish_rightly(
    make_project: MakeProject, oloproof: Oloproof
) -> None:
    cases = [case(f"case {n}", "blue" if n % 3 else "green") for n in range(60)]
    folder = make_project(SLOW.replace("0.2", "0.005"), cases=cases)
    _, alone = figures(oloproof, make_project(SLOW.replace("0.2", "0.005"), cases=cases))
    running = [
        subprocess.Popen(command("run", "--json"), cwd=folder, env=environment(), stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    for each in running:
        stdout, _ = each.communicate(timeout=60)
        assert each.returncode == 0
        run = json.loads(stdout)["run"]
        assert {name: run[name] for name in FIGURES} == alone


def test_a_new_store_may_be_opened_by_many_at_once(tmp_path: Path) -> None:
    """They open it as near to the same moment as processes can: each spins until then."""
    program = (
        "import sys, time; from pathlib import Path; from oloproof.store.database import Database\n"
        "for number, moment in enumerate(map(float, sys.argv[2:])):\n"
        "    while time.time() < moment: pass\n"
        "    Database(Path(sys.argv[1], str(number), 'store.sqlite3')).connection.close()\n"
    )
    moments = [str(time.time() + 1 + 0.15 * number) for number in range(12)]
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path), *moments], stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    for each in running:
        _, errors = each.communicate(timeout=60)
        assert (each.returncode, errors) == (0, b"")
