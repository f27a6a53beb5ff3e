"""Every state of a rule and every reason for it, as the command line decides and prints them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from projects import MakeProject, Oloproof, case

#: A system whose answers are written in the case: the first word before the change, the second after it.
APP = """
from oloproof import Passage, Retrieval, rag_system

STATE = 0

@rag_system(name="told", version="1", depth=3, top_k=2, index_version="1")
class Rag:
    def retrieve(self, input, depth):
        return Retrieval(query=input, depth=depth, candidates=(Passage(doc_id="d1", score=1.0, text="x"),))

    def generate(self, input, context):
        word = input["words"].split()[STATE]
        if word == "error":
            raise RuntimeError("no answer")
        return {"answer": word}
"""
EVALUATORS = [
    {"type": "contains", "criterion": "correct", "field": "answer", "expected_field": "answer"},
    {"type": "hit_rate", "k": 1},
    {"type": "python", "object": "checks:graded", "criterion": "graded", "scale": "score"},
]
#: A score of the answer: 1 for blue, 0 for red, 0.5 for anything else.
CHECKS = """
def graded(*, input, expected, output, context):
    return {"blue": 1.0, "red": 0.0}.get(output["answer"], 0.5)
"""

Pair = Callable[..., Path]


@pytest.fixture(scope="module")
def pair(make_project: MakeProject, oloproof: Oloproof) -> Pair:
    """A project with two runs, the baseline first: `words` says how many cases answer what before and after; right is
    blue. Cases of different words are in different topics."""

    def make(words: dict[str, int], **more: Any) -> Path:
        cases = []
        for topic, count in words.items():
            for number in range(count):
                one = case(f"{topic} {number}", **more, metadata={"topic": topic.replace(" ", "-")})
                one["input"] = {"words": topic, "number": number}
                cases.append(one)
        folder = make_project(
            APP,
            cases=cases,
            evaluators=EVALUATORS,
            files={"checks.py": CHECKS},
            slices=["metadata.topic", "relevant_position"],
            execution={"workers": 1},
        )
        assert oloproof("run", cwd=folder).returncode == 0
        (folder / "app.py").write_text(APP.replace("STATE = 0", "STATE = 1"))
        assert oloproof("run", cwd=folder).returncode == 0
        return folder

    return make


@pytest.fixture(scope="module")
def projects(pair: Pair) -> dict[str, Path]:
    """Pairs of runs by what becomes of them."""
    return {
        "equal": pair({"blue blue": 40}),
        "broken": pair({"blue red": 30, "blue blue": 10}),
        "mixed": pair({"blue blue": 20, "blue red": 2, "red blue": 2}),
        "errors": pair({"blue blue": 8, "blue error": 12}),
    }


def written(folder: Path, rules: list[dict[str, Any]], **settings: Any) -> Path:
    """A policy file of rules that are about `correct` and have ids of their own."""
    numbered = [{"id": f"rule-{n}", "metric": "correct"} | rule for n, rule in enumerate(rules)]
    path = folder / "policy.yaml"
    path.write_text(yaml.safe_dump({"version": 1, "rules": numbered, **settings}))
    return path


def rule(text: str) -> dict[str, Any]:
    return dict(yaml.safe_load(f"{{{text}}}"))


#: A rule on one topic; a family of its own.
TOPIC = "family: f, scope: slice/metadata.topic="

#: project, rule, state, reason, exit code. A project's name is that of a pair of runs, candidate against baseline;
#: after `back` the two change places.
ROWS = [
    # one run
    ("equal", "kind: min, min: 0.8", "PASS", "lower_bound_meets_minimum", 0),
    ("equal", "kind: min, min: 0.95", "INSUFFICIENT_EVIDENCE", "interval_overlaps_threshold", 3),
    ("broken", "kind: min, min: 0.8", "FAIL", "upper_bound_below_minimum", 1),
    ("broken", "kind: max, max: 0.5", "PASS", "upper_bound_meets_maximum", 0),
    ("broken", "kind: max, max: 0.2", "INSUFFICIENT_EVIDENCE", "interval_overlaps_threshold", 3),
    ("equal", "kind: max, max: 0.5", "FAIL", "lower_bound_above_maximum", 1),
    ("equal", "kind: min, min: 0.8, metric: graded", "PASS", "lower_bound_meets_minimum", 0),
    ("broken", "kind: observed_count, max_failures: 30", "PASS", "observed_failures_within_limit", 0),
    ("broken", "kind: observed_count, max_failures: 29", "FAIL", "observed_failures_exceed_limit", 1),
    # two runs
    ("equal", "kind: non_inferiority, margin: 0.2", "PASS", "lower_bound_above_margin", 0),
    ("equal", "kind: non_inferiority, margin: 0.1", "INSUFFICIENT_EVIDENCE", "interval_overlaps_margin", 3),
    (
        "equal",
        "kind: non_inferiority, margin: 0.1, difference_method: exact",
        "PASS",
        "lower_bound_above_margin",
        0,
    ),
    ("broken", "kind: non_inferiority, margin: 0.2", "FAIL", "upper_bound_below_margin", 1),
    ("broken", "kind: non_inferiority, margin: 0.2, direction: max", "PASS", "upper_bound_below_margin", 0),
    ("broken back", "kind: non_inferiority, margin: 0.2, direction: max", "FAIL", "lower_bound_above_margin", 1),
    ("broken back", "kind: superiority", "PASS", "difference_above_zero", 0),
    ("broken", "kind: superiority", "FAIL", "difference_below_zero", 1),
    ("broken", "kind: superiority, direction: max", "PASS", "difference_below_zero", 0),
    ("broken back", "kind: superiority, direction: max", "FAIL", "difference_above_zero", 1),
    ("mixed", "kind: superiority", "INSUFFICIENT_EVIDENCE", "interval_overlaps_zero", 3),
    ("equal", "kind: equivalence, margin: 0.2", "PASS", "interval_within_margins", 0),
    ("mixed", "kind: equivalence, margin: 0.1", "INSUFFICIENT_EVIDENCE", "interval_overlaps_margins", 3),
    ("broken", "kind: equivalence, margin: 0.2", "FAIL", "interval_outside_margins", 1),
    ("broken back", "kind: equivalence, margin: 0.2", "FAIL", "interval_outside_margins", 1),
    ("broken", "kind: superiority, metric: graded", "FAIL", "difference_below_zero", 1),
    ("mixed", "kind: new_failures, max: 2", "PASS", "new_failures_within_limit", 0),
    ("mixed", "kind: new_failures, max: 1", "FAIL", "new_failures_above_limit", 1),
    # what comes before the rule
    ("equal", "kind: min, min: 0.5, min_support: 41", "INSUFFICIENT_EVIDENCE", "insufficient_support", 3),
    ("equal", "kind: superiority, min_support: 41", "INSUFFICIENT_EVIDENCE", "insufficient_support", 3),
    ("equal", "kind: min, min: 0.8, requires_manual_review: true", "MANUAL_REVIEW", "policy_requires_review", 4),
    ("mixed", "kind: superiority, requires_manual_review: true", "MANUAL_REVIEW", "policy_requires_review", 4),
    ("mixed", "kind: new_failures, max: 1, requires_manual_review: true", "FAIL", "new_failures_above_limit", 1),
    (
        "errors",
        "kind: observed_count, max_failures: 0, max_missing_fraction: 1",
        "INSUFFICIENT_EVIDENCE",
        "missing_could_change_outcome",
        3,
    ),
    (
        "errors",
        "kind: new_failures, max: 0, max_missing_fraction: 1",
        "INSUFFICIENT_EVIDENCE",
        "missing_could_change_outcome",
        3,
    ),
    ("errors", "kind: new_failures, max: 99", "INSUFFICIENT_EVIDENCE", "missingness_exceeds_policy", 3),
    ("errors", "kind: min, min: 0.01", "INSUFFICIENT_EVIDENCE", "missingness_exceeds_policy", 3),
    # on a slice
    ("broken", f"kind: min, min: 0.6, {TOPIC}blue-blue", "PASS", "lower_bound_meets_minimum", 0),
    ("broken", f"kind: max, max: 0.2, {TOPIC}blue-red", "PASS", "upper_bound_meets_maximum", 0),
    ("broken", f"kind: min, metric: graded, min: 0.5, {TOPIC}blue-blue", "PASS", "lower_bound_meets_minimum", 0),
    ("broken", f"kind: superiority, {TOPIC}blue-red", "FAIL", "difference_below_zero", 1),
    ("broken", f"kind: new_failures, max: 0, {TOPIC}blue-blue", "PASS", "new_failures_within_limit", 0),
    ("mixed", f"kind: new_failures, max: 0, {TOPIC}blue-red", "FAIL", "new_failures_above_limit", 1),
    ("broken", f"kind: min, min: 0.1, {TOPIC}nowhere", "INSUFFICIENT_EVIDENCE", "no_observations", 3),
    ("broken", "kind: min, min: 0.8, family: f, scope: slice/relevant_position=top_k", "FAIL",
     "upper_bound_below_minimum", 1),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "state", "reason", "code"), ROWS, ids=lambda value: str(value)[:60])
def test_a_rule_comes_to_its_state(
    projects: dict[str, Path], quick: Oloproof, name: str, text: str, state: str, reason: str, code: int
) -> None:
    project, _, back = name.partition(" ")
    folder = projects[project]
    policy = written(folder, [rule(text)], **({"families": ["f"]} if "family" in text else {}))
    runs = ("latest~1", "latest") if back else ("latest", "latest~1")
    finished = quick("compare", *runs, "--policy", policy, cwd=folder)
    assert finished.lines[-2].endswith(f"  {state}  {reason}")
    assert finished.lines[-1].startswith(f"Gate: {'ALLOW' if code == 0 else 'BLOCK'} (exit {code})")
    assert finished.returncode == code
    if (
        "kind: m" in text or "observed_count" in text
    ):  # a rule on one run is decided alike where there is only that
        alone = quick("gate", "latest", "--policy", policy, cwd=folder)
        assert alone.lines[-2:] == finished.lines[-2:]


# ---------------------------------------------------------------------------------- what no table row says


def test_a_system_that_is_the_same_passes_what_it_cannot_break(pair: Pair, quick: Oloproof) -> None:
    folder = pair({"blue blue": 4})
    (folder / "README.md").write_text("nothing that a result depends on\n")
    assert quick("run", cwd=folder).returncode == 0
    kinds = ["kind: non_inferiority, margin: 0.01", "kind: equivalence, margin: 0.01", "kind: superiority"]
    policy = written(folder, [rule(text) for text in kinds])
    finished = quick("compare", "latest", "latest~1", "--policy", policy, cwd=folder)
    assert [line.split()[-2:] for line in finished.lines[-4:-1]] == [
        ["PASS", "systems_identical"],
        ["PASS", "systems_identical"],
        ["FAIL", "systems_identical"],
    ]
    assert finished.returncode == 1


def test_an_exact_interval_stands_with_the_rule_that_reads_it(
    projects: dict[str, Path], quick: Oloproof
) -> None:
    folder = projects["equal"]
    policy = written(folder, [rule("kind: equivalence, margin: 0.1, difference_method: exact")])
    finished = quick("compare", "latest", "latest~1", "--policy", policy, cwd=folder)
    assert "correct: +0.0 points [-12.7, +12.7] · 40 paired · 0 missing · 0 excluded" in finished.lines
    asks = "equivalence, margin 10.0 points, exact [-8.9, +8.9]"
    assert finished.lines[-2] == f"  rule-0  correct  {asks}  PASS  interval_within_margins"


def test_a_metric_without_an_observation_blocks_whatever_the_policy_blocks_on(
    pair: Pair, quick: Oloproof
) -> None:
    folder = pair({"blue blue": 3}, expected={"answer": "blue"})  # no relevance labels, so no hit rate
    policy = written(folder, [rule("metric: hit_rate_at_1, kind: superiority")], block_on=[])
    finished = quick("compare", "latest", "latest~1", "--policy", policy, cwd=folder)
    assert finished.lines[-2].endswith("INSUFFICIENT_EVIDENCE  no_observations")
    assert finished.returncode == 3


def test_a_judge_that_was_never_validated_decides_nothing(pair: Pair, quick: Oloproof) -> None:
    folder = pair({"blue blue": 40})
    amend_newest_run(folder, lambda run: run["evaluators"][0].update(validated=False))
    policy = written(folder, [rule("kind: min, min: 0.1"), rule("kind: superiority")])
    finished = quick("compare", "latest", "latest~1", "--policy", policy, cwd=folder)
    assert [line.split()[-1] for line in finished.lines[-3:-1]] == ["evaluator_not_validated"] * 2
    assert finished.returncode == 3


def test_a_broken_slice_among_many_is_told_from_chance(projects: dict[str, Path], quick: Oloproof) -> None:
    """Two of two cases of a topic fail: asked alone, its rule fails; as one of two questions it is open."""
    folder = projects["mixed"]
    asked = rule(f"kind: min, min: 0.83, {TOPIC}blue-red")
    alone = written(folder, [asked], families=["f"])
    assert quick("gate", "latest", "--policy", alone, cwd=folder).returncode == 3
    asked = rule(f"kind: min, min: 0.86, {TOPIC}blue-red")
    alone = written(folder, [asked], families=["f"])
    assert quick("gate", "latest", "--policy", alone, cwd=folder).returncode == 1
    several = written(folder, [asked, rule(f"kind: min, min: 0.1, {TOPIC}blue-blue")], families=["f"])
    finished = quick("gate", "latest", "--policy", several, cwd=folder)
    assert finished.lines[-3].endswith("INSUFFICIENT_EVIDENCE  not_excluded_after_correction")
    assert finished.lines[-2].endswith("PASS  lower_bound_meets_minimum")  # by its own interval
    assert finished.returncode == 3


# ------------------------------------------------------------------------------------- missing and partial


def amend_newest_run(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the stored record of the newest run."""
    connection = sqlite3.connect(folder / ".oloproof" / "store.sqlite3")
    identity, record = connection.execute("SELECT id, record FROM run ORDER BY id DESC LIMIT 1").fetchone()
    run = json.loads(record)
    change(run)
    connection.execute("UPDATE run SET record = ? WHERE id = ?", (json.dumps(run), identity))
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("kind: new_failures, max: 0", "missingness_exceeds_policy"),
        ("kind: min, min: 0.1", "missingness_exceeds_policy"),
        # Retrievals are whole, and yet most cases gave no answer.
        ("kind: min, min: 0.1, metric: hit_rate_at_1", "lower_bound_meets_minimum"),
    ],
)
def test_a_policy_that_only_warns_lets_no_run_pass_in_which_most_cases_errored(
    projects: dict[str, Path], quick: Oloproof, text: str, reason: str
) -> None:
    settings = {"block_on": ["FAIL"], "warn_on": ["INSUFFICIENT_EVIDENCE"]}
    folder = projects["errors"]
    policy = written(folder, [rule(text)], **settings)
    finished = quick("compare", "latest", "latest~1", "--policy", policy, cwd=folder)
    assert finished.lines[-2].endswith(reason)
    assert finished.returncode == 3
    if "hit_rate" in text:
        told = "Gate: BLOCK (exit 3) · too many cases errored (12 of 20 cases gave no answer)"
        assert finished.lines[-1] == told
    lenient = written(folder, [rule(text)], max_missing_fraction=1, **settings)
    assert quick("compare", "latest", "latest~1", "--policy", lenient, cwd=folder).returncode == 0


