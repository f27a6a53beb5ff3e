"""Measuring a work tree against its base: both are evaluated on the head's cases, paired, diagnosed, decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from oloproof.canonical import content_id
from oloproof.comparison import Comparison
from oloproof.decisions.deciding import check_policies, comparing_confidence, decide_comparison, decide_run
from oloproof.decisions.gate import at_least_warn, unfinished
from oloproof.decisions.records import Gate
from oloproof.diagnosis.criteria import followed_criteria
from oloproof.errors import ConfigurationError, UnfinishedError
from oloproof.execution.host import AppHost
from oloproof.jsonform import to_json
from oloproof.judge_checks import Labels, checks_of, labels_of, to_ask_about
from oloproof.paired_runs import PairedRuns
from oloproof.run_records import Run
from oloproof.settings.cases import CaseFileFacts, iter_cases
from oloproof.settings.policy import Policy
from oloproof.settings.project import Project
from oloproof.suite import Suite, evaluator_records
from oloproof.workplace import (
    Store,
    evaluate,
    opened_store,
    scan_suite,
    system_clock,
)
from oloproof_ci.base_app import Baseline, hosted_base, lodged
from oloproof_ci.base_files import BaseFiles
from oloproof_ci.earlier import EarlierResults, is_whole, reusable_run, run_inputs, seconds_since
from oloproof_ci.findings import case_lines, find_errors, named_by_commit
from oloproof_ci.gate_policies import GatePolicies, PolicyFiles
from oloproof_ci.git import Base, Repository
from oloproof_ci.held_to import NOTHING, alone, held_to
from oloproof_ci.lodging import Lodgings, OwnLodgings
from oloproof_ci.new_failures import Measured, NewFailures, Scope
from oloproof_ci.places import CheckoutPlace
from oloproof_ci.report import REPORT_VERSION, Commit, CriterionFailures, Report, Warning
from oloproof_ci.sides import retrieval_warnings, side_of
from oloproof_ci.worktrees import without_worktree, worktree


class Watch(Protocol):
    """Is told how a run goes on: what is measured, how many cases are done, of how many."""

    def __call__(self, what: str) -> Callable[[int, int], None]: ...


class Preview:
    """One comparison of a work tree with its base. Everything outside is passed in."""

    def __init__(
        self,
        repository: Repository,
        project: Project,
        policies: PolicyFiles,
        watch: Watch,
        head: Commit | None = None,
        lodgings: Lodgings | None = None,
        earlier: EarlierResults | None = None,
        scope: Scope = "new-failures",
    ) -> None:
        """`head` is the commit that is reported on, when that is not the one checked out, as for a test merge. `scope`
        says which failures are diagnosed."""
        self._scope: Scope = scope
        self._earlier = earlier
        self._lodgings = lodgings or OwnLodgings()
        self._repository = repository
        self._project = project
        self._policy_files = policies
        self._watch = watch
        self._head = head
        self._dirty = False
        self._held_to = NOTHING
        self._labels: Labels = {}

    def report(self, base: Base) -> Report:
        """Measure both sides. Raises ConfigurationError when the head cannot be measured as it is written; a base
        that cannot be measured is an outcome of its own."""
        self._dirty = self._repository.is_dirty()
        project = self._project
        config = self._repository.inside(project.root) / project.path.name
        config = self._repository.place_at(base.sha, config)
        with self._lodgings.reading():
            policies = self._policy_files.against(self._repository, base, config)
        lodging = self._lodgings.of(project)
        with lodged(project, lodging) as host, worktree(self._repository, base.sha) as tree:
            facts, name = self._checked(host, policies.head)
            place = CheckoutPlace(self._repository.root, tree)
            with (
                hosted_base(tree / config, place, self._lodgings, host) as (
                    base_host,
                    problem,
                ),
                self._opened_store(host, name) as store,
            ):
                suite = Suite.of(project, facts, name, host.evaluators(store.outlines))
                return self._measure(suite, host, base, base_host, problem, store, policies, tree)

    def report_alone(self) -> Report:
        """Measure the head and compare it with nothing: what a branch's own run is for."""
        self._dirty = self._repository.is_dirty()
        project = self._project
        with self._lodgings.reading():
            policies = self._policy_files.here()
        with lodged(project, self._lodgings.of(project)) as host:
            facts, name = self._checked(host, policies)
            with self._opened_store(host, name) as store:
                suite = Suite.of(project, facts, name, host.evaluators(store.outlines))
                run = self._evaluate_head(suite, host, store, policies)
                self._held_to = alone(policies)
                checks = checks_of(run.evaluators, self._labels, store)
                gate = decide_run(run, policies, lambda: store.runs.rows(run.id), checks)
                head = Measured(host, run)
                if self._earlier and self._head and not self._dirty and is_whole(run):
                    self._earlier.seed(suite.project, self._head.sha, run_inputs(suite, run.system), run.id)
                return self._report(
                    store, suite, head, None, None, gate, None, (), retrieval_warnings(run, None)
                )

    @contextmanager
    def _opened_store(self, host: AppHost, name: str) -> Iterator[Store]:
        """The store, with what earlier jobs have left for it."""
        project, folder = self._project, self._lodgings.store(self._project)
        if self._earlier is not None:
            suite = project.config.project or name
            self._earlier.restore(project, suite, host.index_version, folder)
        with opened_store(folder) as store:
            yield store

    def _checked(self, host: AppHost, policies: Sequence[Policy]) -> tuple[CaseFileFacts, str]:
        """The case file's facts and the system's name, once everything that can be checked beforehand was."""
        project = self._project
        with self._lodgings.reading():
            facts = scan_suite(project)
            self._labels = labels_of(project.root, evaluator_records(project.config.evaluators))
        name = host.check()
        host.check_evaluators()
        records = evaluator_records(project.config.evaluators)
        check_policies(policies, records, project.config.slices, ("run", "pair"))
        return facts, name

    def _measure(
        self,
        suite: Suite,
        host: AppHost,
        base: Base,
        base_host: AppHost | None,
        base_problem: Baseline | None,
        store: Store,
        policies: GatePolicies,
        tree: Path,
    ) -> Report:
        baseline = base_problem or self._evaluate_base(suite, base_host, base, store, host)
        run = self._evaluate_head(suite, host, store, policies.deciding)
        head = Measured(host, run)
        files = BaseFiles(self._repository, base.sha, tree, self._lodgings.reading)
        self._held_to = held_to(policies, run, suite, self._project, base_host, files, store, self._labels)
        if baseline.measured is None:
            gate = self._held_to.gate(self._gate_without_base(run, store, baseline))
            return self._report(store, suite, head, base, None, gate, None, (), retrieval_warnings(run, None))
        report = self._compared(suite, head, base, baseline.measured, store)
        return (
            report
            if report.base is None
            else replace(report, base=replace(report.base, since=baseline.since))
        )

    def _evaluate_head(self, suite: Suite, host: AppHost, store: Store, policies: Sequence[Policy]) -> Run:
        """The head's run. Its judges are asked about labelled answers too, where the policies want to know."""
        about = to_ask_about(self._project, policies, self._labels)
        return evaluate(suite, host, store, self._watch("head"), about=about)

    def _evaluate_base(
        self, suite: Suite, host: AppHost | None, base: Base, store: Store, judge: AppHost
    ) -> Baseline:
        """The base's run, judged by the head's evaluators."""
        assert host is not None
        try:
            run = self._earlier_run(suite, host, base, store)
            if run is not None:
                return Baseline(Measured(host, run), since=seconds_since(run, system_clock().seconds()))
            run = evaluate(suite, host, store, self._watch(f"base {base.sha[:7]}"), judge)
        except (ConfigurationError, UnfinishedError) as error:
            store.database.commit()
            return Baseline(None, "baseline_failed", str(error))
        return Baseline(Measured(host, run))

    def _earlier_run(self, suite: Suite, host: AppHost, base: Base, store: Store) -> Run | None:
        """The run that an earlier job made on the base's commit, if it is what a run would come to now."""
        if self._earlier is None:
            return None
        system = host.system(store.outlines)
        inputs, folder = run_inputs(suite, system), self._lodgings.store(self._project)
        found = self._earlier.baseline(suite.project, base.sha, inputs, folder)
        return None if found is None else reusable_run(found, store, suite, system)

    def _gate_without_base(self, run: Run, store: Store, baseline: Baseline) -> Gate:
        checks = checks_of(run.evaluators, self._labels, store)
        rows = store.runs.rows
        gate = decide_run(run, self._held_to.policies, lambda: rows(run.id), checks, foresee=True)
        if baseline.reason == "baseline_absent":
            return at_least_warn(gate, baseline.reason, baseline.detail)
        return unfinished(baseline.reason, baseline.detail, gate.decisions)

    # -------------------------------------------------------------------------------- comparison

    def _compared(self, suite: Suite, head: Measured, base: Base, baseline: Measured, store: Store) -> Report:
        rows = store.runs.rows
        pairs = PairedRuns(head.run, baseline.run, rows(head.run.id), rows(baseline.run.id))
        comparison = pairs.comparison(comparing_confidence(self._held_to.policies))
        flips = [each for name in self._criteria(suite) if (each := comparison.flips_of(name)) is not None]
        lines = case_lines(suite.facts, comparison)
        looking = NewFailures(head, baseline, store, self._project.config, lines, self._watch, self._scope)
        found = looking.describe(flips)
        unstable = {f.criterion: {case.case_id for case in f.new_failures if case.unstable} for f in found}
        decided = decide_comparison(
            pairs,
            comparison,
            self._held_to.policies,
            lambda: store.runs.rows(head.run.id),
            unstable,
            checks_of(head.run.evaluators, self._labels, store),
            foresee=True,
        )
        gate = self._held_to.gate(decided)
        record = _comparison_record(comparison, gate, found)
        store.runs.put_document(content_id(record), "comparison", system_clock().seconds(), record)
        stopped = (replace(each, text=without_worktree(each.text, base.sha)) for each in looking.warnings)
        warnings = (*retrieval_warnings(head.run, baseline.run), *stopped)
        return self._report(store, suite, head, base, baseline, gate, comparison, found, warnings)

    def _criteria(self, suite: Suite) -> list[str]:
        """Whose new failures are reported."""
        configured = self._project.config.diagnosis.criterion
        return followed_criteria(self._held_to.policies, configured, evaluator_records(suite.evaluators))

    # ------------------------------------------------------------------------------------ report

    def _report(
        self,
        store: Store,
        suite: Suite,
        head: Measured,
        base: Base | None,
        baseline: Measured | None,
        gate: Gate,
        comparison: Comparison | None,
        failures: tuple[CriterionFailures, ...],
        warnings: tuple[Warning, ...],
    ) -> Report:
        errors = find_errors(
            store.runs,
            head.run,
            None if baseline is None else baseline.run,
            self._criteria(suite),
            lambda: iter_cases(suite.facts),
        )
        return Report(
            version=REPORT_VERSION,
            project=suite.project,
            config=suite.config,
            dataset=suite.facts.shown,
            policies=self._held_to.files,
            gate=gate if base is None else replace(gate, detail=without_worktree(gate.detail, base.sha)),
            head=side_of(head.run, self._head or Commit("work tree", self._repository.head()), self._dirty),
            base_commit=None if base is None else Commit(base.ref, base.sha),
            base=None
            if base is None or baseline is None
            else side_of(baseline.run, Commit(base.ref, base.sha), False),
            comparison_id=None
            if comparison is None
            else content_id(_comparison_record(comparison, gate, failures)),
            comparison=comparison,
            failures=failures,
            errors=errors if base is None else named_by_commit(errors, base.sha),
            warnings=(*self._held_to.warnings, *warnings),
            suite=self._held_to.changes,
            loosened=self._held_to.loosened,
            judges=head.host.judge_costs,
        )


def _comparison_record(
    comparison: Comparison, gate: Gate, failures: Sequence[CriterionFailures]
) -> dict[str, Any]:
    """A comparison as it is stored, under the digest of this: what was found, what it hangs on, what was decided."""
    swaps = [to_json(each.swap) for each in failures if each.swap is not None]
    return {"comparison": to_json(comparison), "gate": to_json(gate), "swaps": swaps}
