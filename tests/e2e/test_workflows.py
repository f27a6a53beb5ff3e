"""From an event to what a person sees on GitHub: real containers, a real runner, a GitHub that keeps state."""

from __future__ import annotations

import json

from acting import Runner
from api_server import ApiServer
from consumer import Consumer, served

FORBIDDEN = "Resource not accessible by integration"


def test_a_regression_blocks_and_its_mending_updates_the_same_comment(
    server: ApiServer, runner: Runner, consumer: Consumer
) -> None:
    broken = consumer.break_app()
    repository, number = server.make_pull_request(broken)

    first = runner.run(consumer.folder, "pull_request", consumer.pull_request(repository, number))
    assert not first.succeeded, first.log
    assert first.exit_code == 1, first.log
    assert first.outputs["gate"] == "BLOCK"
    assert int(first.outputs["new-failures"]) > 0
    (comment,) = server.comments(repository, number)
    assert "BLOCK" in comment["body"]
    assert "`invoice_date`" in comment["body"]
    assert first.outputs["comment-url"] == comment["html_url"]
    assert [status["state"] for status in server.statuses] == ["failure"]
    assert "BLOCK" in first.summary

    mended = consumer.mend_app()
    server.heads[repository, number] = mended
    event = consumer.pull_request(repository, number, "synchronize")
    second = runner.run(consumer.folder, "pull_request", event, env={"GITHUB_RUN_ID": "2"})
    assert second.succeeded, second.log
    assert second.outputs["gate"] == "ALLOW"
    (updated,) = server.comments(repository, number)
    assert updated["id"] == comment["id"]
    assert "ALLOW" in updated["body"]
    assert mended[:7] in updated["body"]
    assert [(status["state"], status["sha"]) for status in server.statuses][1:] == [("success", mended)]


def test_a_forks_token_leaves_verdict_and_summary_and_the_second_stage_comments(
    server: ApiServer, runner: Runner, consumer: Consumer
) -> None:
    broken = consumer.break_app()
    repository, number = server.make_pull_request(broken)
    server.fail("POST", "/statuses/", times=9, status=403, message=FORBIDDEN)
    server.fail("POST", "/comments$", times=9, status=403, message=FORBIDDEN)

    first = runner.run(consumer.folder, "pull_request", consumer.pull_request(repository, number, fork=True))
    assert first.exit_code == 1, first.log
    assert first.outputs["gate"] == "BLOCK"
    assert "`invoice_date`" in first.summary
    assert "fork" in first.said("warning")
    assert server.comments(repository, number) == []
    report = (first.workspace / "oloproof-report" / "report.json").read_text(encoding="utf-8")

    server.forget()
    server.heads[repository, number] = broken
    consumer.git("checkout", "-q", "main")
    consumer.use(mode="publish")
    consumer.commit("Publish")
    run = {
        "id": json.loads(report)["run_id"],
        "run_attempt": 1,
        "event": "pull_request",
        "status": "completed",
        "conclusion": "failure",
        "head_sha": broken,
        "head_branch": "feature",
        "head_repository": {"full_name": repository},
        "pull_requests": [{"number": number}],
    }
    event = {"action": "completed", "repository": {"full_name": repository}, "workflow_run": run}
    second = runner.run(consumer.folder, "workflow_run", event, files={"oloproof-report/report.json": report})
    assert second.succeeded, second.log
    (comment,) = server.comments(repository, number)
    assert "BLOCK" in comment["body"]
    assert "not verified" in comment["body"]
    assert [status for status in server.statuses if status["state"] == "success"] == []


