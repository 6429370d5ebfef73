"""How memories came to their end, as ``memgraph.policy.endings`` wants to know it."""

from __future__ import annotations

import json
from collections.abc import Collection
from itertools import takewhile

import sqlalchemy as sa

from memgraph.model.enums import MemoryStatus
from memgraph.policy.endings import Ending
from memgraph.storage.recall_queries import plain_rows
from memgraph.storage.visibility import View


def endings(
    connection: sa.Connection, memory_ids: Collection[str], view: View
) -> dict[str, Ending]:
    """The ending of each of some visible memories, as it is or as it was at the view's time.

    The statuses that the view shows do not matter: what is gone has an ending too.
    """
    anyone = View(view.viewer, view.as_of)
    status = anyone.status("m")
    # Only of those that came to an end: most have not.
    found = plain_rows(
        connection,
        "SELECT memory_id, status,"
        f" CASE WHEN status <> 'active' THEN {_reason(anyone)} END,"
        f" CASE WHEN status <> 'active' THEN {_lost(anyone)} ELSE 0 END"
        f" FROM (SELECT m.memory_id, {status} AS status FROM json_each(:ids) f"
        f" CROSS JOIN memories m ON m.memory_id = f.value WHERE {anyone.where('m')}) ended",
        anyone.params | {"ids": json.dumps(list(memory_ids))},
    )
    return {
        str(one): Ending(MemoryStatus(status), reason, bool(lost))
        for one, status, reason, lost in found
    }


def last_retractions(connection: sa.Connection, memory_id: str) -> tuple[str | None, ...]:
    """The reasons of the last two periods of a retracted memory, as far as both are such."""
    found = plain_rows(
        connection,
        "SELECT status, reason FROM memory_status WHERE memory_id = :id"
        " ORDER BY since DESC, status_id DESC LIMIT 2",
        {"id": memory_id},
    )
    told = takewhile(lambda row: row[0] == MemoryStatus.RETRACTED, found)
    return tuple(reason for _, reason in told)


def _reason(view: View) -> str:
    then = "h.until IS NULL"
    if view.as_of is not None:
        then = "h.since <= :view_as_of AND (h.until IS NULL OR h.until > :view_as_of)"
    return (
        "(SELECT h.reason FROM memory_status h WHERE h.memory_id = ended.memory_id"
        f" AND {then} ORDER BY h.since DESC, h.status_id DESC LIMIT 1)"
    )


def _lost(view: View) -> str:
    ends = " UNION ALL ".join(
        f"SELECT 1 FROM memory_edges e WHERE e.{end} = ended.memory_id"
        " AND e.edge_type = 'Contradicts'"
        f" AND json_extract({view.resolution('e')}, '$.loser_id') = ended.memory_id"
        for end in ("from_memory_id", "to_memory_id")
    )
    return f"EXISTS ({ends})"
