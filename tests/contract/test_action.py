"""The action as the step of a workflow, on a GitHub that keeps state: what each event, fault and fork comes to."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from api_server import JOB_TOKEN, ApiServer
from workflow import Workflow

FORBIDDEN = {"status": 403, "message": "Resource not accessible by integration"}
WRITES = r"/(statuses/\w+|issues/\d+/comments)$"


@contextmanager
def new_workflow(server: ApiServer) -> Iterator[Workflow]:
    # The code runs as another user when we are root, who must get there: pytest's own folders are closed to others.
    place = Path(tempfile.mkdtemp(prefix="oloproof-workflow-"))
    place.chmod(0o755)
    repository, number = server.make_pull_request()
    made = Workflow(server, place, repository, number)
    made.begin()
    try:
        yield made
    finally:
        shutil.rmtree(place)


@pytest.fixture
def workflow(server: ApiServer) -> Iterator[Workflow]:
    with new_workflow(server) as made:
        yield made


# ------------------------------------------------------------------------------------ pull requests


def test_a_regression_is_blocked_and_its_repair_updates_the_same_comment(workflow: Workflow) -> None:
    server = workflow.server
    head = workflow.make_worse()
    done = workflow.pull_request()
    assert done.code == 1
    (status,) = server.statuses
    assert (status["sha"], status["state"], status["context"]) == (head, "failure", "oloproof/gate")
    assert status["description"] == "BLOCK: no-new-failures · 4 new failures"
    assert status["target_url"] == f"https://ghe.example/{workflow.repository}/actions/runs/101/attempts/1"
    calls = [call.rsplit("/", 1)[-1] if "statuses" in call else call for call in server.calls()]
    assert calls[1] == head, "the status comes first"
    (comment,) = workflow.comments()
    assert "## ⛔ Oloproof · support-rag · BLOCK" in comment
    assert f"`{head[:7]}` (feature) against" in comment

    assert done.outputs["gate"] == "BLOCK"
    assert done.outputs["reason"] == "no-new-failures"
    assert (done.outputs["new-failures"], done.outputs["fixed"]) == ("4", "1")
    assert done.outputs["run-id"].startswith("run_")
    assert done.outputs["base-run-id"].startswith("run_")
    assert done.outputs["comparison-id"].startswith("sha256:")
    assert done.outputs["diagnosis-id"].startswith("sha256:")
    assert done.outputs["report-path"] == "oloproof-report/report.json"
    assert "#issuecomment-" in done.outputs["comment-url"]
    assert done.summary.startswith("## ⛔ Oloproof · support-rag · BLOCK")
    assert [re.findall(r"file=(.*?),line=(\d+)", line) for line in done.commands("error")] == [
        [("data/support.jsonl", line)] for line in ("4", "6", "7", "8")
    ]

    server.exchanges.clear()
    mended = workflow.mend()
    done = workflow.pull_request()
    assert done.code == 0
    assert server.statuses[-1]["state"] == "success"
    assert server.statuses[-1]["sha"] == mended
    (comment,) = workflow.comments()
    assert "· BLOCK" not in comment
    assert len(server.calls()) <= 8
    assert done.commands("warning") == []


def test_the_base_branchs_policies_decide_unless_the_workflow_says_otherwise(workflow: Workflow) -> None:
    policy = workflow.workspace / "compare.yaml"
    text = policy.read_text(encoding="utf-8").replace("max: 0", "max: 9")
    policy.write_text(re.sub(r"block_on: .*", "block_on: [FAIL]", text), encoding="utf-8")
    (workflow.workspace / "release.yaml").unlink()
    workflow.make_worse()
    assert workflow.pull_request().code == 1
    (comment,) = workflow.comments()
    assert "### Looser than on `main`" in comment
    assert "`rule no-new-failures, max`" in comment
    assert workflow.pull_request(policy_from="head").code == 0
    (comment,) = workflow.comments()
    assert "The rules that decide are those of this pull request." in comment


def test_a_run_that_was_overtaken_changes_neither_status_nor_comment(workflow: Workflow) -> None:
    head = workflow.push()
    workflow.pull_request()
    before = workflow.comments()
    workflow.run_id = 50  # begun before the other, on the same head, and slower
    done = workflow.run("pull_request", workflow.payload(head, workflow.git("rev-parse", "main")))
    assert "A newer run has set the status already." in done.log
    assert "The comment has this run's or a newer one's result already." in done.log
    assert (len(workflow.server.statuses), workflow.comments()) == (1, before)


def test_the_base_is_what_was_merged_not_where_its_branch_is_now(workflow: Workflow) -> None:
    """The payload's base is older than the test merge: main has got a case more since."""
    stale = workflow.git("rev-parse", "main")
    workflow.git("checkout", "--quiet", "main")
    (workflow.workspace / "README.md").write_text("Changed on main\n", encoding="utf-8")
    merged = workflow.commit("Go on with main")
    workflow.git("checkout", "--quiet", "feature")
    head = workflow.push()
    workflow.git("checkout", "--quiet", "--detach", "main")
    workflow.git("merge", "--quiet", "--no-ff", "--message", "The test merge", "feature")
    workflow.run("pull_request", workflow.payload(head, stale))
    (suite,) = workflow.report()["suites"]
    assert suite["report"]["base_commit"] == {"ref": "main", "sha": merged}
    assert suite["report"]["head"]["sha"] == head


