"""A job's outcome as text: the sections of the comment, the summary, the log, the status and the outputs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from oloproof.report.terminal import plain
from oloproof_ci.action.inputs import DEFAULT_STATUS
from oloproof_ci.action.verdict import Verdict
from oloproof_ci.comment import MAX_SUMMARY_BYTES, comment, whole
from oloproof_ci.failed import failed_comment
from oloproof_ci.github.fitting import Draft, shrunk
from oloproof_ci.github.marked import Mark, Section
from oloproof_ci.outcome import JobOutcome, SuiteOutcome
from oloproof_ci.sections.words import named

#: The longest description and name of a commit status.
_DESCRIPTION, _CONTEXT = 140, 255


def drafts(outcome: JobOutcome, url: str, notes: Sequence[str] = ()) -> list[Draft]:
    """The sections of the comment, one a suite; `url` is the job's page."""
    return [_draft(outcome, suite, url, notes) for suite in outcome.suites]


def _draft(outcome: JobOutcome, suite: SuiteOutcome, url: str, notes: Sequence[str]) -> Draft:
    mark = _mark(outcome, suite)
    footer = f"\n\n{_footer(outcome, url)}"

    leg = f" · {named(leg_name(outcome.leg))}" if outcome.leg else ""

    def render(max_bytes: int) -> str:
        text = _text(suite, max_bytes - len(f"{leg}{footer}".encode()), notes)
        heading, line_end, rest = text.partition("\n")
        return f"{heading}{leg}{line_end}{rest}{footer}"

    return Draft(mark, render)


def _mark(outcome: JobOutcome, suite: SuiteOutcome) -> Mark:
    job = f"{outcome.job} {outcome.leg}".strip()
    return Mark(suite.config, job, outcome.head_sha, outcome.run_id, outcome.run_attempt)


def _footer(outcome: JobOutcome, url: str) -> str:
    job = f" {named(outcome.job)}" if outcome.job else ""
    return f"<sub>[job]({url}){job}, with the whole report in its summary</sub>"


def _text(suite: SuiteOutcome, max_bytes: int, notes: Sequence[str]) -> str:
    if suite.report is not None:
        return comment(suite.report, max_bytes, notes).rstrip("\n")
    assert suite.failure is not None
    return failed_comment(suite.config, suite.failure, notes).rstrip("\n")


def summary(outcome: JobOutcome) -> str:
    """Every suite's whole report, as markdown, below MAX_SUMMARY_BYTES."""
    room = MAX_SUMMARY_BYTES // len(outcome.suites)
    whole = [_whole(suite, room) for suite in outcome.suites]
    if sum(len(text.encode()) + 1 for text in whole) > MAX_SUMMARY_BYTES:  # of very many suites
        sections = [
            Section(_mark(outcome, suite), text) for suite, text in zip(outcome.suites, whole, strict=True)
        ]
        whole = [f"{section.text}\n" for section in shrunk(sections, MAX_SUMMARY_BYTES)]
    return "\n".join(whole)


def _whole(suite: SuiteOutcome, max_bytes: int) -> str:
    if suite.report is not None:
        return whole(suite.report, max_bytes)
    assert suite.failure is not None
    return failed_comment(suite.config, suite.failure)


def leg_name(leg: str) -> str:
    """A matrix job as people know it, `3.12, linux`, from the JSON of its matrix's values."""
    try:
        found = json.loads(leg)
    except ValueError:
        return leg
    values = found.values() if isinstance(found, dict) else [found]
    return ", ".join(value if isinstance(value, str) else json.dumps(value) for value in values)


def log_lines(outcome: JobOutcome, verdict: Verdict) -> list[str]:
    """What the job's log says: a line for each suite, and the verdict."""
    lines = [_log_line(suite) for suite in outcome.suites]
    let_through = "" if verdict.enforced else ", which fail-on lets through"
    return [*lines, f"gate: {verdict.gate.value}{let_through}"]


def _log_line(suite: SuiteOutcome) -> str:
    if suite.failure is not None:
        return f"{suite.config}: not evaluated: {suite.failure.message}"
    failures, fixed = new_failures([suite]), fixed_cases([suite])
    reason = f" ({suite.reason})" if suite.reason else ""
    errored = f", {count} newly errored" if (count := newly_errored([suite])) else ""
    return (
        f"{suite.config}: {suite.gate_state.value}{reason}; {failures} new failures{errored}, {fixed} fixed"
    )


def status_context(name: str, leg: str) -> str:
    """The name of the commit status. Jobs of a matrix get one each: under one name a leg that passes would hide another
    that fails. A name that a workflow chose is taken as it is."""
    if not leg or name != DEFAULT_STATUS:
        return name
    return plain(f"{name} ({leg_name(leg)})")[:_CONTEXT]


def status_description(outcome: JobOutcome, verdict: Verdict) -> str:
    """At most 140 characters: the gate and why."""
    failed = [suite for suite in outcome.suites if suite.failure is not None]
    if failed:
        assert failed[0].failure is not None
        text = f"{failed[0].config}: {failed[0].failure.message}"
    else:
        text = verdict.gate.value if verdict.enforced else f"{verdict.gate.value}, not enforced"
        if verdict.reason:
            text += f": {verdict.reason}"
        if count := new_failures(outcome.suites):
            text += f" · {count} new failure{'' if count == 1 else 's'}"
        if count := newly_errored(outcome.suites):
            text += f" · {count} newly errored"
    shown = plain(" ".join(text.split()))
    return shown if len(shown) <= _DESCRIPTION else shown[: _DESCRIPTION - 1] + "…"


def outputs(outcome: JobOutcome, verdict: Verdict, report_path: str) -> dict[str, str]:
    """The action's outputs; what each suite has of its own stands one a line, in the order of the suites."""
    reports = [suite.report for suite in outcome.suites]
    done = [report for report in reports if report is not None]
    measured = [side for report in done for side in (report.head, report.base) if side is not None]
    return {
        "gate": verdict.gate.value,
        "reason": verdict.reason,
        "run-id": _lines(r.head.run if r else "" for r in reports),
        "base-run-id": _lines(r.base.run if r and r.base else "" for r in reports),
        "comparison-id": _lines((r.comparison_id or "") if r else "" for r in reports),
        "diagnosis-id": _lines(c.diagnosis for r in done for c in r.failures if c.diagnosis),
        "new-failures": str(new_failures(outcome.suites)),
        "fixed": str(fixed_cases(outcome.suites)),
        "comment-url": "",
        "report-path": report_path,
        "cache-hit": str(bool(measured) and not any(side.calls for side in measured)).lower(),
    }


def new_failures(suites: Sequence[SuiteOutcome]) -> int:
    """How many cases newly fail, over the criteria that are reported."""
    return sum(len(c.new_failures) for suite in suites if suite.report for c in suite.report.failures)


def newly_errored(suites: Sequence[SuiteOutcome]) -> int:
    """How many cases that pass in the base error here."""
    return sum(suite.report.errors.newly for suite in suites if suite.report)


def fixed_cases(suites: Sequence[SuiteOutcome]) -> int:
    return sum(len(c.fixed) for suite in suites if suite.report for c in suite.report.failures)


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(texts)
