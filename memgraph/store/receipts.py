"""Queries for receipts, which are written after the answer was returned, and for bulletins."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert

from memgraph.errors import InvalidInput
from memgraph.ids import BULLETIN_PREFIX
from memgraph.model.columns import unreadable
from memgraph.model.context import Bulletin
from memgraph.model.enums import MemoryStatus
from memgraph.model.recall import Bundle
from memgraph.model.receipts import (
    BulletinEntry,
    BulletinHistory,
    Receipt,
    ReceiptItem,
    StoredBulletin,
    bundle_bytes,
)
from memgraph.model.values import built
from memgraph.rules.scope import ScopeFacts, Viewer, VisibilityReason, covers, viewer_of, visible
from memgraph.store import tables
from memgraph.store.recall import FilterShape, RecallFilter
from memgraph.store.rows import json_text
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.statements import (
    Column,
    among,
    bound,
    each,
    greatest,
    is_untrue,
    ordered,
    prepared,
    value,
)
from memgraph.store.text_index import matching
from memgraph.store.visibility import Table, View, memories_listed

MAX_KEPT_QUERY_CHARS = 2_000
BULLETIN = "bulletin"
"""The purpose of a bulletin's receipt."""

# Columns that are fields of a receipt under the same name and without conversion.
_PLAIN = (
    *("purpose", "actor", "conversation_id", "workflow_run_id", "step_id", "query_sha256"),
    *("change_seq", "sha256", "same_as", "bulletin_id"),
)
_NAMES = ("recall_id", "created_at", "query", "request", "viewer", "left_out", "answer", *_PLAIN)


@dataclass(slots=True)
class NewReceipt:
    """A receipt to write, with the data to complete it.

    Attributes:
        bundle: the delivered recall, unless it was a text.
        match, narrowing: the search expression, see ``RecallTrace``, and the searched scope.
        bulletin: the delivered bulletin, if it was one.
        beside: the id of the receipt of a bulletin that was delivered together with it.
        hidden: the ids of matching memories that the reader may not see, by reason; None: they
            were not searched for yet.
    """

    receipt: Receipt
    bundle: Bundle | None = None
    match: str | None = ""
    narrowing: RecallFilter | None = None
    bulletin: Bulletin | None = None
    beside: str | None = None
    hidden: Mapping[str, Sequence[str]] | None = None

    def complete(self, snapshot: Snapshot | None) -> None:
        """Compute the digest and the items; search for hidden matches if there is a snapshot."""
        if self.bulletin is not None:
            items = tuple(ReceiptItem(memory_id, 0.0) for memory_id in self.bulletin.memory_ids)
            digest = hashlib.sha256(self.bulletin.text.encode()).hexdigest()
            self.receipt = replace(self.receipt, items=items, sha256=digest)
        elif self.bundle is not None and self.receipt.sha256 is None:
            digest = hashlib.sha256(bundle_bytes(self.bundle)).hexdigest()
            self.receipt = replace(self.receipt, sha256=digest)
        if snapshot is not None and self.match and self.narrowing is not None:
            self.hidden = hidden_matches(snapshot, self.match, self.narrowing)
        else:
            self.hidden = _none_hidden() if self.match is None else {}


class StoredReceipt(NamedTuple):
    """A stored receipt, and the ids of memories that were hidden from its reader, by reason."""

    receipt: Receipt
    hidden: Mapping[str, Sequence[str]]


def write(
    transaction: Transaction, receipts: Sequence[NewReceipt], *, with_queries: bool = True
) -> None:
    """Store receipts and count the uses of their memories; skip receipts that are already stored.

    Memories that have since been erased are left out.

    Args:
        with_queries: store the queries themselves, not only their digests.
    """
    new = []
    for entry in receipts:
        receipt = _with_bulletin(transaction, entry)
        if _write_head(transaction, receipt, entry.hidden or {}, with_queries=with_queries):
            new.append(receipt)
    _add_item().write_all(transaction, [row for receipt in new for row in _items(receipt)])
    used = ((memory_id, *use) for memory_id, use in uses(new).items())
    _count_use().write_all(
        transaction, [{"memory": entry, "asked": used_by, "at": at} for entry, used_by, at in used]
    )


