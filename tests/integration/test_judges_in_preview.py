"""A judge in a pull request: its labels come with the head, its bar from the base, and changes of both are shown."""

from __future__ import annotations

import json
import shutil
import subprocess

from judges import judging_model
from projects import command, environment
from test_preview import Checkout, support

__all__ = ["support"]  # a fixture

JUDGE = """\
  - type: rubric_judge
    criterion: to_the_point
    provider: openai_compatible
    base_url: {url}
    model: small
    rubric_text: Answers in one sentence.
    corrected: true
  - {{type: citation_validity}}
"""
RULE = """\
  - {id: short, metric: to_the_point, kind: min, min: 0.5}
judges: {minimum_agreement: 0.6, minimum_labels: 13}
"""


def oloproof(checkout: Checkout, *arguments: str) -> None:
    done = subprocess.run(
        command(*arguments), cwd=checkout.root, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 3), done.stderr


def label_everything(checkout: Checkout) -> None:
    oloproof(checkout, "run")
    oloproof(checkout, "labels", "export", "latest", "--criterion", "to_the_point", "--out", "sheet.jsonl")
    sheet = checkout.root / "sheet.jsonl"
    lines = [json.loads(line) for line in sheet.read_text().splitlines()]
    sheet.write_text("".join(json.dumps({**line, "verdict": "pass"}) + "\n" for line in lines))
    oloproof(checkout, "labels", "import", "sheet.jsonl", "--by", "Ann")
    sheet.unlink()


def test_new_labels_let_a_judge_decide_and_the_reviewer_sees_them(support: Checkout) -> None:
    with judging_model(lambda prompt: "pass") as model:
        support.edit("oloproof.yaml", "  - {type: citation_validity}\n", JUDGE.format(url=model.base_url))
        with (support.root / "release.yaml").open("a", encoding="utf-8") as policy:
            policy.write(RULE)
        support.commit("A judge that nobody has checked")
        support.branch("labels")
        label_everything(support)
        support.edit("release.yaml", "minimum_labels: 13", "minimum_labels: 5")
        support.commit()
        shutil.rmtree(support.root / ".oloproof")  # as in CI
        done = support.preview()
        report = support.report()
        (rule,) = [each for each in report["gate"]["decisions"] if each["rule"] == "short"]
        assert (rule["state"], rule["judge"]["labels"]) == ("PASS", 13), done.stderr
        assert rule["judge"]["minimum_labels"] == 13  # the base's
        told = [(each["file"], each["what"], each["before"], each["after"]) for each in report["loosened"]]
        assert ("release.yaml", "judges.minimum_labels", "13", "5") in told
        (rate,) = report["head"]["corrected"]
        assert (rate["raw"], rate["labels"], rate["missing"]) == (1.0, 13, 0)
        sentence = "`to_the_point` here corrected by the judge's errors on 13 answers that people labelled too: 100.0%"
        assert sentence in done.stdout
        labels = ("labels/to_the_point.jsonl", "labels of to_the_point", "0 labels", "13 added")
        assert labels in told

        support.git("checkout", "--quiet", "main")
        support.branch("other-rubric")
        support.git("checkout", "--quiet", "labels", "--", "labels")
        support.edit("oloproof.yaml", "Answers in one sentence.", "Answers in two words.")
        support.commit()
        done = support.preview()
        (rule,) = [each for each in support.report()["gate"]["decisions"] if each["rule"] == "short"]
        assert (rule["reason"], rule["judge"]["missing_labels"]) == ("evaluator_not_validated", 13)
        assert "at least 13 more labels are missing" in done.stdout
