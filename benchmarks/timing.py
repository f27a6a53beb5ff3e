"""Measuring commands: wall time and peak memory of a process, best of several."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

#: The console script of the environment that the benchmarks run in.
OLOPROOF = str(Path(sys.executable).with_name("oloproof"))


@dataclass(frozen=True)
class Measured:
    """`seconds` of wall time; seconds of processor time, of the process and its children together; and `peak` resident
    memory in MB, of the largest among them."""

    seconds: float
    processor: float | None = None
    peak: float | None = None


def run_once(command: Sequence[str], folder: Path, accepted: Sequence[int] = (0,)) -> Measured:
    """Run a command to its end, its output thrown away. Raises RuntimeError on an exit status not accepted."""
    started = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode not in accepted:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {errors.decode()[-2000:]}")
    return Measured(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def best_of(times: int, measure: Callable[[], Measured]) -> Measured:
    """The shortest times of several, and the largest peak: other programs can only add time."""
    taken = [measure() for _ in range(times)]
    return Measured(
        min(m.seconds for m in taken),
        min(m.processor or 0.0 for m in taken),
        max(m.peak or 0.0 for m in taken),
    )