@prepared
def _add_item() -> sa.Insert:
    m = tables.memories
    columns = (value("receipt"), value("place"), m.c.memory_id, value("points"), value("why"))
    item = sa.select(*columns).where(m.c.memory_id == value("memory"))
    names = ["recall_id", "rank", "memory_id", "score", "explanation"]
    return sa.insert(tables.recall_items).from_select(names, item)


@prepared
def _count_use() -> sa.Update:
    m, at = tables.memories, value("at")
    used = {
        "access_count": m.c.access_count + value("asked"),
        "last_accessed_at": greatest(sa.func.coalesce(m.c.last_accessed_at, at), at),
    }
    return sa.update(m).where(m.c.memory_id == value("memory")).values(used)


class MemoryUse(NamedTuple):
    """The number of requests that returned a memory, and the time of the last use, in ms."""

    asked: int
    last_at: int


def uses(receipts: Iterable[Receipt]) -> dict[str, MemoryUse]:
    """Return the uses of the memories in some receipts, by memory id.

    A bulletin goes with every message, unasked: it sets the time of the last use, but adds nothing
    to the count.
    """
    result: dict[str, MemoryUse] = {}
    for receipt in receipts:
        if not receipt.counts and receipt.purpose != BULLETIN:
            continue
        for item in receipt.items:
            count, last_at = result.get(item.memory_id, MemoryUse(0, receipt.at))
            result[item.memory_id] = MemoryUse(count + receipt.counts, max(last_at, receipt.at))
    return result


def read(snapshot: Snapshot, receipt_id: str) -> StoredReceipt | None:
    """Return a stored receipt, or None. ``counts`` is not stored and is always True.

    Raises:
        DatabaseCorrupt: its rows are damaged.
    """
    r, i = tables.recalls, tables.recall_items
    query = sa.select(*(r.c[name] for name in _NAMES)).where(r.c.recall_id == bound(receipt_id))
    row = snapshot.row(query)
    if row is None:
        return None
    head = dict(zip(_NAMES, row, strict=True))
    of_receipt = i.c.recall_id == bound(head["same_as"] or receipt_id)
    columns = sa.select(i.c.memory_id, i.c.score, i.c.explanation)
    items = snapshot.rows(columns.where(of_receipt).order_by(i.c.rank))
    try:
        return _stored(head, items)
    except (AttributeError, InvalidInput, KeyError, TypeError, ValueError) as error:
        raise unreadable("recalls", receipt_id) from error


def _stored(head: Mapping[str, Any], items: Sequence[tuple[str, float, str]]) -> StoredReceipt:
    left_out, viewer, answer = (
        None if head[name] is None else json.loads(head[name])
        for name in ("left_out", "viewer", "answer")
    )
    if viewer is not None:
        # Raise if it is invalid: it is compared with the reader's view later.
        viewer_of(viewer)
    receipt = Receipt(
        head["recall_id"],
        head["created_at"],
        head["query"],
        json.loads(head["request"]),
        tuple(
            ReceiptItem(memory_id, score, why["legs"], why["modifiers"], tuple(why["reasons"]))
            for memory_id, score, text in items
            for why in [{"reasons": (), **json.loads(text)}]
        ),
        viewer=viewer,
        left_out=None
        if left_out is None
        else {name: number for name, number in left_out.items() if isinstance(number, int)},
        answer=answer,
        **{name: head[name] for name in _PLAIN},
    )
    hidden = {name: ids for name, ids in (left_out or {}).items() if isinstance(ids, list)}
    return StoredReceipt(receipt, hidden)


