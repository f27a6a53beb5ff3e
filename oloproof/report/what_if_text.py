"""Replays of a whole run as text: a row a setting, and below it the cases that recovered and broke."""

from __future__ import annotations

from collections.abc import Sequence

from oloproof.comparison import Flips, PairedMetric
from oloproof.diagnosis.replays import ReplayedRun, Setting
from oloproof.diagnosis.what_if import WhatIf
from oloproof.judges.costs import JudgeCosts
from oloproof.report.comparison_text import named
from oloproof.report.judges_text import costs_lines
from oloproof.report.tables import grid
from oloproof.report.terminal import plain
from oloproof.report.unstable_text import unstable_lines
from oloproof.run_records import Run
from oloproof.statistics.figures import points, points_interval
from oloproof.store.unstable import UnstableCase


def what_if_text(
    found: WhatIf,
    run: Run,
    criterion: str,
    axes: Sequence[str],
    known: Sequence[UnstableCase] = (),
    costs: JudgeCosts | None = None,
) -> str:
    """What `oloproof what-if` prints. The table is of one criterion; of others what changed is told below it. `axes`
    are the fields of a setting that were asked for, `known` the cases that are remembered as unstable, `costs` what
    judges took."""
    system = run.system
    budget = "" if system.token_budget is None else f", token_budget {system.token_budget}"
    calls = sum(each.generated for each in found.settings)
    lines = [
        f"What if: {run.id} · {plain(run.project)} · {_count(found.cases, 'case')} · depth {system.depth}, "
        f"top_k {system.top_k}{budget}",
        f"Replayed on the recorded retrieval: {_count(calls, 'generate call')}, no retriever call",
        *costs_lines(costs),
        *_table(found, criterion, axes),
    ]
    for each in found.settings:
        lines += _changes(each, _name(each.setting, axes), criterion)
    if found.left_out:
        count = len(found.left_out)
        verb = "is" if count == 1 else "are"
        lines.append(
            f"Errored in the run, so {verb} missing on both sides: {_count(count, 'case')}, {named(found.left_out)}"
        )
    if found.not_judged:
        lines.append(f"Not judged, since a model would be asked: {named(found.not_judged)} (see --criterion)")
    if found.unrecorded:
        lines.append(
            f"Not replayed, so missing: {_count(found.unrecorded, 'case')} whose retrieval is no longer stored"
        )
    moved = {
        case_id
        for each in found.settings
        for flips in each.flips
        for case_id in (*flips.fixed, *flips.new_failures)
    }
    lines += unstable_lines(
        [case for case in known if case.case_id in moved], [e.criterion for e in run.evaluators]
    )
    if moved:
        lines.append("What moved here is a hypothesis to test on new cases.")
    return "\n".join(lines)


def _table(found: WhatIf, criterion: str, axes: Sequence[str]) -> list[str]:
    rows = []
    for each in found.settings:
        recovered, broken = _moved(each.flips_of(criterion))
        difference = _difference(each.metric(criterion))
        changed = f"{each.changed} of {each.replayed}"
        rows.append([_name(each.setting, axes), changed, recovered, broken, difference])
    headers = [
        "Setting",
        "Contexts changed",
        "Recovered",
        "Broken",
        f"Difference in {criterion}, 95% interval",
    ]
    return grid(headers, rows)


def _moved(flips: Flips | None) -> tuple[str, str]:
    """`2 of 4` failing cases recovered, `1 of 9` passing ones broken."""
    if flips is None:
        return "-", "-"
    fixed, broken = len(flips.fixed), len(flips.new_failures)
    return (
        f"{fixed} of {fixed + len(flips.still_failing)}",
        f"{broken} of {broken + flips.still_passing}",
    )


def _difference(metric: PairedMetric | None) -> str:
    if metric is None or metric.difference is None:
        return "no difference observed"
    figures = f"{points(metric.difference)} points"
    if metric.interval is not None:
        figures += f" {points_interval(metric.interval)}"
    return f"{figures} · {metric.missing} missing" if metric.missing else figures


def _changes(each: ReplayedRun, name: str, criterion: str) -> list[str]:
    """The cases that moved under a setting; of the criteria outside the table the figures too."""
    lines = []
    for metric in each.metrics:
        flips = each.flips_of(metric.criterion)
        moved = []
        if flips is not None and flips.fixed:
            moved.append(f"recovered {named(flips.fixed)}")
        if flips is not None and flips.new_failures:
            moved.append(f"broken {named(flips.new_failures)}")
        if metric.criterion == criterion:
            if moved:
                lines.append(f"{name} · {criterion}: {'; '.join(moved)}")
        elif moved or metric.difference:
            lines.append(f"{name} · {metric.criterion}: {'; '.join([_difference(metric), *moved])}")
    if each.errored:
        lines.append(f"{name} · gave no answer: {named(each.errored)}")
    return lines


def _name(setting: Setting, axes: Sequence[str]) -> str:
    parts = []
    for axis in axes:
        value = getattr(setting, axis)
        parts.append(f"{axis} {value.object if axis == 'reranker' else value}")
    return ", ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
