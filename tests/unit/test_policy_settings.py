"""Policy files: which rules can be written, what they say of themselves, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from oloproof.errors import ConfigurationError
from oloproof.settings.policy import Policy, check_metrics, load_policy

Load = Callable[[str], Policy]

SEED = """\
version: 1
confidence_level: 0.95
block_on: [FAIL, INSUFFICIENT_EVIDENCE, MANUAL_REVIEW]
rules:
  - {id: answers-not-worse, metric: answer_correct, kind: non_inferiority, margin: 0.05}
  - {id: citations-not-worse, metric: citations_valid, kind: non_inferiority, margin: 0.02}
"""


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Load p.yaml in the current directory."""
    monkeypatch.chdir(tmp_path)

    def load_text(text: str) -> Policy:
        path = Path("p.yaml")
        path.write_text(text, "utf-8")
        return load_policy(path)

    return load_text


def problems_of(load: Load, text: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load(text)
    return list(caught.value.problems)


def rule(fields: str) -> str:
    return f"version: 1\nrules:\n  - {{id: r, metric: m, {fields}}}\n"


def test_the_policy_of_the_seed_is_read(load: Load) -> None:
    policy = load(SEED)
    assert policy.path == Path("p.yaml")
    assert [each.id for each in policy.config.rules] == ["answers-not-worse", "citations-not-worse"]
    assert [each.asks() for each in policy.config.rules] == [
        "non-inferiority, margin 5.0 points",
        "non-inferiority, margin 2.0 points",
    ]


def test_what_is_left_out_has_the_strict_defaults(load: Load) -> None:
    config = load(rule("kind: min, min: 0.9")).config
    assert config.confidence_level == 0.95
    assert config.block_on == ("FAIL", "INSUFFICIENT_EVIDENCE", "MANUAL_REVIEW")
    assert config.warn_on == ()


@pytest.mark.parametrize(
    ("fields", "reads", "asks"),
    [
        ("kind: min, min: 0.9", "run", "at least 90.0%"),
        ("kind: min, min: 1", "run", "at least 100.0%"),
        ("kind: min, min: 0", "run", "at least 0.0%"),
        ("kind: min, min: 0.9999", "run", "at least 99.99%"),
        ("kind: min, min: 1.0e-7", "run", "at least 0.00001%"),
        ("kind: observed_count, max_failures: 0", "run", "at most 0 failures"),
        ("kind: observed_count, max_failures: 1", "run", "at most 1 failure"),
        ("kind: non_inferiority, margin: 0.05", "pair", "non-inferiority, margin 5.0 points"),
        ("kind: non_inferiority, margin: 0.0025", "pair", "non-inferiority, margin 0.25 points"),
        ("kind: non_inferiority, margin: 0.29", "pair", "non-inferiority, margin 29.0 points"),
        ("kind: new_failures, max: 0", "pair", "at most 0 new failures"),
        ("kind: new_failures, max: 1", "pair", "at most 1 new failure"),
    ],
)
def test_a_rule_says_what_it_reads_and_asks(load: Load, fields: str, reads: str, asks: str) -> None:
    (only,) = load(rule(fields)).config.rules
    assert (only.reads, only.asks()) == (reads, asks)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ("kind: min, min: 90", "min: must be at most 1, found 90; write 90% as 0.9"),
        ("kind: min, min: -0.1", "min: must be at least 0, found -0.1"),
        ("kind: min, min: .nan", "min: expected a finite number, found the number .nan"),
        ("kind: min", "min: missing; this key is required"),
        ("kind: observed_count, max_failures: -1", "max_failures: must be at least 0, found -1"),
        (
            "kind: observed_count, max_failures: 0.5",
            "max_failures: expected a whole number, found the number 0.5",
        ),
        (
            "kind: observed_count, max_failure: 1, max_failures: 1",
            "max_failure: unknown key; did you mean max_failures?",
        ),
        ("kind: non_inferiority, margin: 0", "margin: must be above 0, found 0"),
        ("kind: non_inferiority, margin: 5", "margin: must be at most 1, found 5; write 5% as 0.05"),
        ("kind: new_failures, max: true", "max: expected a whole number, found the truth value true"),
        (
            "kind: non-inferiority, margin: 0.1",
            'kind: unknown kind "non-inferiority"; did you mean non_inferiority?',
        ),
        ("margin: 0.1", "kind: missing; this key is required, one of min, "),
    ],
)
def test_a_rule_that_cannot_be_is_refused_with_its_line(load: Load, fields: str, problem: str) -> None:
    (found,) = problems_of(load, rule(fields))
    assert found.startswith(f"p.yaml:3: rules[0].{problem}")


