"""Stage swap on real worktrees: which change of a pull request a new failure hangs on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from previews import Edit, Repository, entered, make_repository

#: Answers "blue" where a passage of the context says so. What a pull request changes is written in capitals; the calls
#: are noted outside the repository with the side that makes them.
APP = """
import os, time
from pathlib import Path

from oloproof import Passage, Retrieval, rag_system

WORDS = {"d1": "blue", "d2": "red rose", "d3": "a green tree"}
HERE = "base" if "oloproof-base-" in __file__ else "head"


def note(stage):
    with open(os.environ["NOTES"], "a") as file:
        file.write(f"{HERE}-{stage}\\n")


def found(question):
    return ["d1", "d2", "d3"]  # RETRIEVE


def said(question, texts):
    return " ".join(texts)  # GENERATE


@rag_system(name="swaps", version="1", depth=3, top_k=2, token_budget=9, index_version="1")
class Rag:
    def retrieve(self, input, depth):
        note("retrieve")
        names = found(input["question"])
        order = (Path(__file__).parent / "order.txt").read_text().split()
        names.sort(key=order.index)
        passages = [Passage(doc_id=name, score=1.0 / n, text=WORDS[name]) for n, name in enumerate(names, 1)]
        return Retrieval(query=input, depth=depth, candidates=tuple(passages))

    def generate(self, input, context):
        note("generate")
        time.sleep(float(os.environ.get("PAUSE", "0")))
        answers = (Path(__file__).parent / "prompt.txt").read_text() == "answer"
        return {"answer": said(input["question"], [passage.text for passage in context]) if answers else "?"}

    def count_tokens(self, passage):
        return 4  # COUNT
"""
CONFIG = {
    "version": 1,
    "dataset": "cases.jsonl",
    "system": {"rag": {"object": "app:Rag"}},
    "evaluators": [
        {"type": "contains", "criterion": "correct", "field": "answer", "expected_field": "answer"},
        {"type": "hit_rate", "k": 1},
    ],
    "execution": {"timeout_seconds": 5},
}
MISSES = (
    "app.py",
    '["d1", "d2", "d3"]  # RETRIEVE',
    '["d2", "d3"] if "lost" in question else ["d1", "d2", "d3"]',
)
MUTED = ("app.py", '" ".join(texts)  # GENERATE', '"?" if "mute" in question else " ".join(texts)')
SMALL_BUDGET = ("app.py", "token_budget=9", "token_budget=3")
LONG_TOKENS = ("app.py", "return 4  # COUNT", "return 10 if passage.doc_id == 'd1' else 4")
QUESTIONS = ("plain", "lost", "mute", "late", "late first", "lost mute", "no gold lost")
ALL = {question.replace(" ", "_") for question in QUESTIONS}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    cases = []
    for question in QUESTIONS:
        expected: dict[str, Any] = {"answer": "blue", "relevant": [{"doc_id": "d1"}]}
        if "no gold" not in question:
            expected["gold_context"] = [{"doc_id": "d1", "text": "blue"}]
        cases.append(
            {"id": question.replace(" ", "_"), "input": {"question": question}, "expected": expected}
        )
    folder = tmp_path_factory.mktemp("swaps")
    return make_repository(folder, dedent(APP), CONFIG, cases, order_txt="d1 d2 d3", prompt_txt="answer")


@pytest.fixture
def repository(
    made: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Repository]:
    yield entered(made, monkeypatch, capsys)
    made.git("checkout", "--quiet", "--force", "main")


def swapped(report: Any) -> Any:
    (found,) = report["failures"]
    return found["swap"]


def verdicts(report: Any) -> Mapping[str, tuple[str, ...]]:
    """What is said of each new failure: the verdict, and which factors of the base make it pass."""
    return {
        case["case_id"]: (
            case["verdict"],
            *(swap["factor"] for swap in case["swaps"] if swap["outcome"] == "passed"),
        )
        for case in swapped(report)["cases"]
    }


def outcomes(report: Any, case_id: str) -> list[str | None]:
    (case,) = [case for case in swapped(report)["cases"] if case["case_id"] == case_id]
    return [swap["outcome"] for swap in case["swaps"]]


@pytest.mark.parametrize(
    ("edit", "factor", "failing"),
    [
        (MISSES, "retrieval", {"lost", "lost_mute", "no_gold_lost"}),
        (MUTED, "generation", {"mute", "lost_mute"}),
        (SMALL_BUDGET, "assembly", ALL),
        (LONG_TOKENS, "assembly", ALL),
    ],
    ids=["the retriever", "the generator", "the budget", "the token count"],
)
def test_of_a_head_with_one_change_that_change_is_implicated_without_a_call(
    repository: Repository, edit: Edit, factor: str, failing: set[str]
) -> None:
    report = repository.preview(edit)
    assert verdicts(report) == dict.fromkeys(failing, ("IMPLICATED", factor))
    assert swapped(report)["calls"] == 0
    assert list(swapped(report)["changed"]) == [factor]
    for other in {"retrieval", "assembly", "generation"} - {factor}:
        assert f"{other} is unchanged" in repository.text
    total = len(failing)
    assert f"Implicated: the change in {factor} ({total} of {total})." in repository.text


def test_a_file_that_only_the_retriever_reads_implicates_the_retrieval(repository: Repository) -> None:
    """It could reach the other stages through the app's attributes, so they are swapped as well."""
    report = repository.preview(("order.txt", "d1 d2 d3", "d3 d2 d1"))
    assert verdicts(report) == dict.fromkeys(ALL, ("IMPLICATED", "retrieval"))
    assert swapped(report)["changed"]["retrieval"] == ["order.txt"]
    assert swapped(report)["calls"] <= 2 * len(ALL)


