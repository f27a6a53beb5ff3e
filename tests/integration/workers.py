"""Calls to workers without a command line around them: a project in a folder, and requests from many threads."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from textwrap import dedent
from typing import Any
from uuid import uuid4

from projects import marked_processes

from oloproof.worker.calls import perform, release
from oloproof.worker.keeper import HAS_KEEPER
from oloproof.worker.process import Checkout, Reply

Request = dict[str, Any]

#: A system that does what its input says: `code` is run with the names of this module and `name`, the call's.
OBEDIENT = """
import asyncio, ctypes, logging, os, re, signal, stat, subprocess, sys, threading, time
from pathlib import Path
from oloproof import Passage, Retrieval, rag_system

logging.basicConfig(format="%(message)s")
barriers = {n: threading.Barrier(n) for n in (2, 3, 4)}

def note(name):
    with open("calls.txt", "a") as file:
        file.write(name + "\\n")

def first(name):
    return Path("calls.txt").read_text().split().count(name) == 1

@rag_system(name="obedient", version="1", depth=3, top_k=2, index_version="1")
class Rag:
    def __init__(self):
        note("construct")
        exec(Path("construct.py").read_text() if os.path.exists("construct.py") else "", globals())

    def retrieve(self, input, depth):
        name = input["name"]
        note(name)
        print("begins", name)
        exec(input.get("code", ""), globals() | {"name": name})
        print("ends", name)
        return Retrieval(query=os.getpid(), depth=depth, candidates=())

    async def generate(self, input, context):
        name = input["name"]
        note(name)
        print("begins", name)
        scope = {}
        lines = ["async def work():", *("    " + line for line in input.get("code", "pass").splitlines())]
        exec("\\n".join(lines), globals() | {"name": name}, scope)
        found = await scope["work"]()
        print("ends", name)
        return {"pid": os.getpid(), "found": found}
"""


def eventually(what: Callable[[], bool], seconds: float = 3.0) -> bool:
    """Whether something comes to be so."""
    until = time.monotonic() + seconds
    while not what():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def is_running(process: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Workers:
    """The workers of a project, and what became of its calls."""

    def __init__(self, folder: Path, checkout: Checkout) -> None:
        self.folder = folder
        self.checkout = checkout

    def call(self, request: Request, timeout: float = 20.0) -> Reply:
        return perform(self.checkout, request, timeout)

    def call_all(self, requests: Sequence[Request], timeout: float = 20.0, at_once: int = 64) -> list[Reply]:
        """The replies to requests that are made at the same time."""
        with ThreadPoolExecutor(min(at_once, len(requests))) as threads:
            return list(threads.map(lambda request: self.call(request, timeout), requests))

    @property
    def noted(self) -> list[str]:
        """What the app noted so far: each construction and each call, sorted."""
        path = self.folder / "calls.txt"
        return sorted(path.read_text().split()) if path.exists() else []

    @property
    def processes(self) -> list[str]:
        return marked_processes(dict(self.checkout.environment)["OLOPROOF_TEST"])

    @property
    def at_work(self) -> int:
        """How many workers there are: of the processes, those that another one of them keeps."""
        numbers = [int(each.split()[0]) for each in self.processes]
        parents = []
        for number in numbers:
            with suppress(OSError):
                parents.append(int(Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[1]))
        return sum(parent in numbers for parent in parents) if HAS_KEEPER else len(numbers)


@contextmanager
def workers(folder: Path, app: str = OBEDIENT, **more: Any) -> Iterator[Workers]:
    """Workers of an app that is written to a folder; they are gone afterwards."""
    (folder / "app.py").write_text(dedent(app))
    marker = f"oloproof-test-{uuid4().hex}"
    environment = tuple(sorted({**os.environ, "OLOPROOF_TEST": marker}.items()))
    found = Workers(folder, Checkout(str(folder), "app:Rag", sys.executable, environment, **more))
    try:
        yield found
    finally:
        release(found.checkout)
    assert eventually(lambda: found.processes == []), found.processes


def retrieve(name: str, code: str = "") -> Request:
    return {"op": "retrieve", "input": {"name": name, "code": dedent(code)}, "depth": 3}


def generate(name: str, code: str = "pass") -> Request:
    return {"op": "generate", "input": {"name": name, "code": dedent(code)}, "context": []}


def evaluate(function: str, **more: Any) -> Request:
    given: Mapping[str, Any] = {"input": "q", "expected": {}, "output": {}, "context": []} | more
    return {"op": "evaluate", "object": function, **given}


MakeWorkers = Callable[..., Workers]
