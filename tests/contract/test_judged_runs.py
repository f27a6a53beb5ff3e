"""Runs whose answers a model judges: what is asked, what is paid, what is kept, and where the key stands."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from model_server import ModelServer

KEY = "sk-very-secret-key"
APP = """\
from oloproof import Passage, Retrieval, rag_system


@rag_system(name="judged", version="1", depth=2, top_k=1, index_version="1")
class App:
    def retrieve(self, input, depth):
        found = [Passage(doc_id="kb-1", text="Refunds take 14 days."), Passage(doc_id="kb-2", text="Seats cost 12.")]
        return Retrieval(query=input["question"], depth=depth, candidates=found)

    def generate(self, input, context):
        return {"answer": "Refunds take 14 days.", "citations": ["kb-1"]}
"""
QUICK = {
    "fault:bad-request": "judge_bad_request",
    "fault:too-long": "judge_prompt_too_long",
    "fault:empty": "judge_empty_answer",
    "fault:cut-short": "judge_truncated",
    "fault:refusal": "judge_refused",
    "fault:german": "judge_unusable",
    "fault:chatty": "judge_unusable",
    "fault:invented-quote": "judge_unusable",
    "fault:echo": "judge_bad_request",
}


class JudgedProject:
    """A project whose answers the model server judges."""

    def __init__(self, folder: Path, models: ModelServer) -> None:
        self.folder = folder
        self.models = models
        self.environment = {**os.environ, "JUDGE_KEY": KEY}
        (folder / "app.py").write_text(APP)

    def write(self, questions: Iterable[str], judges: str = "", **settings: Any) -> None:
        cases = [
            {
                "id": question,
                "input": {"question": question},
                "expected": {
                    "answer": "14 days",
                    "gold_context": [{"doc_id": "kb-1", "text": "Refunds take 14 days."}],
                },
            }
            for question in questions
        ]
        (self.folder / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
        judge = {
            "type": "groundedness_judge",
            "provider": "openai",
            "base_url": self.models.url,
            "model": "m",
            "api_key_env": "JUDGE_KEY",
            **settings,
        }
        (self.folder / "oloproof.yaml").write_text(
            "version: 1\ndataset: cases.jsonl\nsystem: {rag: {object: app:App}}\n"
            f"evaluators:\n  - {{type: contains, criterion: right, field: answer, expected_field: answer}}\n"
            f"  - {json.dumps(judge)}\njudges: {{{judges}}}\n"
        )

    def commit_base(self) -> None:
        """Make a repository of the folder, with one commit on main."""
        (self.folder / ".gitignore").write_text(".oloproof\n__pycache__\n")
        settings = ("-c", "user.name=a", "-c", "user.email=a@b.invalid")
        for command in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "base")):
            subprocess.run(["git", *settings, *command], cwd=self.folder, check=True)

    def preview(self, *arguments: str) -> tuple[int, Any, str]:
        """Exit code, report and comment."""
        done = subprocess.run(
            [sys.executable, "-m", "oloproof_ci", "preview", *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        written = self.folder / ".oloproof" / "preview"
        assert (written / "report.json").exists(), done.stderr
        report = json.loads((written / "report.json").read_text())
        return done.returncode, report, (written / "comment.md").read_text()

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "oloproof", *arguments],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, *arguments: str) -> tuple[int, str, str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def run(self, *more: str) -> Any:
        code, out, err = self.call("run", "--json", *more)
        assert code == 0, err
        return json.loads(out)["run"]

    def judgments(self, run: Any) -> dict[str, Any]:
        """What each case came to by the judge."""
        code, out, err = self.call("inspect", run["id"], "--json")
        assert code == 0, err
        return {case["case_id"]: case["judgments"][1] for case in json.loads(out)["cases"]}

    def wait_for(self, requests: int) -> None:
        for _ in range(600):
            if self.models.asked() >= requests:
                return
            time.sleep(0.05)
        raise AssertionError(f"the server was asked {self.models.asked()} times only")


@pytest.fixture
def project(tmp_path: Path, models: ModelServer) -> JudgedProject:
    return JudgedProject(tmp_path, models)


def test_every_fault_is_a_missing_verdict_with_a_name_and_the_run_goes_on(project: JudgedProject) -> None:
    project.write(["sound", "fault:ungrounded", *QUICK], "prices: {m: {input: 1000000, output: 1000000}}")
    first = project.run()
    came = project.judgments(first)
    assert came["sound"] == 1.0
    assert came["fault:ungrounded"] == 0.0
    assert {name: came[name][:2] for name in QUICK} == {n: ["missing", reason] for n, reason in QUICK.items()}
    metric = first["metrics"][1]
    assert (metric["observed"], metric["missing"], metric["estimate"]) == (2, len(QUICK), 0.5)
    asked = project.models.asked()
    assert first["judges"]["calls"] == asked
    assert first["judges"]["cost"] == first["judges"]["input"] + first["judges"]["output"] > 0
    for question in ("fault:german", "fault:chatty", "fault:invented-quote", "fault:empty"):
        assert project.models.asked(question) == 2
    for question in ("fault:cut-short", "fault:refusal", "fault:too-long", "fault:bad-request"):
        assert project.models.asked(question) == 1

    again = project.run()
    assert project.judgments(again) == came
    assert [again["metrics"], again["judges"]["cost"]] == [first["metrics"], 0]
    assert again["judges"]["saved"] == first["judges"]["cost"]
    # What the provider took for a bad request cost nothing, and may have been the fault of its day.
    assert project.models.asked() - asked == 2

    code, told, _ = project.call("run")
    assert code == 0
    assert "Judges: 2 calls" in told
    assert "grounded: judge_bad_request: 400: temperature is not supported" in told
    assert "and 4 other reasons" in told


@pytest.mark.parametrize("provider", ["openai", "anthropic", "openai_compatible"])
def test_a_model_that_refuses_leaves_its_case_missing_and_the_run_goes_on(
    project: JudgedProject, provider: str
) -> None:
    project.write(["sound", "fault:refusal", "fault:declined", "fault:ungrounded"], provider=provider)
    run = project.run()
    came = project.judgments(run)
    assert (came["sound"], came["fault:ungrounded"]) == (1.0, 0.0)
    for question in ("fault:refusal", "fault:declined"):
        assert came[question][:2] == ["missing", "judge_refused"]
        assert project.models.asked(question) == 1
    metric = run["metrics"][1]
    assert (metric["observed"], metric["missing"], metric["estimate"]) == (2, 2, 0.5)
    assert metric["missing_reasons"] == {"judge_refused": 2}
    assert (run["finished"], run["attempted"], run["judges"]["calls"]) == (True, 4, 4)
    # A refusal is an answer: it is kept like any other, and counts as missing again.
    again = project.run()
    assert (again["metrics"], again["judges"]["calls"]) == (run["metrics"], 0)
    code, told, _ = project.call("run")
    assert code == 0
    assert "grounded: judge_refused: " in told


def test_the_key_stands_nowhere(project: JudgedProject) -> None:
    project.write(["sound", "fault:echo", "fault:wrong-key"])
    told = "".join(str(part) for command in (("run",), ("run", "--json")) for part in project.call(*command))
    told += str(project.call("inspect", "latest", "--case", "fault:echo"))
    assert "no such header: ***" in told
    files = b"".join(path.read_bytes() for path in project.folder.rglob("*") if path.is_file())
    assert KEY not in told
    assert KEY.encode() not in files


def test_what_was_answered_is_asked_again_only_when_that_is_wished(project: JudgedProject) -> None:
    project.write(["one", "two", "three"])
    first = project.run()
    assert project.models.asked() == 3
    assert project.run()["judges"]["calls"] == 0
    project.write(["three", "one", "two"], timeout_seconds=9, rubric_text="Say grounded when it is grounded.")
    assert project.run()["judges"]["calls"] == 3
    project.write(["three", "one", "two"])
    assert project.run()["judges"]["calls"] == 0
    fresh = project.run("--fresh-judgments")
    assert fresh["judges"]["calls"] == 3
    assert project.judgments(fresh) == project.judgments(first)
    assert project.models.asked() == 9


def test_repeats_are_samples_of_their_own_and_more_of_them_cost_only_the_difference(
    project: JudgedProject,
) -> None:
    project.write(["one", "two"], repeats=3)
    assert project.run()["judges"]["calls"] == 6
    project.write(["one", "two"], repeats=5)
    assert project.run()["judges"]["calls"] == 4
    assert project.models.asked() == 10


def test_a_run_that_was_killed_pays_only_what_was_in_flight_again(project: JudgedProject) -> None:
    project.write([f"question {number}" for number in range(40)], "max_in_flight: 4")
    project.models.delay = 0.1
    process = project.start("run")
    project.wait_for(16)
    process.kill()
    process.communicate()
    assert project.models.asked() < 40
    project.models.delay = 0.0
    again = project.run()
    assert again["metrics"][1]["observed"] == 40
    assert 40 <= project.models.asked() <= 40 + 2 * 4
    assert project.run()["judges"]["calls"] == 0


@pytest.mark.parametrize("signalled", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
@pytest.mark.parametrize("waiting_for", ["answers", "the provider's patience"])
def test_whoever_interrupts_waits_for_no_model(
    project: JudgedProject, waiting_for: str, signalled: signal.Signals
) -> None:
    known = [f"known {number}" for number in range(3)]
    project.write(known)
    project.run()
    fault = "fault:asked-too-often " if waiting_for != "answers" else ""
    project.write([*known, *(f"{fault}question {number}" for number in range(40))])
    if waiting_for == "answers":
        project.models.delay = 60.0
    before = project.models.asked()
    process = project.start("run")
    project.wait_for(before + 8)  # all that may be in flight
    began = time.monotonic()
    process.send_signal(signalled)
    _, told = process.communicate(timeout=30)
    # A tenth of a second on a machine that has nothing else to do, and never a minute's answer or seven of patience.
    assert time.monotonic() - began < 2.5
    assert process.returncode == 5
    assert told.endswith(
        "interrupted; what finished before is kept, and the same command goes on from there\n"
    )
    assert "Traceback" not in told
    project.models.delay = 0.0
    project.write(known)
    assert project.run()["judges"]["calls"] == 0


def finished(process: subprocess.Popen[str]) -> Any:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return json.loads(out)["run"]


def test_runs_at_once_on_one_store_pay_for_each_question_once(project: JudgedProject) -> None:
    project.write([f"question {number}" for number in range(60)])
    project.models.delay = 0.03
    runs = [finished(process) for process in [project.start("run", "--json") for _ in range(3)]]
    assert project.models.asked() == 60
    assert sum(run["judges"]["calls"] for run in runs) == 60
    for run in runs:
        assert run["judges"]["calls"] + run["judges"]["avoided"] == 60
    assert project.judgments(runs[0]) == project.judgments(runs[2])


def test_a_run_whose_neighbour_is_killed_asks_what_that_one_had_asked(project: JudgedProject) -> None:
    project.write([f"question {number}" for number in range(24)], "max_in_flight: 4")
    project.models.delay = 0.5
    killed = project.start("run")
    project.wait_for(6)
    other = project.start("run", "--json")
    time.sleep(1.0)  # by now it waits for what the first one has asked
    killed.kill()
    killed.communicate()
    assert finished(other)["metrics"][1]["observed"] == 24
    # What was in flight, and what came in the last moment.
    assert 24 <= project.models.asked() <= 24 + 2 * 4


def test_a_run_whose_neighbour_gets_no_answer_asks_itself(project: JudgedProject) -> None:
    project.write(["one", "two", "three"], timeout_seconds=1)
    project.models.delay = 20.0
    first = project.start("run", "--json")
    project.wait_for(3)
    second = project.start("run", "--json")
    time.sleep(1.5)
    project.models.delay = 0.0
    assert finished(first)["metrics"][1]["observed"] == 3
    assert finished(second)["metrics"][1]["observed"] == 3


def test_each_of_two_runs_that_ask_anew_gets_an_answer_of_its_own(project: JudgedProject) -> None:
    project.write(["one", "two", "three"])
    project.models.delay = 0.3
    both = [project.start("run", "--json", "--fresh-judgments") for _ in range(2)]
    assert [finished(process)["judges"]["calls"] for process in both] == [3, 3]


def test_whoever_interrupts_waits_for_no_other_run(project: JudgedProject) -> None:
    project.write(["one", "two", "three"])
    project.models.delay = 30.0
    asking = project.start("run")
    project.wait_for(3)
    waiting = project.start("run")
    assert waiting.stderr is not None
    told = waiting.stderr.readline()
    assert told == "judges: waiting for answers that another run on this store has asked for\n"
    began = time.monotonic()
    waiting.send_signal(signal.SIGINT)
    _, told = waiting.communicate(timeout=30)
    assert time.monotonic() - began < 2.5
    assert (waiting.returncode, "Traceback" in told) == (5, False)
    assert asking.poll() is None
    asking.kill()
    asking.communicate()
    assert project.models.asked() == 3


def test_what_several_cases_ask_at_the_same_moment_is_asked_once(project: JudgedProject) -> None:
    def copies() -> None:
        cases = project.folder / "cases.jsonl"
        case = json.loads(cases.read_text())
        cases.write_text("".join(json.dumps({**case, "id": f"copy {n}"}) + "\n" for n in range(5)))

    project.write(["one"])
    copies()
    assert project.run()["judges"]["calls"] == 1
    # Now that all have their answers, nothing keeps their judgments apart.
    project.models.delay = 0.3
    project.write(["one"], model="another")
    copies()
    run = project.run()
    assert (run["judges"]["calls"], run["judges"]["avoided"]) == (1, 4)
    assert set(project.judgments(run).values()) == {1.0}
    fresh = project.run("--fresh-judgments")
    assert (fresh["judges"]["calls"], fresh["judges"]["avoided"]) == (1, 4)
    project.write(["fault:bad-request"])
    project.run()
    copies()
    refused = project.run()
    assert refused["metrics"][1]["missing_reasons"] == {"judge_bad_request": 5}
    assert (refused["judges"]["calls"], refused["judges"]["avoided"]) == (1, 0)


def test_a_budget_leaves_the_rest_missing_and_the_next_run_goes_on_from_there(project: JudgedProject) -> None:
    project.write(["one", "two", "three"], "max_calls: 2, max_in_flight: 1")
    came = project.judgments(project.run())
    assert sorted(map(str, came.values())) == [
        "1.0",
        "1.0",
        "['missing', 'judge_budget_spent', 'judges.max_calls or judges.max_cost is reached']",
    ]
    assert project.run()["metrics"][1]["observed"] == 3
    assert project.models.asked() == 3


def test_without_a_key_all_is_missing_and_the_check_says_why(project: JudgedProject) -> None:
    project.write(["one", "two"])
    del project.environment["JUDGE_KEY"]
    code, _, err = project.call("check")
    assert code == 0
    assert "grounded finds no key: the environment variable JUDGE_KEY is not set" in err
    run = project.run()
    assert run["metrics"][1]["missing_reasons"] == {"judge_no_key": 2}
    assert run["judges"]["calls"] == 0
    project.environment["JUDGE_KEY"] = KEY
    assert project.call("check")[2] == ""
    assert project.run()["metrics"][1]["observed"] == 2


def test_waiting_is_told(project: JudgedProject) -> None:
    project.write(["fault:once-too-often"])
    code, _, told = project.call("run")
    assert code == 0
    assert "judges: asked too often: waiting 1 s, then 4 at a time\n" in told


def test_the_limit_of_costs_needs_the_price_of_every_model(project: JudgedProject) -> None:
    project.write(["one"], "max_cost: 1")
    code, _, told = project.call("run")
    assert code == 2
    assert re.search(r"oloproof.yaml:\d+: .*judges.prices has no price of m; add", told)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("models.example/v1", "is no address"),
        ("ftp://models.example/v1", "is no address"),
        ("http://someone:secret@models.example/v1", "holds a user or a password"),
        ("http://models.example/v1?key=secret", "ends in a query"),
    ],
)
def test_an_address_that_is_none_is_refused_before_anything_runs(
    project: JudgedProject, url: str, problem: str
) -> None:
    project.write(["one"], base_url=url)
    code, _, told = project.call("run")
    assert code == 2
    assert problem in told
    assert "secret" not in told


@pytest.mark.parametrize(
    "key", ["sk-ant-secret", "gsk_0secret1secret2secret3", "a secret", "secretABCDEFGH0123456789", ""]
)
def test_a_key_in_the_place_of_its_variables_name_is_not_repeated(project: JudgedProject, key: str) -> None:
    project.write(["one"], api_key_env=key)
    code, said, told = project.call("run")
    assert code == 2
    assert re.search(r"oloproof.yaml:\d+: .*api_key_env", told)
    assert "secret" not in said + told
    assert not (project.folder / ".oloproof/store.sqlite3").exists()


def test_a_case_is_shown_with_what_the_judge_said_of_it(project: JudgedProject) -> None:
    project.write(["sound", "fault:chatty"], repeats=2)
    project.run()
    _, shown, _ = project.call("inspect", "latest", "--case", "sound")
    assert "  grounded: passed\n    grounded: so it says\n      passage 1: “Refunds take 14 days”\n" in shown
    _, record, _ = project.call("inspect", "latest", "--case", "sound", "--json")
    quotes = [{"passage": 1, "text": "Refunds take 14 days"}]
    said = {"verdict": "grounded", "rationale": "so it says", "quotes": quotes}
    assert json.loads(record)["judges"] == {"grounded": [[said, said]]}
    _, shown, _ = project.call("inspect", "latest", "--case", "fault:chatty")
    assert "    no verdict (judge_unusable: no JSON: 'I think that the answer is grounded.')" in shown


def test_a_failure_that_a_judge_found_is_diagnosed_and_a_missing_verdict_is_not(
    project: JudgedProject,
) -> None:
    project.write(["sound", "fault:ungrounded", "fault:chatty"])
    project.run()
    asked = project.models.asked()
    code, out, err = project.call(
        "diagnose", "latest", "--intervention", "gold-context", "--criterion", "grounded", "--json"
    )
    assert code == 0, err
    (case,) = json.loads(out)["cases"]
    assert (case["case_id"], case["label"]) == ("fault:ungrounded", "GENERATION_FAILURE")
    # The same answer to the same context is the same question: nothing is paid for gold run and control.
    assert project.models.asked() == asked
    _, listed, _ = project.call("inspect", json.loads(out)["gold_run"], "--json")
    costs = json.loads(listed)["run"]["judges"]
    assert (costs["calls"], costs["avoided"]) == (0, 1)


def pull_request(project: JudgedProject, judges: str = "") -> tuple[int, Any, str]:
    """Previews a head that brings the judge, and whose answers to two questions a judge does not find as good; gives
    exit code, report and comment."""
    questions = ["sound", "worse", "unclear"]
    project.write(questions)
    config = project.folder / "oloproof.yaml"
    config.write_text(re.sub(r"  - \{\"type\": \"groundedness.*\n", "", config.read_text()))
    rule = "{id: none-new, metric: grounded, kind: new_failures, max: 0}"
    (project.folder / "compare.yaml").write_text(f"{{version: 1, rules: [{rule}]}}")
    project.commit_base()
    project.write(questions, judges)
    worse = '{"worse": " fault:ungrounded", "unclear": " fault:chatty"}.get(input["question"], "")'
    app = APP.replace('"Refunds take 14 days.", "cit', f'"Refunds take 14 days." + {worse}, "cit')
    assert app != APP
    (project.folder / "app.py").write_text(app)
    return project.preview("--policy-from", "head")


def test_a_pull_request_shows_what_its_judge_finds_and_takes(project: JudgedProject) -> None:
    _, report, comment = pull_request(project)
    (failures,) = report["failures"]
    assert [case["case_id"] for case in failures["new_failures"]] == ["worse"]
    assert [
        metric["observed"] for metric in (report["base"]["metrics"][1], report["head"]["metrics"][1])
    ] == [3, 2]
    # The base's three answers, the head's two other ones, and one of these once more, since it was unusable.
    assert report["judges"]["calls"] == project.models.asked() == 6
    assert "judges: 6 calls, " in comment
    assert "No judgment of `grounded` here for 1 case: `judge_unusable` 1." in comment
    assert KEY not in comment + json.dumps(report)


def test_both_sides_of_a_pull_request_share_one_budget(project: JudgedProject) -> None:
    _, report, _ = pull_request(project, "max_calls: 4")
    assert project.models.asked() == report["judges"]["calls"] == 4
    missing = [side["metrics"][1]["missing_reasons"] for side in (report["base"], report["head"])]
    assert missing[0] == {}
    assert "judge_budget_spent" in missing[1]
