"""`oloproof-ci action`: the composition root of a workflow's step. Everything it reads is in the environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

from oloproof.errors import EXIT_CONFIGURATION, EXIT_OK, OloproofError, UnfinishedError
from oloproof_ci.action.cache_summary import cache_section
from oloproof_ci.action.carrying import CarriedResults, carried_results
from oloproof_ci.action.checkout import Sides, find_sides
from oloproof_ci.action.delivery import Delivery
from oloproof_ci.action.evaluating import SuiteEvaluation, failed
from oloproof_ci.action.events import (
    Baseline,
    Evaluation,
    Nothing,
    Plan,
    Publication,
    PullRequest,
    Refusal,
    plan,
)
from oloproof_ci.action.inputs import Inputs
from oloproof_ci.action.job import Job, read_payload
from oloproof_ci.action.publishing import find_pull, find_reports, read_outcome, unverified_drafts
from oloproof_ci.action.quarters import opened_quarters
from oloproof_ci.action.runner import Runner
from oloproof_ci.action.secrets import secrets_of, without_secrets
from oloproof_ci.action.verdict import Verdict, decide
from oloproof_ci.fetching import Fetching
from oloproof_ci.git import Repository
from oloproof_ci.github.client import GitHub
from oloproof_ci.github.errors import ApiError
from oloproof_ci.isolation import owner_of
from oloproof_ci.outcome import OUTCOME_VERSION, JobOutcome, SuiteOutcome
from oloproof_ci.report import Commit
from oloproof_ci.report_files import folder_in
from oloproof_ci.suites import CONFIG


def command() -> int:
    """Run as the step of a job, in its workspace. What user code prints and what we print go to one stream, so that
    the runner reads commands and what stands between them in their order."""
    sys.stdout.flush()
    os.dup2(1, 2)
    environment = dict(os.environ)
    if workspace := environment.get("GITHUB_WORKSPACE"):
        os.chdir(workspace)
    return run(environment, sys.stdout)


@dataclass(frozen=True)
class Step:
    """Everything outside that a step of a job works with."""

    job: Job
    inputs: Inputs
    runner: Runner
    github: GitHub
    environment: Mapping[str, str]

    @property
    def delivery(self) -> Delivery:
        return Delivery(self.job, self.inputs, self.runner, self.github, owner_of(self.job.workspace))


def run(environment: Mapping[str, str], log: TextIO) -> int:
    """Do what the event asks; gives the exit code. An error that leaves nothing to report becomes an annotation."""
    runner = Runner(environment, log)
    try:
        inputs = Inputs.read(environment)
        for secret in dict.fromkeys((inputs.token, *secrets_of(environment))):
            runner.mask(secret)
        job = Job.read(environment)
        folder_in(job.workspace, inputs.report_dir)
        asked = plan(job, read_payload(environment), inputs)
        github = GitHub(inputs.token, job.api_url, job.repository)
        return _act(Step(job, inputs, runner, github, environment), asked)
    except OloproofError as error:
        runner.annotate("error", str(error), title="Oloproof")
        return error.exit_code


def _act(step: Step, asked: Plan) -> int:
    match asked:
        case Nothing(reason):
            step.runner.annotate("notice", f"Nothing to evaluate: {reason}.", title="Oloproof")
            return EXIT_OK
        case Refusal(reason):
            step.runner.annotate("error", f"{reason}.", title="Oloproof")
            return EXIT_CONFIGURATION
        case Publication():
            return _publish(step, asked)
        case Baseline(head):
            alone = Evaluation(head, None, exact=False, pull_request=None, comments=False)
            return _evaluate(step, alone, baseline=True)
        case Evaluation(head=None, pull_request=PullRequest() as named):
            return _act(step, _resolved(asked, named, step.github))
        case Evaluation():
            return _evaluate(step, asked, baseline=False)


def _resolved(asked: Evaluation, named: PullRequest, github: GitHub) -> Evaluation | Nothing:
    """An evaluation by the number of a pull request, with its head and base as they are now."""
    try:
        pull = github.pull(named.number)
    except ApiError as error:
        raise UnfinishedError(f"Pull request #{named.number} could not be read: {error.said}") from None
    if not pull.open:
        return Nothing(f"pull request #{pull.number} is closed")
    return replace(
        asked,
        head=Commit(pull.head_ref, pull.head_sha),
        into=Commit(pull.base_ref, pull.base_sha),
        pull_request=PullRequest(pull.number, pull.from_fork),
    )


def _evaluate(step: Step, asked: Evaluation, *, baseline: bool) -> int:
    """Evaluate every suite, and tell everybody; gives the exit code."""
    step.delivery.attempt(step.delivery.take_back)
    enabled = step.inputs.cache == "on"
    # Started by hand for a pull request, the job writes where jobs of the branch it was started on read.
    saving = asked.pull_request is None or step.job.event == "pull_request"
    with carried_results(step.environment, enabled=enabled, saving=saving) as carried:
        suites = _suites(step, asked, carried, baseline=baseline)
        verdict = _deliver(step, asked, suites, baseline=baseline)
        step.delivery.attempt(carried.save)
        step.delivery.attempt(lambda: step.runner.add_summary(cache_section(carried.suites, suites)))
        for warning in carried.warnings:
            step.runner.warn(warning)
    return verdict.exit_code


def _deliver(step: Step, asked: Evaluation, suites: tuple[SuiteOutcome, ...], *, baseline: bool) -> Verdict:
    """Tell everybody what became of the suites."""
    job, inputs = step.job, step.inputs
    head = asked.head.sha if asked.head else job.sha
    number = asked.pull_request.number if asked.pull_request else None
    measured = JobOutcome(
        OUTCOME_VERSION, head, number, job.run_id, job.run_attempt, job.name, inputs.leg, suites
    )
    outcome = without_secrets(measured, secrets_of(step.environment))
    verdict = decide(suites, inputs.fail_on)
    step.delivery.deliver(outcome, verdict, asked.pull_request, status=not baseline, comments=asked.comments)
    return verdict


def _suites(
    step: Step, asked: Evaluation, carried: CarriedResults, *, baseline: bool
) -> tuple[SuiteOutcome, ...]:
    """What became of each suite; what is wrong with the checkout itself is the failure of one."""
    job, inputs = step.job, step.inputs
    try:
        with opened_quarters(job.workspace, step.environment, inputs) as (quarters, access):
            repository = Repository(job.workspace, access)
            head = asked.head or Commit(job.ref, job.sha)
            fetching = Fetching(repository, job.server_url, inputs.token)
            sides = Sides(head, None) if baseline else find_sides(repository, asked, inputs.base, fetching)
            try:
                debug = step.environment.get("RUNNER_DEBUG") == "1"
                evaluation = SuiteEvaluation(repository, sides, inputs, quarters, carried, debug)
                with step.runner.foreign_output():
                    return evaluation.outcomes()
            finally:
                carried.set_aside()
    except OloproofError as error:
        return (failed(inputs.config[0] if inputs.config else CONFIG, error),)


def _publish(step: Step, asked: Publication) -> int:
    """Post the reports of another run into the comment of its pull request; gives the exit code. There is no verdict:
    that is the other run's, and its own check shows it."""
    outcomes = [read_outcome(path, asked) for path in find_reports(Path(step.inputs.report_dir))]
    try:
        pull = find_pull(step.github, asked)
    except ApiError as error:
        raise UnfinishedError(f"The pull request of the run could not be found: {error.said}") from None
    if isinstance(pull, str):
        step.runner.annotate("notice", f"Nothing to publish: {pull}.", title="Oloproof")
        return EXIT_OK
    url = step.job.run_url(asked.run_id, asked.run_attempt)
    found = [draft for outcome in outcomes for draft in unverified_drafts(outcome, pull, url)]
    # A run whose token could write has posted its own report, which is not to be replaced by an unverified one.
    reported_on = PullRequest(pull.number, pull.from_fork)
    step.delivery.comment(found, reported_on, asked.head_sha, None, once=True)
    return EXIT_OK
