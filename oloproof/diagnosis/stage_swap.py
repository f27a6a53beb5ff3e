"""Stage swap: head is executed again with one factor taken from base, for each factor in which they differ.

Recorded retrievals are used, so no retriever is called, and `generate` at most once for each factor and case: where the
context and the generator are those of a stored answer, that is what the swap comes to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from oloproof.diagnosis.attribution import (
    JUDGES_RETRIEVAL,
    OVER_BUDGET,
    AttributedCase,
    StageSwap,
    Swap,
    SwapFactor,
    Verdict,
    attribution,
    left_out,
)
from oloproof.diagnosis.budget import CallBudget, ranked
from oloproof.diagnosis.child_runs import ChildCase, ChildRuns
from oloproof.diagnosis.differing import DifferingFactors
from oloproof.diagnosis.labels import Outcome
from oloproof.diagnosis.recorded import RecordedCase, recorded_cases
from oloproof.execution.replay_steps import Assembled, ReplaySteps
from oloproof.execution.steps import Steps, StepsTo
from oloproof.records import Case, Execution
from oloproof.run_records import Run
from oloproof.store.results import Results
from oloproof.store.runs import Runs


@dataclass(frozen=True)
class Side:
    """Base or head: its run, its steps under the settings of that run, and what makes child runs with its workers."""

    run: Run
    steps: ReplaySteps
    children: ChildRuns


@dataclass(frozen=True)
class _Pair:
    """A new failure on both sides. `changed` are the factors that differ for it."""

    base: RecordedCase
    head: RecordedCase
    changed: frozenset[SwapFactor]

    @property
    def case(self) -> Case:
        return self.head.case


@dataclass(frozen=True)
class _Way:
    """How head is executed with one factor of base: `side` generates, under the settings of `steps`, on the recorded
    retrieval that `source` gives, which `assemble` turns into a context (None: as it was assembled in head)."""

    side: Side
    steps: ReplaySteps
    source: Callable[[_Pair], Execution]
    assemble: Side | None


@dataclass
class StageSwapping:
    """Swaps stages for the new failures of one criterion. The child runs are children of the head's run. `former` gives
    the ids of cases in the base's run where these are others."""

    base: Side
    head: Side
    criterion: str
    runs: Runs
    results: Results
    former: Mapping[str, str]
    _differing: DifferingFactors = field(init=False)
    _ways: Mapping[SwapFactor, _Way] = field(init=False)

    def __post_init__(self) -> None:
        base, head = self.base, self.head
        self._differing = DifferingFactors(base.run, head.run, base.steps, head.steps)
        as_base, as_head = (side.steps.system for side in (base, head))
        self._ways = {
            SwapFactor.RETRIEVAL: _Way(head, head.steps, lambda pair: pair.base.execution, head),
            SwapFactor.ASSEMBLY: _Way(
                head,
                head.steps.under(as_base.top_k, as_base.token_budget),
                lambda pair: pair.head.execution,
                base,
            ),
            SwapFactor.GENERATION: _Way(
                base,
                base.steps.under(as_head.top_k, as_head.token_budget),
                lambda pair: pair.head.execution,
                None,
            ),
        }

    @property
    def attributes(self) -> bool:
        """Whether a swap can say anything of the criterion: what judges the retrieval depends on nothing else."""
        return self.head.children.record.reads == "answer"

    def swap(
        self, repeats: Mapping[str, tuple[Outcome | None, Outcome | None]], budget: CallBudget
    ) -> StageSwap:
        """Attribute new failures. `repeats` gives for each, in their order, what its unchanged repeat came to in head
        and base, None where there was none. Swaps are made as far as the budget reaches."""
        before = self._calls()
        found = {case_id: left_out(case_id, *outcomes) for case_id, outcomes in repeats.items()}
        stable = [case_id for case_id, known in found.items() if known is None]
        runs: dict[SwapFactor, str] = {}
        if not self.attributes:
            found = {name: _not_attributed(name, JUDGES_RETRIEVAL) for name in repeats}
        elif stable:
            found |= dict(self._swapped(self._pairs(stable), budget, runs))
        calls = self._calls() - before
        budget.spent += calls
        return StageSwap(
            base=self.base.run.id,
            head=self.head.run.id,
            criterion=self.criterion,
            changed=self._differing.names(),
            runs=runs,
            calls=calls,
            cases=tuple(found[name] or _not_attributed(name, OVER_BUDGET) for name in repeats),
        )

    def _swapped(
        self, pairs: Sequence[_Pair], budget: CallBudget, runs: dict[SwapFactor, str]
    ) -> Iterator[tuple[str, AttributedCase]]:
        contexts = {factor: self._contexts(factor, pairs) for factor in SwapFactor}
        chosen = self._affordable(pairs, contexts, budget)
        came = {factor: self._execute(factor, chosen, contexts[factor], runs) for factor in SwapFactor}
        for pair in chosen:
            swaps = [_swap(factor, came[factor].get(pair.case.id)) for factor in SwapFactor]
            yield pair.case.id, attribution(pair.case.id, tuple(swaps))

    def _pairs(self, case_ids: Sequence[str]) -> list[_Pair]:
        former = {name: self.former.get(name, name) for name in case_ids}
        head = self._recorded(self.head.run, case_ids)
        base = self._recorded(self.base.run, list(former.values()))
        found = [
            (base[before], head[name]) for name, before in former.items() if before in base and name in head
        ]
        files = self.results.files_behind([each.execution.id for pair in found for each in pair])
        return [
            _Pair(before, after, self._differing.of(before.execution, after.execution, files))
            for before, after in found
        ]

    def _recorded(self, run: Run, case_ids: Sequence[str]) -> dict[str, RecordedCase]:
        rows = self.runs.rows(run.id, case_ids)
        return {each.case.id: each for each in recorded_cases(rows, self.runs, self.results)}

    # ----------------------------------------------------------------------------------- swaps

    def _contexts(self, factor: SwapFactor, pairs: Iterable[_Pair]) -> Mapping[str, Assembled]:
        """How a swap assembles the context of each case that it is made of."""
        way = self._ways[factor]
        swapped = [pair for pair in pairs if factor in pair.changed]
        side = way.assemble
        if side is None:
            return {pair.case.id: Assembled(pair.head.execution.kept) for pair in swapped}
        work: list[tuple[str, StepsTo[Assembled]]] = [
            (pair.case.id, side.steps.assemble(way.source(pair))) for pair in swapped
        ]
        return dict(side.children.driver.run(work))

    def _affordable(
        self,
        pairs: Sequence[_Pair],
        contexts: Mapping[SwapFactor, Mapping[str, Assembled]],
        budget: CallBudget,
    ) -> list[_Pair]:
        """The pairs whose swaps the budget allows, chosen by their ids alone as long as what is stored is equal."""
        by_id = {pair.case.id: pair for pair in pairs}
        left = budget.left
        chosen = set()
        for case_id in ranked(list(by_id)):
            pair = by_id[case_id]
            needed = sum(self._is_called(factor, pair, contexts[factor][case_id]) for factor in pair.changed)
            if needed * budget.attempts <= left:
                left -= needed * budget.attempts
                chosen.add(case_id)
        return [pair for pair in pairs if pair.case.id in chosen]

    def _is_called(self, factor: SwapFactor, pair: _Pair, assembled: Assembled) -> bool:
        """Whether a swap takes a call of `generate`."""
        way = self._ways[factor]
        return not way.steps.answers(pair.case, way.source(pair).candidates[: assembled.kept])

    def _execute(
        self,
        factor: SwapFactor,
        pairs: Sequence[_Pair],
        contexts: Mapping[str, Assembled],
        runs: dict[SwapFactor, str],
    ) -> dict[str, ChildCase]:
        """Execute the swaps of one factor; notes their child run, and gives what each case came to."""
        way = self._ways[factor]
        swapped = {pair.case.id: pair for pair in pairs if factor in pair.changed}
        run, came = way.side.children.execute(
            f"{factor.value} from base",
            [pair.head for pair in swapped.values()],
            partial(_steps, way, swapped, contexts),
            system=way.steps.system,
        )
        if run is not None:
            runs[factor] = run
        return came

    def _calls(self) -> int:
        return self.base.steps.calls["generate"] + self.head.steps.calls["generate"]


def _steps(
    way: _Way, pairs: Mapping[str, _Pair], contexts: Mapping[str, Assembled], recorded: RecordedCase
) -> Steps:
    case = recorded.case
    return way.steps.generate_on(case, way.source(pairs[case.id]), contexts[case.id])


def _swap(factor: SwapFactor, came: ChildCase | None) -> Swap:
    """What a swap came to; where it gave no result, the stage's error or what the evaluator said."""
    if came is None:
        return Swap(factor, None)
    error = came.error
    why = came.judgment.reason if error is None else f"{error.stage}: {error.kind}: {error.message}"
    return Swap(factor, came.outcome, why if came.outcome == "missing" else None)


def _not_attributed(case_id: str, reason: str) -> AttributedCase:
    return AttributedCase(case_id, Verdict.NOT_ATTRIBUTED, reason, ())
