"""Receipts of what was handed out: written after the answer was given, never while it is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final, NamedTuple

from memgraph.errors import InvalidInput
from memgraph.model.enums import MemoryStatus
from memgraph.model.receipts import Receipt, ReceiptItem
from memgraph.rules.scope import Reason, ScopeFacts, Viewer, visible
from memgraph.rules.viewers import covers, viewer_of
from memgraph.store.recall import Narrowing
from memgraph.store.rows import json_text, unreadable
from memgraph.store.snapshot import Snapshot, Transaction, driver
from memgraph.store.statements import Column
from memgraph.store.visibility import Table, View

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
    transaction: Transaction, given: Sequence[HandedOut], *, with_queries: bool = True
) -> None:
    """Store receipts and note the uses. One that is stored already is passed over.

    A memory that was erased since leaves the receipt without it.

    Args:
        with_queries: what was asked is kept, not its digest alone.
    """
    # Hundreds of small rows: the driver alone takes a third of the time.
    driver: Any = transaction.driver
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


def read(snapshot: Snapshot, receipt_id: str) -> Stored | None:
    """A stored receipt; None: there is none. ``counts`` is not kept and is True.

    Raises:
        DatabaseCorrupt: its rows are damaged.
    """
    driver: Any = snapshot.driver
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


def all_visible(snapshot: Snapshot, view: View, memory_ids: Iterable[str]) -> bool:
    """Whether every one of these memories that is still there is one that the view shows."""
    driver: Any = snapshot.driver
    hidden = (
        "SELECT 1 FROM memories m WHERE m.memory_id IN (SELECT value FROM json_each(:ids))"
        f" AND ({view.text.where('m')}) IS NOT TRUE LIMIT 1"
    )
    values = {**view.params, "ids": json.dumps(list(memory_ids))}
    return driver.execute(hidden, values).fetchone() is None


def visible_ids(snapshot: Snapshot, view: View, memory_ids: Iterable[str]) -> list[str]:
    """Those of the memories that the view shows."""
    driver: Any = snapshot.driver
    statement = (
        "SELECT m.memory_id FROM json_each(:ids) j CROSS JOIN memories m ON m.memory_id = j.value"
        f" WHERE {view.text.where('m')}"
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


# Which receipts and bulletins there are, what became too old of them, and what no asker saw.


# Of the newest memories with the words of a query, and of those that its asker might not see.
MOST_MET: Final = 64
MOST_HIDDEN: Final = 20

_RECEIPT_COLUMNS: Final = frozenset({"purpose", "workflow_run_id", "conversation_id"})
_DELETE_ITEMS = "DELETE FROM recall_items WHERE recall_id IN (SELECT value FROM json_each(?))"
_DELETE = "DELETE FROM recalls WHERE recall_id IN (SELECT value FROM json_each(?))"
# What a kept one repeats has the items of both.
_OLD = (
    "SELECT r.recall_id FROM recalls r WHERE (r.created_at < :since"
    " OR (r.created_at, r.recall_id) <= (SELECT created_at, recall_id FROM recalls"
    " ORDER BY created_at DESC, recall_id DESC LIMIT 1 OFFSET :keep))"
    " AND NOT EXISTS (SELECT 1 FROM recalls k WHERE k.same_as = r.recall_id)"
    " ORDER BY r.created_at, r.recall_id LIMIT :limit"
)
_DELETE_BULLETINS = (
    "DELETE FROM bulletins WHERE bulletin_id IN (SELECT b.bulletin_id FROM bulletins b"
    " WHERE NOT EXISTS (SELECT 1 FROM recalls r WHERE r.bulletin_id = b.bulletin_id) LIMIT ?)"
)
_HANDED_OUT = (
    f"(SELECT count(*) FROM recalls r WHERE r.bulletin_id = b.bulletin_id"
    f" AND r.purpose = '{BULLETIN}')"
)
_BULLETIN = "b.bulletin_id, b.created_at, b.change_seq, b.sha256"


class IssuedBulletin(NamedTuple):
    """A bulletin that was handed out; ``receipts``: how often."""

    bulletin_id: str
    created_at: int
    change_seq: int
    sha256: str
    receipts: int


class BulletinText(NamedTuple):
    """What a bulletin was, and what its reader could see."""

    memory_ids: tuple[str, ...]
    body: str


def newest(
    snapshot: Snapshot, asked: Mapping[str, str], *, most: int, before: str | None = None
) -> Iterator[str]:
    """Ids of the ``most`` newest receipts that were asked for just that.

    Args:
        asked: texts by keys of ``Receipt.asked``; empty: every receipt.
        before: only receipts older than this one, which may have been removed since.
    """
    terms, values = ["1"], {"most": most, "before": before}
    within = ["1"]
    for at, (key, value) in enumerate(asked.items()):
        values |= {f"key{at}": key, f"value{at}": value}
        if key in _RECEIPT_COLUMNS:
            within.append(f"{key} = :value{at}")
        else:
            # No index knows it, so only so many are looked at.
            terms.append(f"json_extract(request, '$.' || :key{at}) = :value{at}")
    if before is not None:
        within.append(
            "(created_at, recall_id) < ((SELECT created_at FROM recalls"
            " WHERE recall_id <= :before ORDER BY recall_id DESC LIMIT 1), :before)"
        )
    statement = (
        "SELECT recall_id FROM (SELECT recall_id, created_at, request FROM recalls"
        f" WHERE {' AND '.join(within)} ORDER BY created_at DESC, recall_id DESC LIMIT :most)"
        f" WHERE {' AND '.join(terms)} ORDER BY created_at DESC, recall_id DESC"
    )
    return (one for (one,) in driver(snapshot).execute(statement, values))


def are_more_than(snapshot: Snapshot, number: int) -> bool:
    """Whether there are more receipts than so many."""
    statement = "SELECT 1 FROM recalls LIMIT 1 OFFSET ?"
    return driver(snapshot).execute(statement, (number,)).fetchone() is not None


def any_old(snapshot: Snapshot, *, keep: int, since: int) -> bool:
    """Whether ``remove_old`` would remove any."""
    found = driver(snapshot).execute(_OLD, {"keep": keep, "since": since, "limit": 1})
    return found.fetchone() is not None


def remove_old(transaction: Transaction, *, keep: int, since: int, limit: int) -> int:
    """Remove the oldest receipts, at most ``limit``; gives how many.

    One that a later one repeats stays until the last of these is gone.

    Args:
        keep: so many of the newest stay, unless they are older than ``since``, milliseconds.
    """
    execute = driver(transaction).execute
    found = execute(_OLD, {"keep": keep, "since": since, "limit": limit}).fetchall()
    if found:
        ids = json.dumps([one for (one,) in found])
        execute(_DELETE_ITEMS, (ids,))
        execute(_DELETE, (ids,))
    return len(found)


def remove_bulletins(transaction: Transaction, limit: int) -> int:
    """Remove bulletins, at most ``limit``, that no receipt is of any longer; gives how many."""
    return int(driver(transaction).execute(_DELETE_BULLETINS, (limit,)).rowcount)


def bulletins(
    snapshot: Snapshot, view: View, *, limit: int, before: str | None, most: int
) -> list[IssuedBulletin]:
    """Bulletins for readers who saw no more than the view shows, newest first.

    Args:
        before: only those with a lower id: ids grow with time.
        most: so many of the newest are looked at.
    """
    statement = (
        f"SELECT {_BULLETIN}, {_HANDED_OUT}, b.viewer FROM (SELECT * FROM bulletins"
        " WHERE bulletin_id < coalesce(:before, 'bul_~') ORDER BY bulletin_id DESC LIMIT :most) b"
        f" WHERE {_shows(view)} ORDER BY b.bulletin_id DESC"
    )
    values = {**view.params, "before": before, "most": most}
    rows = driver(snapshot).execute(statement, values)
    shown = (
        IssuedBulletin._make(head)
        for *head, viewer in rows
        if covered(view.viewer, head[0], viewer)
    )
    return list(islice(shown, limit))


def are_more_bulletins(snapshot: Snapshot, before: str | None, most: int) -> bool:
    """Whether there are more than so many with a lower id than ``before``."""
    statement = "SELECT 1 FROM bulletins WHERE bulletin_id < coalesce(?, 'bul_~') LIMIT 1 OFFSET ?"
    return driver(snapshot).execute(statement, (before, most)).fetchone() is not None


def bulletin(
    snapshot: Snapshot, view: View, bulletin_id: str
) -> tuple[IssuedBulletin, BulletinText] | None:
    """A bulletin for a reader who saw no more than the view shows; None: there is none."""
    statement = (
        f"SELECT {_BULLETIN}, {_HANDED_OUT}, b.viewer, b.memory_ids, b.body FROM bulletins b"
        f" WHERE b.bulletin_id = :bulletin_id AND {_shows(view)}"
    )
    values = {**view.params, "bulletin_id": bulletin_id}
    row = driver(snapshot).execute(statement, values).fetchone()
    if row is None:
        return None
    *head, viewer, memory_ids, body = row
    if not covered(view.viewer, bulletin_id, viewer):
        return None
    return IssuedBulletin._make(head), BulletinText(tuple(json.loads(memory_ids)), body)


def hidden_matches(snapshot: Snapshot, match: str, narrowing: Narrowing) -> dict[str, list[str]]:
    """Active memories that the words and the filters would have let answer, but not the view.

    Args:
        match: an FTS5 expression; of the newest that fulfil it ``MOST_MET`` are looked at.
        narrowing: as of the answer; what was stored after it is not met.

    Returns:
        Ids by reason, ``scope`` and ``clearance``, newest first, ``MOST_HIDDEN`` together at most.
    """
    view = narrowing.view
    anyones = Narrowing(_Anyones(view.viewer), narrowing.request, narrowing.at)
    statement = (
        "SELECT m.memory_id, m.scope, m.scope_id, m.sensitivity, m.agent_id FROM (SELECT rowid AS"
        f" pk FROM memory_fts WHERE memory_fts MATCH :match ORDER BY rowid DESC LIMIT {MOST_MET})"
        " f CROSS JOIN memories m ON m.pk = f.pk"
        f" WHERE ({View(view.viewer).text.where('m')}) IS NOT TRUE"
        f" AND m.created_at <= :met_at AND {anyones.where('m')}"
        f" ORDER BY m.pk DESC LIMIT {MOST_HIDDEN}"
    )
    found: dict[str, list[str]] = {"scope": [], "clearance": []}
    values = anyones.params | {"match": match, "met_at": narrowing.at}
    for memory_id, *facts in driver(snapshot).execute(statement, values):
        found[_reason(view.viewer, ScopeFacts(*facts))].append(memory_id)
    return found


class _Anyones(View):
    """Whoever looks."""

    def where(self, m: Table) -> Column:
        active: Column = m.c.status == MemoryStatus.ACTIVE
        return active


def _reason(viewer: Viewer, facts: ScopeFacts) -> str:
    told = (Reason.SENSITIVITY_ABOVE_CLEARANCE, Reason.SENSITIVITY_UNKNOWN)
    return "clearance" if visible(viewer, facts).reason in told else "scope"


def _shows(view: View) -> str:
    return (
        "NOT EXISTS (SELECT 1 FROM json_each(b.memory_ids) j"
        " CROSS JOIN memories m ON m.memory_id = j.value"
        f" WHERE ({view.text.where('m')}) IS NOT TRUE)"
    )


# What changed since a receipt was written, about some memories.


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


def known_until(snapshot: Snapshot, seq: int, at: int) -> int:
    """As of when an answer of a time knew what it did: the entry ``seq``, and not the next one.

    A change is dated when it begins to be written and seen when it is done, so that the next one
    may bear an earlier time than the answer that did not know it. Two of the same millisecond, or
    of a clock that was set back between them, are not told apart: then both count as known.
    """
    statement = "SELECT seq, at FROM audit_log WHERE seq IN (:seq, :seq + 1)"
    times: dict[int, int] = dict(driver(snapshot).execute(statement, {"seq": seq}).fetchall())
    return max(times.get(seq, 0), min(at, times.get(seq + 1, at + 1) - 1))


def changes_since(
    snapshot: Snapshot, seq: int, memory_ids: Collection[str], view: View
) -> list[Change]:
    """Entries after ``seq`` about these memories, or about edges of theirs between memories that
    the view shows: the first ``MOST_ENTRIES`` and one more, by seq.
    """
    of_edge = (
        "SELECT f.value, a.seq, a.at, a.actor, a.action, a.subject FROM json_each(:ids) f"
        " CROSS JOIN memory_edges e ON e.{end} = f.value"
        " CROSS JOIN memories o ON o.memory_id = e.{other}"
        " CROSS JOIN audit_log a ON a.subject = o.memory_id"
        f" WHERE a.seq > :seq AND a.details ->> '$.edge_id' = e.edge_id AND {view.text.where('o')}"
    )
    ends = {"from_memory_id": "to_memory_id", "to_memory_id": "from_memory_id"}
    parts = [_OF_MEMORY, *(of_edge.format(end=end, other=other) for end, other in ends.items())]
    statement = f"{' UNION '.join(parts)} ORDER BY 2, 1 LIMIT {MOST_ENTRIES + 1}"
    values = {**view.params, "seq": seq, "ids": json.dumps(sorted(memory_ids))}
    return [Change._make(row) for row in driver(snapshot).execute(statement, values)]
