"""However the engine ends, and whatever its workers are doing: they end too, and soon."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from projects import MakeProject, Oloproof, case, command, environment, marked_processes
from workers import eventually

from oloproof.worker.keeper import HAS_KEEPER
from oloproof.worker.kernel import MARK, end_marked
from oloproof_ci.leftovers import descendants

#: What a worker can be busy with, from the easiest to the hardest to interrupt.
BUSY = {
    "sleeps": "time.sleep(3600)",
    "loops": "while True: pass",
    "awaits": "asyncio.run(asyncio.sleep(3600))",
    "keeps_the_interpreter_in_c": "ctypes.PyDLL(None).sleep(3600)",
    "backtracks_for_ever": "re.match('(a+)+$', 'a' * 64 + 'b')",
    "is_stopped": "os.kill(os.getpid(), signal.SIGSTOP)",
    "ignores_all_signals": "[signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; time.sleep(3600)",
    "waits_for_a_child": "subprocess.run(['sleep', '3600'])",
    "waits_for_a_fork": "os.fork() or time.sleep(3600); os.wait()",
    "has_left_a_daemon": (
        "os.fork() or (os.setsid(), os.fork() or os.execve('/bin/sh', ['sh', '-c', 'sleep 3600; : ' + "
        "os.environ['OLOPROOF_TEST']], {}), os._exit(0)); time.sleep(3600)"
    ),
    "has_closed_its_descriptors": "os.closerange(0, 200); time.sleep(3600)",
}

APP = """
import asyncio, ctypes, os, re, signal, subprocess, time
from pathlib import Path
from oloproof import Passage, Retrieval, rag_system

def busy():
    Path(__file__).with_name("begun.txt").write_text("")
    {code}

{at_import}

@rag_system(name="busy", version="1", depth=3, top_k=2, index_version="1")
class Rag:
    def __init__(self):
        {in_constructor}

    def retrieve(self, input, depth):
        {in_stage}
        return Retrieval(query=None, depth=depth, candidates=(Passage(doc_id="d1"),))

    async def generate(self, input, context):
        {in_coroutine}
        return {{}}
