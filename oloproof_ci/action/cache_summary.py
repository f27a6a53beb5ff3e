"""What the Actions cache brought and took, as a section of the step's summary."""

from __future__ import annotations

from collections.abc import Sequence

from oloproof_ci.action.carrying import Carried
from oloproof_ci.markdown import Align, code, prose, table
from oloproof_ci.outcome import SuiteOutcome
from oloproof_ci.report import Report

_COLUMNS: Sequence[tuple[str, Align]] = [
    (name, "left") for name in ("Suite", "Restored", "Calls avoided", "Calls made", "Saved")
]


def cache_section(carried: Sequence[Carried], suites: Sequence[SuiteOutcome]) -> str:
    """A table with a row for each suite; empty when the cache is off."""
    if not carried:
        return ""
    reports = {suite.config: suite.report for suite in suites}
    rows = [
        (code(each.config), _restored(each), *_calls(reports.get(each.config)), _saved(each))
        for each in carried
    ]
    return f"\n### Stage results in the Actions cache\n\n{table(_COLUMNS, rows)}"


def _restored(each: Carried) -> str:
    found = each.restored
    if found.key is None:
        return "nothing"
    where = "" if found.same_index else ", of another index version"
    return f"{found.results:,} results, {_megabytes(found.bytes)}{where}"


def _saved(each: Carried) -> str:
    if each.saved.key is None:
        return f"nothing: {prose(each.saved.reason)}"
    return f"{each.saved.results:,} results, {_megabytes(each.saved.bytes)}"


def _calls(report: Report | None) -> tuple[str, str]:
    """Per stage, of head and base together."""
    if report is None:
        return "", ""
    caches = [side.cache for side in (report.head, report.base) if side is not None]
    whole = sum(cache.execution.hit for cache in caches)
    retrieve = sum(cache.retrieve.hit for cache in caches) + whole
    generate = sum(cache.generate.hit for cache in caches) + whole
    made = [sum(getattr(cache, stage).miss for cache in caches) for stage in ("retrieve", "generate")]
    return f"retrieve {retrieve:,}, generate {generate:,}", f"retrieve {made[0]:,}, generate {made[1]:,}"


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB"
