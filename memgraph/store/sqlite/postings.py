"""Postings: for each word the memories that hold it and how often, for ranking by BM25.

They lie in segments. A segment covers a range of keys and never overlaps another one; a word has
one row in it. What is stored after the last segment is the tail: readers take its words from the
texts themselves, so that a write leaves nothing here. So do they with memories whose words changed
since their segment was written, which triggers note in ``text_changes``. Merging writes the tail
as a segment, small segments as a larger one, and a segment with many changes anew; each is one
transaction, prepared on a snapshot and committed only if nothing it was made of changed meanwhile.

A row of postings is ``n`` offsets from the segment's first key (uint16, little-endian, ascending)
and then ``n`` counts (uint8, 255 for more).
"""

from __future__ import annotations

import sys
import time
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from memgraph.store.snapshot import Snapshot, Transaction, driver
from memgraph.text.stemming import stem, words

if TYPE_CHECKING:
    from memgraph.store.engine import Database
    from memgraph.store.ports import TextMatches

TAIL = 1_024
"""Memories behind the last segment from which the background makes another one."""
MOST_TAIL = 4_096
"""Memories behind the last segment from which the writer itself makes another one."""
MIDDLE, LARGEST = 8_192, 65_536
"""Keys that a merged segment covers; offsets have 16 bits."""
MOST_CHANGES = 256
"""Changed memories from which a segment is written anew."""
# Between two transactions others have their turn.
GIVE_WAY_S = 0.004
_MOST_COUNT, _MOST_LENGTH = 255, 65_535
_PAGE = 512
BYTES_A_POSTING = 3

# As bytes: one damaged text keeps nobody from finding the others.
_FIELDS = (
    "m.pk, CAST(m.content AS BLOB), m.source_role, m.tags, m.search_terms, m.scope, m.scope_id,"
    " m.sensitivity"
)
TEXTS = f"SELECT {_FIELDS} FROM memories m WHERE m.pk BETWEEN ? AND ? ORDER BY m.pk"
CHANGED_TEXTS = (
    f"SELECT c.pk, c.seq, {_FIELDS} FROM text_changes c"
    " LEFT JOIN memories m ON m.pk = c.pk ORDER BY c.pk"
)
_STRAY = "segment NOT IN (SELECT segment FROM text_segments)"
_SEGMENTS = (
    "SELECT segment, stamp, first_pk, length(lengths) / 2 FROM text_segments ORDER BY first_pk"
)


class Document(NamedTuple):
    """The words of a memory.

    Attributes:
        terms: how often each stem stands in its content, tags and search terms.
        length: how many words it has, those of its speaker counted too.
        mark: of its scope and sensitivity, see `mark_of`.
    """

    pk: int
    terms: Counter[str]
    length: int
    mark: int


class Segment(NamedTuple):
    """A row of ``text_segments``, its blobs left out. It is as it was read while the stamp stays.

    Attributes:
        span: how many keys it covers, from ``first`` on.
    """

    segment: int
    stamp: int
    first: int
    span: int

    @property
    def last(self) -> int:
        return self.first + self.span - 1