"""
PLACES = ("at_import", "in_constructor", "in_stage", "in_coroutine")


def busy_app(code: str, place: str = "in_stage") -> str:
    return APP.format(code=code, **{each: "busy()" if each == place else "pass" for each in PLACES})


@contextmanager
def running(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A run in a project whose worker has begun to be busy, and what marks its processes."""
    marker = f"oloproof-test-{uuid4().hex}"
    with subprocess.Popen(
        command("run"),
        cwd=folder,
        env=environment(OLOPROOF_TEST=marker),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as engine:
        try:
            assert eventually((folder / "begun.txt").exists, 20), "the worker never began"
            time.sleep(0.1)
            assert engine.poll() is None
            assert len(marked_processes(marker)) >= 2
            yield engine, marker
        finally:
            engine.kill()


ways = pytest.mark.parametrize(
    ("doing", "place", "threads"),
    [
        *((doing, "in_stage", 1) for doing in BUSY),
        *((doing, "in_stage", 3) for doing in BUSY if doing != "ignores_all_signals"),
        *(("sleeps", place, threads) for place in PLACES if place != "in_stage" for threads in (1, 3)),
    ],
)


@ways
def test_no_worker_outlives_an_engine_that_is_killed(
    make_project: MakeProject, doing: str, place: str, threads: int
) -> None:
    cases = [case(str(n)) for n in range(4)]
    folder = make_project(busy_app(BUSY[doing], place), cases=cases, execution={"threads": threads})
    with running(folder) as (engine, marker):
        os.kill(engine.pid, signal.SIGKILL)
        engine.wait()
        assert eventually(lambda: marked_processes(marker) == []), marked_processes(marker)


@ways
def test_ctrl_c_ends_the_run_and_its_workers_within_a_second(
    make_project: MakeProject, doing: str, place: str, threads: int
) -> None:
    cases = [case(str(n)) for n in range(4)]
    folder = make_project(busy_app(BUSY[doing], place), cases=cases, execution={"threads": threads})
    with running(folder) as (engine, marker):
        engine.send_signal(signal.SIGINT)
        started = time.monotonic()
        _, errors = engine.communicate(timeout=10)
        assert time.monotonic() - started < 1.0
        assert engine.returncode == 5
        assert "interrupted" in errors
        assert marked_processes(marker) == []


def test_no_worker_of_several_outlives_an_engine_that_is_killed(make_project: MakeProject) -> None:
    cases = [case(str(n)) for n in range(8)]
    folder = make_project(busy_app(BUSY["loops"]), cases=cases, execution={"workers": 3})
    with running(folder) as (engine, marker):
        assert eventually(lambda: len(marked_processes(marker)) == 1 + 3 * (1 + HAS_KEEPER))
        os.kill(engine.pid, signal.SIGKILL)
        engine.wait()
        assert eventually(lambda: marked_processes(marker) == [])


DAEMONS = """
import os, time
from pathlib import Path
from oloproof import Passage, Retrieval, rag_system

NAME = "daemon of " + os.environ["OLOPROOF_TEST"]

def daemons():
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [file] if NAME in file.read_text(errors="replace") else []
        except OSError:
            continue
    return found

def leave_daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve("/bin/sh", ["sh", "-c", "sleep 3600; : " + NAME], {})
        os._exit(0)
    os.wait()
    while not daemons():
        time.sleep(0.01)

def fail(how):
    if how == "raises":
        raise ValueError
    if how == "exits":
        os._exit(0)
    if how == "hangs":
        time.sleep(3600)
    if how == "is_killed":
        os.kill(os.getpid(), 9)

@rag_system(name="daemons", version="1", depth=3, top_k=2, index_version="1")
class Rag:
    def retrieve(self, input, depth):
        if input["question"] == "later":
            while daemons():
                time.sleep(0.01)
        else:
            leave_daemon()
            fail(input["question"])
        return Retrieval(query=None, depth=depth, candidates=())

    def generate(self, input, context):
        return {"answer": "blue"}
"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("how", ["raises", "exits", "hangs", "is_killed"])
def test_a_daemon_ends_with_the_worker_that_is_replaced(
    make_project: MakeProject, oloproof: Oloproof, how: str, threads: int
) -> None:
    marker = f"oloproof-test-{uuid4().hex}"
    execution = {"threads": threads, "timeout_seconds": 2}
    folder = make_project(DAEMONS, cases=[case(how), case("later")], execution=execution)
    done = oloproof("run", "--json", cwd=folder, env={"OLOPROOF_TEST": marker})
    assert (done.record["run"]["attempted"], done.record["run"]["errored"]) == (2, 1)
    assert marked_processes(marker) == []


def test_a_daemon_ends_with_the_run(make_project: MakeProject, oloproof: Oloproof) -> None:
    marker = f"oloproof-test-{uuid4().hex}"
    folder = make_project(DAEMONS, cases=[case("one")])
    assert oloproof("run", "--json", cwd=folder, env={"OLOPROOF_TEST": marker}).record["run"]["errored"] == 0
    assert marked_processes(marker) == []


def test_where_the_kernel_does_not_do_it_a_thread_does(tmp_path: Path) -> None:
    """As on systems that cannot choose the signal a closed pipe sends."""
    code = (
        "import fcntl, sys, time\n"
        "del fcntl.F_SETSIG\n"
        "from oloproof.worker.lifeline import end_with\n"
        "end_with(int(sys.argv[1]))\n"
        "print('ready', flush=True)\n"
        "time.sleep(3600)\n"
    )
    theirs, ours = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", code, str(theirs)],
        pass_fds=[theirs],
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as worker:
        os.close(theirs)
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"ready\n"
        assert worker.poll() is None
        os.close(ours)
        assert worker.wait(5) == -signal.SIGKILL


def test_a_process_that_ends_while_the_others_are_looked_through_is_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kernel says ESRCH, and not that there is no such file, of one that ends at just that moment."""
    looked_at = os.stat

    def ending(path: str | os.PathLike[str] | int, *args: object, **how: object) -> os.stat_result:
        if str(path).startswith("/proc/") and str(path).endswith(("/environ", "/stat")):
            raise ProcessLookupError(3, "No such process", path)
        return looked_at(path, *args, **how)  # type: ignore[arg-type]

    mark = uuid4().hex
    marked = subprocess.Popen(["sleep", "3600"], env={**os.environ, MARK: mark})
    try:
        monkeypatch.setattr(os, "stat", ending)
        assert marked.pid in descendants()
        end_marked(mark)
        assert marked.wait(timeout=10) == -signal.SIGKILL
    finally:
        marked.kill()
        marked.wait()
