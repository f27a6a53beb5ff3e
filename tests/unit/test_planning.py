"""What would settle an open rule, and what a number of cases can decide at all."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oloproof.decisions.claims import claims_of
from oloproof.decisions.evidence import Differences, Evidence, ExactDifferences, Rate, Scores
from oloproof.decisions.grounds import Grounds
from oloproof.decisions.outlook import outlook_of
from oloproof.decisions.prospects import Prospect, prospect_of, prospects_of
from oloproof.decisions.records import Outlook, RuleState
from oloproof.report.outlook_text import about, outlook_text
from oloproof.run_records import EvaluatorRecord
from oloproof.settings.policy import Policy, PolicyConfig
from oloproof.settings.rules import (
    AnyRule,
    EquivalenceRule,
    MaxRule,
    MinRule,
    NewFailuresRule,
    NonInferiorityRule,
    ObservedCountRule,
    SuperiorityRule,
)
from oloproof.settings.yamlfile import SourceLines
from oloproof.statistics.binomial import clopper_pearson

PASS, FAIL = RuleState.PASS, RuleState.FAIL
NAMES: dict[str, str] = {"id": "it", "metric": "m"}


def minimum(bar: float, **more: Any) -> MinRule:
    return MinRule(**NAMES, kind="min", min=bar, **more)


def non_inferiority(margin: float, **more: Any) -> NonInferiorityRule:
    return NonInferiorityRule(**NAMES, kind="non_inferiority", margin=margin, **more)


def equivalence(margin: float) -> EquivalenceRule:
    return EquivalenceRule(**NAMES, kind="equivalence", margin=margin)


SUPERIORITY = SuperiorityRule(**NAMES, kind="superiority")
NEW_FAILURES = NewFailuresRule(**NAMES, kind="new_failures", max=0, min_support=20)


def outlook(rule: AnyRule, evidence: Evidence, reason: str = "interval_overlaps", **more: Any) -> Outlook:
    return outlook_of(rule, Grounds(evidence), 0.95, reason, **more)


def pairs(worse: int, better: int, total: int) -> Differences:
    return Differences(np.repeat([-1.0, 1.0, 0.0], [worse, better, total - worse - better]))


# ------------------------------------------------------------------------------------------- open rules


@pytest.mark.parametrize(
    ("rule", "evidence", "more"),
    [
        (minimum(0.95), Rate(13, 13), 72 - 13),
        (non_inferiority(0.05), pairs(0, 0, 13), 107 - 13),
        (non_inferiority(0.02), pairs(0, 0, 13), 271 - 13),
        (non_inferiority(0.05), ExactDifferences(0, 0, 13), 73 - 13),
        (non_inferiority(0.02), ExactDifferences(0, 0, 13), 217 - 13),
        (equivalence(0.05), ExactDifferences(0, 0, 13), 73 - 13),
    ],
)
def test_as_many_as_the_landmarks_say_settle_a_rule_if_nothing_goes_wrong(
    rule: AnyRule, evidence: Evidence, more: int
) -> None:
    assert outlook(rule, evidence) == Outlook(PASS, more, 1.0)


@pytest.mark.parametrize(
    ("rule", "evidence", "settles"),
    [
        (minimum(0.6), Rate(9, 13), PASS),
        (minimum(0.6), Rate(9, 12, 1), PASS),
        (minimum(0.8), Rate(9, 13), FAIL),
        (MaxRule(**NAMES, kind="max", max=0.4), Rate(3, 13), PASS),
        (minimum(0.6), Scores([1.0] * 10 + [0.63, 0.63, 0.0]), PASS),
        (non_inferiority(0.05), pairs(1, 1, 13), PASS),
        (non_inferiority(0.05), pairs(3, 1, 13), FAIL),
        (non_inferiority(0.05, direction="max"), pairs(3, 1, 13), PASS),
        (SUPERIORITY, pairs(1, 3, 13), PASS),
        (SUPERIORITY, ExactDifferences(1, 3, 13), FAIL),
        (equivalence(0.3), pairs(2, 1, 13), PASS),
    ],
)
def test_the_number_is_the_first_at_which_the_same_proportions_decide(
    rule: AnyRule, evidence: Evidence, settles: RuleState
) -> None:
    """At the number the interval decides about every other time, since it only just does."""
    found = outlook(rule, evidence)
    assert found.settles is settles
    assert found.more is not None
    assert found.more > 0
    assert found.chance is not None
    assert 0.3 < found.chance < 0.8
    assert outlook(rule, evidence) == found  # the draws have a fixed seed


def test_the_chance_is_that_of_drawing_what_settles_it() -> None:
    found = outlook(minimum(0.6), Rate(9, 13))
    assert found.more is not None
    assert found.chance is not None
    total, rate = 13 + found.more, 9 / 13
    exact = 0.0
    for passed in range(found.more + 1):
        interval = clopper_pearson(9 + passed, total)
        if interval.lower >= 0.6 or interval.upper < 0.6:
            exact += math.comb(found.more, passed) * rate**passed * (1 - rate) ** (found.more - passed)
    assert found.chance == pytest.approx(exact, abs=3 * 0.5 / math.sqrt(200))


@pytest.mark.parametrize(
    ("rule", "evidence", "reason", "obstacle"),
    [
        (minimum(0.5), Rate(5, 10), "interval_overlaps_threshold", "estimate_near_bound"),
        (minimum(1.0), Rate(13, 13), "interval_overlaps_threshold", "estimate_near_bound"),
        (SUPERIORITY, pairs(2, 2, 40), "interval_overlaps_zero", "estimate_near_bound"),
        (minimum(0.7), Rate(9, 12, 1), "interval_overlaps_threshold", "too_many_missing"),
        (NEW_FAILURES, pairs(0, 0, 40), "missing_could_change_outcome", "too_many_missing"),
        (NEW_FAILURES, pairs(1, 0, 40), "unstable_could_change_outcome", "unstable_cases"),
        (minimum(0.5), Rate(0, 0, 3), "no_observations", "nothing_observed"),
        (minimum(0.5), Rate(5, 10), "evaluator_not_validated", "evaluator_not_validated"),
    ],
)
def test_where_no_number_helps_that_is_said(
    rule: AnyRule, evidence: Evidence, reason: str, obstacle: str
) -> None:
    assert outlook(rule, evidence, reason) == Outlook(obstacle=obstacle)


def test_support_is_part_of_the_number() -> None:
    assert outlook(NEW_FAILURES, pairs(0, 0, 13), "insufficient_support") == Outlook(PASS, 7)
    supported = outlook(minimum(0.5, min_support=100), Rate(39, 40), "insufficient_support")
    assert (supported.settles, supported.more) == (PASS, 60)


def test_one_of_several_questions_takes_more_to_fail() -> None:
    alone = outlook(minimum(0.8), Rate(9, 13))
    among = outlook(minimum(0.8), Rate(9, 13), questions=10)
    assert alone.settles is among.settles is FAIL
    assert among.more > alone.more  # type: ignore[operator]


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (Outlook(PASS, 94, 1.0), "about 94 more cases like these would settle it as PASS"),
        (
            Outlook(PASS, 94, 0.505),
            "about 94 more cases like these would settle it as PASS (50% of the time)",
        ),
        (Outlook(PASS, 1, 0.999), "1 more case like these would settle it as PASS (95% of the time)"),
        (
            Outlook(FAIL, 13707, 0.01),
            "about 14,000 more cases like these would settle it as FAIL (5% of the time)",
        ),
        (Outlook(obstacle="estimate_near_bound"), "no number of cases like these would settle it"),
        (Outlook(obstacle="nothing_observed"), ""),
        (None, ""),
    ],
)
def test_an_outlook_is_told_no_finer_than_it_is_known(found: Outlook | None, text: str) -> None:
    assert outlook_text(found) == text


def test_a_number_about_right_has_two_digits_and_is_rounded_up() -> None:
    assert [about(n) for n in (1, 99, 100, 101, 995, 13_001)] == ["1", "99", "100", "110", "1,000", "14,000"]


# ------------------------------------------------------------------------------------- before anything ran


def prospect(rule: AnyRule, cases: int, pass_fail: bool = True, **settings: Any) -> Prospect:
    config = PolicyConfig(version=1, rules=(rule,), **settings)
    return prospect_of(rule, config, pass_fail, cases)


@pytest.mark.parametrize("cases", [1, 5, 13, 60, 200])
@pytest.mark.parametrize("bar", [0.3, 0.6, 0.95])
def test_how_many_failures_a_rule_bears_is_what_the_intervals_say(cases: int, bar: float) -> None:
    intervals = [clopper_pearson(cases - failed, cases) for failed in range(cases + 1)]
    passing = [failed for failed, interval in enumerate(intervals) if interval.lower >= bar]
    failing = [failed for failed, interval in enumerate(intervals) if interval.upper < bar]
    found = prospect(minimum(bar), cases)
    assert found.bears == (max(passing) if passing else None)
    assert found.fails_from == (min(failing) if failing else None)
    assert found.can_pass is bool(passing)
    assert found.reach == intervals[0].lower
    turned = prospect(MaxRule(**NAMES, kind="max", max=round(1 - bar, 2)), cases)
    assert (turned.bears, turned.fails_from, turned.needed) == (found.bears, found.fails_from, found.needed)


@pytest.mark.parametrize(
    ("rule", "needed", "needed_exact"),
    [
        (minimum(0.95), 72, None),
        (minimum(0.6), 8, None),
        (minimum(1.0), None, None),
        (non_inferiority(0.05), 107, 73),
        (non_inferiority(0.02), 271, 217),
        (non_inferiority(0.05, direction="max"), 107, 73),
        (non_inferiority(0.05, difference_method="exact"), 73, None),
        (equivalence(0.05), 107, 73),
    ],
)
def test_how_many_cases_a_rule_needs_at_best(
    rule: AnyRule, needed: int | None, needed_exact: int | None
) -> None:
    found = prospect(rule, 13)
    assert (found.needed, found.needed_exact) == (needed, needed_exact)
    if needed is not None:
        assert prospect(rule, needed).can_pass
        assert not prospect(rule, needed - 1).can_pass


def test_thirteen_pairs_reach_no_margin_that_matters() -> None:
    found = prospect(non_inferiority(0.05), 13)
    assert not found.can_pass
    assert found.reach == pytest.approx(-0.335023, abs=1e-6)
    assert (found.counted, found.fails_from) == ("worse_pairs", 9)


def test_superiority_is_told_by_the_pairs_that_must_become_better() -> None:
    found = prospect(SUPERIORITY, 13)
    assert (found.counted, found.bears, found.fails_from) == ("better_pairs", 8, 8)
    assert found.needed == 8
    assert prospect(SUPERIORITY, 7).bears is None


def test_a_score_is_at_best_when_every_one_is() -> None:
    found = prospect(minimum(0.8), 13, pass_fail=False)
    assert (found.counted, found.bears, found.needed_exact) == ("worst_scores", None, None)
    assert Scores([1.0] * (found.needed or 0)).interval(0.95).lower >= 0.8
    assert Scores([1.0] * ((found.needed or 0) - 1)).interval(0.95).lower < 0.8


def test_rules_that_count_are_decided_by_any_number() -> None:
    for rule in (NEW_FAILURES, ObservedCountRule(**NAMES, kind="observed_count", max_failures=0)):
        found = prospect(rule.model_copy(update={"min_support": None}), 1)
        assert (found.can_pass, found.counted) == (True, None)
    assert not prospect(NEW_FAILURES, 13).can_pass  # for want of support
    reviewed = NEW_FAILURES.model_copy(update={"requires_manual_review": True})
    assert not prospect(reviewed, 99).can_pass


@pytest.mark.parametrize("pass_fail", [True, False])
def test_a_million_cases_are_planned_for_like_any_number(pass_fail: bool) -> None:
    for rule in (minimum(0.95), MaxRule(**NAMES, kind="max", max=0.05), non_inferiority(0.01), SUPERIORITY):
        found = prospect(rule, 1_000_000, pass_fail)
        assert found.can_pass
        assert found.bears is not None
        assert found.fails_from is not None


def test_close_to_certainty_the_exact_method_plans_with_its_closed_form() -> None:
    found = prospect(equivalence(0.9), 13, confidence_level=0.9999, difference_method="exact")
    assert found.can_pass
    assert ExactDifferences(0, 0, found.needed or 0).interval(0.9999).upper < 0.9
    assert ExactDifferences(0, 0, (found.needed or 0) - 1).interval(0.9999).upper >= 0.9


def test_what_the_enumeration_settles_is_not_sought_beyond_it() -> None:
    """A margin of 2.6 points is settled by 141 clean pairs, not by 151, and again by 167."""
    asked = non_inferiority(0.026, difference_method="exact")
    needed = prospect(asked, 13).needed or 0
    assert needed < 150
    assert not prospect(asked, 151).can_pass
    assert outlook(asked, ExactDifferences(0, 0, 13)).more == needed - 13


def test_no_number_of_cases_validates_a_judge() -> None:
    config = PolicyConfig(version=1, rules=(minimum(0.5),))
    asked = [Policy(Path("p.yaml"), config, SourceLines("p.yaml", {}))]
    records = [
        EvaluatorRecord("m", "pass_fail", "answer", {}, validated=validated) for validated in (True, False)
    ]
    assert [prospects_of(asked, [record], 50)[0].can_pass for record in records] == [True, False]


def some_evidence(drawing: np.random.RandomState) -> list[Evidence]:
    size = int(drawing.choice([3, 13, 60, 200]))
    better, worse, same = (int(each) for each in drawing.multinomial(size, drawing.dirichlet([1, 1, 4])))
    absent = int(drawing.choice([0, 0, 2]))
    return [
        Rate(better + same, size, absent),
        Scores(drawing.choice([0.0, 0.5, 1.0], size), absent),
        pairs(worse, better, size),
        ExactDifferences(better, worse, size, absent),
    ]


@pytest.mark.parametrize("seed", range(12))
def test_what_is_planned_by_p_values_is_what_is_decided_by_intervals(seed: int) -> None:
    for evidence in some_evidence(np.random.RandomState(seed)):
        run_rules = [minimum(0.6), MaxRule(**NAMES, kind="max", max=0.8)]
        pair_rules = [
            non_inferiority(0.15),
            non_inferiority(0.15, direction="max"),
            SUPERIORITY,
            equivalence(0.4),
        ]
        for rule in run_rules if type(evidence) in (Rate, Scores) else pair_rules:
            claims, interval = claims_of(rule), evidence.interval(0.9)
            where = (type(evidence).__name__, evidence.observed, rule.kind)
            assert claims.pass_at(0.1, evidence) is all(c.holds(interval) for c in claims.passing), where
            assert claims.fail_at(0.1, evidence) is any(c.holds(interval) for c in claims.failing), where
