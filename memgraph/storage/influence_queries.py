"""Receipts by the memories that they name, and memories by the run or conversation they come from.

A receipt is there for whoever may see every memory that it names; another one is neither listed
nor counted. What repeats an earlier receipt has the earlier one's items.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, Final, Literal

import sqlalchemy as sa

from memgraph.model.influence import HandOut, SourceTurn
from memgraph.storage.statements import driver
from memgraph.storage.visibility import View

Place = Literal["workflow_run_id", "conversation_id"]
PURPOSE: Final = "recall"
"""Of a receipt that names no other."""

# The receipts that hold the items of the one in question: itself, or the one that it repeats.
_HOLDER: Final = "coalesce(r.same_as, r.recall_id)"
_HEAD: Final = (
    "r.recall_id, r.created_at,"
    f" coalesce(r.purpose, json_extract(r.request, '$.purpose'), '{PURPOSE}'), r.actor,"
    " r.conversation_id, r.workflow_run_id, r.step_id, r.bulletin_id, r.same_as"
)
# Every receipt with one of the memories: by its items, by those that it repeats, by its bulletin.
# A bulletin's own receipt has what it cites as its items; where that one became too old while the
# receipt of a turn is kept, only the bulletin itself tells.
_NAMING: Final = """
    WITH held (recall_id) AS (
        SELECT DISTINCT i.recall_id FROM json_each(:ids) f
        CROSS JOIN recall_items i ON i.memory_id = f.value),
    cited (bulletin_id) AS (
        SELECT r.bulletin_id FROM held h CROSS JOIN recalls r ON r.recall_id = h.recall_id
            WHERE r.purpose = 'bulletin'
        UNION SELECT b.bulletin_id FROM bulletins b WHERE NOT EXISTS (
            SELECT 1 FROM recalls r INDEXED BY ix_recalls_bulletin_id
            WHERE r.bulletin_id = b.bulletin_id AND r.purpose = 'bulletin' AND r.same_as IS NULL)
        AND EXISTS (SELECT 1 FROM json_each(b.memory_ids) c
            WHERE c.value IN (SELECT value FROM json_each(:ids)))),
    found (recall_id) AS (
        SELECT recall_id FROM held
        UNION SELECT r.recall_id FROM held h CROSS JOIN recalls r
            INDEXED BY ix_recalls_same_as ON r.same_as = h.recall_id
        UNION SELECT r.recall_id FROM cited c CROSS JOIN recalls r
            INDEXED BY ix_recalls_bulletin_id ON r.bulletin_id = c.bulletin_id),
    ordered (recall_id) AS (
        SELECT r.recall_id FROM found f CROSS JOIN recalls r ON r.recall_id = f.recall_id
        ORDER BY r.created_at DESC, r.recall_id DESC LIMIT -1)
