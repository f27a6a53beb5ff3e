"""The Actions cache between real jobs: what main has computed, a pull request does not compute again."""

from __future__ import annotations

import re
import uuid

import pytest
from acting import ActRun, Runner
from api_server import ApiServer
from consumer import Consumer

#: Notes, beside the app, what is called of it in the head's checkout.
COUNTING = """

def _counted(name):
    from pathlib import Path

    method = getattr(SupportRag, name)

    def counting(self, *arguments, **named):
        with Path(__file__).with_name("calls.txt").open("a") as file:
            file.write(name + "\\n")
        return method(self, *arguments, **named)

    return counting


for _name in ("__init__", "retrieve", "generate", "count_tokens"):
    setattr(SupportRag, _name, _counted(_name))
"""


@pytest.fixture
def seeded(server: ApiServer, runner: Runner, consumer: Consumer) -> Consumer:
    """The consumer after a push to main, as a suite of its own in the cache; `change` is checked out."""
    consumer.git("checkout", "-q", "main")
    config = (consumer.folder / "oloproof.yaml").read_text()
    consumer.write("oloproof.yaml", f"project: cached-{uuid.uuid4().hex}\n{config}")
    pushed = consumer.commit("A suite of its own")
    consumer.git("checkout", "-q", "-B", "change")
    repository = {"full_name": server.make_pull_request()[0], "default_branch": "main"}
    event = {"ref": "refs/heads/main", "before": "0" * 40, "after": pushed, "repository": repository}
    done = runner.run(consumer.folder, "push", event, env={"GITHUB_SHA": pushed})
    assert done.succeeded, done.log
    assert re.search(r"\| nothing +\| .*retrieve 13, generate 13 \| \d+ results", done.summary), done.summary
    return consumer


def pull(server: ApiServer, runner: Runner, consumer: Consumer) -> ActRun:
    head = consumer.git("rev-parse", "change")
    repository, number = server.make_pull_request(head)
    done = runner.run(consumer.folder, "pull_request", consumer.pull_request(repository, number))
    assert done.exit_code in (0, 1), done.log
    return done


def calls(done: ActRun) -> set[str]:
    path = done.workspace / "calls.txt"
    return set(path.read_text().split()) if path.exists() else set()


def edit(consumer: Consumer, old: str, new: str, file: str = "app.py") -> None:
    text = (consumer.folder / file).read_text()
    assert old in text
    consumer.write(file, text.replace(old, new))
    consumer.commit("A change")


def test_a_pull_request_computes_only_what_it_changes(
    server: ApiServer, runner: Runner, seeded: Consumer
) -> None:
    edit(
        seeded,
        "def generate(self, input, context):",
        "def generate(self, input, context):\n        assert context is not None",
    )
    generates = pull(server, runner, seeded)
    assert "here: retrieve 13 hit/0 miss, generate 0 hit/13 miss" in generates.summary
    assert "whose run is from the cache" in generates.summary

    again = pull(server, runner, seeded)
    assert "here: executions 13 hit/0 miss" in again.summary
    assert "nothing new was learned" in again.summary

    edit(seeded, "kb-2026-09-16", "kb-2026-09-17", "oloproof.yaml")
    other_index = pull(server, runner, seeded)
    assert "here: retrieve 0 hit/13 miss, generate 13 hit/0 miss" in other_index.summary


def test_a_second_push_with_nothing_changed_calls_nothing(
    server: ApiServer, runner: Runner, seeded: Consumer
) -> None:
    app = (seeded.folder / "app.py").read_text()
    seeded.write("app.py", app + COUNTING)
    seeded.commit("Count the calls")
    first = pull(server, runner, seeded)
    assert calls(first) == {"__init__", "retrieve", "generate", "count_tokens"}
    seeded.write("README.md", "Nothing that counts.\n")
    seeded.commit("A README")
    second = pull(server, runner, seeded)
    assert calls(second) == set()
    assert "here: executions 13 hit/0 miss" in second.summary
