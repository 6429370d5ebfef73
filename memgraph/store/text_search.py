"""Exact top-k search by BM25 over postings, on a reader's snapshot.

The formula and the order of ties are those of FTS5's ``bm25()`` with k1 = 1.2, b = 0.75. Terms are
scored from the rarest to the most frequent. Once the remaining terms alone cannot bring another
memory into the top k, they are looked up only for memories that already scored (MaxScore).

Sources: S. Robertson, H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009;
H. Turtle, J. Flood, "Query evaluation: strategies and optimizations", 1995.
"""

from __future__ import annotations

import math
import threading
from array import array
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from memgraph.store import postings, tables
from memgraph.store.postings import BYTES_A_POSTING, IndexedText, changes, heads, rows
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import element, listed, ordered, prepared

if TYPE_CHECKING:
    from numpy.typing import NDArray

K1, B = 1.2, 0.75
# FTS5's idf of a word that occurs in at least half of all texts.
LEAST_IDF = 1e-6
# Pruning pays only above this number of remaining postings.
_WORTH_PRUNING = 2_000
# A bound stays valid while the mean length grows by at most this factor.
_LEEWAY = 1.1
_OVERHEAD = 200

_KEPT_BYTES = 64 << 20
_Key = tuple[object, int, int, "str | None"]


@prepared
def _state() -> sa.CompoundSelect[Any]:
    m, h, c, none = tables.memories, heads.c, changes.c, sa.null()
    counted = (
        sa.select(sa.func.count()).select_from(changes),
        sa.select(sa.func.coalesce(sa.func.max(c.seq), 0)),
        sa.select(sa.func.coalesce(sa.func.max(m.c.pk), 0)),
    )
    numbers = [query.scalar_subquery() for query in counted]
    span = sa.func.length(h.lengths).op("/")(2)
    columns = (h.segment, h.stamp, h.first_pk, span, h.documents, h.tokens)
    return sa.union_all(sa.select(none, *numbers, none, none), sa.select(*columns))


@prepared
def _heads_among() -> sa.Select[Any]:
    f, s = listed("segments", "f", numbers=True), heads.alias("s")
    query = sa.select(s.c.segment, s.c.lengths, s.c.marks)
    return query.select_from(ordered(f, (s, s.c.segment == f.c.value)))


@prepared
def _rows_among() -> sa.Select[Any]:
    f, p = listed("pairs", "f"), rows.alias("p")
    segment = element(f.c.value, 0, sa.Integer())
    its = (p.c.segment == segment) & (p.c.term == element(f.c.value, 1))
    return sa.select(p.c.segment, p.c.term, p.c.postings).select_from(ordered(f, (p, its)))


class Postings:
    """The documents of a segment that contain a word, with the counts of the word.

    Attributes:
        offsets: shape (n,), ascending.
        counts: shape (n,).
    """

    __slots__ = ("_bound", "counts", "offsets")

    def __init__(self, offsets: NDArray[Any], counts: NDArray[Any]) -> None:
        self.offsets = offsets
        self.counts = counts
        # The highest mean length that it holds for, and the bound: as one, for threads share it.
        self._bound = (-1.0, 0.0)

    def bound(self, lengths: NDArray[np.float32], mean: float) -> float:
        """Return the maximum of tf / (tf + norm) for a mean length of ``mean``."""
        top, bound = self._bound
        if not top / _LEEWAY <= mean <= top:
            top = mean * _LEEWAY
            norm = K1 * (1 - B) + (K1 * B / top) * lengths[self.offsets]
            bound = float((self.counts / (self.counts + norm)).max(initial=0.0))
            self._bound = (top, bound)
        return bound


_NO_OFFSETS = np.empty(0, np.int64)
_NONE = Postings(np.empty(0, np.uint16), np.empty(0, np.uint8))


