"""What changed since a receipt was written, about some memories."""

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


class Change(NamedTuple):
    """An entry of the journal that is about a memory."""

    memory_id: str
    seq: int
    at: int
    actor: str
    action: str
    subject: str


def known_until(connection: sa.Connection, seq: int, at: int) -> int:
    """As of when an answer of a time knew what it did: the entry ``seq``, and not the next one.

    A change is dated when it begins to be written and seen when it is done, so that the next one
    may bear an earlier time than the answer that did not know it. Two of the same millisecond, or
    of a clock that was set back between them, are not told apart: then both count as known.
    """
    statement = "SELECT seq, at FROM audit_log WHERE seq IN (:seq, :seq + 1)"
    times: dict[int, int] = dict(driver(connection).execute(statement, {"seq": seq}).fetchall())
    return max(times.get(seq, 0), min(at, times.get(seq + 1, at + 1) - 1))


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
