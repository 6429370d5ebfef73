"""Use the library with asyncio: the same methods as coroutines, each run in a worker thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memgraph.model.operation import Awaited
from memgraph.operations.orchestrator import LocalOperations, Orchestrator
from memgraph.operations.threads import await_all, awaited_group, pool

if TYPE_CHECKING:
    from memgraph.operations.handle import GroupT


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
