"""Deciding policies on a run, or on a run paired with its baseline."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence

from oloproof.comparison import Comparison, PairedMetric
from oloproof.decisions.gate import gate_of, unfinished
from oloproof.decisions.records import Decision, Gate
from oloproof.decisions.rules import PairedFacts, decide_on_pair, decide_on_run
from oloproof.errors import ConfigurationError
from oloproof.measurement.metrics import interval_of
from oloproof.records import Interval, Metric, State
from oloproof.run_records import CaseRow, EvaluatorRecord, Run
from oloproof.settings.policy import Policy, SuiteNames, check_names

Rows = Callable[[], Iterable[CaseRow]]
#: What a policy's rules on a pair came to, and what its metrics were compared at.
ComparisonAt = Callable[[float], Comparison]


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
    if policies and not any(rule.reads in reads for policy in policies for rule in policy.config.rules):
        files = ", ".join(str(policy.path) for policy in policies)
        what = {"run": "a single run", "pair": "a comparison"}
        kinds = " or ".join(what[name] for name in reads)
        raise ConfigurationError(
            f"{files}: no rule applies to {kinds}, so nothing would gate; add a rule that does, or name another policy"
        )


def run_ended_badly(run: Run) -> Gate | None:
    """The gate of a run that did not come to its end or observed nothing, else None."""
    if not run.finished or run.attempted < run.cases:
        return unfinished("partial_run", f"{run.attempted} of {run.cases} cases were attempted")
    if run.metrics and not any(metric.observed for metric in run.metrics):
        return unfinished("no_observations", f"none of {run.cases} cases gave anything that could be judged")
    return None


def decide_run(run: Run, policies: Sequence[Policy], rows: Rows) -> Gate:
    """The gate of one run under its policies' rules on single runs. `rows` gives the run's cases anew each time."""
    bad = run_ended_badly(run)
    decided = [(policy, decide_run_rules(run, policy, rows)) for policy in policies]
    gate = gate_of(decided)
    return gate if bad is None else unfinished(bad.reason or "", bad.detail, gate.decisions)


def decide_run_rules(run: Run, policy: Policy, rows: Rows) -> list[Decision]:
    decisions = []
    for rule in policy.config.rules:
        metric = run.metric(rule.metric)
        if rule.reads == "run" and metric is not None:
            interval = _interval_at(run, metric, policy.config.confidence_level, rows)
            decisions.append(decide_on_run(rule, metric, interval))
    return decisions


def decide_comparison(
    comparison: Comparison,
    candidate: Run,
    baseline: Run,
    policies: Sequence[Policy],
    comparison_at: ComparisonAt,
    rows: Rows,
    unstable: Mapping[str, int] | None = None,
) -> Gate:
    """The gate of a pair: rules on the pair, and rules on a single run for the candidate. `rows` gives the
    candidate's cases; `comparison_at` the comparison at another confidence than the one at hand."""

    def at(confidence: float) -> Comparison:
        return comparison if confidence == comparison.confidence else comparison_at(confidence)

    decided = [
        (policy, [*decide_run_rules(candidate, policy, rows), *decide_pair_rules(at, policy, unstable)])
        for policy in policies
    ]
    gate = gate_of(decided)
    for run in (candidate, baseline):
        bad = run_ended_badly(run)
        if bad is not None:
            return unfinished(bad.reason or "", f"{run.id}: {bad.detail}", gate.decisions)
    return gate


def decide_pair_rules(
    comparison_at: ComparisonAt, policy: Policy, unstable: Mapping[str, int] | None = None
) -> list[Decision]:
    """The policy's rules on pairs. `comparison_at` gives the comparison at a confidence; `unstable` says for each
    criterion how many of its new failures passed when they were repeated."""
    decisions = []
    comparison: Comparison | None = None
    for rule in policy.config.rules:
        if rule.reads != "pair":
            continue
        comparison = comparison or comparison_at(policy.config.confidence_level)
        metric = comparison.metric(rule.metric)
        facts = _facts(comparison, rule.metric, metric, (unstable or {}).get(rule.metric, 0))
        decisions.append(decide_on_pair(rule, facts))
    return decisions


def _facts(comparison: Comparison, criterion: str, metric: PairedMetric | None, unstable: int) -> PairedFacts:
    if metric is None:
        return PairedFacts(None, None, 0, 0)
    flips = comparison.flips_of(criterion)
    return PairedFacts(
        difference=metric.difference,
        interval=metric.interval,
        paired=metric.paired,
        missing=metric.missing,
        new_failures=len(flips.new_failures) if flips else 0,
        unstable=unstable,
        identical=comparison.identical,
    )


def _interval_at(run: Run, metric: Metric, confidence: float, rows: Rows) -> Interval | None:
    if metric.interval is None or metric.interval.confidence == confidence:
        return metric.interval
    index = run.evaluator_index(metric.criterion)
    assert index is not None
    values = array("d")
    for row in rows():
        judgment = row.judgments[index]
        if judgment.state is State.OBSERVED and judgment.value is not None:
            values.append(judgment.value)
    return interval_of(values, metric.missing, metric.kind == "rate", confidence)
