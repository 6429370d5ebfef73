"""The handle of one orchestrator: everything a program does with its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memgraph.service.handle_agents import AgentsHandle
from memgraph.service.handle_auditing import (
    AuditingHandle,
    CasesHandle,
    HistoryHandle,
    InfluenceHandle,
    ReceiptsHandle,
)
from memgraph.service.handle_context import ContextHandle, InjectingHandle, SessionsHandle
from memgraph.service.handle_entities import EntitiesHandle
from memgraph.service.handle_jobs import ConsolidatingHandle, JobsHandle, MaintainingHandle
from memgraph.service.handle_reading import ExpiringHandle, ReadingHandle
from memgraph.service.handle_sources import ErasingHandle, IngestingHandle, SourcesHandle

if TYPE_CHECKING:
    from memgraph.service.aio import AsyncOrchestrator


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
        from memgraph.service.aio import AsyncOrchestrator

        return AsyncOrchestrator(self)