def test_a_file_that_only_the_generator_reads_implicates_the_generation_without_a_call(
    repository: Repository,
) -> None:
    report = repository.preview(("prompt.txt", "answer", "refuse"))
    assert verdicts(report) == dict.fromkeys(ALL, ("IMPLICATED", "generation"))
    assert swapped(report)["changed"] == {"generation": ["prompt.txt"]}
    assert swapped(report)["calls"] == 0


def test_what_every_stage_depends_on_makes_every_factor_differ_and_the_swaps_tell_which_one_it_is(
    repository: Repository,
) -> None:
    report = repository.preview(MUTED, identity={"env": ["MODE"]})
    assert set(swapped(report)["changed"]) == {"retrieval", "assembly", "generation"}
    assert set(verdicts(report).values()) == {("IMPLICATED", "generation")}
    assert outcomes(report, "mute") == ["failed", "failed", "passed"]


def test_each_of_several_changes_is_attributed_to_the_failures_that_hang_on_it(
    repository: Repository,
) -> None:
    """Both changes lose one case each; the reordering and the answer from the first passage lose one only together;
    and one case is lost by either alone."""
    first_only = ("app.py", '" ".join(texts)  # GENERATE', '"?" if "mute" in question else texts[0]')
    reordered = (
        "app.py",
        '["d1", "d2", "d3"]  # RETRIEVE',
        '["d2", "d3"] if "lost" in question else ["d2", "d1", "d3"] if "late" in question else ["d1", "d2", "d3"]',
    )
    order = ("app.py", "        names.sort(key=order.index)\n", "")
    report = repository.preview(reordered, first_only, order)
    assert verdicts(report) == {
        "lost": ("IMPLICATED", "retrieval"),
        "no_gold_lost": ("IMPLICATED", "retrieval"),
        "mute": ("IMPLICATED", "generation"),
        "late": ("NEEDED_TOGETHER", "retrieval", "generation"),
        "late_first": ("NEEDED_TOGETHER", "retrieval", "generation"),
        "lost_mute": ("NO_SINGLE_CHANGE",),
    }
    assert outcomes(report, "lost") == ["passed", None, "failed"]
    assert "retrieval and generation, each needed" in repository.text
    assert "no single change suffices" in repository.text
    # Two swaps of six cases, less those on contexts that the generator of that side had answered before.
    assert swapped(report)["calls"] <= 12
    (found,) = report["failures"]
    # Gold runs of five, repeats of six on either side.
    assert found["calls"] == 5 + 12 + swapped(report)["calls"]
    assert (
        sum(n for name, n in repository.calls.items() if name.endswith("generate")) == 2 * 7 + found["calls"]
    )
    assert repository.calls["head-retrieve"] == repository.calls["base-retrieve"] == 7


