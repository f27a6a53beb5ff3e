"""The pull-request comment: every outcome reads well, nothing foreign breaks out, and it always fits."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_markdown import HOSTILE, PARSERS, Page, assert_inert, hostile, render

from oloproof.comparison import Comparison, Flips, PairedMetric, PairedSliceRow
from oloproof.decisions import claims, rules
from oloproof.decisions.records import Decision, Gate, GateState, JudgeStanding, Outlook, RuleState
from oloproof.diagnosis import labels
from oloproof.diagnosis.attribution import StageSwap, Swap, SwapFactor, attribution, left_out
from oloproof.diagnosis.experiments import TriedExperiment
from oloproof.diagnosis.factors import Factor
from oloproof.diagnosis.labels import Label, Strength
from oloproof.identity.fingerprint import Fingerprints
from oloproof.identity.system import System
from oloproof.pairing import EvaluatorChange, RenamedCase
from oloproof.records import Interval, Metric
from oloproof.run_records import CacheCounts, Tally
from oloproof.store.unstable import UnstableCase
from oloproof_ci.comment import MAX_BYTES, comment
from oloproof_ci.outcome import SuiteOutcome
from oloproof_ci.report import (
    BaseError,
    Commit,
    CriterionFailures,
    EditedCase,
    ErroredCase,
    Errors,
    Evidence,
    LabelledCase,
    Loosening,
    NewFailure,
    Place,
    PolicyFile,
    Report,
    Side,
    SuiteChanges,
    Warning,
)
from oloproof_ci.sections.words import LABEL_REASONS, rule_reason

DATA = Path(__file__).parent.parent / "data"
MADE_BY = "<!-- Made by `.venv/bin/python tests/unit/test_comment.py`; do not edit. -->\n"

# ------------------------------------------------------------------------------------------ the factory

FAIL, OPEN, PASS = RuleState.FAIL, RuleState.INSUFFICIENT_EVIDENCE, RuleState.PASS
RECOVERED = Strength.INTERVENTION_RECOVERY


def interval(lower: float, upper: float, confidence: float = 0.95) -> Interval:
    return Interval(lower, upper, confidence, "any")


def system(**changes) -> System:
    usual = System(
        "support-rag", "1", "app:SupportRag", 6, 2, 40, "kb-2026-09-16", Fingerprints("a", "b", "c")
    )
    return replace(usual, **changes)


def metric(criterion: str, passed: float, kind: str = "rate", missing: int = 0, excluded=None) -> Metric:
    return Metric(criterion, kind, passed, 13, missing, excluded or {}, passed / 13, interval(0.1, 0.9))


def side(**changes) -> Side:
    usual = Side(
        sha="9f8e7d6c5b4a39281706f5e4d3c2b1a09f8e7d6c",
        ref="work tree",
        dirty=True,
        run="run_01M3ZQ8V7K2F6W9X4T5HR17PAB",
        system=system(),
        cases=13,
        errored=0,
        metrics=(
            metric("answer_correct", 6),
            metric("hit_rate_at_2", 10),
            metric("ndcg_at_6", 9.67, "mean"),
            metric("citations_valid", 13),
        ),
        cache=CacheCounts(Tally(0, 13), Tally(0, 52), Tally(0, 13), Tally(7, 6), 0),
        calls=19,
        calls_avoided=7,
        stage_seconds=3.21,
    )
    return replace(usual, **changes)


def base_side(**changes) -> Side:
    usual = replace(
        side(),
        sha="a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4",
        ref="main",
        dirty=False,
        run="run_01M3ZQ8V7K2F6W9X4T5HR19ZYP",
        cache=CacheCounts(Tally(13, 0), Tally(52, 0), Tally(), Tally(), 0),
        calls=0,
        calls_avoided=26,
        stage_seconds=0.0,
    )
    return replace(usual, **changes)


def paired(criterion: str, base: float | None, head: float | None, **changes) -> PairedMetric:
    difference = None if base is None or head is None else head - base
    around = None if difference is None else interval(difference - 0.434, difference + 0.477)
    usual = PairedMetric(criterion, "pass_fail", head, base, difference, around, 13, 0, {})
    return replace(usual, **changes)


def new_failure(case_id: str, label: Label = Label.RETRIEVAL_MISS, **changes) -> NewFailure:
    usual = NewFailure(
        case_id=case_id,
        label=label,
        reason="relevant_not_retrieved",
        strength=RECOVERED,
        unstable=False,
        head_repeat="failed",
        base_repeat="passed",
        top_k=2,
        evidence=(Evidence("kb-03", Place(1, "in context"), Place(None, "not retrieved")),),
        expected="12 USD",
        base_answer="Every extra seat costs 12 USD each month.",
        head_answer="I could not find that in the knowledge base.",
        line=7,
    )
    return replace(usual, **changes)


def swap(**outcomes: tuple[str | None, str | None, str | None]) -> StageSwap:
    """The swaps of some cases: what each came to with retrieval, assembly and generation of the base, None where that
    is unchanged."""
    cases = tuple(
        attribution(name, tuple(Swap(f, came) for f, came in zip(SwapFactor, each, strict=True)))
        for name, each in outcomes.items()
    )
    changed = {
        SwapFactor.RETRIEVAL: ("app:SupportRag.retrieve", "data/corpus.jsonl"),
        SwapFactor.GENERATION: ("app:SupportRag.generate",),
    }
    return StageSwap(base_side().run, side().run, "answer_correct", changed, {}, 4, cases)


def errored_case(case_id: str, base="passed", **changes) -> ErroredCase:
    usual = ErroredCase(case_id, "retrieve", "exception", "KeyError: 'kb-03'", base, 3)
    return replace(usual, **changes)


def errors(*cases: ErroredCase, total: int | None = None) -> Errors:
    newly = sum(case.base == "passed" for case in cases)
    return Errors(len(cases) if total is None else total, newly, cases)


def failures(*cases: NewFailure, criterion: str = "answer_correct", **changes) -> CriterionFailures:
    usual = CriterionFailures(
        criterion=criterion,
        new_failures=cases,
        fixed=("seat_count",),
        still_failing=("money_back", "refund_review", "security_review"),
        diagnosis="sha256:0c1d2e3f4a5b6c7d8e9f",
        diagnosed=len(cases),
        factors=(
            Factor(
                "retrieval coverage", 1, 2, "recovered", ("deeper retrieval", "another index or embedding")
            ),
        )
        if cases
        else (),
    )
    return replace(usual, **changes)


def comparison(*new: str, **changes) -> Comparison:
    usual = Comparison(
        candidate=side().run,
        baseline=base_side().run,
        confidence=0.95,
        identical=False,
        paired_cases=13,
        metrics=(
            paired("answer_correct", 9 / 13, 6 / 13),
            paired("hit_rate_at_2", 12 / 13, 10 / 13),
            paired("ndcg_at_6", 0.866, 0.744, kind="score"),
            paired("citations_valid", 1.0, 1.0, interval=interval(-0.3351, 0.3351)),
        ),
        slice_rows=(
            PairedSliceRow("metadata.topic", "billing", 5, (paired("answer_correct", 0.8, 0.4, paired=5),)),
            PairedSliceRow("metadata.topic", "team", 2, (paired("answer_correct", 1.0, 0.5, interval=None),)),
        ),
        flips=(
            Flips(
                "answer_correct", new, ("seat_count",), ("money_back", "refund_review", "security_review"), 6
            ),
            Flips("citations_valid", (), (), (), 13),
        ),
        added=(),
        removed=(),
        edited=(),
    )
    return replace(usual, **changes)


def new_failures_rule(state: RuleState, reason: str, **counts: int) -> Decision:
    found = {"new_failures": 0, "unstable": 0, "missing": 0, "paired": 13, **counts}
    asks = "at most 0 new failures"
    return Decision("no-new-failures", "answer_correct", "new_failures", asks, state, reason, counts=found)


def not_worse_rule(state: RuleState, reason: str, estimate: float = -3 / 13, **changes) -> Decision:
    usual = Decision(
        rule="answers-not-worse",
        metric="answer_correct",
        kind="non_inferiority",
        asks="non-inferiority, margin 5.0 points",
        state=state,
        reason=reason,
        estimate=estimate,
        interval=interval(-0.6647, 0.2455),
    )
    return replace(usual, **changes)


VALID = Decision(
    "citations-valid",
    "citations_valid",
    "observed_count",
    "at most 0 failures",
    PASS,
    "observed_failures_within_limit",
    counts={"failures": 0, "missing": 0, "observed": 13},
)
NOT_WORSE_OPEN = not_worse_rule(OPEN, "interval_overlaps_margin", outlook=Outlook(FAIL, 41, 0.44))
BLOCKED = Gate(
    GateState.BLOCK,
    1,
    (new_failures_rule(FAIL, "new_failures_above_limit", new_failures=3), NOT_WORSE_OPEN, VALID),
)


def blocked_report(**changes) -> Report:
    """Three new failures with three labels: the report behind the golden comment."""
    cases = (
        new_failure("extra_seat"),
        new_failure(
            "trial_length",
            Label.RANKED_OUT,
            reason="relevant_ranked_below_top_k",
            evidence=(Evidence("kb-05", Place(1, "in context"), Place(4, "cut by top_k")),),
            expected="21 days",
            base_answer="The free trial lasts 21 days and needs no card.\nYou can end it at any time.",
            head_answer="Team plans include five seats.",
        ),
        new_failure(
            "invoice_date",
            Label.GENERATION_FAILURE,
            reason="fails_with_gold_context",
            strength=Strength.INTERVENTION_NON_RECOVERY,
            evidence=(Evidence("kb-06", Place(1, "in context"), Place(1, "in context")),),
            expected="first of the month",
            base_answer="Invoices are issued on the first of the month, and are due within 14 days.",
            head_answer="invoices",
        ),
    )
    factors = (
        Factor("ranking depth", 1, 2, "recovered", ("a reranker", "top_k = 4")),
        Factor("retrieval coverage", 1, 2, "recovered", ("deeper retrieval", "another index or embedding")),
    )
    swapped = swap(
        extra_seat=("passed", None, "failed"),
        trial_length=("passed", None, "failed"),
        invoice_date=("failed", None, "passed"),
    )
    usual = Report(
        version=1,
        project="support-rag",
        config="oloproof.yaml",
        dataset="data/support.jsonl",
        policies=(PolicyFile("release.yaml", "base"), PolicyFile("compare.yaml", "base")),
        gate=BLOCKED,
        head=side(),
        base_commit=Commit(base_side().ref, base_side().sha),
        base=base_side(),
        comparison_id="sha256:4f5e6d7c8b9a0f1e2d3c",
        comparison=comparison("extra_seat", "trial_length", "invoice_date"),
        failures=(failures(*cases, factors=factors, swap=swapped),),
        errors=errors(),
        warnings=(),
    )
    return replace(usual, **changes)


def test_cases_that_still_fail_show_their_label_where_they_were_diagnosed() -> None:
    labels = (LabelledCase("security_review", Label.CONTEXT_ASSEMBLY_LOSS),)
    text = comment(blocked_report(failures=(failures(still_failing_labels=labels),)))
    assert "`security_review` `CONTEXT_ASSEMBLY_LOSS`, `money_back`, `refund_review`" in text


# ------------------------------------------------------------------------------------------ outcomes

PASSING = Gate(GateState.ALLOW, 0, (new_failures_rule(PASS, "new_failures_within_limit"), VALID))
MIN_RULE = Decision(
    "retrieval-floor",
    "hit_rate_at_2",
    "min",
    "at least 80.0%",
    FAIL,
    "upper_bound_below_minimum",
    4 / 13,
    interval(0.09, 0.61),
)


LOOSENED = (
    Loosening("compare.yaml", "rule answers-not-worse, margin", "0.05", "0.2"),
    Loosening("release.yaml", "rule citations-valid", "citations_valid: at most 0 failures", "removed"),
    Loosening("oloproof.yaml", "identity.ignore_files", "", "*.jsonl"),
)
SUITE = SuiteChanges(
    added=("seat_price",),
    removed=("seat_count",),
    removed_failing=("seat_count",),
    renamed=(RenamedCase("refund_1", "refund_annual"),),
    edited=(
        EditedCase("trial_length", ("expected.answer", "metadata.topic"), "21 days", "three weeks", 7),
        EditedCase("late_fee", ("expected.answer",), None, "", 9),
        EditedCase("one_of_many", (), None, None, 0),
    ),
    evaluators=(
        EvaluatorChange("right", "renamed", ("answer_correct",)),
        EvaluatorChange("polite", "data", ("words.txt",)),
        EvaluatorChange("brief", "settings", ("field", "ignore_case")),
        EvaluatorChange("kind", "code"),
        EvaluatorChange("hit_rate_at_1", "added"),
        EvaluatorChange("mrr_at_6", "removed"),
    ),
)
REVIEWED = Decision(
    "on_suite_change",
    "",
    "suite_change",
    "a person looks at removed and edited cases and evaluators",
    RuleState.MANUAL_REVIEW,
    "policy_requires_review",
    counts={"removed": 1, "edited": 2, "evaluators": 0},
)


def calm_report(**changes) -> Report:
    """No case newly fails and every rule passes."""
    usual = blocked_report(gate=PASSING, comparison=comparison(), failures=(failures(),))
    return replace(usual, **changes)


def errored_report(**changes) -> Report:
    """Three cases that pass in the base error here, and a fourth that failed there: the report behind a golden
    comment."""
    found = errors(
        errored_case("extra_seat"),
        errored_case("trial_length", stage="generate", kind="timeout", message="no answer within 60 s"),
        errored_case(
            "invoice_date", stage="generate", kind="crash", message="the worker was ended by SIGSEGV"
        ),
        errored_case("money_back", "failed", message="KeyError: 'kb-09'"),
    )
    pairs = tuple(replace(m, paired=9, missing=4) for m in comparison().metrics)
    missing = new_failures_rule(OPEN, "missing_could_change_outcome", missing=4, paired=9)
    usual = blocked_report(
        gate=Gate(GateState.BLOCK, 3, (missing, VALID)),
        head=side(errored=4),
        comparison=comparison(metrics=pairs),
        failures=(failures(still_failing=("refund_review", "security_review")),),
        errors=found,
    )
    return replace(usual, **changes)


def alone_report(**changes) -> Report:
    """Nothing to compare with."""
    run_rules = (replace(MIN_RULE, state=PASS, reason="lower_bound_meets_minimum"), VALID)
    gate = Gate(
        GateState.WARN, 0, run_rules, "baseline_absent", "there is no oloproof.yaml at its place in the base"
    )
    usual = blocked_report(gate=gate, base=None, comparison=None, comparison_id=None, failures=())
    return replace(usual, **changes)


def unfinished(reason: str, detail: str, decisions: tuple[Decision, ...] = ()) -> Gate:
    return Gate(GateState.BLOCK, 5, decisions, reason, detail)


def gate(state: GateState, exit_code: int, *decisions: Decision) -> Gate:
    return Gate(state, exit_code, decisions)


TRACEBACK = (
    "the base could not be imported:\nTraceback (most recent call last):\n  File \"app.py\"\nKeyError: 'kb'"
)
UNSTABLE_CASE = new_failure(
    "flaky",
    Label.UNSTABLE,
    reason="unstable_under_control",
    strength=Strength.NONE,
    unstable=True,
    head_repeat="passed",
)
UNSTABLE_IN_BASE = new_failure("lucky", unstable=True, base_repeat="failed")
NO_GOLD = new_failure(
    "no_gold",
    Label.NOT_DIAGNOSED,
    reason="no_gold_context",
    strength=Strength.NONE,
    evidence=(),
    head_repeat=None,
    base_repeat=None,
)
UNSTABLE_RULE = new_failures_rule(OPEN, "unstable_could_change_outcome", unstable=1)
MISSING_RULE = new_failures_rule(OPEN, "missing_could_change_outcome", missing=2, paired=11)
NOTHING_RULE = not_worse_rule(
    OPEN, "no_observations", counts={"missing": 13}, estimate=None, interval=None, always_blocks=True
)
REVIEW_RULE = not_worse_rule(RuleState.MANUAL_REVIEW, "policy_requires_review")
WORSE_RULE = not_worse_rule(FAIL, "upper_bound_below_margin", estimate=-0.5, interval=interval(-0.8, -0.2))
NDCG_RULE = not_worse_rule(
    OPEN,
    "interval_overlaps_margin",
    estimate=-0.122,
    metric="ndcg_at_6",
    interval=interval(-0.531, 0.306, 0.9),
)
BILLING = "slice/metadata.topic=billing"
SLICE_RULE = not_worse_rule(
    FAIL,
    "upper_bound_below_margin",
    estimate=-0.5,
    interval=interval(-0.75, -0.25),
    scope=BILLING,
    family="topics",
)
MISSED_RULE = not_worse_rule(OPEN, "missingness_exceeds_policy", observed=4, missing=9, always_blocks=True)
THIN_RULE = new_failures_rule(OPEN, "insufficient_support")
JUDGE_RULE = not_worse_rule(
    OPEN,
    "evaluator_not_validated",
    judge=JudgeStanding(18, 2, 17 / 18, interval(0.727, 0.998), 30, 0.8, 10),
)
SAME_RULE = not_worse_rule(
    FAIL,
    "systems_identical",
    estimate=0.0,
    kind="superiority",
    asks="superiority",
    interval=interval(-0.3, 0.3),
)
HIGHER_RULE = not_worse_rule(
    FAIL,
    "lower_bound_above_margin",
    estimate=0.5,
    asks="non-inferiority, margin 5.0 points, lower is better",
    interval=interval(0.25, 0.75),
)
CHANGED_RULE = not_worse_rule(
    FAIL,
    "interval_outside_margins",
    kind="equivalence",
    asks="equivalence, margin 5.0 points",
    estimate=-0.5,
    interval=interval(-0.75, -0.25),
)
NO_BETTER_RULE = not_worse_rule(
    OPEN,
    "interval_overlaps_zero",
    kind="superiority",
    asks="superiority",
    estimate=0.0,
    interval=interval(-0.3, 0.3),
)
CEILING_RULE = replace(MIN_RULE, kind="max", asks="at most 20.0%", reason="lower_bound_above_maximum")


def many_failures(count: int, diagnosed: int) -> CriterionFailures:
    cases = [
        new_failure(f"case_{n:04}")
        if n < diagnosed
        else new_failure(
            f"case_{n:04}",
            Label.NOT_DIAGNOSED,
            reason="over_budget",
            strength=Strength.NONE,
            head_repeat=None,
            base_repeat=None,
        )
        for n in range(count)
    ]
    return failures(*cases, diagnosed=diagnosed)


OUTCOMES = {
    "fail": blocked_report(),
    "allow": calm_report(),
    "one rule": calm_report(gate=gate(GateState.ALLOW, 0, VALID)),
    "insufficient": calm_report(gate=gate(GateState.BLOCK, 3, NOT_WORSE_OPEN)),
    "warn": calm_report(gate=gate(GateState.WARN, 0, NOT_WORSE_OPEN, VALID)),
    "review": calm_report(gate=gate(GateState.BLOCK, 4, REVIEW_RULE)),
    "worse": calm_report(gate=gate(GateState.BLOCK, 1, WORSE_RULE)),
    "min": calm_report(gate=gate(GateState.BLOCK, 1, MIN_RULE)),
    "max": calm_report(gate=gate(GateState.BLOCK, 1, CEILING_RULE)),
    "slice": calm_report(gate=gate(GateState.BLOCK, 1, SLICE_RULE)),
    "too many missing": calm_report(gate=gate(GateState.BLOCK, 3, MISSED_RULE)),
    "too few": calm_report(gate=gate(GateState.BLOCK, 3, replace(THIN_RULE, observed=13))),
    "not validated": calm_report(gate=gate(GateState.BLOCK, 3, JUDGE_RULE)),
    "no better for being the same": calm_report(gate=gate(GateState.BLOCK, 1, SAME_RULE)),
    "higher": calm_report(gate=gate(GateState.BLOCK, 1, HIGHER_RULE)),
    "changed": calm_report(gate=gate(GateState.BLOCK, 1, CHANGED_RULE)),
    "no better": calm_report(gate=gate(GateState.BLOCK, 3, NO_BETTER_RULE)),
    "mostly errored": calm_report(
        gate=Gate(GateState.BLOCK, 3, (VALID,), "missingness_exceeds_policy", "9 of 13 cases gave no answer")
    ),
    "score": calm_report(gate=gate(GateState.BLOCK, 3, NDCG_RULE)),
    "missing": calm_report(gate=gate(GateState.BLOCK, 3, MISSING_RULE)),
    "unstable": calm_report(
        gate=gate(GateState.BLOCK, 3, UNSTABLE_RULE),
        comparison=comparison("flaky", "lucky"),
        failures=(failures(UNSTABLE_CASE, UNSTABLE_IN_BASE),),
    ),
    "nothing observed for a rule": calm_report(
        gate=gate(GateState.BLOCK, 3, NOTHING_RULE),
        comparison=comparison(
            metrics=(paired("answer_correct", None, None, paired=0, missing=13),), flips=()
        ),
        failures=(),
    ),
    "let through": calm_report(gate=gate(GateState.ALLOW, 0, NOT_WORSE_OPEN, VALID)),
    "no policy": blocked_report(gate=Gate(GateState.ALLOW, 0, (), "no_policy"), policies=()),
    "baseline absent": alone_report(),
    "baseline absent, no policy": alone_report(
        gate=Gate(GateState.WARN, 0, (), "baseline_absent", "no configuration"), policies=()
    ),
    "baseline absent, rule fails": alone_report(
        gate=Gate(GateState.BLOCK, 1, (MIN_RULE,), "baseline_absent", "none")
    ),
    "baseline failed": alone_report(gate=unfinished("baseline_failed", TRACEBACK, (VALID,))),
    "partial run": calm_report(gate=unfinished("partial_run", "9 of 13 cases were attempted", (VALID,))),
    "no observations": alone_report(
        gate=unfinished("no_observations", "none of 13 cases gave anything that could be judged"),
        head=side(metrics=(Metric("answer_correct", "rate", 0, 0, 13, {}, None, None),), errored=13),
        errors=errors(errored_case("a", None), total=13),
    ),
    "errored": errored_report(),
    "one errored, and none may be missing": calm_report(
        gate=gate(
            GateState.WARN,
            0,
            replace(
                new_failures_rule(OPEN, "missing_could_change_outcome", new_failures=2, missing=1),
                asks="at most 3 new failures",
            ),
        ),
        comparison=comparison("a", "b"),
        failures=(failures(new_failure("a"), new_failure("b"), factors=()),),
        errors=errors(errored_case("seat_count")),
        head=side(errored=1),
    ),
    "one errored as before, and none may be missing": calm_report(
        gate=gate(
            GateState.BLOCK,
            3,
            replace(
                new_failures_rule(OPEN, "missingness_exceeds_policy", missing=1),
                observed=12,
                missing=1,
                always_blocks=True,
            ),
        ),
        errors=errors(errored_case("seat_count", "errored")),
        head=side(errored=1),
        base=base_side(errored=1),
    ),
    "one errored": calm_report(errors=errors(errored_case("seat_count")), head=side(errored=1)),
    "errored in both": calm_report(
        comparison=comparison(metrics=(paired("answer_correct", 0.5, 0.5, paired=11, missing=2),)),
        errors=errors(errored_case("a", "errored"), errored_case("b", "errored")),
        head=side(errored=2),
        base=base_side(errored=2),
    ),
    "errored in the base": calm_report(
        comparison=comparison(metrics=(paired("answer_correct", 0.5, 0.5, paired=12, missing=1),)),
        base=base_side(errored=1),
    ),
    "baseline failed, errored": alone_report(
        gate=unfinished("baseline_failed", TRACEBACK, (VALID,)),
        errors=errors(errored_case("a", None)),
        head=side(errored=1),
    ),
    "baseline absent, only pair rules": alone_report(
        gate=Gate(GateState.WARN, 0, (), "baseline_absent", "no configuration"),
        policies=(PolicyFile("compare.yaml", "head"),),
    ),
    "identical": calm_report(comparison=comparison(identical=True)),
    "no gold": blocked_report(failures=(failures(NO_GOLD, diagnosed=0, diagnosis=None, factors=()),)),
    "hundreds": blocked_report(failures=(many_failures(320, 50),)),
    "two criteria": blocked_report(
        failures=(failures(new_failure("a")), failures(new_failure("a"), criterion="hit_rate_at_2"))
    ),
    "partial run that only warns": calm_report(
        gate=Gate(GateState.WARN, 0, (VALID,), "partial_run", "9 of 13 cases were attempted")
    ),
    "warnings": blocked_report(
        warnings=(Warning("index", "The index changed."), Warning("dirty", "One more."))
    ),
    "other cases": calm_report(
        comparison=comparison(
            added=("new_one",),
            removed=("old_one", "older_one"),
            edited=("odd",),
            evaluators=(EvaluatorChange("tone", "code"),),
        ),
        head=side(errored=2),
    ),
}

SENTENCES = {
    "fail": "**3 cases that pass on `main` fail here**; rule `no-new-failures` allows 0. `answers-not-worse`"
    " does not pass either. Implicated: the change in retrieval (2 of 3), the change in generation (1 of 3).",
    "allow": "**Both rules pass.** No case that passes on `main` fails here.",
    "one rule": "**The one rule passes.** No case that passes on `main` fails here.",
    "insufficient": "**The evidence does not settle it**: rule `answers-not-worse` asks that `answer_correct` is "
    "worse by less than 5.0 points; found −23.1 points [−66.5, +24.6]. No case that passes on `main`"
    " fails here.",
    "warn": "**The evidence does not settle it**: rule `answers-not-worse` asks that `answer_correct` is "
    "worse by less than 5.0 points; found −23.1 points [−66.5, +24.6]. The policy warns of this and "
    "does not block. No case that passes on `main` fails here.",
    "review": "**A person has to decide**: rule `answers-not-worse` asks that `answer_correct` is worse by "
    "less than 5.0 points; found −23.1 points [−66.5, +24.6]. No case that passes on `main` fails "
    "here.",
    "worse": "**`answer_correct` is worse here than on `main`**: −50.0 points [−80.1, −20.0]; rule "
    "`answers-not-worse` allows less than 5.0 points. No case that passes on `main` fails here.",
    "min": "**`hit_rate_at_2` is 30.8% [8.9%, 61.0%] here**; rule `retrieval-floor` asks for at least "
    "80.0%. No case that passes on `main` fails here.",
    "score": "**The evidence does not settle it**: rule `answers-not-worse` asks that `ndcg_at_6` is worse by"
    " less than 0.050; found −0.122 [−0.532, +0.306] at 90%. No case that passes on `main` fails "
    "here.",
    "missing": "**2 results of `answer_correct` are missing and could change the outcome**; rule "
    "`no-new-failures` allows 0.",
    "max": "**`hit_rate_at_2` is 30.8% [8.9%, 61.0%] here**; rule `retrieval-floor` asks for at most 20.0%. No "
    "case that "
    "passes on `main` fails here.",
    "slice": "**`answer_correct` where `metadata.topic=billing` is worse here than on `main`**: −50.0 points [−75.0, "
    "−25.0]; rule `answers-not-worse` allows less than 5.0 points. No case that passes on `main` fails here.",
    "too many missing": "**Too many results of `answer_correct` are missing**, 9 of 13, so rule "
    "`answers-not-worse` cannot "
    "be decided. No case that passes on `main` fails here.",
    "too few": "**`answer_correct` was observed on too few cases**, 13 cases, so rule `no-new-failures` cannot "
    "be decided.",
    "not validated": "**`answer_correct` comes from a judge that was not checked well enough against people** (agrees "
    "with people on 94.4% [72.6%, 99.8%] of 18 labelled answers; the policy asks for at least 80.0% on at least 30: it "
    "was not asked about 2 labelled ones yet, at least 10 more labels are missing), so rule `answers-not-worse` cannot "
    "be decided. No case that passes on `main` fails here.",
    "no better for being the same": "**Nothing that could change `answer_correct` differs from `main`**; rule "
    "`answers-not-worse` asks for better than before. No case that passes on `main` fails here.",
    "higher": "**`answer_correct` is worse here than on `main`**: +50.0 points [+25.0, +75.0]; rule "
    "`answers-not-worse` "
    "allows less than 5.0 points. No case that passes on `main` fails here.",
    "changed": "**`answer_correct` differs from `main` by −50.0 points [−75.0, −25.0]**; rule "
    "`answers-not-worse` asks for "
    "changed by less than 5.0 points. No case that passes on `main` fails here.",
    "no better": "**The evidence does not settle it**: rule `answers-not-worse` asks that `answer_correct` is "
    "better than "
    "before; found +0.0 points [−30.0, +30.0]. No case that passes on `main` fails here.",
    "mostly errored": "**Too many cases errored**: 9 of 13 cases gave no answer; that blocks, whatever the rules "
    "say. No case that passes on `main` fails here.",
    "unstable": "**1 new failure of `answer_correct` does not hold when repeated**; rule `no-new-failures` "
    "allows 0. Implicated: retrieval coverage (1 of 2).",
    "nothing observed for a rule": "**Nothing was observed for `answer_correct`**: rule `answers-not-worse` "
    "has nothing to decide on; 13 results missing.",
    "let through": "**1 of 2 rules pass**, and the policy lets the others through. No case that passes on `main` "
    "fails here.",
    "no policy": "**No policy decides here, so nothing gates**; the figures below are only shown. 3 cases that "
    "pass `answer_correct` on `main` fail here. Implicated: the change in retrieval (2 of 3), the change in "
    "generation (1 of 3).",
    "baseline absent": "**There is nothing to compare with on `main`**: there is no oloproof.yaml at its place in the "
    "base. The rules on this run alone decide: 2 of 2 pass.",
    "baseline absent, no policy": "**There is nothing to compare with on `main`**: no configuration. No policy decides "
    "either.",
    "baseline absent, only pair rules": "**There is nothing to compare with on `main`**: no configuration. The rules "
    "all compare two runs, so none is decided.",
    "baseline absent, rule fails": "**`hit_rate_at_2` is 30.8% [8.9%, 61.0%] here**; rule `retrieval-floor` asks for "
    "at least 80.0%. There is nothing to compare with on `main`: none.",
    "baseline failed": "**The base `main` could not be measured**, so nothing is compared with it, and that blocks.",
    "baseline failed, errored": "**The base `main` could not be measured**, so nothing is compared with it, and that "
    "blocks. 1 case errored here.",
    "errored": "**3 cases that pass on `main` error here**, which leaves 4 results of `answer_correct` open; rule "
    "`no-new-failures` allows 0.",
    "one errored, and none may be missing": "**1 case that passes on `main` errors here**, which leaves 1 result of "
    "`answer_correct` open, 2 fail; rule `no-new-failures` allows 3. The policy warns of this and does not block.",
    "one errored as before, and none may be missing": "**Too many results of `answer_correct` are missing**, 1 of 13, "
    "so rule `no-new-failures` cannot be decided. 1 case errored here.",
    "one errored": "**Both rules pass.** **1 case that passes on `main` errors here**. No case that was judged on both "
    "sides newly fails.",
    "errored in both": "**Both rules pass.** 2 cases errored here. No case that was judged on both sides newly fails, "
    "but 2 pairs of `answer_correct` are missing.",
    "errored in the base": "**Both rules pass.** No case that was judged on both sides newly fails, but 1 pair of "
    "`answer_correct` is missing.",
    "partial run": "**The evaluation did not come to its end**: 9 of 13 cases were attempted; that blocks, whatever"
    " the rules say. No case that passes on `main` fails here.",
    "no observations": "**Nothing could be judged**: none of 13 cases gave anything that could be judged; that blocks, "
    "whatever the rules say. 13 cases errored here.",
    "partial run that only warns": "**The evaluation did not come to its end**: 9 of 13 cases were attempted; the "
    "policy only warns of that. No case that passes on `main` fails here.",
    "identical": "**Both rules pass.** Nothing that could change a result differs from `main`. No case that "
    "passes on `main` fails here.",
}


GOLDEN = {"comment-block.md": blocked_report(), "comment-errored.md": errored_report()}


def golden(name: str) -> str:
    return MADE_BY + comment(GOLDEN[name])


# ------------------------------------------------------------------------------------------ reading it


@pytest.mark.parametrize("name", GOLDEN)
def test_the_golden_comment_is_up_to_date(name: str) -> None:
    expected = (DATA / name).read_text(encoding="utf-8")
    assert golden(name) == expected, (
        "run `.venv/bin/python tests/unit/test_comment.py` and look at what changed"
    )


@pytest.mark.parametrize("outcome", SENTENCES)
def test_the_first_sentence_says_why(outcome: str) -> None:
    assert comment(OUTCOMES[outcome]).split("\n\n")[1] == SENTENCES[outcome]


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_the_heading_holds_the_gate(outcome: str) -> None:
    report = OUTCOMES[outcome]
    icon = {"ALLOW": "✅", "WARN": "⚠️", "BLOCK": "⛔"}[report.gate.state.value]
    ungated = report.gate.reason == "no_policy"
    expected = "## ⚪ Oloproof · support-rag · ALLOW, nothing gates" if ungated else None
    heading = comment(report).split("\n", 1)[0]
    assert heading == (expected or f"## {icon} Oloproof · support-rag · {report.gate.state.value}")


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("parser", PARSERS)
def test_every_outcome_renders_whole(outcome: str, parser: Callable[[str], str]) -> None:
    text = comment(OUTCOMES[outcome])
    page = Page(parser(text))
    assert_inert(page, ELEMENTS)
    assert_tables_are_whole(page)
    assert text.endswith("</sub>\n")
    assert "\n\n\n" not in text
    assert not re.search(r"\b(None|nan|cause[sd]?|because)\b", page.text())


def assert_tables_are_whole(page: Page, shown: str = "") -> None:
    """Every row of a table has as many cells as its heading, and no table was read as text; what is `shown` in it may
    look like one itself."""
    width = cells = 0
    for tag in page.elements:
        if tag in ("table", "tr"):
            assert cells in (0, width)
            width = 0 if tag == "table" else width
            cells = 0
        elif tag in ("th", "td"):
            width += tag == "th"
            cells += 1
    assert cells == width
    if "|--" not in shown and "--:|" not in shown:
        assert not any("|--" in node.text or "--:|" in node.text for node in page.nodes)


def test_the_parts_stand_in_order() -> None:
    text = comment(
        blocked_report(
            warnings=(Warning("index", "The index changed."),),
            comparison=comparison("x", added=("new_one",)),
            errors=errors(errored_case("y")),
        )
    )
    marks = [
        "## ⛔ Oloproof",
        "**3 cases that pass on",
        "> [!WARNING]",
        "| Rule |",
        "### Metrics",
        "Cases in no pair",
        "### 3 new failures of `answer_correct`",
        "With the gold passages as context 2 of 3 recover.",
        "What they answered",
        "### 1 case errored here",
        "1 fixed: `seat_count`",
        "3 still failing",
        "**Implicated: ranking depth**",
        "2 slice values",
        "<sub>here: retrieve",
        "`9f8e7d6` (work tree)",
        "`oloproof inspect ID` shows more of `run_",
    ]
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)


def test_each_table_has_its_columns() -> None:
    page = Page(render(comment(blocked_report())))
    headings = "".join(n.text for n in page.nodes if "th" in n.inside)
    assert headings == (
        "RuleAsksFoundState"
        "MetricmainhereDifference [95%]Cases"
        "CaseLabelRelevant passage: main → hereImplicated changeRepeated"
        "Caseretrieval of mainassembly of maingeneration of main"
        "CaseExpectedmainhere"
        "SliceCasesanswer_correcthit_rate_at_2ndcg_at_6citations_valid"
    )


# ------------------------------------------------------------------------------------------ the parts


def shown(report: Report) -> str:
    """The comment as a reader sees it, without elements."""
    return Page(render(comment(report))).text()


def test_decisions_say_what_was_asked_and_found() -> None:
    text = comment(blocked_report())
    assert (
        "| ⛔  | `no-new-failures` | at most 0 new failures of `answer_correct` | 3 of 13 pairs, 0 unstable |"
        in text
    )
    assert "| `FAIL`<br>above the limit |" in text
    assert "| `answer_correct` worse by less than 5.0 points | −23.1 points [−66.5, +24.6] |" in text
    assert "`INSUFFICIENT_EVIDENCE`<br>the interval allows both answers" in text


def test_a_rule_on_a_score_is_told_in_scores() -> None:
    text = comment(OUTCOMES["score"])
    assert "| `ndcg_at_6` worse by less than 0.050 | −0.122 [−0.532, +0.306] at 90% |" in text
    floor = replace(MIN_RULE, metric="ndcg_at_6", estimate=0.744, interval=interval(0.5, 0.75))
    text = comment(calm_report(gate=gate(GateState.BLOCK, 1, floor)))
    assert "| `ndcg_at_6` at least 0.800 | 0.744 [0.500, 0.750] |" in text


def test_a_reason_code_without_words_is_shown_itself() -> None:
    odd = replace(MIN_RULE, reason="some_new_reason")
    assert "`FAIL`<br>`some_new_reason`" in comment(calm_report(gate=gate(GateState.BLOCK, 1, odd)))


def test_a_rule_blocks_only_where_the_exit_code_says_so() -> None:
    """FAIL may be let through by one policy while want of evidence blocks."""
    text = comment(calm_report(gate=gate(GateState.BLOCK, 3, MIN_RULE, NOT_WORSE_OPEN)))
    assert "**The evidence does not settle it**: rule `answers-not-worse`" in text
    assert "| ⛔  | `answers-not-worse`" in text
    assert "| ⚠️ | `retrieval-floor`" in text


def test_evidence_shows_rank_and_fate_on_both_sides() -> None:
    def evidence(base: Place, head: Place, **changes) -> str:
        case = new_failure("a", evidence=(Evidence("kb-01#2", base, head),), **changes)
        return shown(blocked_report(failures=(failures(case),)))

    kept, cut, dropped = Place(1, "in context"), Place(3, "cut by top_k"), Place(2, "dropped by budget")
    gone = Place(None, "not retrieved")
    assert "kb-01#2 rank 1, in context → rank 3, top_k is 2" in evidence(kept, cut)
    assert "kb-01#2 rank 1, in context → rank 2, dropped by budget" in evidence(kept, dropped)
    assert "kb-01#2 rank 1, in context → not retrieved" in evidence(kept, gone)
    assert "kb-01#2 rank 1, in context → the same" in evidence(kept, kept)
    assert "kb-01#2 rank 3, top_k is 2 → rank 3, top_k is 1" in evidence(cut, cut, top_k=1)


def test_many_relevant_passages_are_counted() -> None:
    places = tuple(Evidence(f"kb-{n}", Place(n, "in context"), Place(n, "in context")) for n in range(1, 8))
    assert "and 4 more" in shown(blocked_report(failures=(failures(new_failure("a", evidence=places)),)))
    assert "none is named" in shown(blocked_report(failures=(failures(new_failure("a", evidence=())),)))


def test_unstable_cases_are_marked_and_say_which_repeat_differed() -> None:
    text = comment(OUTCOMES["unstable"])
    assert re.search(
        r"`flaky` \| `UNSTABLE`<br>passes when repeated unchanged .*"
        r"\| \*\*unstable\*\*: passed here, passed again on `main` \|",
        text,
    )
    assert re.search(r"`lucky` .*\| \*\*unstable\*\*: failed again here, failed on `main` \|", text)


def test_cases_that_held_now_and_did_not_in_earlier_repeats_are_named() -> None:
    before = (
        UnstableCase("flaky", "answer_correct", 1, 2),
        UnstableCase("lucky|one", "answer_correct", 1, 1),
        UnstableCase("seat_count", "answer_correct", 2, 3),
    )
    unstable = failures(
        new_failure("flaky", unstable=True, head_repeat="passed"),
        new_failure("lucky|one"),
        known_unstable=before,
    )
    text = comment(calm_report(failures=(unstable,), comparison=comparison("flaky", "lucky|one")))
    assert "Unstable when repeated before: `lucky|one` (1 of 1 repeat)\n" in text
    assert "1 fixed: `seat_count`<br>\nUnstable when repeated before: `seat_count` (2 of 3 repeats)" in text


def test_what_was_not_diagnosed_says_why() -> None:
    text = comment(OUTCOMES["no gold"])
    assert "`NOT_DIAGNOSED`<br>the case has no gold context | none is named | not repeated" in text
    assert (
        "Diagnosed 0 of 1; 1 case would need `expected.gold_context` for that, the text that answers." in text
    )


def test_of_hundreds_of_failures_some_rows_are_shown_and_the_rest_counted() -> None:
    text = comment(OUTCOMES["hundreds"])
    assert "### 320 new failures of `answer_correct`" in text
    assert "and 295 more; `report.json` names them all" in text
    assert "Diagnosed 50 of 320. With the gold passages as context 50 of 50 recover." in text
    assert text.count("`RETRIEVAL_MISS`") == 25
    assert "`case_0024`" in text
    assert "`case_0025`" not in text


def test_answers_show_their_first_line() -> None:
    text = comment(blocked_report())
    assert (
        "| 21 days | The free trial lasts 21 days and needs no card.… | Team plans include five seats. |"
        in text
    )
    silent = new_failure("a", expected=None, base_answer="", head_answer="\n\n")
    assert "| `a` | – | (empty) | (empty) |" in comment(blocked_report(failures=(failures(silent),)))


def test_several_criteria_each_have_their_table() -> None:
    text = comment(OUTCOMES["two criteria"])
    assert "### 1 new failure of `answer_correct`" in text
    assert "### 1 new failure of `hit_rate_at_2`" in text
    assert "1 fixed in `answer_correct`: `seat_count`<br>\n1 fixed in `hit_rate_at_2`: `seat_count`" in text
    assert "recovered failures of `hit_rate_at_2`" in text


def test_cases_that_flip_in_other_criteria_are_named() -> None:
    flips = (Flips("answer_correct", (), (), (), 13), Flips("hit_rate_at_2", ("a", "b"), ("c",), (), 11))
    text = comment(calm_report(comparison=comparison(flips=flips)))
    assert "2 cases that pass `hit_rate_at_2` on `main` fail here." in text
    assert "New failures of other criteria: `hit_rate_at_2` 2 (`a`, `b`)<br>" in text
    assert "Fixed in other criteria: `hit_rate_at_2` 1 (`c`)" in text
    assert "No case that passes" not in text


def test_no_new_failure_is_claimed_only_of_observed_pairs() -> None:
    assert "No case that passes on `main` fails here." in comment(calm_report())
    blind = comment(OUTCOMES["nothing observed for a rule"])
    assert "No case that passes" not in blind
    assert "No pair of cases was judged on both sides, so it is not known whether any newly fails." in blind


def attributed(**changes) -> str:
    """The comment on new failures a, b, c and d with these swaps, as a reader sees it."""
    cases = [new_failure(name) for name in "abcd"]
    return shown(blocked_report(failures=(failures(*cases, swap=replace(swap(), **changes)),)))


def test_the_heading_names_the_implicated_changes_most_frequent_first() -> None:
    several = swap(
        a=("failed", "failed", "passed"),
        b=("passed", "failed", "failed"),
        c=("passed", "failed", "failed"),
        d=("passed", "failed", "passed"),
    )
    text = attributed(cases=several.cases)
    assert (
        "Implicated: the change in retrieval (2 of 4), the change in generation (1 of 4), the changes in "
        "retrieval and generation together (1 of 4)." in text
    )
    assert (
        "Stage swap of 4 new failures, on recorded retrievals: with the retrieval of main 3 of 4 pass · with the "
        "assembly of main 0 of 4 pass · with the generation of main 2 of 4 pass." in text
    )
    assert "retrieval differs in app:SupportRag.retrieve, data/corpus.jsonl" in text
    assert "generation differs in app:SupportRag.generate" in text


def test_what_is_not_attributed_says_why_and_the_factors_stand_in_the_heading() -> None:
    found = (left_out("a", "passed", "passed"), left_out("b", "failed", "missing"), left_out("c", None, None))
    swaps = (Swap(SwapFactor.RETRIEVAL, "failed"), Swap(SwapFactor.ASSEMBLY, None), NO_ANSWER)
    text = attributed(cases=(*found, attribution("d", swaps)))
    assert "Implicated: retrieval coverage (1 of 2)." in text
    one = attributed(cases=(*found, *swap(d=("passed", None, "failed")).cases))
    assert "Implicated: the change in retrieval (1 of the 3 looked into)." in one
    for name, says in {
        "a": "none: unstable",
        "b": "unresolved: a repeat gave no result",
        "c": "not attributed: beyond the budget",
        "d": "unresolved: the swap of generation gave no result (generate: timeout: no answer within 60 s)",
    }.items():
        assert re.search(rf"{name}\s*RETRIEVAL_MISS[^→]*→ not retrieved\s*{re.escape(says)}", text), says
    assert "Stage swap of 1 of 4 new failures" in text
    assert "with the generation of main 0 of 1 pass, 1 gave no result" in text
    assert "assembly is unchanged" in text


def test_a_failure_that_no_single_change_explains_is_said_to_be_one() -> None:
    text = attributed(cases=swap(a=("failed", None, "failed"), b=(None, None, None)).cases)
    assert "For 1 of the 2 looked into no single change suffices." in text
    assert "no single change suffices" in text
    assert "nothing differs" in text


def test_what_was_tried_says_what_it_recovered_and_broke_of_how_many() -> None:
    text = shown(blocked_report(failures=(failures(new_failure("a"), experiments=TRIED),)))
    assert (
        "Tried on the recorded retrieval (hypotheses to test): top-k 4 recovers 1 of 3 and breaks 0 of 9 · "
        "token-budget 80 recovers 0 of 3 tried, of 5, and breaks 2 of 7 tried, of 40 (b, c), 2 gave no result · "
        "reranker app:best could not be tried: it failed on the case a: KeyError: 'x'"
    ) in text
    assert "Tried on" not in comment(blocked_report())


def test_the_small_print_counts_the_calls_that_looking_into_failures_took() -> None:
    first, second = failures(new_failure("a"), calls=9), failures(criterion="polite", calls=1)
    text = comment(blocked_report(failures=(first, second)))
    assert "<br>10 calls of generate made for gold runs, repeats, swaps and experiments<br>" in text
    assert "calls of generate" not in comment(calm_report())


def test_factors_are_hypotheses() -> None:
    text = shown(blocked_report())
    assert "Implicated: ranking depth, in 1 of the 2 recovered failures." in text
    assert "Candidate experiments (hypotheses to test): a reranker · top_k = 4" in text


def test_differences_have_their_units_and_true_minus_signs() -> None:
    text = comment(blocked_report())
    assert "| `answer_correct` |  69.2% |  46.2% | −23.1 points [−66.5, +24.7] | 13 paired |" in text
    assert re.search(
        r"\| `ndcg_at_6` \|  0\.866 \|  0\.744 \| +−0\.122 \[−0\.557, \+0\.355\] \| 13 paired \|", text
    )


def test_missing_and_excluded_pairs_are_counted() -> None:
    odd = paired("answer_correct", 0.5, 0.5, paired=9, missing=2, excluded={"no_relevance_labels": 2})
    text = comment(calm_report(comparison=comparison(metrics=(odd,))))
    assert "9 paired · 2 missing · 2 excluded (`no_relevance_labels`)" in text


def test_why_a_judge_gave_no_judgment_stands_below_the_metrics() -> None:
    reasons = {"judge_no_key": 3, "field_missing": 2, **{f"judge_{name}": 1 for name in "abcd"}}
    odd = replace(metric("polite", 9, missing=9), missing_reasons=reasons)
    text = comment(alone_report(head=side(metrics=(odd,))))
    told = "`judge_no_key` 3, `judge_a` 1, `judge_b` 1, `judge_c` 1, 1 more reason"
    assert f"No judgment of `polite` here for 7 cases: {told}." in text
    assert "No judgment" not in comment(calm_report())


def test_without_a_base_the_metrics_stand_alone() -> None:
    text = comment(alone_report(head=side(metrics=(metric("answer_correct", 9, missing=1),))))
    assert "| Interval [95%] | Cases |" in text
    assert "| `answer_correct` | 69.2% | [10.0%, 90.1%] | 9 of 13 · 1 missing |" in text
    assert "new failures" not in text
    assert "Difference" not in text
    assert "(work tree) + uncommitted changes; the base `a1b2c3d` (main) gave nothing to compare with" in text


def test_a_failed_base_shows_the_end_of_its_error() -> None:
    lines = "\n".join(f"line {n}" for n in range(100))
    text = comment(alone_report(gate=unfinished("baseline_failed", f"{lines}\n```\n# out\nKeyError: 'kb'")))
    page = Page(render(text))
    assert page.text("pre").endswith("```\n# out\nKeyError: 'kb'\n")
    assert "line 88\n" in page.text("pre")
    assert "line 80\n" not in page.text("pre")
    assert page.count("h1") == 0


def test_warnings_come_right_after_the_sentence() -> None:
    one = comment(blocked_report(warnings=(Warning("index", "The index changed."),)))
    assert one.split("\n\n")[2] == "> [!WARNING]\n> The index changed."
    two = comment(OUTCOMES["warnings"])
    assert two.split("\n\n")[2] == "> [!WARNING]\n> - The index changed.\n> - One more."


def test_slices_are_marked_exploratory_and_thin_ones_stand_in_parentheses() -> None:
    text = comment(blocked_report())
    assert "| `metadata.topic=billing` |     5 |    80.0% → 40.0% |" in text
    assert "| `metadata.topic=team` |     2 | (100.0% → 50.0%) |" in text
    assert "Exploratory, `main` → here; no rule reads these." in text
    scoped = replace(VALID, scope="slice/metadata.topic=billing")
    gated = comment(blocked_report(gate=replace(BLOCKED, decisions=(*BLOCKED.decisions, scoped))))
    assert "Exploratory, `main` → here. In parentheses" in gated


def test_cases_and_evaluators_that_do_not_pair_are_named() -> None:
    text = comment(OUTCOMES["other cases"])
    assert (
        "Cases in no pair: 1 added (`new_one`), 2 removed (`old_one`, `older_one`), 1 edited (`odd`)." in text
    )
    assert "Not compared, since the evaluators differ: `tone`." in text


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-3, "0 s"), (59.6, "60 s"), (119, "119 s"), (7_000, "116 min"), (86_400, "24 h"), (1e6, "11 d")],
)
def test_a_base_run_from_the_cache_is_told_with_its_age(seconds: float, said: str) -> None:
    text = comment(blocked_report(base=base_side(since=seconds)))
    assert f"whose run is from the cache, {said} old" in text
    assert "from the cache" not in comment(blocked_report())


def test_the_small_print_tells_commits_work_and_ids() -> None:
    text = comment(blocked_report()).splitlines()[-1]
    parts = ["<sub>here: ", "<br>`main`: ", "<br>`9f8e7d6`", "<br>suite ", "<br>`oloproof inspect ID`"]
    assert sorted(parts, key=text.index) == parts
    assert "`9f8e7d6` (work tree) + uncommitted changes against `a1b2c3d` (main)" in text
    assert (
        "suite `oloproof.yaml` on `data/support.jsonl`, 13 cases · policies `release.yaml`, `compare.yaml` "
        "as on `main`" in text
    )
    assert (
        "here: retrieve 0 hit/13 miss, generate 7 hit/6 miss · 19 calls made, 7 avoided · 3.2 s in the stages"
        in text
    )
    assert "`main`: executions 13 hit/0 miss · 0 calls made, 26 avoided" in text
    assert f"`{side().run}` against `{base_side().run}`" in text
    assert "comparison `sha256:4f5e6d7c8b9a` · diagnosis `sha256:0c1d2e3f4a5b`" in text


def test_every_reason_code_has_words() -> None:
    """The codes are read off the decision tables, so that a new one is not forgotten here."""
    tables = Path(labels.__file__).read_text(encoding="utf-8")
    codes = re.findall(r'(?:Verdict|_lost)\(\s*Label\.\w+, "(\w+)"', tables)
    assert len(codes) > 10
    assert set(codes) <= set(LABEL_REASONS)
    source = "".join(Path(module.__file__).read_text(encoding="utf-8") for module in (rules, claims))
    decided = set(re.findall(r'"([a-z]+(?:_[a-z]+)+)"', source)) - {"new_failures"}
    assert len(decided) > 24
    for code in decided:
        assert "_" not in rule_reason(not_worse_rule(FAIL, code))


@pytest.mark.parametrize(
    ("head", "base", "says"),
    [
        ("failed", "passed", "the same again"),
        ("missing", "passed", "no result here, passed again on `main`"),
        ("failed", "missing", "failed again here, no result on `main`"),
        (None, "passed", "not repeated here, passed again on `main`"),
        ("failed", None, "failed again here, not repeated on `main`"),
        (None, None, "not repeated"),
    ],
)
def test_the_repeats_are_told_as_they_came_out(head, base, says: str) -> None:
    """A repeat without result is not called a failure, nor one that was not made."""
    case = new_failure("a", head_repeat=head, base_repeat=base)
    assert comment(blocked_report(failures=(failures(case),))).count(f"| {says} ") == 1


def test_errored_cases_say_where_it_happened_and_what_they_came_to_in_the_base() -> None:
    text = comment(errored_report())
    assert "### 4 cases errored here" in text
    assert "| `extra_seat` | `retrieve` | `exception`<br>KeyError: 'kb-03' | passed |" in text
    assert "| `money_back` | `retrieve` | `exception`<br>KeyError: 'kb-09' | failed |" in text
    assert "What errored counts as missing." in text
    assert "No case that passes" not in text
    both = comment(OUTCOMES["errored in both"])
    assert "| `a` | `retrieve` | `exception`<br>KeyError: 'kb-03' | errored |" in both
    assert "2 of 13 cases errored on `main`. What errored counts as missing." in both


def test_without_a_base_the_errored_cases_stand_alone() -> None:
    text = comment(OUTCOMES["baseline failed, errored"])
    assert "| Case | Stage | What happened |\n" in text
    assert "### 1 case errored here" in text


def test_errors_of_the_base_alone_are_counted() -> None:
    text = comment(OUTCOMES["errored in the base"])
    assert "errored here" not in text
    assert "1 of 13 cases errored on `main`. What errored counts as missing." in text


@pytest.mark.parametrize(
    ("alike", "told"),
    [
        (13, "13 of 13 cases errored on `main`, in `retrieve`: no file "),
        (9, "13 of 13 cases errored on `main`, 9 of them in `retrieve`: no file "),
    ],
)
def test_what_most_cases_came_to_in_the_base_is_told(alike: int, told: str) -> None:
    found = replace(errors(), in_base=BaseError("retrieve", "no file <b>x|y</b>.", alike))
    text = comment(calm_report(base=base_side(errored=13), errors=found))
    assert told in text
    assert "<b>" not in text


@pytest.mark.parametrize(("whose", "where"), [("base", "on `main`"), ("head", "here")])
@pytest.mark.parametrize("reason", ["no_observations", "partial_run"])
def test_a_run_that_did_not_come_to_its_end_is_called_by_its_side(
    whose: str, where: str, reason: str
) -> None:
    report = calm_report()
    run = getattr(report, whose).run
    text = comment(replace(report, gate=unfinished(reason, f"{run}: something of 13 cases")))
    (sentence,) = [line for line in text.splitlines() if line.startswith("**")]
    assert f"** {where}: something of 13 cases; that blocks" in sentence
    assert run not in sentence


def test_of_hundreds_of_errored_cases_some_rows_are_shown_and_the_rest_counted() -> None:
    some = errors(*(errored_case(f"case_{n}") for n in range(20)), total=320)
    text = comment(errored_report(errors=some))
    assert "### 320 cases errored here" in text
    assert "and 300 more; `oloproof inspect ID --failures` shows them all" in text
    assert "`case_19`" in text


def test_that_no_case_newly_fails_is_qualified_where_a_pair_is_missing() -> None:
    odd = paired("answer_correct", 0.5, 0.5, paired=11, missing=2)
    for report in (calm_report(comparison=comparison(metrics=(odd,))), OUTCOMES["one errored"]):
        text = comment(report)
        assert "No case that passes on" not in text
        assert text.count("No case that was judged on both sides newly fails") == 2


# ---------------------------------------------------------------------------------------- hostile text

ELEMENTS = {
    *("h2", "h3", "p", "strong", "code", "pre", "br", "sub", "ul", "li", "div", "blockquote", "span"),
    *("table", "thead", "tbody", "tr", "th", "td", "details", "summary"),
}
#: Names of fields that are chosen from a fixed list by our own code.
FIXED = {"kind", "method", "head_repeat", "base_repeat", "base", "outcome", "change", "version"}


def poisoned(value, text: str | Callable[[str], str], name: str = ""):
    """A record with `text` in every place that holds a text; a function chooses it by the field's name."""
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{f.name: poisoned(getattr(value, f.name), text, f.name) for f in fields(value)}
        )
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(poisoned(v, text, n) for n, v in zip(value._fields, value, strict=True)))
    if isinstance(value, tuple):
        return tuple(poisoned(v, text, name) for v in value)
    if isinstance(value, dict):
        return {k if name == "counts" else poisoned(k, text): poisoned(v, text) for k, v in value.items()}
    if type(value) is not str or name in FIXED:
        return value
    return text if isinstance(text, str) else text(name)


