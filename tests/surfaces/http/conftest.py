"""A server for all tests of a module, and a client that may do everything."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from serving_worlds import Served, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("http") / "root") as made:
        made.orchestrator()
        yield made


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[httpx.Client]:
    with served.client(served.key()) as made:
        yield made
