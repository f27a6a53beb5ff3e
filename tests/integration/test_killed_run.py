"""A run that is killed outright loses what was in flight, and nothing that had finished before."""

from __future__ import annotations

import signal
import subprocess
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