NO_ANSWER = Swap(SwapFactor.GENERATION, "missing", "generate: timeout: no answer within 60 s")
SWAPPED = replace(
    swap(x=("passed", None, "failed")),
    cases=(
        *swap(x=("passed", None, "failed")).cases,
        attribution("y", (Swap(SwapFactor.RETRIEVAL, "failed"), Swap(SwapFactor.ASSEMBLY, None), NO_ANSWER)),
    ),
)


TRIED = (
    TriedExperiment("top-k 4", ("a",), 3, 3, (), 9, 9, 0, 12),
    TriedExperiment("token-budget 80", (), 3, 5, ("b", "c"), 7, 40, 2, 12),
    TriedExperiment("reranker app:best", (), 0, 3, (), 0, 9, 0, 0, "it failed on the case a: KeyError: 'x'"),
)


def everything() -> Report:
    """A report in which every part of the comment has something to show."""
    flips = (*comparison("a").flips, Flips("hit_rate_at_2", ("a",), ("b",), ("c",), 1))
    odd = paired("answer_correct", 0.5, 0.4, excluded={"no_relevance_labels": 2})
    return blocked_report(
        warnings=(Warning("index", "One."), Warning("dirty", "Two.")),
        comparison=comparison(
            flips=flips,
            metrics=(odd,),
            added=("n",),
            removed=("o",),
            edited=("e",),
            evaluators=(EvaluatorChange("t", "code"),),
        ),
        failures=(
            failures(
                *(UNSTABLE_CASE, UNSTABLE_IN_BASE, NO_GOLD, new_failure("x")),
                swap=SWAPPED,
                experiments=TRIED,
                calls=31,
            ),
            many_failures(2, 1),
        ),
        head=side(errored=1),
        base=base_side(errored=1),
        errors=errors(errored_case("e"), errored_case("f", "errored"), total=30),
        suite=replace(SUITE, problem="the base's file is gone"),
        loosened=LOOSENED,
    )


