"""The handle of one orchestrator: everything a program does with its memory."""

from __future__ import annotations

from memgraph.service.handle_agents import AgentsHandle
from memgraph.service.handle_auditing import AuditingHandle
from memgraph.service.handle_cases import CasesHandle
from memgraph.service.handle_consolidating import ConsolidatingHandle
from memgraph.service.handle_context import ContextHandle
from memgraph.service.handle_entities import EntitiesHandle
from memgraph.service.handle_erasing import ErasingHandle
from memgraph.service.handle_expiring import ExpiringHandle
from memgraph.service.handle_history import HistoryHandle
from memgraph.service.handle_influence import InfluenceHandle
from memgraph.service.handle_ingesting import IngestingHandle
from memgraph.service.handle_injecting import InjectingHandle
from memgraph.service.handle_jobs import JobsHandle
from memgraph.service.handle_maintaining import MaintainingHandle
from memgraph.service.handle_reading import ReadingHandle
from memgraph.service.handle_receipts import ReceiptsHandle
from memgraph.service.handle_sessions import SessionsHandle
from memgraph.service.handle_sources import SourcesHandle


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
