"""Evaluating one system on one suite: cases through the stages, judgments, metrics, the stored run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from oloproof.execution.driver import Driver
from oloproof.execution.steps import CaseSteps, StepsTo
from oloproof.judging import WINDOW, Judging, LookedUp
from oloproof.measurement.metrics import MetricSum
from oloproof.measurement.slices import SliceSums, slice_value
from oloproof.records import Case, Execution, Judgment
from oloproof.run_records import CacheCounts, CaseRow, Run, StaleRetrievals, Tally
from oloproof.settings.cases import iter_cases
from oloproof.store.runs import Runs, case_digest, pair_digest
from oloproof.suite import Suite, evaluator_records

#: A case with its position in the file, and what it came to.
Label = tuple[int, Case]
Judged = tuple[Execution, tuple[Judgment, ...]]


class Clock(NamedTuple):
    """The edges that a run needs from outside: seconds since the epoch, a fresh run id, an ISO time stamp."""

    seconds: Callable[[], float]
    run_id: Callable[[], str]
    stamp: Callable[[], str]


@dataclass
class _Tallies:
    execution_hit: int = 0
    execution_miss: int = 0
    equal_inputs: int = 0


@dataclass
class Evaluation:
    """One run under way. `progress(done, total)` is called after each case; `commit` makes what was written last."""

    suite: Suite
    steps: CaseSteps
    judging: Judging
    ingredients: Mapping[str, Mapping[str, str]]
    runs: Runs
    clock: Clock
    commit: Callable[[], None]
    progress: Callable[[int, int], None]
    kind: str = "run"
    parent: str | None = None
    _rows: list[tuple[CaseRow, Case]] = field(default_factory=list)

    def __post_init__(self) -> None:
        criteria = [e.criterion_name for e in self.suite.evaluators]
        self._sums = [MetricSum(name) for name in criteria]
        self._slices = SliceSums(self.suite.slices, criteria)
        self._tallies = _Tallies()
        self._attempted = 0
        self._errored = 0
        self._stage_seconds = 0.0
        #: Executions that gave no answer, which the store does not keep; and those that other cases wait for.
        self._failed_inputs: dict[bytes, Execution] = {}
        self._shared: list[tuple[int, Case, Execution]] = []

    def run(self, make_driver: Callable[[Callable[[], None]], Driver]) -> Run:
        """Evaluate every case of the suite; gives the finished, stored run."""
        started = self.clock.seconds()
        run = self._blank()
        self.runs.put(run)
        self.commit()

        def store() -> None:
            self._store_rows(run.id)
            self.commit()

        driver = make_driver(store)
        try:
            for work in (self._first(), self._copies()):
                for (position, case), (execution, judgments) in driver.run(work):
                    self._finish(position, case, execution, judgments)
                    if len(self._rows) >= WINDOW:
                        self._store_rows(run.id)
        except BaseException:
            self._store_rows(run.id)
            self.runs.put(replace(run, attempted=self._attempted, errored=self._errored))
            self.commit()
            raise
        run = self._closed(run, self.clock.seconds() - started)
        self.runs.put(run)
        self.commit()
        return run

    # -------------------------------------------------------------------------------------- work

    def _first(self) -> Iterator[tuple[Label, StepsTo[Judged]]]:
        """Each case with its steps, but for those whose execution is under way already: they wait in `_copies`."""
        seen: set[bytes] = set()
        #: Executions under way, with the cases that wait for each.
        waiting: dict[bytes, list[tuple[int, Case]]] = {}
        for window in _windows(enumerate(iter_cases(self.suite.facts))):
            identities = [self.steps.identity(case) for _, case in window]
            stored = self.steps.stored(identities)
            hits = [
                (c, stored[name]) for (_, c), name in zip(window, identities, strict=True) if name in stored
            ]
            looked_up = iter(self.judging.look_up(hits))
            for (position, case), identity in zip(window, identities, strict=True):
                self._tallies.equal_inputs += identity in seen
                hit = stored.get(identity) or self._failed_inputs.get(identity)
                if hit is None and identity in seen and identity not in waiting:
                    hit = self.steps.stored([identity]).get(identity)
                seen.add(identity)
                if hit is not None:
                    self._tallies.execution_hit += 1
                    yield (
                        (position, case),
                        self._judged(case, hit, next(looked_up) if identity in stored else None),
                    )
                elif identity in waiting:
                    self._tallies.execution_hit += 1
                    waiting[identity].append((position, case))
                else:
                    self._tallies.execution_miss += 1
                    waiting[identity] = []
                    yield (position, case), self._executed(case, identity, waiting)

    def _executed(
        self, case: Case, identity: bytes, waiting: dict[bytes, list[tuple[int, Case]]]
    ) -> StepsTo[Judged]:
        execution = yield from self.steps.full(case)
        if execution.error is not None:
            self._failed_inputs[identity] = execution
        if others := waiting.pop(identity):
            copy = replace(execution, hit=True, seconds={})
            self._shared += [(position, other, copy) for position, other in others]
        judgments = yield from self.judging.judge(case, execution)
        return execution, judgments

    def _judged(self, case: Case, execution: Execution, looked_up: LookedUp | None = None) -> StepsTo[Judged]:
        judgments = yield from self.judging.judge(case, execution, looked_up)
        return execution, judgments

    def _copies(self) -> Iterator[tuple[Label, StepsTo[Judged]]]:
        """The cases whose input another case had too, with its execution."""
        for position, case, execution in self._shared:
            yield (position, case), self._judged(case, execution)

    def _finish(
        self, position: int, case: Case, execution: Execution, judgments: tuple[Judgment, ...]
    ) -> None:
        evaluators = self.suite.evaluators
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
            attempts=execution.attempts,
            retrieval=execution.retrieval if execution.error else None,
            kept=execution.kept if execution.error else 0,
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
            system=self.steps.system,
            evaluators=evaluator_records(suite.evaluators),
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
            ingredients=self.ingredients,
        )

    def _closed(self, run: Run, seconds: float) -> Run:
        tallies, stages, stale = self._tallies, self.steps.counts, self.steps.stale
        return replace(
            run,
            evaluators=self.judging.records(),
            attempted=self._attempted,
            errored=self._errored,
            cache=CacheCounts(
                execution=Tally(tallies.execution_hit, tallies.execution_miss),
                judgment=Tally(self.judging.hits, self.judging.misses),
                retrieve=Tally(stages.retrieve_hit, stages.retrieve_miss),
                generate=Tally(stages.generate_hit, stages.generate_miss),
                equal_inputs=tallies.equal_inputs,
            ),
            metrics=tuple(total.metric() for total in self._sums),
            slice_rows=self._slices.rows(self.suite.min_slice_support),
            seconds=seconds,
            stage_seconds=self._stage_seconds,
            finished=True,
            judges=self.judging.costs,
            programs=tuple(sorted(self.steps.programs | self.judging.programs)),
            stale=StaleRetrievals(stale.retrievals, tuple(sorted(stale.files))) if stale.retrievals else None,
        )


def _windows(cases: Iterable[tuple[int, Case]]) -> Iterator[list[tuple[int, Case]]]:
    window: deque[tuple[int, Case]] = deque()
    for entry in cases:
        window.append(entry)
        if len(window) == WINDOW:
            yield list(window)
            window.clear()
    if window:
        yield list(window)