def is_covered(reader: Viewer, receipt_or_bulletin_id: str, viewer: str | None) -> bool:
    """Return True if a reader may see everything that the first reader of a bulletin could.

    A bulletin may reveal memories that it does not cite, so comparing the cited ones is not enough.

    Args:
        viewer: the column ``viewer``; None (unknown) is covered by nobody.

    Raises:
        DatabaseCorrupt: the column is damaged.
    """
    try:
        fields = None if viewer is None else json.loads(viewer)
        return fields is not None and covers(reader, viewer_of(fields))
    except (InvalidInput, KeyError, TypeError, ValueError) as error:
        raise unreadable("recalls", receipt_or_bulletin_id) from error


def hidden_ids(snapshot: Snapshot, view: View, memory_ids: Iterable[str]) -> list[str]:
    """Return the ids whose memories exist but are hidden by the view."""
    m, joined = memories_listed()
    query = sa.select(m.c.memory_id).select_from(joined).where(is_untrue(view.where(m)))
    return snapshot.column(query, view.params, ids=memory_ids)


@prepared
def _bulletin_of() -> sa.Select[Any]:
    r = tables.recalls
    return sa.select(r.c.bulletin_id).where(r.c.recall_id == value("receipt"))


@prepared
def _last_bulletin() -> sa.Select[Any]:
    b = tables.bulletins
    last = sa.select(b.c.bulletin_id, b.c.sha256).where(b.c.view_key == value("key"))
    return last.order_by(b.c.created_at.desc(), b.c.bulletin_id.desc()).limit(1)


@prepared
def _first_of_bulletin() -> sa.Select[Any]:
    r = tables.recalls
    terms = (r.c.bulletin_id == value("bulletin"), r.c.same_as.is_(None), r.c.purpose == BULLETIN)
    return sa.select(sa.func.min(r.c.recall_id)).where(*terms)


class HandedOut(NamedTuple):
    """A memory that was handed out to a conversation, and when first, in milliseconds."""

    memory_id: str
    content: str
    summary: str | None
    first_at: int


def handed_out(snapshot: Snapshot, conversation_id: str) -> list[HandedOut]:
    """Return the memories that the receipts of a conversation have, each once."""
    r, i, m = tables.recalls.alias("r"), tables.recall_items.alias("i"), tables.memories.alias("m")
    receipt = sa.func.coalesce(r.c.same_as, r.c.recall_id)
    items = r.join(i, i.c.recall_id == receipt).join(m, m.c.memory_id == i.c.memory_id)
    query = sa.select(m.c.memory_id, m.c.content, m.c.summary, sa.func.min(r.c.created_at))
    query = query.select_from(items).where(r.c.conversation_id == bound(conversation_id))
    selected = query.group_by(m.c.memory_id, m.c.content, m.c.summary)
    return snapshot.mapped(HandedOut._make, selected)


@prepared
def _add_bulletin() -> sa.Insert:
    columns = {column.name: value(column.name) for column in tables.bulletins.columns}
    new = insert(tables.bulletins).values(columns)
    return new.on_conflict_do_nothing()


def _with_bulletin(transaction: Transaction, new: NewReceipt) -> Receipt:
    """Return the receipt with the id of its bulletin; store the bulletin if it is new."""
    receipt, bulletin = new.receipt, new.bulletin
    if bulletin is None:
        if new.beside is None:
            return receipt
        row = _bulletin_of().row(transaction, receipt=new.beside)
        return receipt if row is None else replace(receipt, bulletin_id=row[0])
    last = _last_bulletin().row(transaction, key=bulletin.view_key)
    if last is not None and last[1] == receipt.sha256:
        first = _first_of_bulletin().scalar(transaction, bulletin=last[0])
        same_as = first if first != receipt.receipt_id else None
        return replace(receipt, bulletin_id=last[0], same_as=same_as)
    bulletin_id = BULLETIN_PREFIX + receipt.receipt_id.partition("_")[2]
    _add_bulletin().write(
        transaction,
        bulletin_id=bulletin_id,
        created_at=receipt.at,
        change_seq=bulletin.change_seq,
        view_key=bulletin.view_key,
        viewer=json_text(receipt.viewer),
        sha256=receipt.sha256,
        memory_ids=json_text(bulletin.memory_ids),
        body=bulletin.text,
    )
    return replace(receipt, bulletin_id=bulletin_id)


