"""`oloproof-ci action`: the composition root of a workflow's step. Everything it reads is in the environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TextIO

from oloproof.errors import EXIT_CONFIGURATION, EXIT_OK, ConfigurationError, OloproofError, UnfinishedError
from oloproof_ci.action.checkout import Sides, find_sides
from oloproof_ci.action.delivery import Delivery
from oloproof_ci.action.evaluating import evaluate_suites, failed
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
from oloproof_ci.action.quarters import opened_quarters
from oloproof_ci.action.runner import Runner
from oloproof_ci.action.verdict import decide
from oloproof_ci.fetching import Fetching
from oloproof_ci.git import Repository
from oloproof_ci.github.client import GitHub
from oloproof_ci.github.errors import ApiError
from oloproof_ci.isolation import owner_of
from oloproof_ci.outcome import OUTCOME_VERSION, JobOutcome, SuiteOutcome
from oloproof_ci.report import Commit
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


def run(environment: Mapping[str, str], log: TextIO) -> int:
    """Do what the event asks; gives the exit code. An error that leaves nothing to report becomes an annotation."""
    runner = Runner(environment, log)
    try:
        inputs = Inputs.read(environment)
        runner.mask(inputs.token)
        job = Job.read(environment)
        asked = plan(job, read_payload(environment), inputs)
        return _act(job, inputs, asked, runner, environment)
    except OloproofError as error:
        runner.annotate("error", str(error), title="Oloproof")
        return error.exit_code


def _act(job: Job, inputs: Inputs, asked: Plan, runner: Runner, environment: Mapping[str, str]) -> int:
    github = GitHub(inputs.token, job.api_url, job.repository)
    match asked:
        case Nothing(reason):
            runner.annotate("notice", f"Nothing to evaluate: {reason}.", title="Oloproof")
            return EXIT_OK
        case Refusal(reason):
            runner.annotate("error", f"{reason}.", title="Oloproof")
            return EXIT_CONFIGURATION
        case Publication():
            raise ConfigurationError("mode publish is not there yet")
        case Baseline(head):
            alone = Evaluation(head, None, exact=False, pull_request=None, comments=False)
            return _evaluate(job, inputs, runner, environment, github, alone, baseline=True)
        case Evaluation():
            return _evaluate(
                job, inputs, runner, environment, github, _resolved(asked, github), baseline=False
            )


def _resolved(asked: Evaluation, github: GitHub) -> Evaluation:
    """An evaluation by the number of a pull request, with its head and base as they are now."""
    if asked.head is not None or asked.pull_request is None:
        return asked
    try:
        pull = github.pull(asked.pull_request.number)
    except ApiError as error:
        number = asked.pull_request.number
        raise UnfinishedError(f"Pull request #{number} could not be read: {error.said}") from None
    return replace(
        asked,
        head=Commit(pull.head_ref, pull.head_sha),
        into=Commit(pull.base_ref, pull.base_sha),
        pull_request=PullRequest(pull.number, pull.from_fork),
    )


def _evaluate(
    job: Job,
    inputs: Inputs,
    runner: Runner,
    environment: Mapping[str, str],
    github: GitHub,
    asked: Evaluation,
    *,
    baseline: bool,
) -> int:
    """Evaluate every suite, and tell everybody; gives the exit code."""
    suites = _suites(job, inputs, runner, environment, asked, baseline=baseline)
    head = asked.head.sha if asked.head else job.sha
    number = asked.pull_request.number if asked.pull_request else None
    outcome = JobOutcome(OUTCOME_VERSION, head, number, job.run_id, job.run_attempt, inputs.leg, suites)
    verdict = decide(suites, inputs.fail_on)
    delivery = Delivery(job, inputs, runner, github, owner_of(job.workspace))
    delivery.leave(outcome, verdict)
    delivery.tell(outcome, verdict, asked.pull_request, status=not baseline, comments=asked.comments)
    return verdict.exit_code


def _suites(
    job: Job,
    inputs: Inputs,
    runner: Runner,
    environment: Mapping[str, str],
    asked: Evaluation,
    *,
    baseline: bool,
) -> tuple[SuiteOutcome, ...]:
    """What became of each suite; what is wrong with the checkout itself is the failure of one."""
    try:
        with opened_quarters(job.workspace, environment, inputs) as (quarters, access):
            repository = Repository(job.workspace, access)
            head = asked.head or Commit(job.ref, job.sha)
            fetching = Fetching(repository, job.server_url, inputs.token)
            sides = Sides(head, None) if baseline else find_sides(repository, asked, inputs.base, fetching)
            with runner.foreign_output():
                return evaluate_suites(repository, sides, inputs, quarters)
    except OloproofError as error:
        return (failed(inputs.config[0] if inputs.config else CONFIG, error),)