def test_a_partial_run_may_only_warn_and_its_other_cases_are_missing(pair: Pair, quick: Oloproof) -> None:
    folder = pair({"blue blue": 40})
    amend_newest_run(folder, lambda run: run.update(finished=False, cases=50, metrics=[], slice_rows=[]))
    rules = [
        rule("kind: min, min: 0.6"),
        rule("kind: new_failures, max: 9"),
        rule("kind: non_inferiority, margin: 0.01"),
    ]
    strict = quick("compare", "latest", "latest~1", "--policy", written(folder, rules), cwd=folder)
    assert strict.returncode == 5
    assert "Gate: BLOCK (exit 5) · the run is not complete" in strict.lines[-1]
    lenient = written(folder, rules, on_partial_run="warn", block_on=["FAIL"])
    finished = quick("compare", "latest", "latest~1", "--policy", lenient, cwd=folder)
    assert [line.split()[-1] for line in finished.lines[-4:-1]] == [
        "lower_bound_meets_minimum",
        "missing_could_change_outcome",
        "interval_overlaps_margin",
    ]
    assert "Gate: WARN (exit 0) · the run is not complete" in finished.lines[-1]


# ------------------------------------------------------------------------------------- which policies apply


def test_one_file_may_hold_rules_on_a_run_and_on_a_pair(projects: dict[str, Path], quick: Oloproof) -> None:
    folder = projects["equal"]
    policy = written(folder, [rule("kind: new_failures, max: 0"), rule("kind: min, min: 0.8")])
    compared = quick("compare", "latest", "latest~1", "--policy", policy, cwd=folder)
    assert [line.split()[0] for line in compared.lines[-3:-1]] == ["rule-0", "rule-1"]
    gated = quick("gate", "latest", "--policy", policy, cwd=folder)
    assert [line.split()[0] for line in gated.lines[-2:-1]] == ["rule-1"]


