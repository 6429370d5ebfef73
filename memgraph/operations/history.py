"""The past: what changed between two times, and every state of a memory."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memgraph.clock import parse_time
from memgraph.model.access import Permission
from memgraph.model.graph import Diff, History
from memgraph.model.operation import F, MemoryId, Time, operation
from memgraph.operations.handle import Handle


class HistoryOperations(Handle[F], group="history"):
    """What changed: ``orc.history``."""

    @operation(Permission.READ, "GET", "/diff", tag="auditing")
    def diff(
        self,
        since: Annotated[Time, Field(description="After this time.", examples=["2026-01-01"])],
        until: Annotated[
            Time | None,
            Field(description="Up to this time; now, if none is.", examples=["2026-02-01"]),
        ] = None,
        *,
        limit: Annotated[int, Field(ge=1, le=1_000, description="Of each list.")] = 100,
    ) -> Diff:
        """Return the changes between two times, newest first.

        They are memories learnt, replaced, retracted and restored, contradictions found and
        decided, and changes of confidence.

        Args:
            since: exclusive; ``until`` is inclusive.
            until: None: now.
            limit: 1..1000 of each list; ``counts`` are complete.

        Raises:
            InvalidInput: a limit out of range, or an end before the beginning.
        """
        from memgraph.graph.history import diff

        first = parse_time(since)
        with self._service.opened(self.name) as opened:
            last = opened.clock.now_ms() if until is None else parse_time(until)
            return diff(opened.database, first, last, limit=limit, viewer=self.viewer)

    @operation(
        Permission.READ, "GET", "/memories/{memory_id}/history", tag="auditing", id="history"
    )
    def get(self, memory_id: MemoryId) -> History:
        """Return every status and value that a memory had, with their times. Raises NotFound."""
        from memgraph.graph.history import history

        memory_id = self._whole_id(memory_id)
        with self._service.opened(self.name) as opened:
            return history(
                opened.database,
                memory_id,
                now_ms=opened.clock.now_ms(),
                exponent=opened.settings.memory.decay.exponent,
                viewer=self.viewer,
            )
