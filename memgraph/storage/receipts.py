"""Receipts of what was handed out: written after the answer was given, never while it is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import sqlalchemy as sa

from memgraph.errors import InvalidInput
from memgraph.model.receipts import Receipt, ReceiptItem
from memgraph.policy.scope import Viewer
from memgraph.policy.viewers import covers, viewer_of
from memgraph.storage.encoding import json_text
from memgraph.storage.rows import unreadable
from memgraph.storage.visibility import View

MAX_KEPT_QUERY_CHARS = 2_000
BULLETIN = "bulletin"
"""What a receipt of a bulletin is for."""

_COLUMNS = (
    "recall_id, created_at, query, request, purpose, actor, conversation_id, workflow_run_id,"
    " step_id, query_sha256, change_seq, viewer, settings_sha256, left_out, sha256, same_as,"
    " bulletin_id"
)
_NAMES = _COLUMNS.split(", ")
# Those that a receipt has under the same name and as they are.
_PLAIN = (
    "purpose",
    "actor",
    "conversation_id",
    "workflow_run_id",
    "step_id",
    "query_sha256",
    "change_seq",
    "settings_sha256",
    "sha256",
    "same_as",
    "bulletin_id",
)
_HEAD = f"INSERT OR IGNORE INTO recalls ({_COLUMNS}) VALUES ({', '.join('?' * 17)})"
_ITEM = (
    "INSERT INTO recall_items (recall_id, rank, memory_id, score, explanation)"
    " SELECT ?1, ?2, memory_id, ?3, ?4 FROM memories WHERE memory_id = ?5"
)
_READ_HEAD = f"SELECT {_COLUMNS} FROM recalls WHERE recall_id = ?"
_READ_ITEMS = (
    "SELECT memory_id, score, explanation FROM recall_items WHERE recall_id = ? ORDER BY rank"
)
_LAST_BULLETIN = (
    "SELECT bulletin_id, sha256 FROM bulletins WHERE view_key = ?"
    " ORDER BY created_at DESC, bulletin_id DESC LIMIT 1"
)
_ADD_BULLETIN = (
    "INSERT OR IGNORE INTO bulletins (bulletin_id, created_at, change_seq, view_key, viewer,"
    " settings, sha256, memory_ids, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_FIRST_OF_BULLETIN = (
    "SELECT min(recall_id) FROM recalls"
    f" WHERE bulletin_id = ? AND same_as IS NULL AND purpose = '{BULLETIN}'"
)
_BULLETIN_OF = "SELECT bulletin_id FROM recalls WHERE recall_id = ?"
_COUNT = (
    "UPDATE memories SET access_count = access_count + ?1,"
    " last_accessed_at = max(coalesce(last_accessed_at, ?2), ?2) WHERE memory_id = ?3"
)


class ShownBulletin(NamedTuple):
    """A bulletin that was handed out: its columns in ``bulletins``, but for id and time."""

    change_seq: int
    view_key: str
    viewer: str
    settings: str
    sha256: str
    memory_ids: tuple[str, ...]
    body: str


@dataclass(frozen=True, slots=True)
class HandedOut:
    """A receipt that is to be written, and what is written beside it.

    Attributes:
        hidden: memories that the asker might not see, by reason, as far as they were looked for.
        bulletin: what was handed out, if it was a bulletin.
        beside: the receipt of a bulletin that was handed out together with this.
    """

    receipt: Receipt
    hidden: Mapping[str, Sequence[str]] = field(default_factory=dict)
    bulletin: ShownBulletin | None = None
    beside: str | None = None


class Stored(NamedTuple):
    """A stored receipt, and memories that its asker might not see."""

    receipt: Receipt
    hidden: Mapping[str, Sequence[str]]


def write(
    connection: sa.Connection, given: Sequence[HandedOut], *, with_queries: bool = True
) -> None:
    """Store receipts and note the uses. One that is stored already is passed over.

    A memory that was erased since leaves the receipt without it.

    Args:
        with_queries: what was asked is kept, not its digest alone.
    """
    # Hundreds of small rows: the driver alone takes a third of the time.
    driver: Any = connection.connection.driver_connection
    new = []
    for each in given:
        receipt = _with_bulletin(driver, each)
        if _write_head(driver, receipt, each.hidden, with_queries=with_queries):
            new.append(receipt)
    driver.executemany(_ITEM, [row for each in new for row in _items(each)])
    driver.executemany(_COUNT, [(*use, memory_id) for memory_id, use in uses(new).items()])


class Use(NamedTuple):
    """How often a memory was asked for, and when it was last handed out, in milliseconds."""

    asked: int
    last_at: int


def uses(receipts: Iterable[Receipt]) -> dict[str, Use]:
    """Return how the memories were used that some receipts handed out.

    A bulletin is a use of what stands in it, and goes with every message: nobody asked for it.
    """
    found: dict[str, Use] = {}
    for receipt in receipts:
        if not receipt.counts and receipt.purpose != BULLETIN:
            continue
        for item in receipt.items:
            asked, last_at = found.get(item.memory_id, Use(0, receipt.at))
            found[item.memory_id] = Use(asked + receipt.counts, max(last_at, receipt.at))
    return found


def read(connection: sa.Connection, receipt_id: str) -> Stored | None:
    """A stored receipt; None: there is none. ``counts`` is not kept and is True.

    Raises:
        DatabaseCorrupt: its rows are damaged.
    """
    driver: Any = connection.connection.driver_connection
    row = driver.execute(_READ_HEAD, (receipt_id,)).fetchone()
    if row is None:
        return None
    head = dict(zip(_NAMES, row, strict=True))
    found = driver.execute(_READ_ITEMS, (head["same_as"] or receipt_id,)).fetchall()
    try:
        return _stored(head, found)
    except (AttributeError, InvalidInput, KeyError, TypeError, ValueError) as error:
        raise unreadable("receipt", receipt_id) from error


def _stored(head: Mapping[str, Any], found: Sequence[tuple[str, float, str]]) -> Stored:
    left_out = None if head["left_out"] is None else json.loads(head["left_out"])
    viewer = None if head["viewer"] is None else json.loads(head["viewer"])
    if viewer is not None:
        # Whoever reads it compares what it saw with what the reader sees.
        viewer_of(viewer)
    receipt = Receipt(
        head["recall_id"],
        head["created_at"],
        head["query"],
        json.loads(head["request"]),
        tuple(_item(one, score, json.loads(why)) for one, score, why in found),
        viewer=viewer,
        left_out=None if left_out is None else _numbers(left_out),
        **{name: head[name] for name in _PLAIN},
    )
    return Stored(receipt, {} if left_out is None else _lists(left_out))


def covered(reader: Viewer, receipt_or_bulletin_id: str, viewer: str | None) -> bool:
    """Whether a reader sees all that could be seen by whom a bulletin was made for.

    A bulletin tells of some of what its reader sees without citing it.

    Args:
        viewer: the column ``viewer``; who is not known had seen more.

    Raises:
        DatabaseCorrupt: the column is damaged.
    """
    try:
        fields = None if viewer is None else json.loads(viewer)
        return fields is not None and covers(reader, viewer_of(fields))
    except (InvalidInput, KeyError, TypeError, ValueError) as error:
        raise unreadable("viewer", receipt_or_bulletin_id) from error


def all_visible(connection: sa.Connection, view: View, memory_ids: Iterable[str]) -> bool:
    """Whether every one of these memories that is still there is one that the view shows."""
    driver: Any = connection.connection.driver_connection
    hidden = (
        "SELECT 1 FROM memories m WHERE m.memory_id IN (SELECT value FROM json_each(:ids))"
        f" AND ({view.where('m')}) IS NOT TRUE LIMIT 1"
    )
    values = {**view.params, "ids": json.dumps(list(memory_ids))}
    return driver.execute(hidden, values).fetchone() is None


def visible(connection: sa.Connection, view: View, memory_ids: Iterable[str]) -> list[str]:
    """Those of the memories that the view shows."""
    driver: Any = connection.connection.driver_connection
    statement = (
        "SELECT m.memory_id FROM json_each(:ids) j CROSS JOIN memories m ON m.memory_id = j.value"
        f" WHERE {view.where('m')}"
    )
    values = {**view.params, "ids": json.dumps(list(memory_ids))}
    return [memory_id for (memory_id,) in driver.execute(statement, values)]


def _with_bulletin(driver: Any, given: HandedOut) -> Receipt:
    """The receipt, with the bulletin that it is of; a new one is stored."""
    receipt, shown = given.receipt, given.bulletin
    if shown is None:
        if given.beside is None:
            return receipt
        found = driver.execute(_BULLETIN_OF, (given.beside,)).fetchone()
        return receipt if found is None else replace(receipt, bulletin_id=found[0])
    last = driver.execute(_LAST_BULLETIN, (shown.view_key,)).fetchone()
    if last is not None and last[1] == shown.sha256:
        [first] = driver.execute(_FIRST_OF_BULLETIN, (last[0],)).fetchone()
        same_as = first if first != receipt.receipt_id else None
        return replace(receipt, bulletin_id=last[0], same_as=same_as)
    bulletin_id = "bul_" + receipt.receipt_id.partition("_")[2]
    memory_ids = json_text(shown.memory_ids)
    *columns, _, body = shown
    values = (bulletin_id, receipt.at, *columns, memory_ids, body)
    driver.execute(_ADD_BULLETIN, values)
    return replace(receipt, bulletin_id=bulletin_id)


def _write_head(
    driver: Any, given: Receipt, hidden: Mapping[str, Sequence[str]], *, with_queries: bool
) -> bool:
    query, digest = given.query, given.query_sha256
    if query and digest is None:
        digest = hashlib.sha256(query.encode()).hexdigest()
    left_out = {**(given.left_out or {}), **{name: list(one) for name, one in hidden.items()}}
    values = (
        given.receipt_id,
        given.at,
        query[:MAX_KEPT_QUERY_CHARS] if with_queries else "",
        json_text(given.asked),
        given.purpose,
        given.actor,
        given.conversation_id,
        given.workflow_run_id,
        given.step_id,
        digest,
        given.change_seq,
        None if given.viewer is None else json_text(given.viewer),
        given.settings_sha256,
        None if given.left_out is None else json_text(left_out),
        given.sha256,
        given.same_as,
        given.bulletin_id,
    )
    return bool(driver.execute(_HEAD, values).rowcount)


def _items(given: Receipt) -> Iterator[tuple[str, int, float, str, str]]:
    # What is handed out once more has its items already.
    for rank, item in enumerate(() if given.same_as else given.items, start=1):
        why: dict[str, Any] = {"legs": dict(item.legs), "modifiers": dict(item.modifiers)}
        if item.reasons:
            why["reasons"] = list(item.reasons)
        if item.access_count is not None:
            why["accesses"] = [item.access_count, item.last_accessed_at]
        yield given.receipt_id, rank, item.score, json_text(why), item.memory_id


def _item(memory_id: str, score: float, why: dict[str, Any]) -> ReceiptItem:
    reasons = tuple(why.get("reasons", ()))
    count, last = why.get("accesses", (None, None))
    return ReceiptItem(memory_id, score, why["legs"], why["modifiers"], reasons, count, last)


def _numbers(left_out: Mapping[str, Any]) -> dict[str, int]:
    return {name: one for name, one in left_out.items() if isinstance(one, int)}


def _lists(left_out: Mapping[str, Any]) -> dict[str, list[str]]:
    return {name: one for name, one in left_out.items() if isinstance(one, list)}
