"""The action's jobs, one after the other as on a runner that keeps nothing, with the Actions cache between them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cache_service import CacheServer
from workflow import copy_packages

from oloproof.settings.project import load_project
from oloproof_ci.action.carrying import CarriedResults

RUNNER_UID = 1001
CONFIG = {
    "version": 1,
    "dataset": "cases.jsonl",
    "system": {"rag": {"object": "app:Rag"}},
    "evaluators": [
        {"type": "contains", "criterion": "correct", "field": "answer", "expected_field": "answer"}
    ],
}
POLICY = "{version: 1, block_on: [FAIL], rules: [{id: new, metric: correct, kind: new_failures, max: 0}]}"
#: Starts the action from a copy that every user may read, and workers in a Python that every user may run.
BOOT = """
import sys
sys.path.insert(0, sys.argv[1])
sys.executable = sys.argv[2]
from oloproof_ci.cli import main
sys.exit(main(["action"]))
"""
#: Every call is counted in a file that no commit knows.
APP = """
import os
from oloproof import Passage, Retrieval, rag_system

def note(what):
    with open(os.environ["CALLS"], "a") as file:
        file.write(what + "\\n")

@rag_system(name="counted", version="1", depth=2, top_k=2, token_budget=9, index_version="kb, 2026")
class Rag:
    def __init__(self):
        note("constructor")

    def retrieve(self, input, depth):
        note("retrieve")
        return Retrieval(query=input, depth=depth, candidates=(Passage(doc_id="d1", score=1.0, text="blue"),))

    def generate(self, input, context):
        note("generate")
        return {"answer": context[0].text}

    def count_tokens(self, passage):
        note("count_tokens")
        return 1
"""


@dataclass
class Finished:
    """A job's end: what it printed, its summary, and the calls that the app counted."""

    code: int
    log: str
    summary: str
    calls: Counter[str]

    def row(self) -> list[str]:
        """The cells of the cache's table: restored, calls avoided, calls made, saved."""
        section = self.summary.partition("### Stage results in the Actions cache")[2]
        return [cell.strip() for cell in section.strip().splitlines()[2].strip("|").split("|")][1:]


