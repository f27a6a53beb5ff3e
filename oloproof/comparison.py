"""Comparing a candidate run with a baseline run, case by case.

Cases pair when id, input and expected value are equal. Difference is candidate minus baseline throughout.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from oloproof.canonical import content_id
from oloproof.jsonform import to_json
from oloproof.records import Interval, Judgment, State
from oloproof.run_records import CaseRow, EvaluatorRecord, Run

#: Order in which a pair's two states decide what becomes of it.
_EXCLUDED, _MISSING = State.EXCLUDED, State.MISSING


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
    """A candidate against a baseline. `identical` is true when nothing that could change a result differs between
    the two systems. `added`, `removed` and `edited` name the cases that do not pair."""

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

    @property
    def id(self) -> str:
        return content_id(to_json(self))

    def metric(self, criterion: str) -> PairedMetric | None:
        return next((m for m in self.metrics if m.criterion == criterion), None)

    def flips_of(self, criterion: str) -> Flips | None:
        return next((f for f in self.flips if f.criterion == criterion), None)


class _PairSum:
    """The pairs of one criterion."""

    def __init__(self, evaluator: EvaluatorRecord) -> None:
        self.criterion = evaluator.criterion
        self.kind = evaluator.kind
        self.candidate = array("d")
        self.baseline = array("d")
        self.missing = 0
        self.excluded: Counter[str] = Counter()

    def add(self, candidate: Judgment, baseline: Judgment) -> None:
        for judgment in (candidate, baseline):
            if judgment.state is _EXCLUDED:
                self.excluded[judgment.reason or "unstated"] += 1
                return
        if candidate.state is _MISSING or baseline.state is _MISSING:
            self.missing += 1
            return
        self.candidate.append(candidate.value or 0.0)
        self.baseline.append(baseline.value or 0.0)

    def metric(self, confidence: float, min_support: int = 1) -> PairedMetric:
        from oloproof.statistics.intervals import paired_difference_betting

        paired = len(self.candidate)
        differences = [c - b for c, b in zip(self.candidate, self.baseline, strict=True)]
        interval = None
        if paired + self.missing >= max(1, min_support):
            interval = paired_difference_betting(differences, self.missing, confidence)
        return PairedMetric(
            criterion=self.criterion,
            kind=self.kind,
            candidate=math.fsum(self.candidate) / paired if paired else None,
            baseline=math.fsum(self.baseline) / paired if paired else None,
            difference=math.fsum(differences) / paired if paired else None,
            interval=interval,
            paired=paired,
            missing=self.missing,
            excluded=dict(sorted(self.excluded.items())),
        )


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
    sums = [_PairSum(evaluator) for evaluator, _, _ in shared]
    flips = {i: _FlipLists() for i, (e, _, _) in enumerate(shared) if e.kind == "pass_fail"}
    slices: dict[tuple[int, str], list[_PairSum]] = {}
    others = {row.case_id: row for row in baseline_rows}
    added: list[str] = []
    edited: list[str] = []
    paired = 0
    for row in candidate_rows:
        other = others.pop(row.case_id, None)
        if other is None:
            added.append(row.case_id)
            continue
        if other.pair != row.pair:
            edited.append(row.case_id)
            continue
        paired += 1
        judgments = [(row.judgments[i], other.judgments[j]) for _, i, j in shared]
        for total, (ours, theirs) in zip(sums, judgments, strict=True):
            total.add(ours, theirs)
        for index, lists in flips.items():
            lists.add(row.case_id, *judgments[index])
        for index, value in enumerate(other.tags):
            if value is not None:
                _add_to_slice(slices, (index, value), [e for e, _, _ in shared], judgments)
    return Comparison(
        candidate=candidate.id,
        baseline=baseline.id,
        confidence=confidence,
        identical=candidate.system == baseline.system,
        paired_cases=paired,
        metrics=tuple(total.metric(confidence) for total in sums),
        slice_rows=_slice_rows(slices, baseline, confidence),
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


def _add_to_slice(
    slices: dict[tuple[int, str], list[_PairSum]],
    key: tuple[int, str],
    evaluators: Sequence[EvaluatorRecord],
    judgments: Sequence[tuple[Judgment, Judgment]],
) -> None:
    sums = slices.get(key)
    if sums is None:
        sums = slices[key] = [_PairSum(evaluator) for evaluator in evaluators]
    for total, (ours, theirs) in zip(sums, judgments, strict=True):
        total.add(ours, theirs)


def _slice_rows(
    slices: Mapping[tuple[int, str], Sequence[_PairSum]], baseline: Run, confidence: float
) -> tuple[PairedSliceRow, ...]:
    rows = []
    for index, value in sorted(slices):
        sums = slices[index, value]
        first = sums[0] if sums else None
        cases = 0 if first is None else len(first.candidate) + first.missing + first.excluded.total()
        metrics = tuple(total.metric(confidence, baseline.min_slice_support) for total in sums)
        rows.append(PairedSliceRow(baseline.slices[index], value, cases, metrics))
    return tuple(rows)


#: Something that loads the stored cases of a run.
RowsOf = Callable[[str], Iterable[CaseRow]]
