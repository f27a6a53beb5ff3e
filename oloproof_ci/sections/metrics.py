"""The metrics with their differences, what could not be compared, and the exploratory slices."""

from __future__ import annotations

from oloproof.comparison import PairedMetric, PairedSliceRow
from oloproof.records import Metric
from oloproof.report.run_text import FAULTS
from oloproof.settings.rules import ALL
from oloproof.statistics.agreement import CorrectedRate
from oloproof.statistics.figures import percent, percent_interval
from oloproof_ci.markdown import Align, code, details, shortened, table
from oloproof_ci.report import Report
from oloproof_ci.sections.figures import (
    NONE,
    USUAL_CONFIDENCE,
    confidence_text,
    difference_text,
    estimate_text,
    interval_text,
    is_rate,
    observed_cases_text,
    paired_cases_text,
)
from oloproof_ci.sections.room import Room
from oloproof_ci.sections.words import NAME, base_name, counted, listed, named

#: How many metrics the slices' table has columns for.
_MAX_SLICE_METRICS = 6
#: How many reasons of missing judgments it tells of a metric.
_MAX_FAULTS = 4


def metrics_section(report: Report, room: Room) -> str:
    """Base, head and difference of each metric; of the head alone when there is nothing to compare with."""
    comparison = report.comparison
    total = len(report.head.metrics if comparison is None else comparison.metrics)
    text = _alone(report, room) if comparison is None else _compared(report, room)
    parts = [
        "### Metrics",
        text if total else "No metric could be compared." if comparison else "There is none.",
    ]
    if total > room.metrics:
        parts.append(f"and {counted(total - room.metrics, 'more metric')}")
    parts += [_faults(metric) for metric in report.head.metrics[: room.metrics]]
    parts += [_corrected(rate) for rate in report.head.corrected[: room.metrics]]
    parts.append(_unpaired(report, room))
    return "\n\n".join(part for part in parts if part)


def _faults(metric: Metric) -> str:
    """Why a judge, or an evaluator of the user's, gave no judgments here; empty when it gave them all."""
    reasons = {why: count for why, count in metric.missing_reasons.items() if why.startswith(FAULTS)}
    if not reasons:
        return ""
    told = [f"{named(why)} {count}" for why, count in list(reasons.items())[:_MAX_FAULTS]]
    if len(reasons) > _MAX_FAULTS:
        told.append(counted(len(reasons) - _MAX_FAULTS, "more reason"))
    return f"No judgment of {named(metric.criterion)} here for {counted(sum(reasons.values()), 'case')}: " + (
        ", ".join(told) + "."
    )


def _corrected(rate: CorrectedRate) -> str:
    """What people would have found, beside what their judge found."""
    figures = f"{percent(rate.estimate)} {percent_interval(rate.interval)}"
    errors = f"on {counted(rate.labels, 'answer')} that people labelled too"
    missing = f", {rate.missing} more not known" if rate.missing else ""
    return (
        f"{named(rate.criterion)} here corrected by the judge's errors {errors}{missing}: {figures}; as judged "
        f"{percent(rate.raw)}."
    )


def _compared(report: Report, room: Room) -> str:
    comparison = report.comparison
    assert comparison is not None
    headers: list[tuple[str, Align]] = [
        ("Metric", "left"),
        (base_name(report), "right"),
        ("here", "right"),
        (f"Difference [{confidence_text(comparison.confidence)}]", "right"),
        ("Cases", "left"),
    ]
    return table(headers, [_paired_row(metric, report) for metric in comparison.metrics[: room.metrics]])


def _paired_row(metric: PairedMetric, report: Report) -> list[str]:
    rate = is_rate(report, metric.criterion)
    return [
        named(metric.criterion),
        estimate_text(metric.baseline, rate),
        estimate_text(metric.candidate, rate),
        difference_text(metric.difference, metric.interval, rate),
        paired_cases_text(metric),
    ]


def _alone(report: Report, room: Room) -> str:
    metrics = report.head.metrics
    confidence = next((m.interval.confidence for m in metrics if m.interval), USUAL_CONFIDENCE)
    headers: list[tuple[str, Align]] = [
        ("Metric", "left"),
        ("here", "right"),
        (f"Interval [{confidence_text(confidence)}]", "right"),
        ("Cases", "left"),
    ]
    return table(headers, [_row(metric) for metric in metrics[: room.metrics]])


def _row(metric: Metric) -> list[str]:
    rate = metric.kind == "rate"
    return [
        named(metric.criterion),
        estimate_text(metric.estimate, rate),
        interval_text(metric.interval, rate),
        observed_cases_text(metric),
    ]


def slices_section(report: Report, room: Room) -> str:
    """A row for each value of a slice, a column for each metric; exploratory."""
    comparison = report.comparison
    if comparison is None or not comparison.slice_rows or not room.slices:
        return ""
    rows = comparison.slice_rows
    names = [metric.criterion for metric in comparison.metrics[:_MAX_SLICE_METRICS]]
    headers: list[tuple[str, Align]] = [("Slice", "left"), ("Cases", "right")]
    headers += [(named(name), "right") for name in names]
    text = table(headers, [_slice_row(row, names, report) for row in rows[: room.slices]])
    gated = any(decision.scope != ALL for decision in report.gate.decisions)
    read = "" if gated else "; no rule reads these"
    note = f"Exploratory, {base_name(report)} → here{read}. In parentheses: too few cases to tell."
    if len(rows) > room.slices:
        note += f" And {counted(len(rows) - room.slices, 'more slice value')}."
    return details(counted(len(rows), "slice value"), f"{note}\n\n{text}")


def _slice_row(row: PairedSliceRow, names: list[str], report: Report) -> list[str]:
    metrics = {metric.criterion: metric for metric in row.metrics}
    cells = [_slice_cell(metrics.get(name), is_rate(report, name)) for name in names]
    return [code(shortened(f"{row.slice}={row.value}", NAME)), str(row.cases), *cells]


def _slice_cell(metric: PairedMetric | None, rate: bool) -> str:
    if metric is None or metric.difference is None:
        return NONE
    before, after = estimate_text(metric.baseline, rate), estimate_text(metric.candidate, rate)
    text = before if before == after else f"{before} → {after}"
    return text if metric.interval else f"({text})"


def _unpaired(report: Report, room: Room) -> str:
    """Cases and evaluators that are in no difference above."""
    comparison = report.comparison
    if comparison is None:
        return ""
    changes = [("added", comparison.added), ("removed", comparison.removed), ("edited", comparison.edited)]
    cases = [f"{len(ids)} {what} ({listed(ids, room.names)})" for what, ids in changes if ids]
    lines = []
    if cases:
        lines.append(f"Cases in no pair: {', '.join(cases)}.")
    different = [change.criterion for change in comparison.evaluators if change.change != "renamed"]
    if different:
        lines.append(f"Not compared, since the evaluators differ: {listed(different, room.names)}.")
    return "<br>\n".join(lines)
