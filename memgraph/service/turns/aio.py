"""``MemoryHooks`` for asyncio: every call in a thread of its own pool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from memgraph.service.turns.hooks import MemoryHooks

if TYPE_CHECKING:
    from memgraph.model.turns import Evidence, StepContext, TaskEnded, TurnContext, Written
    from memgraph.service.memory_service import MemoryService

P = ParamSpec("P")
T = TypeVar("T")

# A call waits most of its time, and the loop's own pool has six threads on two cores.
THREADS = 64


class AsyncMemoryHooks:
    """The same hooks, awaited. Their arguments, answers and errors are those of ``MemoryHooks``.

    Args:
        service, name, fields: as ``MemoryHooks``.
        threads: calls at the same time.
    """

    def __init__(
        self, service: MemoryService, name: str, *, threads: int = THREADS, **fields: Any
    ) -> None:
        self.hooks = MemoryHooks(service, name, **fields)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="memgraph-turns")

    async def on_message(self, *args: Any, **fields: Any) -> TurnContext:
        """See ``MemoryHooks.on_message``."""
        return await self._run(self.hooks.on_message, *args, **fields)

    async def on_step(self, *args: Any, **fields: Any) -> StepContext:
        """See ``MemoryHooks.on_step``."""
        return await self._run(self.hooks.on_step, *args, **fields)

    async def on_step_output(self, *args: Any, **fields: Any) -> Written:
        """See ``MemoryHooks.on_step_output``."""
        return await self._run(self.hooks.on_step_output, *args, **fields)

    async def on_transcript(self, *args: Any, **fields: Any) -> Written:
        """See ``MemoryHooks.on_transcript``."""
        return await self._run(self.hooks.on_transcript, *args, **fields)

    async def on_diagnostics(self, *args: Any, **fields: Any) -> Evidence:
        """See ``MemoryHooks.on_diagnostics``."""
        return await self._run(self.hooks.on_diagnostics, *args, **fields)

    async def record_findings(self, *args: Any, **fields: Any) -> Written:
        """See ``MemoryHooks.record_findings``."""
        return await self._run(self.hooks.record_findings, *args, **fields)

    async def end_task(self, *args: Any, **fields: Any) -> TaskEnded:
        """See ``MemoryHooks.end_task``."""
        return await self._run(self.hooks.end_task, *args, **fields)

    async def close(self, *args: Any, **fields: Any) -> int:
        """See ``MemoryHooks.close``."""
        lost = await self._run(self.hooks.close, *args, **fields)
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

    async def _run(self, call: Callable[P, T], *args: P.args, **fields: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, partial(call, *args, **fields))
