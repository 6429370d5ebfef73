"""The memories of one task, of one project or of everybody, as items: found, ordered, counted.

What SQL decides here it decides as ``memgraph.policy.filters`` does: texts by their bytes in UTF-8,
which is the order of code points, times in milliseconds, numbers by value. It says which conditions
it took over; the others are asked of each row.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sqlalchemy as sa

from memgraph.model.enums import Scope
from memgraph.model.recall import MAX_TOKEN_BUDGET
from memgraph.model.values import Memory
from memgraph.policy.eviction import KEPT_TYPES
from memgraph.policy.filters import Operator, Order, Term
from memgraph.storage.rows import MEMORY_FIELDS, columns, memory_from_row
from memgraph.storage.statements import driver
from memgraph.storage.visibility import View

ROWS_AT_A_TIME = 200

# Up to here every whole number is a double of its own, and the driver can bind it.
_MAX_EXACT = 2**53
_RECORD = "$.context_item"


def _said(name: str, types: str, otherwise: str, proper: str = "1") -> str:
    """What the attribute ``context_item`` says of a column, if that is of one of the JSON types
    and proper; ``null`` is None. See ``memgraph.context.items``."""
    path = f"'{_RECORD}.{name}'"
    said = f"(m.attributes ->> {path})"
    return (
        f"CASE WHEN json_type(m.attributes, {path}) IN ({types})"
        f" AND ({said} IS NULL OR {proper.format(said)}) THEN {said} ELSE {otherwise} END"
    )


_ID = "coalesce(m.item_id, m.memory_id)"
_VALUES = {
    "context_item_id": _ID,
    "kind": _said("kind", "'text'", "lower(m.type)", "{} <> ''"),
    "source": _said("source", "'text'", ":place_source", "{} <> ''"),
    "timestamp": "coalesce(m.event_time, m.created_at)",
    "importance": _said(
        "importance", "'real', 'integer', 'null'", "m.importance / 100.0", "{} BETWEEN 0 AND 1"
    ),
    "token_cost": _said(
        "token_cost",
        "'integer', 'null'",
        "m.token_cost",
        f"{{}} BETWEEN 0 AND {MAX_TOKEN_BUDGET}",
    ),
}
_COMPARISONS = {
    Operator.EQ: "IS",
    Operator.NE: "IS NOT",
    Operator.GT: ">",
    Operator.GTE: ">=",
    Operator.LT: "<",
    Operator.LTE: "<=",
}
_KEPT_TYPES = ", ".join(f"'{each.value}'" for each in sorted(KEPT_TYPES))
# As ``policy.eviction`` has it; whom a person confirmed does not decay.
_EVICTION_ORDER = (
    f"(m.type IN ({_KEPT_TYPES}) OR (m.kind = 'fact' AND m.decay_rate = 0)),"
    f" coalesce({_VALUES['importance']}, 0), {_VALUES['timestamp']}, {_ID}, m.pk"
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
        here = ["m.scope = 'global'"]
        if self.scope is not Scope.GLOBAL:
            # The second repeats the condition of ix_memories_scope word for word.
            here = [
                f"m.scope = '{self.scope.value}'",
                "m.scope <> 'global'",
                "m.scope_id = :place_scope_id",
            ]
        return " AND ".join(
            [
                *here,
                "m.kind <> 'episode'",
                "m.status = 'active'",
                "(m.valid_until IS NULL OR m.valid_until > :place_at)",
                self.view.where("m"),
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


@dataclass(slots=True)
class _Condition:
    """Terms as SQL, as far as it can decide them; ``rest`` is left to whoever reads the rows."""

    parts: list[str] = field(default_factory=list)
    params: dict[str, Any] = field(default_factory=dict)
    rest: list[Term] = field(default_factory=list)

    def add(self, term: Term) -> None:
        name = f"term_{len(self.params)}"
        part = _condition(term, name)
        if part is None:
            self.rest.append(term)
            return
        self.parts.append(part)
        many = isinstance(term.operand, tuple)
        self.params[name] = json.dumps(term.operand) if many else term.operand


def find(connection: sa.Connection, place: Place, item_id: str) -> list[Memory]:
    """The memories that are the item of an id: one, as long as nobody stored two; newest first."""
    rows = connection.execute(
        sa.text(
            f"SELECT {columns(MEMORY_FIELDS, 'm')} FROM memories m WHERE {place.where}"
            " AND (m.item_id = :item_id OR (m.memory_id = :item_id AND m.item_id IS NULL))"
            " ORDER BY m.pk DESC"
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
    condition = _Condition()
    for term in terms:
        condition.add(term)
    value = _VALUES[order.field]
    direction = "DESC" if order.descending else "ASC"
    statement = (
        f"SELECT m.pk FROM memories m WHERE {' AND '.join([place.where, *condition.parts])}"
        f" ORDER BY {value} IS NULL, {value} {direction}, {_ID}, m.pk"
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
        f"SELECT {_ID}, m.memory_id FROM memories m WHERE {place.where} AND {_ID} IS NOT :but"
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


def some(connection: sa.Connection, place: Place, *, through: int, number: int) -> list[str]:
    """Ids of so many memories that are items, those of the lowest keys, up to a key."""
    rows = driver(connection).execute(
        f"SELECT m.memory_id FROM memories m WHERE {place.where} AND m.pk <= :through"
        f" ORDER BY m.pk LIMIT {number}",
        place.params | {"through": through},
    )
    return [memory_id for (memory_id,) in rows]


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


def _condition(term: Term, name: str) -> str | None:
    """A term as SQL that binds its operand by ``name``; None: SQL cannot decide it exactly."""
    operands = term.operand if isinstance(term.operand, tuple) else (term.operand,)
    if not all(map(_binds, operands)):
        return None
    listed = f"IN (SELECT value FROM json_each(:{name}))"
    if term.field == "tags":
        if term.operator not in (Operator.ANY, Operator.IN):
            return None
        return f"EXISTS (SELECT 1 FROM json_each(m.tags) t WHERE t.value {listed})"
    if term.field not in _VALUES:
        return None
    value = _VALUES[term.field]
    if term.operator is Operator.IN:
        # NULL is in no list, and nothing is known not to be in a list that holds it.
        return None if None in operands else f"coalesce({value} {listed}, 0)"
    return f"{value} {_COMPARISONS[term.operator]} :{name}"


def _binds(operand: Any) -> bool:
    """Whether the driver hands it over as it is: SQLite ends a text of JSON at a NUL."""
    if isinstance(operand, str):
        return "\x00" not in operand
    return operand is None or (isinstance(operand, int | float) and abs(operand) <= _MAX_EXACT)


def is_id(text: Any) -> bool:
    """Whether it may be the id of an item: the driver takes no lone surrogate."""
    if not isinstance(text, str):
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
