"""Receipts by the memories that they name, and memories by the run or conversation they come from.

A receipt is there for whoever may see every memory that it names, and of a bulletin all that its
asker could see; another one is neither listed nor counted. What repeats an earlier receipt has the
earlier one's items.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from memgraph.clock import MAX_MS, parse_time
from memgraph.model.influence import HandOut, SourceTurn
from memgraph.store.receipts import covered
from memgraph.store.rows import built
from memgraph.store.snapshot import Snapshot, driver
from memgraph.store.visibility import View

Place = Literal["workflow_run_id", "conversation_id"]
PURPOSE: Final = "recall"
"""Of a receipt that names no other."""

_HEAD: Final = (
    "r.recall_id, r.created_at, coalesce(r.purpose, r.request ->> '$.purpose'), r.actor,"
    " r.conversation_id, r.workflow_run_id, r.step_id, r.bulletin_id, r.same_as,"
    " r.request ->> '$.as_of', r.request -> '$.bulletin.memory_ids', r.viewer"
)
# So many receipts are looked into at once.
_BLOCK: Final = 500
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
# All in one value: ten thousand rows would take longer to hand over than to read.
_ITEMS: Final = (
    "SELECT json_group_object(f.value, json((SELECT json_group_array(i.memory_id ORDER BY i.rank)"
    " FROM recall_items i WHERE i.recall_id = f.value))) FROM json_each(:holders) f"
)
_CITED: Final = (
    "SELECT b.bulletin_id, b.memory_ids FROM json_each(:bulletins) f CROSS JOIN bulletins b"
    " ON b.bulletin_id = f.value"
)


def naming(
    snapshot: Snapshot,
    memory_ids: Collection[str],
    view: View,
    *,
    limit: int,
    until: int = MAX_MS,
) -> list[HandOut]:
    """Receipts that name any of the memories, the newest first, at most ``limit``.

    Args:
        until: milliseconds, included; what was handed out later counts for nothing.
    """
    statement = (
        f"{_NAMING} SELECT {_HEAD} FROM ordered o CROSS JOIN recalls r ON r.recall_id = o.recall_id"
        " WHERE r.created_at <= :until"
    )
    rows = driver(snapshot).execute(statement, {"ids": _listed(memory_ids), "until": until})
    return _hand_outs(_Names(snapshot, view), rows, limit, frozenset(memory_ids))


def given_to(
    snapshot: Snapshot,
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
        f" {earlier} ORDER BY r.created_at DESC, r.recall_id DESC"
    )
    rows = driver(snapshot).execute(statement, {"name": name, "before": before})
    return _hand_outs(_Names(snapshot, view), rows, limit, None)


def left_by(
    snapshot: Snapshot, place: Place, since: Mapping[str, int], view: View, *, limit: int
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
        f" AND {view.text.where('m')} ORDER BY m.created_at, m.memory_id LIMIT :limit"
    )
    execute = driver(snapshot).execute
    return [
        (name, memory_id)
        for name, at in since.items()
        for (memory_id,) in execute(
            statement, view.params | {"name": name, "since": at, "limit": limit}
        )
    ]


def turns_of(snapshot: Snapshot, memory_id: str, view: View, *, limit: int) -> list[SourceTurn]:
    """The turns that a memory was derived from and that the view shows, as they were said."""
    statement = (
        "SELECT m.memory_id, m.session_id, m.sequence, m.source_role,"
        " coalesce(m.event_time, m.created_at), m.content"
        " FROM memory_derivations d CROSS JOIN memories m ON m.memory_id = d.derived_from_id"
        f" WHERE d.memory_id = :memory_id AND m.kind = 'episode' AND {view.text.where('m')}"
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
        for row in driver(snapshot).execute(statement, values)
    ]


def hidden_locators(snapshot: Snapshot, sha256: str, view: View) -> list[str | None]:
    """Where in a content memories were read, or said again, that the view does not show."""
    hidden = f"s.content_sha256 = :sha256 AND ({view.text.where('m')}) IS NOT TRUE"
    statement = (
        "SELECT s.locator FROM memory_sources s"
        f" CROSS JOIN memories m ON m.source_id = s.source_id WHERE {hidden}"
        " UNION SELECT s.locator FROM memory_sources s"
        " CROSS JOIN memory_supports p ON p.source_id = s.source_id"
        f" CROSS JOIN memories m ON m.memory_id = p.memory_id WHERE {hidden}"
    )
    found = driver(snapshot).execute(statement, view.params | {"sha256": sha256})
    return [row[0] for row in found]


class _Head(NamedTuple):
    """A row of ``_HEAD``. ``as_of`` is ISO 8601; ``beside`` and ``viewer`` are JSON."""

    receipt_id: str
    at: int
    purpose: str | None
    actor: str | None
    conversation_id: str | None
    workflow_run_id: str | None
    step_id: str | None
    bulletin_id: str | None
    same_as: str | None
    as_of: str | None
    beside: str | None
    viewer: str | None

    @property
    def holder(self) -> str:
        """The receipt that has its items: itself, or the one that it repeats."""
        return self.same_as or self.receipt_id


class _Names:
    """What receipts name, and whether any of that is hidden; each memory is looked at once."""

    def __init__(self, snapshot: Snapshot, view: View) -> None:
        self._execute = driver(snapshot).execute
        self._params = view.params
        self._reader = view.viewer
        self._covered: dict[str | None, bool] = {}
        self._hidden_of = (
            "SELECT v.memory_id FROM json_each(:ids) f CROSS JOIN memories v"
            f" ON v.memory_id = f.value WHERE ({view.text.where('v')}) IS NOT TRUE"
        )
        self._items: dict[str, list[str]] = {}
        self._cited: dict[str, list[str]] = {}
        self._known: set[str] = set()
        self._hidden: set[str] = set()

    def of(self, heads: Sequence[_Head]) -> Iterator[tuple[_Head, list[str]]]:
        """Those that name nothing hidden, with what they name; what was erased hides nothing.

        Those of bulletins are for readers who see as much as their askers.
        """
        self._read(heads)
        named = [self._named(head) for head in heads]
        fresh = set().union(*named) - self._known
        values = self._params | {"ids": _listed(fresh)}
        self._hidden |= {one for (one,) in self._execute(self._hidden_of, values)}
        self._known |= fresh
        for head, ids in zip(heads, named, strict=True):
            if self._hidden.isdisjoint(ids) and (
                head.bulletin_id is None or self._is_covered(head)
            ):
                yield head, ids

    def _is_covered(self, head: _Head) -> bool:
        """Whether the reader sees all that the asker saw."""
        if head.viewer not in self._covered:
            self._covered[head.viewer] = covered(self._reader, head.receipt_id, head.viewer)
        return self._covered[head.viewer]

    def _read(self, heads: Sequence[_Head]) -> None:
        holders = {head.holder for head in heads} - self._items.keys()
        bulletins = {head.bulletin_id for head in heads if head.bulletin_id} - self._cited.keys()
        [(items,)] = self._execute(_ITEMS, {"holders": _listed(holders)})
        self._items |= json.loads(items)
        for bulletin_id, ids in self._execute(_CITED, {"bulletins": _listed(bulletins)}):
            self._cited[bulletin_id] = json.loads(ids)

    def _named(self, head: _Head) -> list[str]:
        items = self._items[head.holder]
        if head.bulletin_id is None and head.beside is None:
            return items
        beside = json.loads(head.beside or "null") or ()
        return [*items, *self._cited.get(head.bulletin_id or "", ()), *beside]


def _hand_outs(
    names: _Names, rows: Any, limit: int, wanted: frozenset[str] | None
) -> list[HandOut]:
    """The first ``limit`` that name nothing hidden, with the ids that they name.

    Args:
        rows: a cursor; it is read as far as it has to be.
        wanted: ids that are told; None: all.
    """
    found: list[HandOut] = []
    while len(found) < limit and (block := rows.fetchmany(min(limit, _BLOCK))):
        heads = [_Head._make(row) for row in block]
        found += [_hand_out(head, _wanted(ids, wanted)) for head, ids in names.of(heads)]
    rows.close()
    return found[:limit]


def _hand_out(head: _Head, memory_ids: tuple[str, ...]) -> HandOut:
    fields = {
        "receipt_id": head.receipt_id,
        "at": head.at,
        "purpose": head.purpose or PURPOSE,
        "actor": head.actor,
        "memory_ids": memory_ids,
        "conversation_id": head.conversation_id,
        "workflow_run_id": head.workflow_run_id,
        "step_id": head.step_id,
        "bulletin_id": head.bulletin_id,
        "same_as": head.same_as,
        # A request is kept as JSON, where a time is ISO 8601.
        "as_of": None if head.as_of is None else parse_time(head.as_of),
    }
    return built(HandOut, fields)


def _wanted(ids: Collection[str], wanted: frozenset[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ids if wanted is None else filter(wanted.__contains__, ids)))


def _listed(ids: Collection[str]) -> str:
    return json.dumps(sorted(ids))
