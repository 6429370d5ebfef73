"""Reading the graph: the memories around some memories, level by level.

SQLite's: ``json_each`` carries lists of ids, so that a statement's text, and with it its plan, is
the same for one id and for two hundred. Every function works on a snapshot that
the caller holds, and shows what its ``View`` lets it see.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from operator import itemgetter
from typing import Any, NamedTuple

from memgraph.clock import MAX_MS
from memgraph.errors import NotFound
from memgraph.model.enums import EdgeType, MemoryStatus
from memgraph.model.values import Edge, Memory, StatusPeriod, StoredSource
from memgraph.rules.contradictions import Side
from memgraph.store.bulletins import moment
from memgraph.store.recall import plain_rows
from memgraph.store.rows import (
    EDGE_FIELDS,
    SOURCE_FIELDS,
    STATUS_FIELDS,
    columns,
    edge_from_row,
    memory_from_row,
    source_from_row,
    status_from_row,
    unreadable,
)
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View

_STRENGTH = itemgetter(*(EDGE_FIELDS.index(one) for one in ("weight", "created_at", "edge_id")))


class Step(NamedTuple):
    """A visible memory one edge or derivation away. ``edge_type`` None: a derivation.

    ``partial``: 1 where the edge replaces only a part of the older memory.
    """

    origin_id: str
    memory_id: str
    edge_type: str | None
    weight: float
    created_at: int
    edge_id: str
    partial: int


class Direction(Enum):
    """Which end of the edge the origin is, and which the memory that is looked for."""

    OUT = ("from_memory_id", "to_memory_id")
    IN = ("to_memory_id", "from_memory_id")


def strongest_neighbours(
    snapshot: Snapshot,
    ids: Collection[str],
    view: View,
    edge_types: Collection[EdgeType] | None,
    per_node: int,
) -> list[Step]:
    """For each of ``ids`` at most ``per_node`` edges in and as many out that lead to a visible
    memory: by weight, then the newest, then the higher edge id. The order of the list is open.
    """
    legs = " UNION ALL ".join(
        _strongest_leg(direction, view, edge_types) for direction in Direction
    )
    values = view.params | {"ids": _listed(ids), "per_node": per_node}
    return [Step._make(row) for row in _rows(snapshot, legs, values)]


def _strongest_leg(
    direction: Direction, view: View, edge_types: Collection[EdgeType] | None
) -> str:
    near, far = direction.value
    # The inner query walks an index in the order that is wanted and stops: a hub costs no sort.
    return (
        f"SELECT f.value, e.{far}, e.edge_type, e.weight, e.created_at, e.edge_id,"
        f" {view.text.partial('e')}"
        f" FROM json_each(:ids) f CROSS JOIN memory_edges e WHERE e.rowid IN ("
        f"SELECT o.rowid FROM memory_edges o CROSS JOIN memories m ON m.memory_id = o.{far}"
        f" WHERE o.{near} = f.value AND {_typed('o', edge_types)} AND {view.text.edge_where('o')}"
        f" AND {view.text.where('m')}"
        " ORDER BY o.weight DESC, o.created_at DESC, o.edge_id DESC LIMIT :per_node)"
    )


def edges_among(
    snapshot: Snapshot,
    ids: Collection[str],
    view: View,
    edge_types: Collection[EdgeType] | None,
    limit: int,
) -> list[Edge]:
    """Edges whose two ends are both in ``ids``: by weight, the newest, the higher id first."""
    # The unary plus keeps the planner from probing every pair: it walks the edges of each id.
    statement = (
        f"SELECT {view.text.edge_columns('o')} FROM json_each(:ids) f CROSS JOIN memory_edges o"
        " WHERE o.from_memory_id = f.value"
        " AND +o.to_memory_id IN (SELECT value FROM json_each(:ids))"
        f" AND {_typed('o', edge_types)} AND {view.text.edge_where('o')}"
        " ORDER BY o.weight DESC, o.created_at DESC, o.edge_id DESC LIMIT :limit"
    )
    values = view.params | {"ids": _listed(ids), "limit": limit}
    return [edge_from_row(row) for row in _rows(snapshot, statement, values)]


def derivations_among(
    snapshot: Snapshot, ids: Collection[str], view: View, limit: int
) -> list[tuple[str, str]]:
    """(memory, what it was derived from) of those whose two are both in ``ids``: by ids."""
    statement = (
        "SELECT d.memory_id, d.derived_from_id FROM json_each(:ids) f"
        " CROSS JOIN memory_derivations d WHERE d.memory_id = f.value"
        " AND +d.derived_from_id IN (SELECT value FROM json_each(:ids))"
        f" AND {view.text.derived_where('d')}"
        " ORDER BY d.memory_id, d.derived_from_id LIMIT :limit"
    )
    values = view.params | {"ids": _listed(ids), "limit": limit}
    return [(one, ground) for one, ground in _rows(snapshot, statement, values)]


def edges_of(
    snapshot: Snapshot,
    memory_id: str,
    direction: Direction,
    view: View,
    edge_types: Collection[EdgeType] | None,
    limit: int,
) -> list[Edge]:
    """Edges of one memory in one direction whose other end is visible, strongest first."""
    near, far = direction.value
    statement = (
        f"SELECT {view.text.edge_columns('o')} FROM memory_edges o"
        f" CROSS JOIN memories m ON m.memory_id = o.{far}"
        f" WHERE o.{near} = :memory_id AND {_typed('o', edge_types)}"
        f" AND {view.text.edge_where('o')} AND {view.text.where('m')}"
        " ORDER BY o.weight DESC, o.created_at DESC, o.edge_id DESC LIMIT :limit"
    )
    values = view.params | {"memory_id": memory_id, "limit": limit}
    return [edge_from_row(row) for row in _rows(snapshot, statement, values)]


def linked(
    snapshot: Snapshot,
    ids: Collection[str],
    view: View,
    edge_types: Collection[EdgeType],
    direction: Direction,
    limit: int,
    *,
    derivations: bool = False,
) -> list[Step]:
    """Visible memories one step from ``ids`` along edges of some types in one direction.

    With ``derivations`` also what the ids were derived from (OUT) or what was derived from them
    (IN). Oldest first, then by ids: at most ``limit``.
    """
    near, far = direction.value
    legs = [
        f"SELECT o.{near} AS origin, o.{far} AS memory_id, o.edge_type, o.weight,"
        f" o.created_at AS created_at, o.edge_id, {view.text.partial('o')}"
        f" FROM json_each(:ids) f CROSS JOIN memory_edges o ON o.{near} = f.value"
        f" AND {_typed('o', edge_types)} AND {view.text.edge_where('o')}"
        f" CROSS JOIN memories m ON m.memory_id = o.{far} WHERE {view.text.where('m')}"
    ]
    if derivations:
        near, far = (
            ("memory_id", "derived_from_id")
            if direction is Direction.OUT
            else ("derived_from_id", "memory_id")
        )
        legs.append(
            f"SELECT d.{near}, d.{far}, NULL, 1.0, m.created_at, '', 0"
            f" FROM json_each(:ids) f CROSS JOIN memory_derivations d ON d.{near} = f.value"
            f" AND {view.text.derived_where('d')}"
            f" CROSS JOIN memories m ON m.memory_id = d.{far} WHERE {view.text.where('m')}"
        )
    statement = (
        f"SELECT * FROM ({' UNION ALL '.join(legs)})"
        " ORDER BY created_at, memory_id, origin, edge_id LIMIT :limit"
    )
    values = view.params | {"ids": _listed(ids), "limit": limit}
    return [Step._make(row) for row in _rows(snapshot, statement, values)]


def visible_memories(snapshot: Snapshot, ids: Collection[str], view: View) -> dict[str, Memory]:
    """Those of ``ids`` that are there and visible, in the order of ``ids``."""
    statement = (
        f"SELECT {view.text.memory_columns('m')} FROM json_each(:ids) f"
        f" CROSS JOIN memories m ON m.memory_id = f.value WHERE {view.text.where('m')}"
    )
    found = _rows(snapshot, statement, view.params | {"ids": _listed(ids)})
    return {row[0]: memory_from_row(row) for row in found}


def visible_memory(snapshot: Snapshot, memory_id: str, view: View) -> Memory:
    """One memory. Raises NotFound: it is not there or not visible; the two are not told apart."""
    found = visible_memories(snapshot, [memory_id], view)
    if memory_id not in found:
        raise NotFound(f"no memory {memory_id[:80]!r}", memory_id=memory_id[:80])
    return found[memory_id]


def sources_of(snapshot: Snapshot, memories: Collection[Memory]) -> tuple[StoredSource, ...]:
    """The sources of some memories, each once, by id."""
    wanted = sorted({memory.source_id for memory in memories})
    statement = (
        f"SELECT {columns(SOURCE_FIELDS, 's')} FROM json_each(?) f"
        " CROSS JOIN memory_sources s ON s.source_id = f.value"
    )
    found = _rows(snapshot, statement, (_listed(wanted),))
    return tuple(source_from_row(row) for row in found)


def status_history(
    snapshot: Snapshot, memory_id: str, *, until: int = MAX_MS
) -> tuple[StatusPeriod, ...]:
    """Every status of a memory, the first one first, as it was known at a time."""
    end = "CASE WHEN h.until <= :until THEN h.until END"
    fields = ", ".join(end if name == "until" else f"h.{name}" for name in STATUS_FIELDS)
    found = _rows(
        snapshot,
        f"SELECT {fields} FROM memory_status h"
        " WHERE h.memory_id = :memory_id AND h.since <= :until ORDER BY h.since, h.status_id",
        {"memory_id": memory_id, "until": until},
    )
    return tuple(status_from_row(row) for row in found)


def journal_about(
    snapshot: Snapshot, memory_id: str, limit: int, *, until: int = MAX_MS
) -> list[Any]:
    """(seq, at, actor, action, details as JSON) about a memory: the last ``limit`` until a time,
    in order.
    """
    found = _rows(
        snapshot,
        "SELECT seq, at, actor, action, details FROM audit_log WHERE subject = ?"
        " AND at <= ? ORDER BY seq DESC LIMIT ?",
        (memory_id, until, limit),
    )
    return found[::-1]


def _rows(
    snapshot: Snapshot, statement: str, values: Mapping[str, Any] | Sequence[Any]
) -> list[Any]:
    """All rows as plain tuples: with hundreds of them, the driver's own take half the time."""
    driver: Any = snapshot.driver
    found: list[Any] = driver.execute(statement, values).fetchall()
    return found


