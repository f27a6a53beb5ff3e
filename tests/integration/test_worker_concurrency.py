"""Several calls at once in one worker process: `execution.threads`."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from faults import FAULTS, HARMLESS, faulty_app
from projects import MakeProject, Oloproof, case
from workers import MakeWorkers, Workers, eventually, generate, retrieve, workers

from oloproof.worker.process import Reply


@pytest.fixture
def make_workers(tmp_path: Path) -> Iterator[MakeWorkers]:
    with ExitStack() as stack:

        def make(threads: int = 4, **more: Any) -> Workers:
            return stack.enter_context(workers(tmp_path, threads=threads, **more))

        yield make


def pid(reply: Reply) -> int:
    """The process that answered."""
    assert reply.kind is None, reply
    text = reply.value if isinstance(reply.value, str) else reply.value["query"]
    found = json.loads(text)
    return int(found if isinstance(found, int) else found["pid"])


def printed(name: str) -> str:
    return f"begins {name}\nends {name}\n"


# ------------------------------------------------------------------------------------------------- at once


def test_calls_run_at_once_in_one_process(make_workers: MakeWorkers) -> None:
    """None of the four would get past the barrier before the other three are there."""
    found = make_workers()
    replies = found.call_all([retrieve(str(n), "barriers[4].wait(10)") for n in range(4)])
    assert len({pid(reply) for reply in replies}) == 1
    assert found.noted == ["0", "1", "2", "3", "construct"]


def test_no_more_calls_run_at_once_in_a_process_than_it_has_threads(make_workers: MakeWorkers) -> None:
    replies = make_workers(threads=2).call_all([retrieve(str(n), "time.sleep(0.2)") for n in range(4)])
    assert sorted(Counter(map(pid, replies)).values()) == [2, 2]


def test_coroutines_run_at_once_on_one_loop_on_the_main_thread(make_workers: MakeWorkers) -> None:
    code = """
        barrier = globals().setdefault("barrier", asyncio.Barrier(4))
        async with asyncio.timeout(10):
            await barrier.wait()
        return id(asyncio.get_running_loop()), threading.current_thread() is threading.main_thread()
    """
    # all four share the names that the app's module has
    code = code.replace("globals()", "sys.modules['app'].__dict__")
    replies = make_workers().call_all([generate(str(n), code) for n in range(4)])
    assert len({pid(reply) for reply in replies}) == 1
    ((_, on_main),) = {tuple(json.loads(reply.value)["found"]) for reply in replies}
    assert on_main


def test_stages_of_both_kinds_run_beside_each_other(make_workers: MakeWorkers) -> None:
    both = [
        retrieve("sync", "barriers[2].wait(10)"),
        generate("async", "await asyncio.to_thread(barriers[2].wait)"),
    ]
    replies = make_workers().call_all(both)
    assert [reply.log for reply in replies] == [printed("sync"), printed("async")]


def test_the_app_is_constructed_once_and_on_the_main_thread(make_workers: MakeWorkers) -> None:
    found = make_workers()
    (found.folder / "construct.py").write_text(
        "time.sleep(0.3)\nassert threading.current_thread() is threading.main_thread()"
    )
    replies = found.call_all([retrieve(str(n), "barriers[4].wait(10)") for n in range(4)])
    assert {reply.kind for reply in replies} == {None}
    assert found.noted.count("construct") == 1


def test_calls_that_waited_for_a_constructor_share_its_failure(make_workers: MakeWorkers) -> None:
    found = make_workers()
    (found.folder / "construct.py").write_text("time.sleep(0.5)\nraise OSError('no index')")
    replies = found.call_all([retrieve(str(n)) for n in range(4)])
    assert {reply.message for reply in replies} == {"app:Rag() failed: OSError: no index"}
    assert found.noted == ["construct"]


# ----------------------------------------------------------------------------------------- faults of others


def test_a_call_past_its_time_is_errored_and_the_others_are_run_again(make_workers: MakeWorkers) -> None:
    found = make_workers()
    hung = threading.Thread(
        target=lambda: replies.append(found.call(retrieve("hung", "time.sleep(60)"), 1.0))
    )
    replies: list[Reply] = []
    found.call(retrieve("first"))
    hung.start()
    time.sleep(0.6)
    others = found.call_all([retrieve(f"other{n}", "time.sleep(0.7)") for n in range(3)], 1.5)
    hung.join()
    assert [(reply.kind, reply.message) for reply in replies] == [("timeout", "no answer within 1 s")]
    assert replies[0].log == "begins hung\n"
    assert [reply.log for reply in others] == [printed(f"other{n}") for n in range(3)]
    assert Counter(found.noted) == {
        "construct": 3, "first": 1, "hung": 2, "other0": 2, "other1": 2, "other2": 2,
    }  # fmt: skip


def test_a_call_that_holds_the_process_up_is_the_only_one_that_is_errored(make_workers: MakeWorkers) -> None:
    """All have the same limit, so whose clock runs out first says nothing; each that it may have been is run alone."""
    found = make_workers()
    found.call(retrieve("first"))
    held = "import re; re.match(r'(a+)+$', 'a' * 60 + 'b')"
    codes = [held if n == 2 else "time.sleep(0.1)" for n in range(6)]
    replies = found.call_all([retrieve(str(n), code) for n, code in enumerate(codes)], 1.5)
    assert [reply.kind for reply in replies] == [None, None, "timeout", None, None, None]


WRITES_TO_THE_REPLIES = """
for fd in os.listdir("/proc/self/fd"):
    flags = Path(f"/proc/self/fdinfo/{fd}").read_text().split()[3] if os.path.exists(f"/proc/self/fd/{fd}") else ""
    if flags.endswith("1") and stat.S_ISFIFO(os.fstat(int(fd)).st_mode):
        os.write(int(fd), b"[]\\n")
