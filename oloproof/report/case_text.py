"""One case as text, and the list of a run's cases."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oloproof.evaluators.relevance import RelevanceUnit, unit_grades, unit_of
from oloproof.judges.verdicts import Verdict
from oloproof.records import Candidate, Case, Execution, Judgment, State
from oloproof.report.judges_text import samples_lines
from oloproof.report.tables import grid
from oloproof.report.terminal import plain, plain_lines
from oloproof.run_records import CaseRow, Run
from oloproof.statistics.figures import score

#: How much of a passage's text its row shows.
SNIPPET = 80


@dataclass(frozen=True)
class CaseView:
    """A case of a run with all that is known of it. `texts` gives the passages' texts by their ids, `said` what each
    judge said, by criterion: for each question its samples."""

    row: CaseRow
    case: Case
    execution: Execution | None
    texts: Mapping[str | None, str | None]
    said: Mapping[str, Sequence[Sequence[Judgment | Verdict]]] = field(default_factory=dict)


def fate(position: int, execution: Execution) -> str:
    """What became of the candidate at a 1-based position."""
    if position <= execution.kept:
        return "kept"
    if (
        execution.error is not None
        and execution.error.stage == "count_tokens"
        and position <= execution.top_k
    ):
        return "not decided"
    return "dropped by budget" if position <= execution.top_k else "cut by top_k"


def case_text(run: Run, view: CaseView) -> str:
    """What `oloproof inspect RUN --case ID` prints."""
    case, execution = view.case, view.execution
    lines = [f"Case {plain(case.id)} of {run.id}"]
    lines += _field("Input", case.input)
    lines += _field("Expected", {k: v for k, v in case.expected.items() if k != "gold_context"})
    for passage in case.gold_context or ():
        lines += _field(f"Gold context {_name(passage.doc_id, passage.chunk_id)}", passage.text)
    if case.metadata:
        lines += _field("Metadata", case.metadata)
    unit: RelevanceUnit = "chunk" if run.relevance_unit == "chunk" else "document"
    if execution is not None:
        lines += _candidates(case, execution, view.texts, unit)
    lines += _fate_lines(run, view)
    if view.row.seconds:
        spent = ", ".join(f"{stage} {1000 * seconds:.1f} ms" for stage, seconds in view.row.seconds.items())
        lines.append(f"Time: {spent}")
    return "\n".join(lines)


def outcome_lines(run: Run, view: CaseView) -> list[str]:
    """What a case was given and what it came to, where its contents are known already: context, answer or error, what
    it printed, judgments."""
    execution = view.execution
    lines = []
    if execution is not None:
        passages = [_name(c.doc_id, c.chunk_id) for c in execution.context]
        lines.append(f"Context: {', '.join(passages) or 'none'}")
    return lines + _fate_lines(run, view)


def _fate_lines(run: Run, view: CaseView) -> list[str]:
    lines = []
    if view.execution is not None and view.execution.output is not None:
        lines += _field("Answer", view.execution.output)
    if view.row.error is not None:
        lines += _error(view.row)
    if len(view.row.attempts) > (view.row.error is not None):
        lines += [
            f"Attempt {number} of {attempt.stage} errored: {attempt.kind}: {plain(attempt.message)}"
            for number, attempt in enumerate(view.row.attempts, 1)
        ]
    if view.row.log:
        lines += ["Printed by the app:", *(f"  {line}" for line in plain_lines(view.row.log))]
    lines.append("Judgments")
    judged = zip(run.evaluators, view.row.judgments, strict=True)
    for e, judgment in judged:
        lines.append(f"  {e.criterion}: {judgment_text(judgment, e.kind, detail=True)}")
        lines += [f"    {line}" for line in samples_lines(view.said.get(e.criterion, ()))]
    return lines


def case_lines(run: Run, rows: Sequence[CaseRow]) -> list[str]:
    """A line a case: its id, then each criterion with its judgment."""
    names = [e.criterion for e in run.evaluators]
    table = []
    for row in rows:
        state = "" if row.error is None else f"{row.error.stage}: {row.error.kind}"
        judged = zip(run.evaluators, row.judgments, strict=True)
        table.append(
            [plain(row.case_id), *(judgment_text(judgment, e.kind) for e, judgment in judged), state]
        )
    return grid(["Case", *names, "Errored"], table)


def judgment_text(judgment: Judgment, kind: str, *, detail: bool = False) -> str:
    """A judgment of a criterion that is pass_fail or a score; with `detail` all that is known of a missing one."""
    if judgment.state is not State.OBSERVED or judgment.value is None:
        if detail and judgment.detail is not None:
            return f"{judgment.state.value} ({judgment.reason}: {plain(judgment.detail)})"
        return f"{judgment.state.value} ({judgment.reason})"
    if kind == "pass_fail":
        return "passed" if judgment.passed else "failed"
    return score(judgment.value)


def _candidates(
    case: Case, execution: Execution, texts: Mapping[str | None, str | None], unit: RelevanceUnit
) -> list[str]:
    if execution.gold is not None:
        return ["Context given", *_passage_rows(execution.gold, texts)]
    relevant = unit_grades(case.relevant, unit)
    rows = []
    for position, candidate in enumerate(execution.candidates, 1):
        rows.append(
            [
                str(position),
                _name(candidate.doc_id, candidate.chunk_id),
                "-" if candidate.score is None else f"{candidate.score:g}",
                fate(position, execution),
                "yes" if unit_of(candidate, unit) in relevant else "",
                _snippet(texts.get(candidate.text_id)),
            ]
        )
    if not rows:
        return ["Candidates: none"]
    return ["Candidates", *grid(["Rank", "Passage", "Score", "Context", "Relevant", "Text"], rows)]


def _passage_rows(passages: Sequence[Candidate], texts: Mapping[str | None, str | None]) -> list[str]:
    rows = [[_name(p.doc_id, p.chunk_id), _snippet(texts.get(p.text_id))] for p in passages]
    return grid(["Passage", "Text"], rows)


def _error(row: CaseRow) -> list[str]:
    assert row.error is not None
    stage, kind, message, traceback = row.error
    lines = [f"Errored in {stage}: {kind}: {plain(message)}"]
    return lines + [f"  {line}" for line in plain_lines(traceback or "")]


def _field(name: str, value: Any) -> list[str]:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return [f"{name}: {plain(text)}"]


def _name(doc_id: str, chunk_id: str | None) -> str:
    return plain(doc_id if chunk_id is None else f"{doc_id}#{chunk_id}")


def _snippet(text: str | None) -> str:
    if text is None:
        return ""
    flat = plain(" ".join(text.split()))
    return flat if len(flat) <= SNIPPET else flat[: SNIPPET - 1] + "…"
