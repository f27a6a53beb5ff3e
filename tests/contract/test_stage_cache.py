"""Stage results in the Actions cache: against servers of others, together with the official client, and when things go
wrong, which is a warning and never more."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from act_cache import ActCache
from blobs import node_program
from cache_service import CacheServer

from oloproof.records import FAILED, Candidate, Execution, Judgment, State
from oloproof.store.results import Key, StoredGeneration, StoredRetrieval
from oloproof.workplace import Store
from oloproof_ci.actions_cache import transfers, v2
from oloproof_ci.actions_cache.access import access
from oloproof_ci.actions_cache.stages import MANIFEST, PATH, RESULTS, VERSION, StageCache
from oloproof_ci.actions_cache.transfers import Budget, CacheProblem, Transfers

HERE = Path(__file__).parent
SUITE, INDEX = "support", "kb-2026-09-16"


class Job:
    """The cache as one job has it, its warnings, and how long it would have waited."""

    def __init__(self, environment: Mapping[str, str], folder: Path, seconds: float = 60.0) -> None:
        self.warnings: list[str] = []
        self.waited: list[float] = []
        self.folder = folder
        scratch = folder / "scratch"
        scratch.mkdir(exist_ok=True)
        moving = Transfers(Budget(seconds), self.waited.append)
        self.cache = StageCache(
            access(environment, moving), moving, scratch, self.warnings.append, time.time, 50_000_000
        )

    def left_over(self) -> list[Path]:
        return list((self.folder / "scratch").iterdir())


MakeJob = Callable[..., Job]


@pytest.fixture
def job(tmp_path: Path, service: CacheServer) -> MakeJob:
    """A job with the running service; the arguments add to its environment."""

    def make(seconds: float = 60.0, **more: str) -> Job:
        return Job(service.environment() | more, tmp_path, seconds)

    return make


def filled(folder: Path, answers: int = 3, size: int = 10) -> Path:
    """A store with so many answers, each of so many characters; gives its file."""
    store = Store.open(folder)
    for number in range(answers):
        (text,) = store.results.put_texts([f"passage {number}"])
        candidates = (Candidate("d1", None, 1.0, text),)
        key = [Key(bytes([number, part]) * 16, b"") for part in range(3)]
        store.results.put_retrieval(StoredRetrieval(key[0], "{}", candidates, 0.1, "log"), time.time(), INDEX)
        output = json.dumps({"answer": os.urandom(size // 2).hex()})
        store.results.put_generation(StoredGeneration(key[1], output, 0.1, "log"), time.time())
        execution = Execution(key[2].id, candidates, 1, 1, {}, retrieval=key[0].id)
        store.results.put_execution(execution, key[2], key[1].id)
        store.results.put_judgments(execution.id, [(bytes([number, 9]) * 16, FAILED)])
    store.database.close()
    return store.database.path


def outputs(store: Path) -> list[str]:
    with closing(sqlite3.connect(store)) as connection:
        return sorted(output for (output,) in connection.execute("SELECT output FROM generation"))


# ------------------------------------------------------------------------------------ round trips


def test_what_one_job_saved_the_next_restores(job: MakeJob, tmp_path: Path, service: CacheServer) -> None:
    store = filled(tmp_path / "one")
    saved = job().cache.save(SUITE, INDEX, store)
    assert (saved.results, saved.reason) == (12, "")
    later = job()
    restored = later.cache.restore(SUITE, INDEX, tmp_path / "two" / "store")
    assert (restored.key, restored.same_index, restored.results) == (saved.key, True, 12)
    assert restored.bytes == saved.bytes
    assert outputs(tmp_path / "two" / "store") == outputs(store)
    assert (later.warnings, later.left_over()) == ([], [])
    assert service.tokens == {"Bearer runtime-token"}


def test_another_index_version_takes_the_newest_of_the_suite(job: MakeJob, tmp_path: Path) -> None:
    job().cache.save(SUITE, "kb", filled(tmp_path / "one"))
    restored = job().cache.restore(SUITE, "KB", tmp_path / "two" / "store")
    assert (restored.same_index, restored.results) == (False, 12)


def test_its_own_index_version_comes_before_a_newer_one(job: MakeJob, tmp_path: Path) -> None:
    mine = job().cache.save(SUITE, INDEX, filled(tmp_path / "one"))
    job().cache.save(SUITE, "kb-newer", filled(tmp_path / "two"))
    assert job().cache.restore(SUITE, INDEX, tmp_path / "three" / "store").key == mine.key


def test_another_suite_finds_nothing(job: MakeJob, tmp_path: Path) -> None:
    job().cache.save(SUITE, INDEX, filled(tmp_path / "one"))
    missed = job()
    assert missed.cache.restore(SUITE.upper(), INDEX, tmp_path / "two" / "store").key is None
    assert not (tmp_path / "two").exists()
    assert missed.warnings == []


def test_nothing_is_saved_when_nothing_was_learned(
    job: MakeJob, tmp_path: Path, service: CacheServer
) -> None:
    job().cache.save(SUITE, INDEX, filled(tmp_path / "one"))
    later = job()
    later.cache.restore(SUITE, INDEX, tmp_path / "two" / "store")
    service.calls.clear()
    assert later.cache.save(SUITE, INDEX, tmp_path / "two" / "store").reason == "nothing new was learned"
    assert service.calls == []


def test_a_large_archive_goes_in_blocks(
    job: MakeJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(v2, "ONE_REQUEST", 1 << 20)
    monkeypatch.setattr(v2, "BLOCK", 1 << 20)
    store = filled(tmp_path / "one", answers=30, size=200_000)
    saved = job().cache.save(SUITE, INDEX, store)
    assert saved.bytes > 2 << 20
    restored = job().cache.restore(SUITE, INDEX, tmp_path / "two" / "store")
    assert restored.bytes == saved.bytes
    assert outputs(tmp_path / "two" / "store") == outputs(store)


def test_a_baseline_is_found_by_its_commit_and_inputs_alone(job: MakeJob, tmp_path: Path) -> None:
    store = filled(tmp_path / "one")
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("INSERT INTO run VALUES ('run_01M8MTF5RP6S0YHHBYQ15FTSV5', NULL, '{}')")
        connection.commit()
    run = "run_01M8MTF5RP6S0YHHBYQ15FTSV5"
    assert job().cache.save_baseline(SUITE, "a" * 40, "inputs", store, run).reason == ""
    for commit, inputs in (("b" * 40, "inputs"), ("a" * 40, "others")):
        assert job().cache.restore_baseline(SUITE, commit, inputs, tmp_path / "two" / "store") is None
    assert job().cache.restore_baseline(SUITE, "a" * 40, "inputs", tmp_path / "two" / "store") == run
    with closing(sqlite3.connect(tmp_path / "two" / "store")) as connection:
        assert connection.execute("SELECT id FROM run").fetchall() == [(run,)]


def official(what: str, workspace: Path, key: str, service: CacheServer) -> str:
    """What the official client prints."""
    workspace.mkdir(exist_ok=True)
    done = subprocess.run(
        [node_program(), HERE / "official_client.mjs", what, PATH, key],
        cwd=workspace,
        env={
            **os.environ,
            **service.environment(),
            "ACTIONS_CACHE_SERVICE_V2": "true",
            "GITHUB_WORKSPACE": str(workspace),
            "RUNNER_TEMP": str(workspace),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_official_client_restores_what_we_saved(
    job: MakeJob, tmp_path: Path, service: CacheServer
) -> None:
    store = filled(tmp_path / "one")
    saved = job().cache.save(SUITE, INDEX, store)
    assert saved.key is not None
    assert f"matched {saved.key}" in official("restore", tmp_path / "workspace", saved.key, service)
    folder = tmp_path / "workspace" / PATH
    assert {path.name for path in folder.iterdir()} == {MANIFEST, RESULTS}
    assert outputs(folder / RESULTS) == outputs(store)


def test_we_restore_what_the_official_client_saved(
    job: MakeJob, tmp_path: Path, service: CacheServer
) -> None:
    store = filled(tmp_path / "one")
    saved = job().cache.save(SUITE, INDEX, store)
    assert saved.key is not None
    official("restore", tmp_path / "workspace", saved.key, service)
    service.entries.clear()
    assert "entry 1" in official("save", tmp_path / "workspace", saved.key, service)
    assert [entry.version for entry in service.entries] == [VERSION]
    restored = job()
    assert restored.cache.restore(SUITE, INDEX, tmp_path / "two" / "store").key == saved.key
    assert outputs(tmp_path / "two" / "store") == outputs(store)
    assert restored.warnings == []


def test_the_older_service_does_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "act"
    folder.mkdir()
    server = ActCache(folder)
    try:
        environment = {"ACT": "true", "ACTIONS_CACHE_URL": server.url}  # and no token
        store = filled(tmp_path / "one", answers=5, size=100_000)
        saving = Job(environment, tmp_path)
        saved = saving.cache.save(SUITE, INDEX, store)
        assert (saved.reason, saving.warnings) == ("", [])
        restoring = Job(environment, tmp_path)
        restored = restoring.cache.restore(SUITE, INDEX, tmp_path / "two" / "store")
        assert (restored.key, restored.same_index, restoring.warnings) == (saved.key, True, [])
        assert outputs(tmp_path / "two" / "store") == outputs(store)
        assert Job(environment, tmp_path).cache.restore("other", INDEX, tmp_path / "three").key is None
    finally:
        server.stop()


# ----------------------------------------------------------------------------------------- faults


def test_an_upload_ends_with_the_time_for_the_cache(tmp_path: Path) -> None:
    (tmp_path / "archive").write_bytes(b"four")
    moments = iter([0.0, 1.0, 11.0])
    part = Transfers(Budget(10.0, lambda: next(moments))).part(tmp_path / "archive", 0, 4)
    with closing(part):
        assert part.read(1) == b"f"
        with pytest.raises(CacheProblem, match="time for the cache is used up"):
            part.read(1)


def test_an_entry_that_exists_is_no_fault(job: MakeJob, tmp_path: Path) -> None:
    store = filled(tmp_path / "one")
    job().cache.save(SUITE, INDEX, store)
    second = job()
    assert second.cache.save(SUITE, INDEX, store).reason == "another job has saved the same"
    assert second.warnings == []


GET, CREATE, FINISH = "GetCacheEntryDownloadURL", "CreateCacheEntry", "FinalizeCacheEntryUpload"
DENIED = {"ok": False, "message": "cache write denied: this ref is read-only"}


@pytest.mark.parametrize(
    ("method", "status", "body", "said", "tries"),
    [
        (GET, 403, {"msg": "cache read denied: no scope"}, "this job may not read the cache", 1),
        (GET, 429, {}, "asked too often (429)", 1),
        (GET, 401, {"msg": "bad token"}, "answered 401 (bad token)", 1),
        (GET, 500, {}, "answered 500, 5 times running", 5),
        (GET, 503, b"<html>", "answered 503, 5 times running", 5),
        (GET, 200, b"<html>", "an answer that cannot be read, 5 times running", 5),
        (GET, 200, b"[]", "an answer that cannot be read, 5 times running", 5),
        (GET, 200, {"ok": True}, "has no matched_key", 1),
        (CREATE, 200, DENIED, "this job may not write to the cache", 1),
        (CREATE, 403, {"msg": "no"}, "answered 403 (no)", 1),
        (CREATE, 429, {}, "asked too often (429)", 1),
        (CREATE, 502, {}, "answered 502, 5 times running", 5),
        (FINISH, 200, {"ok": False, "message": "too large"}, "too large", 1),
    ],
)
def test_a_fault_of_the_service_is_one_warning(
    job: MakeJob,
    tmp_path: Path,
    service: CacheServer,
    method: str,
    status: int,
    body: object,
    said: str,
    tries: int,
) -> None:
    store = filled(tmp_path / "one")
    service.fail(method, status, body, times=9)
    here = job()
    if method == GET:
        assert here.cache.restore(SUITE, INDEX, tmp_path / "two" / "store").key is None
        assert not (tmp_path / "two").exists()
    else:
        assert here.cache.save(SUITE, INDEX, store).key is None
    (warning,) = here.warnings
    assert said in warning
    assert warning.startswith("stage results could not be ")
    assert service.calls.count(method) == tries
    assert here.left_over() == []


def test_a_passing_fault_is_waited_out(job: MakeJob, tmp_path: Path, service: CacheServer) -> None:
    service.fail(CREATE, 500, times=2)
    here = job()
    assert here.cache.save(SUITE, INDEX, filled(tmp_path / "one")).reason == ""
    assert [2.4 <= here.waited[0] <= 3.6, 3.6 <= here.waited[1] <= 5.4] == [True, True]
    assert here.warnings == []


def test_nobody_listening_is_told_at_once(tmp_path: Path) -> None:
    here = Job({"ACTIONS_RESULTS_URL": "http://127.0.0.1:9/", "ACTIONS_RUNTIME_TOKEN": "x"}, tmp_path)
    assert here.cache.restore(SUITE, INDEX, tmp_path / "store").key is None
    assert here.warnings == ["stage results could not be restored: the cache service refuses connections"]
    assert here.waited == []


def test_the_time_for_the_cache_ends(job: MakeJob, tmp_path: Path, service: CacheServer) -> None:
    service.fail(GET, 500, times=9)
    here = job(seconds=2.0)
    here.cache.restore(SUITE, INDEX, tmp_path / "store")
    assert here.waited == []  # a pause of three seconds would end too late
    assert len(here.warnings) == 1


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("cut always", "the download broke off"),
        ("expired", "answered with 403: its address has expired"),
        ("garbage", "archive was refused: it is damaged"),
    ],
)
def test_a_download_that_fails_is_a_miss(
    job: MakeJob, tmp_path: Path, service: CacheServer, how: str, said: str
) -> None:
    job().cache.save(SUITE, INDEX, filled(tmp_path / "one", answers=9, size=9000))
    mine = filled(tmp_path / "two")
    before = mine.read_bytes()
    service.downloads = how
    here = job()
    assert here.cache.restore(SUITE, INDEX, mine).key is None
    (warning,) = here.warnings
    assert said in warning
    assert mine.read_bytes() == before
    assert here.left_over() == []


def test_a_download_that_broke_off_goes_on_where_it_ended(
    job: MakeJob, tmp_path: Path, service: CacheServer
) -> None:
    store = filled(tmp_path / "one", answers=9, size=9000)
    job().cache.save(SUITE, INDEX, store)
    service.downloads = "cut"
    here = job()
    assert here.cache.restore(SUITE, INDEX, tmp_path / "two" / "store").results == 36
    assert (service.calls.count("download"), here.warnings) == (2, [])
    assert outputs(tmp_path / "two" / "store") == outputs(store)


def test_an_entry_larger_than_allowed_is_not_loaded(
    job: MakeJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job().cache.save(SUITE, INDEX, filled(tmp_path / "one", answers=5, size=50_000))
    monkeypatch.setattr(transfers, "CHUNK", 4096)
    here = job()
    here.cache._max_bytes = 5000
    assert here.cache.restore(SUITE, INDEX, tmp_path / "store").key is None
    assert "the entry is larger than 20000 bytes" in here.warnings[0]


@pytest.mark.parametrize("harm", ["format", "digest", "schema", "text", "counts", "runs", "depth", "size"])
def test_an_entry_that_is_not_what_it_says_is_refused(
    job: MakeJob, tmp_path: Path, service: CacheServer, harm: str
) -> None:
    saved = job().cache.save(SUITE, INDEX, filled(tmp_path / "one"))
    assert saved.key is not None
    official("restore", tmp_path / "workspace", saved.key, service)
    manifest = tmp_path / "workspace" / PATH / MANIFEST
    record = json.loads(manifest.read_text())
    changes: dict[str, dict[str, Any]] = {
        "format": {"format": 2},
        "digest": {"sha256": "0" * 64},
        "schema": {"schema": 1},
        "counts": {"counts": {"retrieval": "many"}},
        "runs": {"runs": ["run_\ud800"]},
    }
    texts = {"text": '{"format": 1', "depth": "[" * 9_000, "size": " " * 1_000_000 + "{}"}
    manifest.write_text(texts.get(harm) or json.dumps(record | changes[harm]))
    service.entries.clear()
    official("save", tmp_path / "workspace", saved.key, service)
    here = job()
    assert here.cache.restore(SUITE, INDEX, tmp_path / "two" / "store").key is None
    assert here.warnings[0].startswith("stage results could not be restored: the entry was refused: ")
    assert not (tmp_path / "two").exists()


FULL = """
import resource, signal, sys
from pathlib import Path
from oloproof_ci.actions_cache.access import Access
from oloproof_ci.actions_cache.stages import StageCache