time.sleep(0.3)
"""


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("os._exit(9)", "the worker ended with exit status 9"),
        ("ctypes.string_at(0)", "the worker was ended by SIGSEGV"),
        ("os.closerange(0, 256)", "the code closed the file descriptors of its worker"),
        (WRITES_TO_THE_REPLIES, "the worker's pipe carried something that is no reply"),
    ],
)
def test_only_the_call_that_crashes_is_errored_and_each_under_way_is_run_again_alone(
    make_workers: MakeWorkers, code: str, message: str
) -> None:
    meet = "if first(name): barriers[4].wait(10)\n"
    names = ["a", "b", "crashes", "c"]
    codes = {name: meet + (code if name == "crashes" else "time.sleep(0.3)") for name in names}
    found = make_workers()
    replies = dict(zip(names, found.call_all([retrieve(*each) for each in codes.items()]), strict=True))
    assert (replies["crashes"].kind, replies["crashes"].message) == ("crash", message)
    assert replies["crashes"].log.startswith("begins crashes\n")
    assert [replies[name].log for name in "abc"] == [printed(name) for name in "abc"]
    assert [found.noted.count(name) for name in "abc"] == [2, 2, 2]
    assert found.noted.count("crashes") in (
        2,
        3,
    )  # on a fresh worker too, when one of the others was alone before it


def test_what_a_call_leaves_behind_ends_none_of_those_after_it(make_workers: MakeWorkers) -> None:
    """Each is run again on a worker of its own, and the one there that meets it a second time on a fresh one."""
    found = make_workers()
    leaves = "if first(name): barriers[4].wait(10)\nthreading.Timer(0.2, os._exit, (0,)).start()"
    sleeps = "if first(name): barriers[4].wait(10)\ntime.sleep(0.5)"
    requests = [retrieve("leaves", leaves), *(retrieve(name, sleeps) for name in "abc")]
    assert [reply.kind for reply in found.call_all(requests)] == [None] * 4
    assert [reply.kind for reply in found.call_all([retrieve("d"), retrieve("e")])] == [None] * 2


def test_a_call_that_crashes_while_it_runs_by_itself_is_not_run_again(make_workers: MakeWorkers) -> None:
    found = make_workers()
    reply = found.call(retrieve("crashes", "print('last words')\nos._exit(3)"))
    assert (reply.kind, reply.log) == ("crash", "begins crashes\nlast words\n")
    assert found.noted == ["construct", "crashes"]


@pytest.mark.parametrize(
    ("request_", "kind", "message"),
    [
        (retrieve("bad", "barriers[3].wait(10)\nsys.exit(0)"), "exit", "the code called sys.exit(0)"),
        (retrieve("bad", "barriers[3].wait(10)\nraise Exception('no')"), "exception", "Exception: no"),
        (
            generate("bad", "await asyncio.to_thread(barriers[3].wait)\nsys.exit('bye')"),
            "exit",
            "the code called sys.exit('bye')",
        ),
        (
            generate("bad", "await asyncio.to_thread(barriers[3].wait)\nraise KeyboardInterrupt"),
            "exception",
            "KeyboardInterrupt",
        ),
    ],
)
def test_what_one_call_raises_does_not_touch_the_others(
    make_workers: MakeWorkers, request_: dict[str, Any], kind: str, message: str
) -> None:
    """They end where they began, and the process they share is then replaced."""
    found = make_workers()
    slow = "barriers[3].wait(10)\ntime.sleep(0.5)"
    slow_too = "await asyncio.to_thread(barriers[3].wait)\nawait asyncio.sleep(0.5)"
    bad, *others = found.call_all([request_, retrieve("a", slow), generate("b", slow_too)])
    assert (bad.kind, bad.message, bad.log) == (kind, message, "begins bad\n")
    assert [reply.log for reply in others] == [printed("a"), printed("b")]
    (shared,) = {pid(reply) for reply in others}
    assert pid(found.call(retrieve("next"))) != shared
    assert eventually(lambda: not os.path.exists(f"/proc/{shared}"))
    assert found.noted == ["a", "b", "bad", "construct", "construct", "next"]


def test_while_a_replaced_process_ends_its_calls_there_is_one_more_at_most(make_workers: MakeWorkers) -> None:
    found = make_workers()
    seen: list[int] = []
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.02):
            seen.append(found.at_work)

    watching = threading.Thread(target=watch)
    watching.start()
    code = "time.sleep(0.05 * int(name))\nif int(name) % 3 == 0: raise ValueError(name)"
    replies = found.call_all([retrieve(str(n % 10), code) for n in range(40)], at_once=4)
    stop.set()
    watching.join()
    assert [reply.kind for reply in replies] == [None if n % 10 % 3 else "exception" for n in range(40)]
    assert 1 < max(seen) <= 2


def test_a_call_that_keeps_losing_its_worker_to_others_gets_one_of_its_own(make_workers: MakeWorkers) -> None:
    found = make_workers(threads=2)
    patient = threading.Thread(
        target=lambda: got.append(found.call(retrieve("patient", "time.sleep(1)"), 10))
    )
    got: list[Reply] = []
    patient.start()
    while patient.is_alive():
        found.call(retrieve("hung", "time.sleep(60)"), 0.4)
    assert [reply.log for reply in got] == [printed("patient")]
    assert found.noted.count("patient") == 3


# --------------------------------------------------------------------------------------------------- prints


def test_what_is_printed_stands_with_the_call_that_printed_it(make_workers: MakeWorkers) -> None:
    sync = """
        barriers[4].wait(10)
        def say(where):
            for n in range(50):
                print(name, where, n)
                time.sleep(0.001)
        helper = threading.Thread(target=say, args=["in a thread"])
        helper.start()
        say("itself")
        helper.join()
        logging.warning("%s warns", name)
        sys.stderr.write(name + " without a line's end")
    """
    concurrent = """
        await asyncio.to_thread(barriers[4].wait, 10)
        async def say(where):
            for n in range(50):
                print(name, where, n)
                await asyncio.sleep(0.001)
        await asyncio.gather(say("in a task"), say("in another"), asyncio.to_thread(print, name, "in a thread"))
        logging.warning("%s warns", name)
        print(name, "without a line's end", end="")
    """
    requests = [
        retrieve("a", sync),
        generate("b", concurrent),
        retrieve("c", sync),
        generate("d", concurrent),
    ]
    for name, reply in zip("abcd", make_workers().call_all(requests), strict=True):
        lines = reply.log.splitlines()
        assert len(lines) == 104 - (name in "ac")
        assert lines[0] == f"begins {name}"
        assert lines[-1] == f"{name} without a line's endends {name}"
        assert f"{name} warns" in lines
        assert all(name in line.split() or line.endswith(f"ends {name}") for line in lines)


def test_what_no_call_can_be_told_of_is_shown_with_one_under_way(make_workers: MakeWorkers) -> None:
    requests = [
        retrieve(f"call{n}", "barriers[2].wait(10)\nos.system(f'echo from a process of {name}')")
        for n in (1, 2)
    ]
    replies = make_workers().call_all(requests)
    log = "".join(reply.log for reply in replies)
    assert sorted(line for line in log.splitlines() if "process" in line) == [
        "from a process of call1",
        "from a process of call2",
    ]


def test_of_a_flood_the_beginning_and_the_end_are_kept_with_its_call(make_workers: MakeWorkers) -> None:
    flood = "barriers[2].wait(10)\nprint('y' * 100_000_000)\nprint('the end of 100 MB')"
    calm, loud = make_workers().call_all([retrieve("calm", "barriers[2].wait(10)"), retrieve("loud", flood)])
    assert calm.log == printed("calm")
    assert loud.log.startswith("begins loud\nyyy")
    assert loud.log.endswith("yyy\nthe end of 100 MB\nends loud\n")
    assert "99,984,041 bytes left out" in loud.log
    assert len(loud.log) < 20_000


# ------------------------------------------------------------------------------------------------ all faults

#: What concerns the whole process, so that calls beside it feel it: with one call at once it is undone.
PROCESS_WIDE = {
    "closes_standard_output", "closes_every_descriptor", "closes_all_but_the_standard_descriptors",
    "replaces_the_descriptors", "replaces_the_streams", "changes_folder", "forgets_its_environment",
    "comes_back_twice", "starts_a_daemon", "leaves_a_fork_behind", "puts_a_stream_that_cannot_be_flushed",
    "has_later_replies_lie", "has_later_errors_lie", "leaves_a_thread_that_ends_the_process",
}  # fmt: skip
#: Only the main thread may handle signals, and it serves no call when there are several.
MAIN_THREAD_ONLY = {
    "ignores_signals", "raises_from_a_signal_handler", "is_ended_by_its_own_alarm", "interrupts_its_main_thread",
    "leaves_an_alarm_behind", "leaves_an_alarm_that_would_end_it",
}  # fmt: skip


def requests_of(name: str, stage: str) -> dict[str, Any]:
    if stage == "retrieve":
        return {"op": "retrieve", "input": {"case": name}, "depth": 3}
    if stage == "generate":
        return {"op": "generate", "input": {"case": name}, "context": [["d1", None, 1.0, "blue"]]}
    return {"op": "count_tokens", "passages": [["d1", None, 1.0, f"blue {name}"]]}


def test_every_fault_is_told_of_its_own_call_whatever_runs_beside_it(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("here")
    stages = {name: fault.stage for name, fault in FAULTS.items()} | dict.fromkeys(HARMLESS, "retrieve")
    names = [
        each
        for name in stages.keys() - PROCESS_WIDE - MAIN_THREAD_ONLY
        for each in (name, f"sound_before_{name}")
    ]
    requests = [requests_of(name, stages[name.removeprefix("sound_before_")]) for name in names]
    with workers(tmp_path, faulty_app(), threads=4) as found:
        replies = dict(zip(names, found.call_all(requests, at_once=8), strict=True))
    wrong = {
        name: reply
        for name, reply in replies.items()
        if (name in FAULTS) != (reply.kind is not None)
        or (name in FAULTS and (reply.kind != FAULTS[name].kind or FAULTS[name].reason not in reply.message))
    }
    assert wrong == {}
    for name, request in zip(names, requests, strict=True):
        if request["op"] == "retrieve":
            lines = [line for line in replies[name].log.splitlines() if line.startswith("printed by ")]
            assert lines == [f"printed by {name}"]


def test_a_run_with_threads_comes_to_the_same_end(make_project: MakeProject, oloproof: Oloproof) -> None:
    faults = [
        "raises",
        "exits_with_0",
        "leaves_with_0",
        "segfaults",
        "count_exits",
        "answer_crashes",
        "answer_is_text",
    ]
    names = [name for fault in faults for name in (fault, f"sound_after_{fault}", f"sound_too_after_{fault}")]
    folder = make_project(
        faulty_app(),
        cases=[case(name, input={"case": name}) for name in names],
        files={"note.txt": "here"},
        execution={"workers": 2, "threads": 3},
    )
    run = oloproof("run", "--json", cwd=folder).record["run"]
    rows = oloproof("inspect", "latest", "--json", cwd=folder).record["cases"]
    assert (run["attempted"], run["errored"]) == (len(names), len(faults))
    told = {row["case_id"]: (row["error"]["stage"], row["error"]["kind"]) for row in rows if row["error"]}
    assert told == {name: (FAULTS[name].stage, FAULTS[name].kind) for name in faults}
    assert all(row["judgments"] == [1.0, 1.0] for row in rows if row["case_id"] not in faults)


def test_a_hundred_calls_of_which_a_fifth_commit_a_fault(make_workers: MakeWorkers) -> None:
    chance = random.Random(20240611)
    faults = {
        "crash": "os._exit(0)",
        "exit": "sys.exit(0)",
        "exception": "raise ValueError",
        "timeout": "time.sleep(60)",
    }
    wanted = [chance.choice([None] * 16 + list(faults)) for _ in range(100)]
    requests = []
    for n, fault in enumerate(wanted):
        code = f"time.sleep({chance.random() / 50})\n" + (faults[fault] if fault else "")
        if fault is None and n % 2:
            requests.append(generate(f"call{n}", f"await asyncio.sleep({chance.random() / 50})"))
        else:
            requests.append(retrieve(f"call{n}", code))
    found = make_workers(threads=8)
    replies = found.call_all(requests, 1.0, at_once=16)
    assert [reply.kind for reply in replies] == wanted
    assert [reply.log for reply in replies if reply.kind is None] == [
        printed(f"call{n}") for n, fault in enumerate(wanted) if fault is None
    ]