def _typed(alias: str, edge_types: Collection[EdgeType] | None) -> str:
    if edge_types is None:
        return "1"
    quoted = ", ".join(f"'{one.value}'" for one in sorted(set(edge_types)))
    return f"{alias}.edge_type IN ({quoted})"


def _listed(ids: Collection[str]) -> str:
    return json.dumps(list(ids))


# What recall asks of the graph: contradictions, replaced memories, the edges around its items.


def open_contradictions(
    snapshot: Snapshot, memory_ids: Collection[str], view: View, limit: int
) -> list[tuple[Side, Side]]:
    """Return the sides of the unresolved Contradicts edges of some memories, by both ids.

    The first side is one of ``memory_ids``; the other is active and visible.
    """
    still_open = f"{view.text.resolved_at('e')} IS NULL"
    standing = View(view.viewer, view.as_of, frozenset({MemoryStatus.ACTIVE}))
    legs = " UNION ALL ".join(
        f"SELECT {moment('o')}, f.value AS one, {moment('m')}, e.{far} AS other"
        " FROM json_each(:ids) f"
        f" CROSS JOIN memory_edges e ON e.{near} = f.value AND e.edge_type = 'Contradicts'"
        f" CROSS JOIN memories m ON m.memory_id = e.{far}"
        " CROSS JOIN memories o ON o.memory_id = f.value"
        f" WHERE {still_open} AND {view.text.edge_where('e')} AND {standing.text.where('m')}"
        for near, far in (("from_memory_id", "to_memory_id"), ("to_memory_id", "from_memory_id"))
    )
    values = standing.params | {"ids": json.dumps(list(memory_ids)), "limit": limit}
    found = plain_rows(snapshot, f"SELECT * FROM ({legs}) ORDER BY one, other LIMIT :limit", values)
    return [
        (Side(int(time), str(one)), Side(int(other_time), str(other)))
        for time, one, other_time, other in found
    ]


