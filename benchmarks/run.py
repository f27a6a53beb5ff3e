"""`make bench`: how long things take, how much memory they need, and how that compares with the least possible.

Prints a table and changes nothing: everything happens in a temporary folder. A time is the best of several, since
whatever else the machine does can only add to it; a peak is the largest seen. The reference of a row is measured in
the same run and says what the machine can do at this moment. Targets are those for two cores; nothing fails when one
is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from judging import IN_FLIGHT, LATENCY, judged_project
from projects import (
    FAILING,
    copy_example,
    enlarge_example,
    forget,
    keep_store,
    many_modules,
    open_a_file,
    own_engine,
    restore_store,
)
from tabulate import tabulate
from timing import OLOPROOF, Measured, best_of, run_once

#: Exit codes of a run or comparison that came to its end, whatever it decided.
DECIDED = (0, 1, 3, 4)
#: What the engine imports in any case.
START = "import pydantic, yaml"
CASES = 5_000
FAILURES = 1_000
JUDGMENTS = 1_000
MANY_CASES, SLICES = 20_000, 10
MODULES = 200
#: The share that recording the files that retrievals open may have: of what they cost where none is opened, of the
#: whole run where each opens one.
RECORDING = 0.02


@dataclass(frozen=True)
class Row:
    """One line of the table. `target` is in seconds, `target_peak` in MB; `reference` says what `least` measured."""

    what: str
    measured: Measured
    target: float | None
    target_peak: float | None
    reference: str
    least: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=5, help="how often each row is measured (default: 5)")
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory(prefix="oloproof-bench-") as folder:
        rows = []
        for row in _rows(Path(folder), times):
            print(f"  {row.what}: {_duration(row.measured.seconds)}", file=sys.stderr)
            rows.append(row)
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, best of {times}")
    print(_table(rows))


def _rows(folder: Path, times: int) -> Iterator[Row]:
    small = copy_example(folder / "small")
    start = best_of(times, lambda: run_once([sys.executable, "-c", START], folder)).seconds
    reference = f"python -c '{START}'"
    yield Row("run, 13 cases, empty store", _cold(small, times), 1.0, 150, reference, start)
    yield Row("run, 13 cases, again", _run(small, times), 0.6, 150, reference, start)

    with judged_project(folder / "judged", JUDGMENTS) as judged:
        least = JUDGMENTS / IN_FLIGHT * LATENCY
        told = f"{JUDGMENTS:,} answers of {LATENCY:g} s, {IN_FLIGHT} at a time"
        yield Row(
            f"{JUDGMENTS:,} judgments by a model",
            run_once([OLOPROOF, "run"], judged, DECIDED),
            30.0,
            150,
            told,
            least,
        )
        yield Row(
            f"{JUDGMENTS:,} judgments, again", _run(judged, times), 0.5, 150, f"python -c '{START}'", start
        )

    large = enlarge_example(folder / "large", CASES)
    least, _ = _probe("stages", large, times)
    reference = "the stages in a plain loop"
    yield Row(f"run, {CASES:,} cases, empty store", _cold(large, times), 4.0, 150, reference, least)
    yield Row(f"run, {CASES:,} cases, again", _run(large, times), 1.5, 150, reference, least)
    call, least = _probe("worker_call", large, times)
    yield Row(
        "overhead of a worker call, median", Measured(call), None, None, "a line echoed by a child", least
    )
    recording, least = _probe("recording", large, 1)
    share = f"recording of files on {CASES:,} retrievals: {_share(recording, least)}"
    yield Row(share, Measured(recording), least * (1 + RECORDING), None, "the same without", least)
    reading = open_a_file(enlarge_example(folder / "reading", CASES))
    whole = _cold(reading, 2).seconds
    recording, least = _probe("recording", reading, 1)
    share = f"recording of the file that each opens: {(recording - least) / whole:.1%} of the run"
    yield Row(share, Measured(recording - least), whole * RECORDING, None, "the whole run", whole)
    scan, least = _probe("scan", large, times)
    yield Row(f"check of {CASES:,} cases", Measured(scan), None, None, "json.loads of the lines", least)

    failing = enlarge_example(folder / "failing", FAILURES, FAILING)
    least, _ = _probe("stages", failing, times)
    reference = "the stages in a plain loop"
    gold, what_if = _diagnose(failing, times)
    yield Row(f"diagnose, {FAILURES:,} failures, gold and control", gold, 2.0, 150, reference, least)
    yield Row(f"what-if, {FAILURES:,} cases, 4 settings", what_if, None, 150, reference, least)

    reference = "reading the stored judgments"
    least, _ = _probe("stored_rows", large, times)
    yield Row(f"compare, {CASES:,} cases", _compare(large, times), None, 200, reference, least)
    wide = folder / "wide"
    _python("stored_runs.py", large, wide, MANY_CASES, SLICES)
    least, _ = _probe("stored_rows", wide, times)
    what = f"compare, {MANY_CASES:,} cases, 5 metrics, {SLICES} slices"
    yield Row(what, _compare(wide, times), 2.0, 200, reference, least)

    yield from _fingerprints(f"{MODULES} modules", many_modules(folder / "modules", MODULES), times)
    yield from _fingerprints("our own engine", own_engine(folder / "engine"), times)

    reference = "copying the store"
    cached = folder / "cached"
    _python("cached_results.py", "make", cached)
    least = json.loads(_python("cached_results.py", "copy", cached))
    yield Row("save 100,000 stage results", _cached("save", cached, times), 6.0, 200, reference, least)
    yield Row("restore 100,000 stage results", _cached("restore", cached, times), 3.0, 200, reference, least)

    betting, least = _probe("betting", folder, times)
    what = "betting interval of 10,000 values"
    yield Row(what, Measured(betting), 0.020, None, "its wealth at a single mean", least)


def _fingerprints(what: str, project: Path, times: int) -> Iterator[Row]:
    digests = "digests of the files"
    code, least = _probe("fingerprint", project, times)
    what = f"fingerprint, {what}"
    yield Row(f"{what}, none seen before", Measured(code), 0.5, None, "ast.parse of the files", least)
    code, least = _probe("fingerprint_edited", project, times)
    yield Row(f"{what}, one changed", Measured(code), 0.5, None, digests, least)
    code, least = _probe("fingerprint_again", project, times)
    yield Row(f"{what}, all as before", Measured(code), 0.1, None, digests, least)


def _cold(project: Path, times: int) -> Measured:
    """A run on an empty store, with bytecode that is warm."""

    def once() -> Measured:
        forget(project)
        return run_once([OLOPROOF, "run"], project, DECIDED)

    once()
    return best_of(times, once)


def _run(project: Path, times: int) -> Measured:
    return best_of(times, lambda: run_once([OLOPROOF, "run"], project, DECIDED))


def _diagnose(project: Path, times: int) -> tuple[Measured, Measured]:
    """A first diagnosis of a run, and first replays of it: each on the store as the run left it."""
    forget(project)
    run_once([OLOPROOF, "run"], project, DECIDED)
    keep_store(project)

    def once(*arguments: str) -> Measured:
        restore_store(project)
        return run_once([OLOPROOF, *arguments], project)

    diagnose = ("diagnose", "latest", "--intervention", "gold-context", "--criterion", "answer_correct")
    what_if = ("what-if", "latest", "--top-k", "3,4", "--token-budget", "60,120")
    return best_of(times, lambda: once(*diagnose)), best_of(times, lambda: once(*what_if))


def _cached(action: str, folder: Path, times: int) -> Measured:
    program = str(Path(__file__).with_name("cached_results.py"))
    return best_of(times, lambda: run_once([sys.executable, program, action, str(folder)], folder))


def _compare(project: Path, times: int) -> Measured:
    return best_of(times, lambda: run_once([OLOPROOF, "compare", "latest", "latest~1"], project, DECIDED))


def _probe(name: str, project: Path, times: int) -> tuple[float, float]:
    """The best figure of a probe (see probes.py), with the reference that was measured beside it."""
    measured, least = min(json.loads(_python("probes.py", name, project)) for _ in range(times))
    return measured, least


def _python(program: str, *arguments: object) -> bytes:
    """What a program beside this one prints."""
    command = [sys.executable, str(Path(__file__).with_name(program)), *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def _table(rows: list[Row]) -> str:
    cells = [
        (
            row.what,
            _duration(row.measured.seconds),
            "" if row.target is None else f"< {_duration(row.target)}",
            "" if row.measured.processor is None else _duration(row.measured.processor),
            "" if row.measured.peak is None else f"{row.measured.peak:.0f} MB",
            "" if row.target_peak is None else f"< {row.target_peak:.0f} MB",
            f"{row.measured.seconds / row.least:.1f}",
            f"{row.reference}, {_duration(row.least)}",
        )
        for row in rows
    ]
    headers = ("", "time", "target", "processor", "peak", "target", "ratio", "time of the reference")
    return tabulate(
        cells, headers, tablefmt="simple", colalign=("left", *["right"] * 6, "left"), disable_numparse=True
    )


def _share(whole: float, least: float) -> str:
    """How much of a worker's processor time is more than the least."""
    return f"{(whole - least) / least:.1%} more"


def _duration(seconds: float) -> str:
    if seconds >= 0.1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"


if __name__ == "__main__":
    main()