@pytest.mark.parametrize(
    ("parser", "reason"),
    [
        *((render, reason) for reason in ("no_policy", "baseline_failed", "odd", None)),
        *((parser, "baseline_failed") for parser in PARSERS[1:]),
    ],
)
def test_hostile_text_changes_no_element_anywhere(parser: Callable[[str], str], reason: str | None) -> None:
    plain = Page(parser(poisoned_comment("word", reason)))
    for text in HOSTILE:
        page = Page(parser(poisoned_comment(text, reason)))
        assert_inert(page, ELEMENTS)
        assert_tables_are_whole(page)
        if "\n" not in text and text.strip() and len(text) < 100:
            assert without_spans(page) == without_spans(plain)


@settings(max_examples=50, deadline=None)
@given(hostile, st.sampled_from(["baseline_failed", "partial_run", None]))
@example("|---", "baseline_failed")
def test_no_text_makes_an_element_anywhere(text: str, reason: str | None) -> None:
    page = Page(render(poisoned_comment(text, reason)))
    assert_inert(page, ELEMENTS)
    assert_tables_are_whole(page, text)


def poisoned_comment(text: str, reason: str | None) -> str:
    """The comment on a report full of a text, of which something other than a rule decided, or a rule (None)."""
    report = poisoned(everything(), text)
    made = comment(replace(report, gate=replace(report.gate, reason=text if reason == "odd" else reason)))
    assert "<!--" not in made
    assert len(made.encode()) < MAX_BYTES
    return made


