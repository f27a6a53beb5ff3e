"""The gate: what all decisions together come to, and the exit code."""

from __future__ import annotations

from collections.abc import Sequence

from oloproof.decisions.records import Decision, Gate, GateState, RuleState
from oloproof.errors import (
    EXIT_INSUFFICIENT_EVIDENCE,
    EXIT_MANUAL_REVIEW,
    EXIT_OK,
    EXIT_RULE_FAILED,
    EXIT_UNFINISHED,
)
from oloproof.settings.policy import Policy

#: Which cause of a BLOCK names the exit code, most telling first.
_EXIT_BY_CAUSE = (
    (RuleState.FAIL, EXIT_RULE_FAILED),
    (RuleState.MANUAL_REVIEW, EXIT_MANUAL_REVIEW),
    (RuleState.INSUFFICIENT_EVIDENCE, EXIT_INSUFFICIENT_EVIDENCE),
)

#: The exit codes of a gate, the most telling first.
_EXITS = (EXIT_UNFINISHED, *(code for _, code in _EXIT_BY_CAUSE), EXIT_OK)


def gate_of(decided: Sequence[tuple[Policy, Sequence[Decision]]]) -> Gate:
    """The gate over one or several policies, each with the decisions of its rules that applied."""
    everything = tuple(decision for _, decisions in decided for decision in decisions)
    if not everything:
        return Gate(GateState.ALLOW, EXIT_OK, (), "no_policy")
    blocking: set[RuleState] = set()
    warning = False
    for policy, decisions in decided:
        for decision in decisions:
            if decision.state in policy.config.block_on or decision.always_blocks:
                blocking.add(decision.state)
            warning = warning or decision.state in policy.config.warn_on
    for state, code in _EXIT_BY_CAUSE:
        if state in blocking:
            return Gate(GateState.BLOCK, code, everything)
    return Gate(GateState.WARN if warning else GateState.ALLOW, EXIT_OK, everything)


def also(gate: Gate, more: Sequence[tuple[Policy, Decision]]) -> Gate:
    """The gate with further decisions, each under the policy that it is made for."""
    if not more:
        return gate
    rest = gate_of([(policy, [decision]) for policy, decision in more])
    both = (gate, rest)
    return Gate(
        state=max((each.state for each in both), key=list(GateState).index),
        exit_code=min((each.exit_code for each in both), key=_EXITS.index),
        decisions=(*gate.decisions, *rest.decisions),
        reason=None if gate.reason == "no_policy" else gate.reason,
        detail=gate.detail,
    )


def unfinished(reason: str, detail: str, decisions: Sequence[Decision] = ()) -> Gate:
    """The gate of an evaluation that did not come to its end: it blocks whatever the rules say."""
    return Gate(GateState.BLOCK, EXIT_UNFINISHED, tuple(decisions), reason, detail)


def at_least_warn(gate: Gate, reason: str, detail: str) -> Gate:
    """The same gate, not better than WARN, for a named reason."""
    state = GateState.WARN if gate.state is GateState.ALLOW else gate.state
    return Gate(state, gate.exit_code, gate.decisions, reason, detail)
