"""What is measured inside a process of its own: `python benchmarks/probes.py NAME` prints seconds as JSON.

Each probe prints what it measured, and a reference that does the least such a task could do.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CALLS = 2000
#: How often, and how many at a time, retrievals with and without records of files are measured.
ROUNDS, BLOCK = 16, 20
BETTING_VALUES = 10_000

#: Reads a line, writes a line: what a worker cannot do without.
_ECHO = "import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(line); sys.stdout.buffer.flush()"

#: What a package ends in whose workers record no files.
_NO_RECORDS = """

class Reads:
    def __init__(self, root): pass
    def drain(self): return None
    def note_held(self, reader): pass
"""


def worker_call(project: Path) -> tuple[float, float]:
    """The median time of a call to a worker without the stage's own; and of a line through a child that echoes.

    Both sides share one core: otherwise how long an idle core takes to wake up decides, and that varies tenfold.
    """
    from oloproof.worker.calls import perform, release
    from oloproof.worker.process import Checkout

    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    checkout = Checkout(str(project), "app:SupportRag", sys.executable, tuple(sorted(os.environ.items())))
    lines = (project / "data" / "support.jsonl").read_text(encoding="utf-8").splitlines()[:CALLS]
    requests = [{"op": "retrieve", "input": json.loads(line)["input"], "depth": 6} for line in lines]
    perform(checkout, requests[0], 60.0)  # starts the worker and constructs the app
    overheads = []
    for request in requests:
        started = time.perf_counter()
        reply = perform(checkout, request, 60.0)
        overheads.append(time.perf_counter() - started - reply.seconds)
    release(checkout)
    return statistics.median(overheads), _echo([json.dumps(request).encode() + b"\n" for request in requests])


def recording(project: Path) -> tuple[float, float]:
    """Processor time of retrievals in their worker; and of the same by a copy of our package whose workers
    record no files. Both take turns, block by block, and of each block the best of several rounds counts: the
    difference is far smaller than what the machine adds."""
    import shutil
    import tempfile

    from oloproof.worker import process
    from oloproof.worker.calls import perform, release

    lines = (project / "data" / "support.jsonl").read_text(encoding="utf-8").splitlines()
    requests = [{"op": "retrieve", "input": json.loads(line)["input"], "depth": 6} for line in lines]
    blocks = [requests[start : start + BLOCK] for start in range(0, len(requests), BLOCK)]
    with tempfile.TemporaryDirectory(prefix="oloproof-bench-") as folder:
        copy = Path(folder) / "oloproof"
        shutil.copytree(process.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        with (copy / "worker" / "reads.py").open("a", encoding="utf-8") as file:
            file.write(_NO_RECORDS)
        packages = (process.PACKAGE, copy)
        best = [[math.inf] * len(blocks) for _ in packages]
        for turn in range(ROUNDS):
            workers = [_started(process, package, project, requests[0]) for package in packages]
            for number, block in enumerate(blocks):
                for which in (0, 1) if (turn + number) % 2 else (1, 0):
                    checkout, processes = workers[which]
                    before = _processor_time(processes)
                    for request in block:
                        perform(checkout, request, 60.0)
                    taken = _processor_time(processes) - before
                    best[which][number] = min(best[which][number], taken)
            for checkout, _ in workers:
                release(checkout)
    with_records, without = map(sum, best)
    return with_records, without


def _started(process: Any, package: Path, project: Path, request: dict[str, Any]) -> tuple[Any, set[int]]:
    """A worker of a copy of our package, and its processes. Each has the same order of sets, but its memory is laid out
    anew, which makes more of a difference than what is measured."""
    from oloproof.worker.calls import perform

    process.PACKAGE, process.CHILD = package, package / "worker" / "child.py"
    environment = tuple(sorted({**os.environ, "PYTHONHASHSEED": "0"}.items()))
    checkout = process.Checkout(str(project), "app:SupportRag", sys.executable, environment)
    before = _descendants()
    perform(checkout, request, 60.0)
    return checkout, _descendants() - before


def _processor_time(processes: set[int]) -> float:
    """Seconds of it that processes have used so far."""
    tasks = [task for process in processes for task in Path(f"/proc/{process}/task").iterdir()]
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def _descendants() -> set[int]:
    found: set[int] = set()
    pending = [os.getpid()]
    while pending:
        for task in Path(f"/proc/{pending.pop()}/task").iterdir():
            children = set(map(int, (task / "children").read_text().split()))
            found |= children
            pending += children
    return found


def _echo(lines: list[bytes]) -> float:
    with subprocess.Popen(
        [sys.executable, "-c", _ECHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        taken = []
        for line in lines:
            started = time.perf_counter()
            child.stdin.write(line)
            child.stdin.flush()
            child.stdout.readline()
            taken.append(time.perf_counter() - started)
        child.stdin.close()
    return statistics.median(taken)


def scan(project: Path) -> tuple[float, float]:
    """Checking every line of the case file; and only parsing them."""
    from oloproof.settings.project import load_project
    from oloproof.workplace import scan_suite

    found = load_project(project / "oloproof.yaml")

    def parse() -> None:
        with found.dataset.open("rb") as file:
            for line in file:
                json.loads(line)

    return _best(lambda: scan_suite(found)), _best(parse)


def fingerprint(project: Path) -> tuple[float, float]:
    """Fingerprinting every module of a project, none of which was seen before; and only parsing them."""
    import ast

    from oloproof.identity.fingerprint import MemoryCache
    from oloproof.identity.sources import undisturbed

    files = sorted(project.glob("**/*.py"))

    def parse() -> None:
        with undisturbed():
            for file in files:
                ast.parse(file.read_bytes())

    return _best(lambda: _identify(project, files, MemoryCache()), 3), _best(parse, 3)


def fingerprint_edited(project: Path) -> tuple[float, float]:
    """The same when one file was changed since; and only reading the files and their digests."""
    import itertools

    from oloproof.identity.fingerprint import MemoryCache

    files = sorted(project.glob("**/*.py"))
    cache, numbers = MemoryCache(), itertools.count()
    _identify(project, files, cache)
    edited = files[len(files) // 2]
    text = edited.read_text(encoding="utf-8")

    def edit_and_identify() -> None:
        edited.write_text(f"{text}\nEDITED = {next(numbers)}\n", encoding="utf-8")
        _identify(project, files, cache)

    seconds = _best(edit_and_identify)
    edited.write_text(text, encoding="utf-8")
    return seconds, _best(lambda: _digests(files))


def fingerprint_again(project: Path) -> tuple[float, float]:
    """The same when all were seen before; and only reading the files and their digests."""
    from oloproof.identity.fingerprint import MemoryCache

    files = sorted(project.glob("**/*.py"))
    cache = MemoryCache()
    _identify(project, files, cache)
    return _best(lambda: _identify(project, files, cache)), _best(lambda: _digests(files))


def _digests(files: list[Path]) -> None:
    import hashlib

    for file in files:
        hashlib.sha256(file.read_bytes()).digest()


def _identify(project: Path, files: list[Path], cache: Any) -> None:
    from oloproof.identity.fingerprint import PackageFacts, code_identity

    modules = {
        ".".join(file.relative_to(project).with_suffix("").parts).removesuffix(".__init__"): str(file)
        for file in files
    }
    nothing = PackageFacts({}, {}, {})
    code_identity("app:Rag", modules, [str(project)], "3.11", lambda names: nothing, cache)


def stages(project: Path) -> tuple[float, float]:
    """A plain loop that calls the app's two stages in this process, and nothing else: a reference for whole runs."""
    started = time.perf_counter()
    sys.path.insert(0, str(project))
    app: Any = __import__("app")
    system = app.SupportRag()
    with (project / "data" / "support.jsonl").open(encoding="utf-8") as file:
        for line in file:
            question = json.loads(line)["input"]
            found = system.retrieve(question, 6)
            system.generate(question, found.candidates[:2])
    taken = time.perf_counter() - started
    return taken, taken


