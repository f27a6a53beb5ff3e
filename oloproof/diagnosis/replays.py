"""Replays: the recorded retrievals of a run under another top_k, token budget or reranker. No retriever is called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, product
from typing import Any

from oloproof.comparison import Flips, PairedMetric
from oloproof.diagnosis.recorded import RecordedCase, evaluator_from, recorded_cases
from oloproof.errors import ConfigurationError
from oloproof.execution.driver import Driver
from oloproof.execution.replay_steps import ReplaySteps
from oloproof.execution.steps import Steps, StepsTo
from oloproof.identity.system import Reranker
from oloproof.judging import Judging
from oloproof.paired_runs import PairedRuns
from oloproof.records import Execution, Judgment, missing
from oloproof.run_records import CaseRow, Run
from oloproof.settings.wording import printable, shortened
from oloproof.store.results import Results
from oloproof.store.runs import Runs


class RerankerError(ConfigurationError):
    """The user's reranker failed, or gave back something other than what it was given."""

    def __init__(self, reranker: Reranker, case_id: str, message: str) -> None:
        super().__init__(
            printable(f"the reranker {reranker.object} failed on the case {shortened(case_id)}: {message}")
        )


@dataclass(frozen=True)
class Setting:
    """What a replay assembles contexts with: top_k, the token budget (None: no limit), and a reranker that is called
    before them, if any."""

    top_k: int
    token_budget: int | None
    reranker: Reranker | None = None

    @classmethod
    def of(
        cls,
        run: Run,
        *,
        top_k: int | None = None,
        token_budget: int | None = None,
        reranker: Reranker | None = None,
    ) -> Setting:
        """The setting of a run, but for what is given."""
        system = run.system
        return cls(
            system.top_k if top_k is None else top_k,
            system.token_budget if token_budget is None else token_budget,
            reranker,
        )

    def name(self, run: Run) -> str:
        """What differs from the run, as reports name it: `top-k 4, token-budget 80`."""
        parts = []
        if self.reranker is not None:
            parts.append(f"reranker {self.reranker.object}")
        if self.top_k != run.system.top_k:
            parts.append(f"top-k {self.top_k}")
        if self.token_budget != run.system.token_budget:
            parts.append(f"token-budget {self.token_budget}")
        return ", ".join(parts) or "unchanged"


@dataclass(frozen=True, slots=True)
class Replayed:
    """A case under another setting. Where neither its candidates nor its context `changed`, execution and judgments
    are the recorded ones."""

    recorded: RecordedCase
    execution: Execution
    judgments: tuple[Judgment, ...]
    changed: bool


@dataclass(frozen=True)
class ReplayedRun:
    """What became of a run's cases under a setting. `changed` of the `replayed` had another context, for which
    `generated` calls of `generate` were made now, the rest being stored. `errored` names the cases that gave no answer
    under the setting. `flips` names for each pass/fail criterion the fixed (recovered) and newly failing (broken)
    cases; the differences are setting minus run, over all cases of the run."""

    setting: Setting
    replayed: int
    changed: int
    generated: int
    errored: tuple[str, ...]
    metrics: tuple[PairedMetric, ...]
    flips: tuple[Flips, ...]

    def metric(self, criterion: str) -> PairedMetric | None:
        return next((m for m in self.metrics if m.criterion == criterion), None)

    def flips_of(self, criterion: str) -> Flips | None:
        return next((f for f in self.flips if f.criterion == criterion), None)


