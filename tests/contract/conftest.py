"""The servers of the contract tests: installed by npm once, started once, GitHub's checked after every test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from api_server import ApiServer
from blobs import Blobs
from cache_service import CacheServer
from model_server import ModelServer
from node_packages import install


@pytest.fixture(scope="session")
def packages() -> Path:
    """The folder of what the servers are made of."""
    return install()


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


@pytest.fixture(scope="session")
def running_models(packages: Path) -> Iterator[ModelServer]:
    running = ModelServer()
    running.start()
    yield running
    running.stop()


@pytest.fixture
def models(running_models: ModelServer) -> ModelServer:
    """The provider of models, which has been asked nothing yet."""
    running_models.forget()
    return running_models