def without_spans(page: Page) -> list[str]:
    """The elements in order, without those that hold a dollar sign."""
    return [tag for tag in page.elements if tag != "span"]


# ----------------------------------------------------------------------------------------- its own test


def section(report: Report, heading: str) -> str:
    """A part of the comment from its heading to the next."""
    made = comment(report)
    assert f"### {heading}" in made
    return made.split(f"### {heading}")[1].split("\n### ")[0]


def test_what_is_looser_stands_under_its_own_heading_and_in_the_first_sentences() -> None:
    report = calm_report(loosened=LOOSENED)
    assert "**This asks less than `main` in 3 places**, listed below." in comment(report).split("\n\n")[1]
    text = section(report, "Looser than on `main`")
    assert "The rules that decide here are those of `main`; once this is merged, they are these." in text
    rows = [" ".join(line.split()) for line in text.splitlines() if line.startswith("| `")]
    assert rows == [
        "| `compare.yaml` | `rule answers-not-worse, margin` | `0.05` | `0.2` |",
        "| `release.yaml` | `rule citations-valid` | `citations_valid: at most 0 failures` | `removed` |",
        "| `oloproof.yaml` | `identity.ignore_files` | – | `*.jsonl` |",
    ]
    assert "Looser" not in comment(calm_report())