@dataclass
class Replaying:
    """Replays cases of one stored run. `steps` are those of its system as it was measured, `judging` makes what judges
    by some evaluators. `progress(done)` is called after each case."""

    run: Run
    steps: ReplaySteps
    runs: Runs
    results: Results
    driver: Driver
    judging: Callable[[Sequence[Any]], Judging]
    progress: Callable[[int], None] = lambda done: None
    _done: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        evaluators = [evaluator_from(record.definition) for record in self.run.evaluators]
        self._all = self.judging(evaluators)
        self._answers = self.judging([each for each in evaluators if each.reads == "answer"])

    def replay(self, setting: Setting, rows: Iterable[CaseRow]) -> Iterator[Replayed]:
        """Each of these cases of the run, those aside that errored in it, in the order in which they finish. Only
        contexts that come out different are generated. Raises RerankerError."""
        steps = self.steps.under(setting.top_k, setting.token_budget)
        work = (
            (each.case.id, self._case(steps, setting.reranker, each))
            for each in recorded_cases(rows, self.runs, self.results)
        )
        for _, replayed in self.driver.run(work):
            self._step(1)
            yield replayed

    def changed(self, setting: Setting, rows: Iterable[CaseRow]) -> list[str]:
        """The ids of the cases whose context would come out different; nothing is generated."""
        steps = self.steps.under(setting.top_k, setting.token_budget)
        work = (
            (each.case.id, steps.reassemble(each.case, each.execution, setting.reranker))
            for each in recorded_cases(rows, self.runs, self.results)
        )
        return [case_id for case_id, differs in self.driver.run(work) if differs]

    def whole_run(self, setting: Setting, rows: Iterable[CaseRow], confidence: float = 0.95) -> ReplayedRun:
        """As `whole_runs`, under one setting."""
        return self.whole_runs([setting], rows, confidence)[0]

    def whole_runs(
        self, settings: Sequence[Setting], rows: Iterable[CaseRow], confidence: float = 0.95
    ) -> tuple[ReplayedRun, ...]:
        """The run's cases, all of which are given, under each setting, paired with what they came to in the run. A case
        that errored in the run is missing on both sides. Raises RerankerError."""
        rows = [row._replace(tags=()) for row in rows]
        trials = [_Trial(each, self.steps.under(each.top_k, each.token_budget)) for each in settings]
        # Cases with one input share an execution in the run, and so they do here.
        ordered = sorted(rows, key=lambda row: row.execution or b"")
        groups = groupby(recorded_cases(ordered, self.runs, self.results), key=lambda each: each.execution.id)
        work = ((name, self._cases_under_all(trials, list(group))) for name, group in groups)
        for _, replayed in self.driver.run(work):
            for trial, each in replayed:
                trial.take(each)
            self._step(len(replayed))
        return tuple(trial.ended(self.run, rows, confidence) for trial in trials)

    # ------------------------------------------------------------------------------------- cases

    def _cases_under_all(
        self, trials: Sequence[_Trial], cases: Sequence[RecordedCase]
    ) -> StepsTo[list[tuple[_Trial, Replayed]]]:
        """One setting and one case after the other, so that what one has generated the next finds."""
        replayed = []
        for each, trial in product(cases, trials):
            replayed.append((trial, (yield from self._case(trial.steps, trial.setting.reranker, each))))
        return replayed

    def _case(self, steps: ReplaySteps, reranker: Reranker | None, each: RecordedCase) -> StepsTo[Replayed]:
        execution = yield from replayed_steps(steps, reranker, each)
        if execution is each.execution:
            return Replayed(each, execution, each.row.judgments, False)
        if execution.candidates != each.execution.candidates:
            judgments = yield from self._all.judge(each.case, execution)
            return Replayed(each, execution, judgments, True)
        # What judges the retrieval has nothing to judge anew.
        answers = iter((yield from self._answers.judge(each.case, execution)))
        judged = zip(self.run.evaluators, each.row.judgments, strict=True)
        judgments = tuple([next(answers) if record.reads == "answer" else old for record, old in judged])
        return Replayed(each, execution, judgments, True)

    def _step(self, count: int) -> None:
        self._done += count
        self.progress(self._done)


@dataclass
class _Trial:
    """A whole run under one setting, while it goes on."""

    setting: Setting
    steps: ReplaySteps
    judged: dict[str, tuple[Judgment, ...]] = field(default_factory=dict)
    changed: int = 0
    errored: list[str] = field(default_factory=list)

    def take(self, each: Replayed) -> None:
        case_id = each.recorded.case.id
        self.judged[case_id] = each.judgments
        self.changed += each.execution.context != each.recorded.execution.context
        if each.execution.error is not None:
            self.errored.append(case_id)

    def ended(self, run: Run, rows: Sequence[CaseRow], confidence: float) -> ReplayedRun:
        run = replace(run, slices=())
        ours = (_under(row, self.judged) for row in rows)
        comparison = PairedRuns(run, run, ours, rows).comparison(confidence)
        return ReplayedRun(
            setting=self.setting,
            replayed=len(self.judged),
            changed=self.changed,
            generated=self.steps.counts.generate_miss,
            errored=tuple(sorted(self.errored)),
            metrics=comparison.metrics,
            flips=comparison.flips,
        )


def check_depth(run: Run, top_k: int) -> None:
    """Refuse a top_k for which nothing was recorded."""
    if top_k > run.system.depth:
        raise ConfigurationError(
            f"--top-k {top_k}: {run.id} recorded no more than {run.system.depth} candidates a case, its depth; raise "
            "depth and make a run with `oloproof run` first"
        )


def replayed_steps(steps: ReplaySteps, reranker: Reranker | None, each: RecordedCase) -> Steps:
    """A case under the settings of the steps; its recorded execution where neither candidates nor context change.
    Raises RerankerError."""
    execution = yield from steps.replay(each.case, each.execution, reranker, only_changed=True)
    error = execution.error
    if reranker is not None and error is not None and error.stage == "rerank":
        raise RerankerError(reranker, each.case.id, error.message)
    return execution


def _under(row: CaseRow, judged: dict[str, tuple[Judgment, ...]]) -> CaseRow:
    """The row of a case under a setting; one that was not replayed is missing."""
    judgments = judged.get(row.case_id)
    if judgments is None:
        judgments = tuple([missing("not_replayed")] * len(row.judgments))
    return row._replace(judgments=judgments)
