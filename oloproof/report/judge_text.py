"""A judge held against people, as figures and as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from oloproof.decisions.records import JudgeStanding
from oloproof.judges.checks import JudgeCheck
from oloproof.records import Interval
from oloproof.report.standing_text import lacks_text
from oloproof.report.tables import grid
from oloproof.report.terminal import plain
from oloproof.statistics.agreement import kappa, kappa_interval, rate_interval
from oloproof.statistics.figures import percent, percent_interval, signed_score, signed_score_interval


@dataclass(frozen=True)
class Figure:
    """A share of `seen` answers, or kappa; None of nothing."""

    estimate: float | None
    interval: Interval
    seen: int


@dataclass(frozen=True)
class JudgeFigures:
    """How a judge compares: how often it says what people say, how often it passes what they pass and fails what they
    fail, how much of that is beyond chance, and how often its repeats agree (None without repeats)."""

    agreement: Figure
    good: Figure
    bad: Figure
    kappa: Figure
    consistency: Figure | None


def measured(check: JudgeCheck, confidence: float) -> JudgeFigures:
    """The figures of a check, each with its interval."""
    counts = check.agreement

    def share(hits: int, seen: int, missing: int) -> Figure:
        interval = rate_interval(hits, seen, missing, confidence)
        return Figure(hits / seen if seen else None, interval, seen)

    good, bad = counts.good_passed + counts.good_failed, counts.bad_passed + counts.bad_failed
    return JudgeFigures(
        agreement=share(counts.agreed, counts.compared, counts.missing),
        good=share(counts.good_passed, good, counts.good_missing),
        bad=share(counts.bad_failed, bad, counts.bad_missing),
        kappa=Figure(kappa(counts), kappa_interval(counts, confidence), counts.compared),
        consistency=share(check.steady, check.repeated, 0) if check.repeated else None,
    )


def judge_text(
    model: str, check: JudgeCheck, figures: JudgeFigures, standings: Mapping[str, JudgeStanding]
) -> str:
    """What `oloproof judges check` prints; `standings` are by policy file."""
    counts = check.agreement
    lines = [f"Judge {check.criterion} ({plain(model)}) · {counts.labels} labelled answers compared"]
    more = {
        "no verdict of the judge": counts.missing,
        "not asked about yet (--ask asks)": check.unasked,
        "unsure": check.unsure,
        "of another question": check.outdated,
    }
    if any(more.values()):
        lines[0] += " · " + " · ".join(f"{count} {what}" for what, count in more.items() if count)
    rows = [
        _row("agreement", figures.agreement),
        _row("passes what people pass", figures.good),
        _row("fails what people fail", figures.bad),
        ["kappa", *_kappa_cells(figures.kappa), str(figures.kappa.seen)],
    ]
    if figures.consistency is not None:
        rows.append(_row("same verdict in all repeats", figures.consistency))
    level = f"{100 * figures.agreement.interval.confidence:g}%"
    lines += grid(["Figure", "Estimate", f"{level} interval", "Answers"], rows)
    if figures.consistency is None:
        lines.append("Consistency: not known; set `repeats` above 1 to see it")
    lines += [f"{plain(path)}: {lacks_text(judge)}" for path, judge in standings.items()]
    if not standings:
        lines.append("There is no policy, so nothing asks how well it agrees")
    return "\n".join(lines)


def _row(name: str, figure: Figure) -> list[str]:
    estimate = "-" if figure.estimate is None else percent(figure.estimate)
    return [name, estimate, percent_interval(figure.interval), str(figure.seen)]


def _kappa_cells(figure: Figure) -> list[str]:
    estimate = "-" if figure.estimate is None else signed_score(figure.estimate)
    return [estimate, signed_score_interval(figure.interval)]
