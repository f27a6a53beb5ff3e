"""What a job leaves behind, in the order of its weight: report files, outputs and summary, the status, annotations, and
last the comment. From the status on nothing that fails changes the verdict; it becomes a warning."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

from oloproof.errors import OloproofError
from oloproof.jsonform import to_json
from oloproof.worker.account import Account, seeing_as
from oloproof_ci.action.events import PullRequest
from oloproof_ci.action.inputs import Inputs
from oloproof_ci.action.job import Job
from oloproof_ci.action.rendering import drafts, log_lines, outputs, status_description, summary
from oloproof_ci.action.runner import Level, Runner
from oloproof_ci.action.verdict import Verdict
from oloproof_ci.github.client import GitHub
from oloproof_ci.github.errors import ApiError, explained
from oloproof_ci.github.posting import Draft, Posting
from oloproof_ci.outcome import JobOutcome
from oloproof_ci.report_files import COMMENT, REPORT, write

#: What the log says of a comment that was not simply written.
_SAID = {
    "moved": "The pull request has a newer head by now, so its comment is left to the run on that.",
    "superseded": "A newer run has written the comment already.",
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

    def leave(self, outcome: JobOutcome, verdict: Verdict) -> None:
        """Everything that stays on this machine: the log, outputs, report files, summary."""
        for line in log_lines(outcome, verdict):
            self._runner.say(line)
        folder = Path(self._inputs.report_dir)
        try:
            self._runner.set_outputs(outputs(outcome, verdict, str(folder / REPORT)))
            text = summary(outcome)
            # The code may have laid a link in the folder's place: it leads no further than it could go itself.
            with seeing_as(self._owner):
                write(folder, REPORT, json.dumps(to_json(outcome), indent=1, ensure_ascii=False) + "\n")
                write(folder, COMMENT, text)
                write(folder, ".gitignore", "*\n")
            self._runner.add_summary(text)
        except OloproofError as error:
            self._runner.warn(str(error))

    def tell(
        self, outcome: JobOutcome, verdict: Verdict, pull: PullRequest | None, *, status: bool, comments: bool
    ) -> None:
        """Everything that GitHub is told: the status, annotations, the comment."""
        from_fork = pull is not None and pull.from_fork
        author = self._set_status(outcome, verdict, from_fork) if status else None
        if self._inputs.annotations == "on":
            # A job that fails shows what newly fails as errors, which leaves the warnings to what GitHub refuses.
            self._annotate(outcome, "error" if verdict.status == "failure" else "warning")
        if comments and pull is not None and self._inputs.comment == "update":
            self.comment(drafts(outcome, self._job.url), pull, outcome.head_sha, author or None)

    def _set_status(self, outcome: JobOutcome, verdict: Verdict, from_fork: bool) -> str | None:
        """Set the commit's status; gives whose token this is, when that is known afterwards."""
        if self._inputs.status == "off":
            return None
        try:
            return self._github.set_status(
                outcome.head_sha,
                verdict.status,
                self._inputs.status,
                status_description(outcome, verdict),
                self._job.url,
            )
        except ApiError as error:
            self._runner.warn(explained(error, "status", from_fork=from_fork))
            return None

    def comment(self, drafts: Sequence[Draft], pull: PullRequest, head: str, author: str | None) -> None:
        """Bring sections into the one comment of a pull request whose head is `head`; `author` is whose token this is,
        None when that is not known."""
        posting = Posting(self._github, pull.number, head, author, time.sleep)
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
        """New failures at their lines in the case files, and errors of what could not be evaluated."""
        for suite in outcome.suites:
            if suite.failure is not None:
                self._runner.annotate("error", suite.failure.message, title="Oloproof", file=suite.config)
            if suite.report is None:
                continue
            for failures in suite.report.failures:
                for case in failures.new_failures:
                    self._runner.annotate(
                        level,
                        f"{case.case_id} passes {failures.criterion} in the base and fails here: {case.label.value}",
                        title="New failure",
                        file=suite.report.dataset,
                        line=case.line,
                    )
