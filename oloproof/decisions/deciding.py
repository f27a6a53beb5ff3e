"""Deciding policies on a run, or on a run paired with its baseline."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from oloproof.comparison import Comparison
from oloproof.decisions.claims import claims_of
from oloproof.decisions.families import holm
from oloproof.decisions.gate import ended, gate_of
from oloproof.decisions.grounds import Grounds, PairGrounds, Rows, RunGrounds, place_of
from oloproof.decisions.outlook import outlook_of
from oloproof.decisions.records import Decision, Gate, JudgeStanding, RuleState
from oloproof.decisions.rules import Facts, decide
from oloproof.decisions.standing import standing_of
from oloproof.errors import ConfigurationError
from oloproof.judges.checks import JudgeCheck
from oloproof.paired_runs import PairedRuns
from oloproof.run_records import EvaluatorRecord, Run
from oloproof.settings.policy import Policy, SuiteNames, check_ids, check_names
from oloproof.settings.rules import AnyRule, NewFailuresRule, ObservedCountRule


def check_policies(
    policies: Sequence[Policy],
    evaluators: Sequence[EvaluatorRecord],
    slices: Sequence[str],
    reads: Sequence[str],
) -> None:
    """Refuse rules on what the suite does not have, and policies of which no rule applies to what is decided.

    Raises ConfigurationError; best called before anything runs.
    """
    names = SuiteNames(
        criteria=[e.criterion for e in evaluators],
        pass_fail=[e.criterion for e in evaluators if e.kind == "pass_fail"],
        slices=slices,
    )
    for policy in policies:
        check_names(policy, names)
    check_ids(policies)
    if policies and not any(rule.reads in reads for policy in policies for rule in policy.config.rules):
        files = ", ".join(str(policy.path) for policy in policies)
        what = {"run": "a single run", "pair": "a comparison"}
        kinds = " or ".join(what[name] for name in reads)
        raise ConfigurationError(
            f"{files}: no rule applies to {kinds}, so nothing would gate; add a rule that does, or name another policy"
        )


def comparing_confidence(policies: Sequence[Policy]) -> float:
    """What the figures of a comparison are told at: the confidence of the first policy that compares."""
    for policy in policies:
        if any(rule.reads == "pair" for rule in policy.config.rules):
            return policy.config.confidence_level
    return policies[0].config.confidence_level if policies else 0.95


#: What is known of judges, by criterion.
Checks = Mapping[str, JudgeCheck]
NO_CHECKS: Checks = {}


def decide_run(
    run: Run,
    policies: Sequence[Policy],
    rows: Rows,
    checks: Checks = NO_CHECKS,
    *,
    foresee: bool = False,
) -> Gate:
    """The gate of one run under its policies' rules on single runs. `rows` gives the run's cases anew each time,
    `checks` are what is known of judges. With `foresee` each rule that is open says what would settle it."""
    grounds = _run_grounds(run, policies, rows, checks)
    decided = [(policy, decisions_of(policy, {"run": grounds.of}, foresee)) for policy in policies]
    return ended(gate_of(decided), policies, [run])


def decide_comparison(
    pairs: PairedRuns,
    comparison: Comparison,
    policies: Sequence[Policy],
    rows: Rows,
    unstable: Mapping[str, Collection[str]] | None = None,
    checks: Checks = NO_CHECKS,
    *,
    foresee: bool = False,
) -> Gate:
    """The gate of a pair: rules on the pair, and rules on a single run for the candidate. `rows` gives the candidate's
    cases; `comparison` is that of the pairs at any confidence; `unstable` names by criterion the new failures that
    passed when they were repeated, `checks` are what is known of the candidate's judges."""
    alone = _run_grounds(pairs.candidate, policies, rows, checks)
    paired = PairGrounds(pairs, comparison, unstable or {}, checks)
    decided = []
    for policy in policies:
        sources = {"run": alone.of, "pair": _under(policy, paired)}
        decided.append((policy, decisions_of(policy, sources, foresee)))
    return ended(gate_of(decided), policies, [pairs.candidate, pairs.baseline])


