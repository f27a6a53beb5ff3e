"""The second stage for forks: the report of a run whose token could not write, checked, rendered and posted.

The report was written where a fork's code ran, so nothing in it is believed: not whose it is, not which run it is of,
and not what it says, which is why no status ever comes of it. Nothing is checked out and nothing of it is run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from oloproof.errors import ConfigurationError
from oloproof.jsonform import from_json, to_json
from oloproof.settings.wording import shortened
from oloproof_ci.action.events import Publication
from oloproof_ci.action.rendering import drafts
from oloproof_ci.comment import MAX_BYTES
from oloproof_ci.github.client import GitHub, Pull
from oloproof_ci.github.fitting import Draft
from oloproof_ci.outcome import OUTCOME_VERSION, JobOutcome
from oloproof_ci.report import REPORT_VERSION
from oloproof_ci.report_files import REPORT

#: A report of ten thousand failing cases stays below this.
MAX_REPORT_BYTES = 16_000_000
#: How many jobs of one run, and suites of one job, are published.
MAX_JOBS, MAX_SUITES = 20, 20
MAX_NAME = 300


def find_reports(folder: Path) -> list[Path]:
    """report.json in a folder, or in its subfolders, one for each job of a matrix. Raises ConfigurationError when
    there is none."""
    alone = folder / REPORT
    found = [alone] if alone.is_file() else sorted(folder.glob(f"*/{REPORT}"))
    if not found:
        raise ConfigurationError(
            f"{folder}: there is no {REPORT} in it; download the artifact of the run before (actions/download-artifact "
            "with run-id and github-token), or name its folder with the input report-dir"
        )
    if len(found) > MAX_JOBS:
        raise ConfigurationError(f"{folder}: {len(found)} reports, and at most {MAX_JOBS} are published")
    return found


def read_outcome(path: Path, publication: Publication) -> JobOutcome:
    """A report that fits the schema and is about the head of the run that GitHub names; the run it claims to be of is
    replaced by that. Raises ConfigurationError when it does not fit."""
    try:
        size = path.stat().st_size
        if size > MAX_REPORT_BYTES:
            raise ConfigurationError(f"{path}: {size} bytes, and at most {MAX_REPORT_BYTES} are read")
        outcome = from_json(JobOutcome, path.read_bytes(), strict=True)
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read ({error.strerror or error})") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise ConfigurationError(f"{path}: is no report: {shortened(place)}: {first['msg']}") from None
    for problem in _problems(outcome, publication):
        raise ConfigurationError(f"{path}: {problem}")
    return replace(outcome, run_id=publication.run_id, run_attempt=publication.run_attempt)


def _problems(outcome: JobOutcome, publication: Publication) -> Sequence[str]:
    if not _is_finite(to_json(outcome)):
        return ["is no report: a number is not finite"]
    versions = {outcome.version} | {suite.report.version for suite in outcome.suites if suite.report}
    if versions != {OUTCOME_VERSION} | ({REPORT_VERSION} if any(s.report for s in outcome.suites) else set()):
        return ["was written by another version of the action; use the same in both workflows"]
    if outcome.head_sha != publication.head_sha:
        return [f"is about {shortened(outcome.head_sha)}, and the run was of {publication.head_sha}"]
    if not 1 <= len(outcome.suites) <= MAX_SUITES:
        return [f"holds {len(outcome.suites)} suites, and 1 to {MAX_SUITES} are published"]
    if any((suite.report is None) == (suite.failure is None) for suite in outcome.suites):
        return ["a suite has neither a report nor a failure, or both"]
    names = [outcome.job, outcome.leg, *(suite.config for suite in outcome.suites)]
    if any(len(name) > MAX_NAME for name in names):
        return [f"a suite or a job has a name of more than {MAX_NAME} characters"]
    return []


def _is_finite(value: Any) -> bool:
    """Whether no number of a record is NaN or infinite: JSON has none, and parsers take them all the same."""
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def find_pull(github: GitHub, publication: Publication) -> Pull | str:
    """The one open pull request whose head the run was of, or why there is none. Raises ApiError, and
    ConfigurationError when there are several."""
    candidates = _candidates(github, publication)
    same_head = [pull for pull in candidates if pull.open and pull.head_sha == publication.head_sha]
    if len(same_head) > 1:
        numbers = ", ".join(f"#{pull.number}" for pull in same_head)
        raise ConfigurationError(
            f"{numbers} all have the head {publication.head_sha[:7]}, and it is not known which of them the run was for"
        )
    if same_head:
        return same_head[0]
    if candidates:
        return f"{publication.head_sha[:7]} is no longer the head of an open pull request"
    return f"no open pull request has the head {publication.head_sha[:7]}"


def _candidates(github: GitHub, publication: Publication) -> list[Pull]:
    """The pull requests of the run's branch; where that has none, those that GitHub names with the run."""
    if publication.head_repository and publication.head_branch:
        listed = github.pulls_from(publication.head_repository, publication.head_branch)
        source = publication.head_repository.lower()
        found = [pull for pull in listed if pull.head_repository.lower() == source]
        if found:
            return found
    return [github.pull(number) for number in publication.pull_requests[:MAX_JOBS]]


def unverified_drafts(outcome: JobOutcome, pull: Pull, url: str) -> list[Draft]:
    """The sections of the comment, which say what their figures are worth. Raises ConfigurationError when the report,
    though it fits the schema, makes no sense."""
    whose = "the fork's own code" if pull.from_fork else "the pull request's own code"
    notes = [
        f"These figures come from a run of {whose} and are **not verified**: that code could have changed them."
    ]
    found = drafts(outcome, url, notes)
    try:
        for draft in found:
            draft.render(MAX_BYTES)
    except Exception as error:  # noqa: BLE001 - whatever a forged report does to us ends here
        raise ConfigurationError(f"the report cannot be rendered ({type(error).__name__})") from None
    return found