def test_with_the_head_checked_out_the_base_is_where_it_parted_from(workflow: Workflow) -> None:
    parted = workflow.git("rev-parse", "main")
    workflow.git("checkout", "--quiet", "main")
    tip = workflow.commit("Go on with main")
    workflow.git("checkout", "--quiet", "feature")
    head = workflow.push()
    done = workflow.run("pull_request", workflow.payload(head, tip))
    assert done.code == 0
    assert workflow.report()["suites"][0]["report"]["base_commit"]["sha"] == parted


def test_a_checkout_of_something_else_is_a_failure_that_the_pull_request_shows(workflow: Workflow) -> None:
    head = workflow.push()
    tip = workflow.git("rev-parse", "main")
    workflow.git("checkout", "--quiet", "main")
    done = workflow.run("pull_request", workflow.payload(head, tip))
    assert done.code == 2
    (comment,) = workflow.comments()
    assert "let actions/checkout take its default ref" in comment
    assert (workflow.server.statuses[0]["state"], workflow.server.statuses[0]["sha"]) == ("error", head)


def test_a_configuration_that_is_wrong_is_told_in_comment_status_and_annotation(workflow: Workflow) -> None:
    config = workflow.workspace / "oloproof.yaml"
    config.write_text(config.read_text().replace("evaluators:", "evaluatorz:"), encoding="utf-8")
    workflow.push()
    done = workflow.pull_request()
    assert done.code == 2
    (comment,) = workflow.comments()
    assert "**The input is wrong**" in comment
    assert "did you mean evaluators?" in comment
    assert workflow.server.statuses[0]["state"] == "error"
    assert done.outputs["gate"] == "BLOCK"
    assert any("file=oloproof.yaml" in line for line in done.commands("error"))
    assert "did you mean evaluators?" in done.summary


def test_several_suites_stand_in_one_comment_and_one_that_fails_stops_no_other(workflow: Workflow) -> None:
    shutil.copytree(workflow.workspace / "data", workflow.workspace / "second" / "data")
    for name in ("oloproof.yaml", "app.py", "release.yaml", "compare.yaml"):
        shutil.copyfile(workflow.workspace / name, workflow.workspace / "second" / name)
    config = workflow.workspace / "second" / "oloproof.yaml"
    config.write_text(config.read_text().replace("app:SupportRag", "app:Nothing"), encoding="utf-8")
    workflow.push()
    done = workflow.pull_request(config="oloproof.yaml\nsecond/oloproof.yaml")
    assert done.code == 2
    (comment,) = workflow.comments()
    assert re.findall(r"^## .*$", comment, re.MULTILINE)[0].startswith("## ")
    assert len(re.findall(r"^## ", comment, re.MULTILINE)) == 2
    assert done.outputs["run-id"].splitlines()[0].startswith("run_")


