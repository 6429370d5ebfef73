"""Find, sort and count the items of a task, of a project or of the global tier."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from memgraph.model.enums import MemoryKind, MemoryStatus, MemoryType, Scope
from memgraph.model.values import Memory
from memgraph.rules.lifecycle import KEPT_TYPES
from memgraph.store import tables
from memgraph.store.rows import memory_from_row
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import (
    Column,
    among,
    listed,
    ordered,
    prepared,
    unindexed,
    value,
)
from memgraph.store.visibility import (
    View,
    happened_at,
    is_unexpired,
    memory_fields,
)


def _id(m: sa.FromClause) -> Column:
    return sa.func.coalesce(m.c.item_id, m.c.memory_id)


ROWS_AT_A_TIME = 200


class NamedItem(NamedTuple):
    """The item id that the owner uses, and the id of the memory."""

    item_id: str
    memory_id: str


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

    @property
    def shape(self) -> PlaceShape:
        """Return the part of the place on which the text of a statement depends."""
        return PlaceShape(self.view.shape, self.scope)

    @property
    def params(self) -> dict[str, Any]:
        """Return the parameters of ``PlaceShape.where``."""
        return self.view.params | {"place_scope_id": self.scope_id, "place_at": self.at}


class PlaceShape(NamedTuple):
    """The shape of an ``ItemPlace``."""

    view: View
    scope: Scope

    def where(self, m: sa.FromClause) -> Column:
        """Return the condition on items, with ``ItemPlace.params`` as its parameters."""
        common = (
            m.c.status == MemoryStatus.ACTIVE,
            is_unexpired(m, "place_at"),
            self.view.where(m),
        )
        if self.scope is Scope.GLOBAL:
            # Avoid the index on content hashes: reading it completely, with a lookup for each row,
            # takes four times as long as a table scan.
            scope_conditions = [
                m.c.scope == Scope.GLOBAL,
                unindexed(m.c.kind) != MemoryKind.EPISODE.value,
            ]
        else:
            # The second and the last condition must repeat those of ix_memories_scope exactly.
            scope_conditions = [
                m.c.scope == self.scope,
                m.c.scope != Scope.GLOBAL,
                m.c.scope_id == value("place_scope_id"),
                m.c.kind != MemoryKind.EPISODE,
            ]
        return sa.and_(*scope_conditions, *common)


@prepared
def _find(place: PlaceShape) -> sa.Select[Any]:
    of, m = tables.memories, tables.memories.alias("m")
    # Two index lookups; with an OR, SQLite would read the whole scope.
    f = sa.union_all(
        sa.select(of.c.pk).where(among(of.c.item_id, "ids")),
        sa.select(of.c.pk).where(among(of.c.memory_id, "ids"), of.c.item_id.is_(None)),
    ).subquery("f")
    query = memory_fields(m).select_from(ordered(f, (m, m.c.pk == f.c.pk)))
    return query.where(place.where(m)).order_by(m.c.pk.desc())


def find(snapshot: Snapshot, place: ItemPlace, item_ids: Sequence[str]) -> list[Memory]:
    """Return the memories with these item ids, newest first.

    There is at most one for each, unless two were stored with the same id.
    """
    return _find(place.shape).mapped(memory_from_row, snapshot, place.params, ids=item_ids)


@prepared
def _count(place: PlaceShape) -> sa.Select[Any]:
    m = tables.memories.alias("m")
    return sa.select(sa.func.count()).select_from(m).where(place.where(m))


def count(snapshot: Snapshot, place: ItemPlace) -> int:
    """Return the number of items in a place."""
    return int(_count(place.shape).scalar(snapshot, place.params))


@prepared
def _select(
    place: PlaceShape, of_type: bool, newest_first: bool, limit: int | None
) -> sa.Select[Any]:
    m = tables.memories.alias("m")
    when = happened_at(m)
    its_type = (m.c.type == value("type"),) if of_type else ()
    query = sa.select(m.c.pk).where(place.where(m), *its_type)
    query = query.order_by(when.desc() if newest_first else when, _id(m), m.c.pk)
    return query.limit(limit)


def select(
    snapshot: Snapshot,
    place: ItemPlace,
    *,
    newest_first: bool,
    of_type: MemoryType | None = None,
    limit: int | None = None,
) -> Iterator[Memory]:
    """Return the items of a place in order of time, ties by id. They are read on demand."""
    statement = _select(place.shape, of_type is not None, newest_first, limit)
    pks = statement.column(snapshot, place.params | {"type": of_type})
    for start in range(0, len(pks), ROWS_AT_A_TIME):
        some = pks[start : start + ROWS_AT_A_TIME]
        yield from map(memory_from_row, _of_keys().rows(snapshot, keys=some))


@prepared
def _next_to_evict(place: PlaceShape) -> sa.Select[Any]:
    m, log = tables.memories.alias("m"), tables.audit_log.alias("a")
    # The same order as in ``rules.lifecycle``.
    confirmed = sa.exists().where(log.c.subject == m.c.memory_id, log.c.action == "confirm")
    unknown = sa.func.json_type(m.c.attributes, "$.context_item.importance") == "null"
    return (
        sa.select(_id(m), m.c.memory_id)
        .where(place.where(m), _id(m).is_distinct_from(value("but")))
        .order_by(
            m.c.type.in_(sorted(KEPT_TYPES)) | confirmed.correlate(m),
            sa.case((unknown, 0), else_=m.c.importance),
            happened_at(m),
            _id(m),
            m.c.pk,
        )
        .limit(value("number"))
    )


def next_to_evict(
    snapshot: Snapshot, place: ItemPlace, number: int, *, but: str | None = None
) -> list[NamedItem]:
    """Return the next ``number`` items to evict, except ``but``; see ``rules.lifecycle``."""
    statement = _next_to_evict(place.shape)
    return [
        NamedItem(*row) for row in statement.rows(snapshot, place.params, number=number, but=but)
    ]


@prepared
def _next_items(place: PlaceShape, number: int) -> sa.Select[Any]:
    m = tables.memories.alias("m")
    query = sa.select(m.c.pk, m.c.memory_id).where(place.where(m))
    query = query.where(m.c.pk > value("after"), m.c.pk <= value("through"))
    return query.order_by(m.c.pk).limit(number)


def next_items(
    snapshot: Snapshot, place: ItemPlace, *, after: int, through: int, number: int
) -> list[tuple[int, str]]:
    """Return the next ``number`` items with keys in (``after``, ``through``], as (key, id)."""
    statement = _next_items(place.shape, number)
    return statement.rows(snapshot, place.params, after=after, through=through)


@prepared
def _of_keys() -> sa.Select[Any]:
    f, m = listed("keys", "f", numbers=True), tables.memories.alias("m")
    query = memory_fields(m).select_from(ordered(f, (m, m.c.pk == f.c.value)))
    return query.order_by(f.c.key)


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


@prepared
def _promotions_of() -> sa.Select[Any]:
    m, d = tables.memories.alias("m"), tables.derivations.alias("d")
    derived = (d.c.memory_id == m.c.memory_id, d.c.derived_from_id == value("memory_id"))
    return (
        sa.select(m.c.memory_id, m.c.status)
        .where(
            m.c.item_id == value("item_id"),
            m.c.scope == value("scope"),
            m.c.scope_id.is_not_distinct_from(value("scope_id")),
            sa.exists().where(*derived).correlate(m),
        )
        .order_by(m.c.pk.desc())
    )


def promotions_of(
    snapshot: Snapshot, memory_id: str, scope: Scope, scope_id: str | None
) -> list[tuple[str, MemoryStatus]]:
    """Return ids and statuses of the promoted copies of a memory in one place, latest first.

    A promoted copy must also be derived from the memory, because anyone may store an item with its
    id.
    """
    rows = _promotions_of().rows(
        snapshot,
        item_id=item_id_of(memory_id),
        scope=scope.value,
        scope_id=scope_id,
        memory_id=memory_id,
    )
    return [(promoted_id, MemoryStatus(status)) for promoted_id, status in rows]


# The private memories of an agent.


@prepared
def _items(*, by_prefix: bool) -> sa.Select[Any]:
    m = tables.memories
    query = sa.select(m.c.item_id, m.c.memory_id).order_by(m.c.pk.desc())
    query = query.where(m.c.agent_id == value("agent_id"))
    if by_prefix:
        return query.where(m.c.item_id >= value("prefix"), m.c.item_id < value("end"))
    return query.where(among(m.c.item_id, "item_ids"), m.c.status == MemoryStatus.ACTIVE)


def items(snapshot: Snapshot, agent_id: str, item_ids: Collection[str] | str) -> dict[str, str]:
    """Return the ids of an agent's memories, by item id.

    Args:
        item_ids: the item ids of active memories; or what those of active and other ones begin
            with.
    """
    if isinstance(item_ids, str):
        params = {"agent_id": agent_id, "prefix": item_ids, "end": item_ids + "~"}
        rows = _items(by_prefix=True).rows(snapshot, params)
    else:
        rows = _items(by_prefix=False).rows(snapshot, agent_id=agent_id, item_ids=item_ids)
    # If two have the same item id, the older one, which comes last, is returned.
    return dict(rows)


@prepared
def _scope_ids_of_agent() -> sa.Select[Any]:
    m = tables.memories
    query = sa.select(m.c.scope_id).distinct()
    statuses = [MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED]
    return query.where(
        m.c.agent_id == value("agent_id"), m.c.scope == value("scope"), m.c.status.in_(statuses)
    )


def scope_ids_of_agent(snapshot: Snapshot, agent_id: str, scope: Scope) -> list[str]:
    """Return the sessions, or the projects, in whose scope the agent has memories."""
    return _scope_ids_of_agent().column(snapshot, agent_id=agent_id, scope=scope.value)
