"""What counts as looser: every way to ask less is told, and nothing that asks more."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from oloproof.decisions.evidence import Differences, Evidence, ExactDifferences, Rate
from oloproof.decisions.gate import also
from oloproof.decisions.records import Decision, Gate, GateState, RuleState
from oloproof.decisions.rules import Facts, decide
from oloproof.pairing import EvaluatorChange
from oloproof.run_records import EvaluatorRecord
from oloproof.settings.policy import Policy, checked_policy
from oloproof.settings.project import load_project
from oloproof.settings.rules import DifferenceRule
from oloproof.settings.yamlfile import parse_yaml
from oloproof_ci.adapting import adapt, review
from oloproof_ci.loosening import loosened_policies, loosened_suite
from oloproof_ci.report import EditedCase, SuiteChanges

HEADER = "version: 1\nfamilies: [topics, places]\nrules:\n"
FLOOR = "{id: floor, metric: hit, kind: min, min: 0.6}"
CLOSE = "{id: close, metric: correct, kind: non_inferiority, margin: 0.05}"
NEW = "{id: none-new, metric: correct, kind: new_failures, max: 0}"


def policy(*rules: str, file: str = "gate.yaml", **settings: Any) -> Policy:
    written = "".join(f"{key}: {value}\n" for key, value in settings.items())
    text = written + HEADER + "".join(f"  - {rule}\n" for rule in rules or (FLOOR, CLOSE, NEW))
    return checked_policy(Path(file), parse_yaml(text.encode(), file))


def told(base: Policy | list[Policy], head: Policy | list[Policy]) -> list[tuple[str, str, str]]:
    before = base if isinstance(base, list) else [base]
    after = head if isinstance(head, list) else [head]
    return [(each.what, each.before, each.after) for each in loosened_policies(before, after)]


def with_more(rule: str, more: str) -> str:
    return rule.replace("}", f", {more}}}")


@pytest.mark.parametrize(
    ("tight", "loose", "what", "before", "after"),
    [
        (FLOOR, FLOOR.replace("0.6", "0.5"), "rule floor, min", "0.6", "0.5"),
        (
            "{id: r, metric: wrong, kind: max, max: 0.1}",
            "{id: r, metric: wrong, kind: max, max: 0.2}",
            "rule r, max",
            "0.1",
            "0.2",
        ),
        (CLOSE, CLOSE.replace("0.05", "0.2"), "rule close, margin", "0.05", "0.2"),
        (NEW, NEW.replace("max: 0", "max: 3"), "rule none-new, max", "0", "3"),
        (
            "{id: r, metric: m, kind: observed_count, max_failures: 1}",
            "{id: r, metric: m, kind: observed_count, max_failures: 2}",
            "rule r, max_failures",
            "1",
            "2",
        ),
        (with_more(FLOOR, "min_support: 30"), FLOOR, "rule floor, min_support", "30", "not set"),
        (
            with_more(FLOOR, "max_missing_fraction: 0.1"),
            FLOOR,
            "rule floor, max_missing_fraction",
            "0.1",
            "0.5",
        ),
        (
            with_more(FLOOR, "requires_manual_review: true"),
            FLOOR,
            "rule floor, requires_manual_review",
            "true",
            "false",
        ),
    ],
)
def test_a_looser_bound_is_told_and_the_same_change_back_is_not(
    tight: str, loose: str, what: str, before: str, after: str
) -> None:
    assert told(policy(tight), policy(loose)) == [(what, before, after)]
    assert told(policy(loose), policy(tight)) == []
    assert told(policy(tight), policy(tight)) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (FLOOR, FLOOR.replace("hit", "other")),
        (FLOOR, FLOOR.replace("kind: min, min", "kind: max, max")),
        (CLOSE, with_more(CLOSE, "direction: max")),
        (CLOSE, with_more(CLOSE, "scope: slice/metadata.topic=billing, family: topics")),
        (
            with_more(CLOSE, "scope: slice/metadata.topic=billing, family: topics"),
            with_more(CLOSE, "scope: slice/metadata.topic=plans, family: topics"),
        ),
    ],
    ids=["metric", "kind", "direction", "to a slice", "to another slice"],
)
def test_a_rule_that_asks_another_question_is_told_both_ways(before: str, after: str) -> None:
    ((what, _, _),) = told(policy(before), policy(after))
    assert what in ("rule floor", "rule close")
    assert len(told(policy(after), policy(before))) == 1


def test_another_family_or_way_to_make_the_interval_is_told() -> None:
    scoped = with_more(CLOSE, "scope: slice/metadata.topic=billing, family: topics")
    moved = scoped.replace("family: topics", "family: places")
    assert told(policy(scoped), policy(moved)) == [("rule close, family", "topics", "places")]
    exact = with_more(CLOSE, "difference_method: exact")
    assert told(policy(CLOSE), policy(exact)) == [("rule close, difference_method", "bounded", "exact")]
    assert told(policy(exact), policy(CLOSE)) == [("rule close, difference_method", "exact", "bounded")]


def test_more_questions_in_a_family_make_each_fail_less_easily() -> None:
    one = with_more(CLOSE, "family: topics")
    two = with_more(
        FLOOR.replace("min: 0.6", "margin: 0.6").replace("kind: min", "kind: non_inferiority"),
        "family: topics",
    )
    assert told(policy(one), policy(one, two)) == [("family topics, rules", "1", "2")]
    assert told(policy(one, two), policy(one, two)) == []
    assert told(policy(CLOSE), policy(one)) == [("rule close, family", "not set", "topics")]
    assert told(policy(one), policy(CLOSE)) == []
    assert told(policy(one), policy(one, with_more(NEW, "family: topics"))) == []


def test_a_rule_that_is_gone_is_told_and_a_new_one_is_not() -> None:
    assert told(policy(FLOOR, CLOSE), policy(CLOSE, NEW)) == [
        ("rule floor", "hit: at least 60.0%", "removed")
    ]


def test_a_rule_under_another_id_or_in_another_file_is_still_there() -> None:
    renamed = policy(FLOOR.replace("id: floor", "id: retrieval"))
    assert told(policy(FLOOR), renamed) == []
    moved = [policy(NEW, file="a.yaml"), policy(FLOOR, file="b.yaml")]
    assert told([policy(FLOOR, file="a.yaml"), policy(NEW, file="b.yaml")], moved) == []


def test_a_rule_that_moved_to_a_file_with_less_confidence_is_looser() -> None:
    base = [policy(FLOOR, file="a.yaml")]
    head = [policy(NEW, file="a.yaml"), policy(FLOOR, file="b.yaml", confidence_level=0.8)]
    assert told(base, head) == [("confidence_level", "0.95", "0.8")]


@pytest.mark.parametrize(
    ("key", "tight", "loose"),
    [
        ("confidence_level", "0.99", "0.9"),
        ("max_missing_fraction", "0.1", "0.4"),
        ("on_partial_run", "block", "warn"),
        ("on_suite_change", "review", "allow"),
        ("block_on", "[FAIL, MANUAL_REVIEW]", "[FAIL]"),
    ],
)
def test_a_looser_setting_of_the_policy_is_told_once(key: str, tight: str, loose: str) -> None:
    before, after = policy(**{key: tight}), policy(**{key: loose})
    assert told(before, after) == [(key, tight.strip("[]"), loose.strip("[]"))]
    assert told(after, before) == []


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("{}", "{minimum_agreement: 0.7}", [("judges.minimum_agreement", "0.8", "0.7")]),
        ("{}", "{minimum_labels: 10}", [("judges.minimum_labels", "30", "10")]),
        ("{}", "{minimum_agreement: 0.9, minimum_labels: 50}", []),
        (None, "{}", [("judges", "not set", "agreement of 0.8 on 30 labels")]),
        ("{}", None, []),
    ],
)
def test_a_lower_bar_for_judges_is_told(
    before: str | None, after: str | None, expected: list[tuple[str, str, str]]
) -> None:
    found = [policy() if bar is None else policy(judges=bar) for bar in (before, after)]
    assert told(found[0], found[1]) == expected


def test_where_open_rules_do_not_block_a_higher_bar_for_judges_is_looser() -> None:
    """What a judge would have failed may then be undecided."""
    low, high = (policy(judges=f"{{minimum_labels: {count}}}", block_on="[FAIL]") for count in (10, 40))
    assert told(low, high) == [("judges.minimum_labels", "10", "40")]
    assert told(low, policy(block_on="[FAIL]")) == [("judges", "agreement of 0.8 on 10 labels", "not set")]


def test_where_open_rules_do_not_block_asking_for_more_certainty_is_looser() -> None:
    """What would have failed may then be undecided."""
    supported = with_more(FLOOR, "min_support: 30")
    assert told(policy(FLOOR, block_on="[FAIL]"), policy(supported, block_on="[FAIL]")) == [
        ("rule floor, min_support", "0", "30")
    ]
    sure = told(
        policy(confidence_level=0.9, block_on="[FAIL]"), policy(confidence_level=0.99, block_on="[FAIL]")
    )
    assert sure == [("confidence_level", "0.9", "0.99")]


def test_a_state_that_no_longer_even_warns_is_told() -> None:
    warns = {"block_on": "[FAIL]", "warn_on": "[INSUFFICIENT_EVIDENCE]"}
    assert told(policy(**warns), policy(block_on="[FAIL]")) == [("warn_on", "INSUFFICIENT_EVIDENCE", "none")]
    assert told(policy(block_on="[FAIL]"), policy(**warns)) == []
    moved = told(policy(block_on="[FAIL, INSUFFICIENT_EVIDENCE]"), policy(**warns))
    assert moved == [("block_on", "FAIL, INSUFFICIENT_EVIDENCE", "FAIL")]


def test_a_rule_on_a_renamed_evaluator_is_the_same_rule() -> None:
    changes = [EvaluatorChange("found", "renamed", ("hit",))]
    head = policy(FLOOR.replace("hit", "found"))
    assert loosened_policies([policy(FLOOR)], [head], changes) == []


# ------------------------------------------------------------------- what is not told is not looser

BOUNDS = {
    "min": ("min", [0.5, 0.6, 0.8]),
    "max": ("max", [0.3, 0.5, 0.6]),
    "observed_count": ("max_failures", [0, 2, 6]),
    "non_inferiority": ("margin", [0.05, 0.2, 0.5]),
    "superiority": (None, [0]),
    "equivalence": ("margin", [0.05, 0.2, 0.5]),
    "new_failures": ("max", [0, 1, 4]),
}


def drawn(drawing: random.Random, kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of a policy, and those of its one rule, of a kind."""
    bound, values = BOUNDS[kind]
    rule: dict[str, Any] = {"id": "r", "metric": "m", "kind": kind}
    if bound:
        rule[bound] = drawing.choice(values)
    options: dict[str, list[Any]] = {
        "min_support": [5, 30],
        "max_missing_fraction": [0.1, 0.3],
        "requires_manual_review": [True],
    }
    if kind in ("non_inferiority", "superiority"):
        options["direction"] = ["max"]
    for key, choices in options.items():
        if drawing.random() < 0.3:
            rule[key] = drawing.choice(choices)
    settings = {
        "confidence_level": drawing.choice([0.8, 0.95]),
        "max_missing_fraction": drawing.choice([0.2, 0.5]),
        "block_on": drawing.choice(
            [["FAIL", "MANUAL_REVIEW"], ["FAIL", "INSUFFICIENT_EVIDENCE", "MANUAL_REVIEW"]]
        ),
    }
    return settings, rule