@prepared
def _add_head() -> sa.Insert:
    new = insert(tables.recalls).values({name: value(name) for name in _NAMES})
    return new.on_conflict_do_nothing()


def _write_head(
    transaction: Transaction,
    receipt: Receipt,
    hidden: Mapping[str, Sequence[str]],
    *,
    with_queries: bool,
) -> bool:
    query, digest = receipt.query, receipt.query_sha256
    if query and digest is None:
        digest = hashlib.sha256(query.encode()).hexdigest()
    left_out = {**(receipt.left_out or {}), **{name: list(ids) for name, ids in hidden.items()}}
    values = {
        "recall_id": receipt.receipt_id,
        "created_at": receipt.at,
        "query": query[:MAX_KEPT_QUERY_CHARS] if with_queries else "",
        "request": json_text(receipt.asked),
        "viewer": None if receipt.viewer is None else json_text(receipt.viewer),
        "left_out": None if receipt.left_out is None else json_text(left_out),
        "answer": None if receipt.answer is None else json_text(receipt.answer),
        **{name: getattr(receipt, name) for name in _PLAIN},
        "query_sha256": digest,
    }
    return bool(_add_head().write(transaction, values))


def _items(receipt: Receipt) -> Iterator[dict[str, Any]]:
    # A receipt that repeats an earlier one shares its items.
    for rank, item in enumerate(() if receipt.same_as else receipt.items, start=1):
        reasons: dict[str, Any] = {"legs": dict(item.legs), "modifiers": dict(item.modifiers)}
        if item.reasons:
            reasons["reasons"] = list(item.reasons)
        yield {
            "receipt": receipt.receipt_id,
            "place": rank,
            "memory": item.memory_id,
            "points": item.score,
            "why": json_text(reasons),
        }


# Lists of receipts and bulletins, their removal, and hidden matches.


# The limits of the newest matches that are examined, and of the hidden ones that are returned.
MOST_MET: Final = 64
MOST_HIDDEN: Final = 20

_RECEIPT_COLUMNS: Final = frozenset({"purpose", "workflow_run_id", "conversation_id"})
_NO_ID_IS_HIGHER: Final = "bul_~"


def newest(
    snapshot: Snapshot, criteria: Mapping[str, str], *, limit: int, before: str | None = None
) -> Iterator[str]:
    """Return the ids of receipts that match all criteria, newest first.

    At most ``limit`` receipts are examined; criteria without a column are checked among these.

    Args:
        criteria: the required values by the keys of ``Receipt.asked``; empty: every receipt.
        before: only receipts older than this one, which may have been removed since.
    """
    columns = sorted(_RECEIPT_COLUMNS & criteria.keys())
    others = sorted(criteria.keys() - _RECEIPT_COLUMNS)
    r = tables.recalls.alias("r")
    conditions = [r.c[name] == bound(criteria[name]) for name in columns]
    if before is not None:
        last = (
            sa.select(r.c.created_at)
            .where(r.c.recall_id <= bound(before))
            .order_by(r.c.recall_id.desc())
            .limit(1)
            .correlate(None)
            .scalar_subquery()
        )
        place = sa.tuple_(r.c.created_at, r.c.recall_id)
        conditions.append(place < sa.tuple_(last, bound(before)))
    newest_rows = (
        sa.select(r.c.recall_id, r.c.created_at, r.c.request)
        .where(*conditions)
        .order_by(r.c.created_at.desc(), r.c.recall_id.desc())
        .limit(bound(limit))
        .subquery("looked")
    )
    # The other keys have no index, so they are checked only among the limited rows.
    terms = (
        sa.func.json_extract(newest_rows.c.request, sa.literal(f"$.{key}")) == bound(criteria[key])
        for key in others
    )
    query = sa.select(newest_rows.c.recall_id).where(*terms)
    query = query.order_by(newest_rows.c.created_at.desc(), newest_rows.c.recall_id.desc())
    return iter(snapshot.column(query))