@dataclass(frozen=True, slots=True)
class Draft:
    """A segment that is to be written.

    Attributes:
        lengths, marks: of each key from ``first`` on, uint16 and uint32, little-endian.
        rows: the postings of each term, ascending.
        replaced: the segments whose place it takes.
        covered: the last key of all segments when it was made.
        seen: the last change when it was made.
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
    """Return 32 bits by which memories of other scopes and sensitivities are left out at once.

    Two may share them: they narrow what is ranked, SQL decides what is shown.
    """
    return crc32(f"{sensitivity}\0{scope}\0{scope_id or ''}".encode("utf-8", "surrogatepass"))


def document(row: Sequence[Any]) -> Document:
    """Return the words of a row of `TEXTS`."""
    pk, content, speaker, tags, search_terms, scope, scope_id, sensitivity = row[:8]
    text = bytes(content).decode("utf-8", "replace")
    if tags != "[]":
        text = f"{text}\n{tags}"
    if search_terms is not None:
        text = f"{text}\n{search_terms}"
    found = words(text)
    length = len(found) + (len(words(speaker)) if speaker else 0)
    return Document(
        pk,
        Counter(map(stem, found)),
        min(length, _MOST_LENGTH),
        mark_of(scope, scope_id, sensitivity),
    )


def packed(offsets: array[int], counts: bytes | bytearray) -> bytes:
    """Return a row of postings."""
    if sys.byteorder == "big":
        offsets = array("H", offsets)
        offsets.byteswap()
    return offsets.tobytes() + counts


def segments(snapshot: Snapshot) -> list[Segment]:
    """Return all segments in the order of their keys."""
    return [Segment._make(row) for row in driver(snapshot).execute(_SEGMENTS)]


def draft(snapshot: Snapshot, first: int, last: int) -> Draft:
    """Return the segment of all memories with keys from ``first`` to ``last``."""
    execute = driver(snapshot).execute
    [(seen,)] = execute("SELECT coalesce(max(seq), 0) FROM text_changes")
    known = segments(snapshot)
    span = last - first + 1
    if not 0 < span <= LARGEST:
        raise ValueError(f"a segment covers 1 to {LARGEST} keys, not {span}")
    lengths, marks = array("H", bytes(2 * span)), array("I", bytes(4 * span))
    rows: dict[str, tuple[array[int], bytearray]] = {}
    documents = tokens = 0
    for each in _documents(execute(TEXTS, (first, last))):
        offset = each.pk - first
        lengths[offset], marks[offset] = each.length, each.mark
        documents, tokens = documents + 1, tokens + each.length
        for term, count in each.terms.items():
            row = rows.get(term)
            if row is None:
                row = rows[term] = (array("H"), bytearray())
            row[0].append(offset)
            row[1].append(count if count < _MOST_COUNT else _MOST_COUNT)
    if sys.byteorder == "big":
        lengths.byteswap()
        marks.byteswap()
    return Draft(
        first,
        lengths.tobytes(),
        marks.tobytes(),
        documents,
        tokens,
        [(term, packed(*rows[term])) for term in sorted(rows)],
        tuple(each for each in known if each.first <= last and each.last >= first),
        known[-1].last if known else 0,
        seen,
    )


def _documents(cursor: Any) -> Iterator[Document]:
    while page := cursor.fetchmany(_PAGE):
        yield from map(document, page)


def commit(transaction: Transaction, made: Draft) -> bool:
    """Put a draft in the place of the segments it was made of; False: these are others by now."""
    execute = driver(transaction).execute
    known = segments(transaction)
    held = tuple(each for each in known if each.first <= made.last and each.last >= made.first)
    covered = known[-1].last if known else 0
    if held != made.replaced or covered != made.covered or _changed_since(transaction, made):
        return False
    for each in held:
        execute("DELETE FROM text_postings WHERE segment = ?", (each.segment,))
        execute("DELETE FROM text_segments WHERE segment = ?", (each.segment,))
    segment = execute(
        "INSERT INTO text_segments (stamp, first_pk, documents, tokens, lengths, marks)"
        " VALUES (0, ?, ?, ?, ?, ?)",
        (made.first, made.documents, made.tokens, made.lengths, made.marks),
    ).lastrowid
    driver(transaction).executemany(
        "INSERT INTO text_postings (segment, term, postings) VALUES (?, ?, ?)",
        [(segment, *row) for row in made.rows],
    )
    execute(
        "DELETE FROM text_changes WHERE pk BETWEEN ? AND ? AND seq <= ?",
        (made.first, made.last, made.seen),
    )
    return True


def _changed_since(snapshot: Snapshot, made: Draft) -> bool:
    [(found,)] = driver(snapshot).execute(
        "SELECT EXISTS (SELECT 1 FROM text_changes WHERE seq > ? AND pk BETWEEN ? AND ?)",
        (made.seen, made.first, made.last),
    )
    return bool(found)


def due(snapshot: Snapshot) -> Draft | None:
    """Return what is to be merged next: the tail, small segments, changes; None: nothing."""
    known = segments(snapshot)
    keys = _tail(snapshot, known, TAIL) or _small(known) or _changed(snapshot, known)
    return None if keys is None else draft(snapshot, *keys)


def _tail(snapshot: Snapshot, known: Sequence[Segment], least: int) -> tuple[int, int] | None:
    covered = known[-1].last if known else 0
    [(first, last)] = driver(snapshot).execute(
        "SELECT (SELECT min(pk) FROM memories WHERE pk > ?), (SELECT max(pk) FROM memories)",
        (covered,),
    )
    if first is None or last - first + 1 < least:
        return None
    return first, min(last, first + MIDDLE - 1)


def _small(known: Sequence[Segment]) -> tuple[int, int] | None:
    """Return the keys of neighbouring segments that together are worth a larger one."""
    for size in (MIDDLE, LARGEST):
        run: list[Segment] = []
        for each in reversed(known):
            if each.span > size // 2:
                break
            run.insert(0, each)
        if run and run[-1].last - run[0].first + 1 >= size:
            last = max(each.last for each in run if each.last - run[0].first < LARGEST)
            return run[0].first, last
    return None


def _changed(snapshot: Snapshot, known: Sequence[Segment]) -> tuple[int, int] | None:
    """Return the keys of the segment with the most changes, where there are many."""
    if not known:
        return None
    changed = [
        pk
        for (pk,) in driver(snapshot).execute(
            "SELECT pk FROM text_changes WHERE pk <= ?", (known[-1].last,)
        )
    ]
    if len(changed) < MOST_CHANGES:
        return None
    counts = Counter(each for pk in changed for each in known if each.first <= pk <= each.last)
    if not counts:
        return None
    [(most, _)] = counts.most_common(1)
    return most.first, most.last


def add(transaction: Transaction, first: int, last: int) -> None:
    """Make segments of a long tail in the transaction that stored these keys."""
    # The tail is looked at once in so many keys: a single memory has nothing to do with it.
    if first // TAIL == (last + 1) // TAIL:
        return
    while keys := _tail(transaction, segments(transaction), MOST_TAIL):
        commit(transaction, draft(transaction, *keys))


def remove(transaction: Transaction, pks: Iterable[int]) -> None:
    """Take memories out of the segments, so that no row holds a posting of theirs.

    They count as changed: what they say by now is read from them until the segment is written anew.
    """
    import numpy as np

    wanted = sorted(set(pks))
    for each in segments(transaction):
        offsets = [pk - each.first for pk in wanted if each.first <= pk <= each.last]
        if not offsets:
            continue
        gone = np.zeros(LARGEST, dtype=np.bool_)
        gone[offsets] = True
        execute = driver(transaction).execute
        rows = execute(
            "SELECT term, postings FROM text_postings WHERE segment = ?", (each.segment,)
        ).fetchall()
        counts = np.array([len(row) // BYTES_A_POSTING for _, row in rows], dtype=np.int64)
        joined = b"".join(row[: len(row) // BYTES_A_POSTING * 2] for _, row in rows)
        hits = np.flatnonzero(gone[np.frombuffer(joined, dtype="<u2")])
        places = np.unique(np.searchsorted(np.cumsum(counts), hits, side="right"))
        for term, row in (rows[place] for place in places.tolist()):
            count = len(row) // BYTES_A_POSTING
            kept = np.frombuffer(row, dtype="<u2", count=count)
            stays = ~gone[kept]
            left = kept[stays].tobytes() + bytes(
                np.frombuffer(row, dtype=np.uint8, offset=2 * count)[stays]
            )
            key = (each.segment, term)
            if left:
                execute(
                    "UPDATE text_postings SET postings = ? WHERE segment = ? AND term = ?",
                    (left, *key),
                )
            else:
                execute("DELETE FROM text_postings WHERE segment = ? AND term = ?", key)
        [(blob,)] = execute("SELECT lengths FROM text_segments WHERE segment = ?", each[:1])
        lengths = np.frombuffer(blob, dtype="<u2").copy()
        lengths[offsets] = 0
        execute(
            "UPDATE text_segments SET lengths = ?, tokens = ?, stamp = stamp + 1 WHERE segment = ?",
            (lengths.tobytes(), int(lengths.sum(dtype=np.int64)), each.segment),
        )


def merge(database: Database, stop: Callable[[], bool] = lambda: False) -> None:
    """Commit what is due, one draft at a time, until nothing is."""
    while not stop():
        with database.read() as snapshot:
            made = due(snapshot)
        if made is None:
            return
        with database.write(durable=False) as transaction:
            commit(transaction, made)
        time.sleep(GIVE_WAY_S)


def rebuild(database: Database) -> None:
    """Write every segment anew and take away what belongs to none."""
    with database.write(durable=False) as transaction:
        driver(transaction).execute(f"DELETE FROM text_postings WHERE {_STRAY}")
        if _overlap(segments(transaction)):
            driver(transaction).execute("DELETE FROM text_postings")
            driver(transaction).execute("DELETE FROM text_segments")
    with database.read() as snapshot:
        known = segments(snapshot)
    for each in known:
        with database.read() as snapshot:
            made = draft(snapshot, each.first, each.last)
        with database.write(durable=False) as transaction:
            commit(transaction, made)
        time.sleep(GIVE_WAY_S)
    merge(database)


def _overlap(known: Sequence[Segment]) -> bool:
    return any(one.last >= other.first for one, other in pairwise(known))


def check(snapshot: Snapshot) -> bool:
    """Return whether the segments agree with the memories, word for word."""
    execute = driver(snapshot).execute
    known = segments(snapshot)
    if _overlap(known):
        return False
    [(strays,)] = execute(f"SELECT EXISTS (SELECT 1 FROM text_postings WHERE {_STRAY})")
    changed = {pk for (pk,) in execute("SELECT pk FROM text_changes")}
    return not strays and all(_agrees(snapshot, each, changed) for each in known)


def _agrees(snapshot: Snapshot, segment: Segment, changed: set[int]) -> bool:
    expected = draft(snapshot, segment.first, segment.last)
    rows = driver(snapshot).execute(
        "SELECT term, postings FROM text_postings WHERE segment = ? ORDER BY term",
        (segment.segment,),
    )
    stored = rows.fetchall()
    [facts] = driver(snapshot).execute(
        "SELECT documents, tokens, lengths, marks FROM text_segments WHERE segment = ?",
        (segment.segment,),
    )
    offsets = {pk - segment.first for pk in changed if segment.first <= pk <= segment.last}
    if offsets:
        return _without(stored, offsets) == _without(expected.rows, offsets)
    told = (expected.documents, expected.tokens, expected.lengths, expected.marks)
    return stored == expected.rows and tuple(facts) == told


def _without(
    rows: Iterable[tuple[str, bytes]], offsets: set[int]
) -> dict[str, list[tuple[int, int]]]:
    found: dict[str, list[tuple[int, int]]] = {}
    for term, row in rows:
        count = len(row) // BYTES_A_POSTING
        places = memoryview(row[: 2 * count]).cast("H")
        pairs = [
            pair for pair in zip(places, row[2 * count :], strict=True) if pair[0] not in offsets
        ]
        if pairs:
            found[term] = pairs
    return found


class SqliteTextIndex:
    """The functions of this module, and those of ``text_search``, as a ``ports.TextIndex``."""

    add = staticmethod(add)
    remove = staticmethod(remove)
    merge = staticmethod(merge)
    rebuild = staticmethod(rebuild)
    check = staticmethod(check)
    mark = staticmethod(mark_of)

    def search(self, snapshot: Snapshot, terms: Collection[str]) -> TextMatches:
        """Return what the snapshot of a connection holds of some stems."""
        from memgraph.store.sqlite import text_search

        return text_search.find(snapshot, terms)
