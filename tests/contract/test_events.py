"""What each event asks for, by the payloads that GitHub's own examples hold (npm @octokit/webhooks-examples)."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from oloproof.errors import ConfigurationError
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
from oloproof_ci.action.job import Job
from oloproof_ci.report import Commit

Examples = Mapping[str, list[dict[str, Any]]]
MERGE = "e" * 40


@pytest.fixture(scope="session")
def examples(packages: Path) -> Examples:
    index = packages / "@octokit" / "webhooks-examples" / "api.github.com" / "index.json"
    return {each["name"]: each["examples"] for each in json.loads(index.read_bytes())}


def asked(event: str, payload: Mapping[str, Any], ref: str = "refs/heads/main", **inputs: str) -> Plan:
    job = Job.read(
        {
            "GITHUB_REPOSITORY": "octo/app",
            "GITHUB_EVENT_NAME": event,
            "GITHUB_SHA": MERGE,
            "GITHUB_REF": ref,
            "GITHUB_RUN_ID": "7",
            "GITHUB_API_URL": "https://ghe.example/api/v3",
            "GITHUB_SERVER_URL": "https://ghe.example",
            "GITHUB_WORKSPACE": "/github/workspace",
        }
    )
    return plan(job, payload, Inputs.read({f"INPUT_{name.upper()}": text for name, text in inputs.items()}))


def test_every_example_of_a_pull_request_is_understood(examples: Examples) -> None:
    assert len(examples["pull_request"]) == 29
    for payload in examples["pull_request"]:
        pull, found = payload["pull_request"], asked("pull_request", payload, "refs/pull/2/merge")
        if pull["state"] == "closed":
            assert found == Nothing("pull request #2 is closed")
            continue
        assert found == Evaluation(
            head=Commit(pull["head"]["ref"], pull["head"]["sha"]),
            into=Commit(pull["base"]["ref"], pull["base"]["sha"]),
            exact=False,
            pull_request=PullRequest(pull["number"], from_fork=False),
            comments=True,
        ), payload["action"]


def test_every_example_of_a_merge_group_is_gated_without_a_comment(examples: Examples) -> None:
    assert len(examples["merge_group"]) == 2
    for payload in examples["merge_group"]:
        group = payload["merge_group"]
        found = asked("merge_group", payload, group["head_ref"])
        head, into = Commit("merge queue, #104", group["head_sha"]), Commit("main", group["base_sha"])
        assert found == Evaluation(head, into, exact=True, pull_request=None, comments=False)


def test_every_example_of_a_push_is_a_baseline_unless_something_was_deleted(examples: Examples) -> None:
    assert len(examples["push"]) == 7
    for payload in examples["push"]:
        found = asked("push", payload, payload["ref"])
        name = payload["ref"].split("/", 2)[2]
        assert found == (
            Nothing(f"{name} was deleted") if payload["deleted"] else Baseline(Commit(name, MERGE))
        )


def test_every_example_of_a_workflow_run_is_published_or_passed_over_with_the_reason(
    examples: Examples,
) -> None:
    assert len(examples["workflow_run"]) == 5
    for payload in examples["workflow_run"]:
        found = asked("workflow_run", payload)
        assert isinstance(found, Nothing)
        run = copy.deepcopy(payload)
        run["workflow_run"]["event"] = "pull_request"
        found = asked("workflow_run", run)
        if payload["action"] != "completed":
            assert found == Nothing(f"the run is {payload['workflow_run']['status']}, not completed")
            continue
        assert isinstance(found, Publication)
        assert found.head_sha == payload["workflow_run"]["head_sha"]
        assert found.pull_requests == tuple(p["number"] for p in payload["workflow_run"]["pull_requests"])


def test_every_example_of_a_manual_start_is_a_baseline_or_a_pull_request_by_number(
    examples: Examples,
) -> None:
    assert len(examples["workflow_dispatch"]) == 2
    for payload in examples["workflow_dispatch"]:
        assert asked("workflow_dispatch", payload, payload["ref"]) == Baseline(
            Commit(payload["ref"].removeprefix("refs/heads/"), MERGE)
        )
        for name, text in (("pull-request", "12"), ("pull_request", "#12"), ("pr", " 12 "), ("number", 12)):
            found = asked("workflow_dispatch", {**payload, "inputs": {name: text}})
            assert found == Evaluation(None, None, False, PullRequest(12, False), True)


@pytest.mark.parametrize("number", ["x", "0", "-1", "1.5", "１２", "1" * 30, "1; rm"])
def test_a_manual_start_with_something_else_than_a_number_is_an_error(number: str) -> None:
    with pytest.raises(ConfigurationError, match="pull-request: expected a number"):
        asked("workflow_dispatch", {"inputs": {"pull-request": number}})


def test_a_pull_request_from_a_fork_is_known_also_when_the_fork_is_gone(examples: Examples) -> None:
    payload = copy.deepcopy(examples["pull_request"][0])
    for repository in ({"full_name": "mallory/Hello-World"}, None):
        payload["pull_request"]["head"]["repo"] = repository
        found = asked("pull_request", payload)
        assert isinstance(found, Evaluation)
        assert found.pull_request == PullRequest(2, from_fork=True)


def test_branches_are_called_what_people_call_them() -> None:
    for name in ("feature/ünïcode", 'with"quote', "refs/heads/odd", "a/b/c"):
        found = asked("push", {"after": MERGE}, f"refs/heads/{name}")
        assert found == Baseline(Commit(name, MERGE))


def test_code_of_a_pull_request_is_never_run_under_a_token_that_may_write(examples: Examples) -> None:
    found = asked("pull_request_target", examples["pull_request"][0])
    assert isinstance(found, Refusal)
    assert "mode: publish" in found.reason
    run = copy.deepcopy(examples["workflow_run"][1])
    run["workflow_run"]["event"] = "pull_request"
    for mode in ("evaluate", "baseline"):
        assert isinstance(asked("workflow_run", run, mode=mode), Refusal)


def test_the_mode_overrules_what_the_event_would_be_taken_for(examples: Examples) -> None:
    pull, push = examples["pull_request"][0], dict(examples["push"][0], before="a" * 40, deleted=False)
    assert isinstance(asked("pull_request", pull, "refs/pull/2/merge", mode="baseline"), Baseline)
    assert isinstance(asked("pull_request", pull, mode="publish"), Refusal)
    found = asked("push", push, mode="evaluate")
    assert isinstance(found, Evaluation)
    assert (found.into, found.exact) == (Commit("aaaaaaa before the push", "a" * 40), True)


def test_a_new_branch_has_nothing_before_it() -> None:
    found = asked("push", {"before": "0" * 40, "after": MERGE}, mode="evaluate")
    assert isinstance(found, Evaluation)
    assert found.into is None


@pytest.mark.parametrize(
    "event", ["issue_comment", "release", "repository_dispatch", "check_suite", "pull_request_review"]
)
def test_other_events_are_refused_with_the_ones_that_are_known(event: str) -> None:
    found = asked(event, {})
    assert isinstance(found, Refusal)
    assert "merge_group, pull_request" in found.reason


@pytest.mark.parametrize("event", ["pull_request", "merge_group", "workflow_run"])
def test_a_payload_of_another_event_is_an_error_that_says_so(event: str, examples: Examples) -> None:
    half = {"number": True, "head": {}, "event": "pull_request"}
    for payload in ({}, examples["push"][0], {event: []}, {event: half}):
        payload = {"action": "completed", **payload}
        with pytest.raises(ConfigurationError, match="the event's payload"):
            asked(event, payload)


def test_a_commit_id_that_is_none_never_reaches_git(examples: Examples) -> None:
    payload = copy.deepcopy(examples["pull_request"][0])
    for sha in ("--upload-pack=x", "main", "abc", "", None, 5):
        payload["pull_request"]["head"]["sha"] = sha
        with pytest.raises(ConfigurationError, match="sha: expected"):
            asked("pull_request", payload)


def test_outside_a_workflow_the_command_says_what_to_use_instead() -> None:
    with pytest.raises(ConfigurationError, match="oloproof-ci preview"):
        Job.read({})
