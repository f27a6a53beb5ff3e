"""What is looked into after a run, on a criterion that a model judges: diagnosis, replays, slices, comparison, stage
swap and pull request. A verdict that is missing is never a failure in any of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from model_server import ModelServer
from test_judged_runs import JudgedProject

#: What each answer holds says what the judge finds: fault:passes, fault:fails, or fault:chatty, which is no verdict.
APP = """\
import os
from pathlib import Path

from oloproof import Passage, Retrieval, rag_system

TEXTS = {"kb-1": "Refunds take 14 days.", "kb-2": "Seats cost 12.", "kb-3": "Invoices come monthly."}


@rag_system(name="judged", version="1", depth=3, top_k=1, index_version="1")
class App:
    def retrieve(self, input, depth):
        question = input["question"]
        names = ["kb-1", "kb-2", "kb-3"]
        if "ranked" in question or "shy" in question:
            names = ["kb-2", "kb-1", "kb-3"]
        if "missed" in question:
            names = ["kb-2", "kb-3"]
        found = [Passage(doc_id=name, score=0.5, text=TEXTS[name]) for name in names]
        return Retrieval(query=question, depth=depth, candidates=found)

    def generate(self, input, context):
        question = input["question"]
        known = any("14 days" in passage.text for passage in context)
        if "unclear" in question or ("shy" in question and known):
            return {"answer": "Well. fault:chatty"}
        if "fickle" in question:
            with open(os.environ["TURNS"], "a+") as file:
                file.write("x")
                known = file.tell() > 1
        if "mute" in question:
            known = False
        return {"answer": "14 days. fault:passes" if known else f"I cannot say. fault:fails"}