def replacements(
    snapshot: Snapshot, memory_ids: Collection[str], view: View, limit: int
) -> list[tuple[str, str]]:
    """(memory, what took its place) for some memories: what replaced one as a whole, oldest first,
    then what a contradiction with it was decided for.
    """
    whole = f"e.edge_type = 'Updates' AND NOT {view.text.partial('e')}"
    lost = f"json_extract({view.text.resolution('e')}, '$.loser_id') = f.value"
    ways = (
        (0, "to_memory_id", "from_memory_id", whole),
        (1, "to_memory_id", "from_memory_id", f"e.edge_type = 'Contradicts' AND {lost}"),
        (1, "from_memory_id", "to_memory_id", f"e.edge_type = 'Contradicts' AND {lost}"),
    )
    legs = " UNION ALL ".join(
        f"SELECT {way} AS way, e.created_at AS since, f.value AS old, e.{far} AS new"
        f" FROM json_each(:ids) f CROSS JOIN memory_edges e ON e.{near} = f.value AND {condition}"
        f" CROSS JOIN memories m ON m.memory_id = e.{far}"
        f" WHERE {view.text.edge_where('e')} AND {view.text.where('m')}"
        for way, near, far, condition in ways
    )
    values = view.params | {"ids": json.dumps(list(memory_ids)), "limit": limit}
    found = plain_rows(
        snapshot,
        f"SELECT old, new FROM ({legs}) ORDER BY way, since, new, old LIMIT :limit",
        values,
    )
    return [(str(old), str(new)) for old, new in found]


