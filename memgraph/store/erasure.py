"""Write an erasure: blank rows, clean indexes, and record it in the journal.

Rows that something refers to stay, without their texts. ``secure_delete`` makes SQLite overwrite
freed space, and makes FTS5 remove words instead of marking them as removed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from memgraph.ids import short_id
from memgraph.model.enums import MemoryStatus
from memgraph.rules.erasure import (
    MARK,
    Scrub,
    redacted_details,
    redacted_words,
    scrubbed,
    without_notes,
)
from memgraph.store import embeddings, metadata, tables, text_index
from memgraph.store.erasure_search import given_ids, joins_given
from memgraph.store.memories import set_statuses
from memgraph.store.snapshot import JournalledTransaction, Snapshot, Transaction
from memgraph.store.statements import (
    Column,
    CompiledStatement,
    among,
    each,
    greatest,
    member,
    place_of,
    prepared,
    value,
)

ERASED_KEY: Final = "erased_through"
"""The head of the journal at the last erasure. Texts built from an earlier head are invalid."""


@prepared
def _unretracted() -> sa.Select[Any]:
    m = tables.memories
    due = among(m.c.pk, "pks") & (m.c.status != MemoryStatus.RETRACTED)
    return sa.select(m.c.memory_id).where(due)


def retract(transaction: JournalledTransaction, pks: Sequence[int]) -> None:
    """Retract memories that are not retracted yet, with the reason ``erased``."""
    ids = _unretracted().column(transaction, pks=pks)
    if ids:
        set_statuses(transaction, ids, MemoryStatus.RETRACTED, reason="erased")


@prepared
def _blank() -> sa.Update:
    m = tables.memories
    nothing = dict.fromkeys(("search_terms", "item_id", "source_role"))
    empty = {"content": "", "summary": "", "tags": "[]", "attributes": "{}", "token_cost": 0}
    changes = {
        "content_hash": "erased:" + m.c.memory_id,
        "updated_at": greatest(m.c.updated_at, value("at")),
    }
    return sa.update(m).where(among(m.c.pk, "pks")).values(nothing | empty | changes)


@cache
def _blanked() -> dict[str, CompiledStatement]:
    """Return the statements that blank or delete the rows of erased memories, by table."""
    e, h, r, n = tables.edges, tables.statuses, tables.revisions, tables.entities
    c, k, w = tables.comparisons, tables.document_keys, tables.pending_links
    link = tables.links
    mentioned = sa.select(link.c.entity_pk).where(among(link.c.memory_pk, "pks"))
    changes: list[sa.Update | sa.Delete] = [
        sa.update(e).where(e.c.reason.is_not(None), joins_given()).values(reason=MARK),
        sa.update(h).where(h.c.memory_id.in_(given_ids())).values(reason="erased"),
        sa.update(r).where(r.c.memory_id.in_(given_ids())).values(tags="[]", attributes="{}"),
        sa.delete(c).where(among(c.c.memory_pk, "pks")),
        sa.delete(w).where(w.c.memory_id.in_(given_ids())),
        sa.delete(k).where(k.c.memory_id.in_(given_ids())),
        sa.update(n).where(n.c.summary.is_not(None), n.c.pk.in_(mentioned)).values(summary=None),
    ]
    return {str(statement.table): CompiledStatement(statement) for statement in changes}


def blank(transaction: JournalledTransaction, pks: Sequence[int]) -> dict[str, int]:
    """Remove every text from retracted memories and from the rows that belong to them.

    Returns:
        The number of changed rows by table, without zeros.
    """
    counts = {}
    embeddings.forget(transaction, pks)
    counts["memories"] = _blank().write(transaction, pks=pks, at=transaction.at)
    transaction.engine.texts.remove(transaction, pks)
    counts["memory_embeddings"] = len(pks)
    counts["memory_edges"] = _resolutions(transaction, pks)
    for table, statement in _blanked().items():
        counts[table] = counts.get(table, 0) + statement.write(transaction, pks=pks)
    counts["memory_entities"] = _unlink(transaction, pks)
    return {table: count for table, count in counts.items() if count}


def _unlink(transaction: Transaction, pks: Sequence[int]) -> int:
    """Unlink memories from their entities; return the number of entities that lost mentions."""
    touched = text_index.unlink(transaction, pks)
    text_index.recount(transaction, touched, ())
    return len(touched)


@prepared
def _decided(*, before: bool) -> sa.Select[Any]:
    """Select the keys and resolutions of contradictions with the memories.

    Args:
        before: the resolutions in earlier revisions instead of the current ones.
    """
    e, r = tables.edges, tables.edge_revisions
    if not before:
        query = sa.select(e.c.edge_id, e.c.resolution)
        return query.where(e.c.resolution.is_not(None), joins_given())
    query = sa.select(r.c.revision_id, r.c.resolution).where(r.c.resolution.is_not(None))
    return query.where(r.c.edge_id.in_(sa.select(e.c.edge_id).where(joins_given())))


@prepared
def _redecide(*, before: bool) -> sa.Update:
    e, r = tables.edges, tables.edge_revisions
    changed = sa.update(r) if before else sa.update(e)
    key = r.c.revision_id if before else e.c.edge_id
    return changed.where(key == value("key")).values(resolution=value("how"))


def _resolutions(transaction: Transaction, pks: Sequence[int]) -> int:
    changed = 0
    for before in (False, True):
        rows = _decided(before=before).rows(transaction, pks=pks)
        for key, resolution in rows:
            how = redacted_words(resolution, str)
            _redecide(before=before).write(transaction, key=key, how=how)
        changed += len(rows)
    return changed


@cache
def _removed() -> list[CompiledStatement]:
    """Return the statements that delete links, names and entities, in this order."""
    keys = (tables.links.c.entity_pk, tables.aliases.c.entity_pk, tables.entities.c.pk)
    return [CompiledStatement(sa.delete(key.table).where(among(key, "pks"))) for key in keys]


def remove_entities(transaction: Transaction, pks: Collection[int]) -> int:
    """Remove entities with their names; return the number of removed entities."""
    *_, count = [statement.write(transaction, pks=sorted(pks)) for statement in _removed()]
    return count


def note_head(transaction: Transaction, seq: int) -> None:
    """Store the head of the journal; texts built from an earlier head must not be used."""
    metadata.put(transaction, ERASED_KEY, str(seq))


def erased_through(snapshot: Snapshot) -> int:
    """Return the head of the journal at the last erasure, or 0 without an erasure."""
    return int(metadata.get(snapshot, ERASED_KEY) or 0)


def _is_entry_of(erasure_id: Column) -> tuple[Column, ...]:
    log = tables.audit_log
    return log.c.action == "erase", member(log.c.details, "erasure_id") == erasure_id


@prepared
def _tombstones() -> sa.Select[Any]:
    log = tables.audit_log
    query = sa.select(log.c.subject, log.c.seq, log.c.hash)
    return query.where(*_is_entry_of(value("erasure_id")), log.c.subject.is_not(None))


def tombstones(snapshot: Snapshot, erasure_id: str) -> list[tuple[str, int, str]]:
    """Return (memory id, seq, seal) of the tombstones of an erasure."""
    return _tombstones().rows(snapshot, erasure_id=erasure_id)


@prepared
def _erased_among() -> sa.Select[Any]:
    log = tables.audit_log
    return sa.select(log.c.subject).where(log.c.action == "erase", among(log.c.subject, "ids"))


def erased_among(snapshot: Snapshot, memory_ids: Collection[str]) -> set[str]:
    """Return the ids that an erasure covers, whether it is finished or not."""
    return set(_erased_among().column(snapshot, ids=sorted(memory_ids)))


@prepared
def _erasure_steps() -> sa.Select[Any]:
    log = tables.audit_log
    return sa.select(log.c.details).where(
        *_is_entry_of(value("erasure_id")), log.c.subject.is_(None)
    )


def erasure_steps(snapshot: Snapshot, erasure_id: str) -> list[dict[str, Any]]:
    """Return the details of an erasure's journal entries that have no subject."""
    return [
        json.loads(details) for details in _erasure_steps().column(snapshot, erasure_id=erasure_id)
    ]


