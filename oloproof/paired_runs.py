"""Two runs paired case by case: read once, then measured at any confidence, over all pairs or a slice of them.

Difference is candidate minus baseline throughout.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from oloproof.comparison import Comparison, Flips, PairedMetric, PairedSliceRow, SliceValue
from oloproof.pairing import pair_cases, pair_evaluators
from oloproof.records import Judgment, State
from oloproof.run_records import CaseRow, EvaluatorRecord, Run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Numbers = NDArray[np.intp]


class Differences(NamedTuple):
    """The differences of the pairs that were observed on both sides, shape (n,), and how many more are missing."""

    values: Floats
    missing: int


class PairedRuns:
    """Two runs, paired. Slices are those of the baseline's cases: what was true before the change."""

    def __init__(
        self,
        candidate: Run,
        baseline: Run,
        candidate_rows: Iterable[CaseRow],
        baseline_rows: Iterable[CaseRow],
    ) -> None:
        import numpy as np

        evaluators = pair_evaluators(candidate.evaluators, baseline.evaluators)
        shared = evaluators.shared
        theirs = _Columns([position for _, _, position in shared], baseline_rows, slices=len(baseline.slices))
        ours = _Columns([position for _, position, _ in shared], candidate_rows)
        pairs = pair_cases(ours.cases, theirs.cases)
        numbers = np.asarray(pairs.candidate, dtype=np.intp), np.asarray(pairs.baseline, dtype=np.intp)
        self.candidate, self.baseline = candidate, baseline
        self._pairs, self._changes = pairs, evaluators.changes
        self._ids = [ours.cases[number][0] for number in pairs.candidate]
        self._identical = bool(self._ids) and _all_the_same(
            (
                (ours.outcomes[i], theirs.outcomes[j])
                for i, j in zip(pairs.candidate, pairs.baseline, strict=True)
            ),
            same_system=candidate.system == baseline.system,
        )
        self._criteria = {
            evaluator.criterion: _Criterion(evaluator, ours.judged[index], theirs.judged[index], *numbers)
            for index, (evaluator, _, _) in enumerate(shared)
        }
        self._slices = {
            SliceValue(name, value): members
            for name, tags in zip(baseline.slices, theirs.tags, strict=True)
            for value, members in tags.members(numbers[1])
        }

    def comparison(self, confidence: float = 0.95) -> Comparison:
        """The record of what the pairs say, its intervals at a confidence."""
        pairs, criteria = self._pairs, self._criteria.values()
        return Comparison(
            candidate=self.candidate.id,
            baseline=self.baseline.id,
            confidence=confidence,
            identical=self._identical,
            paired_cases=len(self._ids),
            metrics=tuple(criterion.metric(confidence) for criterion in criteria),
            slice_rows=tuple(self._slice_row(value, confidence) for value in self._slices),
            flips=tuple(c.flips(self._ids) for c in criteria if c.kind == "pass_fail"),
            added=pairs.added,
            removed=pairs.removed,
            edited=pairs.edited,
            renamed=pairs.renamed,
            evaluators=self._changes,
        )

    def metric(
        self, criterion: str, confidence: float = 0.95, within: SliceValue | None = None
    ) -> PairedMetric | None:
        """One criterion over all pairs or those of one value of a slice; None when it is not compared. A value that no
        pair has gives a metric of no pairs."""
        found = self._criteria.get(criterion)
        return None if found is None else found.metric(confidence, self._members(within))

    def flips(self, criterion: str, within: SliceValue | None = None) -> Flips | None:
        """The cases of a pass/fail criterion that changed, None when there is no such criterion in both runs."""
        found = self._criteria.get(criterion)
        if found is None or found.kind != "pass_fail":
            return None
        return found.flips(self._ids, self._members(within))

    def differences(self, criterion: str, within: SliceValue | None = None) -> Differences | None:
        """The differences that the metric is the mean of, None when it is not compared."""
        found = self._criteria.get(criterion)
        return None if found is None else found.differences(self._members(within))

    def could_newly_fail(self, criterion: str, within: SliceValue | None = None) -> int:
        """How many pairs may hide a new failure of a pass/fail criterion: they are missing, and neither is the baseline
        known to have failed nor the candidate to pass."""
        found = self._criteria.get(criterion)
        return 0 if found is None else found.could_newly_fail(self._members(within))

    def _members(self, within: SliceValue | None) -> Numbers | None:
        import numpy as np

        return None if within is None else self._slices.get(within, np.empty(0, dtype=np.intp))

    def _slice_row(self, value: SliceValue, confidence: float) -> PairedSliceRow:
        members, support = self._slices[value], self.baseline.min_slice_support
        metrics = tuple(each.metric(confidence, members, support) for each in self._criteria.values())
        return PairedSliceRow(value.slice, value.value, len(members), metrics)


