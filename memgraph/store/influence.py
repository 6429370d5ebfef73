"""Find receipts by their memories, and memories by their run or conversation.

A receipt is visible to readers who may see all of its memories, and for a bulletin everything that
its recipient could see. Other receipts are neither listed nor counted. A receipt that repeats an
earlier one has the items of the earlier one.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import sqlalchemy as sa

from memgraph.clock import MAX_MS, parse_time
from memgraph.model.enums import MemoryKind
from memgraph.model.influence import ReceiptMention, SourceTurn
from memgraph.model.values import built
from memgraph.store import tables
from memgraph.store.receipts import BULLETIN, hidden_ids, is_covered
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import (
    Column,
    among,
    as_read,
    bound,
    each,
    is_untrue,
    listed,
    member,
    ordered,
    value,
)
from memgraph.store.visibility import Table, View, happened_at

Place = Literal["workflow_run_id", "conversation_id"]
PURPOSE: Final = "recall"
"""The purpose of receipts that do not record one."""

# The maximum number of receipts read at once.
_BLOCK: Final = 500


_FIELDS: Final = tuple(name for name in ReceiptMention.model_fields if name != "memory_ids")
_HEAD: Final = (*_FIELDS, "beside", "viewer")
"""The columns of a receipt: fields of a mention, the ids of its bulletin's memories as a JSON array
or None, and the reader as JSON."""


def _head(r: Table) -> list[Column]:
    columns = {
        "receipt_id": r.c.recall_id,
        "at": r.c.created_at,
        "purpose": sa.func.coalesce(r.c.purpose, member(r.c.request, "purpose")),
        "as_of": member(r.c.request, "as_of"),
        "beside": member(r.c.request, "bulletin.memory_ids"),
    }
    return [columns[name] if name in columns else r.c[name] for name in _HEAD]


def receipts_naming(
    snapshot: Snapshot,
    memory_ids: Collection[str],
    view: View,
    *,
    limit: int,
    until: int = MAX_MS,
) -> list[ReceiptMention]:
    """Return up to ``limit`` visible receipts with any of the memories, newest first.

    Args:
        until: include receipts up to this time, in milliseconds.
    """
    # Receipts have a memory directly, by repetition, or in their bulletin. The items of the receipt
    # of a bulletin are the memories that it cites. If that receipt has expired but the receipt of a
    # turn is kept, the bulletin itself is searched.
    ids = sorted(memory_ids)
    i, r, b = tables.recall_items.alias("i"), tables.recalls.alias("r"), tables.bulletins.alias("b")
    f = listed(ids, "f")
    items = sa.select(i.c.recall_id).distinct()
    direct = items.select_from(ordered(f, (i, i.c.memory_id == f.c.value))).cte("held")
    own = sa.select(r.c.bulletin_id)
    own = own.select_from(ordered(direct, (r, r.c.recall_id == direct.c.recall_id)))
    by_bulletin = "INDEXED BY ix_recalls_bulletin_id"
    own_receipts = sa.select(r.c.recall_id).with_hint(r, by_bulletin, "sqlite").correlate(b)
    own_receipts = own_receipts.where(r.c.bulletin_id == b.c.bulletin_id, r.c.purpose == BULLETIN)
    c = each(b.c.memory_ids, "c")
    cites = sa.exists().select_from(c).where(among(c.c.value, ids)).correlate(b)
    cited = sa.union(
        own.where(r.c.purpose == BULLETIN),
        sa.select(b.c.bulletin_id).where(
            ~own_receipts.where(r.c.same_as.is_(None)).exists(), cites
        ),
    ).cte("cited")
    repeats = sa.select(r.c.recall_id).with_hint(r, "INDEXED BY ix_recalls_same_as", "sqlite")
    of_bulletin = sa.select(r.c.recall_id).with_hint(r, by_bulletin, "sqlite")
    all_receipts = sa.union(
        sa.select(direct.c.recall_id),
        repeats.select_from(ordered(direct, (r, r.c.same_as == direct.c.recall_id))),
        of_bulletin.select_from(ordered(cited, (r, r.c.bulletin_id == cited.c.bulletin_id))),
    ).cte("found")
    in_order = (
        sa.select(r.c.recall_id)
        .select_from(ordered(all_receipts, (r, r.c.recall_id == all_receipts.c.recall_id)))
        .order_by(r.c.created_at.desc(), r.c.recall_id.desc())
        .limit(-1)
        .cte("in_order")
    )
    heads = sa.select(*_head(r)).where(r.c.created_at <= bound(until))
    joined = ordered(in_order, (r, r.c.recall_id == in_order.c.recall_id))
    newest = (as_read(r.c.created_at).desc(), as_read(r.c.recall_id).desc())
    query = heads.select_from(joined).order_by(*newest)
    rows = snapshot.cursor(query)
    return _mentions(snapshot, view, rows, limit, frozenset(memory_ids))


def receipts_for(
    snapshot: Snapshot,
    place: Place,
    name: str,
    view: View,
    *,
    limit: int,
    before: int | None = None,
) -> list[ReceiptMention]:
    """Return up to ``limit`` visible receipts of a run or a conversation, newest first.

    Args:
        before: include only receipts before this time, in milliseconds.
    """
    r = tables.recalls.alias("r")
    heads = sa.select(*_head(r)).with_hint(r, f"INDEXED BY ix_recalls_{place}", "sqlite")
    heads = heads.where(r.c[place] == bound(name))
    if before is not None:
        heads = heads.where(r.c.created_at < bound(before))
    heads = heads.order_by(r.c.created_at.desc(), r.c.recall_id.desc())
    return _mentions(snapshot, view, snapshot.cursor(heads), limit, None)


def stored_by(
    snapshot: Snapshot, place: Place, since: Mapping[str, int], view: View, *, limit: int
) -> list[tuple[str, str]]:
    """Return memories that runs or conversations stored at a time or later, oldest first.

    Args:
        since: the time in milliseconds, by the id of the run or conversation.
        limit: the maximum number of memories per run or conversation.

    Returns:
        Pairs of (id of the run or conversation, memory id).
    """
    s, m = tables.sources.alias("s"), tables.memories.alias("m")
    query = (
        sa.select(m.c.memory_id)
        .with_hint(s, f"INDEXED BY ix_memory_sources_{place}", "sqlite")
        .select_from(ordered(s, (m, m.c.source_id == s.c.source_id)))
        .where(s.c[place] == value("name"), m.c.kind != MemoryKind.EPISODE)
        .where(m.c.created_at >= value("since"), view.where(m))
        .order_by(m.c.created_at, m.c.memory_id)
        .limit(bound(limit))
    )
    # Query each name separately, so that only the first few memories of a large run are read.
    return [
        (name, memory_id)
        for name, at in since.items()
        for memory_id in snapshot.column(query, view.params, name=name, since=at)
    ]


def turns_of(snapshot: Snapshot, memory_id: str, view: View, *, limit: int) -> list[SourceTurn]:
    """Return the visible turns that a memory was derived from, in order of the conversation."""
    d, m = tables.derivations.alias("d"), tables.memories.alias("m")
    columns = {
        "memory_id": m.c.memory_id,
        "session_id": m.c.session_id,
        "sequence": m.c.sequence,
        "speaker": m.c.source_role,
        "at": happened_at(m),
        "text": m.c.content,
    }
    query = (
        sa.select(*columns.values())
        .select_from(ordered(d, (m, m.c.memory_id == d.c.derived_from_id)))
        .where(d.c.memory_id == bound(memory_id), m.c.kind == MemoryKind.EPISODE, view.where(m))
        .order_by(m.c.session_id, m.c.sequence, m.c.created_at, m.c.memory_id)
        .limit(bound(limit))
    )
    rows = snapshot.rows(query, view.params)
    return [SourceTurn(**dict(zip(columns, row, strict=True))) for row in rows]


def hidden_locators(snapshot: Snapshot, sha256: str, view: View) -> list[str | None]:
    """Return the locators of hidden memories in a file's content."""
    s, m = tables.sources.alias("s"), tables.memories.alias("m")
    p = tables.supports.alias("p")
    joins = (
        ordered(s, (m, m.c.source_id == s.c.source_id)),
        ordered(s, (p, p.c.source_id == s.c.source_id), (m, m.c.memory_id == p.c.memory_id)),
    )
    hidden = (s.c.content_sha256 == bound(sha256), is_untrue(view.where(m)))
    query = sa.union(*(sa.select(s.c.locator).select_from(way).where(*hidden) for way in joins))
    return snapshot.column(query, view.params)