def test_where_the_heads_own_policies_decide_nothing_is_said_of_the_bases() -> None:
    own = (PolicyFile("compare.yaml", "head"),)
    text = section(calm_report(loosened=LOOSENED, policies=own), "Looser than on `main`")
    assert "The rules that decide are those of this pull request." in text


def test_cases_and_evaluators_that_differ_are_named_with_what_stood_there() -> None:
    text = section(calm_report(suite=SUITE), "Cases and evaluators that differ")
    for line in (
        "1 case added: `seat_price`<br>",
        "1 case removed: `seat_count`<br>",
        "1 case renamed: `refund_1 → refund_annual`<br>",
        "3 cases edited: `trial_length`, `late_fee`, `one_of_many`<br>",
        "**1 removed case failed when last measured**: `seat_count`",
        "- `right` was called `answer_correct`",
        "- `polite` reads other data: `words.txt`",
        "- `brief` has other settings: `field`, `ignore_case`",
        "- `kind` has other code",
        "- `hit_rate_at_1` is new",
        "- `mrr_at_6` is gone; it is there on `main`",
        "Both sides are judged by the evaluators as they are here:",
    ):
        assert line in text.splitlines()
    rows = [" ".join(line.split()) for line in text.splitlines() if line.startswith("| `")]
    assert rows == [
        "| `trial_length` | `expected.answer`, `metadata.topic` | 21 days | three weeks |",
        "| `late_fee` | `expected.answer` | – | (empty) |",
    ]


