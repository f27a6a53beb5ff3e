"""Whatever the user's code does, its case is errored with a reason, and every other case is scored.

One project holds a case for each fault, and after each of them a sound case that prints, opens a file by a relative
path and must pass. It is run once; the tests read what came of it.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from faults import FAULTS, HARMLESS, faulty_app
from projects import Finished, MakeProject, Oloproof, marked_processes
from workers import eventually, is_running, retrieve, workers

from oloproof.cli import main
from oloproof.worker import calls, lending
from oloproof.worker.channel import LEFTOVER
from oloproof.worker.keeper import HAS_KEEPER
from oloproof.worker.process import Checkout


def _case(name: str) -> dict[str, Any]:
    expected = {
        "answer": "blue",
        "relevant": [{"doc_id": "d1"}],
        "gold_context": [{"doc_id": "d1", "text": "blue"}],
    }
    return {"id": name, "input": {"case": name}, "expected": expected}


POLICY = "{version: 1, rules: [{id: none-wrong, metric: correct, kind: observed_count, max_failures: 0}]}"


@dataclass(frozen=True)
class Outcome:
    """A finished run with the rows of its cases, and the processes that were left when it had ended."""

    folder: Path
    run: Finished
    cases: dict[str, Any]
    left: list[str]

    @property
    def metrics(self) -> dict[str, Any]:
        return {metric["criterion"]: metric for metric in self.run.record["run"]["metrics"]}


def execute(folder: Path, oloproof: Oloproof) -> Outcome:
    marker = f"oloproof-test-{uuid4().hex}"
    run = oloproof("run", "--json", cwd=folder, env={"OLOPROOF_TEST": marker})
    left = marked_processes(marker)
    listed = oloproof("inspect", "latest", "--json", cwd=folder).record["cases"]
    return Outcome(folder, run, {row["case_id"]: row for row in listed}, left)


@pytest.fixture(scope="module")
def outcome(make_project: MakeProject, oloproof: Oloproof) -> Outcome:
    names = [name for each in (*FAULTS, *HARMLESS) for name in (each, f"sound_after_{each}")]
    folder = make_project(
        faulty_app(),
        cases=map(_case, names),
        files={"note.txt": "here", "release.yaml": POLICY},
        execution={"workers": 2, "timeout_seconds": 100},
    )
    return execute(folder, oloproof)


# ----------------------------------------------------------------------------------------- the whole run


def test_the_run_comes_to_its_end_and_says_nothing_but_its_result(outcome: Outcome) -> None:
    run = outcome.run.record["run"]
    progress = re.compile(r"\d+ of \d+ cases")  # a line every ten seconds, on a slow machine
    assert all(progress.fullmatch(line) for line in outcome.run.stderr.splitlines())
    assert run["finished"] is True
    assert run["attempted"] == run["cases"] == 2 * (len(FAULTS) + len(HARMLESS))
    assert run["errored"] == len(FAULTS)


def test_only_the_cases_with_a_fault_are_errored(outcome: Outcome) -> None:
    errored = {name for name, row in outcome.cases.items() if row["error"]}
    assert errored == set(FAULTS)


def test_every_other_case_is_scored(outcome: Outcome) -> None:
    scored = {name: row["judgments"] for name, row in outcome.cases.items() if name not in FAULTS}
    assert {name for name, judgments in scored.items() if judgments != [1.0, 1.0]} == set()


def test_what_errored_is_missing_from_the_rate_and_counted(outcome: Outcome) -> None:
    correct = outcome.metrics["correct"]
    assert correct["observed"] == len(FAULTS) + 2 * len(HARMLESS)
    assert correct["missing"] == len(FAULTS)
    assert correct["estimate"] == 1.0
    assert correct["interval"][0] < 0.75


def test_a_retrieval_that_finished_is_judged_though_a_later_stage_failed(outcome: Outcome) -> None:
    failed_in_retrieve = sum(fault.stage == "retrieve" for fault in FAULTS.values())
    hits = outcome.metrics["hit_rate_at_1"]
    assert hits["missing"] == failed_in_retrieve
    assert hits["observed"] == len(outcome.cases) - failed_in_retrieve


def test_the_exit_code_is_the_gates_whatever_code_the_app_exited_with(outcome: Outcome) -> None:
    gate = outcome.run.record["gate"]
    assert [decision["reason"] for decision in gate["decisions"]] == ["missing_could_change_outcome"]
    assert gate["exit_code"] == outcome.run.returncode == 3


def test_no_process_outlives_the_run(outcome: Outcome) -> None:
    assert outcome.left == []


# ---------------------------------------------------------------------------------------------- each case


@pytest.mark.parametrize("name", FAULTS)
def test_inspect_shows_the_stage_the_kind_and_the_reason(
    outcome: Outcome, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = FAULTS[name]
    config = str(outcome.folder / "oloproof.yaml")
    assert main(["inspect", "latest", "--case", name, "--config", config]) == 0
    lines = capsys.readouterr().out.splitlines()
    (told,) = [line for line in lines if line.startswith("Errored in ")]
    assert told.startswith(f"Errored in {fault.stage}: {fault.kind}: ")
    assert fault.reason in told
    assert "  correct: missing (" + fault.kind + ")" in lines
    assert not any(char in line for line in lines for char in "\x1b\r\x00")


@pytest.mark.parametrize("name", [name for name in FAULTS if FAULTS[name].stage != "retrieve"])
def test_inspect_shows_what_had_been_retrieved_before_the_fault(
    outcome: Outcome, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["inspect", "latest", "--case", name, "--config", str(outcome.folder / "oloproof.yaml")])
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("│ 1 ")]
    became = "not decided" if FAULTS[name].stage == "count_tokens" else "kept"
    assert [cell.strip() for cell in row.split("│")[2:6]] == ["d1", "1", became, "yes"]


def test_an_exception_is_shown_from_the_apps_own_frames_on(outcome: Outcome) -> None:
    trace = outcome.cases["raises"]["error"]["traceback"].splitlines()
    assert trace[0] == "Traceback (most recent call last):"
    assert 'app.py"' in trace[1]
    assert trace[-1] == "ValueError: no such index"
    assert not any("oloproof/worker" in line for line in trace)


def test_a_segfault_shows_where_the_app_was(outcome: Outcome) -> None:
    assert "Fatal Python error: Segmentation fault" in outcome.cases["segfaults"]["log"]
    assert "app.py" in outcome.cases["segfaults"]["log"]


def test_what_a_case_printed_stands_with_that_case_and_no_other(outcome: Outcome) -> None:
    for name, row in outcome.cases.items():
        assert re.findall(r"printed by (\w+)\n", row["log"]) == [name], row["log"][:500]


@pytest.mark.parametrize("name", ["prints_100_mb", "writes_100_mb", "has_a_child_print_100_mb"])
def test_of_a_flood_the_beginning_and_the_end_are_kept(outcome: Outcome, name: str) -> None:
    log = outcome.cases[name]["log"]
    assert log.startswith(f"printed by {name}\n")
    assert "bytes left out" in log
    assert len(log) < 20_000


def test_the_last_line_before_a_crash_is_kept(outcome: Outcome) -> None:
    assert outcome.cases["leaves_with_0"]["log"] == "printed by leaves_with_0\n"


def test_inspect_prints_a_flood_of_zero_bytes_as_escapes(
    outcome: Outcome, capsys: pytest.CaptureFixture[str]
) -> None:
    config = str(outcome.folder / "oloproof.yaml")
    main(["inspect", "latest", "--case", "has_a_child_print_100_mb", "--config", config])
    assert "\x00" not in capsys.readouterr().out


# ------------------------------------------------------------------------------------- calls without an end

HANGS = """
import asyncio, os, signal, time
from oloproof import Passage, Retrieval, rag_system