@prepared
def _note_redacted() -> sa.Update:
    f = tables.files
    now = sa.func.json_object("sha256", value("redacted"), "at", value("at"))
    noted = sa.func.json_set(f.c.manifest, "$.redacted", now)
    return sa.update(f).where(f.c.sha256 == value("file")).values(manifest=noted)


def note_redacted(transaction: Transaction, sha256: str, redacted_sha256: str, at: int) -> None:
    """Record the new digest of a file with redacted lines in ``manifest["redacted"]``.

    It identifies the redacted file as the same file.
    """
    _note_redacted().write(transaction, file=sha256, redacted=redacted_sha256, at=at)


@prepared
def _empty_manifest() -> sa.Update:
    f, json_of = tables.files, sa.func.json
    items = json_of(sa.func.coalesce(member(f.c.manifest, "items"), "{}"))
    remainder = sa.func.json_object("erased", json_of("true"), "at", value("at"), "items", items)
    return sa.update(f).where(f.c.sha256 == value("file")).values(manifest=remainder)


def empty_manifest(transaction: Transaction, sha256: str, at: int) -> None:
    """Reduce the manifest of a removed file to its items and the time of removal."""
    _empty_manifest().write(transaction, file=sha256, at=at)


# Other rows that contain an erased text, and their redacted values.


