"""A server for all tests of clients, and a handle of an orchestrator of each test's own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from serving_worlds import Served, serving

from memgraph.client import Client
from memgraph.clock import FixedClock
from memgraph.ids import CountingIds

VIEW: dict[str, Any] = {
    "clearance": "Internal",
    "project_ids": ["web"],
    "session_ids": ["t1"],
}
_NUMBERS = count(1)


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all tests: fixed time, counted ids, nothing in the background."""
    root = tmp_path_factory.mktemp("served") / "root"
    with serving(root, clock=FixedClock(), ids=CountingIds()) as made:
        yield made


@pytest.fixture(scope="session")
def secret(served: Served) -> str:
    """Of a key that may do everything."""
    return served.key()


@pytest.fixture
def name(served: Served) -> str:
    """An orchestrator that no other test knows."""
    made = f"orc-{next(_NUMBERS)}"
    served.orchestrator(made)
    return made


@pytest.fixture
def way(served: Served, name: str, secret: str) -> Iterator[Any]:
    """A client's handle of the orchestrator that sees a project and a task."""
    with Client(served.url, key=secret) as client:
        yield client.orchestrator(name, **VIEW)
