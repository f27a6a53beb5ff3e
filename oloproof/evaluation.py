"""Evaluating one system on one suite: cases through the stages, judgments, metrics, the stored run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from oloproof.canonical import canonical_json, digest
from oloproof.evaluators.relevance import RelevanceUnit
from oloproof.execution.driver import Driver
from oloproof.execution.steps import CaseSteps, Steps
from oloproof.identity.system import System, judgment_id
from oloproof.measurement.metrics import MetricSum
from oloproof.measurement.slices import SliceSums, slice_value
from oloproof.records import Case, Execution, Judgment
from oloproof.run_records import CacheCounts, CaseRow, EvaluatorRecord, Run, Tally
from oloproof.settings.cases import CaseFileFacts, iter_cases
from oloproof.settings.project import Project
from oloproof.store.results import Results
from oloproof.store.runs import Runs, case_digest, pair_digest

#: How many cases are looked up in the store, or written to it, at once.
WINDOW = 250


@dataclass(frozen=True)
class Suite:
    """What a system is measured on: cases, evaluators, slices. In a comparison both systems share it."""

    project: str
    config: str
    facts: CaseFileFacts
    evaluators: tuple[Any, ...]
    relevance_unit: RelevanceUnit
    slices: tuple[str, ...]
    min_slice_support: int

    @classmethod
    def of(cls, project: Project, facts: CaseFileFacts, name: str) -> Suite:
        config = project.config
        units = {config.relevance_unit, *(getattr(e, "relevance_unit", None) for e in config.evaluators)}
        return cls(
            project=config.project or name,
            config=str(project.path),
            facts=facts,
            evaluators=tuple(config.evaluators),
            relevance_unit="chunk" if "chunk" in units else "document",
            slices=tuple(config.slices),
            min_slice_support=config.min_slice_support,
        )

    def evaluator_records(self) -> tuple[EvaluatorRecord, ...]:
        return tuple(
            EvaluatorRecord(e.criterion_name, e.kind, e.reads, e.definition()) for e in self.evaluators
        )


class Clock(NamedTuple):
    """The edges that a run needs from outside: seconds since the epoch, a fresh run id, an ISO time stamp."""

    seconds: Callable[[], float]
    run_id: Callable[[], str]
    stamp: Callable[[], str]


class Judging:
    """Judges executions, reusing judgments whose identity is stored."""

    def __init__(self, evaluators: Sequence[Any], results: Results) -> None:
        self._evaluators = evaluators
        self._digests = [digest("evaluator", canonical_json(e.definition())) for e in evaluators]
        self._results = results
        self.hits = 0
        self.misses = 0

    def judge(self, case: Case, execution: Execution) -> tuple[Judgment, ...]:
        """One judgment an evaluator, in their order."""
        if execution.error is not None:
            self.misses += len(self._evaluators)
            return tuple(e.judge(case, execution) for e in self._evaluators)
        ids = [
            judgment_id(execution.id, name, e.expected_key(case))
            for name, e in zip(self._digests, self._evaluators, strict=True)
        ]
        # What a stage gave just now cannot have been judged before.
        known = {} if execution.seconds else self._results.judgments(ids)
        self.hits += len(known)
        fresh: list[tuple[bytes, Judgment]] = []
        judgments: list[Judgment] = []
        for identity, evaluator in zip(ids, self._evaluators, strict=True):
            judgment = known.get(identity)
            if judgment is None:
                judgment = evaluator.judge(case, execution)
                fresh.append((identity, judgment))
            judgments.append(judgment)
        if fresh:
            self.misses += len(fresh)
            self._results.put_judgments(fresh)
        return tuple(judgments)


@dataclass
class _Tallies:
    execution_hit: int = 0
    execution_miss: int = 0
    equal_inputs: int = 0


@dataclass
class Evaluation:
    """One run under way. `progress(done, total)` is called after each case; `commit` makes what was written last."""

    suite: Suite
    system: System
    runs: Runs
    results: Results
    clock: Clock
    commit: Callable[[], None]
    progress: Callable[[int, int], None]
    kind: str = "run"
    parent: str | None = None
    _rows: list[tuple[CaseRow, Case]] = field(default_factory=list)

    def __post_init__(self) -> None:
        criteria = [e.criterion_name for e in self.suite.evaluators]
        self._judging = Judging(self.suite.evaluators, self.results)
        self._steps = CaseSteps(self.system, self.results, self.clock.seconds)
        self._sums = [MetricSum(name) for name in criteria]
        self._slices = SliceSums(self.suite.slices, criteria)
        self._tallies = _Tallies()
        self._attempted = 0
        self._errored = 0
        self._stage_seconds = 0.0
        self._failed_inputs: dict[bytes, Execution] = {}

    def run(self, make_driver: Callable[[Callable[[], None]], Driver[Any]]) -> Run:
        """Evaluate every case of the suite; gives the finished, stored run."""
        started = self.clock.seconds()
        run = self._blank()
        self.runs.put(run)
        self.commit()

        def store() -> None:
            self._store_rows(run.id)
            self.commit()

        driver = make_driver(store)
        cases = enumerate(iter_cases(self.suite.facts))
        followers: dict[bytes, list[tuple[int, Case]] | None] = {}
        for (position, case), execution in driver.run(self._work(cases, followers)):
            self._finish(position, case, execution)
            if execution.error is not None:
                self._failed_inputs[execution.id] = execution
            waiting = followers.get(execution.id)
            if waiting is not None:
                followers[execution.id] = None
                for other_position, other in waiting:
                    self._finish(other_position, other, replace(execution, hit=True, seconds={}))
            if len(self._rows) >= WINDOW:
                self._store_rows(run.id)
        run = self._closed(run, self.clock.seconds() - started)
        self.runs.put(run)
        self.commit()
        return run

    # -------------------------------------------------------------------------------------- work

    def _work(
        self, cases: Iterable[tuple[int, Case]], followers: dict[bytes, list[tuple[int, Case]] | None]
    ) -> Iterator[tuple[tuple[int, Case], Steps]]:
        """Each case with its steps. Equal executions run once: the others wait for the first, or find it stored."""
        seen: set[bytes] = set()
        for window in _windows(cases):
            identities = self._steps.identities
            ids = [identities.execution(identities.retrieval(case)) for _, case in window]
            stored = self.results.executions(ids)
            for (position, case), identity in zip(window, ids, strict=True):
                if identity in seen:
                    self._tallies.equal_inputs += 1
                seen.add(identity)
                hit = stored.get(identity)
                if hit is None and identity in followers:
                    waiting = followers[identity]
                    if waiting is not None:
                        self._tallies.execution_hit += 1
                        waiting.append((position, case))
                        continue
                    hit = self._failed_inputs.get(identity) or self.results.executions([identity]).get(
                        identity
                    )
                if hit is not None:
                    self._tallies.execution_hit += 1
                    yield (position, case), _already(hit)
                else:
                    self._tallies.execution_miss += 1
                    followers[identity] = []
                    yield (position, case), self._steps.full(case)

    def _finish(self, position: int, case: Case, execution: Execution) -> None:
        evaluators = self.suite.evaluators
        judgments = self._judging.judge(case, execution)
        binary = [e.binary_on(case) for e in evaluators]
        for total, judgment, is_binary in zip(self._sums, judgments, binary, strict=True):
            total.add(judgment, is_binary)
        unit = self.suite.relevance_unit
        tags = tuple([slice_value(name, case, execution, unit) for name in self.suite.slices])
        self._slices.add(tags, judgments, binary)
        self._attempted += 1
        self._errored += execution.error is not None
        self._stage_seconds += sum(execution.seconds.values())
        row = CaseRow(
            position=position,
            case_id=case.id,
            body=case_digest(case),
            pair=pair_digest(case),
            execution=execution.id if execution.error is None else None,
            judgments=judgments,
            tags=tags,
            error=execution.error,
            seconds=execution.seconds,
            log=execution.log,
        )
        self._rows.append((row, case))
        self.progress(self._attempted, self.suite.facts.cases)

    def _store_rows(self, run_id: str) -> None:
        if self._rows:
            self.runs.append(run_id, self._rows)
            self._rows.clear()

    # ------------------------------------------------------------------------------------ record

    def _blank(self) -> Run:
        suite = self.suite
        return Run(
            id=self.clock.run_id(),
            kind=self.kind,
            parent=self.parent,
            created=self.clock.stamp(),
            project=suite.project,
            config=suite.config,
            dataset=suite.facts.shown,
            dataset_digest=suite.facts.sha256,
            system=self.system,
            evaluators=suite.evaluator_records(),
            relevance_unit=suite.relevance_unit,
            slices=suite.slices,
            min_slice_support=suite.min_slice_support,
            cases=suite.facts.cases,
            attempted=0,
            errored=0,
            cache=CacheCounts(Tally(), Tally(), Tally(), Tally(), 0),
            metrics=(),
            slice_rows=(),
            seconds=0.0,
            stage_seconds=0.0,
            finished=False,
        )

    def _closed(self, run: Run, seconds: float) -> Run:
        tallies, stages = self._tallies, self._steps.counts
        return replace(
            run,
            attempted=self._attempted,
            errored=self._errored,
            cache=CacheCounts(
                execution=Tally(tallies.execution_hit, tallies.execution_miss),
                judgment=Tally(self._judging.hits, self._judging.misses),
                retrieve=Tally(stages.retrieve_hit, stages.retrieve_miss),
                generate=Tally(stages.generate_hit, stages.generate_miss),
                equal_inputs=tallies.equal_inputs,
            ),
            metrics=tuple(total.metric() for total in self._sums),
            slice_rows=self._slices.rows(self.suite.min_slice_support),
            seconds=seconds,
            stage_seconds=self._stage_seconds,
            finished=True,
        )


def _already(execution: Execution) -> Steps:
    """Steps of an execution that is there already."""
    return execution
    yield  # pragma: no cover - makes this a generator


def _windows(cases: Iterable[tuple[int, Case]]) -> Iterator[list[tuple[int, Case]]]:
    window: deque[tuple[int, Case]] = deque()
    for entry in cases:
        window.append(entry)
        if len(window) == WINDOW:
            yield list(window)
            window.clear()
    if window:
        yield list(window)