def test_a_push_measures_the_branch_alone_and_its_code_stays_apart(
    server: ApiServer, runner: Runner, consumer: Consumer
) -> None:
    repository, _ = server.make_pull_request()
    consumer.git("checkout", "-q", "main")
    app = (consumer.folder / "app.py").read_text()
    consumer.require_palette()
    consumer.use(requirements="requirements.txt")
    consumer.write("app.py", app + PROBE)
    pushed = consumer.commit("Look around")
    event = {
        "ref": "refs/heads/main",
        "before": "0" * 40,
        "after": pushed,
        "repository": {"full_name": repository, "default_branch": "main"},
    }
    done = runner.run(consumer.folder, "push", event, env={"GITHUB_SHA": pushed})
    assert done.succeeded, done.log
    assert done.outputs["base-run-id"] == ""
    assert done.outputs["run-id"].startswith("run_")
    assert server.statuses == []
    found = json.loads((done.workspace / "probe.json").read_text())
    assert found["uid"] == 1001
    assert found["colours"] == 7
    assert [name for name, outcome in found["attempts"].items() if outcome == "worked"] == []


def test_a_merge_group_is_gated_without_a_comment(
    server: ApiServer, runner: Runner, consumer: Consumer
) -> None:
    broken = consumer.break_app()
    repository, number = server.make_pull_request(broken)
    group = {
        "head_sha": broken,
        "head_ref": f"refs/heads/gh-readonly-queue/main/pr-{number}-{consumer.git('rev-parse', 'main')}",
        "base_sha": consumer.git("rev-parse", "main"),
        "base_ref": "refs/heads/main",
    }
    event = {"action": "checks_requested", "repository": {"full_name": repository}, "merge_group": group}
    done = runner.run(consumer.folder, "merge_group", event)
    assert done.exit_code == 1, done.log
    assert done.outputs["gate"] == "BLOCK"
    assert server.comments(repository, number) == []
    assert [(status["state"], status["sha"]) for status in server.statuses] == [("failure", broken)]


def test_a_shallow_clone_whose_base_cannot_be_fetched_is_explained(
    server: ApiServer, runner: Runner, consumer: Consumer
) -> None:
    broken = consumer.break_app()
    repository, number = server.make_pull_request(broken)
    done = runner.run(consumer.folder, "pull_request", consumer.pull_request(repository, number), depth=1)
    assert done.exit_code == 2, done.log
    assert "fetch-depth: 0" in done.said("error") + done.summary
    assert [status["state"] for status in server.statuses] == ["error"]
    (comment,) = server.comments(repository, number)
    assert "fetch-depth: 0" in comment["body"]


def test_a_shallow_clone_fetches_the_base_that_it_lacks(
    server: ApiServer, runner: Runner, consumer: Consumer
) -> None:
    broken = consumer.break_app()
    repository, number = server.make_pull_request(broken)
    event = consumer.pull_request(repository, number)
    with served(consumer, repository, runner.scratch) as mirror:
        done = runner.run(consumer.folder, "pull_request", event, depth=1, mirror=mirror)
    assert done.exit_code == 1, done.log
    assert done.outputs["gate"] == "BLOCK"
    assert int(done.outputs["new-failures"]) > 0


#: Added to the app: what its code can reach in the container, noted once.
PROBE = """

def _probe():
    import glob, json, os, socket
    import palette

    def daemon():
        with socket.socket(socket.AF_UNIX) as client:
            client.connect("/var/run/docker.sock")

    def runner_files():
        for path in glob.glob("/var/run/act/workflow/*"):
            with open(path, "a") as file:
                file.write("gate=ALLOW")
        os.listdir("/var/run/act/workflow")

    attempts = {
        "the engine's environment": lambda: open("/proc/1/environ", "rb").read(),
        "the runner's files": runner_files,
        "the Docker daemon": daemon,
        "the store": lambda: [os.listdir(folder) for folder in glob.glob("/tmp/oloproof-*/store")],
        "another user": lambda: os.setuid(0),
        "a program that lends one": lambda: [os.stat(p).st_mode & 0o6000 or 1 / 0 for p in glob.glob("/usr/bin/su")],
        "the engine's code": lambda: open("/opt/oloproof/packages/oloproof/__init__.py", "a"),
    }
    found = {}
    for name, attempt in attempts.items():
        try:
            attempt()
            found[name] = "worked"
        except (OSError, ZeroDivisionError) as error:
            found[name] = type(error).__name__
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "probe.json"), "w") as file:
        json.dump({"uid": os.getuid(), "colours": palette.COLOURS, "attempts": found}, file)


_probe()
"""
