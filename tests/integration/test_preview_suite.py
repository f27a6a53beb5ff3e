"""Pull requests that change their own test: whose policy decides, and what a reviewer is shown of it."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from test_preview import Checkout, make_worse, support

from oloproof_ci.base_files import BaseFiles
from oloproof_ci.git import Repository
from oloproof_ci.worktrees import worktree

__all__ = ["support"]  # a fixture


def loosened(report: Any) -> set[tuple[str, str, str, str]]:
    return {(each["file"], each["what"], each["before"], each["after"]) for each in report["loosened"]}


def decided(report: Any) -> dict[str, tuple[str, str]]:
    return {each["rule"]: (each["state"], each["reason"]) for each in report["gate"]["decisions"]}


def test_a_pull_request_cannot_loosen_the_gate_that_it_has_to_pass(support: Checkout) -> None:
    support.branch("loose")
    make_worse(support)
    support.edit("compare.yaml", "max: 0", "max: 9")
    support.edit("compare.yaml", "margin: 0.05", "margin: 0.5")
    support.edit("compare.yaml", "margin: 0.02", "margin: 0.01")
    support.edit("compare.yaml", "block_on: [FAIL, INSUFFICIENT_EVIDENCE, MANUAL_REVIEW]", "block_on: [FAIL]")
    (support.root / "release.yaml").unlink()
    support.commit()
    done = support.preview()
    assert done.returncode == 1, done.stderr
    report = support.report()
    assert decided(report)["no-new-failures"] == ("FAIL", "new_failures_above_limit")
    assert decided(report)["retrieval-floor"][0] == "INSUFFICIENT_EVIDENCE"
    assert {(file["path"], file["version"]) for file in report["policies"]} == {
        ("release.yaml", "base"),
        ("compare.yaml", "base"),
    }
    states = "FAIL, INSUFFICIENT_EVIDENCE, MANUAL_REVIEW"
    assert loosened(report) == {
        ("compare.yaml", "rule no-new-failures, max", "0", "9"),
        ("compare.yaml", "rule answers-not-worse, margin", "0.05", "0.5"),
        ("compare.yaml", "block_on", states, "FAIL"),
        ("release.yaml", "rule citations-observed-valid", "citations_valid: at most 0 failures", "removed"),
        ("release.yaml", "rule retrieval-floor", "hit_rate_at_2: at least 60.0%", "removed"),
    }
    assert "### Looser than on `main`" in done.stdout
    assert "**This asks less than `main` in 5 places**" in done.stdout
    row = "| `compare.yaml` | `rule no-new-failures, max` | `0` | `9` |"
    assert row in [" ".join(line.split()) for line in done.stdout.splitlines()]

    own = support.preview("--policy-from", "head")
    assert own.returncode == 0, own.stderr
    assert {file["version"] for file in support.report()["policies"]} == {"head"}
    assert len(support.report()["loosened"]) == 5


def test_a_deleted_case_an_edited_answer_and_a_renamed_evaluator_are_shown_and_reviewed(
    support: Checkout,
) -> None:
    support.edit("compare.yaml", "version: 1", "version: 1\non_suite_change: review")
    support.commit("Ask a person when the suite changes")
    subprocess.run(
        [sys.executable, "-m", "oloproof", "run"], cwd=support.root, check=True, capture_output=True
    )
    support.branch("own-test")
    lines = (support.root / "data" / "support.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if '"seat_count"' not in line]
    assert len(kept) == 12
    kept[0] = kept[0].replace('"14 days"', '"14 weeks"')
    added = {"id": "added", "input": {"question": "How long?"}, "expected": {"answer": "21 days"}}
    text = "".join(kept) + json.dumps(added) + "\n"
    (support.root / "data" / "support.jsonl").write_text(text, encoding="utf-8")
    for file in ("oloproof.yaml", "compare.yaml"):
        path = support.root / file
        path.write_text(path.read_text().replace("answer_correct", "right"), encoding="utf-8")
    support.commit()
    done = support.preview()
    assert done.returncode == 4, done.stderr
    report = support.report()
    suite = report["suite"]
    assert (suite["added"], suite["removed"], suite["problem"]) == (["added"], ["seat_count"], "")
    (edited,) = suite["edited"]
    first = json.loads(kept[0])
    assert edited["case_id"] == first["id"]
    assert (edited["places"], edited["before"], edited["after"]) == (
        ["expected.answer"],
        "14 days",
        "14 weeks",
    )
    assert suite["evaluators"] == [["right", "renamed", ["answer_correct"]]]
    assert loosened(report) == {("data/support.jsonl", "case seat_count", "present", "removed")}
    # The base's rules go on to be decided, on the evaluator's new name.
    assert decided(report)["no-new-failures"][0] == "PASS"
    assert decided(report)["on_suite_change"] == ("MANUAL_REVIEW", "policy_requires_review")
    assert "**A person has to look at this**" in done.stdout
    assert f"`{first['id']}`" in done.stdout
    assert "14 weeks" in done.stdout
    assert "1 case removed: `seat_count`" in done.stdout
    assert "**1 removed case failed when last measured**: `seat_count`" in done.stdout
    assert "- `right` was called `answer_correct`" in done.stdout
    assert report["comparison"]["paired_cases"] == 13


def test_a_rule_of_the_base_on_an_evaluator_that_is_gone_blocks(support: Checkout) -> None:
    support.branch("no-evaluator")
    support.edit("oloproof.yaml", "  - {type: citation_validity}\n", "")
    for file, rule in (("release.yaml", "citations-observed-valid"), ("compare.yaml", "citations-not-worse")):
        path = support.root / file
        kept = [line for line in path.read_text().splitlines(keepends=True) if rule not in line]
        path.write_text("".join(kept), encoding="utf-8")
    support.commit()
    done = support.preview()
    assert done.returncode == 3, done.stderr
    report = support.report()
    assert decided(report)["citations-observed-valid"] == ("INSUFFICIENT_EVIDENCE", "no_observations")
    assert decided(report)["citations-not-worse"] == ("INSUFFICIENT_EVIDENCE", "no_observations")
    assert ("oloproof.yaml", "evaluator citations_valid", "present", "removed") in loosened(report)


def test_a_policy_that_the_base_does_not_have_is_the_heads_and_that_is_said(support: Checkout) -> None:
    text = (support.root / "compare.yaml").read_text(encoding="utf-8")
    (support.root / "compare.yaml").unlink()
    support.commit("No rules on pairs yet")
    support.branch("rules")
    (support.root / "compare.yaml").write_text(text, encoding="utf-8")
    support.commit()
    support.preview()
    report = support.report()
    assert report["policies"] == [
        {"path": "release.yaml", "version": "base"},
        {"path": "compare.yaml", "version": "head"},
    ]
    (warning,) = report["warnings"]
    assert warning["text"] == "main has no compare.yaml, so this pull request's own decides."
    assert report["loosened"] == []
    assert decided(report)["no-new-failures"][0] == "PASS"


def test_a_suite_that_moved_is_held_to_the_policies_that_it_had(support: Checkout) -> None:
    support.branch("move")
    (support.root / "rag").mkdir()
    for name in ("app.py", "oloproof.yaml", "release.yaml", "compare.yaml", "data"):
        (support.root / name).rename(support.root / "rag" / name)
    make_worse(support, "rag/app.py")
    support.edit("rag/compare.yaml", "max: 0", "max: 9")
    support.commit()
    done = support.preview()
    assert done.returncode == 1, done.stderr
    report = json.loads((support.root / "rag/.oloproof/preview/report.json").read_text(encoding="utf-8"))
    assert report["comparison"]["paired_cases"] == 13
    assert decided(report)["no-new-failures"] == ("FAIL", "new_failures_above_limit")
    assert [file["version"] for file in report["policies"]] == ["base", "base"]
    assert loosened(report) == {("rag/compare.yaml", "rule no-new-failures, max", "0", "9")}


def test_a_policy_of_the_base_that_cannot_be_read_is_no_gate(support: Checkout) -> None:
    support.edit("compare.yaml", "kind: new_failures", "kind: new_failure")
    support.commit("A slip")
    support.branch("mend")
    support.edit("compare.yaml", "kind: new_failure", "kind: new_failures")
    support.commit()
    support.preview()
    report = support.report()
    (warning,) = report["warnings"]
    base = report["base"]["sha"][:7]
    assert warning["code"] == "base_policy_unreadable"
    assert warning["text"].startswith(f"this pull request's own compare.yaml decides: {base}:compare.yaml:")
    assert decided(report)["no-new-failures"][0] == "PASS"


def test_a_policy_of_the_base_that_cannot_be_read_does_not_go_without_a_word(support: Checkout) -> None:
    support.edit("compare.yaml", "kind: new_failures", "kind: new_failure")
    support.commit("A slip")
    support.branch("away")
    (support.root / "compare.yaml").unlink()
    support.commit()
    done = support.preview()
    (warning,) = support.report()["warnings"]
    base = support.report()["base"]["sha"][:7]
    text = f"this pull request removes compare.yaml, so nothing decides in its place: {base}:compare.yaml:"
    assert warning["code"] == "base_policy_unreadable"
    assert warning["text"].startswith(text)
    assert "this pull request removes compare.yaml" in done.stdout


def test_a_wrong_policy_of_the_head_is_refused_though_the_bases_decides(support: Checkout) -> None:
    support.branch("slip")
    support.edit("compare.yaml", "kind: new_failures", "kind: new_failure")
    done = support.preview()
    assert done.returncode == 2
    assert "compare.yaml:" in done.stderr


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("words.txt", "day hour"),
        ("checks.py", "def short(*, input, expected, output, context):\n    return True\n"),
    ],
    ids=["the data it reads", "its code"],
)
def test_a_custom_evaluator_that_changed_is_named_and_judges_both_sides(
    support: Checkout, file: str, text: str
) -> None:
    own = "  - {type: python, object: checks:short, criterion: short}\n"
    support.edit("oloproof.yaml", "evaluators:\n", f"evaluators:\n{own}")
    (support.root / "words.txt").write_text("day", encoding="utf-8")
    (support.root / "checks.py").write_text(
        "from pathlib import Path\n\n\ndef short(*, input, expected, output, context):\n"
        "    words = Path(__file__).with_name('words.txt').read_text().split()\n"
        "    return any(word in output['answer'] for word in words)\n",
        encoding="utf-8",
    )
    support.commit("An evaluator of our own")
    support.branch("other-evaluator")
    (support.root / file).write_text(text, encoding="utf-8")
    support.commit()
    done = support.preview()
    report = support.report()
    expected = ["short", "data", ["words.txt"]] if file == "words.txt" else ["short", "code", []]
    assert report["suite"]["evaluators"] == [expected]
    assert "Both sides are judged by the evaluators as they are here:" in done.stdout
    assert report["comparison"]["metrics"][0]["criterion"] == "short"
    assert any(each["what"] == "evaluator short" for each in report["loosened"])


def test_the_bases_files_are_those_of_its_commit_whatever_became_of_its_checkout(support: Checkout) -> None:
    (support.root / "big.bin").write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    sha = support.commit("The base")
    repository = Repository(support.root)
    with worktree(repository, sha) as tree:
        files = BaseFiles(repository, sha, tree, nullcontext)
        kept = (tree / "compare.yaml").read_bytes()
        (tree / "compare.yaml").write_bytes(b"something else")
        (tree / "data" / "support.jsonl").unlink()
        (tree / "made.txt").write_bytes(b"by a command")
        (tree / "big.bin").write_bytes(b"what git keeps elsewhere")
        assert files.content(tree / "compare.yaml") == files.content(Path("compare.yaml")) == kept
        assert files.content(tree / "data" / ".." / "data" / "support.jsonl") is not None
        assert files.content(Path("made.txt")) == b"by a command"
        assert files.content(Path("big.bin")) == b"what git keeps elsewhere"
        assert files.content(Path("nowhere.txt")) is None
        assert files.content(Path("/nowhere/at/all")) is None
