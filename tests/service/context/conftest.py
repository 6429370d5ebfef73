"""Two agents of one orchestrator, and a look at what is stored of each."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memgraph import MemoryEntity, MemoryService, Orchestrator


@pytest.fixture
def ana(service: MemoryService, orc: Orchestrator) -> MemoryEntity:
    return MemoryEntity(service, orc.name, "ana")


@pytest.fixture
def ben(service: MemoryService, orc: Orchestrator) -> MemoryEntity:
    return MemoryEntity(service, orc.name, "ben")


@pytest.fixture
def all_of(service: MemoryService, orc: Orchestrator) -> Callable[[str], list[str]]:
    """The active texts of one agent, whatever they are, oldest first."""

    def texts(agent_id: str) -> list[str]:
        with service.opened(orc.name) as opened, opened.database.read() as connection:
            rows = connection.exec_driver_sql(
                "SELECT content FROM memories WHERE agent_id = ? AND status = 'active' ORDER BY pk",
                (agent_id,),
            )
            return list(rows.scalars())

    return texts