def test_a_rule_that_its_policy_only_warns_of_is_not_told_as_what_blocks() -> None:
    warned = replace(not_worse_rule(OPEN, "interval_overlaps_margin"), rule="warned", tolerated=True)
    report = calm_report(gate=Gate(GateState.BLOCK, 3, (warned, NOTHING_RULE)))
    made = comment(report)
    icons = [line.split("|")[1].strip() for line in made.splitlines() if "`INSUFFICIENT_EVIDENCE`" in line]
    assert icons == ["⚠️", "⛔"]
    assert made.splitlines()[2].startswith("**Nothing was observed for `answer_correct`**: rule")
    assert SuiteOutcome("oloproof.yaml", report, None).reason == NOTHING_RULE.rule


def test_an_unchanged_suite_is_not_mentioned_and_an_unreadable_one_is() -> None:
    assert "that differ" not in comment(calm_report(suite=SuiteChanges()))
    text = section(
        calm_report(suite=SuiteChanges(problem="data/cases: no such file")),
        "Cases and evaluators that differ",
    )
    assert "it is not known which were removed or edited: data/cases: no such file" in text


def test_a_suite_change_that_a_person_must_see_is_the_first_thing_said() -> None:
    gate = Gate(GateState.BLOCK, 4, (*PASSING.decisions, REVIEWED))
    made = comment(calm_report(gate=gate, suite=SUITE))
    assert (
        "**A person has to look at this**: the policy asks for it, with 1 removed case, 2 edited cases here."
        in made
    )
    (row,) = [line for line in made.splitlines() if "`on_suite_change`" in line]
    assert row.startswith("| ⛔")
    assert "a person looks at removed and edited cases and evaluators" in row
    assert "`MANUAL_REVIEW`" in row


