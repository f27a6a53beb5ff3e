"""Stage swap: head is executed again with one factor taken from base, for each factor in which they differ.

Recorded retrievals are used, so no retriever is called, and `generate` at most once for each factor and case: where the
context and the generator are those of a stored answer, that is what the swap comes to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

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
from oloproof.diagnosis.labels import Outcome
from oloproof.diagnosis.recorded import RecordedCase, recorded_cases
from oloproof.execution.replay_steps import Assembled, ReplaySteps
from oloproof.execution.steps import Steps
from oloproof.identity.difference import Identified, differences
from oloproof.run_records import Run
from oloproof.store.results import Results
from oloproof.store.runs import Runs

#: The stages and settings, as a difference names them, that each factor is made of.
_PARTS = {
    SwapFactor.RETRIEVAL: {"retrieve"},
    SwapFactor.ASSEMBLY: {"assembly", "count_tokens"},
    SwapFactor.GENERATION: {"generate"},
}


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
    def case_id(self) -> str:
        return self.head.case.id


@dataclass
class StageSwapping:
    """Swaps stages for the new failures of one criterion. Both sides' child runs are children of the head's run.
    `former` gives the ids of cases in the base's run where these are others."""

    base: Side
    head: Side
    criterion: str
    runs: Runs
    results: Results
    former: Mapping[str, str]
    changed_names: dict[SwapFactor, dict[str, None]]

    @classmethod
    def of(
        cls,
        base: Side,
        head: Side,
        criterion: str,
        runs: Runs,
        results: Results,
        former: Mapping[str, str],
    ) -> StageSwapping:
        """The swapping of two sides."""
        return cls(base, head, criterion, runs, results, former, _differing(base.run, head.run))

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
            found.update((name, _not_attributed(name, JUDGES_RETRIEVAL)) for name in found)
        else:
            found.update(self._swapped(self._pairs(stable), budget, runs))
        calls = self._calls() - before
        budget.spent += calls
        cases = [found[name] or _not_attributed(name, OVER_BUDGET) for name in repeats]
        changed = {factor: tuple(names) for factor, names in self.changed_names.items() if names}
        return StageSwap(
            self.base.run.id, self.head.run.id, self.criterion, changed, runs, calls, tuple(cases)
        )

    def _swapped(
        self, pairs: Sequence[_Pair], budget: CallBudget, runs: dict[SwapFactor, str]
    ) -> Iterator[tuple[str, AttributedCase]]:
        contexts = self._contexts(pairs)
        chosen = self._affordable(pairs, contexts, budget)
        outcomes: dict[SwapFactor, dict[str, ChildCase]] = {}
        for factor in SwapFactor:
            selected = [pair.head for pair in chosen if factor in pair.changed]
            side = self.base if factor is SwapFactor.GENERATION else self.head
            steps = self._steps(factor, {pair.case_id: pair for pair in chosen}, contexts)
            run, outcomes[factor] = side.children.execute(f"{factor.value} from base", selected, steps)
            if run is not None:
                runs[factor] = run
        for pair in chosen:
            swaps = [_swap(factor, outcomes[factor].get(pair.case_id)) for factor in SwapFactor]
            yield pair.case_id, attribution(pair.case_id, tuple(swaps))

    # --------------------------------------------------------------------------- what differs

    def _pairs(self, case_ids: Sequence[str]) -> list[_Pair]:
        former = {name: self.former.get(name, name) for name in case_ids}
        head, base = (
            {each.case.id: each for each in recorded_cases(self.runs.rows(run, ids), self.runs, self.results)}
            for run, ids in ((self.head.run.id, case_ids), (self.base.run.id, list(former.values())))
        )
        names = [each.execution.id for each in (*base.values(), *head.values())]
        files = self.results.files_behind(names)
        return [
            _Pair(base[before], head[name], self._changed(base[before], head[name], files))
            for name, before in former.items()
            if before in base and name in head
        ]

    def _changed(
        self, base: RecordedCase, head: RecordedCase, files: Mapping[bytes, tuple[bytes, bytes]]
    ) -> frozenset[SwapFactor]:
        """The factors that differ for a case: in their code and settings, or in the files that they read for it."""
        ours, theirs = self.head.steps.identities.stages, self.base.steps.identities.stages
        before, after = files[base.execution.id], files[head.execution.id]
        found = set()
        if ours.retrieve != theirs.retrieve or self._files_differ(SwapFactor.RETRIEVAL, before[0], after[0]):
            found.add(SwapFactor.RETRIEVAL)
        if ours.generate != theirs.generate or self._files_differ(SwapFactor.GENERATION, before[1], after[1]):
            found.add(SwapFactor.GENERATION)
        if self._assembly_differs(head):
            found.add(SwapFactor.ASSEMBLY)
        return frozenset(found)

    def _assembly_differs(self, head: RecordedCase) -> bool:
        ours, theirs = self.head.steps, self.base.steps
        settings = [(s.system.top_k, s.system.token_budget) for s in (ours, theirs)]
        if settings[0] != settings[1]:
            return True
        if ours.system.token_budget is None:
            return False
        if ours.identities.stages.count_tokens != theirs.identities.stages.count_tokens:
            return True
        counted = head.execution.candidates[: ours.system.top_k]
        changed = [name for files in ours.files_of_counts(counted) for name in theirs.changed_files(files)]
        return self._note_files(SwapFactor.ASSEMBLY, changed)

    def _files_differ(self, factor: SwapFactor, base: bytes, head: bytes) -> bool:
        """Whether what either side read is not the same in both checkouts."""
        ours = self.base.steps.changed_files(head)
        theirs = self.head.steps.changed_files(base)
        return self._note_files(factor, (*ours, *theirs))

    def _note_files(self, factor: SwapFactor, paths: Sequence[str]) -> bool:
        self.changed_names[factor].update(dict.fromkeys(paths))
        return bool(paths)

    # ----------------------------------------------------------------------------- swapping

    def _contexts(self, pairs: Sequence[_Pair]) -> Mapping[SwapFactor, Mapping[str, Assembled]]:
        """How each swap assembles its context: a base's retrieval by the head, a head's by the base."""
        retrieval = (
            (p.case_id, self.head.steps.assemble(p.base.execution))
            for p in pairs
            if SwapFactor.RETRIEVAL in p.changed
        )
        assembly = (
            (p.case_id, self.base.steps.assemble(p.head.execution))
            for p in pairs
            if SwapFactor.ASSEMBLY in p.changed
        )
        return {
            SwapFactor.RETRIEVAL: dict(self.head.children.driver.run(retrieval)),
            SwapFactor.ASSEMBLY: dict(self.base.children.driver.run(assembly)),
            SwapFactor.GENERATION: {p.case_id: Assembled(p.head.execution.kept) for p in pairs},
        }

    def _affordable(
        self,
        pairs: Sequence[_Pair],
        contexts: Mapping[SwapFactor, Mapping[str, Assembled]],
        budget: CallBudget,
    ) -> list[_Pair]:
        """The pairs whose swaps the budget allows, chosen by their ids alone as long as what is stored is equal."""
        by_id = {pair.case_id: pair for pair in pairs}
        left = budget.left
        chosen = set()
        for case_id in ranked(list(by_id)):
            needed = budget.attempts * self._needed(by_id[case_id], contexts)
            if needed <= left:
                left -= needed
                chosen.add(case_id)
        return [pair for pair in pairs if pair.case_id in chosen]

    def _needed(self, pair: _Pair, contexts: Mapping[SwapFactor, Mapping[str, Assembled]]) -> int:
        """How many calls of `generate` the swaps of a case take."""
        needed = 0
        for factor in pair.changed:
            source = pair.base if factor is SwapFactor.RETRIEVAL else pair.head
            side = self.base if factor is SwapFactor.GENERATION else self.head
            context = source.execution.candidates[: contexts[factor][pair.case_id].kept]
            needed += not side.steps.answers(pair.head.case, context)
        return needed

    def _steps(
        self,
        factor: SwapFactor,
        pairs: Mapping[str, _Pair],
        contexts: Mapping[SwapFactor, Mapping[str, Assembled]],
    ) -> Callable[[RecordedCase], Steps]:
        """How a case is executed with one factor of base: by the generator of one side, under a setting, on the
        retrieval of one of them."""
        base, head = self.base.steps, self.head.steps
        steps, setting = (base, head) if factor is SwapFactor.GENERATION else (head, head)
        if factor is SwapFactor.ASSEMBLY:
            setting = base
        steps = steps.under(setting.system.top_k, setting.system.token_budget)

        def execute(recorded: RecordedCase) -> Steps:
            pair = pairs[recorded.case.id]
            source = pair.base if factor is SwapFactor.RETRIEVAL else pair.head
            return steps.generate_on(recorded.case, source.execution, contexts[factor][recorded.case.id])

        return execute

    def _calls(self) -> int:
        return self.base.steps.calls["generate"] + self.head.steps.calls["generate"]


def _differing(base: Run, head: Run) -> dict[SwapFactor, dict[str, None]]:
    """What of the systems' settings and code differs, by factor; token counts count only where there is a budget."""
    found: defaultdict[SwapFactor, dict[str, None]] = defaultdict(dict)
    counts = base.system.token_budget is not None or head.system.token_budget is not None
    for change in differences(*(Identified(run.system, (), run.ingredients) for run in (base, head))):
        stages = set(change.stages) if counts else set(change.stages) - {"count_tokens"}
        for factor in SwapFactor:
            if stages & _PARTS[factor]:
                found[factor][change.name] = None
    return found


def _swap(factor: SwapFactor, came: ChildCase | None) -> Swap:
    if came is None:
        return Swap(factor, None)
    error = came.error
    return Swap(
        factor, came.outcome, None if error is None else f"{error.stage}: {error.kind}: {error.message}"
    )


def _not_attributed(case_id: str, reason: str) -> AttributedCase:
    return AttributedCase(case_id, Verdict.NOT_ATTRIBUTED, reason, ())