@rag_system(name="slow", version="1", depth=3, top_k=2, index_version="1")
class Rag:
    async def retrieve(self, input, depth):
        print("printed by", input["case"])
        await asyncio.sleep(0)
        if input["case"] == "loops":
            while True:
                pass
        if input["case"] == "awaits":
            await asyncio.sleep(3600)
        if input["case"] == "raises":
            raise ValueError("late")
        if input["case"] == "stops_itself":
            os.kill(os.getpid(), signal.SIGSTOP)
        found = Passage(doc_id="d1", score=1.0, text="blue")
        return Retrieval(query=input, depth=depth, candidates=(found,))

    async def generate(self, input, context):
        await asyncio.gather(*(asyncio.sleep(0.01) for _ in range(3)))
        if input["case"] == "sleeps":
            time.sleep(3600)
        if input["case"] == "prints_without_end":
            while True:
                os.write(1, b"and on " * 100_000)
        return {"answer": context[0].text}
"""


@pytest.fixture(scope="module")
def hung(make_project: MakeProject, oloproof: Oloproof) -> Outcome:
    names = [
        "sound",
        "loops",
        "awaits",
        "raises",
        "stops_itself",
        "sleeps",
        "prints_without_end",
        "sound_too",
    ]
    execution = {"workers": 3, "timeout_seconds": 1}
    folder = make_project(HANGS, cases=map(_case, names), execution=execution)
    return execute(folder, oloproof)


def test_a_call_without_an_end_is_ended_after_timeout_seconds(hung: Outcome) -> None:
    errors = {name: row["error"] for name, row in hung.cases.items() if row["error"]}
    timeouts = ["loops", "awaits", "stops_itself", "sleeps", "prints_without_end"]
    assert set(errors) == {*timeouts, "raises"}
    for name in timeouts:
        assert (errors[name]["kind"], errors[name]["message"]) == ("timeout", "no answer within 1 s")
    assert hung.run.record["run"]["seconds"] < 10


def test_coroutines_are_awaited_and_their_exceptions_are_the_cases(hung: Outcome) -> None:
    assert hung.cases["sound"]["judgments"] == hung.cases["sound_too"]["judgments"] == [1.0, 1.0]
    assert hung.cases["raises"]["error"]["message"] == "ValueError: late"


def test_what_was_printed_before_a_timeout_is_shown(hung: Outcome) -> None:
    assert hung.cases["loops"]["log"] == "printed by loops\n"
    assert len(hung.cases["prints_without_end"]["log"]) < 20_000


def test_what_hung_is_gone_after_the_run(hung: Outcome) -> None:
    assert hung.left == []


# -------------------------------------------------------------------------------------------- constructors

BROKEN_CONSTRUCTOR = """
from oloproof import Passage, Retrieval, rag_system

