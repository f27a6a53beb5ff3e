"""Figures as the comment prints them: those of every other report, with true minus signs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from oloproof.comparison import PairedMetric
from oloproof.decisions.records import Decision
from oloproof.records import Interval, Metric
from oloproof.statistics.figures import (
    percent,
    percent_interval,
    points,
    points_interval,
    score,
    score_interval,
    signed_score,
    signed_score_interval,
)
from oloproof_ci.markdown import code
from oloproof_ci.report import Report

NONE = "–"
#: The confidence of an interval is named where it is not this one.
USUAL_CONFIDENCE = 0.95


def is_rate(report: Report, criterion: str) -> bool:
    """Whether a criterion is printed in percent and points: its values can only be 0 or 1 on both sides."""
    sides = [report.head] if report.base is None else [report.head, report.base]
    kinds = [m.kind for side in sides for m in side.metrics if m.criterion == criterion]
    if kinds:
        return all(kind == "rate" for kind in kinds)
    paired = report.comparison.metric(criterion) if report.comparison else None
    return paired is not None and paired.kind == "pass_fail"


def estimate_text(value: float | None, rate: bool) -> str:
    """`69.2%` or `0.866`."""
    if value is None:
        return NONE
    return percent(value) if rate else score(value)


def interval_text(interval: Interval | None, rate: bool) -> str:
    """`[38.5%, 91.0%]` or `[0.506, 0.990]`."""
    if interval is None:
        return NONE
    return _minus(percent_interval(interval) if rate else score_interval(interval))


def difference_text(value: float | None, interval: Interval | None, rate: bool) -> str:
    """`−23.1 points [−66.5, +24.6]` or `−0.122 [−0.531, +0.306]`."""
    if value is None:
        return NONE
    figure = f"{points(value)} points" if rate else signed_score(value)
    if interval is not None:
        figure += f" {points_interval(interval) if rate else signed_score_interval(interval)}"
    return _minus(figure)


def confidence_text(confidence: float) -> str:
    """`95%`."""
    return f"{(Decimal(repr(confidence)) * 100).normalize():f}%"


def paired_cases_text(metric: PairedMetric) -> str:
    """`13 paired · 2 missing · 1 excluded (no_relevance_labels)`; zeros are not said."""
    return f"{metric.paired} paired{_left_out(metric.missing, metric.excluded)}"


def observed_cases_text(metric: Metric) -> str:
    """`9 of 13 · 2 missing`, or `mean of 13`."""
    seen = f"{round(metric.total)} of" if metric.kind == "rate" else "mean of"
    return f"{seen} {metric.observed}{_left_out(metric.missing, metric.excluded)}"


def _left_out(missing: int, excluded: Mapping[str, int]) -> str:
    parts = [f"{missing} missing"] if missing else []
    total = sum(excluded.values())
    if total:
        reasons = list(excluded)[:3]
        named = ", ".join(code(reason[:60]) for reason in reasons)
        parts.append(f"{total} excluded ({named}{', …' if len(excluded) > len(reasons) else ''})")
    return "".join(f" · {part}" for part in parts)


#: What rules ask for, and how it is said to people: as points of a rate, or as a difference of scores.
_ASKS = (
    (r"non-inferiority, margin ([\d.]+) points", "worse by less than"),
    (r"non-inferiority, margin ([\d.]+) points, lower is better", "higher by less than"),
    (r"equivalence, margin ([\d.]+) points", "changed by less than"),
)
_SUPERIORITY = {"superiority": "better than before", "superiority, lower is better": "lower than before"}


def asks_text(decision: Decision, rate: bool) -> str:
    """What a rule asks of its metric, in words that need no statistics: `worse by less than 5.0 points`."""
    asks = decision.asks
    for pattern, said in _ASKS:
        if margin := re.fullmatch(pattern, asks):
            return f"{said} {f'{margin[1]} points' if rate else _hundredth(margin[1])}"
    bar = re.fullmatch(r"(at least|at most) ([\d.]+)%", asks)
    return f"{bar[1]} {_hundredth(bar[2])}" if bar and not rate else _SUPERIORITY.get(asks, asks)


def _hundredth(number: str) -> str:
    """`5.0` points of a score are `0.050`."""
    return f"{Decimal(number).scaleb(-2)}"


def _minus(figure: str) -> str:
    return figure.replace("-", "\N{MINUS SIGN}")
