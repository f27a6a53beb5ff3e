"""Policy files: which rules can be written, what they say of themselves, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from oloproof.errors import ConfigurationError
from oloproof.settings.policy import Policy, SuiteNames, check_names, load_policy
from oloproof.settings.rules import DifferenceRule

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
        ("kind: max, max: 0.05", "run", "at most 5.0%"),
        (
            "kind: non_inferiority, margin: 0.05, direction: max",
            "pair",
            "non-inferiority, margin 5.0 points, lower is better",
        ),
        ("kind: superiority", "pair", "superiority"),
        ("kind: superiority, direction: max", "pair", "superiority, lower is better"),
        ("kind: equivalence, margin: 0.1", "pair", "equivalence, margin 10.0 points"),
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
        ("kind: max, max: 5", "max: must be at most 1, found 5; write 5% as 0.05"),
        ("kind: equivalence", "margin: missing; this key is required"),
        ("kind: superiority, margin: 0.1", "margin: unknown key; "),
        (
            "kind: superiority, direction: up",
            'direction: unknown value "up"; known are max, min',
        ),
        (
            "kind: superiority, difference_method: exakt",
            'difference_method: unknown value "exakt"; did you mean exact?',
        ),
        ("kind: superiority, difference_method: ", "difference_method: expected a value, found nothing"),
        ("kind: min, min: 1, min_support: 0", "min_support: must be at least 1, found 0"),
        (
            "kind: min, min: 1, max_missing_fraction: 10",
            "max_missing_fraction: must be at most 1, found 10; write 10% as 0.1",
        ),
        (
            "kind: min, min: 1, requires_manual_review: maybe",
            "requires_manual_review: expected true or false",
        ),
        (
            "kind: min, min: 1, scope: metadata.topic=billing",
            "scope: expected all or slice/NAME=VALUE, such as slice/metadata.topic=billing",
        ),
        ("kind: min, min: 1, scope: slice/metadata.topic", "scope: expected all or slice/NAME=VALUE"),
        (
            "kind: min, min: 1, scope: slice/a=b",
            "scope: a rule on a slice must name its family; declared are none yet: add `families: [NAME]`",
        ),
        (
            "kind: min, min: 1, scope: slice/a=b, family: f",
            "family: f is not declared; add `families: [f]` to the policy",
        ),
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
        ("on_partial_run: ignore", 'on_partial_run: unknown value "ignore"; known are block, warn'),
        ("on_suite_change: block", 'on_suite_change: unknown value "block"; known are allow, review'),
        ("families: [topics, topics]", "families[1]: topics stands here twice"),
        ("max_missing_fraction: -1", "max_missing_fraction: must be at least 0, found -1"),
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


def test_a_rule_that_needs_a_person_needs_a_gate_that_asks_one(load: Load) -> None:
    text = rule("kind: min, min: 1, requires_manual_review: true")
    assert load(text).config.rules[0].requires_manual_review
    for lists in ("block_on: [FAIL]", "block_on: [FAIL]\nwarn_on: [MANUAL_REVIEW]"):
        assert problems_of(load, f"{text}{lists}\n") == [
            "p.yaml:3: rules[0].requires_manual_review: needs MANUAL_REVIEW in block_on; without it nobody would be "
            "asked"
        ]


def test_a_review_of_suite_changes_needs_one_too(load: Load) -> None:
    text = rule("kind: min, min: 1") + "on_suite_change: review\n"
    assert load(text).config.on_suite_change == "review"
    (problem,) = problems_of(load, f"{text}block_on: [FAIL]\n")
    assert problem.endswith(
        "on_suite_change: needs MANUAL_REVIEW in block_on; without it nobody would be asked"
    )


FAMILY = """\
version: 1
families: [topics, answers]
rules:
  - {id: a, metric: answer_correct, kind: min, min: 0.5, scope: slice/metadata.topic=a=b, family: topics}