#: What gives a rule its grounds.
Source = Callable[[AnyRule], Grounds]


def _run_grounds(run: Run, policies: Sequence[Policy], rows: Rows, checks: Checks) -> RunGrounds:
    rules = [rule for policy in policies for rule in policy.config.rules if rule.reads == "run"]
    return RunGrounds(run, rows, {place_of(rule) for rule in rules}, checks)


def _under(policy: Policy, paired: PairGrounds) -> Source:
    return lambda rule: paired.of(rule, policy)


def decisions_of(policy: Policy, sources: Mapping[str, Source], foresee: bool = False) -> list[Decision]:
    """The policy's rules that there is a source for, decided in the order of the file; `sources` gives the grounds of
    rules on a run and on a pair."""
    rules = [rule for rule in policy.config.rules if rule.reads in sources]
    grounds = [sources[rule.reads](rule) for rule in rules]
    standings = [_standing(rule, ground, policy) for rule, ground in zip(rules, grounds, strict=True)]
    adjusted = _adjusted(rules, grounds, standings)
    decisions = []
    for rule, ground, judge, p in zip(rules, grounds, standings, adjusted, strict=True):
        decision = replace(decide(rule, _facts(rule, ground, policy, judge, p)), judge=judge)
        if foresee and decision.state is RuleState.INSUFFICIENT_EVIDENCE:
            questions = sum(other.family == rule.family for other in rules) if rule.family else 1
            outlook = outlook_of(rule, ground, policy.config.confidence_level, decision.reason, questions)
            decision = replace(decision, outlook=outlook)
        decisions.append(decision)
    return decisions


def _standing(rule: AnyRule, ground: Grounds, policy: Policy) -> JudgeStanding | None:
    """How the judge stands that a rule reads; None when it reads another evaluator."""
    if ground.validated:
        return None
    check = ground.check or JudgeCheck(rule.metric)
    return standing_of(check, policy.config.judges, policy.config.confidence_level)


def _facts(
    rule: AnyRule, ground: Grounds, policy: Policy, judge: JudgeStanding | None, adjusted_p: float | None
) -> Facts:
    evidence = ground.evidence
    counting = isinstance(rule, ObservedCountRule | NewFailuresRule)
    interval = None
    if evidence.observed and not counting:
        interval = evidence.interval(policy.config.confidence_level)
    return Facts(
        observed=evidence.observed,
        missing=evidence.missing,
        estimate=None if counting else evidence.estimate,
        interval=interval,
        failures=ground.failures,
        unstable=ground.unstable,
        identical=ground.identical,
        validated=judge is None or judge.met,
        missing_limit=policy.config.missing_limit_of(rule),
        adjusted_p=adjusted_p,
    )


def _adjusted(
    rules: Sequence[AnyRule], grounds: Sequence[Grounds], judges: Sequence[JudgeStanding | None]
) -> list[float | None]:
    """For each rule of a family of several the adjusted p-value of its failing; rules that count are no questions to
    correct for, since they claim nothing beyond the cases seen. What a judge says on which no rule may rest makes no
    other rule's failing more likely."""
    members: dict[str, list[int]] = {}
    for index, rule in enumerate(rules):
        if rule.family is not None and not isinstance(rule, ObservedCountRule | NewFailuresRule):
            members.setdefault(rule.family, []).append(index)
    adjusted: list[float | None] = [None] * len(rules)
    for family in members.values():
        if len(family) > 1:
            found = holm([_p_of_failing(rules[index], grounds[index], judges[index]) for index in family])
            for index, p in zip(family, found, strict=True):
                adjusted[index] = p
    return adjusted


def _p_of_failing(rule: AnyRule, ground: Grounds, judge: JudgeStanding | None) -> float:
    assert not isinstance(rule, ObservedCountRule | NewFailuresRule)
    if not ground.evidence.observed or (judge is not None and not judge.met):
        return 1.0
    return claims_of(rule).p_of_failing(ground.evidence)
