"""What an event asks for: a pure function of the job, the event's payload and the inputs.

What each event's payload and GITHUB_SHA mean: https://docs.github.com/actions/reference/events-that-trigger-workflows
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oloproof.errors import ConfigurationError
from oloproof_ci.action.inputs import Inputs
from oloproof_ci.action.job import Job, Payload
from oloproof_ci.report import Commit

_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_QUEUED = re.compile(r"/pr-(\d+)-[0-9a-f]+$")
#: Under which names a manually started workflow may pass the pull request's number.
_NUMBER_INPUTS = ("pull-request", "pull_request", "pr", "number")


@dataclass(frozen=True)
class PullRequest:
    """The pull request that is reported on. From a fork its token is read-only."""

    number: int
    from_fork: bool


@dataclass(frozen=True)
class Evaluation:
    """Measure the checkout against what it merges into.

    `head` is the commit to report on; the one checked out may be its test merge. None: the head of `pull_request` as
    it is now. `into` is what it merges into: the base itself when `exact`, else the tip of its branch; None: found in
    the checkout. `comments`: whether there is a place for a comment.
    """

    head: Commit | None
    into: Commit | None
    exact: bool
    pull_request: PullRequest | None
    comments: bool


@dataclass(frozen=True)
class Baseline:
    """Measure the checkout alone: later pull requests are held against it."""

    head: Commit


@dataclass(frozen=True)
class Publication:
    """Post the report of a run that could not post it itself. `pull_requests` are those that GitHub names, often none;
    `head_repository` and `head_branch` find the others."""

    head_sha: str
    head_repository: str
    head_branch: str
    run_id: int
    run_attempt: int
    pull_requests: tuple[int, ...]


@dataclass(frozen=True)
class Nothing:
    """There is nothing to do, which is no failure."""

    reason: str


@dataclass(frozen=True)
class Refusal:
    """The event is one that the action does not run on, and why."""

    reason: str


Plan = Evaluation | Baseline | Publication | Nothing | Refusal


def plan(job: Job, payload: Payload, inputs: Inputs) -> Plan:
    """What to do. Raises ConfigurationError when the payload is not that of the event."""
    reading = _READINGS.get(job.event)
    if reading is None:
        return Refusal(
            f"the event {job.event} names no code to measure; run the action on {', '.join(sorted(_READINGS))}"
        )
    found = reading(job, payload)
    if inputs.mode == "publish" and not isinstance(found, Publication | Refusal):
        return Refusal(
            f"mode publish posts the report of another run, so it needs workflow_run, not {job.event}"
        )
    if inputs.mode in ("evaluate", "baseline") and isinstance(found, Publication):
        return Refusal(
            f"mode {inputs.mode} would run code under a token that may write; on workflow_run only publish is possible"
        )
    if inputs.mode == "evaluate" and isinstance(found, Baseline):
        return Evaluation(found.head, _before(payload), True, None, False)
    if inputs.mode == "baseline" and isinstance(found, Evaluation):
        return Baseline(Commit(_short(job.ref), job.sha))
    return found


def _pull_request(job: Job, payload: Payload) -> Plan:
    pull = _mapping(payload, "pull_request")
    number = _whole(pull, "number")
    if pull.get("state") == "closed":
        return Nothing(f"pull request #{number} is closed")
    head, base = _mapping(pull, "head"), _mapping(pull, "base")
    fork = _repository(head) != _repository(base)
    return Evaluation(
        head=Commit(_text(head, "ref"), _sha(head, "sha")),
        into=Commit(_text(base, "ref"), _sha(base, "sha")),
        exact=False,
        pull_request=PullRequest(number, fork),
        comments=True,
    )


def _pull_request_target(job: Job, payload: Payload) -> Plan:
    return Refusal(
        "pull_request_target gives a pull request's code the secrets and the write token of this repository. Use "
        "pull_request, and for forks a second workflow on workflow_run with mode: publish"
    )


def _merge_group(job: Job, payload: Payload) -> Plan:
    group = _mapping(payload, "merge_group")
    if payload.get("action") == "destroyed":
        return Nothing("the merge group is gone")
    head_ref = _text(group, "head_ref")
    queued = _QUEUED.search(head_ref)
    name = f"merge queue, #{queued[1]}" if queued else _short(head_ref)
    into = Commit(_short(_text(group, "base_ref")), _sha(group, "base_sha"))
    return Evaluation(Commit(name, _sha(group, "head_sha")), into, True, None, False)


def _push(job: Job, payload: Payload) -> Plan:
    if payload.get("deleted") or not payload.get("after", "x").strip("0"):
        return Nothing(f"{_short(job.ref)} was deleted")
    return Baseline(Commit(_short(job.ref), job.sha))


def _schedule(job: Job, payload: Payload) -> Plan:
    return Baseline(Commit(_short(job.ref), job.sha))


def _workflow_dispatch(job: Job, payload: Payload) -> Plan:
    given = payload.get("inputs") or {}
    wanted = next((str(given[name]).strip() for name in _NUMBER_INPUTS if given.get(name)), "")
    if not wanted:
        return Baseline(Commit(_short(job.ref), job.sha))
    number = wanted.removeprefix("#")
    if not (number.isascii() and number.isdecimal() and len(number) < 10 and int(number)):
        raise ConfigurationError(f"workflow input pull-request: expected a number, found {wanted[:60]!r}")
    return Evaluation(None, None, False, PullRequest(int(number), False), True)


def _workflow_run(job: Job, payload: Payload) -> Plan:
    run = _mapping(payload, "workflow_run")
    if payload.get("action") != "completed":
        return Nothing(f"the run is {run.get('status') or payload.get('action')}, not completed")
    if run.get("event") != "pull_request":
        return Nothing(f"the run was for {run.get('event')}, not for a pull request")
    numbers = tuple(_whole(pull, "number") for pull in run.get("pull_requests") or ())
    source = run.get("head_repository") or {}
    return Publication(
        head_sha=_sha(run, "head_sha"),
        head_repository=str(source.get("full_name") or ""),
        head_branch=str(run.get("head_branch") or ""),
        run_id=_whole(run, "id"),
        run_attempt=_whole(run, "run_attempt"),
        pull_requests=numbers,
    )


_READINGS = {
    "pull_request": _pull_request,
    "pull_request_target": _pull_request_target,
    "merge_group": _merge_group,
    "push": _push,
    "schedule": _schedule,
    "workflow_dispatch": _workflow_dispatch,
    "workflow_run": _workflow_run,
}


# -------------------------------------------------------------------------------- reading payloads


def _before(payload: Payload) -> Commit | None:
    """What a branch pointed to before a push; None for a new branch, whose `before` is all zeros."""
    before = payload.get("before")
    if not isinstance(before, str) or not before.strip("0") or not _SHA.fullmatch(before):
        return None
    return Commit(f"{before[:7]} before the push", before)


def _short(ref: str) -> str:
    """A ref as people call it: the branch, the tag, or `pull/12/merge`."""
    for prefix in ("refs/heads/", "refs/tags/", "refs/"):
        if ref.startswith(prefix):
            return ref.removeprefix(prefix)
    return ref or "HEAD"


def _repository(side: Mapping[str, Any]) -> str | None:
    """The repository that a side of a pull request lies in; None when it has been deleted."""
    repo = side.get("repo")
    return repo.get("full_name") if isinstance(repo, Mapping) else None


def _mapping(payload: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = payload.get(key)
    if not isinstance(found, Mapping):
        raise ConfigurationError(
            f"the event's payload has no {key}; is GITHUB_EVENT_NAME the event it is of?"
        )
    return found


def _text(record: Mapping[str, Any], key: str) -> str:
    found = record.get(key)
    if not isinstance(found, str) or not found:
        raise ConfigurationError(f"the event's payload: {key}: expected text, found {str(found)[:60]!r}")
    return found


def _sha(record: Mapping[str, Any], key: str) -> str:
    found = _text(record, key)
    if not _SHA.fullmatch(found):
        raise ConfigurationError(f"the event's payload: {key}: expected a commit id, found {found[:60]!r}")
    return found


def _whole(record: Mapping[str, Any], key: str) -> int:
    found = record.get(key)
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise ConfigurationError(f"the event's payload: {key}: expected a number, found {str(found)[:60]!r}")
    return found
