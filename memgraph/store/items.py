"""Find, sort and count the items of a task, of a project or of the global tier."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from memgraph.model.enums import MemoryKind, MemoryStatus, MemoryType, Scope
from memgraph.model.values import Memory
from memgraph.rules.lifecycle import KEPT_TYPES
from memgraph.store import tables
from memgraph.store.rows import memory_from_row
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import Column, among, bound, listed, ordered, unindexed, value
from memgraph.store.visibility import View, happened_at, memory_fields


def _id(m: sa.FromClause) -> Column:
    return sa.func.coalesce(m.c.item_id, m.c.memory_id)


ROWS_AT_A_TIME = 200


@dataclass(frozen=True, slots=True)
class ItemPlace:
    """The items of one scope that a reader may see at a time: all its memories except turns.

    Attributes:
        view: the reader's view of active memories.
        at: the time in milliseconds; memories that have expired by then are left out. 0: none are.
    """

    view: View
    scope: Scope
    scope_id: str | None
    at: int = 0

    def where(self, m: sa.FromClause) -> Column:
        """Return the condition on items; the parameters are those of the view."""
        scope: tuple[Column, ...] = (
            m.c.scope == self.scope,
            m.c.scope != Scope.GLOBAL,
            m.c.scope_id == bound(self.scope_id),
            m.c.kind != MemoryKind.EPISODE,
        )
        # The second and the last condition repeat those of ix_memories_scope exactly.
        if self.scope is Scope.GLOBAL:
            # Avoid the index on content hashes: reading it completely, with a lookup for each row,
            # takes four times as long as a table scan.
            scope = (m.c.scope == Scope.GLOBAL, unindexed(m.c.kind) != MemoryKind.EPISODE.value)
        unexpired = m.c.valid_until.is_(None) | (m.c.valid_until > bound(self.at))
        is_active = m.c.status == MemoryStatus.ACTIVE
        return sa.and_(*scope, is_active, unexpired, self.view.where(m))


def find(snapshot: Snapshot, place: ItemPlace, item_ids: Sequence[str]) -> list[Memory]:
    """Return the memories with these item ids, newest first.

    There is at most one for each, unless two were stored with the same id.
    """
    of, m = tables.memories, tables.memories.alias("m")
    # Two index lookups; with an OR, SQLite would read the whole scope.
    f = sa.union_all(
        sa.select(of.c.pk).where(among(of.c.item_id, item_ids)),
        sa.select(of.c.pk).where(among(of.c.memory_id, item_ids), of.c.item_id.is_(None)),
    ).subquery("f")
    query = memory_fields(m).select_from(ordered(f, (m, m.c.pk == f.c.pk)))
    selected = query.where(place.where(m)).order_by(m.c.pk.desc())
    return snapshot.mapped(memory_from_row, selected, place.view.params)


def count(snapshot: Snapshot, place: ItemPlace) -> int:
    """Return the number of items in a place."""
    m = tables.memories.alias("m")
    query = sa.select(sa.func.count()).select_from(m).where(place.where(m))
    return int(snapshot.scalar(query, place.view.params))


def select(
    snapshot: Snapshot,
    place: ItemPlace,
    *,
    newest_first: bool,
    of_type: MemoryType | None = None,
    limit: int | None = None,
) -> Iterator[Memory]:
    """Return the items of a place in order of time, ties by id. They are read on demand."""
    m = tables.memories.alias("m")
    when = happened_at(m)
    query = sa.select(m.c.pk).where(place.where(m))
    if of_type is not None:
        query = query.where(m.c.type == bound(of_type.value))
    query = query.order_by(when.desc() if newest_first else when, _id(m), m.c.pk).limit(limit)
    pks = snapshot.column(query, place.view.params)
    f = listed("keys", "f", numbers=True)
    rows = memory_fields(m).select_from(ordered(f, (m, m.c.pk == f.c.value))).order_by(f.c.key)
    for start in range(0, len(pks), ROWS_AT_A_TIME):
        some = pks[start : start + ROWS_AT_A_TIME]
        yield from snapshot.mapped(memory_from_row, rows, keys=some)


def next_to_evict(
    snapshot: Snapshot, place: ItemPlace, number: int, *, but: str | None = None
) -> dict[str, str]:
    """Return the next ``number`` items to evict, except ``but``: item ids by memory id.

    ``rules.lifecycle`` has the order.
    """
    m, log = tables.memories.alias("m"), tables.audit_log.alias("a")
    confirmed = sa.exists().where(log.c.subject == m.c.memory_id, log.c.action == "confirm")
    unknown = sa.func.json_type(m.c.attributes, "$.context_item.importance") == "null"
    query = (
        sa.select(m.c.memory_id, _id(m))
        .where(place.where(m), _id(m).is_distinct_from(bound(but)))
        .order_by(
            m.c.type.in_(sorted(KEPT_TYPES)) | confirmed.correlate(m),
            sa.case((unknown, 0), else_=m.c.importance),
            happened_at(m),
            _id(m),
            m.c.pk,
        )
        .limit(bound(number))
    )
    return dict(snapshot.rows(query, place.view.params))


def next_items(
    snapshot: Snapshot, place: ItemPlace, *, after: int, through: int, number: int
) -> list[tuple[int, str]]:
    """Return the next ``number`` items with keys in (``after``, ``through``], as (key, id)."""
    m = tables.memories.alias("m")
    query = sa.select(m.c.pk, m.c.memory_id).where(place.where(m))
    query = query.where(m.c.pk > value("after"), m.c.pk <= value("through"))
    query = query.order_by(m.c.pk).limit(number)
    return snapshot.rows(query, place.view.params, after=after, through=through)


def is_id(text: Any) -> bool:
    """Return True if a value may be an item id: a text without lone surrogates."""
    if not isinstance(text, str):
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


# The promoted copies of a memory.


def item_id_of(memory_id: str) -> str:
    """Return the item id for promoted copies of a memory, so that each place has only one.

    It is a digest of the memory's id, which it does not disclose.
    """
    return f"promoted-{hashlib.sha256(memory_id.encode()).hexdigest()[:32]}"


def promotions_of(
    snapshot: Snapshot, memory_id: str, scope: Scope, scope_id: str | None
) -> list[tuple[str, MemoryStatus]]:
    """Return ids and statuses of the promoted copies of a memory in one place, latest first.

    A promoted copy must also be derived from the memory, because anyone may store an item with its
    id.
    """
    m, d = tables.memories.alias("m"), tables.derivations.alias("d")
    derived = (d.c.memory_id == m.c.memory_id, d.c.derived_from_id == bound(memory_id))
    query = sa.select(m.c.memory_id, m.c.status).where(
        m.c.item_id == bound(item_id_of(memory_id)),
        m.c.scope == scope,
        m.c.scope_id.is_not_distinct_from(bound(scope_id)),
        sa.exists().where(*derived).correlate(m),
    )
    rows = snapshot.rows(query.order_by(m.c.pk.desc()))
    return [(promoted_id, MemoryStatus(status)) for promoted_id, status in rows]


# The private memories of an agent.


def items(snapshot: Snapshot, agent_id: str, item_ids: Collection[str] | str) -> dict[str, str]:
    """Return the ids of an agent's memories, by item id.

    Args:
        item_ids: the item ids of active memories; or what those of active and other ones begin
            with.
    """
    m = tables.memories
    query = sa.select(m.c.item_id, m.c.memory_id).order_by(m.c.pk.desc())
    query = query.where(m.c.agent_id == bound(agent_id))
    if isinstance(item_ids, str):
        query = query.where(m.c.item_id >= bound(item_ids), m.c.item_id < bound(item_ids + "~"))
    else:
        query = query.where(among(m.c.item_id, item_ids), m.c.status == MemoryStatus.ACTIVE)
    # If two have the same item id, the older one, which comes last, is returned.
    return dict(snapshot.rows(query))


def scope_ids_of_agent(snapshot: Snapshot, agent_id: str, scope: Scope) -> list[str]:
    """Return the sessions, or the projects, in whose scope the agent has memories."""
    m = tables.memories
    query = sa.select(m.c.scope_id).distinct().where(m.c.agent_id == bound(agent_id))
    statuses = [MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED]
    return snapshot.column(query.where(m.c.scope == scope, m.c.status.in_(statuses)))
