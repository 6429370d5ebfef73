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
        self._trust = trust_rows.with_told(snapshot, trust)
        self._before: dict[NamedSource, int] = {}
        self._exact: set[NamedSource] = set()
        self._added: Counter[NamedSource] = Counter()

    def refusal(self, given: MemoryInput) -> QuotaReached | None:
        """Return why this exceeds its source's quota; None: it does not, and is counted."""
        if self._trust.unlimited:
            return None
        quotas = self._trust.quotas(captured(given))
        for named, most in quotas:
            if not self._has_room(named, most):
                told = {"kind": named.kind.value, "limit": most}
                return QuotaReached(f"its source may hold {most:,} memories", **told)
        self._added.update(named for named, _ in quotas)
        return None

    def _has_room(self, named: NamedSource, most: int) -> bool:
        """Return True when the quota has room; retracted memories are only subtracted near the
        limit.
        """
        if named not in self._before:
            self._before[named] = sources.bound(self._snapshot, named, most)
        if self._before[named] + self._added[named] >= most and named not in self._exact:
            self._before[named] = sources.count(self._snapshot, named, most)
            self._exact.add(named)
        return self._before[named] + self._added[named] < most


def captured(given: MemoryInput) -> CaptureFacts:
    """Return the fields that decide the trust of a memory to be stored."""
    source = given.source
    names: Sequence[str | None] = (
        source.source_path,
        source.conversation_id,
        source.workflow_run_id,
        source.content_sha256,
        given.session_id,
    )
    return CaptureFacts(source.source_type, source.captured_by, *names)
