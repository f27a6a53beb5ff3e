"""A comparison as text: differences, exploratory slice lines, flipped cases, decisions."""

from __future__ import annotations

from collections.abc import Sequence

from oloproof.comparison import Comparison, PairedMetric
from oloproof.decisions.records import Gate
from oloproof.report.decisions_text import decision_lines, gate_line
from oloproof.report.run_text import excluded_text
from oloproof.report.terminal import plain
from oloproof.statistics.figures import points, points_interval

#: How many slice lines are printed before they are only counted, and how many case ids a line names.
MAX_SLICE_LINES = 60
MAX_NAMED = 20


def comparison_text(identity: str, comparison: Comparison, gate: Gate) -> str:
    """What `oloproof compare` prints; `identity` is the id under which the comparison is stored."""
    c = comparison
    pairs = "1 paired case" if c.paired_cases == 1 else f"{c.paired_cases} paired cases"
    lines = [f"Comparison {identity} of {c.candidate} against {c.baseline} · {pairs}"]
    lines += [f"{metric.criterion}: {difference_text(metric)}" for metric in c.metrics]
    lines += _slice_lines(c)
    lines += _flip_lines(c)
    lines += _unpaired_lines(c)
    lines += decision_lines(gate.decisions)
    lines.append(gate_line(gate))
    return "\n".join(lines)


def difference_text(metric: PairedMetric) -> str:
    """`+0.0 points [-33.6, +33.6] · 13 paired · 0 missing · 0 excluded`."""
    figures = "no difference observed" if metric.difference is None else f"{points(metric.difference)} points"
    if metric.interval is not None and metric.difference is not None:
        figures += f" {points_interval(metric.interval)}"
    return f"{figures} · {metric.paired} paired · {metric.missing} missing · {excluded_text(metric.excluded)}"


def _slice_lines(comparison: Comparison) -> list[str]:
    lines = [
        f"  {row.slice}={plain(row.value)}  {metric.criterion}: {difference_text(metric)}"
        for row in comparison.slice_rows
        for metric in row.metrics
    ]
    if not lines:
        return []
    shown = lines[:MAX_SLICE_LINES]
    if len(lines) > len(shown):
        shown.append(f"  and {len(lines) - len(shown)} more slice lines; --json has them all")
    return ["Slices (exploratory)", *shown]


def _flip_lines(comparison: Comparison) -> list[str]:
    lines = []
    for flips in comparison.flips:
        if flips.new_failures:
            lines.append(f"New failures of {flips.criterion}: {named(flips.new_failures)}")
        if flips.fixed:
            lines.append(f"Fixed in {flips.criterion}: {named(flips.fixed)}")
    return lines


def _unpaired_lines(comparison: Comparison) -> list[str]:
    lines = []
    for what, ids in (
        ("Only in the candidate", comparison.added),
        ("Only in the baseline", comparison.removed),
        ("Edited, so not paired", comparison.edited),
        ("Not compared, since the evaluators differ", comparison.incomparable),
    ):
        if ids:
            lines.append(f"{what}: {named(ids)}")
    return lines


def named(ids: Sequence[str]) -> str:
    """Ids in a row, the first of many with a count of the rest."""
    text = ", ".join(plain(name) for name in ids[:MAX_NAMED])
    return text if len(ids) <= MAX_NAMED else f"{text} and {len(ids) - MAX_NAMED} more"
