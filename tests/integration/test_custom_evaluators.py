"""Evaluators that are the user's own functions, and calls that are repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from projects import APP, CONFIG, MakeProject, Oloproof, case

CHECKS = """
import os, sys, time

def polite(*, input, expected, output, context):
    print("judging", output["answer"])
    return output["answer"] != "rude"

def share(*, input, expected, output, context):
    return len(context) / 4

async def later(*, input, expected, output, context):
    return context[0].text == "blue" and context[0].doc_id == "d1"

def only_two(*, input, expected, output, context):
    return True if input["question"] == "two" else None

def raises(*, input, expected, output, context):
    raise ValueError("no idea")

def leaves(*, input, expected, output, context):
    os._exit(0) if input["question"] == "two" else None
    return True

def wrong(*, input, expected, output, context):
    return "yes"

def above(*, input, expected, output, context):
    return 1.5
"""


def project(make_project: MakeProject, function: str, **settings: Any) -> Path:
    own = {"type": "python", "object": f"checks:{function}", "criterion": "own", **settings}
    return make_project(evaluators=[*CONFIG["evaluators"], own], files={"checks.py": CHECKS})


def own_metric(oloproof: Oloproof, folder: Path) -> Any:
    done = oloproof("run", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    (metric,) = [m for m in done.record["run"]["metrics"] if m["criterion"] == "own"]
    return metric


@pytest.mark.parametrize("function", ["polite", "later"])
def test_true_and_false_pass_and_fail(make_project: MakeProject, quick: Oloproof, function: str) -> None:
    metric = own_metric(quick, project(make_project, function))
    assert (metric["kind"], metric["total"], metric["observed"]) == ("rate", 3.0, 3)


def test_a_score_is_a_mean(make_project: MakeProject, quick: Oloproof) -> None:
    metric = own_metric(quick, project(make_project, "share", scale="score"))
    assert (metric["kind"], metric["estimate"]) == ("mean", 0.5)


def test_a_score_without_its_scale_is_missing_and_says_so(make_project: MakeProject, quick: Oloproof) -> None:
    folder = project(make_project, "share")
    assert own_metric(quick, folder)["missing"] == 3
    shown = quick("inspect", "latest", "--case", "one", cwd=folder).stdout
    assert "own: missing (score_under_scale_pass_fail)" in shown


def test_none_leaves_the_case_out(make_project: MakeProject, quick: Oloproof) -> None:
    metric = own_metric(quick, project(make_project, "only_two"))
    assert (metric["observed"], metric["excluded"]) == (1, {"evaluator_does_not_apply": 2})


@pytest.mark.parametrize(
    ("function", "reason", "missing"),
    [
        ("raises", "evaluator_exception", 3),
        ("leaves", "evaluator_crash", 1),
        ("wrong", "evaluator_invalid_return", 3),
        ("above", "evaluator_invalid_return", 3),
    ],
)
def test_its_faults_are_missing_judgments_of_an_answered_case(
    make_project: MakeProject, quick: Oloproof, function: str, reason: str, missing: int
) -> None:
    folder = project(make_project, function)
    assert own_metric(quick, folder)["missing"] == missing
    assert quick("run", "--json", cwd=folder).record["run"]["errored"] == 0
    assert f"own: missing ({reason}" in quick("inspect", "latest", "--case", "two", cwd=folder).stdout


def test_the_overview_says_why_judgments_are_missing(make_project: MakeProject, quick: Oloproof) -> None:
    done = quick("run", cwd=project(make_project, "raises"))
    assert "0 / 0 observed · 3 missing (evaluator_exception 3) · 0 excluded" in done.stdout
    at = done.lines.index("Not judged, since the evaluator failed:")
    assert done.lines[at + 1] == "  one and 2 more: own: ValueError: no idea"


def test_inspect_says_what_the_function_raised(make_project: MakeProject, quick: Oloproof) -> None:
    folder = project(make_project, "raises")
    quick("run", cwd=folder)
    shown = quick("inspect", "latest", "--case", "one", cwd=folder).lines
    assert "  own: missing (evaluator_exception: ValueError: no idea)" in shown


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("checks:rasies", "module checks has no rasies; did you mean raises?"),
        ("checks:Raises.deep", "module checks has no Raises.deep; did you mean raises?"),
        ("cheks:raises", "there is no module cheks in {folder}; did you mean checks?"),
        ("package.checks:raises", "there is no module package.checks in {folder}; did you mean cheques?"),
        ("checks:NUMBER", "checks:NUMBER is no function but int 3"),
        ("broken:check", "broken:check could not be imported from {folder}: RuntimeError: no key"),
        (
            "needy:check",
            "needy:check could not be imported from {folder}: ModuleNotFoundError: No module named 'nope'",
        ),
        ("gone:check", "gone:check could not be imported from {folder}: the worker ended with exit status 0"),
        ("left:check", "left:check could not be imported from {folder}: the code called sys.exit(0)"),
    ],
)
def test_one_that_cannot_be_had_is_an_error_before_any_case_runs(
    make_project: MakeProject, quick: Oloproof, named: str, said: str
) -> None:
    files = {
        "checks.py": CHECKS + "\nNUMBER = 3\n",
        "broken.py": "raise RuntimeError('no key')",
        "needy.py": "import nope",
        "gone.py": "import os\nos._exit(0)",
        "left.py": "import sys\nsys.exit(0)",
        "package/__init__.py": "",
        "package/cheques.py": "",
    }
    app = "from pathlib import Path\n" + APP.replace(
        "        return Retrieval(",
        "        Path(__file__).with_name('ran').touch()\n        return Retrieval(",
        1,
    )
    own = {"type": "python", "object": named, "criterion": "own"}
    folder = make_project(app, evaluators=[*CONFIG["evaluators"], own], files=files)
    done = quick("run", cwd=folder)
    assert done.returncode == 2
    assert f"evaluators[2].object: {said.format(folder=folder)}" in done.stderr
    assert done.stderr.startswith("oloproof: oloproof.yaml:")
    assert not (folder / "ran").exists()


def test_a_fault_is_judged_again_and_a_judgment_is_not(make_project: MakeProject, quick: Oloproof) -> None:
    folder = project(make_project, "leaves")
    quick("run", cwd=folder)
    assert quick("run", "--json", cwd=folder).record["run"]["cache"]["judgment"] == [8, 1]


def test_its_failures_can_be_diagnosed(make_project: MakeProject, quick: Oloproof) -> None:
    own = {"type": "python", "object": "checks:later", "criterion": "own"}
    gold = [{"doc_id": "d1", "text": "blue"}]
    broken = case("one")
    broken["expected"]["gold_context"] = gold
    app = APP.replace('text="blue"', 'text="grey"')
    folder = make_project(app, evaluators=[own], cases=[broken], files={"checks.py": CHECKS})
    quick("run", cwd=folder)
    arguments = ("diagnose", "latest", "--intervention", "gold-context", "--criterion", "own")
    assert "Recovered under gold context: 1 of 1" in quick(*arguments, cwd=folder).stdout


FLAKY = """
from pathlib import Path
from oloproof import Passage, Retrieval, rag_system