def test_a_gate_that_fail_on_lets_through_fails_neither_job_nor_status(workflow: Workflow) -> None:
    workflow.make_worse()
    done = workflow.pull_request(fail_on="never")
    (status,) = workflow.server.statuses
    assert (done.code, status["state"], done.outputs["gate"]) == (0, "success", "BLOCK")
    assert status["description"].startswith("BLOCK, not enforced: no-new-failures")


def test_what_is_switched_off_is_not_asked_for(workflow: Workflow) -> None:
    workflow.make_worse()
    done = workflow.pull_request(comment="off", status="off", annotations="off", base="none")
    assert workflow.server.calls() == []
    assert done.commands("warning") == done.commands("error") == []
    report = workflow.report()["suites"][0]["report"]
    assert report["base"] is None
    assert "not_compared" in [warning["code"] for warning in report["warnings"]], (
        "which is no pass in silence"
    )


def test_as_many_failures_are_diagnosed_as_are_asked_for(workflow: Workflow) -> None:
    workflow.make_worse()
    found = {}
    for scope in ("off", "all-failures"):
        workflow.pull_request(diagnose=scope, comment="off")
        (suite,) = workflow.report()["suites"]
        (found[scope],) = suite["report"]["failures"]
    assert {case["reason"] for case in found["off"]["new_failures"]} == {"switched_off"}
    assert (found["off"]["diagnosis"], found["off"]["swap"], found["off"]["calls"]) == (None, None, 0)
    everything = found["all-failures"]
    assert all(case["label"] != "NOT_DIAGNOSED" for case in everything["new_failures"])
    assert {case["case_id"] for case in everything["still_failing_labels"]} == set(
        everything["still_failing"]
    )
    assert "NOT_DIAGNOSED" not in {case["label"] for case in everything["still_failing_labels"]}


# --------------------------------------------------------------------------------------- other events


def test_a_push_is_measured_alone_and_nobody_is_told(workflow: Workflow) -> None:
    workflow.git("checkout", "--quiet", "main")
    done = workflow.run("push", {"after": "x", "deleted": False}, "refs/heads/main")
    report = workflow.report()["suites"][0]["report"]
    assert (report["base"], report["base_commit"], report["head"]["ref"]) == (None, None, "main")
    assert workflow.server.calls() == []
    assert done.summary.startswith("## ")


def test_a_merge_group_is_gated_by_status_without_a_comment(workflow: Workflow) -> None:
    workflow.make_worse()
    base = workflow.git("rev-parse", "main")
    workflow.git("checkout", "--quiet", "--detach", "main")
    workflow.git("merge", "--quiet", "--no-ff", "--message", "Queued", "feature")
    group = workflow.git("rev-parse", "HEAD")
    ref = f"refs/heads/gh-readonly-queue/main/pr-1-{base}"
    payload = {"head_sha": group, "head_ref": ref, "base_sha": base, "base_ref": "refs/heads/main"}
    done = workflow.run("merge_group", {"action": "checks_requested", "merge_group": payload}, ref)
    assert done.code == 1
    assert [(status["sha"], status["state"]) for status in workflow.server.statuses] == [(group, "failure")]
    assert workflow.comments() == []


def test_a_pull_request_can_be_named_by_number(workflow: Workflow) -> None:
    head = workflow.make_worse()
    payload = {"ref": "refs/heads/main", "inputs": {"pull-request": str(workflow.number)}}
    # emulate knows no commits of ours: its base is none, so what is compared with is said here
    done = workflow.run("workflow_dispatch", payload, "refs/heads/main", base="main")
    assert done.code == 1
    assert workflow.server.statuses[0]["sha"] == head
    assert len(workflow.comments()) == 1
    # the cache of this job is that of main, whose own jobs would read it
    assert "nothing: a pull request's code was measured where" in done.summary


def test_a_closed_pull_request_is_not_measured_by_number_either(workflow: Workflow) -> None:
    path = f"/repos/{workflow.repository}/pulls/{workflow.number}"
    workflow.server.ask("PATCH", path, {"state": "closed"})
    payload = {"ref": "refs/heads/main", "inputs": {"pull-request": str(workflow.number)}}
    done = workflow.run("workflow_dispatch", payload, "refs/heads/main")
    assert (done.code, f"pull request #{workflow.number} is closed" in done.log) == (0, True)


