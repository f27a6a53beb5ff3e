"""Cases that give no answer, on one side of a pull request or both: what blocks, what does not, and what is said."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from previews import Repository, entered, make_repository

from oloproof.starter import COMPARE_POLICY
from oloproof_ci.cli import main

APP = """
import os, sys
from pathlib import Path
from oloproof import Passage, Retrieval, rag_system

@rag_system(name="small", version="1", depth=2, top_k=1, index_version="1")
class Rag:
    def retrieve(self, input, depth):
        if input == "lost":
            raise LookupError("no index for this")
        return Retrieval(query=input, depth=depth, candidates=(Passage(doc_id="d1", score=2.0, text=input),))

    def generate(self, input, context):
        if input in ("boom",):
            raise KeyError(Path("notes.md").read_text() if Path("notes.md").exists() else "nothing")
        return {"answer": context[0].text}
"""
NAMES = ("a", "b", "c", "d", "e")
CONFIG: dict[str, Any] = {
    "version": 1,
    "dataset": "cases.jsonl",
    "system": {"rag": {"object": "app:Rag"}},
    "evaluators": [
        {"type": "contains", "criterion": "answer_correct", "field": "answer", "expected_field": "answer"},
        {"type": "hit_rate", "k": 1},
    ],
}
STRICT = """
version: 1
rules:
  - {id: none-new, metric: answer_correct, kind: new_failures, max: 0}
  - {id: not-worse, metric: answer_correct, kind: non_inferiority, margin: 0.01}
  - {id: as-good, metric: hit_rate_at_1, kind: equivalence, margin: 0.01}
"""
#: The edit that makes two cases error that pass.
BREAK = ("app.py", '("boom",)', '("boom", "a", "b")')
COMMENTED = ("app.py", "import os, sys", "import os, sys  # for later")


def case(name: str, answer: str | None = None) -> dict[str, Any]:
    relevant = [{"doc_id": "d1"}]
    return {"id": name, "input": name, "expected": {"answer": answer or name, "relevant": relevant}}


@pytest.fixture
def errs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Repository:
    """One case errors when it retrieves and one when it generates, in the base too."""
    cases = [case(name) for name in (*NAMES, "boom", "lost")]
    made = make_repository(tmp_path, APP, CONFIG, cases, README_md="# It", notes_md="x", compare_yaml=STRICT)
    return entered(made, monkeypatch, capsys)


@pytest.fixture
def sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Repository:
    """No case errors, under the policy that a project begins with; one fails."""
    cases = [*(case(name) for name in NAMES), case("wrong", "something else")]
    made = make_repository(tmp_path, APP, CONFIG, cases, README_md="# It", compare_yaml=COMPARE_POLICY)
    return entered(made, monkeypatch, capsys)


def states(report: Any) -> dict[str, tuple[str, str]]:
    return {each["rule"]: (each["state"], each["reason"]) for each in report["gate"]["decisions"]}


@pytest.mark.parametrize("edit", [("README.md", "It", "That"), COMMENTED, ("notes.md", "x", "y")])
def test_a_case_that_always_errors_blocks_no_change_of_something_else(errs: Repository, edit: Any) -> None:
    report = errs.preview(edit)
    assert (report["gate"]["state"], report["gate"]["exit_code"]) == ("ALLOW", 0)
    assert set(states(report).values()) == {("PASS", "systems_identical")}
    assert report["comparison"]["identical"]
    assert "2 cases errored here." in errs.text
    assert "### 2 cases errored here" in errs.text
    for name, stage in (("boom", "generate"), ("lost", "retrieve")):
        assert f"| `{name}` | `{stage}` |" in errs.text
    assert "Nothing that could change a result differs from `main`." in errs.text


@pytest.mark.parametrize(
    "edit",
    [
        ("app.py", '"answer": context[0].text', '"answer": str(context[0].text)'),
        ("app.py", "raise KeyError", "sys.exit"),
        ("app.py", "        if input in", "        context = list(context)\n        if input in"),
    ],
)
def test_where_the_system_differs_a_case_that_errors_on_both_sides_leaves_it_open(
    errs: Repository, edit: Any
) -> None:
    report = errs.preview(edit)
    assert report["gate"]["exit_code"] == 3
    assert not report["comparison"]["identical"]
    assert states(report)["none-new"] == ("INSUFFICIENT_EVIDENCE", "missing_could_change_outcome")


@pytest.mark.parametrize("edit", [("app.py", '"lost"', '"found"'), ("app.py", '("boom",)', "()")])
def test_a_case_that_answers_again_is_no_new_failure_that_could_be_missing(
    errs: Repository, edit: Any
) -> None:
    report = errs.preview(edit)
    (found,) = [each for each in report["gate"]["decisions"] if each["rule"] == "none-new"]
    assert found["counts"] == {"new_failures": 0, "unstable": 0, "missing": 1, "paired": 5}


def test_under_the_first_policy_cases_that_error_now_block_and_are_told_first(sound: Repository) -> None:
    report = sound.preview(BREAK)
    assert (report["gate"]["state"], report["gate"]["exit_code"]) == ("BLOCK", 3)
    assert states(report)["no-new-failures"] == ("INSUFFICIENT_EVIDENCE", "missingness_exceeds_policy")
    assert sound.text.split("\n\n")[1].startswith(
        "**2 cases that pass on `main` error here**, which leaves 2 results of `answer_correct` open; "
        "rule `no-new-failures` allows 0."
    )


def test_under_the_first_policy_a_case_that_failed_may_error(sound: Repository) -> None:
    report = sound.preview(("app.py", '("boom",)', '("boom", "wrong")'))
    assert report["gate"]["state"] == "WARN"
    assert states(report)["no-new-failures"] == ("PASS", "new_failures_within_limit")
    assert "1 case errored here." in sound.text


def test_a_base_that_errors_everywhere_is_named_with_what_it_came_to(sound: Repository) -> None:
    """Its index is not in git, as a file that is ignored, or one of a submodule."""
    reading = APP.replace(
        "if input ==", "assert Path(__file__).with_name('index.txt').read_text()\n        if input =="
    )
    (sound.root / "app.py").write_text(reading, encoding="utf-8")
    (sound.root / ".gitignore").write_text(".oloproof\n__pycache__\nindex.txt\n", encoding="utf-8")
    sound.git("commit", "--quiet", "--all", "--message", "An index")
    (sound.root / "index.txt").write_text("blue", encoding="utf-8")
    (sound.root / "app.py").write_text(reading + "\nNEW = 1\n", encoding="utf-8")
    assert main(["preview"]) == 5
    assert sound.capture is not None
    text = sound.capture.readouterr().out
    assert "**Nothing could be judged** on `main`: none of 6 cases gave anything that could be judged" in text
    assert "6 of 6 cases errored on `main`, in `retrieve`: FileNotFoundError" in text
    assert re.search(r"'[0-9a-f\u200b]{8}:index\.txt'", text)
