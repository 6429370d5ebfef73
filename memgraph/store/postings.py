"""Postings for BM25: for each word, the memories that contain it and how often.

Postings are stored in segments. Each segment covers a range of keys without overlap, with one row
per word. Memories after the last segment form the tail: readers take its words from the texts, so
that a write does not touch this index. They do the same for memories whose words changed since
their segment was written; triggers record these in ``text_changes``. Merging turns the tail into a
segment, joins small segments, and rewrites segments with many changes. Each merge is prepared on a
snapshot and committed in one transaction, if nothing it is based on has changed since.

A row of postings is ``n`` offsets from the segment's first key (uint16, little-endian, ascending)
and then ``n`` counts (uint8, 255 for more).
"""

from __future__ import annotations

import sys
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import sqlalchemy as sa

from memgraph.store import tables
from memgraph.store.snapshot import InsertRows, Snapshot, Transaction
from memgraph.store.statements import Column, bound, prepared, raw_text, value
from memgraph.text.stem import stem, words

if TYPE_CHECKING:
    from memgraph.store.engine import Database

heads, rows, changes = tables.text_segments, tables.text_postings, tables.text_changes
TAIL = 1_024
"""From this size on, the tail is turned into a segment in the background."""
MOST_TAIL = 4_096
"""From this size on, the writer itself turns the tail into a segment."""
MIDDLE, LARGEST = 8_192, 65_536
"""The numbers of keys in merged segments; offsets have 16 bits."""
MOST_CHANGES = 256
"""From this number of changed memories on, a segment is rewritten."""
# The pause between two transactions, in which other writers get their turn.
GIVE_WAY_S = 0.004
_MOST_COUNT, _MOST_LENGTH = 255, 65_535
_PAGE = 512
BYTES_A_POSTING = 3


def _fields(m: sa.FromClause) -> tuple[Column, ...]:
    text = (raw_text(m.c.content), m.c.source_role, m.c.tags, m.c.search_terms)
    return m.c.pk, *text, m.c.scope, m.c.scope_id, m.c.sensitivity


@prepared
def texts() -> sa.Select[Any]:
    """Select the fields for `document` of the memories with keys from ``first`` to ``last``."""
    m = tables.memories
    between = m.c.pk.between(value("first"), value("last"))
    return sa.select(*_fields(m)).where(between).order_by(m.c.pk)


@prepared
def changed_texts() -> sa.Select[Any]:
    """Select key and number of each change, with the fields for `document` (NULL if removed)."""
    c, m = changes.alias("c"), tables.memories.alias("m")
    query = sa.select(c.c.pk, c.c.seq, *_fields(m))
    return query.select_from(c.outerjoin(m, m.c.pk == c.c.pk)).order_by(c.c.pk)


def _is_stray() -> Column:
    return rows.c.segment.not_in(sa.select(heads.c.segment))


class IndexedText(NamedTuple):
    """The words of a memory.

    Attributes:
        terms: the counts of the stems in its content, tags and search terms.
        length: the number of its words, including those of its speaker.
        mark: the mark of its scope and sensitivity, see `mark_of`.
    """

    pk: int
    terms: Counter[str]
    length: int
    mark: int


class Segment(NamedTuple):
    """A row of ``text_segments`` without its blobs; a change of the row changes the stamp.

    Attributes:
        span: the number of keys that it covers, beginning with ``first``.
    """

    segment: int
    stamp: int
    first: int
    span: int

    @property
    def last(self) -> int:
        return self.first + self.span - 1


@dataclass(frozen=True, slots=True)
class SegmentDraft:
    """A segment that is to be written.

    Attributes:
        lengths, marks: for each key from ``first`` on, as little-endian uint16 and uint32.
        rows: the postings of each term, in ascending order.
        replaced: the segments that it replaces.
        covered: the last key of all segments when it was prepared.
        seen: the last change when it was prepared.
    """

    first: int
    lengths: bytes
    marks: bytes
    documents: int
    tokens: int
    rows: list[tuple[str, bytes]]
    replaced: tuple[Segment, ...]
    covered: int
    seen: int

    @property
    def last(self) -> int:
        return self.first + len(self.lengths) // 2 - 1


@lru_cache(maxsize=4_096)
def mark_of(scope: str, scope_id: str | None, sensitivity: str) -> int:
    """Return a 32-bit hash of scope and sensitivity, to exclude other memories from ranking.

    Hashes may collide; SQL decides which results are visible.
    """
    return crc32(f"{sensitivity}\0{scope}\0{scope_id or ''}".encode("utf-8", "surrogatepass"))