@pytest.mark.parametrize(
    ("event", "payload", "code", "said"),
    [
        ("pull_request_target", {}, 2, "::error title=Oloproof::pull_request_target gives"),
        ("issue_comment", {}, 2, "::error title=Oloproof::the event issue_comment names no code"),
        ("push", {"deleted": True}, 0, "::notice title=Oloproof::Nothing to evaluate: "),
        ("pull_request", {}, 2, "::error title=Oloproof::the event's payload has no pull_request"),
    ],
)
def test_an_event_without_anything_to_measure_says_so(
    workflow: Workflow, event: str, payload: dict[str, Any], code: int, said: str
) -> None:
    done = workflow.run(event, payload)
    assert done.code == code
    assert said in done.log
    assert workflow.server.calls() == []


# ------------------------------------------------------------------------- the verdict and the API


def test_a_fork_gets_its_verdict_and_the_summary_without_a_comment(workflow: Workflow) -> None:
    workflow.make_worse()
    workflow.server.fail("POST", WRITES, times=20, **FORBIDDEN)
    done = workflow.pull_request(fork=True)
    assert (done.code, done.outputs["gate"]) == (1, "BLOCK")
    status, comment = done.commands("warning")
    assert status.startswith(
        "::warning::The status was not written: a pull request from a fork has a read-only"
    )
    assert comment.startswith(
        "::warning::The comment was not written: a pull request from a fork has a read-only"
    )
    assert "4 cases that pass" in done.summary
    assert workflow.comments() == []


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (FORBIDDEN, "Add `pull-requests: write` to the job's `permissions`"),
        ({"status": 403, "message": "Issue is locked."}, "the conversation is locked"),
        ({"status": 429, "message": "API rate limit exceeded"}, "GitHub's rate limit holds"),
        ({"status": 410, "message": "This issue was deleted"}, "is gone, or the token cannot see it"),
        (
            {"status": 401, "message": "Bad credentials"},
            "GitHub does not accept the token of the input github-token (Bad credentials)",
        ),
    ],
    ids=["permission", "locked", "rate limit", "deleted", "credentials"],
)
def test_whatever_github_refuses_the_verdict_and_the_summary_stand(
    workflow: Workflow, fault: dict[str, Any], said: str
) -> None:
    (workflow.workspace / "oloproof.yaml").write_text("version: 2\n", encoding="utf-8")  # quickly over
    workflow.push()
    workflow.server.fail("POST", WRITES, times=20, **fault)
    done = workflow.pull_request()
    assert (done.code, done.outputs["gate"]) == (2, "BLOCK")
    status, comment = done.commands("warning")
    assert status.startswith("::warning::The status was not written")
    assert comment.startswith("::warning::The comment was not written")
    assert said in comment
    assert "this version of Oloproof reads version 1" in done.summary
    assert workflow.comments() == []


def test_files_that_cannot_be_written_change_no_verdict(workflow: Workflow) -> None:
    (workflow.workspace / "oloproof.yaml").write_text("version: 2\n", encoding="utf-8")  # quickly over
    workflow.push()
    nowhere = str(workflow.place / "no such folder" / "file")
    payload = workflow.payload(workflow.git("rev-parse", "feature"), workflow.git("rev-parse", "main"))
    files = {"GITHUB_OUTPUT": nowhere, "GITHUB_STEP_SUMMARY": nowhere}
    done = workflow.run("pull_request", payload, environment=files, report_dir="app.py")
    assert done.code == 2
    warnings = done.commands("warning")
    assert sum("no such folder/file: the runner's file cannot be written" in line for line in warnings) >= 2
    assert any("app.py/report.json: cannot be written" in line for line in warnings)
    assert len(workflow.comments()) == 1
    assert workflow.server.statuses[0]["state"] == "error"


