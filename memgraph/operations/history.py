"""What changed between two times, and the history of a memory."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memgraph.clock import parse_time
from memgraph.model.access import Permission
from memgraph.model.graph import Diff, History
from memgraph.model.operation import F, MemoryId, Time, operation
from memgraph.operations.handle import Handle


class HistoryOperations(Handle[F], group="history", tag="auditing"):
    """Returns changes between two times, and the history of a memory: ``orc.history``."""

    @operation(Permission.READ, "GET /diff")
    def diff(
        self,
        since: Annotated[Time, Field(description="After this time.", examples=["2026-01-01"])],
        until: Annotated[
            Time | None,
            Field(description="Up to this time; by default now.", examples=["2026-02-01"]),
        ] = None,
        *,
        limit: Annotated[int, Field(ge=1, le=1_000, description="Maximum per list.")] = 100,
    ) -> Diff:
        """Return the changes between two times, newest first.

        The changes are new, replaced, retracted, restored and erased memories, new contradictions,
        and decisions about contradictions and marks.

        Args:
            since: the start, exclusive.
            until: the end, inclusive; None: now.
            limit: the maximum length of each list, 1 to 1,000; ``counts`` has the full numbers.

        Raises:
            InvalidInput: the limit is out of range, or ``until`` is before ``since``.
        """
        from memgraph.graph.history import diff

        first = parse_time(since)
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            last = opened.clock.now_ms() if until is None else parse_time(until)
            return diff(snapshot, self._view, first, last, limit=limit)

    @operation(Permission.READ, "GET /memories/{memory_id}/history", id="history", command="")
    def get(self, memory_id: MemoryId) -> History:
        """Return all statuses that a memory had, with their times. Raises NotFound."""
        from memgraph.graph.history import history

        memory_id = self._whole_id(memory_id)
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return history(snapshot, self._view, memory_id, now_ms=opened.clock.now_ms())
