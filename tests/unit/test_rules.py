"""Rules and gate: every state and reason code of the four kinds of rules, and the exit code they come to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from oloproof.decisions.deciding import check_policies, decide_run_rules
from oloproof.decisions.gate import at_least_warn, gate_of, unfinished
from oloproof.decisions.records import Decision, Gate, GateState, RuleState
from oloproof.decisions.rules import PairedFacts, decide_on_pair, decide_on_run
from oloproof.errors import ConfigurationError
from oloproof.identity.fingerprint import Fingerprints
from oloproof.identity.system import System
from oloproof.records import FAILED, PASSED, Interval, Judgment, Metric, missing
from oloproof.report.decisions_text import decision_lines, gate_line
from oloproof.run_records import CacheCounts, CaseRow, EvaluatorRecord, Run, Tally
from oloproof.settings.policy import Policy, PolicyConfig
from oloproof.settings.rules import MinRule, NewFailuresRule, NonInferiorityRule, ObservedCountRule
from oloproof.settings.yamlfile import SourceLines
from oloproof.statistics.binomial import clopper_pearson

PASS, FAIL, OPEN = RuleState.PASS, RuleState.FAIL, RuleState.INSUFFICIENT_EVIDENCE
REVIEW = RuleState.MANUAL_REVIEW


def interval(lower: float, upper: float) -> Interval:
    return Interval(lower, upper, 0.95, "clopper_pearson")


def metric(passed: int, observed: int, missing: int = 0) -> Metric:
    estimate = passed / observed if observed else None
    return Metric("correct", "rate", float(passed), observed, missing, {}, estimate, interval(0.1, 0.9))


def minimum(bar: float) -> MinRule:
    return MinRule(id="floor", metric="correct", kind="min", min=bar)


def observed_count(limit: int) -> ObservedCountRule:
    return ObservedCountRule(id="none-wrong", metric="correct", kind="observed_count", max_failures=limit)


def non_inferiority(margin: float) -> NonInferiorityRule:
    return NonInferiorityRule(id="no-worse", metric="correct", kind="non_inferiority", margin=margin)


def new_failures(limit: int) -> NewFailuresRule:
    return NewFailuresRule(id="none-new", metric="correct", kind="new_failures", max=limit)


def outcome(decision: Decision) -> tuple[RuleState, str]:
    return decision.state, decision.reason


# ------------------------------------------------------------------------------------------------------ min


@pytest.mark.parametrize(
    ("lower", "upper", "state", "reason"),
    [
        (0.7, 0.9, PASS, "lower_bound_meets_minimum"),
        (0.6, 0.9, PASS, "lower_bound_meets_minimum"),  # at the bar is enough
        (0.5999, 0.9, OPEN, "interval_overlaps_threshold"),
        (0.2, 0.6, OPEN, "interval_overlaps_threshold"),
        (0.2, 0.5999, FAIL, "upper_bound_below_minimum"),
        (0.0, 1.0, OPEN, "interval_overlaps_threshold"),
    ],
)
def test_a_minimum_is_decided_by_the_interval_and_never_by_the_estimate(
    lower: float, upper: float, state: RuleState, reason: str
) -> None:
    decision = decide_on_run(minimum(0.6), metric(13, 13), interval(lower, upper))
    assert outcome(decision) == (state, reason)
    assert decision.interval == interval(lower, upper)
    assert decision.estimate == 1.0


@pytest.mark.parametrize("rule", [minimum(0.0), observed_count(1000)])
def test_a_rule_on_a_metric_that_observed_nothing_always_blocks(rule: Any) -> None:
    decision = decide_on_run(rule, metric(0, 0, missing=3), None)
    assert outcome(decision) == (OPEN, "no_observations")
    assert decision.always_blocks
    assert decision.counts == {"missing": 3}


# ------------------------------------------------------------------------------------------- observed_count


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
    decision = decide_on_run(observed_count(2), metric(10 - failures, 10, missing), interval(0, 1))
    assert outcome(decision) == (state, reason)
    assert decision.counts == {"failures": failures, "missing": missing, "observed": 10}


# ------------------------------------------------------------------------------------------ non_inferiority


def facts(lower: float = -0.1, upper: float = 0.1, **changes: Any) -> PairedFacts:
    values: dict[str, Any] = {
        "difference": 0.0,
        "interval": interval(lower, upper),
        "paired": 13,
        "missing": 0,
    }
    return PairedFacts(**values | changes)


@pytest.mark.parametrize(
    ("lower", "upper", "state", "reason"),
    [
        (-0.04, 0.2, PASS, "lower_bound_above_margin"),
        (-0.05, 0.2, OPEN, "interval_overlaps_margin"),  # exactly the margin is not better than it
        (-0.06, 0.2, OPEN, "interval_overlaps_margin"),
        (-0.5, -0.05, OPEN, "interval_overlaps_margin"),
        (-0.5, -0.06, FAIL, "upper_bound_below_margin"),
        (0.1, 0.3, PASS, "lower_bound_above_margin"),
    ],
)
def test_non_inferiority_is_decided_by_the_interval_against_the_margin(
    lower: float, upper: float, state: RuleState, reason: str
) -> None:
    assert outcome(decide_on_pair(non_inferiority(0.05), facts(lower, upper))) == (state, reason)


def test_identical_systems_are_not_inferior_and_the_interval_is_told_all_the_same() -> None:
    decision = decide_on_pair(non_inferiority(0.05), facts(-0.34, 0.34, identical=True))
    assert outcome(decision) == (PASS, "systems_identical")
    assert decision.interval == interval(-0.34, 0.34)


@pytest.mark.parametrize("rule", [non_inferiority(0.05), new_failures(0)])
def test_a_rule_on_no_pairs_always_blocks_even_between_identical_systems(rule: Any) -> None:
    decision = decide_on_pair(rule, PairedFacts(None, None, 0, 4, identical=True))
    assert outcome(decision) == (OPEN, "no_observations")
    assert decision.always_blocks


# --------------------------------------------------------------------------------------------- new_failures


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
    decision = decide_on_pair(new_failures(2), facts(new_failures=found, unstable=unstable, missing=missing))
    assert outcome(decision) == (state, reason)
    assert decision.counts == {
        "new_failures": found - unstable,
        "unstable": unstable,
        "missing": missing,
        "paired": 13,
    }


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
    found = gate_of([(policy(), [decide_on_pair(non_inferiority(0.05), facts(-0.34, 0.34))])])
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


def test_a_policy_of_another_confidence_gets_intervals_of_its_own() -> None:
    run, rows = make_run(*[PASSED] * 12, FAILED, missing("timeout"))
    (decision,) = decide_run_rules(run, policy(minimum(0.6), confidence_level=0.8), lambda: rows)
    assert decision.interval == clopper_pearson(12, 13, 1, 0.8)
    (usual,) = decide_run_rules(run, policy(minimum(0.6)), lambda: rows)
    assert usual.interval == clopper_pearson(12, 13, 1, 0.95)


def test_rules_on_pairs_are_left_to_a_comparison() -> None:
    run, rows = make_run(PASSED)
    mixed = policy(new_failures(0), observed_count(0))
    assert [decision.rule for decision in decide_run_rules(run, mixed, lambda: rows)] == ["none-wrong"]


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
