"""What is known of the cases that broke: label, evidence from both runs, what was answered, and what errored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

from oloproof.comparison import Comparison
from oloproof.diagnosis.labels import Label, Outcome, Strength
from oloproof.diagnosis.records import DiagnosedCase, Diagnosis
from oloproof.evaluators.fields import find_field
from oloproof.evaluators.relevance import RelevanceUnit, Unit, unit_positions
from oloproof.records import Case, Execution, State
from oloproof.report.case_text import fate
from oloproof.run_records import CaseRow, EvaluatorRecord, Run
from oloproof.settings.cases import CaseFileFacts, case_from_json, iter_cases
from oloproof.store.runs import Runs, pair_digest
from oloproof.workplace import Store
from oloproof_ci.report import BaseError, ErroredCase, Errors, Evidence, NewFailure, Place
from oloproof_ci.worktrees import without_worktree

#: How much of an answer the report keeps, in characters, and how many relevant units of a case it traces.
MAX_ANSWER = 300
MAX_EVIDENCE = 4
#: How many errored cases the report names.
MAX_ERRORED = 20
#: How many runs are looked through for the last result of a case.
MAX_RUNS_BACK = 20
_FATES = {"kept": "in context"}


def case_lines(facts: CaseFileFacts, comparison: Comparison) -> dict[str, int]:
    """The lines in the case file of the cases that newly fail in any criterion."""
    wanted = {case_id for flips in comparison.flips for case_id in flips.new_failures}
    if not wanted:
        return {}
    return {case.id: case.line for case in iter_cases(facts) if case.id in wanted}


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
    head_repeats: Mapping[str, Outcome],
    base_repeats: Mapping[str, Outcome],
    lines: Mapping[str, int],
    undiagnosed: str = "over_budget",
) -> tuple[NewFailure, ...]:
    """The record of each new failure. The repeats say what an unchanged repeat came to on either side, `lines` where in
    the case file a case stands, `undiagnosed` why a case was not diagnosed."""
    found = []
    for case_id in case_ids:
        diagnosed = diagnosis.case(case_id) if diagnosis else None
        case = head.case(case_id)
        before, after = base.execution(case_id), head.execution(case_id)
        verdict = _verdict(diagnosed, undiagnosed)
        head_repeat = head_repeats.get(case_id)
        base_repeat = base_repeats.get(case_id)
        found.append(
            NewFailure(
                case_id=case_id,
                label=verdict[0],
                reason=verdict[1],
                strength=verdict[2],
                unstable=head_repeat == "passed" or base_repeat == "failed",
                head_repeat=head_repeat,
                base_repeat=base_repeat,
                top_k=after.top_k if after else 0,
                evidence=tuple(_evidence(case, before, after, unit)),
                expected=_expected(case, evaluator.definition),
                base_answer=_answer(before, evaluator.definition),
                head_answer=_answer(after, evaluator.definition),
                line=lines.get(case_id, 0),
            )
        )
    return tuple(found)


def _verdict(diagnosed: DiagnosedCase | None, undiagnosed: str) -> tuple[Label, str, Strength]:
    if diagnosed is None:
        return Label.NOT_DIAGNOSED, undiagnosed, Strength.NONE
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
    return _cut(value) if isinstance(value, str) else None


def _cut(text: str) -> str:
    return text if len(text) <= MAX_ANSWER else text[: MAX_ANSWER - 1] + "…"


# ------------------------------------------------------------------------------------- errored cases

_NEWLY_ERRORED_FIRST = ("passed", "failed", "missing", "errored", None)


def find_errors(
    runs: Runs, head: Run, base: Run | None, criteria: Sequence[str], cases: Callable[[], Iterable[Case]]
) -> Errors:
    """The cases of the head that gave no answer. `criteria` are those whose failures are reported; `cases` reads the
    case file, for the lines."""
    found = {
        row.case_id: ErroredCase(
            row.case_id, row.error.stage, row.error.kind, _cut(row.error.message), None, 0
        )
        for row in runs.rows(head.id)
        if row.error is not None
    }
    if base is not None:
        indexes = [index for name in criteria if (index := base.evaluator_index(name)) is not None]
        for row in runs.rows(base.id, list(found)):
            found[row.case_id] = replace(found[row.case_id], base=_came_to(row, indexes))
    ordered = sorted(found.values(), key=lambda case: _NEWLY_ERRORED_FIRST.index(case.base))
    shown = {case.case_id for case in ordered[:MAX_ERRORED]}
    lines = {case.id: case.line for case in cases() if case.id in shown} if shown else {}
    return Errors(
        total=len(ordered),
        newly=sum(case.base == "passed" for case in ordered),
        cases=tuple(replace(case, line=lines.get(case.case_id, 0)) for case in ordered[:MAX_ERRORED]),
        in_base=_commonest_error(runs, base) if base is not None and base.errored else None,
    )


def named_by_commit(errors: Errors, sha: str) -> Errors:
    """The same with the base's message shortened, and the base's files named as git names them."""
    most = errors.in_base
    if most is None:
        return errors
    return replace(errors, in_base=replace(most, message=_cut(without_worktree(most.message, sha))))


def _commonest_error(runs: Runs, base: Run) -> BaseError | None:
    errors = Counter(
        (row.error.stage, row.error.message) for row in runs.rows(base.id) if row.error is not None
    )
    for (stage, message), count in errors.most_common(1):
        return BaseError(stage, message, count)
    return None


def _came_to(row: CaseRow, indexes: Sequence[int]) -> Outcome | Literal["errored"]:
    """What a case came to: it passes when it passes any of the criteria."""
    if row.error is not None:
        return "errored"
    judged = [row.judgments[index] for index in indexes if row.judgments[index].state is State.OBSERVED]
    if not judged:
        return "missing"
    return "passed" if any(judgment.passed for judgment in judged) else "failed"


class LastResults:
    """What cases came to in the newest runs."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    @cached_property
    def _newest(self) -> list[Run]:
        return self._runs.newest(MAX_RUNS_BACK)

    def failed(self, case: Case) -> bool:
        """Whether a case failed any pass/fail criterion when it was last measured; false where that is not known."""
        content = pair_digest(case)
        for run in self._newest:
            for row in self._runs.rows(run.id, [case.id]):
                if row.pair == content and row.execution is not None:
                    judged = zip(run.evaluators, row.judgments, strict=True)
                    return any(each.failed for evaluator, each in judged if evaluator.kind == "pass_fail")
        return False