@pytest.mark.parametrize("named", ["../..", "a/../../b", "/tmp/reports", "linked/reports"])
@pytest.mark.parametrize("mode", ["auto", "publish"])
def test_reports_stay_in_the_workspace(workflow: Workflow, named: str, mode: str) -> None:
    (workflow.workspace / "linked").symlink_to(workflow.place)
    head = workflow.push()
    payload = workflow.payload(head, workflow.git("rev-parse", "main"))
    done = workflow.run("pull_request", payload, report_dir=named, mode=mode)
    (error,) = done.commands("error")
    assert done.code == 2
    how = "is, or lies behind, a link that leads" if named.startswith("linked") else "leads"
    assert f'input report-dir: "{named}" {how} out of the workspace' in error
    assert sorted(each.name for each in workflow.place.iterdir()) == ["runner-101", "workspace"]
    assert (workflow.server.calls(), workflow.server.statuses) == ([], [])


def test_a_folder_of_the_repository_that_takes_the_report_keeps_its_own_list_of_ignored_files(
    workflow: Workflow,
) -> None:
    (workflow.workspace / "docs").mkdir()
    (workflow.workspace / "docs" / ".gitignore").write_text("drafts\n", encoding="utf-8")
    (workflow.workspace / "oloproof.yaml").write_text("version: 2\n", encoding="utf-8")  # quickly over
    workflow.push()
    workflow.pull_request(report_dir="docs")
    assert (workflow.workspace / "docs" / ".gitignore").read_text(encoding="utf-8") == "drafts\n"
    assert (workflow.workspace / "docs" / "report.json").exists()


def test_a_job_that_is_cancelled_posts_nothing_and_leaves_no_report_of_an_earlier_one(
    workflow: Workflow,
) -> None:
    folder = workflow.workspace / "oloproof-report"
    folder.mkdir()
    (folder / "report.json").write_text("of an earlier job", encoding="utf-8")
    started = workflow.place / "started"
    started.touch()
    started.chmod(0o666)
    app = workflow.workspace / "app.py"
    wait = f"import time\nopen({str(started)!r}, 'w').write('here')\ntime.sleep(60)\n"
    app.write_text(wait + app.read_text(), encoding="utf-8")
    head = workflow.push()
    payload = workflow.payload(head, workflow.git("rev-parse", "main"))
    done = workflow.run("pull_request", payload, end_when=lambda: bool(started.read_text()))
    assert (done.code, (folder / "report.json").exists()) == (5, False)
    assert "interrupted" in done.log
    assert (workflow.server.calls(), workflow.server.statuses) == ([], [])


def test_without_a_token_there_is_a_verdict_all_the_same(workflow: Workflow) -> None:
    (workflow.workspace / "oloproof.yaml").write_text("version: 2\n", encoding="utf-8")
    workflow.push()
    done = workflow.pull_request(github_token="")
    assert (done.code, workflow.server.calls()) == (2, [])
    assert ["(there is no token)" in line for line in done.commands("warning")] == [True, True]


def test_a_status_whose_answer_was_lost_is_set_again(workflow: Workflow) -> None:
    workflow.push()
    workflow.server.fail("POST", r"/statuses/", status=502, message="Server Error", written=True)
    assert workflow.pull_request().commands("warning") == []
    assert [status["state"] for status in workflow.server.statuses] == ["success", "success"]


# ------------------------------------------------------------------------------------ hostile text


def test_nothing_that_the_code_or_its_cases_say_becomes_a_command_or_a_mention(workflow: Workflow) -> None:
    cases = workflow.workspace / "data" / "support.jsonl"
    lines = [json.loads(line) for line in cases.read_text().splitlines()]
    for case in lines:
        case["id"] += "\n::error::forged ##[error]forged @team | `x` <img> #1"
    cases.write_text("".join(json.dumps(case) + "\n" for case in lines), encoding="utf-8")
    workflow.commit("Name the cases badly")
    workflow.git("branch", "--force", "main")
    app = workflow.workspace / "app.py"
    workflow.make_worse()
    app.write_text(
        app.read_text()
        + "\nimport os\nprint('::error::forged')\nos.write(2, b'::set-output name=gate::ALLOW\\n')\n",
        encoding="utf-8",
    )
    workflow.push()
    done = workflow.pull_request()
    assert done.code == 1
    assert all(line.startswith("::error file=data/support.jsonl,line=") for line in done.commands("error"))
    assert all("##[" not in line or line.startswith("::") for line in done.log.splitlines())
    (comment,) = workflow.comments()
    assert "@team" not in re.sub(r"`[^`]*`+", "", comment)
    assert done.outputs["gate"] == "BLOCK"


