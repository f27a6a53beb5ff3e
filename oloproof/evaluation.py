"""Evaluating one system on one suite: cases through the stages, judgments, metrics, the stored run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from oloproof.canonical import canonical_json, digest, framed
from oloproof.evaluators.relevance import RelevanceUnit
from oloproof.execution.driver import Driver
from oloproof.execution.steps import CaseSteps, Request, StepsTo
from oloproof.identity.files import ProjectFiles
from oloproof.identity.system import judgment_ids
from oloproof.judges.asking import Asking
from oloproof.judges.costs import JudgeCosts
from oloproof.measurement.metrics import MetricSum
from oloproof.measurement.slices import SliceSums, slice_value
from oloproof.records import Case, Execution, Judgment, State
from oloproof.run_records import CacheCounts, CaseRow, EvaluatorRecord, Run, StaleRetrievals, Tally
from oloproof.settings.cases import CaseFileFacts, iter_cases
from oloproof.settings.project import Project
from oloproof.store.results import Results
from oloproof.store.runs import Runs, case_digest, pair_digest
from oloproof.worker.process import Reply

#: A case with its position in the file, and what it came to.
Label = tuple[int, Case]
Judged = tuple[Execution, tuple[Judgment, ...]]

#: How many cases are looked up in the store, or written to it, at once.
WINDOW = 250
#: How many of the files that an evaluator read are recorded with the run.
MAX_DATA_FILES = 500


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
    def of(cls, project: Project, facts: CaseFileFacts, name: str, evaluators: Sequence[Any]) -> Suite:
        """A project's suite; `evaluators` are its own, with the code of those that are the user's."""
        config = project.config
        units = {config.relevance_unit, *(getattr(e, "relevance_unit", None) for e in config.evaluators)}
        return cls(
            project=config.project or name,
            config=str(project.path),
            facts=facts,
            evaluators=tuple(evaluators),
            relevance_unit="chunk" if "chunk" in units else "document",
            slices=tuple(config.slices),
            min_slice_support=config.min_slice_support,
        )


def evaluator_records(evaluators: Iterable[Any]) -> tuple[EvaluatorRecord, ...]:
    """Evaluators as a run records them."""
    return tuple(
        EvaluatorRecord(e.criterion_name, e.kind, e.reads, e.definition(), validated=e.validated)
        for e in evaluators
    )


def _first(files: Mapping[str, str | None]) -> dict[str, str | None]:
    """The files by name; of very many the first, which is what a run's record has room for."""
    return {path: files[path] for path in sorted(files)[:MAX_DATA_FILES]}


class Clock(NamedTuple):
    """The edges that a run needs from outside: seconds since the epoch, a fresh run id, an ISO time stamp."""

    seconds: Callable[[], float]
    run_id: Callable[[], str]
    stamp: Callable[[], str]


class LookedUp(NamedTuple):
    """The identities of a case's judgments, in the order of the evaluators, and judgments that are stored, of this case
    and of others."""

    ids: list[bytes]
    stored: Mapping[bytes, Judgment]

    @property
    def complete(self) -> bool:
        """Whether all of them are stored."""
        return all(map(self.stored.__contains__, self.ids))


