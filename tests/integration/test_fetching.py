"""Shallow clones, completed from a real remote."""

from __future__ import annotations

import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from oloproof_ci.fetching import Fetching
from oloproof_ci.git import GitAccess, Repository

TOKEN = "ghs_a_token"


def git(folder: Path, *arguments: str) -> str:
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    return subprocess.run(
        ["git", *settings, "-C", str(folder), *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository in which `change` parts from `main` twenty commits ago."""
    folder = tmp_path_factory.mktemp("origin")
    git(folder, "init", "-q")
    git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
    for number in range(3):
        git(folder, "commit", "-q", "--allow-empty", "-m", f"before {number}")
    git(folder, "branch", "change")
    for branch in ("main", "change"):
        git(folder, "checkout", "-q", branch)
        for number in range(20):
            git(folder, "commit", "-q", "--allow-empty", "-m", f"{branch} {number}")
    return folder


@pytest.fixture
def shallow(origin: Path, tmp_path: Path) -> Path:
    """What actions/checkout makes of `change` when it is told nothing."""
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{origin}", clone], check=True)
    return clone


def fetching(clone: Path, token: str = "") -> tuple[Repository, Fetching]:
    repository = Repository(clone, GitAccess({"PATH": os.environ["PATH"], "HOME": str(clone.parent)}))
    return repository, Fetching(repository, "http://127.0.0.1:9", token)


def test_a_commit_that_is_missing_is_fetched_by_its_id(origin: Path, shallow: Path) -> None:
    repository, fetch = fetching(shallow)
    base = git(origin, "rev-parse", "main")
    assert not repository.has(base)
    assert fetch.commit(base)
    assert repository.has(base)
    assert repository.is_shallow()


def test_history_is_deepened_until_the_two_branches_meet(origin: Path, shallow: Path) -> None:
    repository, fetch = fetching(shallow)
    base = git(origin, "rev-parse", "main")
    assert fetch.commit(base)
    assert fetch.history(repository.head(), base)
    assert repository.merge_base(repository.head(), base) == git(origin, "merge-base", "main", "change")


def test_a_branch_of_origin_is_fetched_under_its_name_there(origin: Path, shallow: Path) -> None:
    repository, fetch = fetching(shallow)
    assert fetch.branch("main")
    assert repository.commit("origin/main") == git(origin, "rev-parse", "main")


def test_what_git_said_is_kept_when_nothing_can_be_fetched(shallow: Path) -> None:
    git(shallow, "remote", "set-url", "origin", "file:///nowhere")
    _, fetch = fetching(shallow)
    assert not fetch.commit("a" * 40)
    assert fetch.failure


def test_the_token_goes_as_one_header_in_the_place_of_what_the_checkout_left(shallow: Path) -> None:
    with _listening() as (url, seen):
        git(shallow, "remote", "set-url", "origin", f"{url}/acme/rag.git")
        git(shallow, "config", f"http.{url}/.extraheader", "AUTHORIZATION: basic bGVmdA==")
        repository = Repository(shallow, GitAccess({"PATH": os.environ["PATH"], "HOME": str(shallow.parent)}))
        assert not Fetching(repository, url, TOKEN).commit("a" * 40)
    # base64 of "x-access-token:ghs_a_token"
    assert seen == [["basic eC1hY2Nlc3MtdG9rZW46Z2hzX2FfdG9rZW4="]]


class _listening:  # noqa: N801 - reads as what it does
    """A server that refuses everything and notes how each request was authorized."""

    def __enter__(self) -> tuple[str, list[list[str]]]:
        seen: list[list[str]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                seen.append(self.headers.get_all("Authorization") or [])
                self.send_error(403)

            def log_message(self, *given: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_address[1]}", seen

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
