"""Find the facts that decay, and those that decay retired."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from memgraph.model.conversation import AGENTS, SILENT, TOLD_AS
from memgraph.model.enums import MemoryKind, MemoryStatus
from memgraph.rules.decay import days_idle, should_retire
from memgraph.rules.lifecycle import DECAYED
from memgraph.store import tables
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import (
    Column,
    among,
    bound,
    element,
    listed,
    member,
    ordered,
    prepared,
    value,
)

PAGE = 1_000
"""The number of facts that are read, or retired, at once."""


class DecayRow(NamedTuple):
    """The columns of a fact that decay depends on.

    ``restored``: 1 if its stored confidence is below the threshold and it was once retracted and
    restored.
    """

    pk: int
    memory_id: str
    confidence: float
    decay_rate: float
    created_at: int
    last_accessed_at: int | None
    restored: int


class ExpiryRule(NamedTuple):
    """The time and the settings that decide whether a fact has expired.

    Attributes:
        now_ms: the time, in milliseconds.
        threshold: a fact has expired when its decayed confidence is below this, 0 to 1.
        exponent: the exponent of the idle time in the decay formula.
    """

    now_ms: int
    threshold: float
    exponent: float

    def ends(self, row: DecayRow) -> bool:
        """Return True if the job should retire this active fact."""
        # A restored fact is kept even with a low confidence, since somebody wanted it.
        return not row.restored and should_retire(
            kind=MemoryKind.FACT,
            status=MemoryStatus.ACTIVE,
            confidence=row.confidence,
            decay_rate=row.decay_rate,
            days=days_idle(self.now_ms, row.created_at, row.last_accessed_at),
            threshold=self.threshold,
            exponent=self.exponent,
        )


def _may_decay(m: sa.FromClause) -> Column:
    """Return the SQL condition that decay may retire a memory; see ``rules.decay.rate_of``.

    What a person said is kept, whoever wrote it down, and so is what is about the future.
    """
    n, e = tables.links.alias("n"), tables.entities.alias("e")
    protected = sa.exists().select_from(n.join(e, e.c.pk == n.c.entity_pk))
    protected = protected.where(n.c.memory_pk == m.c.pk, e.c.protected == sa.true()).correlate(m)
    is_active = m.c.status == MemoryStatus.ACTIVE
    d, t = tables.derivations.alias("d"), tables.memories.alias("t")
    role = sa.func.lower(sa.func.trim(t.c.source_role))
    told_as = sa.func.coalesce(member(t.c.attributes, TOLD_AS), "")
    by_person = (told_as == "person") | ((told_as != "agent") & role.not_in(AGENTS | SILENT))
    quotes = sa.exists().select_from(d.join(t, t.c.memory_id == d.c.derived_from_id))
    quotes = quotes.where(d.c.memory_id == m.c.memory_id, t.c.kind == MemoryKind.EPISODE, by_person)
    is_over = m.c.event_time.is_(None) | (m.c.event_time <= value("now"))
    is_decaying = (m.c.kind == MemoryKind.FACT, is_active, m.c.decay_rate > 0, is_over)
    return sa.and_(*is_decaying, ~protected, ~quotes.correlate(m))


def _columns(m: sa.FromClause) -> list[Column]:
    """Return the columns of ``DecayRow``, except for the last."""
    return [m.c[name] for name in DecayRow._fields[:-1]]


def _was_restored(m: sa.FromClause) -> Column:
    # Looked up only for facts whose stored confidence is below the threshold even without decay.
    h = tables.statuses.alias("h")
    ended = (h.c.memory_id == m.c.memory_id, h.c.status == MemoryStatus.RETRACTED)
    return (m.c.confidence < value("base_threshold")) & sa.exists().where(*ended).correlate(m)


def decaying(
    snapshot: Snapshot,
    rule: ExpiryRule,
    *,
    pks: Collection[int] | None = None,
    after: int = 0,
    limit: int | None = None,
) -> list[DecayRow]:
    """Return the facts that decay, by key.

    Args:
        pks: the keys of facts; None: all.
        after: only facts with a higher key.
        limit: the maximum number of facts.
    """
    m = tables.memories.alias("m")
    query = sa.select(*_columns(m), _was_restored(m)).where(_may_decay(m))
    query = query.where(m.c.pk > value("after")).limit(limit)
    if pks is not None:
        query = query.where(among(m.c.pk, pks))
    values = {"now": rule.now_ms, "base_threshold": rule.threshold, "after": after}
    return snapshot.mapped(DecayRow._make, query.order_by(m.c.pk), values)


def count_decaying(snapshot: Snapshot, rule: ExpiryRule) -> int:
    """Return the number of facts that decay."""
    m = tables.memories.alias("m")
    query = sa.select(sa.func.count()).select_from(m).where(_may_decay(m))
    return int(snapshot.scalar(query, now=rule.now_ms))


def _by_decay(m: sa.FromClause) -> tuple[sa.FromClause, Column, tuple[Column, ...]]:
    """Return the table of status periods, its join, and the conditions for retirement by decay."""
    h = tables.statuses.alias("h")
    is_current = sa.and_(h.c.memory_id == m.c.memory_id, h.c.until.is_(None), h.c.reason == DECAYED)
    is_retired = m.c.status == MemoryStatus.RETRACTED
    return h, is_current, (m.c.kind == MemoryKind.FACT, is_retired, m.c.content != "")


@prepared
def _retired_since() -> sa.Select[Any]:
    uses, m = listed("used", "given"), tables.memories.alias("m")
    h, is_current, retired = _by_decay(m)
    joined = ordered(uses, (m, m.c.memory_id == element(uses.c.value, 0))).join(h, is_current)
    query = sa.select(m.c.memory_id).select_from(joined)
    return query.where(*retired, h.c.since >= element(uses.c.value, 1, sa.Integer()))


def retired_since(snapshot: Snapshot, used: Mapping[str, int]) -> list[str]:
    """Return the memories that decay retired at or after the time of their use.

    Args:
        used: the time of use in milliseconds, by memory id.
    """
    if not used:
        return []
    return _retired_since().column(snapshot, used=used.items())


def retired(snapshot: Snapshot, memory_id: str) -> tuple[DecayRow, int] | None:
    """Return a memory that decay retired, and when; None if decay did not retire it."""
    m = tables.memories.alias("m")
    h, is_current, conditions = _by_decay(m)
    query = sa.select(*_columns(m), sa.literal(0), h.c.since).select_from(m.join(h, is_current))
    row = snapshot.row(query.where(*conditions, m.c.memory_id == bound(memory_id)))
    return None if row is None else (DecayRow(*row[:-1]), int(row[-1]))
