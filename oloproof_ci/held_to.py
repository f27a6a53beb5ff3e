"""What a pull request is held to: the policies that decide, and what it changes of them and of its own suite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oloproof.decisions.gate import also
from oloproof.decisions.records import Decision, Gate
from oloproof.errors import ConfigurationError, OloproofError
from oloproof.evaluators import AnyEvaluator
from oloproof.execution.host import AppHost
from oloproof.judge_checks import Labels
from oloproof.run_records import Run
from oloproof.settings.policy import Policy
from oloproof.settings.project import Project
from oloproof.suite import Suite, evaluator_records
from oloproof.workplace import Store
from oloproof_ci.adapting import adapt, review
from oloproof_ci.base_files import BaseFiles
from oloproof_ci.findings import LastResults
from oloproof_ci.gate_policies import GatePolicies
from oloproof_ci.label_changes import changed_labels
from oloproof_ci.loosening import loosened_policies, loosened_suite
from oloproof_ci.report import Loosening, PolicyFile, SuiteChanges, Warning
from oloproof_ci.suite_changes import changed_cases, differing_lines, with_evaluators


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
    files: BaseFiles,
    store: Store,
    labels: Labels,
) -> HeldTo:
    """What the head's run is held to. `base` is the app of the base, None when there is none; `files` are its files.
    `labels` are the head's."""
    changes = None if base is None else _changes(head, suite, base, files, store)
    evaluators = changes.evaluators if changes else ()
    adapted = adapt(chosen.deciding, head.evaluators, suite.slices, evaluators)
    loosened = loosened_policies(chosen.base, chosen.head, evaluators)
    relabelled: list[Loosening] = []
    if base is not None and changes is not None:
        relabelled = changed_labels(labels, base.project, files, evaluators)
        loosened += [*loosened_suite(changes, base.project, project), *relabelled]
    return HeldTo(
        policies=adapted.policies,
        files=chosen.files,
        more=(*adapted.lost, *review(chosen.deciding, changes, len(relabelled))),
        changes=changes,
        loosened=tuple(loosened),
        warnings=chosen.warnings,
    )


def _changes(head: Run, suite: Suite, base: AppHost, files: BaseFiles, store: Store) -> SuiteChanges:
    before: Sequence[AnyEvaluator]
    try:
        before = base.evaluators(store.outlines)
    except OloproofError:  # without their code, those that are the user's own are taken to have changed
        before = base.project.config.evaluators
    cases = _case_changes(suite, base.project, files, store)
    return with_evaluators(cases, head.evaluators, evaluator_records(before), files.content)


def _case_changes(suite: Suite, base: Project, files: BaseFiles, store: Store) -> SuiteChanges:
    shown = base.config.dataset
    content = files.content(base.dataset)
    if content is None:
        return SuiteChanges(problem=f"{shown}: no such case file")
    try:
        with files.reading():
            after, before = differing_lines(suite.facts.path, content)
    except OSError as error:
        raise ConfigurationError(f"{suite.facts.shown}: cannot be read: {error.strerror or error}") from None
    return changed_cases(after, before, shown, LastResults(store.runs).failed)