def changed_policies(drawing: random.Random) -> tuple[Policy, Policy]:
    """Two policies of one rule that differ in a setting or two."""
    kind = drawing.choice(sorted(BOUNDS))
    before, other = drawn(drawing, kind), drawn(drawing, kind)
    keys = sorted({*before[0], *other[0], *before[1], *other[1]} - {"id", "metric", "kind"})
    changed = set(drawing.sample(keys, drawing.choice([1, 1, 2])))
    after = [
        {
            key: (new if key in changed else old)[key]
            for key in {**old, **new}
            if key in (new if key in changed else old)
        }
        for old, new in zip(before, other, strict=True)
    ]
    return written(*before), written(*after)


def written(settings: dict[str, Any], rule: dict[str, Any]) -> Policy:
    return policy(json.dumps(rule), **{key: json.dumps(value) for key, value in settings.items()})


def blocks(decided: Policy, evidence: tuple[int, int, int, int]) -> bool:
    """Whether a policy blocks on so many better, worse, equal and missing cases, or pairs."""
    (rule,) = decided.config.rules
    better, worse, same, missing = evidence
    found: Evidence
    if rule.reads == "run":
        found = Rate(better + same, better + same + worse, missing)
    elif isinstance(rule, DifferenceRule) and decided.config.method_of(rule) == "exact":
        found = ExactDifferences(better, worse, better + worse + same, missing)
    else:
        found = Differences([1.0] * better + [-1.0] * worse + [0.0] * same, missing)
    interval = found.interval(decided.config.confidence_level) if found.observed else None
    facts = Facts(
        found.observed,
        missing,
        found.estimate,
        interval,
        failures=worse,
        missing_limit=decided.config.missing_limit_of(rule),
    )
    decision = decide(rule, facts)
    return decision.always_blocks or decision.state in decided.config.block_on