"""


def test_a_rule_on_a_slice_is_read_with_its_family(load: Load) -> None:
    (found,) = load(FAMILY).config.rules
    assert (found.slice, found.family) == (("metadata.topic", "a=b"), "topics")


def test_a_family_has_to_be_declared_and_holds_questions_of_one_sort(load: Load) -> None:
    mixed = "  - {id: b, metric: answer_correct, kind: superiority, family: topics}\n"
    assert problems_of(load, FAMILY + mixed) == [
        "p.yaml:5: rules[1].family: topics cannot hold rules on one run and rules on a pair, as on line 4; declare two "
        "families"
    ]
    (near,) = problems_of(load, FAMILY + mixed.replace("topics", "topic"))
    assert near.endswith("topic is not declared; did you mean topics?")


def test_a_rule_may_set_what_the_policy_sets_for_all(load: Load) -> None:
    text = "version: 1\ndifference_method: exact\nmax_missing_fraction: 0.1\nrules:\n"
    text += "  - {id: a, metric: m, kind: superiority}\n"
    text += "  - {id: b, metric: m, kind: superiority, difference_method: bounded, max_missing_fraction: 0}\n"
    config = load(text).config
    rules = [each for each in config.rules if isinstance(each, DifferenceRule)]
    assert [config.method_of(each) for each in rules] == ["exact", "bounded"]
    assert [config.missing_limit_of(each) for each in rules] == [0.1, 0]


# ------------------------------------------------------------------------------ metrics that exist or not

NAMES = SuiteNames(
    criteria=["answer_correct", "ndcg_at_6"],
    pass_fail=["answer_correct"],
    slices=["metadata.topic", "relevant_position"],
)


def metric_problems(policy: Policy) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        check_names(policy, NAMES)
    return list(caught.value.problems)


def test_rules_on_metrics_that_are_produced_pass(load: Load) -> None:
    text = "version: 1\nrules:\n"
    text += "  - {id: a, metric: answer_correct, kind: new_failures, max: 0}\n"
    text += "  - {id: b, metric: ndcg_at_6, kind: min, min: 0.5}\n"
    check_names(load(text), NAMES)


def test_a_metric_nobody_produces_gets_the_nearest_name(load: Load) -> None:
    policy = load("version: 1\nrules:\n  - id: a\n    metric: answers_correct\n    kind: min\n    min: 1\n")
    (problem,) = metric_problems(policy)
    assert problem.startswith("p.yaml:4: rules[0].metric: no evaluator yields the metric answers_correct; ")
    assert problem.endswith("did you mean answer_correct?")


@pytest.mark.parametrize("fields", ["kind: observed_count, max_failures: 0", "kind: new_failures, max: 0"])
def test_rules_that_count_failures_need_a_pass_fail_criterion(load: Load, fields: str) -> None:
    (problem,) = metric_problems(load(f"version: 1\nrules: [{{id: a, metric: ndcg_at_6, {fields}}}]\n"))
    assert "counts failures, and ndcg_at_6 is a score; pass/fail criteria are answer_correct" in problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "difference_method: exact\nrules: [{id: a, metric: ndcg_at_6, kind: superiority}]",
            "p.yaml:3: rules[0].metric: exact is for pass/fail criteria, and ndcg_at_6 is a score (set on line 2 for "
            "all rules); write difference_method: bounded for this rule",
        ),
        (
            "rules:\n  - id: a\n    metric: ndcg_at_6\n    kind: superiority\n    difference_method: exact",
            "p.yaml:6: rules[0].difference_method: exact is for pass/fail criteria, and ndcg_at_6 is a score; write "
            "difference_method: bounded for this rule",
        ),
    ],
)
def test_an_exact_interval_of_a_score_is_refused(load: Load, text: str, problem: str) -> None:
    assert metric_problems(load(f"version: 1\n{text}\n")) == [problem]


@pytest.mark.parametrize(
    ("scope", "problem"),
    [
        ("metadata.topics=a", "there is no slice metadata.topics; did you mean metadata.topic?"),
        ("relevant_position=topk", "relevant_position is never topk; did you mean top_k?"),
        ("context_truncated=true", "there is no slice context_truncated; slices are metadata.topic, "),
        ("metadata.topic=anything", None),
        ("relevant_position=not_retrieved", None),
    ],
)
def test_a_slice_that_the_suite_does_not_have_is_refused(load: Load, scope: str, problem: str | None) -> None:
    policy = load(FAMILY.replace("metadata.topic=a=b", scope))
    if problem is None:
        check_names(policy, NAMES)
    else:
        (found,) = metric_problems(policy)
        assert found.startswith(f"p.yaml:4: rules[0].scope: {problem}")
