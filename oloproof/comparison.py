"""Comparing a candidate run with a baseline run, case by case.

Cases pair when id, input and expected value are equal. Difference is candidate minus baseline throughout.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oloproof.records import Interval, Judgment, State
from oloproof.run_records import CaseRow, EvaluatorRecord, Run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class PairedMetric:
    """One criterion over the pairs. `candidate` and `baseline` are the means over the pairs with both sides
    observed, `difference` the mean of their differences. `missing` counts pairs with a side missing, `excluded`
    those that the metric does not apply to on either side, by reason."""

    criterion: str
    kind: str
    candidate: float | None
    baseline: float | None
    difference: float | None
    interval: Interval | None
    paired: int
    missing: int
    excluded: Mapping[str, int]


@dataclass(frozen=True)
class PairedSliceRow:
    """The paired metrics of the cases that share one value of a slice in the baseline run. Exploratory."""

    slice: str
    value: str
    cases: int
    metrics: tuple[PairedMetric, ...]


@dataclass(frozen=True)
class Flips:
    """The cases of one pass/fail criterion by what became of them, in the candidate's order."""

    criterion: str
    new_failures: tuple[str, ...]
    fixed: tuple[str, ...]
    still_failing: tuple[str, ...]
    still_passing: int


@dataclass(frozen=True)
class Comparison:
    """A candidate against a baseline. `identical` is true when both sides of every pair are the same execution, equal
    in every ingredient of its identity. `added`, `removed` and `edited` name the cases that do not pair."""

    candidate: str
    baseline: str
    confidence: float
    identical: bool
    paired_cases: int
    metrics: tuple[PairedMetric, ...]
    slice_rows: tuple[PairedSliceRow, ...]
    flips: tuple[Flips, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    edited: tuple[str, ...]
    incomparable: tuple[str, ...]

    def metric(self, criterion: str) -> PairedMetric | None:
        return next((m for m in self.metrics if m.criterion == criterion), None)

    def flips_of(self, criterion: str) -> Flips | None:
        return next((f for f in self.flips if f.criterion == criterion), None)


class _Pairs:
    """The pairs of one criterion, by number. `_gaps` holds those without two values, with the reason why the metric
    does not apply to them, or None when a side is missing."""

    def __init__(self, evaluator: EvaluatorRecord) -> None:
        self.criterion = evaluator.criterion
        self.kind = evaluator.kind
        self._candidate = array("d")
        self._baseline = array("d")
        self._gaps: dict[int, str | None] = {}

    def add(self, candidate: Judgment, baseline: Judgment) -> None:
        if candidate.value is None or baseline.value is None:
            self._gaps[len(self._candidate)] = _gap(candidate, baseline)
        self._candidate.append(candidate.value or 0.0)
        self._baseline.append(baseline.value or 0.0)

    def metric(self, confidence: float, members: Sequence[int], min_support: int = 1) -> PairedMetric:
        """The metric over the pairs with the numbers `members`."""
        import numpy as np

        from oloproof.statistics.intervals import paired_difference_betting

        gaps = Counter(self._gaps[number] for number in members if number in self._gaps) if self._gaps else {}
        chosen = [number for number in members if number not in self._gaps] if gaps else members
        missing = gaps.pop(None, 0)
        paired = len(chosen)
        numbers = np.asarray(chosen, dtype=np.intp)
        candidate, baseline = np.asarray(self._candidate)[numbers], np.asarray(self._baseline)[numbers]
        differences = candidate - baseline
        interval = None
        if paired + missing >= max(1, min_support):
            interval = paired_difference_betting(differences, missing, confidence)
        return PairedMetric(
            criterion=self.criterion,
            kind=self.kind,
            candidate=_mean(candidate),
            baseline=_mean(baseline),
            difference=_mean(differences),
            interval=interval,
            paired=paired,
            missing=missing,
            excluded={reason: gaps[reason] for reason in sorted(filter(None, gaps))},
        )


def _gap(candidate: Judgment, baseline: Judgment) -> str | None:
    """Why a pair has no two values: the reason of a side that is excluded, else None, since a side is missing."""
    for judgment in (candidate, baseline):
        if judgment.state is State.EXCLUDED:
            return judgment.reason or "unstated"
    return None


def _mean(values: NDArray[np.float64]) -> float | None:
    """The mean, exactly rounded, so that the order of the cases is no matter; None of no values."""
    return math.fsum(values.tolist()) / values.size if values.size else None


class _FlipLists:
    def __init__(self) -> None:
        self.new_failures: list[str] = []
        self.fixed: list[str] = []
        self.still_failing: list[str] = []
        self.still_passing = 0

    def add(self, case_id: str, candidate: Judgment, baseline: Judgment) -> None:
        if candidate.state is not State.OBSERVED or baseline.state is not State.OBSERVED:
            return
        if candidate.passed and baseline.passed:
            self.still_passing += 1
        elif candidate.passed:
            self.fixed.append(case_id)
        elif baseline.passed:
            self.new_failures.append(case_id)
        else:
            self.still_failing.append(case_id)


def compare_runs(
    candidate: Run,
    baseline: Run,
    candidate_rows: Iterable[CaseRow],
    baseline_rows: Iterable[CaseRow],
    confidence: float = 0.95,
) -> Comparison:
    """Pair two runs and measure the differences. Slices are taken from the baseline run's cases."""
    shared, incomparable = _shared_evaluators(candidate, baseline)
    pairs = [_Pairs(evaluator) for evaluator, _, _ in shared]
    flips = {i: _FlipLists() for i, (e, _, _) in enumerate(shared) if e.kind == "pass_fail"}
    slices: defaultdict[tuple[int, str], array[int]] = defaultdict(lambda: array("q"))
    others = {row.case_id: row for row in baseline_rows}
    added: list[str] = []
    edited: list[str] = []
    paired = 0
    identical = True
    for row in candidate_rows:
        other = others.pop(row.case_id, None)
        if other is None:
            added.append(row.case_id)
            continue
        if other.pair != row.pair:
            edited.append(row.case_id)
            continue
        judgments = [(row.judgments[i], other.judgments[j]) for _, i, j in shared]
        for criterion, (ours, theirs) in zip(pairs, judgments, strict=True):
            criterion.add(ours, theirs)
        for index, lists in flips.items():
            lists.add(row.case_id, *judgments[index])
        for index, value in enumerate(other.tags):
            if value is not None:
                slices[index, value].append(paired)
        identical = identical and row.execution is not None and row.execution == other.execution
        paired += 1
    return Comparison(
        candidate=candidate.id,
        baseline=baseline.id,
        confidence=confidence,
        identical=identical and paired > 0,
        paired_cases=paired,
        metrics=tuple(criterion.metric(confidence, range(paired)) for criterion in pairs),
        slice_rows=_slice_rows(pairs, slices, baseline, confidence),
        flips=tuple(
            Flips(
                shared[index][0].criterion,
                tuple(lists.new_failures),
                tuple(lists.fixed),
                tuple(lists.still_failing),
                lists.still_passing,
            )
            for index, lists in flips.items()
        ),
        added=tuple(added),
        removed=tuple(others),
        edited=tuple(edited),
        incomparable=incomparable,
    )


def _shared_evaluators(
    candidate: Run, baseline: Run
) -> tuple[list[tuple[EvaluatorRecord, int, int]], tuple[str, ...]]:
    """The evaluators that both runs used in the same way, with their positions; and the criteria that only one run
    has or whose definition differs."""
    theirs = {e.criterion: (j, e) for j, e in enumerate(baseline.evaluators)}
    shared = []
    incomparable = []
    for i, evaluator in enumerate(candidate.evaluators):
        j, other = theirs.pop(evaluator.criterion, (-1, None))
        if other is not None and other == evaluator:
            shared.append((evaluator, i, j))
        else:
            incomparable.append(evaluator.criterion)
    return shared, (*incomparable, *theirs)


def _slice_rows(
    pairs: Sequence[_Pairs],
    slices: Mapping[tuple[int, str], Sequence[int]],
    baseline: Run,
    confidence: float,
) -> tuple[PairedSliceRow, ...]:
    rows = []
    for index, value in sorted(slices):
        members = slices[index, value]
        metrics = tuple(each.metric(confidence, members, baseline.min_slice_support) for each in pairs)
        rows.append(PairedSliceRow(baseline.slices[index], value, len(members), metrics))
    return tuple(rows)


#: Something that loads the stored cases of a run.
RowsOf = Callable[[str], Iterable[CaseRow]]
