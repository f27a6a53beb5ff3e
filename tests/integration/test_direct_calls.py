"""Calls to the one worker of a checkout, made by the thread that waits for them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workers import Request, Workers, evaluate, eventually, retrieve, workers

from oloproof.execution.direct import DirectCalls
from oloproof.worker.calls import release
from oloproof.worker.process import Reply


@contextmanager
def direct(folder: Path, timeout: float = 20.0) -> Iterator[tuple[Workers, DirectCalls]]:
    with workers(folder) as found:
        calls = DirectCalls(found.checkout, timeout)
        try:
            yield found, calls
        finally:
            calls.cancel()
            release(found.checkout)
            calls.close()


def replies(calls: DirectCalls, *requests: Request) -> list[Reply]:
    """Those to requests that are all submitted before the first reply is taken; they come in that order."""
    for number, request in enumerate(requests):
        calls.submit(number, request)
    found = [calls.next_done() for _ in requests]
    assert [None if each is None else each[0] for each in found] == list(range(len(requests)))
    return [each[1] for each in found if each is not None]


def pids(found: list[Reply]) -> list[Any]:
    return [None if each.kind else each.value["query"] for each in found]


def test_all_are_answered_by_one_process_and_each_has_its_own_prints(tmp_path: Path) -> None:
    with direct(tmp_path) as (found, calls):
        answered = replies(calls, *(retrieve(str(n)) for n in range(6)))
        assert [each.log for each in answered] == [f"begins {n}\nends {n}\n" for n in range(6)]
        assert len(set(pids(answered))) == 1
        assert found.noted == ["0", "1", "2", "3", "4", "5", "construct"]


def test_the_next_one_is_at_work_while_a_reply_is_looked_at(tmp_path: Path) -> None:
    with direct(tmp_path) as (found, calls):
        replies(calls, retrieve("first"))
        for name in ("second", "third"):
            calls.submit(name, retrieve(name))
        assert calls.next_done() is not None
        assert eventually(lambda: "third" in found.noted)
        assert calls.next_done() is not None


def test_nothing_is_given_while_a_call_goes_on(tmp_path: Path) -> None:
    with direct(tmp_path) as (_, calls):
        replies(calls, retrieve("first"))
        calls.submit("slow", retrieve("slow", "time.sleep(0.5)"))
        started = time.monotonic()
        assert calls.next_done(0.0) is None
        assert calls.next_done(0.05) is None
        assert time.monotonic() - started < 0.4
        done = calls.next_done()
        assert done is not None
        assert done[1].kind is None


def test_a_fault_is_its_own_calls_and_the_next_has_another_worker(tmp_path: Path) -> None:
    faults = {
        "exception": "raise ValueError('no')",
        "exit": "sys.exit(3)",
        "crash": "os.kill(os.getpid(), signal.SIGKILL)",
    }
    for kind, code in faults.items():
        folder = tmp_path / kind
        folder.mkdir()
        with direct(folder) as (_, calls):
            answered = replies(calls, retrieve("a"), retrieve("b", code), retrieve("c"), retrieve("d"))
            assert [each.kind for each in answered] == [None, kind, None, None]
            first, _, third, last = pids(answered)
            assert first != third == last


def test_a_call_past_its_time_is_given_up(tmp_path: Path) -> None:
    with direct(tmp_path, timeout=0.5) as (_, calls):
        answered = replies(calls, retrieve("a"), retrieve("b", "time.sleep(60)"), retrieve("c"))
        assert [each.kind for each in answered] == [None, "timeout", None]
        assert answered[1].message == "no answer within 0.5 s"


def test_a_reply_that_came_in_time_counts_however_late_it_is_looked_at(tmp_path: Path) -> None:
    with direct(tmp_path, timeout=0.5) as (_, calls):
        replies(calls, retrieve("a"))
        calls.submit("b", retrieve("b"))
        time.sleep(0.7)
        done = calls.next_done()
        assert done is not None
        assert done[1].kind is None


def test_what_an_earlier_call_left_behind_is_no_fault_of_the_next(tmp_path: Path) -> None:
    """The timer ends the process when it has answered, before or while it takes the next request."""
    leaves = """
        signal.signal(signal.SIGALRM, lambda *_: sys.exit(1))
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGALRM)).start()
    """
    with direct(tmp_path) as (_, calls):
        (first,) = replies(calls, retrieve("a", leaves))
        time.sleep(0.4)
        (second,) = replies(calls, retrieve("b"))
        assert [first.kind, second.kind] == [None, None]


def test_evaluators_have_a_worker_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "judging.py").write_text(
        "import os\n\ndef judge(**given):\n    return os.getpid() % 2 == 0\n"
    )
    with direct(tmp_path) as (found, calls):
        requests = [retrieve("a"), evaluate("judging:judge"), retrieve("b"), evaluate("judging:judge")]
        answered = replies(calls, *requests)
        assert [each.kind for each in answered] == [None] * 4
        assert answered[0].value["query"] == answered[2].value["query"]
        assert found.at_work == 2


def test_a_call_that_nobody_waits_for_any_more_ends_with_its_worker(tmp_path: Path) -> None:
    """That nothing of it is left is seen where the workers end."""
    started = time.monotonic()
    with direct(tmp_path) as (_, calls):
        replies(calls, retrieve("a"))
        calls.submit("b", retrieve("b", "time.sleep(60)"))
        assert calls.next_done(0.05) is None
    assert time.monotonic() - started < 20
