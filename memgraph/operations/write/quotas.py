"""Quotas of sources: what exceeds them is refused, item by item."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from memgraph.errors import QuotaReached
from memgraph.model.values import MemoryInput
from memgraph.rules.trust import CaptureFacts, NamedSource, TrustRules
from memgraph.store import sources
from memgraph.store import trust as trust_rows
from memgraph.store.snapshot import Snapshot


class Quotas:
    """The remaining quota of the sources of one transaction. Not thread-safe.

    Active and superseded memories count, whoever may see them.
    """

    def __init__(self, snapshot: Snapshot, trust: TrustRules) -> None:
        self._snapshot = snapshot
        self._trust = trust_rows.with_assigned(snapshot, trust)
        self._before: dict[NamedSource, int] = {}
        self._exact: set[NamedSource] = set()
        self._added: Counter[NamedSource] = Counter()

    def refusal(self, memory: MemoryInput) -> QuotaReached | None:
        """Return why this exceeds its source's quota; None: it does not, and is counted."""
        if self._trust.unlimited:
            return None
        quotas = self._trust.quotas(captured(memory))
        for source, limit in quotas:
            if not self._has_room(source, limit):
                details = {"kind": source.kind.value, "limit": limit}
                return QuotaReached(f"its source may hold {limit:,} memories", **details)
        self._added.update(source for source, _ in quotas)
        return None

    def _has_room(self, source: NamedSource, limit: int) -> bool:
        """Return True when the quota has room; retracted memories are only subtracted near the
        limit.
        """
        if source not in self._before:
            self._before[source] = sources.upper_bound(self._snapshot, source, limit)
        if self._before[source] + self._added[source] >= limit and source not in self._exact:
            self._before[source] = sources.count(self._snapshot, source, limit)
            self._exact.add(source)
        return self._before[source] + self._added[source] < limit


def captured(memory: MemoryInput) -> CaptureFacts:
    """Return the fields that decide the trust of a memory to be stored."""
    source = memory.source
    names: Sequence[str | None] = (
        source.source_path,
        source.conversation_id,
        source.workflow_run_id,
        source.content_sha256,
        memory.session_id,
    )
    return CaptureFacts(source.source_type, source.captured_by, *names)