def test_id_and_metric_are_required_and_not_blank(load: Load) -> None:
    assert problems_of(load, 'version: 1\nrules:\n  - {id: " ", kind: min, min: 1}\n') == [
        "p.yaml:3: rules[0].id: must not be empty",
        "p.yaml:3: rules[0].metric: missing; this key is required",
    ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("confidence_level: 95", "confidence_level: must be below 1, found 95; write 95% as 0.95"),
        ("confidence_level: 0.5", "confidence_level: must be above 0.5, found 0.5"),
        ("block_on: [fail]", 'block_on[0]: unknown value "fail"; did you mean FAIL?'),
        (
            "block_on: [PASS]",
            'block_on[0]: unknown value "PASS"; known are FAIL, INSUFFICIENT_EVIDENCE, MANUAL_REVIEW',
        ),
        ("block_on: FAIL", 'block_on: expected a list, found the text "FAIL"; write [FAIL]'),
        ("blok_on: []", "blok_on: unknown key; did you mean block_on?"),
    ],
)
def test_what_decides_the_gate_is_checked(load: Load, line: str, problem: str) -> None:
    assert problems_of(load, rule("kind: min, min: 1") + line + "\n") == [f"p.yaml:4: {problem}"]


@pytest.mark.parametrize("version", ["2", "0", "true", '"1"', "1.0", ""])
def test_only_version_1_is_read(load: Load, version: str) -> None:
    (problem,) = problems_of(load, f"version: {version}\nrules: [{{id: r, metric: m, kind: min, min: 1}}]\n")
    assert problem.startswith("p.yaml:1: version: expected ")


def test_a_policy_without_rules_is_refused(load: Load) -> None:
    assert problems_of(load, "version: 1\nrules: []\n") == [
        "p.yaml:2: rules: needs at least 1 entry, found none"
    ]
    assert problems_of(load, "version: 1\n") == ["p.yaml:1: rules: missing; this key is required"]


def test_two_rules_of_one_id_name_both_lines(load: Load) -> None:
    text = rule("kind: min, min: 1") + "  - metric: m\n    id: r\n    kind: new_failures\n    max: 0\n"
    assert problems_of(load, text) == ["p.yaml:5: rules[1].id: r is the id of the rule on line 3 already"]


def test_a_state_cannot_warn_and_block(load: Load) -> None:
    text = rule("kind: min, min: 1") + "block_on: [FAIL]\nwarn_on: [FAIL]\n"
    assert problems_of(load, text) == [
        "p.yaml:5: warn_on[0]: FAIL cannot warn and block; it stands in block_on on line 4"
    ]


def test_a_state_that_warns_must_leave_the_default_block_on(load: Load) -> None:
    (problem,) = problems_of(load, rule("kind: min, min: 1") + "warn_on: [INSUFFICIENT_EVIDENCE]\n")
    assert problem.endswith("it stands in the default block_on; write a block_on without it")


# ------------------------------------------------------------------------------ metrics that exist or not

KNOWN = ["answer_correct", "ndcg_at_6"]
PASS_FAIL = ["answer_correct"]


def metric_problems(policy: Policy) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        check_metrics(policy, KNOWN, PASS_FAIL)
    return list(caught.value.problems)


def test_rules_on_metrics_that_are_produced_pass(load: Load) -> None:
    text = "version: 1\nrules:\n"
    text += "  - {id: a, metric: answer_correct, kind: new_failures, max: 0}\n"
    text += "  - {id: b, metric: ndcg_at_6, kind: min, min: 0.5}\n"
    check_metrics(load(text), KNOWN, PASS_FAIL)


def test_a_metric_nobody_produces_gets_the_nearest_name(load: Load) -> None:
    policy = load("version: 1\nrules:\n  - id: a\n    metric: answers_correct\n    kind: min\n    min: 1\n")
    (problem,) = metric_problems(policy)
    assert problem.startswith("p.yaml:4: rules[0].metric: no evaluator yields the metric answers_correct; ")
    assert problem.endswith("did you mean answer_correct?")


@pytest.mark.parametrize("fields", ["kind: observed_count, max_failures: 0", "kind: new_failures, max: 0"])
def test_rules_that_count_failures_need_a_pass_fail_criterion(load: Load, fields: str) -> None:
    (problem,) = metric_problems(load(f"version: 1\nrules: [{{id: a, metric: ndcg_at_6, {fields}}}]\n"))
    assert "counts failures, and ndcg_at_6 is a score; pass/fail criteria are answer_correct" in problem