@pytest.mark.parametrize("limit", [2, 12, 20])
def test_no_more_calls_are_made_than_the_budget_allows_and_the_report_says_of_how_many(
    repository: Repository, limit: int
) -> None:
    before = {}
    for _ in range(2):
        report = repository.preview(MISSES, MUTED, SMALL_BUDGET, diagnosis={"max_generate_calls": limit})
        (found,) = report["failures"]
        assert len(found["new_failures"]) == len(ALL)
        assert found["calls"] <= limit
        assert repository.calls["head-generate"] + repository.calls["base-generate"] == 14 + found["calls"]
        if limit == 2:
            assert found["calls"] == 0
            assert {case["reason"] for case in found["new_failures"]} == {"over_budget"}
        else:
            looked_into = [case for case in found["new_failures"] if case["reason"] != "over_budget"]
            assert len(looked_into) == limit // 3
            assert f"Diagnosed {found['diagnosed']} of 7" in repository.text
        sampled = {case["case_id"]: case["label"] for case in found["new_failures"]}
        assert before in ({}, sampled)  # which ones does not change from run to run
        before = sampled


def test_at_most_so_many_cases_are_looked_into(repository: Repository) -> None:
    report = repository.preview(MISSES, MUTED, SMALL_BUDGET, diagnosis={"max_cases": 3})
    reasons = [case["reason"] for case in swapped(report)["cases"]]
    assert reasons.count("over_budget") == 4
    assert "not attributed: beyond the budget" in repository.text


def test_calls_that_may_be_repeated_are_counted_with_their_repeats(repository: Repository) -> None:
    limits = {"diagnosis": {"max_generate_calls": 30}, "execution": {"retries": 2, "timeout_seconds": 5}}
    fails = ("app.py", '" ".join(texts)  # GENERATE', '1 / 0 if len(texts) == 1 else "?"')
    report = repository.preview(fails, **limits)
    (found,) = report["failures"]
    assert {case["label"] for case in found["new_failures"]} == {"UNRESOLVED", "NOT_DIAGNOSED"}
    assert found["calls"] <= 30
    assert repository.calls["head-generate"] + repository.calls["base-generate"] == 14 + found["calls"]


