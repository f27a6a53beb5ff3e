"""What is known of the cases that broke: label, evidence from both runs, and what was answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oloproof.diagnosis.labels import Label, Strength
from oloproof.diagnosis.records import DiagnosedCase, Diagnosis
from oloproof.evaluators.fields import find_field
from oloproof.evaluators.relevance import RelevanceUnit, Unit, unit_positions
from oloproof.records import Case, Execution
from oloproof.report.case_text import fate
from oloproof.run_records import CaseRow, EvaluatorRecord, Run
from oloproof.settings.cases import case_from_json
from oloproof.workplace import Store
from oloproof_ci.report import Evidence, NewFailure, Place

#: How much of an answer the report keeps, in characters, and how many relevant units of a case it traces.
MAX_ANSWER = 300
MAX_EVIDENCE = 4
_FATES = {"kept": "in context"}


class Recorded:
    """Cases of one stored run, loaded by id."""

    def __init__(self, store: Store, run: Run, case_ids: Sequence[str]) -> None:
        self._rows: dict[str, CaseRow] = {row.case_id: row for row in store.runs.rows(run.id, case_ids)}
        rows = self._rows.values()
        self._executions = store.results.executions([row.execution for row in rows if row.execution])
        self._bodies = store.runs.bodies([row.body for row in rows])

    def case(self, case_id: str) -> Case:
        return case_from_json(self._bodies[self._rows[case_id].body])

    def execution(self, case_id: str) -> Execution | None:
        row = self._rows.get(case_id)
        return None if row is None or row.execution is None else self._executions.get(row.execution)


def describe_new_failures(
    case_ids: Sequence[str],
    evaluator: EvaluatorRecord,
    unit: RelevanceUnit,
    base: Recorded,
    head: Recorded,
    diagnosis: Diagnosis | None,
    base_repeats: Mapping[str, str],
    lines: Mapping[str, int],
) -> tuple[NewFailure, ...]:
    """The record of each new failure. `base_repeats` says what the base's repeat came to, `lines` where in the case
    file a case stands."""
    found = []
    for case_id in case_ids:
        diagnosed = diagnosis.case(case_id) if diagnosis else None
        case = head.case(case_id)
        before, after = base.execution(case_id), head.execution(case_id)
        verdict = _verdict(diagnosed)
        found.append(
            NewFailure(
                case_id=case_id,
                label=verdict[0],
                reason=verdict[1],
                strength=verdict[2],
                unstable=is_unstable(case_id, diagnosed, base_repeats),
                top_k=after.top_k if after else 0,
                evidence=tuple(_evidence(case, before, after, unit)),
                expected=_expected(case, evaluator.definition),
                base_answer=_answer(before, evaluator.definition),
                head_answer=_answer(after, evaluator.definition),
                line=lines.get(case_id, 0),
            )
        )
    return tuple(found)


def is_unstable(case_id: str, diagnosed: DiagnosedCase | None, base_repeats: Mapping[str, str]) -> bool:
    """Whether a repeat contradicts the regression: the head passed when repeated, or the base failed."""
    head_passed = diagnosed is not None and diagnosed.label is Label.UNSTABLE
    return head_passed or base_repeats.get(case_id) == "failed"


def _verdict(diagnosed: DiagnosedCase | None) -> tuple[Label, str, Strength]:
    if diagnosed is None:
        return Label.NOT_DIAGNOSED, "over_budget", Strength.NONE
    return diagnosed.label, diagnosed.reason, diagnosed.strength


def _evidence(
    case: Case, base: Execution | None, head: Execution | None, unit: RelevanceUnit
) -> Iterable[Evidence]:
    """The relevant units, best ranked in the base first."""
    if base is None or head is None:
        return
    before = unit_positions(base.candidates, case.relevant, unit)
    after = unit_positions(head.candidates, case.relevant, unit)
    ordered = sorted(before, key=lambda name: before[name] or len(base.candidates) + 1)
    for name in ordered[:MAX_EVIDENCE]:
        yield Evidence(_unit_text(name), _place(before[name], base), _place(after.get(name), head))


def _place(rank: int | None, execution: Execution) -> Place:
    if rank is None:
        return Place(None, "not retrieved")
    became = fate(rank, execution)
    return Place(rank, _FATES.get(became, became))


def _unit_text(name: Unit) -> str:
    if isinstance(name, str):
        return name
    doc_id, chunk_id = name
    return doc_id if chunk_id is None else f"{doc_id}#{chunk_id}"


def _expected(case: Case, definition: Mapping[str, Any]) -> str | None:
    field = definition.get("expected_field")
    value = find_field(case.expected, field) if isinstance(field, str) else definition.get("pattern")
    return _shortened(value)


def _answer(execution: Execution | None, definition: Mapping[str, Any]) -> str | None:
    if execution is None or execution.output is None:
        return None
    return _shortened(find_field(execution.output, str(definition.get("field", "answer"))))


def _shortened(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    return value if len(value) <= MAX_ANSWER else value[: MAX_ANSWER - 1] + "…"