def test_where_nothing_is_told_whatever_the_head_lets_through_the_base_does_too() -> None:
    drawing = random.Random(20260916)
    compared = 0
    for _ in range(2500):
        base, head = changed_policies(drawing)
        if loosened_policies([base], [head]):
            continue
        for _ in range(3):
            evidence = (*(drawing.randint(0, 30) for _ in range(3)), drawing.choice([0, 0, 0, 1, 4, 9]))
            assert blocks(head, evidence) or not blocks(base, evidence), (base.config, head.config, evidence)
            compared += 1
    assert compared > 3000


# ---------------------------------------------------------------------------------------------- suite

PROJECT = """version: 1
dataset: cases.jsonl
system: {rag: {object: "app:Rag"}}
evaluators: [{type: hit_rate, k: 2}]
identity: {%s}
"""


def suite_told(tmp_path: Path, changes: SuiteChanges, before: str, after: str) -> list[tuple[str, str, str]]:
    projects = []
    for name, identity in (("before", before), ("after", after)):
        (tmp_path / name).mkdir()
        path = tmp_path / name / "oloproof.yaml"
        path.write_text(PROJECT % identity)
        projects.append(load_project(path))
    return [(each.what, each.before, each.after) for each in loosened_suite(changes, *projects)]


def test_removed_cases_and_evaluators_that_judge_otherwise_are_told(tmp_path: Path) -> None:
    changes = SuiteChanges(
        added=("new",),
        removed=("hard",),
        edited=(EditedCase("e", ("input",), "a", "b", 1),),
        evaluators=(
            EvaluatorChange("a", "added"),
            EvaluatorChange("b", "removed"),
            EvaluatorChange("c", "settings", ("k",)),
            EvaluatorChange("d", "renamed", ("old",)),
        ),
    )
    assert suite_told(tmp_path, changes, "", "") == [
        ("case hard", "present", "removed"),
        ("evaluator b", "present", "removed"),
        ("evaluator c", "", "other settings (k)"),
    ]


