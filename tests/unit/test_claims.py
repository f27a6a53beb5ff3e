"""Claims between processes: one gets it, the others wait, and no way of ending leaves a claim behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from oloproof.canonical import digest
from oloproof.execution.calls import ModelCalls
from oloproof.store.claims import Claims
from oloproof.worker.process import Reply

ONE, OTHER = digest("question", "one"), digest("question", "other")
HOLDER = """\
import sys
from pathlib import Path
from oloproof.store.claims import Claims
assert Claims(Path(sys.argv[1])).take(bytes.fromhex(sys.argv[2]))
print("taken", flush=True)
sys.stdin.read()
"""


@contextmanager
def held_by_another(path: Path, identity: bytes) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path), identity.hex()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "taken\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def claims(tmp_path: Path) -> Iterator[Claims]:
    claims = Claims(tmp_path / "claims")
    yield claims
    claims.close()


def test_what_another_process_claims_cannot_be_claimed_and_everything_else_can(
    claims: Claims, tmp_path: Path
) -> None:
    with held_by_another(tmp_path / "claims", ONE):
        assert not claims.take(ONE)
        assert claims.take(OTHER)


@pytest.mark.parametrize("signalled", [signal.SIGKILL, signal.SIGTERM])
def test_a_claim_ends_with_its_process(claims: Claims, tmp_path: Path, signalled: signal.Signals) -> None:
    with held_by_another(tmp_path / "claims", ONE) as process:
        assert not claims.take(ONE)
        process.send_signal(signalled)
        process.wait(10)
        assert claims.take(ONE)


def test_a_claim_lasts_until_others_can_read_what_came_of_it(claims: Claims, tmp_path: Path) -> None:
    def free() -> bool:
        ask = [sys.executable, "-c", HOLDER, str(tmp_path / "claims"), ONE.hex()]
        done = subprocess.run(ask, input="", capture_output=True, text=True, check=False)
        return done.returncode == 0

    assert claims.take(ONE)
    claims.settle(ONE)
    assert not free()
    claims.committed()
    assert free()


def test_where_nothing_can_be_locked_everybody_asks_for_itself(tmp_path: Path) -> None:
    claims = Claims(tmp_path / "no folder" / "claims")
    assert claims.take(ONE)
    claims.give_back(ONE)


def wait_for(claims: Claims, seconds: float) -> tuple[float, list[str]]:
    """How long a claim was waited for, and what was said meanwhile."""
    said: list[str] = []
    calls = ModelCalls(lambda message: Reply(), 1, say=said.append)
    began = time.monotonic()
    calls.submit("tag", {"op": "claim", "take": lambda: claims.take(ONE), "seconds": seconds})
    found = calls.next_done(30)
    took = time.monotonic() - began
    calls.cancel()
    calls.close()
    assert found == ("tag", Reply())
    return took, said


def test_whoever_waits_goes_on_as_soon_as_the_other_is_dead(claims: Claims, tmp_path: Path) -> None:
    with held_by_another(tmp_path / "claims", ONE) as process:
        killer = subprocess.Popen(["sh", "-c", f"sleep 0.5; kill -9 {process.pid}"])
        took, _ = wait_for(claims, 20)
        killer.wait()
    assert 0.3 < took < 10


def test_a_process_that_was_stopped_is_not_waited_for_for_ever(
    claims: Claims, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oloproof.execution.calls.SILENT_SECONDS", 0.1)
    with held_by_another(tmp_path / "claims", ONE) as process:
        os.kill(process.pid, signal.SIGSTOP)
        took, said = wait_for(claims, 0.5)
    assert 0.5 <= took < 10
    assert said == ["waiting for answers that another run on this store has asked for"]