JOURNAL: Final = "audit_log"
MEMORIES: Final = "memories"
_PLACE: Final = "place of the row"
_PAGE: Final = 2_000

# The columns that may repeat an erased text: (table, key columns, text columns).
_SWEPT: Final = (
    (MEMORIES, ("pk",), ("tags", "attributes")),
    ("memory_revisions", ("revision_id",), ("tags", "attributes")),
    ("memory_edges", (_PLACE,), ("reason", "resolution")),
    ("memory_edge_revisions", ("revision_id",), ("resolution",)),
    ("memory_status", ("status_id",), ("reason",)),
    ("entities", ("pk",), ("summary",)),
    ("recalls", (_PLACE,), ("query", "request", "viewer", "left_out", "purpose", "actor")),
    ("recall_items", ("recall_id", "rank"), ("explanation",)),
    ("bulletins", (_PLACE,), ("body",)),
    ("job_runs", (_PLACE,), ("counts", "rejected", "reason")),
    ("ingest_files", (_PLACE,), ("manifest",)),
    ("ingest_parts", (_PLACE,), ("outcomes",)),
    ("ingest_pending_links", ("link_id",), ("reason",)),
    ("memory_metadata", (_PLACE,), ("value",)),
)
# Rows that are deleted, because a pending link to an erased file has no target.
_REMOVED: Final = (("ingest_pending_links", ("link_id",), ("target",)),)
_DECISIONS: Final = frozenset({"relate", "resolve", "reopen", "dismiss"})


class ErasedRow(NamedTuple):
    """A row that contains an erased text.

    Attributes:
        keys, key: the key columns and their values.
        columns, before: the text columns and their values when they were read.
        after: the redacted values; None: the row is deleted.
    """

    table: str
    keys: tuple[str, ...]
    key: tuple[Any, ...]
    columns: tuple[str, ...]
    before: tuple[str | None, ...]
    after: tuple[str | None, ...] | None


class RedactedJournalEntry(NamedTuple):
    """A redacted journal entry: its number, its seal, and the SHA-256 of its new details."""

    seq: int
    hash: str
    details: str


@prepared
def _citing_bulletins() -> sa.Select[Any]:
    b = tables.bulletins
    return sa.select(b.c.bulletin_id, b.c.body, b.c.memory_ids).where(_lists_one(b))


def _lists_one(table: sa.Table) -> Column:
    """Return the SQL condition that a row's ``memory_ids`` contain one of ``ids``."""
    i = each(table.c.memory_ids, "i")
    return sa.exists().select_from(i).where(among(i.c.value, "ids")).correlate(table)


