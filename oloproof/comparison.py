"""What comes of comparing a candidate run with a baseline run. Difference is candidate minus baseline throughout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from oloproof.pairing import EvaluatorChange, RenamedCase
from oloproof.records import Interval


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
    """The cases of one pass/fail criterion by what became of them, in the candidate's order and by its ids."""

    criterion: str
    new_failures: tuple[str, ...]
    fixed: tuple[str, ...]
    still_failing: tuple[str, ...]
    still_passing: int


@dataclass(frozen=True)
class Comparison:
    """A candidate against a baseline. `identical` is true when both sides of every pair are the same execution, equal
    in every ingredient of its identity; or, between equal systems, errored in the same way. `added`, `removed` and
    `edited` name the cases that do not pair, `renamed` those that pair under two ids. `evaluators` says what became of
    those that differ; but for the renamed ones, their criteria are not compared."""

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
    renamed: tuple[RenamedCase, ...] = ()
    evaluators: tuple[EvaluatorChange, ...] = ()

    def metric(self, criterion: str) -> PairedMetric | None:
        return next((m for m in self.metrics if m.criterion == criterion), None)

    def flips_of(self, criterion: str) -> Flips | None:
        return next((f for f in self.flips if f.criterion == criterion), None)


class SliceValue(NamedTuple):
    """One value of a slice, such as billing of metadata.topic."""

    slice: str
    value: str