@pytest.mark.parametrize(
    ("tight", "loose", "what"),
    [
        ("on_stale_index: error", "on_stale_index: rerun", "identity.on_stale_index"),
        ("ignore_files: [a]", "ignore_files: [a, b]", "identity.ignore_files"),
        ("env: [MODEL, KEY]", "env: [KEY]", "identity.env"),
    ],
)
def test_results_that_count_though_more_has_changed_are_told(
    tmp_path: Path, tight: str, loose: str, what: str
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "back").mkdir()
    assert [each[0] for each in suite_told(tmp_path / "there", SuiteChanges(), tight, loose)] == [what]
    assert suite_told(tmp_path / "back", SuiteChanges(), loose, tight) == []


# -------------------------------------------------------------------------- the base's rules on the head

CORRECT = EvaluatorRecord("correct", "pass_fail", "answer", {})
HIT = EvaluatorRecord("hit", "score", "retrieval", {})


def test_rules_follow_a_renamed_evaluator_and_those_that_lost_theirs_block() -> None:
    renamed = [EvaluatorChange("hit", "renamed", ("found",))]
    scoped = with_more(CLOSE, "scope: slice/metadata.topic=billing, family: topics").replace(
        "close", "scoped"
    )
    base = policy(FLOOR.replace("hit", "found"), NEW.replace("correct", "gone"), CLOSE, scoped)
    adapted = adapt([base], [CORRECT, HIT], [], renamed)
    (kept,) = adapted.policies
    assert [(rule.id, rule.metric) for rule in kept.config.rules] == [("floor", "hit"), ("close", "correct")]
    assert [decision.rule for _, decision in adapted.lost] == ["none-new", "scoped"]
    for _, decision in adapted.lost:
        assert decision.always_blocks
        assert (decision.state, decision.reason) == (RuleState.INSUFFICIENT_EVIDENCE, "no_observations")


