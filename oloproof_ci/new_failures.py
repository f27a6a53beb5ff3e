"""New failures: diagnosed, attributed to changes, and what might mend them tried, within one budget of calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from oloproof.comparison import Flips
from oloproof.diagnosis.attribution import StageSwap
from oloproof.diagnosis.budget import CallBudget, sample
from oloproof.diagnosis.experiments import TriedExperiment, candidate_settings, try_experiments
from oloproof.diagnosis.factors import implicated_factors
from oloproof.diagnosis.labels import NO_GOLD_CONTEXT, Outcome
from oloproof.diagnosis.records import Diagnosis
from oloproof.errors import ConfigurationError, UnfinishedError
from oloproof.execution.host import AppHost
from oloproof.jsonform import to_json
from oloproof.reexecution import diagnosing, diagnosis_session, replaying, stage_swapping
from oloproof.run_records import EvaluatorRecord, Run
from oloproof.settings.project import ProjectConfig
from oloproof.workplace import Store, guarded, system_clock
from oloproof_ci.findings import Recorded, describe_new_failures
from oloproof_ci.report import CriterionFailures, LabelledCase, Warning

#: Which failures of the head are looked into.
Scope = Literal["new-failures", "all-failures", "off"]

#: How many generator calls the diagnosis of a case may take: gold run, head's repeat, base's repeat. A case that fails
#: on both sides takes the first two.
CALLS_EACH, CALLS_EACH_OLD = 3, 2


@dataclass(frozen=True)
class Measured:
    """One side after its run: its app is still at hand for re-execution."""

    host: AppHost
    run: Run


@dataclass
class _Criterion:
    """What is found of the new failures of one criterion, while it is being found. `chosen` of them are looked into,
    the repeats say what an unchanged repeat of each came to."""

    flips: Flips
    record: EvaluatorRecord
    chosen: tuple[str, ...] = ()
    diagnosis: Diagnosis | None = None
    head_repeats: dict[str, Outcome] = field(default_factory=dict)
    base_repeats: dict[str, Outcome] = field(default_factory=dict)
    swap: StageSwap | None = None
    experiments: tuple[TriedExperiment, ...] = ()
    calls: int = 0
    still_failing: Diagnosis | None = None


class NewFailures:
    """Looks into the new failures of a head against its base, as far as `scope` says. `lines` says where in the case
    file a case stands."""

    def __init__(
        self,
        head: Measured,
        base: Measured,
        store: Store,
        config: ProjectConfig,
        lines: Mapping[str, int],
        watch: Callable[[str], Callable[[int, int], None]],
        scope: Scope = "new-failures",
    ) -> None:
        self._head = head
        self._base = base
        self._store = store
        self._settings = config.diagnosis
        self._experiments = config.experiments
        self._budget = CallBudget(config.diagnosis.max_generate_calls, 1 + config.execution.retries)
        self._lines = lines
        self._watch = watch
        self._scope = scope
        #: What a reader must know of it: why it came to no end.
        self.warnings: tuple[Warning, ...] = ()

    def describe(self, criteria: Sequence[Flips]) -> tuple[CriterionFailures, ...]:
        """What became of the cases of each criterion. Gold runs and repeats of all come before the first swap."""
        found = [_Criterion(flips, self._record(flips.criterion)) for flips in criteria]
        failing = [each for each in found if self._wanted(each.flips)]
        if failing:
            try:
                self._look_into(failing)
            except (ConfigurationError, UnfinishedError) as error:
                # What was measured stands without it: a base that is all stored was not even prepared before.
                self.warnings = (
                    Warning("diagnosis_stopped", f"Failures were not looked into further: {error}"),
                )
        return tuple(self._described(each) for each in found)

    def _look_into(self, failing: Sequence[_Criterion]) -> None:
        failures = [(self._head.run, each.flips.criterion) for each in failing]
        with (
            guarded(self._head.host, self._store, self._base.host),
            diagnosis_session(self._store, failures, "preview") as session,
        ):
            for phase in (self._diagnose, self._swap, self._experiment, self._diagnose_old):
                for each in failing:
                    before = self._budget.spent
                    phase(each, session)
                    each.calls += self._budget.spent - before

    def _wanted(self, flips: Flips) -> bool:
        if self._scope == "off":
            return False
        return bool(flips.new_failures or (self._scope == "all-failures" and flips.still_failing))

    def _diagnose(self, found: _Criterion, session: str) -> None:
        head, base, store = self._head, self._base, self._store
        criterion, reads_answer = found.flips.criterion, found.record.reads == "answer"
        affordable = self._budget.cases(CALLS_EACH) if reads_answer else self._settings.max_cases
        found.chosen = sample(found.flips.new_failures, min(self._settings.max_cases, affordable))
        if not found.chosen:
            return
        ours = diagnosing(head.run, criterion, head.host, store, session, self._watch("diagnosis"))
        found.diagnosis = ours.diagnose(found.chosen)
        store.runs.put_document(
            found.diagnosis.id, "diagnosis", system_clock().seconds(), to_json(found.diagnosis)
        )
        if not reads_answer:
            return
        found.head_repeats = {each.case_id: each.control for each in found.diagnosis.cases if each.control}
        without_gold = [c.case_id for c in found.diagnosis.cases if c.reason == NO_GOLD_CONTEXT.reason]
        found.head_repeats |= ours.repeat(without_gold)
        theirs = diagnosing(
            base.run, criterion, base.host, store, session, self._watch("repeats of the base"), head.host
        )
        found.base_repeats = theirs.repeat(found.chosen, "base control")
        self._budget.spent += ours.steps.calls["generate"] + theirs.steps.calls["generate"]

    def _diagnose_old(self, found: _Criterion, session: str) -> None:
        """Diagnose also what fails on both sides, where that is asked for and the budget leaves room."""
        if self._scope != "all-failures":
            return
        limit = self._settings.max_cases - len(found.chosen)
        if found.record.reads == "answer":
            limit = min(limit, self._budget.cases(CALLS_EACH_OLD))
        chosen = sample(found.flips.still_failing, max(0, limit))
        if not chosen:
            return
        head, store = self._head, self._store
        ours = diagnosing(
            head.run,
            found.flips.criterion,
            head.host,
            store,
            session,
            self._watch("diagnosis of old failures"),
        )
        found.still_failing = ours.diagnose(chosen)
        document = to_json(found.still_failing)
        store.runs.put_document(found.still_failing.id, "diagnosis", system_clock().seconds(), document)
        self._budget.spent += ours.steps.calls["generate"]

    def _swap(self, found: _Criterion, session: str) -> None:
        if not found.flips.new_failures or found.record.reads != "answer":
            return  # what judges the retrieval depends on nothing else
        head, base = self._head, self._base
        swapping = stage_swapping(
            (head.run, head.host), (base.run, base.host), found.flips.criterion, self._store
        )
        repeats = {
            name: (found.head_repeats.get(name), found.base_repeats.get(name))
            for name in found.flips.new_failures
        }
        found.swap = swapping.swap(repeats, self._budget)

    def _experiment(self, found: _Criterion, session: str) -> None:
        """Try what the diagnosis suggests, on the new failures that hold and on what passes."""
        head, diagnosis = self._head, found.diagnosis
        failures = [name for name in found.chosen if not self._is_unstable(found, name)]
        if diagnosis is None or not failures or found.record.reads != "answer":
            return
        names = self._experiments.rerankers
        rerankers = [head.host.reranker(name, self._store.outlines) for name in names]
        criterion = found.flips.criterion
        replays = replaying(head.run, head.host, self._store, criteria=[criterion])
        settings = candidate_settings(diagnosis, replays, rerankers)
        index = head.run.evaluator_index(criterion)
        assert index is not None  # it was compared
        found.experiments = try_experiments(replays, settings, index, failures, self._budget)

    @staticmethod
    def _is_unstable(found: _Criterion, case_id: str) -> bool:
        return found.head_repeats.get(case_id) == "passed" or found.base_repeats.get(case_id) == "failed"

    def _record(self, criterion: str) -> EvaluatorRecord:
        index = self._head.run.evaluator_index(criterion)
        assert index is not None  # it was compared
        return self._head.run.evaluators[index]

    def _described(self, found: _Criterion) -> CriterionFailures:
        flips, diagnosis = found.flips, found.diagnosis
        cases = describe_new_failures(
            flips.new_failures,
            found.record,
            "chunk" if self._head.run.relevance_unit == "chunk" else "document",
            Recorded(self._store, self._base.run, flips.new_failures),
            Recorded(self._store, self._head.run, flips.new_failures),
            diagnosis,
            found.head_repeats,
            found.base_repeats,
            self._lines,
            undiagnosed="switched_off" if self._scope == "off" else "over_budget",
        )
        old = found.still_failing
        moved = {*flips.new_failures, *flips.fixed}
        return CriterionFailures(
            criterion=flips.criterion,
            new_failures=cases,
            fixed=flips.fixed,
            still_failing=flips.still_failing,
            diagnosis=diagnosis.id if diagnosis else None,
            diagnosed=len(diagnosis.selected) if diagnosis else 0,
            factors=implicated_factors(diagnosis) if diagnosis else (),
            swap=found.swap,
            experiments=found.experiments,
            calls=found.calls,
            still_failing_labels=tuple(LabelledCase(c.case_id, c.label) for c in old.cases) if old else (),
            known_unstable=tuple(
                each
                for each in self._store.unstable.of_run(self._head.run.id)
                if each.criterion == flips.criterion and each.case_id in moved
            ),
        )