# ------------------------------------------------------------------------------------- what is kept of a run

#: What stands in for a value: a missing one, or from 2 on an excluded one, by its reason.
_OBSERVED, _MISSING = 0, 1


class _Judged:
    """One criterion's judgments in the order of the cases; `gaps` says what stands where there is no value."""

    def __init__(self) -> None:
        self.values = array("d")
        self.gaps = array("H")
        self.reasons: dict[str, int] = {}

    def add(self, judgment: Judgment) -> None:
        self.values.append(judgment.value or 0.0)
        gap = _OBSERVED
        if judgment.value is None:
            gap = _MISSING
            if judgment.state is State.EXCLUDED:
                gap = self.reasons.setdefault(judgment.reason or "unstated", len(self.reasons) + 2)
        self.gaps.append(gap)


class _Tags:
    """The values of one slice in the order of the cases."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._codes = array("q")

    def add(self, value: str | None) -> None:
        self._codes.append(-1 if value is None else self._names.setdefault(value, len(self._names)))

    def members(self, baseline: Numbers) -> Iterable[tuple[str, Numbers]]:
        """The numbers of the pairs of each value that any has, by the values' names."""
        import numpy as np

        codes = np.asarray(self._codes, dtype=np.intp)[baseline]
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(len(self._names) + 1))
        for name in sorted(self._names):
            code = self._names[name]
            members = order[starts[code] : starts[code + 1]]
            if members.size:
                yield name, members


class _Errored(NamedTuple):
    """How a case came to give no answer: at which stage and how that ended, after which retrieval, how much of it."""

    stage: str
    kind: str
    retrieval: bytes | None
    kept: int


#: A case's execution, or what it came to without one; None when it was never attempted.
_Outcome = bytes | _Errored | None


def _all_the_same(pairs: Iterable[tuple[_Outcome, _Outcome]], *, same_system: bool) -> bool:
    """Whether nothing that could change a result differs: both sides of every pair are one execution, equal in every
    ingredient of its identity. A case that errors has no execution, and what it read is not known. It counts as the
    same when it errs alike on both sides, and every ingredient that is known of the two systems is equal."""
    return all(
        ours is not None and ours == theirs and (same_system or not isinstance(ours, _Errored))
        for ours, theirs in pairs
    )


class _Columns:
    """What a comparison needs of a run's cases, criterion by criterion."""

    def __init__(self, evaluators: Sequence[int], rows: Iterable[CaseRow], slices: int = 0) -> None:
        self.cases: list[tuple[str, bytes]] = []
        self.outcomes: list[_Outcome] = []
        self.judged = [_Judged() for _ in evaluators]
        self.tags = [_Tags() for _ in range(slices)]
        columns = list(zip(self.judged, evaluators, strict=True))
        for row in rows:
            self.cases.append((row.case_id, row.pair))
            self.outcomes.append(_outcome(row))
            for judged, position in columns:
                judged.add(row.judgments[position])
            for tags, value in zip(self.tags, row.tags, strict=False):
                tags.add(value)


def _outcome(row: CaseRow) -> _Outcome:
    if row.error is None:
        return row.execution
    return _Errored(row.error.stage, row.error.kind, row.retrieval, row.kept)


