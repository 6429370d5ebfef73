"""How much a source may store: what would be too much is refused, item by item."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from memgraph.errors import QuotaReached
from memgraph.model.values import MemoryInput
from memgraph.policy.trust import Captured, Named, Trust
from memgraph.storage import source_queries, trust_queries


class Quotas:
    """The room that is left to the sources of one transaction. Not thread-safe.

    Counted is what is active or superseded, whoever may see it.
    """

    def __init__(self, connection: sa.Connection, trust: Trust) -> None:
        self._connection = connection
        self._trust = trust_queries.with_told(connection, trust)
        self._counts: dict[Named, int] = {}

    def refusal(self, given: MemoryInput) -> QuotaReached | None:
        """Why this may not be stored as one more of its source; None: it may, and is counted."""
        if self._trust.unlimited:
            return None
        quotas = self._trust.quotas(captured(given))
        for named, most in quotas:
            if self._count(named, most) >= most:
                told = {"kind": named.kind.value, "limit": most}
                return QuotaReached(f"its source may hold {most:,} memories", **told)
        for named, _ in quotas:
            self._counts[named] += 1
        return None

    def _count(self, named: Named, most: int) -> int:
        if named not in self._counts:
            self._counts[named] = source_queries.count(self._connection, named, most)
        return self._counts[named]


def captured(given: MemoryInput) -> Captured:
    """What tells how far a memory is trusted that is to be stored."""
    source = given.source
    names: Sequence[str | None] = (
        source.source_path,
        source.conversation_id,
        source.workflow_run_id,
        source.content_sha256,
        given.session_id,
    )
    return Captured(source.source_type, source.captured_by, *names)