class Judging:
    """Judges executions, reusing judgments whose identity is stored.

    The user's own evaluators run in the workers that run the stages, unless `ask` is given: then that is asked.
    `files` are those of the checkout whose evaluators they are: a judgment counts while what its function read stays.
    `asking` is needed where an evaluator asks a model.
    """

    def __init__(
        self,
        evaluators: Sequence[Any],
        results: Results,
        files: ProjectFiles,
        ask: Callable[[Request], Reply] | None = None,
        asking: Asking | None = None,
    ) -> None:
        self._ask = ask
        self._asking = asking
        self._files = files
        self._evaluators = evaluators
        self._digests = [framed(digest("evaluator", canonical_json(e.definition()))) for e in evaluators]
        self._results = results
        #: By evaluator, the files that its function read for any case so far.
        self._data: list[dict[str, str | None]] = [{} for _ in evaluators]
        self._seen: list[set[bytes]] = [set() for _ in evaluators]
        self._custom = any(evaluator.asks_worker for evaluator in evaluators)
        #: Whether a judgment that is stored counts whatever happens.
        self._lasting = not any(evaluator.asks_worker or evaluator.asks_model for evaluator in evaluators)
        self.hits = 0
        self.misses = 0

    @property
    def asking(self) -> Asking | None:
        """What asks models; None when no evaluator needs any."""
        return self._asking

    @property
    def costs(self) -> JudgeCosts | None:
        """What models were asked so far; None when no evaluator asks any."""
        return None if self._asking is None else self._asking.ledger.costs

    @property
    def programs(self) -> set[str]:
        """Programs that the user's own evaluators started."""
        return self._files.programs

    def records(self) -> tuple[EvaluatorRecord, ...]:
        """The evaluators as they judged so far, with what they read."""
        plain = evaluator_records(self._evaluators)
        return tuple(replace(e, data=_first(data)) for e, data in zip(plain, self._data, strict=True))

    def look_up(self, cases: Sequence[tuple[Case, Execution]]) -> list[LookedUp]:
        """What is stored of the judgments of some cases, looked up at once. Nothing where the user's own code judges,
        since what it said of one case is replaced when it is asked again for another that is the same."""
        ids = [self._ids(case, execution) for case, execution in cases]
        wanted = [identity for each in ids for identity in each]
        stored = {} if self._custom else self._results.judgments(wanted)
        return [LookedUp(each, stored) for each in ids]

    def judge(
        self, case: Case, execution: Execution, looked_up: LookedUp | None = None
    ) -> StepsTo[tuple[Judgment, ...]]:
        """One judgment an evaluator, in their order. Yields requests where an evaluator is the user's own code. What
        was not found when the case was `looked_up` is looked for again: another case may have brought it."""
        if execution.error is not None:
            self.misses += len(self._evaluators)
            return tuple(e.judge(case, execution) for e in self._evaluators)
        if looked_up is not None and self._lasting and looked_up.complete:
            self.hits += len(looked_up.ids)
            return tuple([looked_up.stored[identity] for identity in looked_up.ids])
        # What a stage gave just now cannot have been judged before.
        stored = self.known(case, execution, look=not execution.seconds, looked_up=looked_up)
        fresh: list[tuple[bytes, Judgment]] = []
        judgments: list[Judgment] = []
        for (identity, judgment), evaluator in zip(stored, self._evaluators, strict=True):
            self.hits += judgment is not None
            if judgment is not None and evaluator.asks_model:
                self._spared(evaluator, case, execution)
            if judgment is None:
                self.misses += 1
                judgment = yield from self._fresh(evaluator, case, execution, identity)
                if not (evaluator.asks_worker or evaluator.asks_model):
                    fresh.append((identity, judgment))
                elif judgment.state is not State.MISSING:
                    self._results.replace_judgment(identity, execution.id, judgment)
            judgments.append(judgment)
        if self._custom:
            self._note_data([identity for identity, _ in stored])
        if fresh:
            self._results.put_judgments(execution.id, fresh)
        return tuple(judgments)

    def _note_data(self, ids: Sequence[bytes]) -> None:
        for identity, evaluator, data, seen in zip(
            ids, self._evaluators, self._data, self._seen, strict=True
        ):
            if evaluator.asks_worker:
                data.update(each for each in self._files.files_in(identity, seen) if "//" not in each[0])

    def known(
        self, case: Case, execution: Execution, *, look: bool = True, looked_up: LookedUp | None = None
    ) -> list[tuple[bytes, Judgment | None]]:
        """For each evaluator the identity of its judgment, with the judgment when it is stored and still counts.
        Without `look` it is taken that none is."""
        if looked_up is not None and looked_up.complete:
            ids = looked_up.ids
            found = {identity: looked_up.stored[identity] for identity in ids}
        else:
            ids = self._ids(case, execution)
            found = self._results.judgments(ids) if look else {}
        if self._asking is not None and self._asking.fresh:
            for identity, evaluator in zip(ids, self._evaluators, strict=True):
                if evaluator.asks_model:
                    found.pop(identity, None)
        for identity, evaluator in zip(ids, self._evaluators, strict=True):
            if evaluator.asks_worker and identity in found and not self._files.valid(identity):
                del found[identity]  # a file that the function had read has changed
        return [(identity, found.get(identity)) for identity in ids]

    def _ids(self, case: Case, execution: Execution) -> list[bytes]:
        return judgment_ids(execution.id, self._digests, [e.expected_key(case) for e in self._evaluators])

    @property
    def criteria(self) -> int:
        """How many judgments a case gets."""
        return len(self._evaluators)

    def _fresh(self, evaluator: Any, case: Case, execution: Execution, identity: bytes) -> StepsTo[Judgment]:
        if not (evaluator.asks_worker or evaluator.asks_model):
            judgment: Judgment = evaluator.judge(case, execution)
            return judgment
        context = self._context(execution)
        if evaluator.asks_model:
            assert self._asking is not None
            return (yield from self._asking.judge(evaluator, evaluator.questions(case, execution, context)))
        request = evaluator.request(case, execution, context)
        reply = self._ask(request) if self._ask is not None else (yield request)
        answered: Judgment = evaluator.judge_reply(reply.value, reply.kind, reply.message)
        self._files.remember(identity, reply.reads)
        return answered

    def _context(self, execution: Execution) -> list[list[Any]]:
        texts = self._results.texts(c.text_id for c in execution.context)
        return [[c.doc_id, c.chunk_id, c.score, texts[c.text_id]] for c in execution.context]

    def _spared(self, evaluator: Any, case: Case, execution: Execution) -> None:
        """Count what a judgment that is stored would have cost again."""
        assert self._asking is not None
        self._asking.spared(evaluator, evaluator.questions(case, execution, self._context(execution)))


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
