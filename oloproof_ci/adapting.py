"""The base's policies on the head's suite: rules that follow a renamed evaluator, rules that have lost what they read,
and a person's look at what the suite has become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from oloproof.decisions.records import Decision, RuleState
from oloproof.pairing import EvaluatorChange
from oloproof.run_records import EvaluatorRecord
from oloproof.settings.policy import Policy, PolicyConfig
from oloproof.settings.rules import AnyRule, DifferenceRule
from oloproof_ci.report import SuiteChanges

#: The kind of decision that is no rule's: what `on_suite_change: review` asks.
SUITE_CHANGE = "suite_change"


@dataclass(frozen=True)
class AdaptedPolicies:
    """Policies that the head's suite can be held to. `lost` are decisions on rules that cannot be decided on it, each
    with its policy."""

    policies: tuple[Policy, ...]
    lost: tuple[tuple[Policy, Decision], ...]


def adapt(
    policies: Sequence[Policy],
    evaluators: Sequence[EvaluatorRecord],
    slices: Sequence[str],
    changes: Sequence[EvaluatorChange],
) -> AdaptedPolicies:
    """Policies of the base for the head's evaluators and slices. A rule on a renamed evaluator reads its new name; one
    on what the head no longer has blocks, since it saw nothing."""
    renamed = {change.detail[0]: change.criterion for change in changes if change.change == "renamed"}
    kinds = {evaluator.criterion: evaluator.kind for evaluator in evaluators}
    kept: list[Policy] = []
    lost: list[tuple[Policy, Decision]] = []
    for policy in policies:
        rules = []
        for rule in policy.config.rules:
            here = rule.model_copy(update={"metric": renamed.get(rule.metric, rule.metric)})
            if _readable(here, policy.config, kinds, slices):
                rules.append(here)
            else:
                lost.append((policy, _lost(rule)))
        if rules:
            kept.append(replace(policy, config=policy.config.model_copy(update={"rules": tuple(rules)})))
    return AdaptedPolicies(tuple(kept), tuple(lost))


def _readable(rule: AnyRule, policy: PolicyConfig, kinds: Mapping[str, str], slices: Sequence[str]) -> bool:
    """Whether a suite has what a rule reads, in a form that it can read."""
    kind = kinds.get(rule.metric)
    exact = isinstance(rule, DifferenceRule) and policy.method_of(rule) == "exact"
    if kind is None or (kind != "pass_fail" and (rule.counts_failures or exact)):
        return False
    return rule.slice is None or rule.slice[0] in slices


def _lost(rule: AnyRule) -> Decision:
    return Decision(
        rule=rule.id,
        metric=rule.metric,
        kind=rule.kind,
        asks=rule.asks(),
        state=RuleState.INSUFFICIENT_EVIDENCE,
        reason="no_observations",
        counts={"missing": 0},
        always_blocks=True,
        scope=rule.scope,
        family=rule.family,
    )


def review(
    policies: Sequence[Policy], changes: SuiteChanges | None, labels: int = 0
) -> list[tuple[Policy, Decision]]:
    """What a policy with `on_suite_change: review` asks of a pull request that removes or edits cases or evaluators, or
    may have: a person. Added and renamed cases, and added evaluators, need none. So many files of `labels` differ, of
    which added ones count too, since they may let a judge decide."""
    if changes is None:
        return []
    evaluators = sum(change.change != "added" for change in changes.evaluators)
    counts = {"removed": len(changes.removed), "edited": len(changes.edited), "evaluators": evaluators}
    if labels:
        counts["labels"] = labels
    if not any(counts.values()) and not changes.problem:
        return []
    found = Decision(
        rule="on_suite_change",
        metric="",
        kind=SUITE_CHANGE,
        asks="a person looks at removed and edited cases and evaluators",
        state=RuleState.MANUAL_REVIEW,
        reason="policy_requires_review",
        counts=counts,
    )
    return [(policy, found) for policy in policies if policy.config.on_suite_change == "review"][:1]
