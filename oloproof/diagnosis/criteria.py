"""Whose failures are followed up when nobody names a criterion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from oloproof.run_records import EvaluatorRecord
from oloproof.settings.policy import Policy
from oloproof.settings.rules import NewFailuresRule


def followed_criteria(
    policies: Iterable[Policy], configured: str | None, evaluators: Sequence[EvaluatorRecord]
) -> list[str]:
    """The criteria whose new failures a rule counts and the one that the configuration names; without any the first
    pass/fail criterion that judges the answer, or the first at all."""
    rules = [rule for policy in policies for rule in policy.config.rules]
    named = [rule.metric for rule in rules if isinstance(rule, NewFailuresRule)]
    if configured:
        named.append(configured)
    if named:
        return list(dict.fromkeys(named))
    pass_fail = [e for e in evaluators if e.kind == "pass_fail"]
    first = next((e for e in pass_fail if e.reads == "answer"), next(iter(pass_fail), None))
    return [] if first is None else [first.criterion]
