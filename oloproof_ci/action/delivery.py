"""What a job leaves behind, in the order of its weight: the log, the status, outputs, report files and summary,
annotations, and last the comment. Nothing that fails on the way changes the verdict; it becomes a warning."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from oloproof.errors import OloproofError
from oloproof.jsonform import to_json
from oloproof.worker.account import Account, seeing_as
from oloproof_ci.action.events import PullRequest
from oloproof_ci.action.inputs import Inputs
from oloproof_ci.action.job import Job
from oloproof_ci.action.rendering import (
    drafts,
    log_lines,
    outputs,
    status_context,
    status_description,
    summary,
)
from oloproof_ci.action.runner import Level, Runner
from oloproof_ci.action.verdict import Verdict
from oloproof_ci.github.client import GitHub
from oloproof_ci.github.errors import ApiError, explained
from oloproof_ci.github.fitting import Draft
from oloproof_ci.github.posting import Posting
from oloproof_ci.outcome import JobOutcome
from oloproof_ci.report import Report
from oloproof_ci.report_files import COMMENT, REPORT, discard, folder_in, write

T = TypeVar("T")

#: What the log says of a comment that was not simply written.
_SAID = {
    "moved": "The pull request has a newer head by now, so its comment is left to the run on that.",
    "superseded": "The comment has this run's or a newer one's result already.",
    "unchecked": "The comment was written; whether another job changed it since could not be seen.",
}


class Delivery:
    """Brings one outcome to everybody who waits for it."""

    def __init__(
        self, job: Job, inputs: Inputs, runner: Runner, github: GitHub, owner: Account | None
    ) -> None:
        """`owner` is the workspace's, when that is somebody else: as whom files are written there."""
        self._owner = owner
        self._job = job
        self._inputs = inputs
        self._runner = runner
        self._github = github

    def take_back(self) -> None:
        """Remove the report of an earlier job, as a runner of one's own may still have it: should this job be ended, a
        later step must not take that for its result."""
        with seeing_as(self._owner):
            discard(self._folder())

    def deliver(
        self, outcome: JobOutcome, verdict: Verdict, pull: PullRequest | None, *, status: bool, comments: bool
    ) -> None:
        """Tell everybody, in that order. `status` and `comments` say whether there is a place for either."""
        for line in log_lines(outcome, verdict):
            self._runner.say(line)
        from_fork = pull is not None and pull.from_fork
        author = None
        if status and self._inputs.status != "off":
            author = self.attempt(lambda: self._set_status(outcome, verdict, from_fork))
        report = Path(self._inputs.report_dir) / REPORT
        self.attempt(lambda: self._runner.set_outputs(outputs(outcome, verdict, str(report))))
        self.attempt(lambda: self._leave_files(outcome))
        self.attempt(lambda: self._runner.add_summary(summary(outcome)))
        if self._inputs.annotations == "on":
            # A job that fails shows what newly fails as errors, which leaves the warnings to what GitHub refuses.
            self.attempt(
                lambda: self._annotate(outcome, "error" if verdict.status == "failure" else "warning")
            )
        if comments and pull is not None and self._inputs.comment == "update":
            self.attempt(
                lambda: self.comment(drafts(outcome, self._job.url), pull, outcome.head_sha, author or None)
            )

    def attempt(self, step: Callable[[], T]) -> T | None:
        """Do one thing; whatever goes wrong with it keeps nothing else from being done, and changes no verdict."""
        try:
            return step()
        except OloproofError as error:
            self._runner.warn(str(error))
        except Exception as error:  # noqa: BLE001 - an error of ours is no reason for another exit code either
            self._runner.warn(f"internal error: {type(error).__name__}: {error}; please report it")
        return None

    def _folder(self) -> Path:
        return folder_in(self._job.workspace, self._inputs.report_dir)

    def _leave_files(self, outcome: JobOutcome) -> None:
        # The code may have laid a link in the folder's place: it leads no further than it could go itself.
        with seeing_as(self._owner):
            folder = self._folder()
            write(folder, REPORT, json.dumps(to_json(outcome), indent=1, ensure_ascii=False) + "\n")
            write(folder, COMMENT, summary(outcome))
            if not (folder / ".gitignore").exists():  # a folder of the repository may have one of its own
                write(folder, ".gitignore", "*\n")

    def _set_status(self, outcome: JobOutcome, verdict: Verdict, from_fork: bool) -> str | None:
        """Set the commit's status, unless a later run of the same commit has; gives whose token this is, when that is
        known afterwards."""
        name = status_context(self._inputs.status, outcome.leg)
        if self._is_superseded(outcome.head_sha, name):
            self._runner.say("A newer run has set the status already.")
            return None
        description = status_description(outcome, verdict)
        try:
            return self._github.set_status(outcome.head_sha, verdict.status, name, description, self._job.url)
        except ApiError as error:
            self._runner.warn(explained(error, "status", from_fork=from_fork))
            return None

    def _is_superseded(self, sha: str, name: str) -> bool:
        try:
            return self._job.is_older_than(self._github.status_url(sha, name))
        except ApiError:
            return False  # what is wrong shows when the status is set

    def comment(
        self,
        drafts: Sequence[Draft],
        pull: PullRequest,
        head: str,
        author: str | None,
        once: bool = False,
    ) -> None:
        """Bring sections into the one comment of a pull request whose head is `head`; `author` is whose token this is,
        None when that is not known. With `once` what the same run has written stays."""
        posting = Posting(self._github, pull.number, head, author, time.sleep, once)
        try:
            posted = posting.post(drafts)
        except ApiError as error:
            self._runner.warn(explained(error, "comment", from_fork=pull.from_fork))
            return
        if said := _SAID.get(posted.outcome):
            self._runner.say(said)
        if posted.url:
            self._runner.set_outputs({"comment-url": posted.url})

    def _annotate(self, outcome: JobOutcome, level: Level) -> None:
        """What passes in the base and fails or errors here, at its line in the case file, and errors of what could not
        be evaluated."""
        for suite in outcome.suites:
            if suite.failure is not None:
                self._runner.annotate("error", suite.failure.message, title="Oloproof", file=suite.config)
            if suite.report is None:
                continue
            for line, text in _broken(suite.report):
                self._runner.annotate(level, text, title="New failure", file=suite.report.dataset, line=line)


def _broken(report: Report) -> Iterator[tuple[int, str]]:
    """The line of each case that broke, and what became of it."""
    for failures in report.failures:
        for case in failures.new_failures:
            did = f"passes {failures.criterion} in the base and fails here"
            yield case.line, f"{case.case_id} {did}: {case.label.value}"
    for errored in report.errors.cases:
        if errored.base == "passed":
            yield errored.line, f"{errored.case_id} passes in the base and errors here: {errored.kind}"