def test_a_secret_of_the_job_stands_in_no_report(workflow: Workflow) -> None:
    secret = "sk-live-0123456789"
    app = workflow.workspace / "app.py"
    source = app.read_text().replace("    def generate(", f"    key = {secret!r}\n\n    def generate(", 1)
    source += "\n\nclass SupportRag(SupportRag):\n    def generate(self, input, context):\n"
    source += "        raise ValueError(self.key)\n"
    app.write_text(source, encoding="utf-8")
    workflow.push()
    payload = workflow.payload(workflow.git("rev-parse", "feature"), workflow.git("rev-parse", "main"))
    done = workflow.run("pull_request", payload, environment={"PROVIDER_API_KEY": secret})
    left = [done.summary, json.dumps(workflow.report()), *workflow.comments()]
    assert all(secret not in text for text in left)
    assert any("***" in text for text in left)
    assert f"::add-mask::{secret}" in done.log
    assert JOB_TOKEN not in "".join(left)


# ------------------------------------------------------------------------------ forks, second stage


def run_of(workflow: Workflow, head: str, **more: Any) -> dict[str, Any]:
    """The workflow_run event after a fork's run."""
    run = {
        "id": 77,
        "run_attempt": 1,
        "event": "pull_request",
        "status": "completed",
        "head_sha": head,
        "head_branch": "feature",
        "head_repository": {"full_name": workflow.repository},
        "pull_requests": [],
        **more,
    }
    return {"action": "completed", "workflow_run": run}


@pytest.fixture(scope="module")
def fork_report(running_server: ApiServer) -> Any:
    """What the run of a fork's pull request left, which could write nothing on GitHub."""
    running_server.forget()
    with new_workflow(running_server) as made:
        made.make_worse()
        running_server.fail("POST", WRITES, times=20, **FORBIDDEN)
        assert made.pull_request(fork=True).code == 1
        assert made.comments() == []
        return made.report()


@pytest.fixture
def forked(fork_report: Any, workflow: Workflow) -> tuple[Workflow, str]:
    """The default branch's checkout in the second workflow, with the report of a pull request's head."""
    head = workflow.push()
    workflow.git("checkout", "--quiet", "main")  # what is checked out is not looked at
    folder = workflow.workspace / "oloproof-report"
    folder.mkdir()
    (folder / "report.json").write_text(json.dumps({**fork_report, "head_sha": head}), encoding="utf-8")
    return workflow, head


def test_the_report_of_a_fork_is_published_as_unverified_and_never_as_a_status(
    forked: tuple[Workflow, str],
) -> None:
    workflow, head = forked
    done = workflow.run("workflow_run", run_of(workflow, head), "refs/heads/main")
    assert done.code == 0
    (comment,) = workflow.comments()
    assert "· BLOCK" in comment
    assert "are **not verified**" in comment
    assert "/actions/runs/77/attempts/1" in comment, "the link leads to the run itself"
    assert workflow.server.statuses == []
    assert done.outputs["comment-url"]


def test_what_a_run_posted_itself_is_not_replaced_by_the_second_stage(
    forked: tuple[Workflow, str], fork_report: Any
) -> None:
    """The second workflow runs after every pull request's run, also those whose token could write."""
    workflow, head = forked
    workflow.run("workflow_run", run_of(workflow, head), "refs/heads/main")
    (before,) = workflow.comments()
    own = before.replace("not verified", "posted by the run itself")
    (comment,) = workflow.server.comments(workflow.repository, workflow.number)
    path = f"/repos/{workflow.repository}/issues/comments/{comment['id']}"
    workflow.server.ask("PATCH", path, {"body": own}, JOB_TOKEN)
    done = workflow.run("workflow_run", run_of(workflow, head), "refs/heads/main")
    assert (done.code, workflow.comments()) == (0, [own])
    assert "The comment has this run's or a newer one's result already." in done.log
    workflow.run("workflow_run", run_of(workflow, head, run_attempt=2), "refs/heads/main")
    assert "not verified" in workflow.comments()[0]


