"""A run as text: metrics with intervals, slices, what was reused, decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from oloproof.decisions.records import Gate
from oloproof.records import Judgment, Metric, State
from oloproof.report.decisions_text import decision_lines, gate_line, no_policy_text
from oloproof.report.judges_text import costs_text
from oloproof.report.standing_text import corrected_lines
from oloproof.report.tables import grid
from oloproof.report.terminal import plain
from oloproof.report.unstable_text import unstable_lines
from oloproof.run_records import CaseRow, Run, SliceRow, Tally
from oloproof.statistics.figures import percent, percent_interval, score, score_interval
from oloproof.store.unstable import UnstableCase

#: How many slice values, and how many changed files and programs, a run shows before it only counts them.
MAX_SLICE_ROWS = 40
MAX_STALE_FILES = 5
MAX_PROGRAMS = 5
#: How many reasons of errored cases it shows, and how many characters of each.
MAX_REASONS = 5
MAX_REASON = 200
#: What the reasons of judgments begin with that an evaluator of the user's, or a judge, failed to give.
FAULTS = ("evaluator_", "judge_")


def run_text(
    run: Run,
    gate: Gate | None,
    rows: Callable[[], Iterable[CaseRow]],
    unstable: Sequence[UnstableCase] = (),
) -> str:
    """What `oloproof run` prints; without a gate what comes before it. `rows` gives the run's cases, which are looked
    at when some errored; `unstable` are those that are remembered as such."""
    heading = _heading(run) if gate is None else _heading(run) + no_policy_text(gate)
    lines = [heading, *_table(run.metrics), *corrected_lines(run.corrected), *_slices(run)]
    lines += reuse_lines(run)
    if run.errored:
        lines += _error_lines(run, rows())
    if any(reason.startswith(FAULTS) for metric in run.metrics for reason in metric.missing_reasons):
        lines += _fault_lines(run, rows())
    lines += unstable_lines(unstable, [e.criterion for e in run.evaluators])
    if gate is not None:
        lines += [*decision_lines(gate.decisions), gate_line(gate)]
    return "\n".join(lines)


def reuse_lines(run: Run) -> list[str]:
    """The Cache and Stages lines, and how many cases another case with the same input answered for."""
    cache = run.cache
    lines = [
        f"Cache: execution {hit_miss(cache.execution)}; judgment {hit_miss(cache.judgment)}",
        f"Stages: retrieve {hit_miss(cache.retrieve)}; generate {hit_miss(cache.generate)}",
    ]
    if run.judges is not None:
        lines.append(f"Judges: {costs_text(run.judges)}")
    if cache.equal_inputs:
        verb = "case has" if cache.equal_inputs == 1 else "cases have"
        lines.append(f"Equal inputs: {cache.equal_inputs} {verb} the input of another case and its execution")
    if run.stale is not None:
        lines.append(f"Warning: {stale_sentence(run)}")
    if run.programs:
        lines.append(f"Warning: {programs_sentence(run)}")
    return lines


def programs_sentence(run: Run) -> str:
    """What is said when the user's code started other programs."""
    named = ", ".join(plain(name) for name in run.programs[:MAX_PROGRAMS])
    more = len(run.programs) - MAX_PROGRAMS
    named += f" and {more} more" if more > 0 else ""
    return f"the code started {named}: changes to files that other programs read are not seen; see docs/identity.md"


def stale_sentence(run: Run) -> str:
    """What is said when files changed under an unchanged index_version."""
    assert run.stale is not None
    files, count = run.stale.files, run.stale.retrievals
    named = ", ".join(plain(name) for name in files[:MAX_STALE_FILES])
    if len(files) > MAX_STALE_FILES:
        named += f" and {len(files) - MAX_STALE_FILES} more"
    noun = "stored retrieval" if count == 1 else "stored retrievals"
    version = plain(run.system.index_version)
    return f"{named} changed and index_version is still {version}: {count} {noun} did not count and ran again"


def _error_lines(run: Run, rows: Iterable[CaseRow]) -> list[str]:
    """How many cases errored, and the most frequent reasons with the first case of each."""
    reasons = ((f"{row.error.stage}: {_short(row.error.message)}", row.case_id) for row in rows if row.error)
    return [
        f"Errored: {run.errored} of {run.attempted} cases; `oloproof inspect {run.id} --failures` lists them",
        *_reason_lines(reasons),
    ]