def stored_rows(project: Path) -> tuple[float, float]:
    """Reading the judgments of the store's two newest runs and nothing else: a reference for comparisons."""
    started = time.perf_counter()
    connection = sqlite3.connect(project / ".oloproof" / "store.sqlite3")
    runs = connection.execute("SELECT id FROM run ORDER BY id DESC LIMIT 2").fetchall()
    for run in runs:
        for judgments, tags in connection.execute("SELECT judgments, tags FROM run_case WHERE run = ?", run):
            json.loads(judgments)
            json.loads(tags)
    taken = time.perf_counter() - started
    return taken, taken


def betting(_: Path) -> tuple[float, float]:
    """The betting interval of distinct scores; and the wealth of all its bets at a single mean."""
    import numpy as np

    from oloproof.statistics.betting import bounded_mean_betting

    values = np.random.default_rng(1).random(BETTING_VALUES)
    bets = np.arange(1, 21) / 21
    once = _best(lambda: np.log(1.0 + np.multiply.outer(bets, values / 0.5 - 1.0)).sum(axis=1))
    return _best(lambda: bounded_mean_betting(values)), once


def _best(action: Callable[[], object], times: int = 5) -> float:
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        action()
        taken.append(time.perf_counter() - started)
    return min(taken)


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](Path(sys.argv[2]))))
