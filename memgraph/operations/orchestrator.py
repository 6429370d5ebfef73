"""The handle of one orchestrator: everything a program does with its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memgraph.operations.agents import AgentsHandle
from memgraph.operations.audit import (
    AuditingHandle,
    CasesHandle,
    HistoryHandle,
    InfluenceHandle,
    ReceiptsHandle,
)
from memgraph.operations.contexts import ContextHandle, InjectingHandle, SessionsHandle
from memgraph.operations.entities import EntitiesHandle
from memgraph.operations.jobs import ConsolidatingHandle, JobsHandle, MaintainingHandle
from memgraph.operations.overview import OverviewHandle
from memgraph.operations.reading import ExpiringHandle, ReadingHandle
from memgraph.operations.sources import ErasingHandle, IngestingHandle, SourcesHandle

if TYPE_CHECKING:
    from memgraph.operations.aio import AsyncOrchestrator


class Orchestrator(
    AgentsHandle,
    SourcesHandle,
    ContextHandle,
    SessionsHandle,
    ExpiringHandle,
    InjectingHandle,
    ReadingHandle,
    ReceiptsHandle,
    IngestingHandle,
    CasesHandle,
    MaintainingHandle,
    ConsolidatingHandle,
    EntitiesHandle,
    JobsHandle,
    AuditingHandle,
    HistoryHandle,
    InfluenceHandle,
    OverviewHandle,
    ErasingHandle,
):
    """The memory of one orchestrator. Made by ``MemoryService.orchestrator``; thread-safe.

    Attributes:
        name: of the orchestrator.
        viewer: what the holder of this handle may see.
        actor: the name in the journal for changes made through it.
    """

    @property
    def aio(self) -> AsyncOrchestrator:
        """The same methods for asyncio: each runs in a thread and is awaited."""
        from memgraph.operations.aio import AsyncOrchestrator

        return AsyncOrchestrator(self)
