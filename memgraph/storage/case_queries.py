"""What the journal tells of the two sides of a contradiction, and of pairs that are none."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from memgraph.model.values import Edge
from memgraph.policy.lifecycle import DISMISSED
from memgraph.storage.recall_queries import plain_rows
from memgraph.storage.visibility import View


def was_confirmed(connection: sa.Connection, memory_id: str, *, until: int | None) -> bool:
    """Whether somebody confirmed a memory, by a time in milliseconds; None: ever."""
    found = plain_rows(
        connection,
        "SELECT 1 FROM audit_log WHERE subject = ? AND action = 'confirm' AND at <= ? LIMIT 1",
        (memory_id, _latest(until)),
    )
    return bool(found)


def journal_of_edge(
    connection: sa.Connection, edge: Edge, *, until: int | None, limit: int
) -> list[Any]:
    """(seq, at, actor, action, details as JSON) about an edge: the last ``limit``, in order.

    Args:
        until: milliseconds, included; None: all.
    """
    found = plain_rows(
        connection,
        "SELECT seq, at, actor, action, details FROM audit_log WHERE subject IN (?, ?) AND at <= ?"
        " AND json_valid(details) AND json_extract(details, '$.edge_id') = ?"
        " ORDER BY seq DESC LIMIT ?",
        (edge.from_id, edge.to_id, _latest(until), edge.edge_id, limit),
    )
    return found[::-1]


def dismissed_alike(
    connection: sa.Connection, one_id: str, other_id: str, view: View | None
) -> str | None:
    """The edge of a dismissed contradiction of what two memories say, in their own places.

    Args:
        view: who asks; of memories that they may not see they are told nothing. None: of all.
    """
    seen = "" if view is None else f" AND {view.where('a')} AND {view.where('b')}"
    same = " AND ".join(
        f"{copy}.content_hash = {side}.content_hash AND {copy}.kind <> 'episode'"
        f" AND {copy}.scope = {side}.scope AND {copy}.scope_id IS {side}.scope_id"
        f" AND {copy}.agent_id IS {side}.agent_id"
        for copy, side in (("a", "x"), ("b", "y"))
    )
    ways = " UNION ALL ".join(
        "SELECT e.edge_id FROM memories x CROSS JOIN memories y CROSS JOIN memories a"
        f" CROSS JOIN memory_edges e ON e.{near} = a.memory_id AND e.edge_type = 'Contradicts'"
        f" CROSS JOIN memories b ON b.memory_id = e.{far}"
        f" WHERE x.memory_id = :one AND y.memory_id = :other AND {same}"
        f" AND json_extract(e.resolution, '$.outcome') = '{DISMISSED}'{seen}"
        for near, far in (("from_memory_id", "to_memory_id"), ("to_memory_id", "from_memory_id"))
    )
    values = {} if view is None else view.params
    found = plain_rows(
        connection,
        f"SELECT min(edge_id) FROM ({ways})",
        {**values, "one": one_id, "other": other_id},
    )
    return None if found[0][0] is None else str(found[0][0])


def _latest(until: int | None) -> int:
    return 2**63 - 1 if until is None else until