@prepared
def _citing_queries() -> sa.Select[Any]:
    r, i = tables.recalls, tables.recall_items
    receipt = sa.func.coalesce(r.c.same_as, r.c.recall_id)
    citing = sa.select(i.c.recall_id).where(among(i.c.memory_id, "ids"))
    query = sa.select(r.c.recall_id, r.c.query)
    return query.where(r.c.query != "", receipt.in_(citing))


@prepared
def _reasons_beside() -> sa.Select[Any]:
    h, e = tables.statuses, tables.edges
    neighbours = sa.union(
        sa.select(e.c.from_memory_id).where(among(e.c.to_memory_id, "ids")),
        sa.select(e.c.to_memory_id).where(among(e.c.from_memory_id, "ids")),
    )
    query = sa.select(h.c.status_id, h.c.reason)
    return query.where(h.c.reason.is_not(None), h.c.memory_id.in_(neighbours))


def rows_citing(
    snapshot: Snapshot, memory_ids: Collection[str], notes: Collection[str]
) -> Iterator[ErasedRow]:
    """Yield rows that were derived from erased memories, whatever their text.

    These are bulletins, queries, and the reasons of decisions about them.

    Args:
        notes: the reasons that were written about the erased memories.
    """
    ids = sorted(memory_ids)
    for bulletin_id, body, cited in _citing_bulletins().cursor(snapshot, ids=ids):
        erased_ids = [
            short_id(memory_id) for memory_id in json.loads(cited) if memory_id in memory_ids
        ]
        lines = [
            MARK if any(memory_id in line for memory_id in erased_ids) else line
            for line in body.split("\n")
        ]
        if (after := "\n".join(lines)) != body:
            key = ("bulletin_id",), (bulletin_id,)
            yield ErasedRow("bulletins", *key, ("body",), (body,), (after,))
    for recall_id, query in _citing_queries().cursor(snapshot, ids=ids):
        yield ErasedRow("recalls", ("recall_id",), (recall_id,), ("query",), (query,), ("",))
    for status_id, reason in _reasons_beside().cursor(snapshot, ids=ids):
        if (after := without_notes(reason, memory_ids, notes)) != reason:
            key = ("status_id",), (status_id,)
            yield ErasedRow("memory_status", *key, ("reason",), (reason,), (after,))


def _named(table: str, *names: str) -> list[Column]:
    """Return the columns of a table with these names."""
    columns_of = tables.memories.metadata.tables[table]
    return [place_of(columns_of) if name == _PLACE else columns_of.c[name] for name in names]


@prepared
def _swept(table: str, keys: tuple[str, ...], columns: tuple[str, ...]) -> sa.Select[Any]:
    texts = _named(table, *columns)
    return sa.select(*_named(table, *keys), *texts).where(
        sa.or_(*(text.is_not(None) for text in texts))
    )


def rows_saying(
    snapshot: Snapshot,
    memory_ids: Collection[str],
    entity_ids: Collection[str],
    says: Callable[[bytes], bool],
    scrub: Scrub,
) -> Iterator[ErasedRow]:
    """Yield all other rows with an erased text, and the journal entries about erased memories.

    Args:
        says: returns True if some bytes contain one of the erased strings.
        scrub: removes the erased strings from a text.
    """
    for table, keys, columns in (*_SWEPT, *_REMOVED):
        goes = (table, keys, columns) in _REMOVED
        cursor = _swept(table, keys, columns).cursor(snapshot)
        while page := cursor.fetchmany(_PAGE):
            texts = [row[len(keys) :] for row in page]
            if not says(_joined(text for row in texts for text in row if text)):
                continue
            for row, before in zip(page, texts, strict=True):
                after = tuple(text if text is None else scrubbed(text, scrub) for text in before)
                if after != tuple(before):
                    key = tuple(row[: len(keys)])
                    yield ErasedRow(
                        table, keys, key, columns, tuple(before), None if goes else after
                    )
    yield from _journal(snapshot, memory_ids, entity_ids, says, scrub)