def document(row: Sequence[Any]) -> IndexedText:
    """Return the words of a row of `texts`."""
    pk, content, speaker, tags, search_terms, scope, scope_id, sensitivity = row[:8]
    text = content if isinstance(content, str) else bytes(content).decode("utf-8", "replace")
    if tags != "[]":
        text = f"{text}\n{tags}"
    if search_terms is not None:
        text = f"{text}\n{search_terms}"
    tokens = words(text)
    length = len(tokens) + (len(words(speaker)) if speaker else 0)
    return IndexedText(
        pk,
        Counter(map(stem, tokens)),
        min(length, _MOST_LENGTH),
        mark_of(scope, scope_id, sensitivity),
    )


def packed(offsets: array[int], counts: bytes | bytearray) -> bytes:
    """Return offsets and counts as the bytes of a row of postings."""
    if sys.byteorder == "big":
        offsets = array("H", offsets)
        offsets.byteswap()
    return offsets.tobytes() + counts


def segments(snapshot: Snapshot) -> list[Segment]:
    """Return all segments in the order of their keys."""
    h = heads.c
    span = sa.func.length(h.lengths).op("/")(2)
    query = sa.select(h.segment, h.stamp, h.first_pk, span).order_by(h.first_pk)
    return snapshot.mapped(Segment._make, query)


def draft(snapshot: Snapshot, first: int, last: int) -> SegmentDraft:
    """Prepare the segment of all memories with keys from ``first`` to ``last``."""
    last_change = snapshot.scalar(sa.select(sa.func.coalesce(sa.func.max(changes.c.seq), 0)))
    existing = segments(snapshot)
    span = last - first + 1
    if not 0 < span <= LARGEST:
        raise ValueError(f"a segment covers 1 to {LARGEST} keys, not {span}")
    lengths, marks = array("H", bytes(2 * span)), array("I", bytes(4 * span))
    rows_by_term: dict[str, tuple[array[int], bytearray]] = {}
    documents = tokens = 0
    for text in _documents(texts().cursor(snapshot, first=first, last=last)):
        offset = text.pk - first
        lengths[offset], marks[offset] = text.length, text.mark
        documents, tokens = documents + 1, tokens + text.length
        for term, count in text.terms.items():
            row = rows_by_term.get(term)
            if row is None:
                row = rows_by_term[term] = (array("H"), bytearray())
            row[0].append(offset)
            row[1].append(count if count < _MOST_COUNT else _MOST_COUNT)
    if sys.byteorder == "big":
        lengths.byteswap()
        marks.byteswap()
    return SegmentDraft(
        first,
        lengths.tobytes(),
        marks.tobytes(),
        documents,
        tokens,
        [(term, packed(*rows_by_term[term])) for term in sorted(rows_by_term)],
        tuple(segment for segment in existing if segment.first <= last and segment.last >= first),
        existing[-1].last if existing else 0,
        last_change,
    )


def _documents(cursor: Any) -> Iterator[IndexedText]:
    while page := cursor.fetchmany(_PAGE):
        yield from map(document, page)


@prepared
def _remove_rows() -> sa.Delete:
    return sa.delete(rows).where(rows.c.segment == value("segment"))


@prepared
def _remove_head() -> sa.Delete:
    return sa.delete(heads).where(heads.c.segment == value("segment"))


_add_rows = InsertRows("text_postings", ("segment", "term", "postings"))


def commit(transaction: Transaction, new: SegmentDraft) -> bool:
    """Replace segments by a draft; return False if they have changed since it was prepared."""
    existing = segments(transaction)
    overlapping = tuple(old for old in existing if old.first <= new.last and old.last >= new.first)
    covered = existing[-1].last if existing else 0
    if overlapping != new.replaced or covered != new.covered or _changed_since(transaction, new):
        return False
    for old in overlapping:
        _remove_rows().write(transaction, segment=old.segment)
        _remove_head().write(transaction, segment=old.segment)
    names = ("first_pk", "documents", "tokens", "lengths", "marks")
    columns = {"stamp": sa.literal(0)} | {name: value(name) for name in names}
    [segment] = transaction.column(
        sa.insert(heads).values(columns).returning(heads.c.segment),
        first_pk=new.first,
        documents=new.documents,
        tokens=new.tokens,
        lengths=new.lengths,
        marks=new.marks,
    )
    _add_rows(transaction, [(segment, *row) for row in new.rows])
    c = changes.c
    between = c.pk.between(bound(new.first), bound(new.last))
    transaction.write(sa.delete(changes).where(between, c.seq <= bound(new.seen)))
    return True


