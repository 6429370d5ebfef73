"""``MemoryHooks`` for asyncio: every call in a thread of its own pool."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypedDict, Unpack

from memgraph.operations.aio import THREADS, ThreadPoolCaller, awaited
from memgraph.service.turns.base import PATIENCE_S
from memgraph.service.turns.hooks import MemoryHooks

if TYPE_CHECKING:
    from memgraph.model.context import AgentProfile
    from memgraph.model.enums import Sensitivity
    from memgraph.service.memory_service import MemoryService


class HookOptions(TypedDict, total=False):
    """The options of ``MemoryHooks``."""

    deadline_ms: int | None
    actor: str
    clearance: Sensitivity
    profile: AgentProfile | None


class AsyncMemoryHooks(ThreadPoolCaller):
    """The same hooks, awaited. Their arguments, answers and errors are those of ``MemoryHooks``.

    Args:
        service, name, options: as ``MemoryHooks``.
        threads: calls at the same time.
    """

    def __init__(
        self,
        service: MemoryService,
        name: str,
        *,
        threads: int = THREADS,
        **options: Unpack[HookOptions],
    ) -> None:
        self.hooks = MemoryHooks(service, name, **options)
        super().__init__(
            self.hooks, ThreadPoolExecutor(threads, thread_name_prefix="memgraph-turns")
        )

    prepare = awaited(MemoryHooks.prepare)
    on_message = awaited(MemoryHooks.on_message)
    on_step = awaited(MemoryHooks.on_step)
    on_step_output = awaited(MemoryHooks.on_step_output)
    on_transcript = awaited(MemoryHooks.on_transcript)
    on_diagnostics = awaited(MemoryHooks.on_diagnostics)
    record_findings = awaited(MemoryHooks.record_findings)
    end_task = awaited(MemoryHooks.end_task)

    _close = awaited(MemoryHooks.close)

    async def close(self, patience_s: float = PATIENCE_S) -> int:
        """See ``MemoryHooks.close``."""
        lost = await self._close(patience_s)
        self._pool.shutdown(wait=False)
        return lost

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
