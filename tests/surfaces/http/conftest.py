"""A server for all tests of a module, and a client that may do everything."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from serving_worlds import Served, serving

from tests.postgres_servers import drop_schemas


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Served]:
    url = ""
    if request.config.getoption("--engine") == "postgresql":
        url = request.getfixturevalue("postgres_server")
    root = tmp_path_factory.mktemp("http") / "root"
    with serving(root, config={"memory.storage.url": url}) as made:
        made.orchestrator()
        yield made
    if url:
        drop_schemas(url)


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[httpx.Client]:
    with served.client(served.key()) as made:
        yield made
