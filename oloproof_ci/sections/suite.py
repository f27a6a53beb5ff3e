"""What a pull request changes of its own test: where it asks less than the base, which cases and evaluators differ."""

from __future__ import annotations

from collections.abc import Sequence

from oloproof.pairing import EvaluatorChange
from oloproof_ci.markdown import Align, code, prose, shortened, table
from oloproof_ci.report import EditedCase, Loosening, Report, SuiteChanges
from oloproof_ci.sections.figures import NONE
from oloproof_ci.sections.room import Room
from oloproof_ci.sections.words import ANSWER, SENTENCE, base_name, counted, listed, named

#: How many settings or files of an evaluator, and places of an edited case, are named.
_MAX_DETAILS = 3


def looser_section(report: Report, room: Room) -> str:
    """Every way in which the pull request asks less than the base; empty when there is none."""
    if not report.loosened:
        return ""
    shown = report.loosened[: room.loosened]
    base = base_name(report)
    headers: list[tuple[str, Align]] = [("Where", "left"), ("What", "left"), (base, "left"), ("here", "left")]
    parts = [f"### Looser than on {base}", _whose_gate(report)]
    if shown:
        parts.append(table(headers, [_loosening(each) for each in shown]))
    rest = len(report.loosened) - len(shown)
    if rest:
        parts.append(
            f"and {rest} more; `report.json` names them all" if shown else f"{rest} in all, see `report.json`"
        )
    return "\n\n".join(part for part in parts if part)


def _whose_gate(report: Report) -> str:
    versions = {file.version for file in report.policies}
    if "head" not in versions:
        return f"The rules that decide here are those of {base_name(report)}; once this is merged, they are these."
    return "" if versions != {"head"} else "The rules that decide are those of this pull request."


def _loosening(each: Loosening) -> list[str]:
    return [named(each.file), named(each.what), _value(each.before), _value(each.after)]


def _value(text: str) -> str:
    return code(shortened(text, ANSWER)) if text else NONE


def suite_section(report: Report, room: Room) -> str:
    """The cases and evaluators that are not what they are in the base; empty when all are."""
    changes = report.suite
    if changes is None:
        return ""
    parts = [_cases(changes, room), _edits(changes, report, room), _evaluators(changes, report, room)]
    parts = [part for part in parts if part]
    return "\n\n".join(["### Cases and evaluators that differ", *parts]) if parts else ""


def _cases(changes: SuiteChanges, room: Room) -> str:
    if changes.problem:
        why = prose(shortened(changes.problem, SENTENCE))
        return f"The base's cases could not be read, so it is not known which were removed or edited: {why}"
    lists = [
        ("added", changes.added),
        ("removed", changes.removed),
        ("renamed", [f"{before} → {after}" for before, after in changes.renamed]),
        ("edited", [edited.case_id for edited in changes.edited]),
    ]
    said = [
        f"{counted(len(names), 'case')} {what}: {listed(names, room.names)}" for what, names in lists if names
    ]
    failing = changes.removed_failing
    if failing:
        said.append(
            f"**{counted(len(failing), 'removed case')} failed when last measured**: {listed(failing, room.names)}"
        )
    return "<br>\n".join(said)


def _edits(changes: SuiteChanges, report: Report, room: Room) -> str:
    """What stood and stands in the edited cases."""
    shown = [edited for edited in changes.edited if edited.places][: room.edits]
    if not shown:
        return ""
    headers: list[tuple[str, Align]] = [
        ("Edited case", "left"),
        ("Where", "left"),
        (base_name(report), "left"),
        ("here", "left"),
    ]
    return table(headers, [_edit(edited) for edited in shown])


def _edit(edited: EditedCase) -> list[str]:
    where = listed(edited.places, _MAX_DETAILS)
    values = (edited.before, edited.after)
    said = [NONE if text is None else prose(shortened(text, ANSWER)) or "(empty)" for text in values]
    return [named(edited.case_id), where, *said]


def _evaluators(changes: SuiteChanges, report: Report, room: Room) -> str:
    """What became of the evaluators, and by which both sides were judged."""
    if not changes.evaluators:
        return ""
    lines = [f"- {named(c.criterion)} {_became(c, report)}" for c in changes.evaluators[: room.evaluators]]
    if not lines:
        return f"Evaluators that differ: {len(changes.evaluators)}; `report.json` names them all"
    if len(changes.evaluators) > len(lines):
        lines.append(f"- and {counted(len(changes.evaluators) - len(lines), 'more evaluator')}")
    judged = (
        "Both sides are judged by the evaluators as they are here:" if report.comparison else "Evaluators:"
    )
    return "\n".join([judged, "", *lines])


def _became(change: EvaluatorChange, report: Report) -> str:
    detail = listed(change.detail, _MAX_DETAILS)
    return {
        "added": "is new",
        "removed": f"is gone; it is there on {base_name(report)}",
        "renamed": f"was called {detail}",
        "settings": f"has other settings: {detail}",
        "code": "has other code",
        "data": f"reads other data: {detail}",
    }[change.change]


def counts_text(counts: Sequence[tuple[str, int]]) -> str:
    """`1 removed case, 2 edited cases, 1 changed evaluator`."""
    nouns = {
        "removed": "removed case",
        "edited": "edited case",
        "evaluators": "changed evaluator",
        "labels": "changed label file",
    }
    said = [counted(count, nouns[name]) for name, count in counts if count and name in nouns]
    return ", ".join(said) or "changes that could not be read"
