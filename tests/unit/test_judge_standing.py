"""When a judge may decide: its agreement with people against the bar of a policy."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_rules import FAILED, OPEN, PASSED, interval, make_run, minimum, policy

from oloproof.decisions.deciding import decide_run
from oloproof.decisions.records import Decision, JudgeStanding
from oloproof.decisions.standing import standing_of
from oloproof.judges.checks import JudgeCheck
from oloproof.report.standing_text import lacks_text, standing_text
from oloproof.settings.policy import JudgeBar, Policy
from oloproof.statistics.agreement import Agreement

BAR = JudgeBar()


def check(agreed: int, wrong: int, missing: int = 0, unasked: int = 0) -> JudgeCheck:
    return JudgeCheck("judged", Agreement(agreed, wrong, 0, 0, missing), unasked)


def judged(known: JudgeCheck | None, *policies: Policy) -> list[Decision]:
    """Rules on a run of 50 answers, all of which a judge passed."""
    run, rows = make_run(*[PASSED] * 49, FAILED)
    judge = replace(run.evaluators[0], validated=False)
    checks = {} if known is None else {judge.criterion: known}
    return list(decide_run(replace(run, evaluators=(judge,)), policies, lambda: rows, checks).decisions)


@pytest.mark.parametrize(
    ("known", "missing_labels", "met"),
    [
        (None, 30, False),
        (check(0, 0), 30, False),
        (check(29, 0), 1, False),  # too few, though they agree
        (check(30, 0), 0, True),
        (check(28, 2), 4, False),  # the lower end is 77.9%
        (check(33, 2), 0, True),
        (check(30, 0, missing=2), 2, False),  # no verdict counts against it
        (check(20, 0, unasked=10), 0, False),  # the labels are there, the judge's verdicts are not
        (check(15, 15), 89, False),
        (check(0, 2_000_000), None, False),
    ],
)
def test_the_lower_end_of_the_agreement_must_reach_the_bar_on_enough_labels(
    known: JudgeCheck | None, missing_labels: int | None, met: bool
) -> None:
    found = standing_of(known or JudgeCheck("judged"), BAR, 0.95)
    assert (found.missing_labels, found.met) == (missing_labels, met)
    (decision,) = judged(known, policy(minimum(0.5), judges=BAR.model_dump()))
    assert (decision.reason == "evaluator_not_validated") is not met
    assert decision.judge == found


@given(st.integers(0, 120), st.integers(0, 60), st.integers(0, 20), st.floats(0.5, 0.95), st.integers(1, 80))
def test_the_missing_labels_are_just_enough_when_the_judge_agrees_with_all(
    agreed: int, wrong: int, missing: int, minimum_agreement: float, minimum_labels: int
) -> None:
    bar = JudgeBar(minimum_agreement=minimum_agreement, minimum_labels=minimum_labels)
    more = standing_of(check(agreed, wrong, missing), bar, 0.95).missing_labels
    assert more is not None
    assert standing_of(check(agreed + more, wrong, missing), bar, 0.95).met
    if more:
        assert not standing_of(check(agreed + more - 1, wrong, missing), bar, 0.95).met


def test_each_policy_has_its_own_bar_and_confidence() -> None:
    strict = policy(minimum(0.5), judges={"minimum_agreement": 0.9, "minimum_labels": 30})
    sure = policy(
        minimum(0.5), judges={"minimum_agreement": 0.85, "minimum_labels": 30}, confidence_level=0.999
    )
    plain = policy(minimum(0.5), judges={"minimum_agreement": 0.85, "minimum_labels": 30})
    none = policy(minimum(0.5))
    found = judged(check(30, 0), strict, sure, plain, none)
    assert [decision.reason == "evaluator_not_validated" for decision in found] == [True, True, False, True]
    assert [decision.judge.missing_labels for decision in found if decision.judge] == [6, 17, 0, None]


def test_a_judge_that_decides_nothing_changes_nothing_for_the_family_of_its_rule() -> None:
    """Its p-value, however small, takes no place among those that are corrected."""
    run, rows = make_run(*[PASSED] * 10, *[FAILED] * 10)
    judge = replace(run.evaluators[0], criterion="judged", validated=False)
    both = replace(run, evaluators=(run.evaluators[0], judge), metrics=(*run.metrics,) * 2)
    both = replace(both, metrics=(run.metrics[0], replace(run.metrics[0], criterion="judged")))
    rules = (
        minimum(0.75, family="f").model_copy(update={"id": "own"}),
        minimum(0.99, family="f").model_copy(update={"id": "judge", "metric": "judged"}),
    )
    asked = policy(*rules, families=["f"])
    own, other = decide_run(both, [asked], lambda: rows).decisions
    assert (other.state, other.reason, other.adjusted_p) == (OPEN, "evaluator_not_validated", 1.0)
    alone = decide_run(both, [policy(minimum(0.75))], lambda: rows).decisions[0]
    assert alone.interval == own.interval
    assert own.adjusted_p is not None
    assert own.adjusted_p > 0.05 > own.adjusted_p / 2


@pytest.mark.parametrize(
    ("standing", "expected"),
    [
        (
            JudgeStanding(0, 0, None, interval(0.0, 1.0), 30, 0.8, 30),
            "never compared with people; the policy asks for at least 80.0% on at least 30: at least 30 more labels "
            "are missing",
        ),
        (
            JudgeStanding(30, 0, 1.0, interval(0.8842, 1.0), 30, 0.8, 0),
            "agrees with people on 100.0% [88.4%, 100.0%] of 30 labelled answers; the policy asks for at least 80.0% "
            "on at least 30: met",
        ),
        (
            JudgeStanding(1, 0, 1.0, interval(0.025, 1.0)),
            "agrees with people on 100.0% [2.5%, 100.0%] of 1 labelled answer; the policy has no `judges` that it "
            "could meet, so it decides nothing",
        ),
        (
            JudgeStanding(2, 0, None, interval(0.0, 1.0), 30, 0.8, 1),
            "agrees with people on nothing [0.0%, 100.0%] of 2 labelled answers; the policy asks for at least 80.0% on "
            "at least 30: at least 1 more label is missing",
        ),
    ],
)
def test_how_a_judge_stands_is_a_sentence(standing: JudgeStanding, expected: str) -> None:
    assert standing_text(standing) == expected


def test_a_bar_out_of_reach_is_called_that() -> None:
    assert lacks_text(JudgeStanding(9, 0, 0.0, interval(0.0, 0.1), 30, 0.8, None)).endswith(
        "no number of labels would be enough"
    )
