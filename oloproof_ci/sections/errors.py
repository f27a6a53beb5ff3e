"""The cases that gave no answer: where it happened, and what they came to in the base."""

from __future__ import annotations

from collections.abc import Sequence

from oloproof_ci.markdown import Align, code, prose, shortened, table
from oloproof_ci.report import ErroredCase, Report, Side
from oloproof_ci.sections.figures import NONE
from oloproof_ci.sections.room import Room
from oloproof_ci.sections.words import ANSWER, NAME, base_name, counted, named

_IN_BASE = {"missing": "not judged", None: NONE}


def errors_section(report: Report, room: Room) -> str:
    """The head's errored cases, those that passed in the base first, and how many errored in the base; empty when
    there are none."""
    errors, base = report.errors, report.base
    parts = []
    if errors.total:
        shown = errors.cases[: room.errored]
        title = f"{counted(errors.total, 'case')} errored here"
        parts.append(f"### {title}" if shown else title)
        if shown:
            parts.append(_table(shown, report))
        rest = errors.total - len(shown)
        if rest:
            parts.append(
                f"{f'and {rest} more; ' if shown else ''}`oloproof inspect ID --failures` shows them all"
            )
    notes = ["What errored counts as missing."]
    if base and base.errored:
        notes.insert(0, _in_base(report, base))
    elif not parts:
        return ""
    return "\n\n".join([*parts, " ".join(notes)])


def _in_base(report: Report, base: Side) -> str:
    """How many cases errored in the base, and what most of them came to."""
    told = f"{base.errored} of {counted(base.cases, 'case')} errored on {base_name(report)}"
    most = report.errors.in_base
    if most is None:
        return f"{told}."
    many = f"{most.cases} of them " if most.cases < base.errored else ""
    return f"{told}, {many}in {named(most.stage)}: {prose(shortened(most.message, ANSWER).rstrip('.'))}."


def _table(cases: Sequence[ErroredCase], report: Report) -> str:
    headers: list[tuple[str, Align]] = [("Case", "left"), ("Stage", "left"), ("What happened", "left")]
    rows = [[named(case.case_id), named(case.stage), _what(case)] for case in cases]
    if report.base is not None:
        headers.append((f"On {base_name(report)}", "left"))
        rows = [
            [*row, _IN_BASE.get(case.base) or str(case.base)] for row, case in zip(rows, cases, strict=True)
        ]
    return table(headers, rows)


def _what(case: ErroredCase) -> str:
    """How the stage ended, and what it said."""
    said = prose(shortened(case.message, ANSWER))
    kind = code(case.kind[:NAME])
    return f"{kind}<br>{said}" if said else kind