@rag_system(name="broken", version="1", depth=3, top_k=2, index_version="1")
class Rag:
    def __init__(self):
        print("opening the index")
        {code}

    def retrieve(self, input, depth):
        raise AssertionError

    def generate(self, input, context):
        raise AssertionError
"""


@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        ("raise OSError('no index')", "exception", "app:Rag() failed: OSError: no index"),
        ("raise SystemExit(0)", "exit", "app:Rag() failed: the code called sys.exit(0)"),
        ("import os; os._exit(0)", "crash", "the worker ended with exit status 0"),
    ],
)
def test_a_constructor_that_fails_makes_every_case_errored_and_the_run_unfinished(
    make_project: MakeProject, oloproof: Oloproof, code: str, kind: str, reason: str
) -> None:
    folder = make_project(BROKEN_CONSTRUCTOR.replace("{code}", code), cases=[_case(str(n)) for n in range(6)])
    found = execute(folder, oloproof)
    assert [(row["error"]["kind"], row["error"]["message"]) for row in found.cases.values()] == [
        (kind, reason)
    ] * 6
    assert all(row["log"].startswith("opening the index\n") for row in found.cases.values())
    assert found.run.returncode == 5
    assert found.run.record["gate"]["reason"] == "no_observations"
    assert found.left == []


def test_a_constructor_may_take_longer_than_a_stage_call(
    make_project: MakeProject, oloproof: Oloproof
) -> None:
    app = _small("time.sleep(0.8)")
    folder = make_project(app, cases=[_case("sound")], execution={"timeout_seconds": 0.3})
    found = execute(folder, oloproof)
    assert found.cases["sound"]["judgments"] == [1.0, 1.0]
    assert found.cases["sound"]["seconds"]["retrieve"] < 0.3


def test_a_constructor_that_hangs_is_waited_for_only_once(
    make_project: MakeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lending, "START_SECONDS", 0.5)
    folder = make_project(_small("time.sleep(3600)"))
    checkout = Checkout(str(folder), "app:Rag", sys.executable, tuple(os.environ.items()))
    request = {"op": "retrieve", "input": {}, "depth": 3}
    started = time.monotonic()
    try:
        replies = [calls.perform(checkout, request, 0.2) for _ in range(5)]
    finally:
        calls.release(checkout)
    assert {(reply.kind, reply.message) for reply in replies} == {
        ("timeout", "app:Rag() was not constructed within 0.5 s")
    }
    assert time.monotonic() - started < 2


def test_a_worker_that_died_between_two_calls_is_replaced_before_the_next(make_project: MakeProject) -> None:
    app = _small("pass").replace("context[0].text", "__import__('os').getpid()")
    folder = make_project(app)
    checkout = Checkout(str(folder), "app:Rag", sys.executable, tuple(os.environ.items()))
    request = {"op": "generate", "input": {}, "context": []}
    try:
        first = json.loads(calls.perform(checkout, request, 10).value)["answer"]
        os.kill(first, signal.SIGKILL)
        assert eventually(lambda: not is_running(first))
        second = calls.perform(checkout, request, 10)
    finally:
        calls.release(checkout)
    assert second.kind is None
    assert json.loads(second.value)["answer"] != first


# ------------------------------------------------------------------------------ what calls leave behind them


def test_what_a_call_leaves_behind_is_not_blamed_on_the_next(tmp_path: Path) -> None:
    """Its signal handler raises while the worker waits for the next request."""
    code = (
        "def handle(*_): raise TimeoutError\nsignal.signal(signal.SIGUSR1, handle)\n"
        "threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGUSR1]).start()"
    )
    with workers(tmp_path) as found:
        assert found.call(retrieve("first", code)).kind is None
        time.sleep(0.4)
        second = found.call(retrieve("second"))
    assert (second.kind, second.log) == (None, "begins second\nends second\n")
    assert found.noted == ["construct", "construct", "first", "second"]


def test_a_call_whose_worker_ends_before_it_begins_is_run_again_though_not_for_ever(tmp_path: Path) -> None:
    with workers(tmp_path) as found:
        reply = found.call(retrieve("unlucky", f"if first(name): os._exit({LEFTOVER})"))
        assert reply.kind is None
        reply = found.call(retrieve("doomed", f"os._exit({LEFTOVER})"))
    assert reply.kind == "crash"
    assert reply.message == "something that the code leaves behind ends its worker between calls"
    assert found.noted.count("doomed") == 4


@pytest.mark.skipif(not HAS_KEEPER, reason="only a worker with a keeper has a parent that it could stop")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_worker_whose_pipes_live_on_and_whose_keeper_is_stopped_is_seen_to_end(
    tmp_path: Path, threads: int
) -> None:
    """A child holds the pipes open, and the keeper cannot say that the worker has ended."""
    leave = "if os.fork() == 0:\n    time.sleep(300)\nos.kill(os.getppid(), signal.SIGSTOP)\n"
    with workers(tmp_path, threads=threads) as found:
        at_once = found.call(retrieve("at_once", f"{leave}os._exit(3)"), timeout=60)
        assert found.call(retrieve("later", leave)).kind is None
        started = time.monotonic()
        unlucky = found.call(retrieve("unlucky", "if first(name): os._exit(4)"), timeout=60)
        assert time.monotonic() - started < 30
    assert (at_once.kind, at_once.message) == ("crash", "the worker ended with exit status 3")
    assert unlucky.kind is None
    assert found.processes == []


def test_an_alarm_of_the_constructor_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "construct.py").write_text(
        "ticks = []\nsignal.signal(signal.SIGALRM, lambda *_: ticks.append(1))\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)"
    )
    with workers(tmp_path) as found:
        for name in ("first", "second"):
            reply = found.call(retrieve(name, "ticks.clear()\ntime.sleep(0.1)\nassert ticks"))
            assert reply.kind is None


def _small(constructor: str) -> str:
    return f"""
import time
from oloproof import Passage, Retrieval, rag_system

@rag_system(name="small", version="1", depth=3, top_k=2, index_version="1")
class Rag:
    def __init__(self):
        {constructor}

    def retrieve(self, input, depth):
        found = Passage(doc_id="d1", score=1.0, text="blue")
        return Retrieval(query=input, depth=depth, candidates=(found,))

    def generate(self, input, context):
        return {{"answer": context[0].text}}
"""