def test_a_comparison_decides_both_policies_beside_the_configuration(
    projects: dict[str, Path], quick: Oloproof, tmp_path: Path
) -> None:
    folder = projects["equal"]
    for name, text in (("release", "kind: min, min: 0.8"), ("compare", "kind: new_failures, max: 0")):
        written(folder, [rule(text) | {"id": name}]).rename(folder / f"{name}.yaml")
    compared = quick("compare", "latest", "latest~1", cwd=folder)
    for name in ("release", "compare"):
        (folder / f"{name}.yaml").unlink()
    assert [line.split()[0] for line in compared.lines[-3:-1]] == ["release", "compare"]


def test_rules_of_one_id_in_two_policies_are_refused(projects: dict[str, Path], quick: Oloproof) -> None:
    folder = projects["equal"]
    written(folder, [rule("kind: min, min: 0.8")]).rename(folder / "one.yaml")
    two = written(folder, [rule("kind: max, max: 1"), rule("kind: new_failures, max: 0")])
    finished = quick(
        "compare", "latest", "latest~1", "--policy", "one.yaml", "--policy", "policy.yaml", cwd=folder
    )
    two.unlink()
    (folder / "one.yaml").unlink()
    assert finished.returncode == 2
    assert finished.stderr.splitlines() == [
        "oloproof: policy.yaml:2: rules[0].id: rule-0 is the id of the rule at one.yaml:2 already"
    ]


