"""What recall asks of the graph: contradictions, replaced memories, the edges around its items."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa

from memgraph.model.enums import EdgeType, MemoryStatus, MemoryType
from memgraph.model.values import Edge
from memgraph.policy.conflicts import Side
from memgraph.storage.recall_queries import plain_rows
from memgraph.storage.rows import edge_from_row
from memgraph.storage.visibility import View


def has_replaced(connection: sa.Connection) -> bool:
    """Whether any memory is superseded: one look into the index of types and status."""
    types = ", ".join(f"'{each.value}'" for each in MemoryType)
    [(found,)] = plain_rows(
        connection,
        f"SELECT EXISTS (SELECT 1 FROM memories WHERE type IN ({types}) AND status = 'superseded')",
        (),
    )
    return bool(found)


def open_contradictions(
    connection: sa.Connection, memory_ids: Collection[str], view: View, limit: int
) -> list[tuple[Side, Side]]:
    """Return the sides of the unresolved Contradicts edges of some memories, by both ids.

    The first side is one of ``memory_ids``; the other is active and visible.
    """
    still_open = f"{view.resolved_at('e')} IS NULL"
    standing = View(view.viewer, view.as_of, frozenset({MemoryStatus.ACTIVE}))
    legs = " UNION ALL ".join(
        f"SELECT coalesce(o.event_time, o.created_at), f.value AS one,"
        f" coalesce(m.event_time, m.created_at), e.{far} AS other FROM json_each(:ids) f"
        f" CROSS JOIN memory_edges e ON e.{near} = f.value AND e.edge_type = 'Contradicts'"
        f" CROSS JOIN memories m ON m.memory_id = e.{far}"
        " CROSS JOIN memories o ON o.memory_id = f.value"
        f" WHERE {still_open} AND {view.edge_where('e')} AND {standing.where('m')}"
        for near, far in (("from_memory_id", "to_memory_id"), ("to_memory_id", "from_memory_id"))
    )
    values = standing.params | {"ids": json.dumps(list(memory_ids)), "limit": limit}
    found = plain_rows(
        connection, f"SELECT * FROM ({legs}) ORDER BY one, other LIMIT :limit", values
    )
    return [
        (Side(int(time), str(one)), Side(int(other_time), str(other)))
        for time, one, other_time, other in found
    ]


def replacements(
    connection: sa.Connection, memory_ids: Collection[str], view: View, limit: int
) -> list[tuple[str, str]]:
    """(memory, what took its place) for some memories: what replaced one as a whole, oldest first,
    then what a contradiction with it was decided for.
    """
    whole = f"e.edge_type = 'Updates' AND NOT {view.partial('e')}"
    lost = f"json_extract({view.resolution('e')}, '$.loser_id') = f.value"
    ways = (
        (0, "to_memory_id", "from_memory_id", whole),
        (1, "to_memory_id", "from_memory_id", f"e.edge_type = 'Contradicts' AND {lost}"),
        (1, "from_memory_id", "to_memory_id", f"e.edge_type = 'Contradicts' AND {lost}"),
    )
    legs = " UNION ALL ".join(
        f"SELECT {way} AS way, e.created_at AS since, f.value AS old, e.{far} AS new"
        f" FROM json_each(:ids) f CROSS JOIN memory_edges e ON e.{near} = f.value AND {condition}"
        f" CROSS JOIN memories m ON m.memory_id = e.{far}"
        f" WHERE {view.edge_where('e')} AND {view.where('m')}"
        for way, near, far, condition in ways
    )
    values = view.params | {"ids": json.dumps(list(memory_ids)), "limit": limit}
    found = plain_rows(
        connection,
        f"SELECT old, new FROM ({legs}) ORDER BY way, since, new, old LIMIT :limit",
        values,
    )
    return [(str(old), str(new)) for old, new in found]


def edges_around(
    connection: sa.Connection, memory_ids: Collection[str], view: View, per_memory: int, limit: int
) -> list[Edge]:
    """Edges of some memories whose other end is visible, each once: strongest, newest first.

    Args:
        per_memory: of each memory at most so many in and as many out.
    """
    chosen = " UNION ".join(
        f"SELECT e.rowid FROM json_each(:ids) f CROSS JOIN memory_edges e WHERE e.rowid IN ("
        f"SELECT o.rowid FROM memory_edges o CROSS JOIN memories m ON m.memory_id = o.{far}"
        f" WHERE o.{near} = f.value AND {view.edge_where('o')} AND {view.where('m')}"
        " ORDER BY o.weight DESC, o.created_at DESC, o.edge_id DESC LIMIT :per_memory)"
        for near, far in (("from_memory_id", "to_memory_id"), ("to_memory_id", "from_memory_id"))
    )
    statement = (
        f"SELECT {view.edge_columns('x')} FROM memory_edges x WHERE x.rowid IN ({chosen})"
        " ORDER BY x.weight DESC, x.created_at DESC, x.edge_id DESC LIMIT :limit"
    )
    values = view.params | {
        "ids": json.dumps(list(memory_ids)),
        "per_memory": per_memory,
        "limit": limit,
    }
    return [edge_from_row(row) for row in plain_rows(connection, statement, values)]


@dataclass(frozen=True, slots=True)
class Ties:
    """What joins memories in a database: types of edges that there are, and derivations if any."""

    edge_types: frozenset[EdgeType]
    derivations: bool

    def __bool__(self) -> bool:
        return bool(self.edge_types) or self.derivations


def ties(connection: sa.Connection) -> Ties:
    """One look into an index for each type of edge."""
    of_type = ", ".join(
        f"EXISTS (SELECT 1 FROM memory_edges WHERE edge_type = '{each.value}')" for each in EdgeType
    )
    [(*found, derivations)] = plain_rows(
        connection, f"SELECT {of_type}, EXISTS (SELECT 1 FROM memory_derivations)", ()
    )
    present = frozenset(each for each, there in zip(EdgeType, found, strict=True) if there)
    return Ties(present, bool(derivations))