def _changed_since(snapshot: Snapshot, new: SegmentDraft) -> bool:
    values = {"seen": new.seen, "first": new.first, "last": new.last}
    c = changes.c
    between = c.pk.between(value("first"), value("last"))
    query = sa.select(c.pk).where(c.seq > value("seen"), between).limit(1)
    return snapshot.row(query, values) is not None


def due(snapshot: Snapshot) -> SegmentDraft | None:
    """Return the next draft to commit (tail, small segments or changes), or None."""
    existing = segments(snapshot)
    span = _tail(snapshot, existing, TAIL) or _small(existing) or _changed(snapshot, existing)
    return None if span is None else draft(snapshot, *span)


def _tail(snapshot: Snapshot, existing: Sequence[Segment], minimum: int) -> tuple[int, int] | None:
    covered = existing[-1].last if existing else 0
    m = tables.memories
    first = sa.select(sa.func.min(m.c.pk)).where(m.c.pk > bound(covered))
    query = sa.select(first.scalar_subquery(), sa.select(sa.func.max(m.c.pk)).scalar_subquery())
    first_pk, last = snapshot.row(query)
    if first_pk is None or last - first_pk + 1 < minimum:
        return None
    return first_pk, min(last, first_pk + MIDDLE - 1)


def _small(existing: Sequence[Segment]) -> tuple[int, int] | None:
    """Return the key range of neighbouring segments that should be merged, or None."""
    for size in (MIDDLE, LARGEST):
        run: list[Segment] = []
        for segment in reversed(existing):
            if segment.span > size // 2:
                break
            run.insert(0, segment)
        if run and run[-1].last - run[0].first + 1 >= size:
            last = max(segment.last for segment in run if segment.last - run[0].first < LARGEST)
            return run[0].first, last
    return None


def _changed(snapshot: Snapshot, existing: Sequence[Segment]) -> tuple[int, int] | None:
    """Return the key range of the segment with the most changes, if there are many."""
    if not existing:
        return None
    query = sa.select(changes.c.pk).where(changes.c.pk <= bound(existing[-1].last))
    changed = snapshot.column(query)
    if len(changed) < MOST_CHANGES:
        return None
    counts = Counter(
        candidate
        for pk in changed
        for candidate in existing
        if candidate.first <= pk <= candidate.last
    )
    if not counts:
        return None
    [(segment, _)] = counts.most_common(1)
    return segment.first, segment.last


def add(transaction: Transaction, first: int, last: int) -> None:
    """Index the memories that the transaction stored with these keys, the highest ones.

    A long tail is turned into segments.
    """
    transaction.engine.phrases.index_texts(transaction)
    # Check the tail only once per TAIL keys, so that single writes stay cheap.
    if first // TAIL == (last + 1) // TAIL:
        return
    while keys := _tail(transaction, segments(transaction), MOST_TAIL):
        commit(transaction, draft(transaction, *keys))


@prepared
def _rows_of() -> sa.Select[Any]:
    query = sa.select(rows.c.term, rows.c.postings).where(rows.c.segment == value("segment"))
    return query.order_by(rows.c.term)


@prepared
def _rewrite_row() -> sa.Update:
    conditions = (rows.c.segment == value("segment_"), rows.c.term == value("term_"))
    return sa.update(rows).where(*conditions).values(postings=value("left"))


@prepared
def _remove_row() -> sa.Delete:
    conditions = (rows.c.segment == value("segment"), rows.c.term == value("term"))
    return sa.delete(rows).where(*conditions)


@prepared
def _head() -> sa.Select[Any]:
    h = heads.c
    query = sa.select(h.documents, h.tokens, h.lengths, h.marks)
    return query.where(h.segment == value("segment"))


@prepared
def _update_head() -> sa.Update:
    shorter = {"lengths": value("new_lengths"), "tokens": value("new_tokens")}
    changed = sa.update(heads).where(heads.c.segment == value("its"))
    return changed.values(shorter | {"stamp": heads.c.stamp + 1})


