"""What the journal tells of the two sides of a contradiction, and of pairs that are none."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from memgraph.model.values import Edge
from memgraph.storage.recall_queries import plain_rows


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


def _latest(until: int | None) -> int:
    return 2**63 - 1 if until is None else until
