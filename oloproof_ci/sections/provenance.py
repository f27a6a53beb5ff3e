"""The small print: what was reused, which commits and policies, and the ids to look further with."""

from __future__ import annotations

from oloproof.report.judges_text import costs_text
from oloproof.report.run_text import hit_miss
from oloproof_ci.markdown import code
from oloproof_ci.report import Report, Side
from oloproof_ci.sections.room import Room
from oloproof_ci.sections.words import base_name, counted, listed, named, words

_SHORT_SHA = 7
#: How much of a content id is shown: `sha256:` and enough to be found by.
_SHORT_ID = len("sha256:") + 12


def provenance_section(report: Report, room: Room) -> str:
    lines = [_work("here", report.head)]
    if report.base is not None:
        lines.append(_work(base_name(report), report.base))
    calls = sum(failures.calls for failures in report.failures)
    if calls:
        lines.append(
            f"{counted(calls, 'call')} of generate made for gold runs, repeats, swaps and experiments"
        )
    if report.judges is not None:
        lines.append(f"judges: {costs_text(report.judges)}")
    lines += [_commits(report), _suite(report, room), _ids(report, room)]
    return f"<sub>{'<br>'.join(lines)}</sub>"


def _commits(report: Report) -> str:
    head, base = report.head, report.base
    changes = " + uncommitted changes" if head.dirty else ""
    text = f"{code(head.sha[:_SHORT_SHA])} ({words(head.ref)}){changes}"
    commit = report.base_commit
    if commit is None:
        return text
    against = f"{code(commit.sha[:_SHORT_SHA])} ({words(commit.ref)})"
    if base is None:
        return f"{text}; the base {against} gave nothing to compare with"
    dirty = " + uncommitted changes" if base.dirty else ""
    earlier = "" if base.since is None else f", whose run is from the cache, {_age(base.since)} old"
    return f"{text} against {against}{dirty}{earlier}"


def _age(seconds: float) -> str:
    """In the largest unit of which there are two."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def _suite(report: Report, room: Room) -> str:
    cases = counted(report.head.cases, "case")
    return f"suite {named(report.config)} on {named(report.dataset)}, {cases} · policies {_policies(report, room)}"


def _policies(report: Report, room: Room) -> str:
    """The policy files, and whose version of each decided."""
    whose = {"base": f"as on {base_name(report)}", "head": "as here", "outside": "outside the repository"}
    said = []
    for version, where in whose.items():
        paths = [file.path for file in report.policies if file.version == version]
        if paths:
            said.append(f"{listed(paths, min(room.names, 6))} {where}")
    return ", ".join(said) or "none"


def _work(name: str, side: Side) -> str:
    """What one side took, and what it did not need to do again."""
    cache = side.cache
    stages = f"retrieve {hit_miss(cache.retrieve)}, generate {hit_miss(cache.generate)}"
    if cache.execution.hit:
        whole = f"executions {hit_miss(cache.execution)}"
        stages = f"{whole}, {stages}" if cache.execution.miss else whole
    calls = f"{counted(side.calls, 'call')} made, {side.calls_avoided} avoided"
    return f"{name}: {stages} · {calls} · {side.stage_seconds:.1f} s in the stages"


def _ids(report: Report, room: Room) -> str:
    parts = [named(report.head.run)]
    if report.base is not None:
        parts[0] += f" against {named(report.base.run)}"
    if report.comparison_id:
        parts.append(f"comparison {code(report.comparison_id[:_SHORT_ID])}")
    for failures in report.failures[: room.criteria]:
        if failures.diagnosis:
            parts.append(f"diagnosis {code(failures.diagnosis[:_SHORT_ID])}")
    return f"`oloproof inspect ID` shows more of {' · '.join(parts)}"
