"""Which factors differ between base and head: in settings and code, or in the files that they read for a case.

This is told by identities, as reuse is, so what cannot change a result is no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from oloproof.diagnosis.attribution import SwapFactor
from oloproof.execution.replay_steps import ReplaySteps
from oloproof.records import Execution
from oloproof.run_records import Run
from oloproof.validity.difference import Identified, differences

#: The stages and settings, as a difference names them, that each factor is made of.
_PARTS = {
    SwapFactor.RETRIEVAL: {"retrieve"},
    SwapFactor.ASSEMBLY: {"assembly", "count_tokens"},
    SwapFactor.GENERATION: {"generate"},
}
#: For each stored execution the sets of files that its retrieval and its generation depend on.
FilesBehind = Mapping[bytes, tuple[bytes, bytes]]


class DifferingFactors:
    """Compares two systems, each with its checkout at hand."""

    def __init__(self, base: Run, head: Run, base_steps: ReplaySteps, head_steps: ReplaySteps) -> None:
        self._base, self._head = base_steps, head_steps
        self._files: dict[SwapFactor, dict[str, None]] = {factor: {} for factor in SwapFactor}
        self._named = _named(base, head)

    def of(self, base: Execution, head: Execution, files: FilesBehind) -> frozenset[SwapFactor]:
        """The factors that differ for a case with these recorded executions."""
        ours, theirs = self._head.identities.stages, self._base.identities.stages
        retrieval, generation = zip(files[base.id], files[head.id], strict=True)
        found = set()
        if ours.retrieve != theirs.retrieve or self._read_differently(SwapFactor.RETRIEVAL, *retrieval):
            found.add(SwapFactor.RETRIEVAL)
        if ours.generate != theirs.generate or self._read_differently(SwapFactor.GENERATION, *generation):
            found.add(SwapFactor.GENERATION)
        if self._assembled_differently(head):
            found.add(SwapFactor.ASSEMBLY)
        return frozenset(found)

    def names(self) -> dict[SwapFactor, tuple[str, ...]]:
        """What differs of each factor that does: settings, definitions, and files of the cases looked at so far."""
        found = {factor: (*self._named[factor], *self._files[factor]) for factor in SwapFactor}
        return {factor: names for factor, names in found.items() if names}

    def _assembled_differently(self, head: Execution) -> bool:
        ours, theirs = self._head, self._base
        settings = [(steps.system.top_k, steps.system.token_budget) for steps in (ours, theirs)]
        if settings[0] != settings[1]:
            return True
        if ours.system.token_budget is None:
            return False
        if ours.identities.stages.count_tokens != theirs.identities.stages.count_tokens:
            return True
        counted = ours.files_of_counts(head.candidates[: ours.system.top_k])
        return self._note(SwapFactor.ASSEMBLY, (name for f in counted for name in theirs.changed_files(f)))

    def _read_differently(self, factor: SwapFactor, base: bytes, head: bytes) -> bool:
        """Whether what either side read has another content in the other's checkout."""
        return self._note(factor, (*self._base.changed_files(head), *self._head.changed_files(base)))

    def _note(self, factor: SwapFactor, paths: Iterable[str]) -> bool:
        found = dict.fromkeys(paths)
        self._files[factor].update(found)
        return bool(found)


def _named(base: Run, head: Run) -> dict[SwapFactor, dict[str, None]]:
    """What of the systems' settings and code differs, by factor; token counts count only where there is a budget."""
    found: dict[SwapFactor, dict[str, None]] = {factor: {} for factor in SwapFactor}
    counts = base.system.token_budget is not None or head.system.token_budget is not None
    for change in differences(*(Identified(run.system, (), run.ingredients) for run in (base, head))):
        stages = set(change.stages) if counts else set(change.stages) - {"count_tokens"}
        for factor, parts in _PARTS.items():
            if stages & parts:
                found[factor][change.name] = None
    return found