class _Criterion:
    """One criterion of the pairs, by their numbers."""

    def __init__(
        self,
        evaluator: EvaluatorRecord,
        candidate: _Judged,
        baseline: _Judged,
        candidate_numbers: Numbers,
        baseline_numbers: Numbers,
    ) -> None:
        import numpy as np

        self.criterion, self.kind = evaluator.criterion, evaluator.kind
        self._candidate = np.asarray(candidate.values)[candidate_numbers]
        self._baseline = np.asarray(baseline.values)[baseline_numbers]
        ours = np.asarray(candidate.gaps, dtype=np.intp)[candidate_numbers]
        theirs = np.asarray(baseline.gaps, dtype=np.intp)[baseline_numbers]
        theirs[theirs > _MISSING] += len(candidate.reasons)
        # The reason of a side that is excluded, the candidate's before the baseline's; else a side is missing.
        self._gaps = np.where(
            ours > _MISSING, ours, np.where(theirs > _MISSING, theirs, np.maximum(ours, theirs))
        )
        self._reasons = [*candidate.reasons, *baseline.reasons]
        failed_before = (theirs == _OBSERVED) & (self._baseline != 1.0)
        passes = (ours == _OBSERVED) & (self._candidate == 1.0)
        self._open = (self._gaps == _MISSING) & ~failed_before & ~passes

    def metric(self, confidence: float, members: Numbers | None = None, min_support: int = 1) -> PairedMetric:
        """The metric over all pairs, or those with the numbers `members`."""
        from oloproof.statistics.betting import paired_difference_betting

        observed, missing, excluded = self._counted(members)
        candidate, baseline = self._candidate[observed], self._baseline[observed]
        differences = candidate - baseline
        interval = None
        if observed.size + missing >= max(1, min_support):
            interval = paired_difference_betting(differences, missing, confidence)
        return PairedMetric(
            criterion=self.criterion,
            kind=self.kind,
            candidate=_mean(candidate),
            baseline=_mean(baseline),
            difference=_mean(differences),
            interval=interval,
            paired=int(observed.size),
            missing=missing,
            excluded=excluded,
        )

    def differences(self, members: Numbers | None = None) -> Differences:
        observed, missing, _ = self._counted(members)
        return Differences(self._candidate[observed] - self._baseline[observed], missing)

    def flips(self, ids: Sequence[str], members: Numbers | None = None) -> Flips:
        import numpy as np

        observed, _, _ = self._counted(members)
        passed, passed_before = self._candidate[observed] == 1.0, self._baseline[observed] == 1.0

        def named(chosen: NDArray[np.bool_]) -> tuple[str, ...]:
            return tuple(ids[number] for number in observed[chosen].tolist())

        return Flips(
            criterion=self.criterion,
            new_failures=named(passed_before & ~passed),
            fixed=named(passed & ~passed_before),
            still_failing=named(~passed & ~passed_before),
            still_passing=int(np.count_nonzero(passed & passed_before)),
        )

    def could_newly_fail(self, members: Numbers | None = None) -> int:
        found = self._open if members is None else self._open[members]
        return int(found.sum())

    def _counted(self, members: Numbers | None) -> tuple[Numbers, int, dict[str, int]]:
        """The numbers of the pairs with both values, how many are missing, and how many excluded by reason."""
        import numpy as np

        gaps = self._gaps if members is None else self._gaps[members]
        kept = np.flatnonzero(gaps == _OBSERVED)
        counts = np.bincount(gaps, minlength=_MISSING + 1 + len(self._reasons)).tolist()
        excluded: dict[str, int] = {}
        for reason, count in sorted(zip(self._reasons, counts[_MISSING + 1 :], strict=True)):
            if count:
                excluded[reason] = excluded.get(reason, 0) + count
        return kept if members is None else members[kept], counts[_MISSING], excluded


def _mean(values: Floats) -> float | None:
    """The mean, exactly rounded, so that the order of the cases is no matter; None of no values."""
    return math.fsum(values.tolist()) / values.size if values.size else None