class Nowhere:
    def save(self, *_): raise AssertionError("nothing must be sent")

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
cache = StageCache(Access(Nowhere()), None, Path(sys.argv[2]), print, lambda: 0.0, 10**9)
print(cache.save("suite", "kb", Path(sys.argv[1])).reason)
"""


def test_a_full_disk_is_a_warning(tmp_path: Path) -> None:
    store = filled(tmp_path / "one", answers=5, size=100_000)
    (tmp_path / "scratch").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", FULL, store, tmp_path / "scratch"], capture_output=True, text=True, check=False
    )
    warning, reason = done.stdout.splitlines()
    assert warning.startswith("stage results could not be saved: ")
    assert (reason, list((tmp_path / "scratch").iterdir())) == ("it failed", [])


# ----------------------------------------------------------------------------- which service, and mode

BOTH = {"ACTIONS_RESULTS_URL": "https://results.example/x/", "ACTIONS_CACHE_URL": "https://cache.example/"}


@pytest.mark.parametrize(
    ("environment", "service"),
    [
        ({}, None),
        (BOTH, "ServiceV2"),
        (BOTH | {"GITHUB_SERVER_URL": "https://github.com"}, "ServiceV2"),
        (BOTH | {"GITHUB_SERVER_URL": "https://acme.ghe.com"}, "ServiceV2"),
        (BOTH | {"GITHUB_SERVER_URL": "https://git.acme.example"}, "ServiceV1"),
        (
            BOTH | {"GITHUB_SERVER_URL": "https://git.acme.example", "ACTIONS_CACHE_SERVICE_V2": "1"},
            "ServiceV1",
        ),
        (BOTH | {"ACT": "true"}, "ServiceV1"),
        (BOTH | {"ACT": "true", "ACTIONS_CACHE_SERVICE_V2": "1"}, "ServiceV2"),
        ({"ACTIONS_CACHE_URL": "https://cache.example/"}, "ServiceV1"),
        ({"ACTIONS_RESULTS_URL": "x", "GITHUB_SERVER_URL": "https://git.acme.example"}, None),
    ],
)
def test_the_service_is_the_one_that_the_official_client_would_take(
    environment: dict[str, str], service: str | None
) -> None:
    found = access(environment, Transfers(Budget(1.0)))
    assert (None if found.service is None else type(found.service).__name__) == service
    assert bool(found.reason) == (service is None)


@pytest.mark.parametrize(
    ("mode", "reads", "writes"),
    [
        ("", True, True),
        ("later-mode", True, True),
        ("read", True, False),
        ("write", True, True),
        ("Write-Only ", False, True),
        ("none", False, False),
    ],
)
def test_the_mode_says_what_a_job_may(
    job: MakeJob, tmp_path: Path, service: CacheServer, mode: str, reads: bool, writes: bool
) -> None:
    job().cache.save(SUITE, INDEX, filled(tmp_path / "one"))
    service.calls.clear()
    here = job(ACTIONS_CACHE_MODE=mode)
    assert (here.cache.restore(SUITE, INDEX, tmp_path / "two" / "store").key is not None) == reads
    here.cache.save(SUITE, INDEX, filled(tmp_path / "three", answers=4))
    assert (GET in service.calls, CREATE in service.calls) == (reads, writes)
    assert here.warnings == []


def test_a_job_without_a_cache_says_so_and_goes_on(tmp_path: Path) -> None:
    here = Job({}, tmp_path)
    assert here.cache.restore(SUITE, INDEX, tmp_path / "store").key is None
    assert here.cache.save(SUITE, INDEX, filled(tmp_path / "one")).reason == "this job has no cache service"


def test_judgments_travel_with_their_executions(job: MakeJob, tmp_path: Path) -> None:
    job().cache.save(SUITE, INDEX, filled(tmp_path / "one"))
    job().cache.restore(SUITE, INDEX, tmp_path / "two" / ".oloproof" / "store.sqlite3")
    store = Store.open(tmp_path / "two")
    found = store.results.judgments([bytes([number, 9]) * 16 for number in range(3)])
    store.database.close()
    assert list(found.values()) == [Judgment(State.OBSERVED, 0.0, None)] * 3
