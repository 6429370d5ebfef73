"""What changed since a receipt was written, about some memories, and what they were then."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Final, NamedTuple

import sqlalchemy as sa

from memgraph.storage.statements import driver
from memgraph.storage.visibility import View

MOST_ENTRIES: Final = 200

_OF_MEMORY: Final = (
    "SELECT f.value, a.seq, a.at, a.actor, a.action, a.subject FROM json_each(:ids) f"
    " CROSS JOIN audit_log a ON a.subject = f.value WHERE a.seq > :seq"
)
# Bulletins and looks at the past are no accesses.
_COUNTERS: Final = (
    "SELECT m.memory_id, m.access_count - (SELECT count(*) FROM recall_items i"
    " CROSS JOIN recalls r ON r.recall_id = i.recall_id WHERE i.memory_id = m.memory_id"
    " AND r.created_at >= :at AND r.purpose IS NOT 'bulletin' AND r.request ->> '$.as_of' IS NULL),"
    " CASE WHEN m.updated_at <= :at THEN m.updated_at ELSE max(m.created_at,"
    " coalesce((SELECT max(h.since) FROM memory_status h WHERE h.memory_id = m.memory_id"
    " AND h.since <= :at), 0), coalesce((SELECT max(v.until) FROM memory_revisions v"
    " WHERE v.memory_id = m.memory_id AND v.until <= :at), 0)) END"
    " FROM json_each(:ids) f CROSS JOIN memories m ON m.memory_id = f.value"
)


class Change(NamedTuple):
    """An entry of the journal that is about a memory."""

    memory_id: str
    seq: int
    at: int
    actor: str
    action: str
    subject: str


class Counters(NamedTuple):
    """What a memory's row said at a time, as far as receipts and history tell."""

    access_count: int
    updated_at: int


def changes_since(
    connection: sa.Connection, seq: int, memory_ids: Collection[str], view: View
) -> list[Change]:
    """Entries after ``seq`` about these memories, or about edges of theirs between memories that
    the view shows: the first ``MOST_ENTRIES`` and one more, by seq.
    """
    of_edge = (
        "SELECT f.value, a.seq, a.at, a.actor, a.action, a.subject FROM json_each(:ids) f"
        " CROSS JOIN memory_edges e ON e.{end} = f.value"
        " CROSS JOIN memories o ON o.memory_id = e.{other}"
        " CROSS JOIN audit_log a ON a.subject = o.memory_id"
        f" WHERE a.seq > :seq AND a.details ->> '$.edge_id' = e.edge_id AND {view.where('o')}"
    )
    ends = {"from_memory_id": "to_memory_id", "to_memory_id": "from_memory_id"}
    parts = [_OF_MEMORY, *(of_edge.format(end=end, other=other) for end, other in ends.items())]
    statement = f"{' UNION '.join(parts)} ORDER BY 2, 1 LIMIT {MOST_ENTRIES + 1}"
    values = {**view.params, "seq": seq, "ids": json.dumps(sorted(memory_ids))}
    return [Change._make(row) for row in driver(connection).execute(statement, values)]


def counters(
    connection: sa.Connection, memory_ids: Collection[str], at: int
) -> dict[str, Counters]:
    """How often these memories had been asked for before a time, and when they had changed."""
    values = {"ids": json.dumps(list(memory_ids)), "at": at}
    found = driver(connection).execute(_COUNTERS, values)
    return {memory_id: Counters(max(count, 0), at) for memory_id, count, at in found}
