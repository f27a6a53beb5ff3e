"""A comparison as text: differences, exploratory slice lines, flipped cases, decisions."""

from __future__ import annotations

from collections.abc import Sequence

from oloproof.comparison import Comparison, PairedMetric
from oloproof.decisions.records import Gate
from oloproof.diagnosis.attribution import StageSwap
from oloproof.judges.costs import JudgeCosts
from oloproof.pairing import EvaluatorChange
from oloproof.report.decisions_text import decision_lines, gate_line, no_policy_text
from oloproof.report.judges_text import costs_lines
from oloproof.report.run_text import excluded_text
from oloproof.report.swap_text import swap_lines
from oloproof.report.terminal import plain
from oloproof.report.unstable_text import unstable_lines
from oloproof.statistics.figures import points, points_interval
from oloproof.store.unstable import UnstableCase

#: How many slice lines are printed before they are only counted, and how many case ids a line names.
MAX_SLICE_LINES = 60
MAX_NAMED = 20
#: How many settings or files are named of an evaluator that differs.
MAX_DETAILS = 4


def comparison_text(
    identity: str,
    comparison: Comparison,
    gate: Gate,
    max_slices: int | None = MAX_SLICE_LINES,
    unstable: Sequence[UnstableCase] = (),
    swaps: Sequence[StageSwap] | None = None,
    costs: JudgeCosts | None = None,
) -> str:
    """What `oloproof compare` prints; `identity` is the id under which the comparison is stored, `max_slices` how many
    slice lines it shows (None: all), `unstable` the candidate's cases that are remembered as such. `swaps` are None
    when none were asked for, `costs` is what judges took for them."""
    c = comparison
    pairs = "1 paired case" if c.paired_cases == 1 else f"{c.paired_cases} paired cases"
    lines = [f"Comparison {identity} of {c.candidate} against {c.baseline} · {pairs}{no_policy_text(gate)}"]
    lines += [f"{metric.criterion}: {difference_text(metric)}" for metric in c.metrics]
    lines += _slice_lines(c, max_slices)
    lines += _flip_lines(c)
    flipped = {(f.criterion, case_id) for f in c.flips for case_id in (*f.new_failures, *f.fixed)}
    lines += unstable_lines(
        [each for each in unstable if (each.criterion, each.case_id) in flipped],
        [f.criterion for f in c.flips],
    )
    lines += _unpaired_lines(c)
    if swaps is not None:
        lines += [line for swap in swaps for line in swap_lines(swap)] or ["Stage swap: no case newly fails"]
        lines += costs_lines(costs)
    lines += decision_lines(gate.decisions)
    lines.append(gate_line(gate))
    return "\n".join(lines)


def difference_text(metric: PairedMetric) -> str:
    """`+0.0 points [-33.6, +33.6] · 13 paired · 0 missing · 0 excluded`."""
    figures = "no difference observed" if metric.difference is None else f"{points(metric.difference)} points"
    if metric.interval is not None and metric.difference is not None:
        figures += f" {points_interval(metric.interval)}"
    return f"{figures} · {metric.paired} paired · {metric.missing} missing · {excluded_text(metric.excluded)}"


def _slice_lines(comparison: Comparison, limit: int | None) -> list[str]:
    lines = [
        f"  {row.slice}={plain(row.value)}  {metric.criterion}: {difference_text(metric)}"
        for row in comparison.slice_rows
        for metric in row.metrics
    ]
    if not lines or limit == 0:
        return []
    shown = lines[:limit]
    if len(lines) > len(shown):
        shown.append(f"  and {len(lines) - len(shown)} more slice lines; --slices all shows them")
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
    """The cases and evaluators that are not on both sides what they were."""
    lines = []
    for what, ids in (
        ("Only in the candidate", comparison.added),
        ("Only in the baseline", comparison.removed),
        ("Edited, so not paired", comparison.edited),
        ("Renamed, and paired", [f"{before} is now {after}" for before, after in comparison.renamed]),
    ):
        if ids:
            lines.append(f"{what}: {named(ids)}")
    for renamed, what in ((False, "Not compared"), (True, "Compared under another name")):
        changes = [change_text(c) for c in comparison.evaluators if (c.change == "renamed") is renamed]
        if changes:
            lines.append(f"{what}: {named(changes, '; ')}")
    return lines


def change_text(change: EvaluatorChange) -> str:
    """`answer_correct (its settings differ: field)`: what became of an evaluator."""
    detail = f": {', '.join(change.detail[:MAX_DETAILS])}" if change.detail else ""
    detail += f" and {len(change.detail) - MAX_DETAILS} more" if len(change.detail) > MAX_DETAILS else ""
    said = {
        "added": "only the candidate has it",
        "removed": "only the baseline has it",
        "renamed": f"was{detail.removeprefix(':')}",
        "settings": f"its settings differ{detail}",
        "code": "its code differs",
        "data": f"a file that it reads differs{detail}",
    }
    return f"{change.criterion} ({said[change.change]})"


def named(ids: Sequence[str], between: str = ", ") -> str:
    """Ids in a row, the first of many with a count of the rest."""
    text = between.join(plain(name) for name in ids[:MAX_NAMED])
    return text if len(ids) <= MAX_NAMED else f"{text} and {len(ids) - MAX_NAMED} more"
