"""Diagnoses that are killed, that meet errors, and that are read afterwards."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from projects import DIAGNOSE, SLOW, MakeProject, Oloproof, case, command, environment

FAILING = 16
#: The call in flight, and what finished in the moments before: fewer than a control that would start anew repeats.
LOST = 12


def failing(name: str, gold: str = "green") -> dict[str, Any]:
    """A case that fails, and passes with its gold context unless that says otherwise."""
    found = case(name, "green")
    found["expected"]["gold_context"] = [{"doc_id": "d1", "text": gold}]
    return found


def calls(folder: Path) -> int:
    path = folder / "calls.txt"
    return len(path.read_text().splitlines()) if path.exists() else 0


def diagnosis_of(text: str) -> str:
    found = re.search(r"^Diagnosis (sha256:\w+)$", text, re.MULTILINE)
    assert found is not None
    return found[1]


def diagnose_until(folder: Path, done: int) -> None:
    """Diagnose, and kill that once so many calls have been made in all."""
    with subprocess.Popen(
        command(*DIAGNOSE),
        cwd=folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as running:
        while calls(folder) < done:
            assert running.poll() is None
            time.sleep(0.005)
        running.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("done", [FAILING - 2, 2 * FAILING - 2])
def test_a_killed_diagnosis_goes_on_without_repeating_a_finished_call(
    make_project: MakeProject, oloproof: Oloproof, done: int
) -> None:
    folder = make_project(SLOW.replace("0.2", "0.03"), cases=[failing(f"case {n}") for n in range(FAILING)])
    assert oloproof("run", cwd=folder).returncode == 0
    assert calls(folder) == FAILING
    diagnose_until(folder, FAILING + done)
    finished = oloproof(*DIAGNOSE, cwd=folder)
    assert f"Recovered under gold context: {FAILING} of {FAILING}" in finished.stdout
    assert f"Control: 0 of {FAILING} passed" in finished.stdout
    assert 3 * FAILING <= calls(folder) <= 3 * FAILING + LOST
    # One that has ended is not gone on with: its control runs again, and the gold context's answers are reused.
    before = calls(folder)
    assert oloproof(*DIAGNOSE, cwd=folder).returncode == 0
    assert calls(folder) == before + FAILING


def test_repeats_that_were_seen_before_a_kill_are_remembered_once(
    make_project: MakeProject, oloproof: Oloproof
) -> None:
    once = FAILING * len("generate\n")
    app = SLOW.replace("0.2", "0.03").replace(
        'return {"answer": context[0].text}',
        f'return {{"answer": context[0].text if made <= {once} else "green"}}',
    )
    app = app.replace(
        'file.write("generate\\n")', 'file.write("generate\\n")\n            made = file.tell()'
    )
    folder = make_project(app, cases=[failing(f"case {n}") for n in range(FAILING)])
    assert oloproof("run", cwd=folder).returncode == 0
    diagnose_until(folder, 3 * FAILING - 2)
    assert f"UNSTABLE: {FAILING} of {FAILING}" in oloproof(*DIAGNOSE, cwd=folder).stdout
    known = json.loads(oloproof("inspect", "latest", "--json", cwd=folder).stdout)["unstable"]
    assert [(each["differed"], each["repeats"]) for each in known] == [(1, 1)] * FAILING


def test_two_diagnoses_at_once_both_execute_a_control_of_their_own(
    make_project: MakeProject, oloproof: Oloproof
) -> None:
    folder = make_project(SLOW.replace("0.2", "0.06"), cases=[failing(f"case {n}") for n in range(4)])
    assert oloproof("run", cwd=folder).returncode == 0
    started = [
        subprocess.Popen(
            command(*DIAGNOSE),
            cwd=folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for _ in range(2)
    ]
    texts = [process.communicate(timeout=60)[0].decode() for process in started]
    assert all("Control: 0 of 4 passed" in text for text in texts)
    controls = {re.search(r"control (run_\w+)", text)[1] for text in texts}  # type: ignore[index]
    assert len(controls) == 2
    assert calls(folder) >= 4 + 2 * 4 + 4  # the run, two controls, and the gold contexts once or twice
    assert not list((folder / ".oloproof" / "unfinished").iterdir())


#: Passes nothing, and fails in a way of its own once a diagnosis is under way, which a file says.
FRAGILE = """
import os, time
from pathlib import Path
from oloproof import Passage, Retrieval, rag_system