def _visible(
    snapshot: Snapshot, view: View, heads: Sequence[dict[str, Any]]
) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Yield the visible receipts with the ids of their memories.

    A receipt with a hidden memory is not visible; erased memories do not count as hidden. A
    bulletin's receipt is visible to readers who may see everything that its recipient could.
    """
    # A receipt that repeats another has the items of that one.
    holders = [head["same_as"] or head["receipt_id"] for head in heads]
    bulletins = sorted({head["bulletin_id"] for head in heads if head["bulletin_id"]})
    # One JSON value is faster than ten thousand rows.
    f, i = listed(sorted(set(holders)), "f"), tables.recall_items.alias("i")
    of_one = sa.func.json_group_array(i.c.memory_id).aggregate_order_by(i.c.rank)
    own = sa.select(of_one).where(i.c.recall_id == f.c.value).correlate(f).scalar_subquery()
    query = sa.select(sa.func.json_group_object(f.c.value, sa.func.json(own)))
    items = json.loads(snapshot.scalar(query))
    b = tables.bulletins
    citing = sa.select(b.c.bulletin_id, b.c.memory_ids).where(among(b.c.bulletin_id, bulletins))
    cited = {key: json.loads(ids) for key, ids in snapshot.rows(citing)}
    ids_per_receipt = [
        [
            *items[holder],
            *cited.get(head["bulletin_id"], ()),
            *(json.loads(head["beside"] or "null") or ()),
        ]
        for head, holder in zip(heads, holders, strict=True)
    ]
    hidden = set(hidden_ids(snapshot, view, sorted(set().union(*ids_per_receipt))))
    for head, ids in zip(heads, ids_per_receipt, strict=True):
        if hidden.isdisjoint(ids) and (
            head["bulletin_id"] is None
            or is_covered(view.viewer, head["receipt_id"], head["viewer"])
        ):
            yield head, ids


def _mentions(
    snapshot: Snapshot, view: View, rows: Any, limit: int, reported: frozenset[str] | None
) -> list[ReceiptMention]:
    """Return the first ``limit`` visible receipts, with the ids of their memories.

    Args:
        rows: a cursor, which is read only as far as necessary.
        reported: the ids that may be returned; None: all.
    """
    mentions: list[ReceiptMention] = []
    while len(mentions) < limit and (block := rows.fetchmany(min(limit, _BLOCK))):
        heads = [dict(zip(_HEAD, row, strict=True)) for row in block]
        for head, ids in _visible(snapshot, view, heads):
            kept = ids if reported is None else filter(reported.__contains__, ids)
            mentions.append(_mention(head, tuple(dict.fromkeys(kept))))
    rows.close()
    return mentions[:limit]


def _mention(head: dict[str, Any], memory_ids: tuple[str, ...]) -> ReceiptMention:
    fields = {
        **{name: head[name] for name in _FIELDS},
        "purpose": head["purpose"] or PURPOSE,
        "memory_ids": memory_ids,
        # Requests are stored as JSON, with times in ISO 8601.
        "as_of": None if head["as_of"] is None else parse_time(head["as_of"]),
    }
    return built(ReceiptMention, fields)