"""
QUESTIONS = ("sound", "ranked", "missed", "mute", "unclear", "fickle", "shy", "ranked too")
DIAGNOSE = ("diagnose", "latest", "--intervention", "gold-context", "--criterion", "polite")
CONFIG = {
    "version": 1,
    "dataset": "cases.jsonl",
    "slices": ["metadata.kind", "relevant_position"],
    "min_slice_support": 1,
    "system": {"rag": {"object": "app:App"}},
    "evaluators": [{"type": "contains", "criterion": "right", "field": "answer", "expected_field": "answer"}],
    "judges": {"prices": {"m": {"input": 1_000_000, "output": 1_000_000}}},
}


class Suite(JudgedProject):
    """A project whose judge says what its answers ask for."""

    def __init__(self, folder: Path, models: ModelServer) -> None:
        super().__init__(folder, models)
        self.environment["TURNS"] = str(folder.parent / f"{folder.name}-turns")
        self.app = folder / "app.py"
        self.app.write_text(APP)
        judge = {
            "type": "rubric_judge",
            "criterion": "polite",
            "rubric_text": "The answer answers.",
            "provider": "openai",
            "base_url": models.url,
            "model": "m",
            "api_key_env": "JUDGE_KEY",
        }
        self.configure(evaluators=[*CONFIG["evaluators"], judge])  # type: ignore[misc]
        gold = [{"doc_id": "kb-1", "text": "Refunds take 14 days."}]
        expected = {"answer": "14 days", "gold_context": gold, "relevant": [{"doc_id": "kb-1"}]}
        with (folder / "cases.jsonl").open("w") as file:
            for question in QUESTIONS:
                kind = {"kind": "quiet" if question in ("unclear", "mute", "sound") else "other"}
                case = {
                    "id": question,
                    "input": {"question": question},
                    "expected": expected,
                    "metadata": kind,
                }
                file.write(json.dumps(case) + "\n")

    def configure(self, **settings: Any) -> None:
        self.config = {**getattr(self, "config", CONFIG), **settings}
        (self.folder / "oloproof.yaml").write_text(json.dumps(self.config))

    def edit(self, old: str, new: str) -> None:
        text = self.app.read_text()
        assert old in text
        self.app.write_text(text.replace(old, new))

    def record(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> Any:
        code, out, err = self.call(*arguments, "--json")
        assert code in codes, err
        return json.loads(out)

    def text(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        code, out, err = self.call(*arguments)
        assert code in codes, err
        return out


@pytest.fixture
def suite(tmp_path: Path, models: ModelServer) -> Suite:
    folder = tmp_path / "project"
    folder.mkdir()
    return Suite(folder, models)


def test_failures_that_a_judge_found_are_diagnosed_as_others_and_what_that_takes_is_told(
    suite: Suite,
) -> None:
    run = suite.run()
    assert run["metrics"][1]["missing_reasons"] == {"judge_unusable": 1}
    before = suite.models.asked()
    found = suite.record(*DIAGNOSE)
    labels = {case["case_id"]: (case["label"], case["control"], case["gold"]) for case in found["cases"]}
    assert labels == {
        "ranked": ("RANKED_OUT", "failed", "passed"),
        "ranked too": ("RANKED_OUT", "failed", "passed"),
        "missed": ("RETRIEVAL_MISS", "failed", "passed"),
        "mute": ("GENERATION_FAILURE", "failed", "failed"),
        "fickle": ("UNSTABLE", "passed", "passed"),
        "shy": ("UNRESOLVED", "failed", "missing"),
    }
    shy = next(case for case in found["cases"] if case["case_id"] == "shy")
    assert shy["reason"] == "intervention_evidence_missing"
    paid = suite.models.asked() - before
    assert found["judges"]["calls"] == paid > 0
    assert found["judges"]["cost"] > 0
    assert found["judges"]["avoided"] > 0  # what came out as in the run

    text = suite.text(*DIAGNOSE)
    assert "\nJudges: 0 calls · " in text
    assert suite.record(*DIAGNOSE)["judges"]["calls"] == 0
    replay = suite.record(
        "diagnose", "latest", "--intervention", "top-k", "--top-k", "2", "--criterion", "polite"
    )
    confirmed = {case["case_id"] for case in replay["cases"] if case["strength"] == "replay_confirmed"}
    assert confirmed == {"ranked", "ranked too"}
    assert suite.record("diagnose", "latest", *DIAGNOSE[2:4], "--criterion", "right")["judges"]["calls"] == 0


def test_a_control_without_a_verdict_leaves_its_failure_unresolved(suite: Suite) -> None:
    suite.edit(
        '        if "mute" in question:\n',
        '        if "mute" in question:\n'
        '            with open(os.environ["TURNS"] + "-mute", "a+") as file:\n'
        '                file.write("x")\n'
        "                if file.tell() == 2:\n"
        '                    return {"answer": "Well. fault:chatty"}\n',
    )
    suite.run()
    (case,) = [each for each in suite.record(*DIAGNOSE)["cases"] if each["case_id"] == "mute"]
    assert (case["control"], case["gold"]) == ("missing", "failed")
    assert (case["label"], case["reason"]) == ("UNRESOLVED", "intervention_evidence_missing")


def test_a_diagnosis_without_judges_tells_of_none(suite: Suite) -> None:
    suite.run()
    assert "Judges:" not in suite.text(*DIAGNOSE[:4], "--criterion", "right")
    suite.configure(evaluators=CONFIG["evaluators"])
    suite.run()
    assert suite.record(*DIAGNOSE[:4], "--criterion", "right")["judges"] is None


@pytest.mark.parametrize("now", ["no judge", "another model"])
def test_a_judge_that_is_not_configured_any_more_is_not_asked(suite: Suite, now: str) -> None:
    suite.run()
    right, polite = suite.config["evaluators"]
    suite.configure(evaluators=[right] if now == "no judge" else [right, {**polite, "model": "n"}])
    asked = suite.models.asked()
    for command in (DIAGNOSE, ("what-if", "latest", "--top-k", "2", "--criterion", "polite")):
        code, _, err = suite.call(*command)
        assert code == 2
        assert "oloproof.yaml: has no judge like polite of the run, which asked m" in err
    assert suite.models.asked() == asked
    suite.record("what-if", "latest", "--top-k", "2")  # which asks no judge


def test_a_judge_that_has_another_name_and_another_key_is_the_same(suite: Suite) -> None:
    suite.run()
    right, polite = suite.config["evaluators"]
    suite.configure(evaluators=[right, {**polite, "criterion": "kind", "api_key_env": "OTHER_KEY"}])
    suite.environment["OTHER_KEY"] = suite.environment.pop("JUDGE_KEY")
    assert {case["label"] for case in suite.record(*DIAGNOSE)["cases"]} >= {"RANKED_OUT", "RETRIEVAL_MISS"}


def test_slices_count_missing_verdicts_of_a_judge_as_missing(suite: Suite) -> None:
    run = suite.run()
    rows = {(row["slice"], row["value"]): row["metrics"][1] for row in run["slice_rows"]}
    quiet = rows["metadata.kind", "quiet"]
    assert (quiet["criterion"], quiet["observed"], quiet["missing"], quiet["estimate"]) == (
        "polite",
        2,
        1,
        0.5,
    )
    other = rows["metadata.kind", "other"]
    assert (other["observed"], other["missing"], other["estimate"]) == (5, 0, 0.0)
    near = rows["relevant_position", "top_k"]
    assert (near["observed"], near["missing"]) == (3, 1)
    text = suite.text("run", codes=(0, 3))
    assert "metadata.kind=quiet" in text


def test_a_replay_of_a_whole_run_asks_the_judge_that_is_named_and_says_what_it_takes(suite: Suite) -> None:
    suite.run()
    before = suite.models.asked()
    free = suite.record("what-if", "latest", "--top-k", "2")
    assert free["not_judged"] == ["polite"]
    assert (suite.models.asked(), free["judges"]["calls"]) == (before, 0)

    found = suite.record("what-if", "latest", "--top-k", "2,3", "--criterion", "polite")
    assert found["judges"]["calls"] == suite.models.asked() - before > 0
    assert found["judges"]["cost"] > 0
    for setting in found["settings"]:
        flips = next(each for each in setting["flips"] if each["criterion"] == "polite")
        # What had no verdict has not recovered, and what has none now is not broken.
        assert sorted(flips["fixed"]) == ["fickle", "ranked", "ranked too"]
        assert flips["new_failures"] == []
        assert sorted(flips["still_failing"]) == ["missed", "mute"]
        metric = next(each for each in setting["metrics"] if each["criterion"] == "polite")
        assert (metric["paired"], metric["missing"]) == (6, 2)
    text = suite.text("what-if", "latest", "--top-k", "2,3", "--criterion", "polite")
    assert "no retriever call\nJudges: 0 calls · " in text
    assert "top_k 2 · polite: recovered ranked, fickle, ranked too" in text


def test_a_comparison_pairs_the_verdicts_of_a_judge_and_leaves_missing_ones_out(suite: Suite) -> None:
    suite.run()
    suite.edit('if "unclear" in question', 'if "sound" in question')
    suite.edit('"ranked" in question or "shy"', '"shy"')
    suite.edit('"mute" in question', '"mute" in question or "ranked too" in question')
    suite.run()
    found = suite.record("compare", "latest", "latest~1", codes=(0, 3))["comparison"]
    flips = next(each for each in found["flips"] if each["criterion"] == "polite")
    # unclear had no verdict in the baseline, sound has none now: neither is fixed or fails newly.
    assert (flips["fixed"], flips["new_failures"]) == (["ranked", "fickle"], [])
    metric = next(each for each in found["metrics"] if each["criterion"] == "polite")
    assert (metric["paired"], metric["missing"]) == (6, 2)
    rows = {(row["slice"], row["value"]): row["metrics"][1] for row in found["slice_rows"]}
    assert (rows["metadata.kind", "quiet"]["paired"], rows["metadata.kind", "quiet"]["missing"]) == (1, 2)


def worse(suite: Suite) -> None:
    """Change what a pull request would: retrieval loses kb-1 for one question, generation another one."""
    suite.edit('if "missed" in question', 'if "missed" in question or "sound" in question')
    suite.edit('if "mute" in question', 'if "mute" in question or "steady" in question')
    suite.edit('"shy" in question and known', '"shy" in question and known or "quick" in question')


def with_more_cases(suite: Suite) -> None:
    lines = (suite.folder / "cases.jsonl").read_text().splitlines()
    more = [json.loads(lines[0]) | {"id": name, "input": {"question": name}} for name in ("steady", "quick")]
    (suite.folder / "cases.jsonl").write_text(
        "".join(f"{line}\n" for line in [*lines, *map(json.dumps, more)])
    )


def test_a_stage_swap_asks_the_judge_about_what_comes_of_each_factor(suite: Suite) -> None:
    with_more_cases(suite)
    base = suite.folder.parent / "base"
    suite.run()
    shutil.copytree(suite.folder, base, ignore=shutil.ignore_patterns(".oloproof", "__pycache__"))
    worse(suite)
    suite.run()
    before = suite.models.asked()
    swap = (
        "compare",
        "latest",
        "latest~1",
        "--swap",
        "--criterion",
        "polite",
        "--base-config",
        str(base / "oloproof.yaml"),
    )
    found = suite.record(*swap, codes=(0, 3))
    (swaps,) = found["swaps"]
    cases = {case["case_id"]: case for case in swaps["cases"]}
    assert {name: case["verdict"] for name, case in cases.items()} == {
        "sound": "IMPLICATED",
        "steady": "IMPLICATED",
    }
    implicated = {
        name: [each["factor"] for each in case["swaps"] if each["outcome"] == "passed"]
        for name, case in cases.items()
    }
    assert implicated == {"sound": ["retrieval"], "steady": ["generation"]}
    assert found["judges"]["calls"] == suite.models.asked() - before
    assert found["judges"]["calls"] + found["judges"]["avoided"] > 0
    text = suite.text(*swap, codes=(0, 3))
    assert "\nJudges: 0 calls · " in text
    assert "judges" not in suite.record("compare", "latest", "latest~1", codes=(0, 3))


def test_a_pull_request_looks_into_what_a_judge_found_and_counts_what_that_took(suite: Suite) -> None:
    with_more_cases(suite)
    rules = [{"id": "none-new", "metric": "polite", "kind": "new_failures", "max": 0}]
    (suite.folder / "compare.yaml").write_text(json.dumps({"version": 1, "rules": rules}))
    suite.commit_base()
    worse(suite)
    suite.edit('if "unclear" in question or ', "if ")  # no verdict in the base, one in the head
    suite.edit('"ranked" in question or "shy"', '"ranked" in question or "sound" in question or "shy"')
    suite.edit(
        'or "sound" in question:\n            names = ["kb-2", "kb-3"]',
        ':\n            names = ["kb-2", "kb-3"]',
    )
    _, report, comment = suite.preview()
    (failures,) = report["failures"]
    assert failures["criterion"] == "polite"
    labels = {case["case_id"]: case["label"] for case in failures["new_failures"]}
    # quick has no verdict in the head, unclear had none in the base.
    assert labels == {"sound": "RANKED_OUT", "steady": "GENERATION_FAILURE"}
    implicated = {
        case["case_id"]: [each["factor"] for each in case["swaps"] if each["outcome"] == "passed"]
        for case in failures["swap"]["cases"]
    }
    assert implicated == {"sound": ["retrieval"], "steady": ["generation"]}
    (experiment,) = failures["experiments"]
    assert (experiment["setting"], experiment["recovered"]) == ("top-k 2", ["sound"])
    metrics = [
        next(m for m in side["metrics"] if m["criterion"] == "polite")
        for side in (report["base"], report["head"])
    ]
    assert [metric["missing_reasons"] for metric in metrics] == [{"judge_unusable": 1}] * 2
    assert (report["judges"]["calls"], report["judges"]["unpriced"]) == (suite.models.asked(), 0)
    assert f"judges: {suite.models.asked()} calls, " in comment
    assert "quick" not in [case["case_id"] for case in failures["new_failures"]]
