"""The comment on a pull request: a report as markdown that a reviewer takes in in ten seconds."""

from __future__ import annotations

from collections.abc import Sequence

from oloproof_ci.markdown import alert
from oloproof_ci.report import Report
from oloproof_ci.sections.decisions import decisions_section
from oloproof_ci.sections.errors import errors_section
from oloproof_ci.sections.failures import changes_section, new_failures_section
from oloproof_ci.sections.headline import headline, warnings_section
from oloproof_ci.sections.metrics import metrics_section, slices_section
from oloproof_ci.sections.provenance import provenance_section
from oloproof_ci.sections.room import Room, everything, rooms
from oloproof_ci.sections.suite import looser_section, suite_section

#: GitHub refuses a comment above 65,536 characters; this leaves room for what is put around ours.
MAX_BYTES = 60_000
#: The runner drops a step's summary above 1 MiB; several suites may share one.
MAX_SUMMARY_BYTES = 900_000


def comment(report: Report, max_bytes: int = MAX_BYTES, notes: Sequence[str] = ()) -> str:
    """The comment, below `max_bytes` of UTF-8 whatever is in the report, as far as that leaves anything to say. `notes`
    are sentences in markdown on the whole of it, shown above the figures.

    Order: gate and reason, warnings, decisions, what the pull request changes of its own test, metrics, new failures,
    errored cases, what else changed, implicated factors, slices, provenance. What does not fit is counted instead,
    least telling first.
    """
    text = ""
    for room in rooms():
        text = _comment(report, room, notes)
        if len(text.encode()) < max_bytes:
            break
    return text


def whole(report: Report, max_bytes: int = MAX_SUMMARY_BYTES) -> str:
    """Everything that a comment could say; when that is beyond `max_bytes`, as much as a comment does."""
    text = _comment(report, everything(), ())
    return text if len(text.encode()) < max_bytes else comment(report, min(max_bytes, MAX_BYTES))


def _comment(report: Report, room: Room, notes: Sequence[str]) -> str:
    parts = [
        headline(report, room),
        alert("NOTE", notes) if notes else "",
        warnings_section(report, room),
        decisions_section(report, room),
        looser_section(report, room),
        suite_section(report, room),
        metrics_section(report, room),
        new_failures_section(report, room),
        errors_section(report, room),
        changes_section(report, room),
        slices_section(report, room),
        provenance_section(report, room),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