"""
_ITEMS: Final = (
    "SELECT f.value, i.memory_id FROM json_each(:holders) f CROSS JOIN recall_items i"
    " ON i.recall_id = f.value ORDER BY f.value, i.rank"
)
_CITED: Final = (
    "SELECT b.bulletin_id, b.memory_ids FROM json_each(:bulletins) f CROSS JOIN bulletins b"
    " ON b.bulletin_id = f.value"
)


def naming(
    connection: sa.Connection, memory_ids: Collection[str], view: View, *, limit: int
) -> list[HandOut]:
    """Receipts that name any of the memories, the newest first, at most ``limit``."""
    # The sorted ones are looked at one by one until there are enough.
    statement = (
        f"{_NAMING} SELECT {_HEAD} FROM ordered o CROSS JOIN recalls r ON r.recall_id = o.recall_id"
        f" WHERE {_seen(view)} LIMIT :limit"
    )
    values = view.params | {"ids": _listed(memory_ids), "limit": limit}
    return _hand_outs(connection, statement, values, frozenset(memory_ids))


def given_to(
    connection: sa.Connection,
    place: Place,
    name: str,
    view: View,
    *,
    limit: int,
    before: int | None = None,
) -> list[HandOut]:
    """Receipts for a run or a conversation, the newest first, at most ``limit``.

    Args:
        before: milliseconds; only those of an earlier time.
    """
    earlier = "" if before is None else "AND r.created_at < :before"
    statement = (
        f"SELECT {_HEAD} FROM recalls r INDEXED BY ix_recalls_{place} WHERE r.{place} = :name"
        f" {earlier} AND {_seen(view)} ORDER BY r.created_at DESC, r.recall_id DESC LIMIT :limit"
    )
    values = view.params | {"name": name, "before": before, "limit": limit}
    return _hand_outs(connection, statement, values, None)


def left_by(
    connection: sa.Connection, place: Place, since: Mapping[str, int], view: View, *, limit: int
) -> list[tuple[str, str]]:
    """What comes from runs or conversations and was stored at a time or later, oldest first.

    Args:
        since: milliseconds, by the id of the run or the conversation.
        limit: of each of them.

    Returns:
        Pairs of the id of the run or the conversation, and of a memory.
    """
    # Each name by itself: of one that left ten thousand no more than the first few are read.
    statement = (
        "SELECT m.memory_id FROM memory_sources s"
        f" INDEXED BY ix_memory_sources_{place} CROSS JOIN memories m ON m.source_id = s.source_id"
        f" WHERE s.{place} = :name AND m.kind <> 'episode' AND m.created_at >= :since"
        f" AND {view.where('m')} ORDER BY m.created_at, m.memory_id LIMIT :limit"
    )
    execute = driver(connection).execute
    return [
        (name, memory_id)
        for name, at in since.items()
        for (memory_id,) in execute(
            statement, view.params | {"name": name, "since": at, "limit": limit}
        )
    ]


def turns_of(
    connection: sa.Connection, memory_id: str, view: View, *, limit: int
) -> list[SourceTurn]:
    """The turns that a memory was derived from and that the view shows, as they were said."""
    statement = (
        "SELECT m.memory_id, m.session_id, m.sequence, m.source_role,"
        " coalesce(m.event_time, m.created_at), m.content"
        " FROM memory_derivations d CROSS JOIN memories m ON m.memory_id = d.derived_from_id"
        f" WHERE d.memory_id = :memory_id AND m.kind = 'episode' AND {view.where('m')}"
        " ORDER BY m.session_id, m.sequence, m.created_at, m.memory_id LIMIT :limit"
    )
    values = view.params | {"memory_id": memory_id, "limit": limit}
    return [
        SourceTurn(
            memory_id=row[0],
            session_id=row[1],
            sequence=row[2],
            speaker=row[3],
            at=row[4],
            text=row[5],
        )
        for row in driver(connection).execute(statement, values)
    ]


def hidden_locators(connection: sa.Connection, sha256: str, view: View) -> list[str | None]:
    """Where in a content memories were read that the view does not show."""
    statement = (
        "SELECT DISTINCT s.locator FROM memory_sources s"
        " CROSS JOIN memories m ON m.source_id = s.source_id"
        f" WHERE s.content_sha256 = :sha256 AND ({view.where('m')}) IS NOT TRUE"
    )
    found = driver(connection).execute(statement, view.params | {"sha256": sha256})
    return [row[0] for row in found]


def _seen(view: View) -> str:
    """Whether no memory that the receipt names is hidden; one that was erased hides nothing."""
    hidden = f"({view.where('v')}) IS NOT TRUE"
    return (
        "NOT EXISTS (SELECT 1 FROM recall_items w CROSS JOIN memories v"
        f" ON v.memory_id = w.memory_id WHERE w.recall_id = {_HOLDER} AND {hidden})"
        " AND NOT EXISTS (SELECT 1 FROM bulletins b CROSS JOIN json_each(b.memory_ids) c"
        f" CROSS JOIN memories v ON v.memory_id = c.value WHERE b.bulletin_id = r.bulletin_id"
        f" AND {hidden})"
        " AND NOT EXISTS (SELECT 1 FROM json_each(r.request, '$.bulletin.memory_ids') c"
        f" CROSS JOIN memories v ON v.memory_id = c.value WHERE {hidden})"
    )


def _hand_outs(
    connection: sa.Connection,
    statement: str,
    values: Mapping[str, Any],
    wanted: frozenset[str] | None,
) -> list[HandOut]:
    """With the ids in each; of those the ``wanted`` ones, None: all."""
    rows = driver(connection).execute(statement, values).fetchall()
    holders = {row[8] or row[0] for row in rows}
    items: dict[str, list[str]] = {}
    for holder, memory_id in driver(connection).execute(_ITEMS, {"holders": _listed(holders)}):
        items.setdefault(holder, []).append(memory_id)
    bulletins = {row[7] for row in rows if row[7] is not None}
    cited = {
        bulletin_id: json.loads(ids)
        for bulletin_id, ids in driver(connection).execute(
            _CITED, {"bulletins": _listed(bulletins)}
        )
    }
    return [
        HandOut(
            receipt_id=row[0],
            at=row[1],
            purpose=row[2],
            actor=row[3],
            memory_ids=_wanted(
                (*items.get(row[8] or row[0], ()), *cited.get(row[7] or "", ())), wanted
            ),
            conversation_id=row[4],
            workflow_run_id=row[5],
            step_id=row[6],
            bulletin_id=row[7],
            same_as=row[8],
        )
        for row in rows
    ]


def _wanted(ids: Collection[str], wanted: frozenset[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for one in ids if wanted is None or one in wanted))


def _listed(ids: Collection[str]) -> str:
    return json.dumps(sorted(ids))
