"""Changes between two times, and the history of one memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memgraph.clock import parse_time
from memgraph.service.handle import Handle

if TYPE_CHECKING:
    from memgraph.model.history import Diff, History
    from memgraph.service.handle_reading import Time


class HistoryHandle(Handle):
    """The part of ``Orchestrator`` that compares two times."""

    def diff(self, since: Time, until: Time | None = None, *, limit: int = 100) -> Diff:
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

    def history(self, memory_id: str) -> History:
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
