"""A run as text: metrics with intervals, slices, what was reused, decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oloproof.decisions.records import Gate
from oloproof.records import Metric
from oloproof.report.decisions_text import decision_lines, gate_line
from oloproof.report.tables import grid
from oloproof.report.terminal import plain
from oloproof.run_records import Run, SliceRow, Tally
from oloproof.statistics.figures import percent, percent_interval, score, score_interval

#: How many slice values a run shows before it only counts them.
MAX_SLICE_ROWS = 40


def run_text(run: Run, gate: Gate) -> str:
    """What `oloproof run` prints."""
    lines = [_heading(run), *_table(run.metrics), *_slices(run)]
    lines += reuse_lines(run)
    if run.errored:
        lines.append(
            f"Errored: {run.errored} of {run.attempted} cases; "
            f"`oloproof inspect {run.id} --failures` shows them"
        )
    lines += decision_lines(gate.decisions)
    lines.append(gate_line(gate))
    return "\n".join(lines)


def reuse_lines(run: Run) -> list[str]:
    """The Cache and Stages lines, and how many cases another case with the same input answered for."""
    cache = run.cache
    lines = [
        f"Cache: execution {hit_miss(cache.execution)}; judgment {hit_miss(cache.judgment)}",
        f"Stages: retrieve {hit_miss(cache.retrieve)}; generate {hit_miss(cache.generate)}",
    ]
    if cache.equal_inputs:
        verb = "case has" if cache.equal_inputs == 1 else "cases have"
        lines.append(f"Equal inputs: {cache.equal_inputs} {verb} the input of another case and its execution")
    return lines


def hit_miss(tally: Tally) -> str:
    return f"{tally.hit} hit/{tally.miss} miss"


def metric_figures(metric: Metric) -> tuple[str, str]:
    """Estimate and interval as printed; a dash where there is none."""
    rate = metric.kind == "rate"
    estimate, interval = "-", "-"
    if metric.estimate is not None:
        estimate = percent(metric.estimate) if rate else score(metric.estimate)
    if metric.interval is not None:
        interval = percent_interval(metric.interval) if rate else score_interval(metric.interval)
    return estimate, interval


def observed_text(metric: Metric) -> str:
    """`9 / 13 observed · 0 missing · 0 excluded`, with the reasons of what was excluded."""
    if metric.kind == "rate":
        seen = f"{round(metric.total)} / {metric.observed} observed"
    else:
        seen = f"mean of {metric.observed} observed"
    return f"{seen} · {metric.missing} missing · {excluded_text(metric.excluded)}"


def excluded_text(excluded: Mapping[str, int]) -> str:
    total = sum(excluded.values())
    if not total:
        return "0 excluded"
    reasons = ", ".join(f"{name} {count}" for name, count in excluded.items())
    return f"{total} excluded ({reasons})"


def runs_text(runs: Sequence[Run]) -> str:
    """A line a run, newest first."""
    if not runs:
        return "No runs yet; `oloproof run` makes one."
    rows = [
        [
            run.id,
            run.created,
            plain(run.project),
            f"{run.attempted} / {run.cases}" if run.finished else f"{run.attempted} / {run.cases} unfinished",
            str(run.errored),
            " · ".join(f"{m.criterion} {metric_figures(m)[0]}" for m in run.metrics),
        ]
        for run in runs
    ]
    return "\n".join(grid(["Run", "Created (UTC)", "Suite", "Cases", "Errored", "Metrics"], rows))


def _heading(run: Run) -> str:
    system = run.system
    budget = "" if system.token_budget is None else f", token_budget {system.token_budget}"
    return (
        f"Run {run.id} · {plain(run.project)} · {run.cases} cases · depth {system.depth}, "
        f"top_k {system.top_k}{budget}, index_version {plain(system.index_version)}"
    )


def _table(metrics: Sequence[Metric]) -> list[str]:
    rows = [[m.criterion, *metric_figures(m), observed_text(m)] for m in metrics]
    return grid(["Criterion", "Estimate", "95% interval", "Cases"], rows)


def _slices(run: Run) -> list[str]:
    """One compact table: a row a slice value, a column a criterion, estimates only."""
    if not run.slice_rows:
        return []
    shown = run.slice_rows[:MAX_SLICE_ROWS]
    names = [m.criterion for m in run.metrics]
    rows = [
        [f"{row.slice}={plain(row.value)}", str(row.cases), *_slice_cells(row, run.min_slice_support)]
        for row in shown
    ]
    lines = [
        "Slices (exploratory; estimates only, in parentheses below "
        f"min_slice_support {run.min_slice_support})"
    ]
    lines += grid(["Slice", "Cases", *names], rows)
    if len(run.slice_rows) > len(shown):
        lines.append(f"and {len(run.slice_rows) - len(shown)} more slice values")
    return lines


def _slice_cells(row: SliceRow, min_support: int) -> list[str]:
    cells = []
    for metric in row.metrics:
        estimate, _ = metric_figures(metric)
        cells.append(estimate if metric.observed + metric.missing >= min_support else f"({estimate})")
    return cells