def _fault_lines(run: Run, rows: Iterable[CaseRow]) -> list[str]:
    """Which of the user's own evaluators, and which judges, gave no judgment, and why."""
    names = [each.criterion for each in run.evaluators]
    reasons = (
        (f"{name}: {_short(_why(judgment))}", row.case_id)
        for row in rows
        for name, judgment in zip(names, row.judgments, strict=True)
        if judgment.state is State.MISSING and judgment.reason and judgment.reason.startswith(FAULTS)
    )
    return ["Not judged, since the evaluator failed:", *_reason_lines(reasons)]


def _why(judgment: Judgment) -> str:
    reason, detail = judgment.reason or "", judgment.detail
    if not detail:
        return reason
    return f"{reason}: {detail}" if reason.startswith("judge_") else detail


def _short(message: str) -> str:
    message = plain(message)
    return message if len(message) <= MAX_REASON else message[:MAX_REASON] + "…"


def _reason_lines(reasons: Iterable[tuple[str, str]]) -> list[str]:
    """The most frequent reasons, each with the first case that has it."""
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    for reason, case_id in reasons:
        counts[reason] += 1
        first.setdefault(reason, case_id)
    lines = []
    for reason, count in counts.most_common(MAX_REASONS):
        others = "" if count == 1 else f" and {count - 1} more"
        lines.append(f"  {plain(first[reason])}{others}: {reason}")
    if len(counts) > MAX_REASONS:
        lines.append(f"  and {len(counts) - MAX_REASONS} other reasons")
    return lines


def hit_miss(tally: Tally) -> str:
    return f"{tally.hit} hit/{tally.miss} miss"


def metric_figures(metric: Metric, kind: str | None = None) -> tuple[str, str]:
    """Estimate and interval as printed, a dash where there is none; as a rate or a mean, by default what it is."""
    rate = (kind or metric.kind) == "rate"
    estimate, interval = "-", "-"
    if metric.estimate is not None:
        estimate = percent(metric.estimate) if rate else score(metric.estimate)
    if metric.interval is not None:
        interval = percent_interval(metric.interval) if rate else score_interval(metric.interval)
    return estimate, interval


def observed_text(metric: Metric) -> str:
    """`9 / 13 observed · 0 missing · 0 excluded`, with the reasons of what was left out."""
    if metric.kind == "rate":
        seen = f"{round(metric.total)} / {metric.observed} observed"
    else:
        seen = f"mean of {metric.observed} observed"
    missing = f"{metric.missing} missing"
    if metric.missing_reasons:
        missing += f" ({_counted(metric.missing_reasons)})"
    return f"{seen} · {missing} · {excluded_text(metric.excluded)}"


def excluded_text(excluded: Mapping[str, int]) -> str:
    total = sum(excluded.values())
    if not total:
        return "0 excluded"
    return f"{total} excluded ({_counted(excluded)})"


def _counted(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in reasons.items())


def runs_text(runs: Sequence[Run]) -> str:
    """A line a run, newest first."""
    if not runs:
        return "No runs yet; `oloproof run` makes one."
    rows = [
        [
            run.id,
            run.created.replace("T", " ").removesuffix("+00:00"),
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
    cases = "1 case" if run.cases == 1 else f"{run.cases} cases"
    cases = cases if run.finished else f"{cases}, unfinished"
    return (
        f"Run {run.id} · {plain(run.project)} · {cases} · depth {system.depth}, "
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
    rows = [[f"{row.slice}={plain(row.value)}", str(row.cases), *_slice_cells(row, run)] for row in shown]
    lines = [
        "Slices (exploratory; estimates only, in parentheses below "
        f"min_slice_support {run.min_slice_support})"
    ]
    lines += grid(["Slice", "Cases", *names], rows)
    if len(run.slice_rows) > len(shown):
        lines.append(f"and {len(run.slice_rows) - len(shown)} more slice values")
    return lines


def _slice_cells(row: SliceRow, run: Run) -> list[str]:
    """The estimates, each printed as the whole run's is: a column never mixes percentages and scores."""
    cells = []
    for metric, whole in zip(row.metrics, run.metrics, strict=True):
        estimate, _ = metric_figures(metric, whole.kind)
        enough = metric.observed + metric.missing >= run.min_slice_support
        cells.append(estimate if enough or metric.estimate is None else f"({estimate})")
    return cells