def test_a_rule_of_the_base_that_has_lost_its_evaluator_is_told_so() -> None:
    lost = Decision(
        "polite-enough", "polite", "min", "at least 80.0%", OPEN, "no_observations", counts={"missing": 0}
    )
    made = comment(calm_report(gate=Gate(GateState.BLOCK, 3, (replace(lost, always_blocks=True),))))
    assert "**Nothing yields `polite` here**, which rule `polite-enough` of `main` reads" in made


# ------------------------------------------------------------------------------------------------- size


def huge(text: str, count: int) -> Report:
    """A report with `count` of everything, each text being `text`."""
    case = new_failure("x", evidence=tuple(Evidence("u", Place(1, "f"), Place(2, "f")) for _ in range(4)))
    each = failures(*[case] * count, fixed=("f",) * count, still_failing=("s",) * count)
    row = PairedSliceRow("metadata.topic", "v", 5, tuple(paired(f"m{n}", 0.5, 0.4) for n in range(8)))
    report = blocked_report(
        gate=Gate(GateState.BLOCK, 5, (NOT_WORSE_OPEN,) * count, "baseline_failed", "line\n" * count),
        policies=(PolicyFile("p", "base"),) * count,
        warnings=(Warning("w", "w"),) * count,
        failures=(each,) * min(count, 40),
        errors=errors(*[errored_case("e")] * min(count, 20), total=count),
        comparison=comparison(
            metrics=(paired("m", 0.5, 0.4, excluded={str(n): 1 for n in range(9)}),) * count,
            slice_rows=(row,) * count,
            flips=tuple(Flips(f"c{n}", ("a",) * count, (), (), 0) for n in range(min(count, 40))),
            added=("a",) * count,
            removed=("r",) * count,
            edited=("e",) * count,
            evaluators=(EvaluatorChange("i", "code"),) * count,
        ),
        suite=SuiteChanges(
            added=("a",) * count,
            removed=("r",) * count,
            renamed=(RenamedCase("b", "c"),) * count,
            edited=(EditedCase("e", ("expected.answer",) * 6, "b", "a", 3),) * count,
            evaluators=(EvaluatorChange("i", "data", ("f",) * 9),) * count,
        ),
        loosened=(Loosening("f", "w", "b", "a"),) * count,
    )
    return poisoned(report, text)