def remove(transaction: Transaction, pks: Iterable[int]) -> None:
    """Remove the postings of memories from the segments.

    The memories count as changed: their words are read from the texts until the next rewrite.
    """
    import numpy as np

    keys = sorted(set(pks))
    for segment in segments(transaction):
        offsets = [pk - segment.first for pk in keys if segment.first <= pk <= segment.last]
        if not offsets:
            continue
        removed = np.zeros(LARGEST, dtype=np.bool_)
        removed[offsets] = True
        stored = _rows_of().rows(transaction, segment=segment.segment)
        counts = np.array([len(row) // BYTES_A_POSTING for _, row in stored], dtype=np.int64)
        joined = b"".join(row[: len(row) // BYTES_A_POSTING * 2] for _, row in stored)
        hits = np.flatnonzero(removed[np.frombuffer(joined, dtype="<u2")])
        row_indexes = np.unique(np.searchsorted(np.cumsum(counts), hits, side="right"))
        for term, row in (stored[row_index] for row_index in row_indexes.tolist()):
            count = len(row) // BYTES_A_POSTING
            offsets_of_row = np.frombuffer(row, dtype="<u2", count=count)
            remains = ~removed[offsets_of_row]
            remainder = offsets_of_row[remains].tobytes() + bytes(
                np.frombuffer(row, dtype=np.uint8, offset=2 * count)[remains]
            )
            if remainder:
                _rewrite_row().write(
                    transaction, segment_=segment.segment, term_=term, left=remainder
                )
            else:
                _remove_row().write(transaction, segment=segment.segment, term=term)
        _, _, blob, _ = _head().row(transaction, segment=segment.segment)
        lengths = np.frombuffer(blob, dtype="<u2").copy()
        lengths[offsets] = 0
        tokens = int(lengths.sum(dtype=np.int64))
        shorter = {"new_lengths": lengths.tobytes(), "new_tokens": tokens}
        _update_head().write(transaction, shorter, its=segment.segment)


def merge(database: Database, stop: Callable[[], bool] = lambda: False) -> None:
    """Commit due segments, one draft at a time, until none is due; interruptions are harmless."""
    while not stop():
        with database.read() as snapshot:
            new = due(snapshot)
        if new is None:
            return
        with database.write(durable=False) as transaction:
            commit(transaction, new)
        time.sleep(GIVE_WAY_S)


def rebuild(database: Database) -> None:
    """Rewrite every segment and remove postings without a segment."""
    with database.write(durable=False) as transaction:
        transaction.write(sa.delete(rows).where(_is_stray()))
        if _overlap(segments(transaction)):
            transaction.write(sa.delete(rows))
            transaction.write(sa.delete(heads))
    with database.read() as snapshot:
        existing = segments(snapshot)
    for segment in existing:
        with database.read() as snapshot:
            new = draft(snapshot, segment.first, segment.last)
        with database.write(durable=False) as transaction:
            commit(transaction, new)
        time.sleep(GIVE_WAY_S)
    merge(database)


def _overlap(existing: Sequence[Segment]) -> bool:
    return any(segment.last >= following.first for segment, following in pairwise(existing))


def check(snapshot: Snapshot) -> bool:
    """Return True if the segments agree with the texts of the memories."""
    existing = segments(snapshot)
    if _overlap(existing):
        return False
    changed = set(snapshot.column(sa.select(changes.c.pk)))
    query = sa.select(rows.c.segment).where(_is_stray()).limit(1)
    has_strays = snapshot.row(query) is not None
    return not has_strays and all(_agrees(snapshot, segment, changed) for segment in existing)


def _agrees(snapshot: Snapshot, segment: Segment, changed: set[int]) -> bool:
    expected = draft(snapshot, segment.first, segment.last)
    stored = _rows_of().rows(snapshot, segment=segment.segment)
    head = _head().row(snapshot, segment=segment.segment)
    offsets = {pk - segment.first for pk in changed if segment.first <= pk <= segment.last}
    if offsets:
        return _without(stored, offsets) == _without(expected.rows, offsets)
    expected_head = (expected.documents, expected.tokens, expected.lengths, expected.marks)
    return stored == expected.rows and tuple(head) == expected_head


def _without(
    listed: Iterable[tuple[str, bytes]], offsets: set[int]
) -> dict[str, list[tuple[int, int]]]:
    pairs_by_term: dict[str, list[tuple[int, int]]] = {}
    for term, row in listed:
        count = len(row) // BYTES_A_POSTING
        places = memoryview(row[: 2 * count]).cast("H")
        pairs = [
            pair for pair in zip(places, row[2 * count :], strict=True) if pair[0] not in offsets
        ]
        if pairs:
            pairs_by_term[term] = pairs
    return pairs_by_term