@prepared
def _entries() -> sa.Select[Any]:
    log = tables.audit_log
    return sa.select(log.c.seq, log.c.action, log.c.subject, log.c.details).order_by(log.c.seq)


def _journal(
    snapshot: Snapshot,
    memory_ids: Collection[str],
    entity_ids: Collection[str],
    says: Callable[[bytes], bool],
    scrub: Scrub,
) -> Iterator[ErasedRow]:
    decided = set(_edges_of().column(snapshot, ids=sorted(memory_ids)))
    subjects = {*memory_ids, *entity_ids}
    cursor = _entries().cursor(snapshot)
    while page := cursor.fetchmany(_PAGE):
        page_matches = says(_joined(row[3] for row in page))
        for seq, action, subject, details in page:
            own = subject in subjects or (
                action in _DECISIONS and json.loads(details).get("edge_id") in decided
            )
            if not own and (not page_matches or scrubbed(details, scrub) == details):
                continue
            after = redacted_details(details, scrub, own=own)
            if after != details:
                yield ErasedRow(JOURNAL, ("seq",), (seq,), ("details",), (details,), (after,))


@prepared
def _edges_of() -> sa.Select[Any]:
    e = tables.edges
    either = among(e.c.from_memory_id, "ids") | among(e.c.to_memory_id, "ids")
    return sa.select(e.c.edge_id).where(either)


def _joined(texts: Iterator[str]) -> bytes:
    return "\0".join(texts).encode("utf-8", "surrogatepass")


@prepared
def _apply(
    table: str, keys: tuple[str, ...], columns: tuple[str, ...], goes: bool
) -> sa.Update | sa.Delete:
    changed = tables.memories.metadata.tables[table]
    same = (
        column.is_not_distinct_from(value(f"was_{place}"))
        for place, column in enumerate(_named(table, *keys, *columns))
    )
    if goes:
        return sa.delete(changed).where(*same)
    after = {name: value(f"after_{place}") for place, name in enumerate(columns)}
    return sa.update(changed).where(*same).values(after)


def apply(transaction: Transaction, changes: Sequence[ErasedRow]) -> list[ErasedRow]:
    """Apply the changes to rows that have not changed since they were read; return them."""
    applied: list[ErasedRow] = []
    for kind, some in groupby(changes, _kind):
        statement = _apply(*kind)
        for change in some:
            was, after = (*change.key, *change.before), change.after or ()
            values = {f"was_{place}": text for place, text in enumerate(was)}
            values |= {f"after_{place}": text for place, text in enumerate(after)}
            if statement.write(transaction, values):
                applied.append(change)
    # Tags are indexed, attributes are not: postings of a row that did not change are not read anew.
    retagged = [row.key[0] for row in applied if row.table == MEMORIES and _retagged(row)]
    transaction.engine.texts.remove(transaction, retagged)
    return applied


def _retagged(change: ErasedRow) -> bool:
    place = change.columns.index("tags")
    return change.after is not None and change.after[place] != change.before[place]


def _kind(change: ErasedRow) -> tuple[str, tuple[str, ...], tuple[str, ...], bool]:
    return change.table, change.keys, change.columns, change.after is None


@prepared
def _sealed() -> sa.Select[Any]:
    log = tables.audit_log
    return sa.select(log.c.seq, log.c.hash).where(among(log.c.seq, "seqs")).order_by(log.c.seq)


def redacted(snapshot: Snapshot, changes: Sequence[ErasedRow]) -> list[RedactedJournalEntry]:
    """Return the redacted journal entries among the changes, for recording the erasure."""
    details = {
        change.key[0]: change.after[0] or ""
        for change in changes
        if change.table == JOURNAL and change.after is not None
    }
    sealed = _sealed().rows(snapshot, seqs=sorted(details))
    return [RedactedJournalEntry(seq, seal, digest(details[seq])) for seq, seal in sealed]


def digest(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