@pytest.mark.parametrize("command", [("gate", "latest"), ("compare", "latest", "latest~1")])
def test_without_a_policy_the_heading_says_that_nothing_gates(
    projects: dict[str, Path], quick: Oloproof, command: tuple[str, ...]
) -> None:
    finished = quick(*command, cwd=projects["equal"])
    assert finished.returncode == 0
    assert finished.lines[0].endswith(" · no policy: nothing gates")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "kind: min, min: 0.5, metric: corect",
            "policy.yaml:6: rules[0].metric: no evaluator yields the metric",
        ),
        ("kind: superiority, metric: graded, difference_method: exact", "exact is for pass/fail criteria"),
        ("kind: min, min: 0.5, family: f, scope: slice/metadata.tpic=a", "did you mean metadata.topic?"),
        ("kind: min, min: 5", "min: must be at most 1, found 5; write 5% as 0.05"),
    ],
)
def test_a_rule_that_fits_nothing_ends_with_2_and_its_line(
    projects: dict[str, Path], quick: Oloproof, text: str, problem: str
) -> None:
    folder = projects["equal"]
    policy = written(folder, [rule(text)], families=["f"])
    finished = quick("compare", "latest", "latest~1", "--policy", policy, cwd=folder)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert problem in finished.stderr
    assert "policy.yaml:" in finished.stderr


