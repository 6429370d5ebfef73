"""The handle of one orchestrator, with all operations on its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memgraph.config import Settings
from memgraph.model.operation import Awaited, Blocking, F, Progress, local, untold, with_groups
from memgraph.operations.contexts import Stores
from memgraph.operations.events import Events
from memgraph.operations.exchange.operations import Exchange
from memgraph.operations.graph import LocalGraph
from memgraph.operations.groups import Operations
from memgraph.operations.handle import GroupT
from memgraph.operations.ingestion.operations import LocalIngestion
from memgraph.operations.jobs import LocalJobs
from memgraph.operations.maintenance.operations import LocalMaintenance
from memgraph.operations.memories import Memories
from memgraph.operations.threads import await_all, awaited_group, pool
from memgraph.paths import OrchestratorPaths
from memgraph.store import embeddings, memories

if TYPE_CHECKING:
    from memgraph.operations.write.comparisons import SettleResult


@with_groups
class LocalOperations(Operations[F]):
    """The operations of an orchestrator on this machine."""

    memories: Memories[F]
    graph: LocalGraph[F]
    ingestion: LocalIngestion[F]
    jobs: LocalJobs[F]
    events: Events[F]
    maintenance: LocalMaintenance[F]
    exchange: Exchange[F]
    stores: Stores[F]

    @local
    def settle(self, *, limit: int | None = None, progress: Progress = untold) -> SettleResult:
        """Finish the pending work of writes now: embedding and comparing.

        Returns when nothing is due, or a provider failed, with the marks that this call made
        between memories that this handle sees. ``contradictions.list`` has all.

        Args:
            limit: the approximate maximum number of memories to embed, and to compare.
            progress: called with ``memories``, the number of embedded ones and the total.
        """
        from memgraph.operations.write.comparisons import SettleResult

        waiting = done = 0

        def tell(number: int) -> None:
            nonlocal done
            done += number
            progress("memories", done, waiting)

        with self._service.opened(self.name) as opened:
            with opened.database.read() as snapshot:
                waiting = embeddings.pending_count(snapshot)
            embedded = opened.worker.drain(limit=limit, progress=tell)
            result = SettleResult(embedded, opened.comparer.drain(limit=limit))
            if result.compared.marks:
                ends = {end for mark in result.compared.marks for end in (mark.from_id, mark.to_id)}
                with opened.database.read() as snapshot:
                    seen = memories.existing_ids(snapshot, ends, self._view)
                result.compared.marks = [
                    mark for mark in result.compared.marks if {mark.from_id, mark.to_id} <= seen
                ]
            return result


class Orchestrator(LocalOperations[Blocking]):
    """The memory of one orchestrator. Made by ``MemoryService.orchestrator``; thread-safe.

    Attributes:
        name: the name of the orchestrator.
        viewer: what this handle may see.
        actor: the name in the journal for changes made through this handle.
        memories, contradictions, graph, history, sources, receipts, sessions, contexts, entities,
            ingestion, jobs, erasure, events, maintenance, exchange: the other operations,
            grouped by subject.
        agents: the operations for language models.
        agent_memory: the requests of ``MemoryEntity``.
        turns: the hooks around a turn.
        stores: the stores of items of a task, a project or the global tier.
    """

    @property
    def aio(self) -> AsyncOrchestrator:
        """The same methods for asyncio; each runs in a thread."""
        return AsyncOrchestrator(self)

    @property
    def paths(self) -> OrchestratorPaths:
        """The paths of the orchestrator's files and its drop zone."""
        return self._service.paths(self.name)

    @property
    def settings(self) -> Settings:
        """The settings in force for this orchestrator."""
        return self._service.settings(self.name)

    @property
    def accurate_ner_available(self) -> bool:
        """Return True if spaCy or a language model is configured for entities; calls neither."""
        with self._service.opened(self.name) as opened:
            return opened.naming.accurate_available


@await_all
class AsyncOrchestrator(LocalOperations[Awaited]):
    """The asynchronous memory of an orchestrator: ``service.orchestrator(name).aio``.

    It has the operations of ``Orchestrator`` as coroutines, with the same groups, parameters,
    results and errors. Each call runs in a thread, up to 64 at a time in the process. A call that
    is cancelled before it has a thread does nothing. A call that has started runs to its end in its
    thread, and its writes are kept.

    The stores of tiers, ``exchange.export_lines``, and the methods that pipelines and tools call
    for each file or text are not coroutines.
    """

    def __init__(self, orchestrator: Orchestrator) -> None:
        self.__dict__.update(vars(orchestrator))
        self.orchestrator = orchestrator
        self._target: Any = orchestrator
        self._pool = pool()

    def _as(self, kind: type[GroupT]) -> GroupT:
        group: GroupT = super()._as(awaited_group(kind))  # type: ignore[arg-type]  # of a cache
        group.__dict__ = vars(self) | {"_target": self.orchestrator._as(kind)}
        return group