COUNTS = Path(__file__).with_name("attempts.txt")

@rag_system(name="flaky", version="1", depth=3, top_k=2, index_version="1")
class Rag:
    def retrieve(self, input, depth):
        return Retrieval(query=input, depth=depth, candidates=(Passage(doc_id="d1", score=1.0, text="blue"),))

    def generate(self, input, context):
        with COUNTS.open("a") as file:
            file.write("x")
        if COUNTS.stat().st_size % 3:
            raise ConnectionError("try again")
        return {"answer": context[0].text}
"""


@pytest.mark.parametrize(("retries", "errored"), [(0, 1), (1, 1), (2, 0)])
def test_a_call_that_errors_is_repeated_and_every_attempt_is_shown(
    make_project: MakeProject, quick: Oloproof, retries: int, errored: int
) -> None:
    folder = make_project(FLAKY, execution={"retries": retries}, cases=[case("one")])
    run = quick("run", "--json", cwd=folder).record["run"]
    assert run["errored"] == errored
    shown = quick("inspect", "latest", "--case", "one", cwd=folder).stdout
    attempts = shown.count("of generate errored: exception: ConnectionError: try again")
    assert attempts == (0 if retries == 0 else 2)
    assert (folder / "attempts.txt").read_text() == "x" * (retries + 1)


def test_a_file_that_the_function_reads_is_part_of_its_judgments(
    make_project: MakeProject, quick: Oloproof
) -> None:
    checks = """
from pathlib import Path

def allowed(*, input, expected, output, context):
    return output["answer"] == Path(__file__).with_name("allowed.txt").read_text()
"""
    own = {"type": "python", "object": "checks:allowed", "criterion": "own"}
    folder = make_project(evaluators=[own], files={"checks.py": checks, "allowed.txt": "blue"})
    assert own_metric(quick, folder)["total"] == 3.0
    assert quick("run", "--json", cwd=folder).record["run"]["cache"]["judgment"] == [3, 0]
    (folder / "allowed.txt").write_text("red")
    assert own_metric(quick, folder)["total"] == 0.0