# ------------------------------------------------------------------------------------------------ planning


def test_a_plan_of_a_comparison_says_what_would_settle_each_rule(
    projects: dict[str, Path], quick: Oloproof
) -> None:
    folder = projects["equal"]
    texts = [
        "kind: non_inferiority, margin: 0.05",
        "kind: non_inferiority, margin: 0.05, difference_method: exact",
        "kind: superiority",
        "kind: new_failures, max: 0",
    ]
    policy = written(folder, [rule(text) for text in texts])
    comparison = quick("compare", "latest", "latest~1", "--json", "--policy", policy, cwd=folder).record["id"]
    plan = quick("plan", comparison, "--policy", policy, cwd=folder)
    assert plan.returncode == 0
    rows = [line.split("│") for line in plan.lines if "rule-" in line]
    assert [row[-2].strip() for row in rows] == [
        "about 67 more cases like these would settle it as PASS",
        "about 33 more cases like these would settle it as PASS",
        "no number of cases like these would settle it",
        "settled",
    ]
    record = quick("plan", comparison, "--json", "--policy", policy, cwd=folder).record
    assert record["id"] == comparison
    assert [each["outlook"] and each["outlook"]["more"] for each in record["rules"]] == [67, 33, None, None]


def test_a_plan_of_a_run_reads_its_rules_alone(projects: dict[str, Path], quick: Oloproof) -> None:
    folder = projects["equal"]
    policy = written(folder, [rule("kind: min, min: 0.95"), rule("kind: superiority")])
    plan = quick("plan", "latest", "--policy", policy, cwd=folder)
    (row,) = [line for line in plan.lines if "rule-" in line]
    assert "about 32 more cases like these would settle it as PASS" in row


