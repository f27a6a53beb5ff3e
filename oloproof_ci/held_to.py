"""What a pull request is held to: the policies that decide, and what it changes of them and of its own suite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from oloproof.decisions.gate import also
from oloproof.decisions.records import Decision, Gate
from oloproof.errors import OloproofError
from oloproof.evaluation import Suite, evaluator_records
from oloproof.evaluators import AnyEvaluator
from oloproof.execution.host import AppHost
from oloproof.run_records import Run
from oloproof.settings.policy import Policy
from oloproof.settings.project import Project
from oloproof.workplace import Store
from oloproof_ci.adapting import adapt, review
from oloproof_ci.findings import LastResults
from oloproof_ci.gate_policies import GatePolicies
from oloproof_ci.loosening import loosened_policies, loosened_suite
from oloproof_ci.report import Loosening, PolicyFile, SuiteChanges, Warning
from oloproof_ci.suite_changes import changed_cases, with_evaluators


@dataclass(frozen=True)
class HeldTo:
    """`policies` decide the head; `more` are the decisions that no measurement makes. `changes` is None when the base
    has no suite."""

    policies: tuple[Policy, ...]
    files: tuple[PolicyFile, ...]
    more: tuple[tuple[Policy, Decision], ...]
    changes: SuiteChanges | None
    loosened: tuple[Loosening, ...]
    warnings: tuple[Warning, ...]

    def gate(self, measured: Gate) -> Gate:
        """The gate of what was measured, with what no measurement decides."""
        return also(measured, self.more)


NOTHING = HeldTo((), (), (), None, (), ())


def alone(policies: Sequence[Policy]) -> HeldTo:
    """What a run is held to that is compared with nothing: its own policies."""
    files = tuple(PolicyFile(str(policy.path), "head") for policy in policies)
    return HeldTo(tuple(policies), files, (), None, (), ())


def held_to(
    chosen: GatePolicies,
    head: Run,
    suite: Suite,
    project: Project,
    base: AppHost | None,
    tree: Path,
    store: Store,
) -> HeldTo:
    """What the head's run is held to. `base` is the app of the base, checked out in `tree`; None when there is none."""
    changes = None if base is None else _changes(head, suite, base, tree, store)
    evaluators = changes.evaluators if changes else ()
    adapted = adapt(chosen.deciding, head.evaluators, suite.slices, evaluators)
    loosened = loosened_policies(chosen.base, chosen.head, evaluators)
    if base is not None and changes is not None:
        loosened += loosened_suite(changes, base.project, project)
    return HeldTo(
        policies=adapted.policies,
        files=chosen.files,
        more=(*adapted.lost, *review(chosen.deciding, changes)),
        changes=changes,
        loosened=tuple(loosened),
        warnings=chosen.warnings,
    )


def _changes(head: Run, suite: Suite, base: AppHost, tree: Path, store: Store) -> SuiteChanges:
    changes = changed_cases(suite.facts, base.project, LastResults(store.runs).failed)
    before: Sequence[AnyEvaluator]
    try:
        before = base.evaluators(store.outlines)
    except OloproofError:  # without their code, those that are the user's own are taken to have changed
        before = base.project.config.evaluators
    return with_evaluators(changes, head.evaluators, evaluator_records(before), tree)