@rag_system(name="fragile", version="1", depth=3, top_k=2, index_version="1")
class Rag:
    def retrieve(self, input, depth):
        return Retrieval(query=input, depth=depth, candidates=(Passage(doc_id="d1", score=1.0, text="blue"),))

    def generate(self, input, context):
        question, text = input["question"], context[0].text
        if os.path.exists(os.environ["DIAGNOSING"]) and text in question:
            if "raises" in question:
                raise ValueError("no |answer|")
            if "hangs" in question:
                time.sleep(60)
            if "exits" in question:
                os._exit(3)
        return {"answer": text}
"""
WAYS = {"raises": "exception: ValueError: no |answer|", "hangs": "timeout", "exits": "crash"}


def test_a_re_execution_without_result_leaves_its_case_unresolved_with_the_reason(
    make_project: MakeProject, oloproof: Oloproof, quick: Oloproof, tmp_path: Path
) -> None:
    """Each way of failing, once with the gold context and once in the control; the case beside them is diagnosed."""
    names = [f"{way} on {text}" for way in WAYS for text in ("green", "blue")]
    folder = make_project(
        FRAGILE,
        cases=[failing(name) for name in [*names, "sound"]],
        execution={"timeout_seconds": 1.5, "workers": 2},
    )
    marker = tmp_path / "diagnosing"
    variables: Mapping[str, str] = {"DIAGNOSING": str(marker)}
    assert oloproof("run", cwd=folder, env=variables).returncode == 0
    marker.touch()
    done = oloproof(*DIAGNOSE, cwd=folder, env=variables)
    assert done.returncode == 0
    assert "UNRESOLVED: 7 of 7, the evidence does not tell" in done.stdout
    identity = diagnosis_of(done.stdout)[:20]
    listed = quick("inspect", identity, cwd=folder).stdout
    assert listed.count("UNRESOLVED, intervention_evidence_missing, strength none") == 6
    assert "sound: UNRESOLVED, gold_text_not_in_context" in listed
    for name in names:
        way, _, text = name.split()
        shown = quick("inspect", identity, "--case", name, cwd=folder).stdout
        kind = "gold context" if text == "green" else "control"
        assert f"Executed again: {kind}" in shown
        part = shown.split(f"Executed again: {kind}")[1]
        assert f"Errored in generate: {WAYS[way]}" in part
        assert "correct: missing" in part


def test_a_diagnosed_case_is_shown_with_its_passages_beside_the_gold_and_control_answers(
    make_project: MakeProject, quick: Oloproof
) -> None:
    without = failing("without")
    del without["expected"]["gold_context"]
    folder = make_project(SLOW.replace("0.2", "0"), cases=[failing("one"), without])
    quick("run", cwd=folder)
    identity = diagnosis_of(quick(*DIAGNOSE, cwd=folder).stdout)
    shown = quick("inspect", identity[:16], "--case", "one", cwd=folder).stdout
    parts = re.split(r"Executed again: (gold context|control) \(run_\w+\)\n", shown)
    assert parts[0].startswith(f"Diagnosis {identity} · gold-context · correct\none: UNRESOLVED, ")
    assert "│ 1    │ d1      │ 1     │ kept" in parts[0]
    answers = {parts[n]: parts[n + 1] for n in (1, 3)}
    assert 'Answer: {"answer": "green"}\n  Judgments\n    correct: passed' in answers["gold context"]
    assert 'Answer: {"answer": "blue"}\n  Judgments\n    correct: failed' in answers["control"]
    record = quick("inspect", identity, "--case", "one", "--json", cwd=folder).record
    assert record["diagnosed"]["case_id"] == record["recorded"]["case_id"] == "one"
    assert {each["kind"]: each["output"] for each in record["executions"]} == {
        "gold context": {"answer": "green"},
        "control": {"answer": "blue"},
    }
    assert "Not executed again" in quick("inspect", identity, "--case", "without", cwd=folder).stdout
    missing = quick("inspect", identity, "--case", "two", cwd=folder)
    assert (missing.returncode, missing.stdout) == (2, "")
    assert f"`oloproof inspect {identity[:19]}` lists its cases" in missing.stderr