@dataclass(eq=False, slots=True)
class _Part:
    """A set of documents that are scored together: a segment, the tail or the changed memories.

    Attributes:
        pks: shape (n,), or the first of n keys that follow each other.
        lengths: shape (n,).
        marks, kinds: the distinct marks, and the index into them for each document, shape (n,).
        stale: offsets of documents that are left out, because their memories have changed.
    """

    first: int
    pks: NDArray[np.int64] | None
    lengths: NDArray[np.float32]
    marks: tuple[int, ...]
    kinds: NDArray[np.uint16]
    documents: int
    tokens: int
    found: dict[str, Postings] = field(default_factory=dict)
    stale: NDArray[np.int64] = field(default_factory=lambda: _NO_OFFSETS)

    def keys(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the keys of some documents."""
        return offsets + self.first if self.pks is None else self.pks[offsets]

    def offsets(self, pks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the offsets of the documents with these keys."""
        if self.pks is not None:
            return np.flatnonzero(np.isin(self.pks, pks))
        offsets = pks - self.first
        return offsets[(offsets >= 0) & (offsets < len(self.lengths))]

    def leave_out(self, pks: NDArray[np.int64]) -> None:
        """Exclude the documents with these keys from counts and results."""
        self.stale = self.offsets(pks)
        self.documents -= len(self.stale)
        self.tokens -= int(self.lengths[self.stale].sum(dtype=np.float64))

    def frequency(self, term: str) -> int:
        """Return the number of documents with a term."""
        offsets = self.found[term].offsets
        if not len(self.stale) or not len(offsets):
            return len(offsets)
        places = np.minimum(np.searchsorted(offsets, self.stale), len(offsets) - 1)
        return len(offsets) - int((offsets[places] == self.stale).sum())


class _Facts(NamedTuple):
    lengths: NDArray[np.float32]
    marks: tuple[int, ...]
    kinds: NDArray[np.uint16]


class RowCache:
    """An LRU cache of segment rows, shared by all searches of a process. Thread-safe.

    A row is valid in every snapshot in which its segment has the same stamp.

    Args:
        max_bytes: the maximum size of all rows of all databases together.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._rows: OrderedDict[_Key, tuple[Any, int]] = OrderedDict()
        self._bytes = 0

    def get(self, keys: Iterable[_Key]) -> dict[_Key, Any]:
        """Return the cached rows of some keys."""
        result = {}
        with self._lock:
            for key in keys:
                entry = self._rows.get(key)
                if entry is not None:
                    self._rows.move_to_end(key)
                    result[key] = entry[0]
        return result

    def put(self, rows: Mapping[_Key, tuple[Any, int]]) -> None:
        """Cache rows, each given with its size in bytes."""
        with self._lock:
            for key, (row, size) in rows.items():
                before = self._rows.pop(key, (None, 0))
                self._rows[key] = (row, size + _OVERHEAD)
                self._bytes += size + _OVERHEAD - before[1]
            while self._bytes > self._max_bytes:
                self._bytes -= self._rows.popitem(last=False)[1][1]

    @property
    def used(self) -> int:
        """Return the size of the cached rows in bytes."""
        return self._bytes


_ROWS = RowCache(_KEPT_BYTES)


class SearchCache:
    """The data of one database that a process caches between searches.

    It holds only committed data: write connections do not use it.
    """

    def __init__(self, rows: RowCache) -> None:
        self.rows = rows
        # Identifies the database in the cache keys; rows may outlive the open database.
        self.owner = object()
        self.tail: SegmentTail | None = None
        self.changed: ChangedMemories | None = None


class ChangedMemories(NamedTuple):
    """The memories whose words changed since their segment was written.

    Attributes:
        state: the number of changes and the last of them, which identify the set.
        pks: the keys of all changed memories, including deleted ones.
        documents: the indexed texts by key and change.
    """

    state: tuple[int, int]
    pks: NDArray[np.int64]
    documents: dict[tuple[int, int], IndexedText]


class SegmentTail:
    """The words of the memories after the last segment, read once and extended as they grow.

    Args:
        after: the last key of the segments.
    """

    def __init__(self, after: int) -> None:
        self.after = after
        self._lock = threading.Lock()
        self._through = after
        self._pks = array("q")
        self._lengths = array("H")
        self._marks = array("I")
        self._postings: dict[str, tuple[array[int], array[int]]] = {}

    def part(self, snapshot: Snapshot, through: int, terms: Collection[str]) -> _Part:
        """Return the documents up to the key ``through``, with the postings of some terms."""
        with self._lock:
            if through > self._through:
                since = {"first": self._through + 1, "last": through}
                for row in postings.texts().cursor(snapshot, since):
                    self._add(postings.document(row))
                self._through = through
            pks = np.array(self._pks, dtype=np.int64)
            count = int(np.searchsorted(pks, through, side="right"))
            lengths = np.array(self._lengths[:count], dtype=np.float32)
            part = _Part(
                0,
                pks[:count],
                lengths,
                *_kinds(np.array(self._marks[:count], dtype=np.uint32)),
                count,
                int(lengths.sum(dtype=np.float64)),
            )
            for term in terms:
                entry = self._postings.get(term)
                if entry is None:
                    part.found[term] = _NONE
                    continue
                offsets = np.array(entry[0], dtype=np.int64)
                here = int(np.searchsorted(offsets, count))
                counts = np.array(entry[1][:here], dtype=np.uint16)
                part.found[term] = Postings(offsets[:here], counts)
        return part

    def _add(self, text: IndexedText) -> None:
        place = len(self._pks)
        self._pks.append(text.pk)
        self._lengths.append(text.length)
        self._marks.append(text.mark)
        for term, count in text.terms.items():
            entry = self._postings.get(term)
            if entry is None:
                entry = self._postings[term] = (array("I"), array("B"))
            entry[0].append(place)
            entry[1].append(min(count, 255))


class TextMatches:
    """The matches of some terms in a snapshot.

    Attributes:
        documents: the number of memories, including erased ones.
        frequencies: the number of memories with each term; terms without any are left out.
    """

    def __init__(self, parts: Sequence[_Part], terms: Collection[str]) -> None:
        self._parts = sorted(parts, key=lambda part: -len(part.lengths))
        self.documents = sum(part.documents for part in parts)
        tokens = sum(part.tokens for part in parts)
        self._mean = max(tokens / max(self.documents, 1), 1e-9)
        counts = {term: sum(part.frequency(term) for part in parts) for term in terms}
        self.frequencies = {term: count for term, count in counts.items() if count}
        self._best: dict[tuple[tuple[str, ...], frozenset[int] | None], list[int]] = {}

    @property
    def marks(self) -> frozenset[int]:
        """The marks of all memories, see `postings.mark_of`."""
        return frozenset(mark for part in self._parts for mark in part.marks)

    def best(
        self,
        terms: Collection[str],
        limit: int,
        marks: frozenset[int] | None = None,
        among: Collection[int] | None = None,
    ) -> list[int]:
        """Return the keys of the memories with the highest BM25 scores, ties oldest first.

        Args:
            terms: a subset of the terms passed to ``find``.
            limit: the maximum number of results.
            marks: only memories with one of these, see `postings.mark_of`; None: any.
            among: only memories with these keys; None: any.
        """
        if among is not None:
            pks = np.fromiter(among, np.int64, count=len(among))
            return self._ranked(terms, limit, marks, pks)
        key = tuple(terms), marks
        if len(self._best.get(key, ())) < limit:
            self._best[key] = self._ranked(terms, limit, marks, None)
        return self._best[key][:limit]

    def _ranked(
        self,
        terms: Collection[str],
        limit: int,
        marks: frozenset[int] | None,
        among: NDArray[np.int64] | None,
    ) -> list[int]:
        weights = self._weights(terms)
        scores, keys = np.empty(0, np.float64), np.empty(0, np.int64)
        threshold = 0.0
        for part in self._parts:
            hidden = _hidden(part, marks, among)
            part_scores, offsets = self._scored(part, weights, limit, hidden, threshold)
            if not len(offsets):
                continue
            scores = np.concatenate([scores, part_scores])
            keys = np.concatenate([keys, part.keys(offsets)])
            if len(scores) > limit:
                threshold = float(np.partition(scores, -limit)[-limit])
                stay = scores >= threshold
                scores, keys = scores[stay], keys[stay]
        order = np.lexsort((keys, -scores))[:limit]
        best: list[int] = keys[order].tolist()
        return best

    def _weights(self, terms: Collection[str]) -> list[tuple[str, float]]:
        """Return the terms that occur, each with (k1 + 1) * idf, rarest first."""
        by_frequency = sorted(
            (self.frequencies[term], term) for term in terms if term in self.frequencies
        )
        weights = []
        for count, term in by_frequency:
            odds = (self.documents - count + 0.5) / (count + 0.5)
            idf = math.log(odds) if odds > 1.0 else 0.0
            weights.append((term, (K1 + 1) * max(idf, LEAST_IDF)))
        return weights

    def _scored(
        self,
        part: _Part,
        weights: Sequence[tuple[str, float]],
        limit: int,
        hidden: NDArray[np.bool_] | None,
        threshold: float,
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return scores and offsets of the best ``limit`` documents of a part, and of ties.

        Args:
            hidden: a mask of the documents to leave out.
            threshold: documents with a lower score are not returned.
        """
        lists = [(part.found[term], weight) for term, weight in weights]
        lists = [postings_of for postings_of in lists if len(postings_of[0].offsets)]
        if not lists:
            return np.empty(0, np.float64), np.empty(0, np.int64)
        norm = (K1 * B / self._mean) * part.lengths + np.float32(K1 * (1 - B))
        if hidden is not None:
            norm[hidden] = np.inf
        remaining = sum(len(postings_of.offsets) for postings_of, _ in lists)
        bounds = self._bounds(part, lists) if remaining > _WORTH_PRUNING else None
        scores = np.zeros(len(part.lengths), np.float64)
        for place, (postings_of, weight) in enumerate(lists):
            if bounds is not None and place and remaining > _WORTH_PRUNING:
                touched = np.flatnonzero(scores > 0.0)
                reached = scores[touched]
                floor = threshold
                if len(reached) >= limit:
                    floor = max(floor, float(np.partition(reached, -limit)[-limit]))
                if bounds[place] < floor:
                    remaining_offsets = touched[reached + bounds[place] >= floor]
                    return self._looked_up(
                        remaining_offsets,
                        scores[remaining_offsets],
                        lists[place:],
                        norm,
                        limit,
                        threshold,
                    )
            offsets = postings_of.offsets
            counts = postings_of.counts.astype(np.float32)
            scores[offsets] += weight * (counts / (counts + norm[offsets]))
            remaining -= len(offsets)
        # numpy finds true values ten times as fast as nonzero ones.
        selected = np.flatnonzero(scores >= threshold if threshold else scores > 0.0)
        return _top(scores[selected], selected, limit, threshold)

    def _looked_up(
        self,
        offsets: NDArray[np.int64],
        reached: NDArray[np.float64],
        lists: Sequence[tuple[Postings, float]],
        norm: NDArray[np.float32],
        limit: int,
        threshold: float,
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        norms = norm[offsets]
        for postings_of, weight in lists:
            places = np.searchsorted(postings_of.offsets, offsets.astype(postings_of.offsets.dtype))
            np.minimum(places, len(postings_of.offsets) - 1, out=places)
            counts = np.where(postings_of.offsets[places] == offsets, postings_of.counts[places], 0)
            counts = counts.astype(np.float32)
            reached += weight * (counts / (counts + norms))
        return _top(reached, offsets, limit, threshold)

    def _bounds(self, part: _Part, lists: Sequence[tuple[Postings, float]]) -> list[float]:
        """Return, for each term, the maximum score of it and the following terms together."""
        bounds: list[float] = []
        total = 0.0
        for postings_of, weight in reversed(lists):
            total += weight * postings_of.bound(part.lengths, self._mean)
            bounds.append(total * (1 + 1e-6))
        return bounds[::-1]


def _kinds(marks: NDArray[np.uint32]) -> tuple[tuple[int, ...], NDArray[np.uint16]]:
    if len(marks) and (marks == marks[0]).all():
        return (int(marks[0]),), np.zeros(len(marks), np.uint16)
    distinct, kinds = np.unique(marks, return_inverse=True)
    return tuple(distinct.tolist()), kinds.astype(np.uint16)


def _hidden(
    part: _Part, marks: frozenset[int] | None, among: NDArray[np.int64] | None
) -> NDArray[np.bool_] | None:
    """Return a mask of the documents to leave out; None if there are none."""
    hidden = None
    if marks is not None and not marks.issuperset(part.marks):
        others = np.array([mark not in marks for mark in part.marks], dtype=np.bool_)
        hidden = others[part.kinds]
    if len(part.stale):
        if hidden is None:
            hidden = np.zeros(len(part.kinds), np.bool_)
        hidden[part.stale] = True
    if among is not None:
        others = np.ones(len(part.kinds), np.bool_)
        others[part.offsets(among)] = False
        hidden = others if hidden is None else hidden | others
    return hidden


def _top(
    scores: NDArray[np.float64], offsets: NDArray[np.int64], limit: int, threshold: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    if len(scores) > limit:
        threshold = max(threshold, float(np.partition(scores, -limit)[-limit]))
    stay = scores >= threshold
    return scores[stay], offsets[stay]


def find(snapshot: Snapshot, terms: Collection[str]) -> TextMatches:
    """Return the matches of some stems in a snapshot."""
    cache = _cache_of(snapshot)
    [state, *segment_rows] = _state().rows(snapshot)
    _, changes, seq, newest, _, _ = state
    covered = max((first + span - 1 for _, _, first, span, _, _ in segment_rows), default=0)
    parts = _segments(snapshot, segment_rows, terms, cache)
    parts.append(_tail(snapshot, covered, newest, terms, cache))
    if changes:
        parts.append(_changed(snapshot, (changes, seq), parts, terms, cache))
    return TextMatches(parts, terms)


def _cache_of(snapshot: Snapshot) -> SearchCache | None:
    """Return the search cache of a read connection; None for a write connection."""
    shared: dict[str, Any] | None = snapshot.driver.shared
    if shared is None:
        return None
    if "text" not in shared:
        shared.setdefault("text", SearchCache(_ROWS))
    cache: SearchCache = shared["text"]
    return cache


def _segments(
    snapshot: Snapshot,
    segment_rows: Sequence[tuple[int, ...]],
    terms: Collection[str],
    cache: SearchCache | None,
) -> list[_Part]:
    """Return the segments with the postings of some terms, from the cache or the database."""
    owner = None if cache is None else cache.owner
    stamps = {segment: stamp for segment, stamp, *_ in segment_rows}
    keys: dict[_Key, tuple[int, str | None]] = {
        (owner, segment, stamp, term): (segment, term)
        for segment, stamp in stamps.items()
        for term in (None, *terms)
    }
    rows_by_key = {} if cache is None else cache.rows.get(keys)
    lacking = [place for key, place in keys.items() if key not in rows_by_key]
    if lacking:
        read = _read(snapshot, lacking)
        fresh = {(owner, place[0], stamps[place[0]], place[1]): row for place, row in read.items()}
        rows_by_key |= {key: row for key, (row, _) in fresh.items()}
        if cache is not None:
            cache.rows.put(fresh)
    parts = []
    for segment, stamp, first, _, documents, tokens in segment_rows:
        facts: _Facts = rows_by_key[(owner, segment, stamp, None)]
        its = {term: rows_by_key[(owner, segment, stamp, term)] for term in terms}
        parts.append(_Part(first, None, *facts, documents, tokens, its))
    return parts


def _read(
    snapshot: Snapshot, lacking: Sequence[tuple[int, str | None]]
) -> dict[tuple[int, str | None], tuple[Any, int]]:
    """Return postings by (segment, term), lengths and marks by (segment, None), and their sizes."""
    result: dict[tuple[int, str | None], tuple[Any, int]] = dict.fromkeys(lacking, (_NONE, 0))
    segments = [segment for segment, term in lacking if term is None]
    if segments:
        for segment, lengths, marks in _heads_among().rows(snapshot, segments=segments):
            facts = _Facts(
                np.frombuffer(lengths, dtype="<u2").astype(np.float32),
                *_kinds(np.frombuffer(marks, dtype="<u4")),
            )
            result[segment, None] = (facts, 3 * len(lengths))
    pairs = [place for place in lacking if place[1] is not None]
    if pairs:
        for segment, term, row in _rows_among().rows(snapshot, pairs=pairs):
            count = len(row) // BYTES_A_POSTING
            offsets = np.frombuffer(row, dtype="<u2", count=count)
            counts = np.frombuffer(row, dtype=np.uint8, offset=2 * count)
            result[segment, term] = (Postings(offsets, counts), len(row))
    return result


def _tail(
    snapshot: Snapshot,
    covered: int,
    newest: int,
    terms: Collection[str],
    cache: SearchCache | None,
) -> _Part:
    tail = None if cache is None else cache.tail
    if tail is None or tail.after != covered:
        tail = SegmentTail(covered)
        # A reader of an older snapshot must not replace a newer cache.
        if cache is not None and (cache.tail is None or cache.tail.after < covered):
            cache.tail = tail
    return tail.part(snapshot, newest, terms)


def _changed(
    snapshot: Snapshot,
    state: tuple[int, int],
    parts: Sequence[_Part],
    terms: Collection[str],
    cache: SearchCache | None,
) -> _Part:
    """Return the changed memories as a separate part, and exclude them from the other parts."""
    changed = None if cache is None else cache.changed
    if changed is None or changed.state != state:
        documents_before = {} if changed is None else changed.documents
        changed_rows = postings.changed_texts().rows(snapshot)
        documents = {
            (row[0], row[1]): documents_before.get((row[0], row[1])) or postings.document(row[2:])
            for row in changed_rows
            if row[2] is not None
        }
        pks = np.array([row[0] for row in changed_rows], dtype=np.int64)
        changed = ChangedMemories(state, pks, documents)
        if cache is not None:
            cache.changed = changed
    for part in parts:
        part.leave_out(changed.pks)
    texts = list(changed.documents.values())
    part = _Part(
        0,
        np.array([text.pk for text in texts], dtype=np.int64),
        np.array([text.length for text in texts], dtype=np.float32),
        *_kinds(np.array([text.mark for text in texts], dtype=np.uint32)),
        len(texts),
        sum(text.length for text in texts),
    )
    for term in terms:
        counts = np.array([min(text.terms[term], 255) for text in texts], dtype=np.uint8)
        offsets = np.flatnonzero(counts)
        part.found[term] = Postings(offsets, counts[offsets])
    return part
