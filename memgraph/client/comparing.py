"""Comparing times, remotely: what changed between two, and over the life of one memory."""

from __future__ import annotations

from memgraph.client.calls import Call, segment, value_of
from memgraph.client.places import Place, Time, moment
from memgraph.client.words import word
from memgraph.model.history import Diff, History


class ComparingWords(Place):
    """The methods that compare times."""

    @word
    def diff(self, since: Time, until: Time | None = None, *, limit: int = 100) -> Call[Diff]:
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
        return self._get(
            "/diff", value_of(Diff), since=moment(since), until=moment(until), limit=limit
        )

    @word
    def history(self, memory_id: str) -> Call[History]:
        """Return every status and value that a memory had, with their times. Raises NotFound."""
        return self._get(f"/memories/{segment(memory_id)}/history", value_of(History))
