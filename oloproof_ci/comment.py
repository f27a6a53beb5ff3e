"""The comment on a pull request: a report as markdown that a reviewer takes in in ten seconds."""

from __future__ import annotations

from oloproof_ci.report import Report
from oloproof_ci.sections.decisions import decisions_section
from oloproof_ci.sections.errors import errors_section
from oloproof_ci.sections.failures import changes_section, new_failures_section
from oloproof_ci.sections.headline import headline, warnings_section
from oloproof_ci.sections.metrics import metrics_section, slices_section
from oloproof_ci.sections.provenance import provenance_section
from oloproof_ci.sections.room import Room, rooms

#: GitHub refuses a comment above 65,536 characters; this leaves room for what is put around ours.
MAX_BYTES = 60_000


def comment(report: Report) -> str:
    """The comment, below MAX_BYTES of UTF-8 whatever is in the report.

    Order: gate and reason, warnings, decisions, metrics, new failures, errored cases, what else changed, implicated
    factors, slices, provenance. What does not fit is counted instead, least telling first.
    """
    text = ""
    for room in rooms():
        text = _comment(report, room)
        if len(text.encode()) < MAX_BYTES:
            break
    return text


def _comment(report: Report, room: Room) -> str:
    parts = [
        headline(report, room),
        warnings_section(report, room),
        decisions_section(report, room),
        metrics_section(report, room),
        new_failures_section(report, room),
        errors_section(report, room),
        changes_section(report, room),
        slices_section(report, room),
        provenance_section(report, room),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