def test_before_anything_ran_a_plan_says_what_the_suite_can_decide(
    make_project: MakeProject, quick: Oloproof
) -> None:
    folder = make_project(cases=[case(f"case {n}") for n in range(13)])
    rules = [
        rule("kind: min, min: 0.95"),
        rule("kind: non_inferiority, margin: 0.05"),
        rule("kind: new_failures, max: 0"),
    ]
    policy = written(folder, rules)
    plan = quick("plan", "--policy", policy, cwd=folder)
    assert plan.returncode == 0
    assert plan.lines[0] == "What 13 cases can decide: 1 of 3 rules can pass"
    cells = [[cell.strip() for cell in line.split("│")[4:6]] for line in plan.lines if "rule-" in line]
    assert cells == [
        ["cannot pass: at best, the interval reaches down to 75.2%; fails from 3 failures on", "72"],
        [
            "cannot pass: when no pair differs, the interval still reaches 33.6 points; fails from 9 worse pairs on",
            "107 (73 with difference_method: exact)",
        ],
        ["is decided by the cases seen, however few", "any"],
    ]
    enough = quick("plan", "--policy", policy, "--cases", 107, "--json", cwd=folder).record
    assert enough["cases"] == 107
    assert [each["bears"] for each in enough["rules"]] == [0, 0, None]
    assert not (folder / ".oloproof").exists()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "neither this nor compare.yaml is there; name a policy with --policy FILE"),
        (("--cases", "0", "--policy", "policy.yaml"), "expected a whole number of at least 1"),
        (
            ("--cases", "1000001", "--policy", "policy.yaml"),
            "looks at up to 1,000,000 cases, found 1,000,001",
        ),
        (("latest", "--cases", "5", "--policy", "policy.yaml"), "leave it out, or leave out the id"),
        (("latest~9", "--policy", "policy.yaml"), "there is no run latest~9"),
    ],
)
def test_a_plan_of_nothing_ends_with_2(
    projects: dict[str, Path], oloproof: Oloproof, arguments: tuple[str, ...], problem: str
) -> None:
    folder = projects["equal"]
    written(folder, [rule("kind: min, min: 0.5")])
    finished = oloproof("plan", *arguments, cwd=folder)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert problem in finished.stderr


def test_order_of_cases_and_number_of_workers_change_no_digit_of_a_decision(
    projects: dict[str, Path], quick: Oloproof, tmp_path: Path
) -> None:
    texts = [
        "kind: non_inferiority, margin: 0.05, difference_method: exact",
        "kind: non_inferiority, margin: 0.05, metric: graded",
        "kind: min, min: 0.6, metric: graded",
        f"kind: min, min: 0.86, {TOPIC}blue-red",
        f"kind: min, min: 0.7, {TOPIC}blue-blue",
    ]
    folder = projects["mixed"]
    policy = written(folder, [rule(text) for text in texts], families=["f"])
    first = quick("compare", "latest", "latest~1", "--json", "--policy", policy, cwd=folder).record["gate"]
    cases = folder / "cases.jsonl"
    before = cases.read_text(), (folder / "oloproof.yaml").read_text()
    cases.write_text("".join(sorted(before[0].splitlines(keepends=True), reverse=True)))
    settings = json.loads(before[1]) | {"execution": {"workers": 2}}
    settings["evaluators"].reverse()
    (folder / "oloproof.yaml").write_text(json.dumps(settings))
    runs = []
    for state in (0, 1):
        (folder / "app.py").write_text(APP.replace("STATE = 0", f"STATE = {state}"))
        runs.append(quick("run", "--json", cwd=folder).record["run"]["id"])
    again = quick("compare", runs[1], runs[0], "--json", "--policy", policy, cwd=folder).record["gate"]
    cases.write_text(before[0])
    (folder / "oloproof.yaml").write_text(before[1])
    assert again == first
    assert quick("plan", runs[1], "--policy", policy, cwd=folder).returncode == 0
