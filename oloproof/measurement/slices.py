"""Slices: groups of cases that share a value, from their metadata or from what happened to them."""

from __future__ import annotations

from array import array
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
        self._columns = [_Column(criterion) for criterion in criteria]
        self._added = 0
        #: The numbers of the cases in each slice and value, in the order in which they were added.
        self._cases: dict[tuple[int, str], array[int]] = {}

    def add(self, tags: Sequence[str | None], judgments: Sequence[Judgment], binary: Sequence[bool]) -> None:
        for index, value in enumerate(tags):
            if value is None:
                continue
            cases = self._cases.get((index, value))
            if cases is None:
                cases = self._cases[index, value] = array("L")
            cases.append(self._added)
        for column, judgment, is_binary in zip(self._columns, judgments, binary, strict=True):
            column.add(judgment, is_binary)
        self._added += 1

    def rows(self, min_support: int) -> tuple[SliceRow, ...]:
        """One row a value, in the order of the slices' names and then of their values."""
        return tuple(
            SliceRow(
                slice=self._names[index],
                value=value,
                cases=len(cases),
                metrics=tuple(column.sum(cases).metric(min_support=min_support) for column in self._columns),
            )
            for (index, value), cases in sorted(self._cases.items())
        )


class _Column:
    """One criterion's judgments in the order of the cases: of most only the value is kept."""

    def __init__(self, criterion: str) -> None:
        self._criterion = criterion
        #: 0 where there is none.
        self._values = array("d")
        self._binary = bytearray()
        #: Those that are missing or excluded, by the number of the case.
        self._others: dict[int, Judgment] = {}

    def add(self, judgment: Judgment, binary: bool) -> None:
        value = judgment.value
        if value is None:
            self._others[len(self._values)] = judgment
            value = 0.0
        self._values.append(value)
        self._binary.append(binary)

    def sum(self, cases: Sequence[int]) -> MetricSum:
        """The judgments of some of the cases."""
        total = MetricSum(self._criterion)
        values, binary, others = self._values, self._binary, self._others
        for case in cases:
            judgment = others.get(case)
            if judgment is not None:
                total.add(judgment, bool(binary[case]))
            else:
                total.values.append(values[case])
                total.binary = total.binary and bool(binary[case])
        return total