def is_count_above(snapshot: Snapshot, number: int) -> bool:
    """Return True if there are more receipts than ``number``."""
    query = sa.select(tables.recalls.c.recall_id).limit(1).offset(bound(number))
    return snapshot.row(query) is not None


def _old_receipts(keep: int, since: int, limit: int) -> sa.Select[Any]:
    r, newer, k = tables.recalls.alias("r"), tables.recalls, tables.recalls.alias("k")
    newest_first = (newer.c.created_at.desc(), newer.c.recall_id.desc())
    last = sa.select(newer.c.created_at, newer.c.recall_id).order_by(*newest_first)
    last = last.limit(1).offset(bound(keep))
    place = sa.tuple_(r.c.created_at, r.c.recall_id)
    # A receipt that a kept one repeats has the items of both.
    repeated = sa.exists().where(k.c.same_as == r.c.recall_id).correlate(r)
    return (
        sa.select(r.c.recall_id)
        .where((r.c.created_at < bound(since)) | (place <= last.scalar_subquery()), ~repeated)
        .order_by(r.c.created_at, r.c.recall_id)
        .limit(bound(limit))
    )


def has_old(snapshot: Snapshot, *, keep: int, since: int) -> bool:
    """Return True if ``remove_old`` would remove a receipt."""
    return snapshot.row(_old_receipts(keep, since, 1)) is not None


def remove_old(transaction: Transaction, *, keep: int, since: int, limit: int) -> int:
    """Remove the oldest receipts, at most ``limit``, and return their number.

    A receipt that later ones repeat stays until these are removed.

    Args:
        keep: the number of the newest receipts to keep, unless they are older than ``since``.
        since: remove all receipts from before this time, in milliseconds.
    """
    ids = transaction.column(_old_receipts(keep, since, limit))
    if ids:
        for table in (tables.recall_items, tables.recalls):
            transaction.write(sa.delete(table).where(among(table.c.recall_id, ids)))
    return len(ids)


def remove_bulletins(transaction: Transaction, limit: int) -> int:
    """Remove bulletins without receipts, at most ``limit``, and return their number."""
    b, r = tables.bulletins.alias("b"), tables.recalls.alias("r")
    is_referenced = sa.exists().where(r.c.bulletin_id == b.c.bulletin_id).correlate(b)
    unnamed = sa.select(b.c.bulletin_id).where(~is_referenced).limit(bound(limit))
    statement = sa.delete(tables.bulletins).where(tables.bulletins.c.bulletin_id.in_(unnamed))
    return transaction.write(statement)


def _issued(b: sa.FromClause) -> list[Column]:
    """Return the columns of a ``BulletinEntry``, followed by the viewer."""
    r = tables.recalls.alias("r")
    conditions = (r.c.bulletin_id == b.c.bulletin_id, r.c.purpose == BULLETIN)
    count = sa.select(sa.func.count()).where(*conditions).correlate(b).scalar_subquery()
    return [b.c.bulletin_id, b.c.created_at, b.c.change_seq, b.c.sha256, count, b.c.viewer]


def _shows_cited(view: View, b: sa.FromClause) -> Column:
    """Return the condition that a view shows every stored memory that a bulletin cites."""
    j, m = each(b.c.memory_ids, "j"), tables.memories.alias("m")
    cited = ordered(j, (m, m.c.memory_id == j.c.value))
    return ~sa.exists().select_from(cited).where(is_untrue(view.where(m)))


