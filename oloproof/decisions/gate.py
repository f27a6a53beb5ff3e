"""The gate: what all decisions together come to, and the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from oloproof.decisions.records import Decision, Gate, GateState, RuleState
from oloproof.errors import (
    EXIT_INSUFFICIENT_EVIDENCE,
    EXIT_MANUAL_REVIEW,
    EXIT_OK,
    EXIT_RULE_FAILED,
    EXIT_UNFINISHED,
)
from oloproof.run_records import Run
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
    everything: list[Decision] = []
    blocking: set[RuleState] = set()
    warning = False
    for policy, decisions in decided:
        for decision in decisions:
            blocks = decision.state in policy.config.block_on or decision.always_blocks
            if blocks:
                blocking.add(decision.state)
            warning = warning or decision.state in policy.config.warn_on
            tolerated = not blocks and decision.state is not RuleState.PASS
            everything.append(replace(decision, tolerated=tolerated))
    if not everything:
        return Gate(GateState.ALLOW, EXIT_OK, (), "no_policy")
    for state, code in _EXIT_BY_CAUSE:
        if state in blocking:
            return Gate(GateState.BLOCK, code, tuple(everything))
    return Gate(GateState.WARN if warning else GateState.ALLOW, EXIT_OK, tuple(everything))


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


def ended(gate: Gate, policies: Sequence[Policy], runs: Sequence[Run]) -> Gate:
    """The gate in the light of how the runs it rests on came to their ends; the first is the one that is decided.

    Without an observation, or with cases that were never attempted, it blocks with exit code 5, unless every policy
    only warns of the latter. It blocks with 3 when more cases of the first errored than a policy lets be missing,
    since rules may read what an error leaves whole, such as retrievals.
    """
    naming = len(runs) > 1
    for run in runs:
        name = f"{run.id}: " if naming else ""
        if not run.finished or run.attempted < run.cases:
            detail = f"{name}{run.attempted} of {run.cases} cases were attempted"
            lenient = policies and all(policy.config.on_partial_run == "warn" for policy in policies)
            if not lenient or not run.attempted:
                return unfinished("partial_run", detail, gate.decisions)
            gate = at_least_warn(gate, "partial_run", detail)
        elif run.metrics and not any(metric.observed for metric in run.metrics):
            detail = f"{name}none of {run.cases} cases gave anything that could be judged"
            return unfinished("no_observations", detail, gate.decisions)
    run = runs[0]
    limit = min((policy.config.max_missing_fraction for policy in policies), default=1.0)
    if gate.state is not GateState.BLOCK and run.errored > limit * run.attempted:
        detail = f"{run.errored} of {run.attempted} cases gave no answer"
        return Gate(
            GateState.BLOCK, EXIT_INSUFFICIENT_EVIDENCE, gate.decisions, "missingness_exceeds_policy", detail
        )
    return gate


def unfinished(reason: str, detail: str, decisions: Sequence[Decision] = ()) -> Gate:
    """The gate of an evaluation that did not come to its end: it blocks whatever the rules say."""
    return Gate(GateState.BLOCK, EXIT_UNFINISHED, tuple(decisions), reason, detail)


def at_least_warn(gate: Gate, reason: str, detail: str) -> Gate:
    """The same gate, not better than WARN, for a named reason."""
    state = GateState.WARN if gate.state is GateState.ALLOW else gate.state
    return Gate(state, gate.exit_code, gate.decisions, reason, detail)
