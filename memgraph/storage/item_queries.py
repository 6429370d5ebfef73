"""The memories of one task, of one project or of everybody, as items: found, ordered, counted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from memgraph.model.enums import Scope
from memgraph.model.values import Memory
from memgraph.policy.eviction import KEPT_TYPES
from memgraph.policy.filters import Order, Term
from memgraph.storage.item_terms import ID, VALUES, Conditions
from memgraph.storage.namespace_queries import is_no_item
from memgraph.storage.rows import MEMORY_FIELDS, columns, memory_from_row
from memgraph.storage.statements import driver
from memgraph.storage.visibility import View

ROWS_AT_A_TIME = 200

# Two looks into an index each of its own; with an OR, SQLite walks through the whole scope.
_OF_ID = (
    "SELECT pk FROM memories WHERE item_id = :item_id UNION ALL"
    " SELECT pk FROM memories WHERE memory_id = :item_id AND item_id IS NULL"
)
_KEPT_TYPES = ", ".join(f"'{each.value}'" for each in sorted(KEPT_TYPES))
# As ``policy.eviction`` has it.
_CONFIRMED = (
    "EXISTS (SELECT 1 FROM audit_log a WHERE a.subject = m.memory_id AND a.action = 'confirm')"
)
_EVICTION_ORDER = (
    f"m.type IN ({_KEPT_TYPES}) OR {_CONFIRMED},"
    f" coalesce({VALUES['importance']}, 0), {VALUES['timestamp']}, {ID}, m.pk"
)


class Found(NamedTuple):
    """An item by the name that its owner has for it, and the memory that it is."""

    item_id: str
    memory_id: str


class Placed(NamedTuple):
    """Where a memory stands: what the vector index has to know of one that goes."""

    pk: int
    memory_id: str
    scope: str
    scope_id: str | None
    sensitivity: str


@dataclass(frozen=True, slots=True)
class Place:
    """Whose items: one scope's that a reader sees, as they are at a time.

    Attributes:
        source: what items say of where they belong, where they do not say themselves.
        at: milliseconds; what is no longer valid then is no item.
    """

    scope: Scope
    scope_id: str | None
    source: str
    view: View
    at: int

    @property
    def where(self) -> str:
        """The condition on a row of ``memories``; it binds ``params``."""
        if self.scope is Scope.GLOBAL:
            # The plus keeps the index on content hashes out: walking it from end to end, each row
            # of it fetched from somewhere else, takes four times as long as a plain scan.
            here = ["m.scope = 'global'", "+m.kind <> 'episode'"]
        else:
            # The second and the last repeat the condition of ix_memories_scope word for word.
            here = [
                f"m.scope = '{self.scope.value}'",
                "m.scope <> 'global'",
                "m.scope_id = :place_scope_id",
                "m.kind <> 'episode'",
            ]
        return " AND ".join(
            [
                *here,
                "m.status = 'active'",
                "(m.valid_until IS NULL OR m.valid_until > :place_at)",
                self.view.where("m"),
                # A program's store is no part of a tier: it neither fills nor empties one.
                is_no_item("m"),
            ]
        )

    @property
    def params(self) -> dict[str, Any]:
        """Named values for ``where`` and for what is selected."""
        return self.view.params | {
            "place_scope_id": self.scope_id,
            "place_source": self.source,
            "place_at": self.at,
        }


def find(connection: sa.Connection, place: Place, item_id: str) -> list[Memory]:
    """The memories that are the item of an id: one, as long as nobody stored two; newest first."""
    rows = connection.execute(
        sa.text(
            f"SELECT {columns(MEMORY_FIELDS, 'm')} FROM ({_OF_ID}) f"
            f" CROSS JOIN memories m ON m.pk = f.pk WHERE {place.where} ORDER BY m.pk DESC"
        ),
        place.params | {"item_id": item_id},
    )
    return [memory_from_row(row) for row in rows]


def count(connection: sa.Connection, place: Place) -> int:
    """How many items there are."""
    statement = f"SELECT count(*) FROM memories m WHERE {place.where}"
    [(number,)] = driver(connection).execute(statement, place.params)
    return int(number)


def select(
    connection: sa.Connection,
    place: Place,
    terms: Sequence[Term],
    order: Order,
    limit: int | None = None,
) -> tuple[Iterator[Memory], list[Term]]:
    """Memories in the order of the items that they are.

    Returns:
        The memories, read as they are asked for, and the terms that are still to be asked of each;
        while there are such terms, ``limit`` is left to the caller.
    """
    condition = Conditions(terms)
    value = VALUES[order.field]
    direction = "DESC" if order.descending else "ASC"
    statement = (
        f"SELECT m.pk FROM memories m WHERE {' AND '.join([place.where, *condition.parts])}"
        f" ORDER BY {value} IS NULL, {value} {direction}, {ID}, m.pk"
    )
    if limit is not None and not condition.rest:
        statement += f" LIMIT {limit}"
    # The keys alone: rows that nobody comes to read are never read.
    rows = driver(connection).execute(statement, place.params | condition.params)
    return _in_order(connection, [pk for (pk,) in rows]), condition.rest


def next_to_evict(
    connection: sa.Connection, place: Place, number: int, *, but: str | None = None
) -> list[Found]:
    """So many items, the first to go first, without one; see ``memgraph.policy.eviction``."""
    rows = driver(connection).execute(
        f"SELECT {ID}, m.memory_id FROM memories m WHERE {place.where} AND {ID} IS NOT :but"
        f" ORDER BY {_EVICTION_ORDER} LIMIT {number}",
        place.params | {"but": but},
    )
    return [Found(*row) for row in rows]


def placed(connection: sa.Connection, memory_ids: Sequence[str]) -> list[Placed]:
    """Where some memories stand, for ``decay_queries.retire``."""
    rows = driver(connection).execute(
        "SELECT pk, memory_id, scope, scope_id, sensitivity FROM memories"
        " WHERE memory_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(memory_ids)),),
    )
    return [Placed(*row) for row in rows]


def some(
    connection: sa.Connection, place: Place, *, after: int, through: int, number: int
) -> list[tuple[int, str]]:
    """Keys and ids of the next memories that are items, by key, up to a last one."""
    rows = driver(connection).execute(
        f"SELECT m.pk, m.memory_id FROM memories m WHERE {place.where}"
        f" AND m.pk > :after AND m.pk <= :through ORDER BY m.pk LIMIT {number}",
        place.params | {"after": after, "through": through},
    )
    return [tuple(row) for row in rows]


def last_key(connection: sa.Connection) -> int:
    """The key of the newest memory; 0: there is none."""
    [(last,)] = driver(connection).execute("SELECT max(pk) FROM memories")
    return int(last or 0)


def _in_order(connection: sa.Connection, pks: Sequence[int]) -> Iterator[Memory]:
    for start in range(0, len(pks), ROWS_AT_A_TIME):
        rows = driver(connection).execute(
            f"SELECT {columns(MEMORY_FIELDS, 'm')} FROM json_each(?) f"
            " CROSS JOIN memories m ON m.pk = f.value ORDER BY f.key",
            (json.dumps(pks[start : start + ROWS_AT_A_TIME]),),
        )
        yield from map(memory_from_row, rows)


def is_id(text: Any) -> bool:
    """Whether it may be the id of an item: the driver takes no lone surrogate."""
    if not isinstance(text, str):
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