@pytest.mark.parametrize(
    "text", ["x", "$" * 400, "`" * 400, "|" * 400, "\U000e0041" * 400, "\U0001f600" * 400, "`x" * 200]
)
@pytest.mark.parametrize("count", [2, 60])
def test_the_comment_always_fits(text: str, count: int) -> None:
    made = comment(huge(text, count))
    assert len(made.encode()) < MAX_BYTES
    assert made.startswith("## ⛔ Oloproof · ")
    page = Page(render(made))
    assert_inert(page, ELEMENTS)
    assert_tables_are_whole(page)
    assert "Rule" in page.text("th")


def test_a_long_error_is_cut_in_each_line() -> None:
    report = alone_report(gate=unfinished("baseline_failed", "\U0001f600" * 100_000))
    assert len(comment(report).encode()) < 6000


PROSE_FIELDS = {
    "project",
    "text",
    "asks",
    "detail",
    "ref",
    "name",
    "experiments",
    "fate",
    "among",
    "head_answer",
    "message",
    "before",
    "after",
    "problem",
}


def test_the_worst_text_for_each_place_fits() -> None:
    """A dollar sign takes most bytes in prose, an emoji in code."""
    made = comment(
        poisoned(huge("x", 60), lambda name: "$" * 400 if name in PROSE_FIELDS else "\U0001f600" * 400)
    )
    assert 30_000 < len(made.encode()) < MAX_BYTES


def test_the_least_telling_goes_first() -> None:
    """Slices, then answers, then ids of what still fails, then rows of failures; never heading or rules."""
    row = PairedSliceRow("topic", "v" * 60, 5, tuple(paired(f"m{n}", 0.5, 0.4) for n in range(8)))
    kept = []
    for ids, answer in ((3, 1), (3, 40), (3, 120), (300, 120), (300, 1)):
        for criteria in (1, 2, 3, 4, 6, 12):
            cases = [
                new_failure(f"case_{n}_" + "x" * 50, head_answer="$" * answer, base_answer="$" * answer)
                for n in range(25)
            ]
            still = tuple(f"still_{n}_" + "x" * 40 for n in range(ids))
            many = tuple(failures(*cases, criterion=f"c{n}", still_failing=still) for n in range(criteria))
            sizes = comparison(
                "a", metrics=tuple(paired(f"m{n}", 0.5, 0.4) for n in range(6)), slice_rows=(row,) * 200
            )
            made = comment(blocked_report(comparison=sizes, failures=many))
            assert "## ⛔" in made
            assert "`no-new-failures`" in made
            marks = ("200 slice values", "What they answered", "still_0_", "`case_24_")
            kept.append(tuple(mark in made for mark in marks))
    assert set(kept) == {
        (True, True, True, True),
        (False, True, True, True),
        (False, False, True, True),
        (False, False, False, True),
        (False, False, False, False),
    }


if __name__ == "__main__":
    for each in GOLDEN:
        (DATA / each).write_text(golden(each), encoding="utf-8")
        print(f"Wrote {DATA / each}")