@pytest.mark.parametrize("numbers", [[1], []])
def test_a_run_without_a_branch_is_matched_by_the_numbers_that_github_names(
    forked: tuple[Workflow, str], numbers: list[int]
) -> None:
    workflow, head = forked
    run = run_of(workflow, head, head_branch=None, pull_requests=[{"number": number} for number in numbers])
    done = workflow.run("workflow_run", run, "refs/heads/main")
    assert (done.code, len(workflow.comments())) == (0, len(numbers))


def test_two_pull_requests_with_one_head_are_not_guessed_at(forked: tuple[Workflow, str]) -> None:
    workflow, head = forked
    path = f"/repos/{workflow.repository}/pulls"
    other = workflow.server.ask("POST", path, {"title": "The same", "head": "feature", "base": "other"})
    workflow.server.heads[workflow.repository, other["number"]] = head
    done = workflow.run("workflow_run", run_of(workflow, head), "refs/heads/main")
    assert (done.code, "all have the head" in done.log, workflow.comments()) == (2, True, [])


def test_a_report_on_another_head_or_of_a_pull_request_that_moved_is_not_published(
    forked: tuple[Workflow, str],
) -> None:
    workflow, head = forked
    done = workflow.run("workflow_run", run_of(workflow, "a" * 40), "refs/heads/main")
    assert done.code == 2
    assert "is about" in done.log
    workflow.server.heads[workflow.repository, workflow.number] = "c" * 40
    done = workflow.run("workflow_run", run_of(workflow, head), "refs/heads/main")
    assert done.code == 0
    assert "is no longer the head of an open pull request" in done.log
    assert workflow.comments() == []


def test_what_is_no_report_is_refused(forked: tuple[Workflow, str]) -> None:
    workflow, head = forked
    path = workflow.workspace / "oloproof-report" / "report.json"
    report = workflow.report()
    (suite,) = report["suites"]
    both = {**suite, "failure": {"exit_code": 2, "message": ""}}
    damaged = {
        "not json": "is no report",
        "[" * 100_000: "is no report",
        json.dumps({**report, "version": 2}): "was written by another version of the action",
        json.dumps({**report, "run_id": "5"}): "is no report: run_id",
        json.dumps(report).replace(
            '"stage_seconds": ', '"stage_seconds": 1e999, "x": '
        ): "a number is not finite",
        json.dumps({**report, "suites": []}): "holds 0 suites",
        json.dumps({**report, "suites": [both]}): "a suite has neither a report nor a failure, or both",
        json.dumps({**report, "leg": "x" * 301}): "has a name of more than 300 characters",
        " " * 16_000_001: "at most 16000000 are read",
    }
    for text, said in damaged.items():
        path.write_text(text, encoding="utf-8")
        done = workflow.run("workflow_run", run_of(workflow, head), "refs/heads/main")
        assert (done.code, said in done.log) == (2, True), done.log
    path.unlink()
    done = workflow.run("workflow_run", run_of(workflow, head), "refs/heads/main")
    assert (done.code, "there is no report.json in it" in done.log) == (2, True)
    assert workflow.comments() == []


def test_the_reports_of_a_matrix_are_published_into_one_comment(forked: tuple[Workflow, str]) -> None:
    workflow, head = forked
    folder = workflow.workspace / "oloproof-report"
    report = workflow.report()
    (folder / "report.json").unlink()
    for leg in ("3.12", "3.13"):
        (folder / leg).mkdir()
        text = json.dumps({**report, "leg": json.dumps({"python": leg}), "run_id": 10**15})
        (folder / leg / "report.json").write_text(text, encoding="utf-8")
    assert workflow.run("workflow_run", run_of(workflow, head), "refs/heads/main").code == 0
    (comment,) = workflow.comments()
    assert [leg in comment for leg in ("BLOCK · `3.12`\n", "BLOCK · `3.13`\n")] == [True, True]
    assert str(10**15) not in comment, "which run it was is GitHub's to say"
