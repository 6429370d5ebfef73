"""One orchestrator and its hooks, with time enough for a loaded machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from working import working

from memgraph import MemoryHooks, MemoryService, Orchestrator

NAME = "a"
LONG_MS = 30_000


@pytest.fixture
def service(tmp_path: Path) -> Iterator[MemoryService]:
    with working(tmp_path) as made:
        made.orchestrator(NAME, create=True)
        yield made


@pytest.fixture
def orc(service: MemoryService) -> Orchestrator:
    return service.orchestrator(NAME)


@pytest.fixture
def hooks(service: MemoryService) -> Iterator[MemoryHooks]:
    made = MemoryHooks(service, NAME, deadline_ms=LONG_MS)
    yield made
    assert made.close() == 0
