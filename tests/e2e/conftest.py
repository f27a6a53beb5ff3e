"""The action's image, a GitHub that keeps state, and a user's repository. Needs docker and act, and root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from acting import ActRun, Runner, copy_release
from consumer import Consumer

ROOT = Path(__file__).parents[2]
CONTRACT = ROOT / "tests" / "contract"
sys.path.insert(0, str(CONTRACT))

from api_server import JOB_TOKEN, ApiServer  # noqa: E402 - where it lies is known only now
from node_packages import install  # noqa: E402

IMAGE = "oloproof-ci:e2e"

__all__ = ["ActRun"]


@pytest.fixture(scope="session")
def image() -> str:
    """The image, built as a user's runner would build it."""
    docker = shutil.which("docker")
    assert docker is not None, "docker is not on PATH: install docker.io"
    done = subprocess.run(
        [docker, "build", "--quiet", "--tag", IMAGE, "."],
        cwd=ROOT,
        env={**os.environ, "DOCKER_BUILDKIT": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return IMAGE


@pytest.fixture(scope="session")
def scratch() -> Iterator[Path]:
    """A folder that the runner's user may enter, as pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix="e2e-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def running_server() -> Iterator[ApiServer]:
    install()
    server = ApiServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def server(running_server: ApiServer) -> Iterator[ApiServer]:
    """The server; after the test every exchange must have been as GitHub describes it."""
    running_server.forget()
    yield running_server
    assert running_server.violations == []


@pytest.fixture(scope="session")
def runner(image: str, running_server: ApiServer, scratch: Path) -> Runner:
    copy_release(ROOT, scratch / "action", image)
    return Runner(scratch / "action", running_server.url, JOB_TOKEN, scratch)


@pytest.fixture
def consumer(tmp_path: Path) -> Consumer:
    """A user's repository, with the example as its suite and our action in its workflow."""
    return Consumer.make(tmp_path / "consumer", ROOT / "examples")
