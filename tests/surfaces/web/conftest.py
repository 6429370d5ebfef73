"""A console of each test's own. A module's ``CONFIG`` is its configuration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from console_browsing import Browser, console_served
from serving_worlds import Served

from memgraph import Orchestrator
from memgraph.clock import FixedClock

CONFIG = {"memory": {"embedding": {"provider": "none"}}}


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def served(tmp_path: Path, clock: FixedClock, request: pytest.FixtureRequest) -> Iterator[Served]:
    config = getattr(request.module, "CONFIG", CONFIG)
    with console_served(tmp_path / "root", clock=clock, config=config) as made:
        yield made


@pytest.fixture
def orc(served: Served) -> Orchestrator:
    return served.orchestrator()


@pytest.fixture
def browser(served: Served) -> Iterator[Browser]:
    with Browser(served, served.key()) as made:
        yield made