def test_a_killed_preview_goes_on_without_repeating_a_finished_call(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    changes = (MISSES, MUTED, SMALL_BUDGET)
    undisturbed = repository.preview(*changes)
    calls = repository.calls.total()
    repository.clear(*changes)
    monkeypatch.setenv("PAUSE", "0.04")
    with subprocess.Popen(
        [sys.executable, "-m", "oloproof_ci", "preview"],
        env={**os.environ, "TMPDIR": str(tmp_path)},  # where its worktree of the base is left behind
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as running:
        while repository.noted.total() < calls - 2:
            assert running.poll() is None
            time.sleep(0.005)
        running.send_signal(signal.SIGKILL)
    before = repository.noted.total()
    report = repository.preview(*changes, store=True)
    assert before + repository.calls.total() <= calls + 10  # what was in flight or had just finished
    assert verdicts(report) == verdicts(undisturbed)
    repository.preview(*changes, store=True)
    assert repository.calls.total() == 2 * len(ALL)  # the repeats of both sides, and nothing else


def test_an_unstable_case_is_attributed_to_nothing(repository: Repository) -> None:
    flaky = (
        "app.py",
        '" ".join(texts)  # GENERATE',
        'next(TURNS) if "late" in question else " ".join(texts)',
    )
    turns = ("app.py", "def found(", 'TURNS = iter(["?"] * 2 + ["blue"] * 99)\n\n\ndef found(')
    report = repository.preview(flaky, turns, MISSES)
    assert verdicts(report)["late"] == verdicts(report)["late_first"] == ("UNSTABLE",)
    assert outcomes(report, "late") == []
    assert verdicts(report)["lost"] == ("IMPLICATED", "retrieval")
    assert "none: unstable" in repository.text


@pytest.mark.parametrize(
    ("way", "says"),
    [("1 / 0", "ZeroDivisionError"), ("time.sleep(60)", "timeout"), ("os._exit(4)", "exit status 4")],
    ids=["raises", "hangs", "exits"],
)
def test_a_swap_without_result_leaves_the_case_unresolved(
    repository: Repository, way: str, says: str
) -> None:
    """The new generator cannot bear what the old retriever finds."""
    fragile = (
        "app.py",
        '" ".join(texts)  # GENERATE',
        f'{way} if "blue" in texts and "lost" in question else " ".join(texts)',
    )
    report = repository.preview(MISSES, fragile, execution={"timeout_seconds": 1.5})
    assert set(verdicts(report).values()) == {("UNRESOLVED",)}
    assert outcomes(report, "lost") == ["missing", None, "failed"]
    assert says in swapped(report)["cases"][0]["swaps"][0]["error"]
    assert "unresolved: the swap of retrieval gave no result" in repository.text
    assert "Implicated: the change" not in repository.text


def test_an_evaluator_that_gives_no_verdict_on_a_swap_leaves_its_case_unresolved(
    repository: Repository,
) -> None:
    """The head's evaluator judges both sides, and cannot judge what the old retriever leads to here."""
    check = 'def blue(input, expected, output, context):\n    answer = output["answer"]\n'
    odd = 'len(answer) if "blue" in answer and "HEAD" in answer else "blue" in answer'
    (repository.root / "checks.py").write_text(f"{check}    return {odd}\n", encoding="utf-8")
    marked = (
        "app.py",
        '" ".join(texts)  # GENERATE',
        '" ".join(texts) + (" HEAD" if "lost" in question else "")',
    )
    evaluators = [{"type": "python", "object": "checks:blue", "criterion": "correct"}]
    try:
        report = repository.preview(MISSES, marked, evaluators=evaluators)
    finally:
        (repository.root / "checks.py").unlink()
    assert verdicts(report)["lost"] == ("UNRESOLVED",)
    error = swapped(report)["cases"][0]["swaps"][0]["error"]
    assert error is not None
    assert error in repository.text.replace("\\_", "_")


def test_what_was_measured_is_reported_when_the_base_cannot_be_executed_again(
    repository: Repository, tmp_path: Path
) -> None:
    """A base whose results are all stored is prepared only for the repeats, which its preparation may not survive."""
    marker = tmp_path / "marker"
    prepare = f'case "$PWD" in *oloproof-base-*) test ! -e {marker} ;; esac'
    repository.edit(("oloproof.yaml", '"version": 1', f'"version": 1, "prepare": {json.dumps(prepare)}'))
    repository.git("commit", "--all", "--quiet", "--message", "Prepare")
    try:
        repository.preview(MUTED)
        marker.touch()
        report = repository.preview(MUTED, store=True)
    finally:
        repository.git("reset", "--hard", "--quiet", "HEAD~1")
    (found,) = report["failures"]
    assert {case["case_id"] for case in found["new_failures"]} == {"mute", "lost_mute"}
    assert report["gate"]["state"] == "BLOCK"
    (warning,) = report["warnings"]
    assert warning["code"] == "diagnosis_stopped"
    assert "Failures were not looked into further" in repository.text
    assert "prepare" in warning["text"]
    assert "oloproof-base-" not in warning["text"].partition("ended with")[2]


@pytest.fixture
def other(repository: Repository) -> Iterator[Path]:
    """A second checkout of main, beside the repository."""
    place = repository.root.parent / "other"
    repository.git("worktree", "add", "--quiet", "--detach", str(place), "main")
    yield place
    repository.git("worktree", "remove", "--force", str(place))


def two_runs(repository: Repository, *edits: Edit) -> None:
    """A run of main and one of main with these edits, in one store."""
    repository.clear()
    repository.oloproof("run")
    repository.edit(*edits)
    repository.oloproof("run")


def test_two_stored_runs_are_swapped_when_both_checkouts_are_at_hand(
    repository: Repository, other: Path
) -> None:
    two_runs(repository, MISSES, ("cases.jsonl", '"lost_mute"', '"renamed"'))
    code = repository.oloproof(
        "compare", "latest", "latest~1", "--swap", "--base-config", other / "oloproof.yaml"
    )
    assert code == 1
    assert "Implicated: the change in retrieval, in 3 of 3 new failures" in repository.text
    line = "  renamed: IMPLICATED retrieval (retrieval passed; assembly unchanged; generation unchanged)"
    assert line in repository.text
    identity = repository.text.split()[1]
    repository.oloproof("inspect", identity[:20])
    assert line in repository.text
    repository.oloproof("runs", "--json")
    assert {run["kind"] for run in json.loads(repository.text)} == {"run"}
    code = repository.oloproof("compare", "latest", "latest~1", "--criterion", "correct", "--swap", "--json")
    assert code == 2
    assert "git worktree add" in repository.errors
    assert "app:found differ" in repository.errors
    (other / "order.txt").write_text("d3 d1 d2", encoding="utf-8")
    code = repository.oloproof(
        "compare", "latest", "latest~1", "--swap", "--base-config", other / "oloproof.yaml"
    )
    assert code == 2
    assert "order.txt: changed since run_" in repository.errors


def test_an_app_that_passes_every_second_time_is_unstable_wherever_it_is_reported(
    repository: Repository, other: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TURNS", str(tmp_path / "turns"))
    flaky = (
        "app.py",
        "def said(question, texts):",
        "def said(question, texts):\n"
        "    if 'late' in question:\n"
        "        with open(os.environ['TURNS'] + question, 'a+') as file:\n"
        "            file.write('x')\n"
        "            return ' '.join(texts) if file.tell() % 2 else '?'",
    )
    again = ("app.py", '" ".join(texts)  # GENERATE', '" ".join(list(texts))')
    base_config = ("--base-config", other / "oloproof.yaml")
    repository.edit(flaky)
    repository.git("commit", "--all", "--quiet", "--message", "Every second time")
    repository.git("-C", str(other), "checkout", "--quiet", "--detach", "main")
    try:
        two_runs(repository, again)
        assert repository.oloproof("compare", "latest", "latest~1", "--swap", *base_config) == 3
        compared = repository.text
        for turns in tmp_path.iterdir():
            turns.unlink()
        report = repository.preview(again)
    finally:
        repository.git("reset", "--hard", "--quiet", "HEAD~1")
    assert "late: UNSTABLE, an unchanged repeat came out differently" in compared
    assert "unstable_could_change_outcome" in compared
    assert verdicts(report) == dict.fromkeys(("late", "late_first"), ("UNSTABLE",))
    assert {case["label"] for case in report["failures"][0]["new_failures"]} == {"UNSTABLE"}
    assert "**unstable**: passed here" in repository.text


def test_runs_that_differ_in_settings_alone_share_their_checkout(repository: Repository) -> None:
    two_runs(repository, SMALL_BUDGET)
    assert repository.oloproof("compare", "latest", "latest~1", "--swap") == 1
    assert "  assembly: 7 of 7 pass; differs in token_budget" in repository.text
    assert "  retrieval: unchanged" in repository.text


def test_runs_of_two_configurations_in_one_folder_are_each_executed_with_their_own(
    repository: Repository,
) -> None:
    repository.clear()
    other = {**CONFIG, "system": {"version": "2", "rag": {"object": "other:Rag"}}}
    app = (repository.root / "app.py").read_text(encoding="utf-8")
    (repository.root / "other.py").write_text(app.replace(*MISSES[1:]), encoding="utf-8")
    (repository.root / "other.yaml").write_text(json.dumps(other), encoding="utf-8")
    try:
        repository.oloproof("run")
        repository.oloproof("run", "--config", "other.yaml")
        assert repository.oloproof("compare", "latest", "latest~1", "--swap") == 1
    finally:
        (repository.root / "other.py").unlink()
        (repository.root / "other.yaml").unlink()
    assert "Implicated: the change in retrieval, in 3 of 3 new failures" in repository.text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--base-config", "oloproof.yaml"], "--base-config is for --swap"),
        (["--criterion", "correct"], "--criterion is for --swap"),
        (["--swap", "--criterion", "corect"], "known: correct, hit_rate_at_1"),
        (["--swap", "--base-config", "nowhere.yaml"], "nowhere.yaml: no such file"),
    ],
)
def test_a_swap_that_cannot_be_made_is_refused(
    repository: Repository, arguments: list[str], says: str
) -> None:
    two_runs(repository, SMALL_BUDGET)
    assert repository.oloproof("compare", "latest", "latest~1", *arguments) == 2
    assert says in repository.errors