def bulletins(
    snapshot: Snapshot, view: View, *, limit: int, before: str | None, scanned: int
) -> BulletinHistory:
    """Return the bulletins whose first reader could see no more than the view, newest first.

    Args:
        before: only bulletins with a lower id; ids grow with time.
        scanned: the number of the newest bulletins to examine.
    """
    b = tables.bulletins
    is_earlier = b.c.bulletin_id < bound(before or _NO_ID_IS_HIGHER)
    newest_rows = sa.select(b).where(is_earlier).order_by(b.c.bulletin_id.desc())
    bulletins_read = newest_rows.limit(bound(scanned)).subquery("b")
    query = (
        sa.select(*_issued(bulletins_read))
        .where(_shows_cited(view, bulletins_read))
        .order_by(bulletins_read.c.bulletin_id.desc())
    )
    visible = (
        built(BulletinEntry, dict(zip(BulletinEntry.model_fields, head, strict=True)))
        for *head, viewer in snapshot.rows(query, view.params)
        if is_covered(view.viewer, head[0], viewer)
    )
    entries = tuple(islice(visible, limit + 1))
    unread = sa.select(b.c.bulletin_id).where(is_earlier).limit(1).offset(bound(scanned))
    cut = len(entries) > limit or snapshot.row(unread) is not None
    return BulletinHistory(bulletins=entries[:limit], cut=cut)


def bulletin(snapshot: Snapshot, view: View, bulletin_id: str) -> StoredBulletin | None:
    """Return a bulletin, or None if it does not exist or the view hides a part of it."""
    b = tables.bulletins.alias("b")
    columns = sa.select(*_issued(b), b.c.memory_ids, b.c.body)
    query = columns.where(b.c.bulletin_id == bound(bulletin_id), _shows_cited(view, b))
    row = snapshot.row(query, view.params)
    if row is None:
        return None
    *head, viewer, memory_ids, body = row
    if not is_covered(view.viewer, bulletin_id, viewer):
        return None
    fields = (*head, tuple(json.loads(memory_ids)), body)
    return built(StoredBulletin, dict(zip(StoredBulletin.model_fields, fields, strict=True)))


def hidden_matches(snapshot: Snapshot, match: str, narrowing: RecallFilter) -> dict[str, list[str]]:
    """Return the active memories that match the query and the filters but are hidden by the view.

    Args:
        match: an FTS5 expression; only the newest ``MOST_MET`` matches are examined.
        narrowing: the filter of the answer; memories stored after its time are ignored.

    Returns:
        Ids by reason (``scope`` or ``clearance``), newest first, at most ``MOST_HIDDEN`` in all.
    """
    unrestricted = RecallFilter(_AllActive(narrowing.view.viewer), narrowing.request, narrowing.at)
    statement = _hidden_matches(unrestricted.shape)
    expression = snapshot.engine.phrases.expression(match)
    values = unrestricted.params | {"match": expression, "met_at": narrowing.at}
    values |= {"most_met": MOST_MET, "most_hidden": MOST_HIDDEN}
    result = _none_hidden()
    for memory_id, *facts in statement.rows(snapshot, values):
        result[_reason(narrowing.view.viewer, ScopeFacts(*facts))].append(memory_id)
    return result


def _none_hidden() -> dict[str, list[str]]:
    return {"scope": [], "clearance": []}


@prepared
def _hidden_matches(unrestricted: FilterShape) -> sa.Select[Any]:
    m, matches = tables.memories.alias("m"), matching("match")
    pk = matches.selected_columns[0]
    newest = matches.with_only_columns(pk.label("pk")).order_by(pk.desc()).limit(value("most_met"))
    f = newest.subquery("f")
    return (
        sa.select(m.c.memory_id, m.c.scope, m.c.scope_id, m.c.sensitivity, m.c.agent_id)
        .select_from(ordered(f, (m, m.c.pk == f.c.pk)))
        .where(is_untrue(View(unrestricted.view.viewer).where(m)))
        .where(m.c.created_at <= value("met_at"), unrestricted.where(m))
        .order_by(m.c.pk.desc())
        .limit(value("most_hidden"))
    )


class _AllActive(View):
    """A view of all active memories."""

    def where(self, m: Table) -> Column:
        active: Column = m.c.status == MemoryStatus.ACTIVE
        return active


def _reason(viewer: Viewer, facts: ScopeFacts) -> str:
    by_clearance = (
        VisibilityReason.SENSITIVITY_ABOVE_CLEARANCE,
        VisibilityReason.SENSITIVITY_UNKNOWN,
    )
    return "clearance" if visible(viewer, facts) in by_clearance else "scope"
