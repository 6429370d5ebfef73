"""What every test may use: a service in a folder of its own, a clock that stands still."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.ids import CountingIds

# A machine that is busy with something else is no reason to fail.
settings.register_profile("memgraph", deadline=None)
settings.load_profile("memgraph")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def shared() -> Path:
    """Real input that lies beside the project, where it is to be had."""
    folder = Path(os.environ.get("MEMGRAPH_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip("needs the shared data: set MEMGRAPH_SHARED to its folder")
    return folder


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def service(tmp_path: Path, clock: FixedClock) -> Iterator[MemoryService]:
    """Repeatable: fixed time, counted ids, no environment, nothing in the background."""
    with MemoryService(
        tmp_path / "root", clock=clock, ids=CountingIds(), environ={}, background=False
    ) as made:
        yield made


@pytest.fixture
def orc(service: MemoryService) -> Orchestrator:
    return service.orchestrator("orc-1", create=True)