def edges_around(
    snapshot: Snapshot, memory_ids: Collection[str], view: View, per_memory: int, limit: int
) -> list[Edge]:
    """Edges of some memories whose other end is visible, each once: strongest, newest first.

    Args:
        per_memory: of each memory at most so many in and as many out.

    Raises:
        DatabaseCorrupt: a row is damaged.
    """
    statement = " UNION ALL ".join(
        f"SELECT {view.text.edge_columns('e')} FROM json_each(:ids) f CROSS JOIN memory_edges e"
        " WHERE e.rowid IN ("
        f"SELECT o.rowid FROM memory_edges o CROSS JOIN memories m ON m.memory_id = o.{far}"
        f" WHERE o.{near} = f.value AND {view.text.edge_where('o')} AND {view.text.where('m')}"
        " ORDER BY o.weight DESC, o.created_at DESC, o.edge_id DESC LIMIT :per_memory)"
        for near, far in (("from_memory_id", "to_memory_id"), ("to_memory_id", "from_memory_id"))
    )
    values = view.params | {"ids": json.dumps(list(memory_ids)), "per_memory": per_memory}
    # An edge between two of them comes twice.
    found = {row[0]: row for row in plain_rows(snapshot, statement, values)}
    try:
        strongest = sorted(found.values(), key=_STRENGTH, reverse=True)
    except TypeError as error:
        raise unreadable("edge", None) from error
    return [edge_from_row(row) for row in strongest[:limit]]
