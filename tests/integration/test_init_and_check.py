"""Beginning a project, and finding out whether its parts fit together, from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from projects import APP, MakeProject, Oloproof

TOOLS = Path(sys.executable).parent
CASE = {"id": "a", "input": "q", "expected": {"answer": "blue", "relevant": [{"doc_id": "d1"}]}}


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A folder with nothing but a user's class."""
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


def test_what_init_writes_is_accepted_by_check_and_run(quick: Oloproof, app: Path) -> None:
    done = quick("init", "app:Rag", cwd=app)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("wrote oloproof.yaml\nwrote compare.yaml\n")
    assert "Write your cases to cases.jsonl" in done.stdout
    assert "a single run is decided by a release.yaml" in done.stdout
    (example,) = [line for line in done.stdout.splitlines() if line.startswith("  {")]
    (app / "cases.jsonl").write_text(example + "\n")
    assert quick("check", cwd=app).returncode == 0
    (app / "cases.jsonl").write_text(json.dumps(CASE) + "\n")
    checked = quick("check", cwd=app)
    assert checked.returncode == 0, checked.stderr
    assert "app:Rag: small, depth 3, top_k 2" in checked.stdout
    assert "criteria: answer_correct, hit_rate_at_2, ndcg_at_3" in checked.stdout
    assert "compare.yaml: 2 rules" in checked.stdout
    assert "What 1 case can decide: 1 of 2 rules can pass" in checked.stdout
    assert quick("run", cwd=app).returncode == 0


def test_the_workflow_passes_what_lints_workflows(quick: Oloproof, app: Path) -> None:
    subprocess.run(["git", "init", "-q", app], check=True)
    suite = app / "suite"
    suite.mkdir()
    (app / "app.py").rename(suite / "app.py")
    (app / "requirements.txt").touch()
    assert quick("init", "app:Rag", "--ci", "github", cwd=suite).returncode == 0
    workflow = app / ".github" / "workflows" / "oloproof.yml"
    text = workflow.read_text()
    assert "config: suite/oloproof.yaml" in text
    assert "requirements: requirements.txt" in text
    for command in (
        [TOOLS / "actionlint", workflow],
        [TOOLS / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", workflow],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("there", ["oloproof.yaml", "compare.yaml", ".github/workflows/oloproof.yml"])
def test_nothing_is_overwritten_and_then_nothing_is_written(quick: Oloproof, app: Path, there: str) -> None:
    (app / there).parent.mkdir(parents=True, exist_ok=True)
    (app / there).write_text("mine")
    before = {path for path in app.rglob("*") if "__pycache__" not in path.parts}
    done = quick("init", "app:Rag", "--ci", "github", cwd=app)
    assert done.returncode == 2
    assert f"{there}: is there already" in done.stderr
    assert (app / there).read_text() == "mine"
    assert {path for path in app.rglob("*") if "__pycache__" not in path.parts} == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["app:Nope"], "module app has no Nope"),
        (["nowhere:Rag"], "there is no module nowhere"),
        (["app"], "expected module:Class"),
        (["app:Rag", "--dataset", "/etc/passwd"], "--dataset: must be a relative path"),
        (["app:Rag", "--config", "missing/oloproof.yaml"], "no such folder"),
    ],
)
def test_a_class_or_place_that_is_not_there_is_named(
    quick: Oloproof, app: Path, arguments: list[str], said: str
) -> None:
    done = quick("init", *arguments, cwd=app)
    assert done.returncode == 2
    assert said in done.stderr
    assert not (app / "oloproof.yaml").exists()


def test_check_tells_of_every_problem_and_runs_no_case(quick: Oloproof, make_project: MakeProject) -> None:
    app = APP.replace(
        "def generate(self, input, context):", "def generate(self, input, context):\n        1 / 0"
    )
    folder = make_project(
        app.replace(
            "    def retrieve", "    def __init__(self):\n        open('ran', 'w')\n\n    def retrieve"
        ),
        cases='{"id": "a"}\n',
        files={"release.yaml": "{version: 1, rules: [{id: r, metric: corect, kind: min, min: 0.5}]}"},
    )
    done = quick("check", cwd=folder)
    assert done.returncode == 2
    assert "cases.jsonl:1:" in done.stderr
    assert "release.yaml:1: rules[0].metric: no evaluator yields the metric corect" in done.stderr
    assert "app:Rag: small" in done.stdout
    assert not (folder / "ran").exists()
    assert not (folder / ".oloproof").exists()


def test_check_names_an_app_that_cannot_be_imported(quick: Oloproof, make_project: MakeProject) -> None:
    done = quick("check", cwd=make_project("import nowhere_at_all"))
    assert done.returncode == 2
    assert "nowhere_at_all" in done.stderr


def test_check_names_an_evaluator_of_the_users_that_is_not_there(
    quick: Oloproof, make_project: MakeProject
) -> None:
    evaluators = [{"type": "python", "object": "judges:polite", "criterion": "polite"}]
    done = quick("check", cwd=make_project(evaluators=evaluators))
    assert done.returncode == 2
    assert "judges" in done.stderr


def test_a_rule_on_a_pair_in_the_policy_of_one_run_is_refused(
    quick: Oloproof, make_project: MakeProject
) -> None:
    rule = "{version: 1, rules: [{id: r, metric: correct, kind: new_failures, max: 0}]}"
    done = quick("check", "--json", cwd=make_project(files={"release.yaml": rule}))
    assert done.returncode == 2
    record = json.loads(done.stdout)
    assert record["ok"] is False
    assert "release.yaml" in record["problems"][0]
