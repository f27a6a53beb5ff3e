"""Rules and gate: every state and reason code of every kind of rule, and the exit code they come to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oloproof.decisions.deciding import check_policies, decide_run, decisions_of
from oloproof.decisions.evidence import Rate
from oloproof.decisions.families import holm
from oloproof.decisions.gate import at_least_warn, gate_of, unfinished
from oloproof.decisions.grounds import Grounds
from oloproof.decisions.records import Decision, Gate, GateState, RuleState
from oloproof.decisions.rules import Facts, decide
from oloproof.errors import ConfigurationError
from oloproof.identity.fingerprint import Fingerprints
from oloproof.identity.system import System
from oloproof.records import FAILED, PASSED, Interval, Judgment, Metric, missing
from oloproof.report.decisions_text import decision_lines, gate_line
from oloproof.run_records import CacheCounts, CaseRow, EvaluatorRecord, Run, Tally
from oloproof.settings.policy import Policy, PolicyConfig
from oloproof.settings.rules import (
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

PASS, FAIL, OPEN = RuleState.PASS, RuleState.FAIL, RuleState.INSUFFICIENT_EVIDENCE
REVIEW = RuleState.MANUAL_REVIEW


def interval(lower: float, upper: float) -> Interval:
    return Interval(lower, upper, 0.95, "clopper_pearson")


def facts(lower: float = -0.1, upper: float = 0.1, **changes: Any) -> Facts:
    values: dict[str, Any] = {
        "observed": 13,
        "missing": 0,
        "estimate": 0.0,
        "interval": interval(lower, upper),
    }
    return Facts(**values | changes)


def rule(kind: type[Any], **settings: Any) -> Any:
    name = {MinRule: "min", MaxRule: "max", ObservedCountRule: "observed_count"}.get(kind) or {
        NonInferiorityRule: "non_inferiority",
        SuperiorityRule: "superiority",
        EquivalenceRule: "equivalence",
        NewFailuresRule: "new_failures",
    }[kind]
    return kind(id="it", metric="correct", kind=name, **settings)


def minimum(bar: float, **more: Any) -> MinRule:
    return MinRule(id="floor", metric="correct", kind="min", min=bar, **more)


def observed_count(limit: int, **more: Any) -> ObservedCountRule:
    return ObservedCountRule(
        id="none-wrong", metric="correct", kind="observed_count", max_failures=limit, **more
    )


def non_inferiority(margin: float, **more: Any) -> NonInferiorityRule:
    return NonInferiorityRule(id="no-worse", metric="correct", kind="non_inferiority", margin=margin, **more)


def new_failures(limit: int, **more: Any) -> NewFailuresRule:
    return NewFailuresRule(id="none-new", metric="correct", kind="new_failures", max=limit, **more)


def outcome(decision: Decision) -> tuple[RuleState, str]:
    return decision.state, decision.reason


# ---------------------------------------------------------------------------------- rules on an interval

#: By rule, the state and reason at each interval; ends that touch a bound are the cases to look at.
INTERVALS: list[tuple[Any, list[tuple[float, float, RuleState, str]]]] = [
    (
        minimum(0.6),
        [
            (0.7, 0.9, PASS, "lower_bound_meets_minimum"),
            (0.6, 0.9, PASS, "lower_bound_meets_minimum"),  # at the bar is enough
            (0.5999, 0.9, OPEN, "interval_overlaps_threshold"),
            (0.2, 0.6, OPEN, "interval_overlaps_threshold"),
            (0.2, 0.5999, FAIL, "upper_bound_below_minimum"),
            (0.0, 1.0, OPEN, "interval_overlaps_threshold"),
        ],
    ),
    (
        rule(MaxRule, max=0.3),
        [
            (0.0, 0.3, PASS, "upper_bound_meets_maximum"),
            (0.1, 0.3001, OPEN, "interval_overlaps_threshold"),
            (0.3, 0.5, OPEN, "interval_overlaps_threshold"),
            (0.3001, 0.5, FAIL, "lower_bound_above_maximum"),
        ],
    ),
    (
        non_inferiority(0.05),
        [
            (-0.04, 0.2, PASS, "lower_bound_above_margin"),
            (-0.05, 0.2, OPEN, "interval_overlaps_margin"),  # exactly the margin is not better than it
            (-0.06, 0.2, OPEN, "interval_overlaps_margin"),
            (-0.5, -0.05, OPEN, "interval_overlaps_margin"),
            (-0.5, -0.06, FAIL, "upper_bound_below_margin"),
            (0.1, 0.3, PASS, "lower_bound_above_margin"),
        ],
    ),
    (
        non_inferiority(0.05, direction="max"),
        [
            (-0.2, 0.04, PASS, "upper_bound_below_margin"),
            (-0.2, 0.05, OPEN, "interval_overlaps_margin"),
            (0.05, 0.5, OPEN, "interval_overlaps_margin"),
            (0.06, 0.5, FAIL, "lower_bound_above_margin"),
        ],
    ),
    (
        rule(SuperiorityRule),
        [
            (0.01, 0.2, PASS, "difference_above_zero"),
            (0.0, 0.2, OPEN, "interval_overlaps_zero"),
            (-0.2, 0.01, OPEN, "interval_overlaps_zero"),
            (-0.2, 0.0, FAIL, "difference_below_zero"),
        ],
    ),
    (
        rule(SuperiorityRule, direction="max"),
        [
            (-0.2, -0.01, PASS, "difference_below_zero"),
            (-0.2, 0.0, OPEN, "interval_overlaps_zero"),
            (0.0, 0.2, FAIL, "difference_above_zero"),
        ],
    ),
    (
        rule(EquivalenceRule, margin=0.1),
        [
            (-0.09, 0.09, PASS, "interval_within_margins"),
            (-0.1, 0.09, OPEN, "interval_overlaps_margins"),
            (-0.09, 0.1, OPEN, "interval_overlaps_margins"),
            (-0.3, -0.1, OPEN, "interval_overlaps_margins"),
            (-0.3, -0.11, FAIL, "interval_outside_margins"),
            (0.11, 0.3, FAIL, "interval_outside_margins"),
            (-0.3, 0.3, OPEN, "interval_overlaps_margins"),
        ],
    ),
]


@pytest.mark.parametrize(
    ("asked", "lower", "upper", "state", "reason"),
    [(asked, *row) for asked, rows in INTERVALS for row in rows],
)
def test_a_rule_is_decided_by_its_interval_and_never_by_the_estimate(
    asked: Any, lower: float, upper: float, state: RuleState, reason: str
) -> None:
    for estimate in (-1.0, 1.0):
        decision = decide(asked, facts(lower, upper, estimate=estimate))
        assert outcome(decision) == (state, reason)
        assert (decision.interval, decision.estimate) == (interval(lower, upper), estimate)


# ------------------------------------------------------------------------------------- rules that count


@pytest.mark.parametrize(
    ("failures", "missing", "state", "reason"),
    [
        (0, 0, PASS, "observed_failures_within_limit"),
        (2, 0, PASS, "observed_failures_within_limit"),
        (1, 1, PASS, "observed_failures_within_limit"),
        (2, 1, OPEN, "missing_could_change_outcome"),
        (0, 3, OPEN, "missing_could_change_outcome"),
        (3, 0, FAIL, "observed_failures_exceed_limit"),
        (3, 9, FAIL, "observed_failures_exceed_limit"),
    ],
)
def test_observed_failures_are_counted_and_missing_ones_could_be_failures(
    failures: int, missing: int, state: RuleState, reason: str
) -> None:
    decision = decide(observed_count(2), Facts(10, missing, failures=failures))
    assert outcome(decision) == (state, reason)
    assert decision.counts == {"failures": failures, "missing": missing, "observed": 10}


@pytest.mark.parametrize(
    ("found", "unstable", "missing", "state", "reason"),
    [
        (0, 0, 0, PASS, "new_failures_within_limit"),
        (2, 0, 0, PASS, "new_failures_within_limit"),
        (2, 2, 0, PASS, "new_failures_within_limit"),
        (3, 0, 0, FAIL, "new_failures_above_limit"),
        (4, 1, 0, FAIL, "new_failures_above_limit"),
        (3, 1, 0, OPEN, "unstable_could_change_outcome"),
        (5, 5, 0, OPEN, "unstable_could_change_outcome"),
        (3, 1, 7, OPEN, "unstable_could_change_outcome"),
        (2, 0, 1, OPEN, "missing_could_change_outcome"),
        (1, 1, 2, OPEN, "missing_could_change_outcome"),
        (0, 0, 3, OPEN, "missing_could_change_outcome"),
        (1, 0, 1, PASS, "new_failures_within_limit"),
    ],
)
def test_new_failures_count_when_stable_and_the_others_only_leave_it_open(
    found: int, unstable: int, missing: int, state: RuleState, reason: str
) -> None:
    decision = decide(new_failures(2), Facts(13, missing, failures=found, unstable=unstable))
    assert outcome(decision) == (state, reason)
    assert decision.counts == {
        "new_failures": found - unstable,
        "unstable": unstable,
        "missing": missing,
        "paired": 13,
    }


# ------------------------------------------------------------------------------- what comes before the rule

#: One rule of each kind that everything measured lets pass.
EASY = [
    minimum(0.0),
    rule(MaxRule, max=1.0),
    observed_count(1000),
    non_inferiority(0.5),
    rule(EquivalenceRule, margin=0.5),
    new_failures(1000),
]


@pytest.mark.parametrize("asked", [*EASY, rule(SuperiorityRule)])
def test_a_rule_that_observed_nothing_always_blocks_even_between_identical_systems(asked: Any) -> None:
    decision = decide(asked, Facts(0, 3, identical=True))
    assert outcome(decision) == (OPEN, "no_observations")
    assert decision.always_blocks
    assert decision.counts == {"missing": 3}


@pytest.mark.parametrize("asked", EASY)
def test_too_many_missing_results_always_block(asked: Any) -> None:
    decision = decide(asked, facts(0.1, 0.3, missing=4, missing_limit=0.2))
    assert outcome(decision) == (OPEN, "missingness_exceeds_policy")
    assert (decision.always_blocks, decision.missing, decision.observed) == (True, 4, 13)
    at_the_limit = decide(asked, facts(0.1, 0.3, missing=4, missing_limit=4 / 17))
    assert (at_the_limit.state, at_the_limit.always_blocks) == (PASS, False)


@pytest.mark.parametrize("asked", EASY)
def test_a_rule_on_a_judge_that_was_never_validated_is_open(asked: Any) -> None:
    decision = decide(asked, facts(0.1, 0.3, validated=False))
    assert outcome(decision) == (OPEN, "evaluator_not_validated")
    assert not decision.always_blocks


def test_between_identical_systems_nothing_rests_on_a_judge() -> None:
    same = facts(-0.34, 0.34, validated=False, identical=True)
    assert outcome(decide(non_inferiority(0.05), same)) == (PASS, "systems_identical")
    assert decide(new_failures(0), same).state is PASS


@pytest.mark.parametrize("asked", EASY)
def test_too_few_cases_leave_a_rule_open(asked: Any) -> None:
    wanting = asked.model_copy(update={"min_support": 14})
    assert outcome(decide(wanting, facts())) == (OPEN, "insufficient_support")
    assert decide(asked.model_copy(update={"min_support": 13}), facts(0.1, 0.3)).state is PASS


def test_failures_that_were_seen_are_a_fact_however_few_cases_there_are() -> None:
    few = Facts(5, 0, failures=2)
    assert outcome(decide(observed_count(1, min_support=9), few)) == (FAIL, "observed_failures_exceed_limit")
    assert outcome(decide(new_failures(1, min_support=9), few)) == (FAIL, "new_failures_above_limit")


@pytest.mark.parametrize("asked", [*EASY, rule(SuperiorityRule)])
def test_where_a_person_is_required_only_a_failure_is_decided_without_one(asked: Any) -> None:
    asked = asked.model_copy(update={"requires_manual_review": True, "min_support": 20})
    assert outcome(decide(asked, facts())) == (REVIEW, "policy_requires_review")
    assert decide(asked, Facts(0, 2)).state is OPEN  # nobody can review what is not there
    strict = rule(SuperiorityRule, requires_manual_review=True)
    assert decide(strict, facts(-0.2, -0.1)).state is FAIL
    assert outcome(decide(strict, facts(0.1, 0.2))) == (REVIEW, "policy_requires_review")


@pytest.mark.parametrize(
    ("asked", "state"),
    [
        (non_inferiority(0.05, min_support=99), PASS),
        (rule(EquivalenceRule, margin=0.05), PASS),
        (rule(SuperiorityRule), FAIL),
    ],
)
def test_identical_systems_decide_and_the_interval_is_told_all_the_same(asked: Any, state: RuleState) -> None:
    decision = decide(asked, facts(-0.34, 0.34, identical=True))
    assert outcome(decision) == (state, "systems_identical")
    assert decision.interval == interval(-0.34, 0.34)


@pytest.mark.parametrize("limit", [0.0, 1.0])
def test_between_identical_systems_nothing_rests_on_what_is_missing(limit: float) -> None:
    same = facts(-0.5, 0.5, missing=3, missing_limit=limit, identical=True)
    for asked in (non_inferiority(0.05), rule(EquivalenceRule, margin=0.05), new_failures(0)):
        decision = decide(asked, same)
        assert outcome(decision) == (PASS, "systems_identical")
        assert (decision.missing, decision.always_blocks) == (3, False)


def test_between_identical_systems_too_few_pairs_block_no_count() -> None:
    decision = decide(new_failures(0, min_support=99), Facts(13, 0, identical=True))
    assert outcome(decision) == (PASS, "new_failures_within_limit")


# ------------------------------------------------------------------------------------------------ families


def test_holm_multiplies_the_smallest_most_and_never_turns_the_order_around() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.6]) == [1.0, 1.0]
    assert holm([0.02]) == [0.02]
    assert holm([]) == []


def test_a_failing_rule_of_a_family_needs_its_corrected_p_value_and_a_passing_one_does_not() -> None:
    broken = facts(-0.5, -0.06, adjusted_p=0.051)
    assert outcome(decide(non_inferiority(0.05), broken)) == (OPEN, "not_excluded_after_correction")
    assert decide(non_inferiority(0.05), facts(-0.5, -0.06, adjusted_p=0.049)).state is FAIL
    assert decide(non_inferiority(0.05), facts(-0.04, 0.1, adjusted_p=1.0)).state is PASS


# ----------------------------------------------------------------------------------------------------- gate


def policy(*rules: Any, path: str = "p.yaml", **settings: Any) -> Policy:
    rules = rules or (minimum(0.5),)
    config = PolicyConfig(version=1, rules=rules, **settings)
    return Policy(Path(path), config, SourceLines(path, {}))


def decisions(*states: RuleState, always_blocks: bool = False) -> list[Decision]:
    return [
        Decision("r", "m", "min", "asks", state, "reason", always_blocks=always_blocks) for state in states
    ]


@pytest.mark.parametrize(
    ("states", "gate", "code"),
    [
        ((PASS,), GateState.ALLOW, 0),
        ((PASS, FAIL), GateState.BLOCK, 1),
        ((OPEN, PASS), GateState.BLOCK, 3),
        ((REVIEW,), GateState.BLOCK, 4),
        ((OPEN, REVIEW), GateState.BLOCK, 4),
        ((OPEN, REVIEW, FAIL), GateState.BLOCK, 1),
        ((FAIL, OPEN), GateState.BLOCK, 1),
    ],
)
def test_the_most_telling_cause_of_a_block_names_the_exit_code(
    states: tuple[RuleState, ...], gate: GateState, code: int
) -> None:
    found = gate_of([(policy(), decisions(*states))])
    assert (found.state, found.exit_code, found.reason) == (gate, code, None)


@pytest.mark.parametrize(
    ("block_on", "warn_on", "states", "gate", "code"),
    [
        (("FAIL",), ("INSUFFICIENT_EVIDENCE",), (OPEN,), GateState.WARN, 0),
        (("FAIL",), ("INSUFFICIENT_EVIDENCE",), (OPEN, FAIL), GateState.BLOCK, 1),
        (("FAIL",), ("INSUFFICIENT_EVIDENCE",), (PASS, REVIEW), GateState.ALLOW, 0),
        (("FAIL",), (), (OPEN,), GateState.ALLOW, 0),
        ((), ("FAIL",), (FAIL,), GateState.WARN, 0),
        ((), (), (FAIL, OPEN, REVIEW), GateState.ALLOW, 0),
    ],
)
def test_a_policy_says_what_blocks_and_what_only_warns(
    block_on: tuple[str, ...],
    warn_on: tuple[str, ...],
    states: tuple[RuleState, ...],
    gate: GateState,
    code: int,
) -> None:
    found = gate_of([(policy(block_on=block_on, warn_on=warn_on), decisions(*states))])
    assert (found.state, found.exit_code) == (gate, code)


def test_a_rule_that_saw_nothing_blocks_with_3_whatever_the_policy_blocks_on() -> None:
    found = gate_of([(policy(block_on=()), decisions(OPEN, always_blocks=True))])
    assert (found.state, found.exit_code) == (GateState.BLOCK, 3)


def test_each_of_several_policies_blocks_on_its_own_states() -> None:
    lenient = policy(block_on=("FAIL",), warn_on=("INSUFFICIENT_EVIDENCE",))
    found = gate_of([(lenient, decisions(OPEN)), (policy(), decisions(PASS))])
    assert found.state is GateState.WARN
    assert gate_of([(lenient, decisions(OPEN)), (policy(), decisions(OPEN))]).exit_code == 3


def test_a_decision_says_that_its_own_policy_tolerates_it_though_another_blocks() -> None:
    lenient = policy(block_on=("FAIL",), warn_on=("INSUFFICIENT_EVIDENCE",))
    seen = [*decisions(OPEN, FAIL, PASS), *decisions(OPEN, always_blocks=True)]
    found = gate_of([(lenient, seen), (policy(), decisions(OPEN))])
    assert [decision.tolerated for decision in found.decisions] == [True, False, False, False, False]


def test_without_decisions_the_gate_says_that_there_is_no_policy() -> None:
    assert gate_of([]) == Gate(GateState.ALLOW, 0, (), "no_policy")


def test_an_unfinished_evaluation_blocks_with_5_and_keeps_the_decisions() -> None:
    made = tuple(decisions(PASS))
    found = unfinished("partial_run", "3 of 4 cases were attempted", made)
    assert (found.state, found.exit_code, found.decisions) == (GateState.BLOCK, 5, made)
    assert gate_line(found) == "Gate: BLOCK (exit 5) · the run is not complete (3 of 4 cases were attempted)"


def test_an_absent_base_makes_an_allow_a_warning_and_leaves_a_block_alone() -> None:
    allowed = at_least_warn(gate_of([(policy(), decisions(PASS))]), "baseline_absent", "none there")
    assert (allowed.state, allowed.exit_code, allowed.reason) == (GateState.WARN, 0, "baseline_absent")
    blocked = at_least_warn(gate_of([(policy(), decisions(FAIL))]), "baseline_absent", "none there")
    assert (blocked.state, blocked.exit_code) == (GateState.BLOCK, 1)


def test_decisions_are_printed_as_the_transcript_has_them() -> None:
    found = gate_of([(policy(), [decide(non_inferiority(0.05), facts(-0.34, 0.34))])])
    assert decision_lines(found.decisions) == [
        "Decisions",
        "  no-worse  correct  non-inferiority, margin 5.0 points  INSUFFICIENT_EVIDENCE  interval_overlaps_margin",
    ]
    assert gate_line(found) == "Gate: BLOCK (exit 3)"
    assert decision_lines(()) == []


# -------------------------------------------------------------------------------------------- whole policies

EVALUATORS = (
    EvaluatorRecord("correct", "pass_fail", "answer", {}),
    EvaluatorRecord("ndcg_at_6", "score", "retrieval", {}),
)


def make_run(*judgments: Judgment) -> tuple[Run, list[CaseRow]]:
    """A run of one criterion at 95%, with its rows."""
    observed = [judgment for judgment in judgments if judgment.value is not None]
    passed = sum(judgment.passed for judgment in observed)
    absent = len(judgments) - len(observed)
    found = Metric(
        "correct",
        "rate",
        float(passed),
        len(observed),
        absent,
        {},
        passed / len(observed),
        clopper_pearson(passed, len(observed), absent, 0.95),
    )
    run = Run(
        id="run_1",
        kind="run",
        parent=None,
        created="",
        project="p",
        config="oloproof.yaml",
        dataset="cases.jsonl",
        dataset_digest="",
        system=System("s", "1", "app:Rag", 3, 2, None, "1", Fingerprints("r", "g", "c")),
        evaluators=EVALUATORS[:1],
        relevance_unit="document",
        slices=(),
        min_slice_support=1,
        cases=len(judgments),
        attempted=len(judgments),
        errored=0,
        cache=CacheCounts(Tally(), Tally(), Tally(), Tally(), 0),
        metrics=(found,),
        slice_rows=(),
        seconds=0.0,
        stage_seconds=0.0,
        finished=True,
    )
    rows = [CaseRow(n, f"c{n}", b"", b"", None, (j,), (), None, {}, "") for n, j in enumerate(judgments)]
    return run, rows


def decided(run: Run, rows: list[CaseRow], *policies: Policy) -> list[Decision]:
    return list(decide_run(run, policies, lambda: rows).decisions)


def test_a_policy_of_another_confidence_gets_intervals_of_its_own() -> None:
    run, rows = make_run(*[PASSED] * 12, FAILED, missing("timeout"))
    (decision,) = decided(run, rows, policy(minimum(0.6), confidence_level=0.8))
    assert decision.interval == clopper_pearson(12, 13, 1, 0.8)
    (usual,) = decided(run, rows, policy(minimum(0.6)))
    assert usual.interval == clopper_pearson(12, 13, 1, 0.95)


def test_rules_on_pairs_are_left_to_a_comparison() -> None:
    run, rows = make_run(PASSED)
    mixed = policy(new_failures(0), observed_count(0))
    assert [decision.rule for decision in decided(run, rows, mixed)] == ["none-wrong"]


def test_cases_that_were_never_attempted_are_missing() -> None:
    run, rows = make_run(*[PASSED] * 3, FAILED)
    partial = replace(run, cases=6, finished=False, metrics=())
    lenient = policy(minimum(0.6), on_partial_run="warn")
    gate = decide_run(partial, [lenient], lambda: rows)
    assert gate.decisions[0].interval == clopper_pearson(3, 4, 2, 0.95)
    assert (gate.exit_code, gate.reason) == (3, "partial_run")
    assert decide_run(partial, [policy(minimum(0.6))], lambda: rows).exit_code == 5
    assert decide_run(partial, [lenient, policy(minimum(0.0))], lambda: rows).exit_code == 5


def test_a_policy_in_which_no_rule_applies_is_refused() -> None:
    with pytest.raises(
        ConfigurationError, match=r"p\.yaml: no rule applies to a single run, so nothing would gate"
    ):
        check_policies([policy(new_failures(0))], EVALUATORS, (), ("run",))
    with pytest.raises(ConfigurationError, match=r"no rule applies to a comparison"):
        check_policies([policy(minimum(0.5))], EVALUATORS, (), ("pair",))
    check_policies([policy(minimum(0.5)), policy(new_failures(0))], EVALUATORS, (), ("run",))


def test_a_rule_on_a_metric_that_nobody_yields_is_refused() -> None:
    wrong = policy(MinRule(id="x", metric="corect", kind="min", min=0.5))
    with pytest.raises(
        ConfigurationError, match=r"no evaluator yields the metric corect; did you mean correct\?"
    ):
        check_policies([wrong], EVALUATORS, (), ("run",))


def test_a_rule_that_counts_failures_is_refused_on_a_score() -> None:
    wrong = policy(ObservedCountRule(id="x", metric="ndcg_at_6", kind="observed_count", max_failures=0))
    with pytest.raises(ConfigurationError, match=r"counts failures, and ndcg_at_6 is a score"):
        check_policies([wrong], EVALUATORS, (), ("run",))


def test_no_policy_at_all_is_no_mistake() -> None:
    check_policies([], EVALUATORS, (), ("run",))


# ------------------------------------------------------------------------------------------- how often wrong


def test_a_family_of_true_questions_fails_by_chance_no_more_often_than_alpha() -> None:
    """Eight slices of fifty cases each pass at the very rate that their rules ask for."""
    drawing = np.random.RandomState(20260916)
    rules = tuple(
        MinRule(id=f"r{n}", metric="correct", kind="min", min=0.8, family="f", scope=f"slice/s={n}")
        for n in range(8)
    )
    family = policy(*rules, families=("f",))
    alone = policy(*(rule.model_copy(update={"family": None, "scope": "all"}) for rule in rules))
    failed = {"family": 0, "alone": 0}
    times = 400
    for _ in range(times):
        grounds = [Grounds(Rate(int(drawing.binomial(50, 0.8)), 50)) for _ in rules]
        for name, asked in (("family", family), ("alone", alone)):
            each = iter(grounds)
            decided = decisions_of(asked, {"run": lambda rule, each=each: next(each)})
            failed[name] += any(decision.state is FAIL for decision in decided)
    assert failed["family"] <= times * 0.05
    assert failed["alone"] > times * 0.05  # which is what the correction is for