@dataclass
class Repository:
    """A user's repository, and a fresh runner for each job on it."""

    folder: Path
    environment: dict[str, str]
    runs: int = 0

    def git(self, *arguments: str) -> str:
        settings = ("-c", "user.name=Dev", "-c", "user.email=dev@example.org")
        command = ["git", *settings, "-C", self.folder / "origin", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def commit(self, app: str) -> str:
        (self.folder / "origin" / "app.py").write_text(app)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "A change")
        return self.git("rev-parse", "HEAD")

    def push(self) -> Finished:
        sha = self.git("rev-parse", "main")
        return self._job("push", sha, "refs/heads/main", {"after": sha, "before": "0" * 40})

    def pull_request(self) -> Finished:
        head, base = self.git("rev-parse", "change"), self.git("rev-parse", "main")
        sides = {
            name: {"ref": ref, "sha": sha, "repo": {"full_name": "acme/rag"}}
            for name, ref, sha in (("head", "change", head), ("base", "main", base))
        }
        payload = {"action": "opened", "pull_request": {"number": 7, "state": "open", **sides}}
        return self._job("pull_request", head, "refs/pull/7/merge", payload)

    def _job(self, event: str, sha: str, ref: str, payload: dict[str, Any]) -> Finished:
        self.runs += 1
        place = self.folder / f"job{self.runs}"
        workspace = place / "workspace"
        place.mkdir()
        subprocess.run(["git", "clone", "-q", self.folder / "origin", workspace], check=True)
        subprocess.run(["git", "-C", workspace, "checkout", "-q", sha], check=True)
        (place / "event.json").write_text(json.dumps(payload | {"repository": {"full_name": "acme/rag"}}))
        calls = place / "calls"
        calls.touch()
        calls.chmod(0o666)
        if os.geteuid() == 0:
            for path in [workspace, *workspace.rglob("*")]:
                os.chown(path, RUNNER_UID, RUNNER_UID, follow_symlinks=False)
        done = subprocess.run(
            [sys.executable, "-c", BOOT, self.folder / "packages", _everyones_python()],
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")},
                **self.environment,
                "CALLS": str(calls),
                "GITHUB_REPOSITORY": "acme/rag",
                "GITHUB_EVENT_NAME": event,
                "GITHUB_EVENT_PATH": str(place / "event.json"),
                "GITHUB_SHA": sha,
                "GITHUB_REF": ref,
                "GITHUB_RUN_ID": str(self.runs),
                "GITHUB_API_URL": "http://127.0.0.1:9",
                "GITHUB_SERVER_URL": "https://github.com",
                "GITHUB_WORKSPACE": str(workspace),
                "GITHUB_STEP_SUMMARY": str(place / "summary.md"),
                "INPUT_STATUS": "off",
                "INPUT_COMMENT": "off",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        summary = place / "summary.md"
        text = summary.read_text() if summary.exists() else ""
        return Finished(done.returncode, done.stdout, text, Counter(calls.read_text().split()))


def _everyones_python() -> str:
    """A Python that the workspace's owner can start: one in root's home is not."""
    if os.geteuid() != 0:
        return sys.executable
    for found in (os.path.realpath(sys.executable), "/usr/local/bin/python3", "/usr/bin/python3"):
        with suppress(OSError):
            probe = [found, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
            if subprocess.run(probe, user=RUNNER_UID, cwd="/", check=False).returncode == 0:
                return found
    pytest.fail("no Python of 3.11 or newer that other users may run: install python3")


@pytest.fixture
def repository(service: CacheServer) -> Iterator[Repository]:
    """On main the counting app and two cases; `change` is checked out."""
    folder = Path(tempfile.mkdtemp(prefix="carried-"))
    folder.chmod(0o755)  # the code runs as the workspace's owner
    copy_packages(folder / "packages")
    made = Repository(folder, service.environment())
    (folder / "origin").mkdir()
    made.git("init", "-q", "-b", "main")
    for name, text in (("oloproof.yaml", json.dumps(CONFIG)), ("compare.yaml", POLICY)):
        (folder / "origin" / name).write_text(text)
    cases = [{"id": each, "input": {"q": each}, "expected": {"answer": "blue"}} for each in ("one", "two")]
    (folder / "origin" / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    made.commit(APP)
    made.git("checkout", "-q", "-b", "change")
    yield made
    shutil.rmtree(folder)


def _written(path: Path) -> Path:
    path.write_text(json.dumps(CONFIG))
    return path


def test_a_pull_request_pays_for_nothing_that_main_has_computed(
    repository: Repository, service: CacheServer
) -> None:
    seeded = repository.push()
    assert seeded.code == 0, seeded.log
    assert (seeded.calls["retrieve"], seeded.calls["generate"]) == (2, 2)
    assert re.match(r"\d+ results, 0\.0 MB", seeded.row()[3])

    repository.commit(APP.replace("context[0].text}", "context[0].text + '!'}"))
    first = repository.pull_request()
    assert first.code == 0, first.log
    assert (first.calls["retrieve"], first.calls["generate"]) == (0, 2)
    assert first.row()[1:3] == ["retrieve 4, generate 2", "retrieve 0, generate 2"]
    assert re.search(r"against `[0-9a-f]{7}` \(main\), whose run is from the cache, \d+ s old", first.summary)

    second = repository.pull_request()  # nothing has changed since
    assert (second.code, second.calls) == (0, Counter())
    assert second.row()[3] == "nothing: nothing new was learned"

    repository.commit(APP.replace("kb, 2026", "KB, 2026"))
    other_index = repository.pull_request()
    assert (other_index.calls["retrieve"], other_index.calls["generate"]) == (2, 0)
    assert other_index.row()[0].endswith("of another index version")


def test_the_bases_run_is_not_taken_for_another_suite(repository: Repository) -> None:
    repository.push()
    cases = repository.folder / "origin" / "cases.jsonl"
    cases.write_text(
        cases.read_text() + '{"id": "three", "input": {"q": "3"}, "expected": {"answer": "blue"}}\n'
    )
    repository.commit(APP)
    done = repository.pull_request()
    assert (done.code, done.calls["generate"]) == (0, 1), done.log
    assert "from the cache" not in done.summary
    assert "3 paired" in done.summary


def test_new_failures_against_a_run_from_the_cache_are_diagnosed(repository: Repository) -> None:
    repository.push()
    repository.commit(APP.replace("context[0].text}", "'red'}"))
    done = repository.pull_request()
    assert done.code == 1, done.log
    assert "whose run is from the cache" in done.summary
    assert "Expected" in done.summary
    assert done.calls["generate"] == 2 + 2 + 2  # the head's answers, and a repeat of each on both sides


def test_results_are_saved_when_the_gate_blocks(repository: Repository, service: CacheServer) -> None:
    repository.commit(APP.replace("context[0].text}", "'red'}"))
    blocked = repository.pull_request()
    assert blocked.code == 1, blocked.log
    assert [entry.finished for entry in service.entries] == [True]
    again = repository.pull_request()
    assert (again.code, again.calls["retrieve"]) == (1, 0)


def test_results_are_saved_when_the_evaluation_fails_half_way(
    repository: Repository, service: CacheServer
) -> None:
    config = repository.folder / "origin" / "oloproof.yaml"
    config.write_text(json.dumps(CONFIG | {"prepare": "exit 9"}))
    repository.commit(APP)
    failed = repository.pull_request()
    assert (failed.code, failed.calls["retrieve"]) == (5, 2), (
        failed.log
    )  # the base's own, before the head failed
    assert "'exit 9' ended with exit status 9" in failed.log
    config.write_text(json.dumps(CONFIG))
    repository.commit(APP)
    mended = repository.pull_request()
    assert (mended.code, mended.calls) == (0, Counter())


def test_a_run_with_errors_is_no_baseline(repository: Repository, service: CacheServer) -> None:
    repository.commit(APP.replace("return {", "assert input['q'] != 'two'\n        return {"))
    repository.git("branch", "-f", "main", "change")
    done = repository.push()
    assert done.calls["generate"] >= 2, done.log
    assert ["-baseline-" in entry.key for entry in service.entries] == [False]


def test_two_suites_in_one_folder_save_what_each_has_learned(
    repository: Repository, service: CacheServer
) -> None:
    folder = repository.folder / "origin"
    (folder / "other.yaml").write_text(json.dumps(CONFIG | {"project": "other"}))
    repository.environment["INPUT_CONFIG"] = "oloproof.yaml\nother.yaml"
    repository.commit(APP)
    repository.git("branch", "-f", "main", "change")
    done = repository.push()
    assert done.code == 0, done.log
    suites = {
        entry.key.split("-")[2].partition(".")[0] for entry in service.entries if "-stages-" in entry.key
    }
    assert suites == {"counted", "other"}


def test_nothing_about_the_cache_fails_a_job(repository: Repository, service: CacheServer) -> None:
    service.fail("GetCacheEntryDownloadURL", 403, {"msg": "cache read denied"}, times=9)
    service.fail("CreateCacheEntry", 200, {"ok": False, "message": "cache write denied: no"}, times=9)
    done = repository.push()
    assert done.code == 0, done.log
    warnings = [line for line in done.log.splitlines() if line.startswith("::warning")]
    assert len(warnings) == 2, done.log
    assert "may not read the cache" in warnings[0]
    assert "may not write to the cache" in warnings[1]


def test_the_time_for_the_cache_is_that_of_all_suites(tmp_path: Path) -> None:
    settings = load_project(_written(tmp_path / "oloproof.yaml"))
    nobody = {"ACTIONS_RESULTS_URL": "http://127.0.0.1:9", "ACTIONS_RUNTIME_TOKEN": "none"}
    carried = CarriedResults(nobody, tmp_path, enabled=True)
    carried.seconds["restore"] = 0.0
    for suite in ("one", "two"):
        carried.restore(settings, suite, "kb", tmp_path)
    assert carried.warnings == ["stage results could not be restored: the time for the cache is used up"] * 2


def test_the_input_turns_the_cache_off(repository: Repository, service: CacheServer) -> None:
    repository.environment["INPUT_CACHE"] = "off"
    done = repository.push()
    assert (done.code, service.calls) == (0, [])
    assert "Actions cache" not in done.summary