def test_a_policy_that_lost_all_its_rules_still_blocks() -> None:
    adapted = adapt([policy(NEW, block_on="[FAIL]")], [], [], [])
    assert adapted.policies == ()
    gate = also(Gate(GateState.ALLOW, 0, (), "no_policy"), adapted.lost)
    assert (gate.state, gate.exit_code, gate.reason) == (GateState.BLOCK, 3, None)


@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        (SuiteChanges(added=("a",), evaluators=(EvaluatorChange("e", "added"),)), False),
        (SuiteChanges(removed=("a",)), True),
        (SuiteChanges(edited=(EditedCase("a", (), None, None, 0),)), True),
        (SuiteChanges(evaluators=(EvaluatorChange("e", "renamed", ("f",)),)), True),
        (SuiteChanges(problem="cannot be read"), True),
        (None, False),
    ],
    ids=["added", "removed", "edited", "evaluator", "unreadable", "no base"],
)
def test_a_person_is_asked_about_what_is_removed_or_edited_where_the_policy_wants_it(
    changes: SuiteChanges | None, asked: bool
) -> None:
    wants, allows = policy(on_suite_change="review"), policy()
    assert [each.state for _, each in review([allows, wants], changes)] == [RuleState.MANUAL_REVIEW] * asked
    assert review([allows], changes) == []


def test_a_person_is_asked_about_other_labels_too() -> None:
    ((_, asked),) = review([policy(on_suite_change="review")], SuiteChanges(), labels=2)
    assert (asked.state, (asked.counts or {})["labels"]) == (RuleState.MANUAL_REVIEW, 2)


@pytest.mark.parametrize(
    ("exit_code", "state", "together"),
    [
        (0, GateState.ALLOW, 4),
        (0, GateState.WARN, 4),
        (3, GateState.BLOCK, 4),
        (1, GateState.BLOCK, 1),
        (5, GateState.BLOCK, 5),
    ],
)
def test_a_failed_rule_is_more_telling_than_a_review_and_a_review_more_than_open_evidence(
    exit_code: int, state: GateState, together: int
) -> None:
    first = Decision("r", "m", "min", "", RuleState.PASS, "")
    (asked,) = review([policy(on_suite_change="review")], SuiteChanges(removed=("a",)))
    gate = also(Gate(state, exit_code, (first,)), [asked])
    assert (gate.state, gate.exit_code) == (GateState.BLOCK, together)
    assert [decision.rule for decision in gate.decisions] == ["r", "on_suite_change"]
