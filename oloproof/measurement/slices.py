"""Slices: groups of cases that share a value, from their metadata or from what happened to them."""

from __future__ import annotations

from collections.abc import Sequence

from oloproof.canonical import canonical_json
from oloproof.evaluators.relevance import RelevanceUnit, best_position
from oloproof.measurement.metrics import MetricSum
from oloproof.records import Case, Execution, Judgment
from oloproof.run_records import SliceRow


def slice_value(name: str, case: Case, execution: Execution, unit: RelevanceUnit) -> str | None:
    """The value of a case in a slice, None when it is in none.

    `relevant_position` is top_k, beyond_top_k or not_retrieved, and none for a case without relevance labels;
    `context_truncated` is true when the token budget left a passage out.
    """
    if name.startswith("metadata."):
        return _metadata_value(name, case)
    if not execution.retrieved:
        return None
    if name == "context_truncated":
        return "true" if execution.context_truncated else "false"
    if not any(entry.grade > 0 for entry in case.relevant or ()):
        return None
    position = best_position(execution.candidates, case.relevant, unit)
    if position is None:
        return "not_retrieved"
    return "top_k" if position <= execution.top_k else "beyond_top_k"


def _metadata_value(name: str, case: Case) -> str | None:
    value: object = case.metadata
    for key in name.split(".")[1:]:
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    if value is None:
        return None
    return value if isinstance(value, str) else canonical_json(value)


class SliceSums:
    """The judgments of a run, gathered by slice and value."""

    def __init__(self, names: Sequence[str], criteria: Sequence[str]) -> None:
        self._names = names
        self._criteria = criteria
        self._sums: dict[tuple[int, str], list[MetricSum]] = {}
        self._cases: dict[tuple[int, str], int] = {}

    def add(self, tags: Sequence[str | None], judgments: Sequence[Judgment], binary: Sequence[bool]) -> None:
        for index, value in enumerate(tags):
            if value is None:
                continue
            key = (index, value)
            sums = self._sums.get(key)
            if sums is None:
                sums = self._sums[key] = [MetricSum(criterion) for criterion in self._criteria]
            self._cases[key] = self._cases.get(key, 0) + 1
            for total, judgment, is_binary in zip(sums, judgments, binary, strict=True):
                total.add(judgment, is_binary)

    def rows(self, min_support: int) -> tuple[SliceRow, ...]:
        """One row a value, in the order of the slices' names and then of their values."""
        return tuple(
            SliceRow(
                slice=self._names[index],
                value=value,
                cases=self._cases[index, value],
                metrics=tuple(total.metric(min_support=min_support) for total in self._sums[index, value]),
            )
            for index, value in sorted(self._sums)
        )
