"""A cache of vectors in the memory of the process, and the search over it.

A search has two steps over whole arrays. First, the number of differing sign bits selects
candidates among the vectors that a reader may see. Then the stored vectors rank them. If a reader
sees few vectors, all of them are ranked.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# The number of candidates to rank: this number plus this share of all vectors. On real sentences
# they contain 0.99 of the nearest 50, with 100,000 vectors as well as with a million.
RANKED, RANKED_SHARE = 16_000, 0.015
_PART = 65_536
_ROWS_AT_ONCE = 512
_WORD_BITS = 64
# Several states are kept, because one reader's snapshot may be older than another's.
_STATES_KEPT = 8
_VIEWS_KEPT = 8
# The mark of a removed vector; marks are indexes in ``_Arrays.visibilities``.
_REMOVED = 0


class VectorRows(NamedTuple):
    """Stored vectors in ascending order of their keys.

    Attributes:
        keys: the keys of the memories, shape (n,).
        visibilities: their visibilities, shape (n,).
        codes: the quantized vectors, shape (n, dimensions), integers in -127..127.
    """

    keys: NDArray[np.int64]
    visibilities: NDArray[np.int64]
    codes: NDArray[np.int8]


class VectorStamp(NamedTuple):
    """The stamp of a snapshot's vectors. Equal stamps of a database mean equal vectors."""

    version: int
    model: str | None
    dimensions: int


class VectorCache:
    """A cache for the vectors of several orchestrators, which evicts the least recently used ones.

    Args:
        max_bytes: the capacity for all vectors together, in bytes.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._used: OrderedDict[HeldVectors, int] = OrderedDict()

    def make_room(self, vectors: HeldVectors, size: int) -> bool:
        """Reserve bytes for the vectors of an orchestrator, and evict others if necessary.

        Return False if the cache is too small for them.
        """
        with self._lock:
            self._used.pop(vectors, None)
            if size > self.max_bytes:
                return False
            self._used[vectors] = size
            evicted = []
            while sum(self._used.values()) > self.max_bytes:
                evicted.append(self._used.popitem(last=False)[0])
        for entry in evicted:
            entry.clear()
        return True

    @property
    def used(self) -> int:
        """The number of bytes that all vectors together take."""
        with self._lock:
            return sum(self._used.values())

    def hold(self) -> HeldVectors:
        """Return an empty cache entry for the vectors of one orchestrator."""
        return HeldVectors(self)

    def forget(self, vectors: HeldVectors) -> None:
        with self._lock:
            self._used.pop(vectors, None)


class HeldVectors:
    """The cached vectors of one orchestrator, as of several recent snapshots. Thread-safe."""

    def __init__(self, cache: VectorCache) -> None:
        self._cache = cache
        self._lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        """Drop all cached vectors."""
        self._states: OrderedDict[VectorStamp, VectorState] = OrderedDict()
        self._loading: _Loading | None = None

    def close(self) -> None:
        self._cache.forget(self)
        self.clear()

    def has(self, stamp: VectorStamp) -> bool:
        """Return True if the vectors of a snapshot are cached."""
        with self._lock:
            return stamp in self._states

    def state(
        self,
        stamp: VectorStamp,
        last_key: int,
        read: Callable[[int], tuple[VectorRows, int]],
        changed: Callable[[int], Iterable[tuple[int, int, VectorRows]] | None],
    ) -> VectorState | None:
        """Return the vectors of a snapshot: cached, updated from an older state, or loaded.

        If a call is interrupted while loading, the next call continues.

        Args:
            stamp: the stamp of the snapshot's vectors.
            last_key: the highest key with a vector.
            read: takes a key; returns the next rows above it and the last key examined.
            changed: takes a version; returns (first key, last key, their rows) for all changes
                after it, or None if these are no longer known.

        Returns:
            The state, or None if it is too large to cache or the snapshot is too old.
        """
        with self._lock:
            state = self._states.get(stamp)
            if state is None:
                newest = next(reversed(self._states.values()), None)
                if newest is not None and newest.stamp[1:] == stamp[1:]:
                    if newest.stamp.version > stamp.version:
                        return None
                    state = newest.followed(stamp, changed(newest.stamp.version))
                if state is None:
                    state = self._loaded(stamp, last_key, read, changed)
                if state is None:
                    return None
                self._states[stamp] = state
                while len(self._states) > _STATES_KEPT:
                    self._states.popitem(last=False)
        if not self._cache.make_room(self, state.size):
            self.clear()
        return state

    def _loaded(
        self,
        stamp: VectorStamp,
        last_key: int,
        read: Callable[[int], tuple[VectorRows, int]],
        changed: Callable[[int], Iterable[tuple[int, int, VectorRows]] | None],
    ) -> VectorState | None:
        loading = self._loading
        if loading is not None and loading.stamp.version > stamp.version:
            return None
        if loading is None or loading.stamp[1:] != stamp[1:]:
            self._states.clear()
            size = _Arrays.row_bytes(stamp.dimensions) * last_key
            if not self._cache.make_room(self, size):
                return None
            # Leave room for vectors to be added.
            arrays = _Arrays(stamp.dimensions, last_key * 5 // 4 + _ROWS_AT_ONCE)
            loading = self._loading = _Loading(stamp, arrays)
        while loading.through < last_key:
            rows, through = read(loading.through)
            loading.rows = loading.arrays.append(loading.rows, rows)
            loading.through = through
        self._loading = None
        marks = loading.arrays.marks[: loading.rows].copy()
        loaded = VectorState(loading.stamp, loading.arrays, marks)
        if loading.stamp == stamp:
            return loaded
        # The rows were read from several snapshots: read all changes since the first one again.
        return loaded.followed(stamp, changed(loading.stamp.version))


class _Arrays:
    """The arrays that several states share. Each state uses the first n rows, which never change.

    Attributes:
        keys: the keys of the memories, shape (room,).
        codes: the quantized vectors, shape (room, dimensions).
        bits: the signs of the codes, shape (words, room).
        scales: the factors that turn codes into unit vectors, shape (room,).
        marks: the index in ``visibilities`` of each row when it was added, shape (room,).
        visibilities: the index of each distinct visibility; index 0 is for removed rows.
        is_sorted: False if keys may be out of order, or occur again with another vector.
    """

    def __init__(self, dimensions: int, room: int) -> None:
        self.dimensions = dimensions
        self.words = -(-dimensions // _WORD_BITS)
        self.visibilities: dict[int | None, int] = {None: _REMOVED}
        self.is_sorted = True
        # Empty arrays take no memory until they are written to.
        self.keys = np.empty(room, np.int64)
        self.codes = np.empty((room, dimensions), np.int8)
        self.bits = np.empty((self.words, room), np.uint64)
        self.scales = np.empty(room, np.float32)
        self.marks = np.empty(room, np.int32)

    @staticmethod
    def row_bytes(dimensions: int) -> int:
        """Return the size of a row in bytes."""
        return dimensions + -(-dimensions // _WORD_BITS) * 8 + 16

    def append(self, count: int, rows: VectorRows) -> int:
        """Write rows after the first ``count`` rows, and return the new number of rows."""
        end = count + len(rows.keys)
        if count and end > count and rows.keys[0] <= self.keys[count - 1]:
            self.is_sorted = False
        if end > len(self.keys):
            self._grow(count, end * 5 // 4)
        self.keys[count:end] = rows.keys
        self.codes[count:end] = rows.codes
        self.marks[count:end] = self.marks_of(rows.visibilities)
        for start in range(0, len(rows.keys), _ROWS_AT_ONCE):
            codes = rows.codes[start : start + _ROWS_AT_ONCE]
            numbers = codes.astype(np.float32)
            norms = np.sqrt(np.vecdot(numbers, numbers))
            place = slice(count + start, count + start + len(codes))
            self.scales[place] = 1.0 / np.maximum(norms, 1.0)
            self.bits[:, place] = sign_words(codes, self.words).T
        return end

    def marks_of(self, visibilities: NDArray[np.int64]) -> NDArray[np.int32]:
        different, places = np.unique(visibilities, return_inverse=True)
        places_by_visibility = self.visibilities
        marks = [
            places_by_visibility.setdefault(visibility, len(places_by_visibility))
            for visibility in different.tolist()
        ]
        return np.array(marks, np.int32)[places]

    def _grow(self, count: int, room: int) -> None:
        for name in ("keys", "codes", "scales", "marks"):
            before = getattr(self, name)
            after = np.empty((room, *before.shape[1:]), before.dtype)
            after[:count] = before[:count]
            setattr(self, name, after)
        bits = np.empty((self.words, room), np.uint64)
        bits[:, :count] = self.bits[:, :count]
        self.bits = bits


@dataclass(slots=True)
class _Loading:
    """An unfinished load: the rows read so far, the first from the snapshot of ``stamp``."""

    stamp: VectorStamp
    arrays: _Arrays
    rows: int = 0
    through: int = 0


class _ReaderRows(NamedTuple):
    """The rows hidden from a reader, as a mask, and the visible rows if they are few."""

    hidden: NDArray[np.bool_]
    places: NDArray[np.intp] | None


class VectorState:
    """The vectors of one snapshot; immutable.

    Args:
        marks: the index in ``_Arrays.visibilities`` of each row, shape (n,).
    """

    def __init__(self, stamp: VectorStamp, arrays: _Arrays, marks: NDArray[np.int32]) -> None:
        count = len(marks)
        self.stamp = stamp
        self._arrays = arrays
        self._marks = marks
        # Growing replaces the shared arrays, so these slices stay valid.
        self.keys = arrays.keys[:count]
        self._codes = arrays.codes[:count]
        self._bits = arrays.bits[:, :count]
        self._scales = arrays.scales[:count]
        self._views: dict[tuple[int, ...], _ReaderRows | None] = {}

    @property
    def size(self) -> int:
        """The number of bytes in use."""
        return len(self.keys) * self._arrays.row_bytes(self._arrays.dimensions)

    def nearest(
        self,
        query: NDArray[np.float32],
        limit: int,
        visibilities: Collection[int],
        among: Collection[int] | None,
    ) -> list[int]:
        """Return keys by descending cosine, then by key; see ``VectorIndex.search``."""
        hidden, places = self._seen(visibilities) or (None, None)
        if among is not None:
            candidates, exists = self._places(np.fromiter(among, np.int64, count=len(among)))
            places = candidates[exists]
            if hidden is not None:
                places = places[~hidden[places]]
        elif places is None and len(self.keys) > self._ranked:
            places = self._nominated(query, max(self._ranked, limit), hidden)
        scores = self._cosines(query, places)
        keys = self.keys if places is None else self.keys[places]
        best = smallest(keys, -scores, limit)
        nearest_keys: list[int] = keys[best].tolist()
        return nearest_keys

    @property
    def _ranked(self) -> int:
        """The number of candidates to rank by their vectors."""
        return RANKED + int(RANKED_SHARE * len(self.keys))

    def vectors(self, pks: Sequence[int]) -> NDArray[np.float32]:
        """Return a unit vector for each key, or zeros for a key without a vector."""
        places, exists = self._places(np.fromiter(pks, np.int64, count=len(pks)))
        result = np.zeros((len(pks), self._codes.shape[1]), np.float32)
        places = places[exists]
        result[exists] = self._codes.take(places, axis=0) * self._scales[places, None]
        return result

    def followed(
        self, stamp: VectorStamp, changes: Iterable[tuple[int, int, VectorRows]] | None
    ) -> VectorState | None:
        """Return the state after applying changes, or None if it must be reloaded.

        Args:
            stamp: the stamp of the new state.
            changes: the result of ``changed``, see ``HeldVectors.state``.
        """
        if changes is None:
            return None
        state, arrays, marks = self, self._arrays, self._marks.copy()
        for first, last, rows in changes:
            marks[state._between(first, last)] = _REMOVED
            places, known = state._rows_of(rows.keys)
            # Rows never change, because states share them: another vector becomes a new row.
            known[known] = (arrays.codes[places[known]] == rows.codes[known]).all(axis=1)
            marks[places[known]] = arrays.marks_of(rows.visibilities[known])
            if not known.all():
                count = len(marks)
                end = arrays.append(count, VectorRows._make(column[~known] for column in rows))
                marks = np.concatenate([marks, arrays.marks[count:end]])
                state = VectorState(stamp, arrays, marks)
        # Removed rows keep their place until all are loaded again.
        if np.count_nonzero(marks == _REMOVED) > len(marks) // 4 + _ROWS_AT_ONCE:
            return None
        return VectorState(stamp, arrays, marks)

    @cached_property
    def _order(self) -> tuple[NDArray[np.int64], NDArray[np.intp] | None]:
        """The keys in ascending order, and the row of each; None: the rows are in this order.

        Of the rows of one key, the newest is the last.
        """
        if self._arrays.is_sorted:
            return self.keys, None
        order = np.argsort(self.keys, kind="stable")
        return self.keys[order], order

    def _rows_of(self, pks: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the newest row of each key, and a mask of the keys that have a row."""
        keys, order = self._order
        if not len(keys):
            return np.zeros(len(pks), np.intp), np.zeros(len(pks), np.bool_)
        at = np.maximum(np.searchsorted(keys, pks, side="right") - 1, 0)
        exists = keys[at] == pks
        return at if order is None else order[at], exists

    def _places(self, pks: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the row of each key, and a mask of the keys that have a vector."""
        places, exists = self._rows_of(pks)
        if exists.any():
            exists &= self._marks[places] != _REMOVED
        return places, exists

    def _between(self, first: int, last: int) -> NDArray[np.intp] | slice:
        """Return all rows of the keys from ``first`` to ``last``."""
        keys, order = self._order
        start, end = np.searchsorted(keys, first), np.searchsorted(keys, last, side="right")
        return slice(start, end) if order is None else order[start:end]

    def _seen(self, visibilities: Collection[int]) -> _ReaderRows | None:
        """Return the rows visible to a reader, or None if all rows are visible."""
        key = tuple(visibilities)
        views = self._views
        if key in views:
            return views[key]
        places_by_visibility = self._arrays.visibilities
        is_hidden_mark = np.ones(len(places_by_visibility), np.bool_)
        is_hidden_mark[
            [
                places_by_visibility[visibility]
                for visibility in key
                if visibility in places_by_visibility
            ]
        ] = False
        hidden = is_hidden_mark[self._marks]
        visible_count = len(hidden) - int(np.count_nonzero(hidden))
        visible_rows = np.flatnonzero(~hidden) if visible_count <= self._ranked else None
        visible = None if visible_count == len(hidden) else _ReaderRows(hidden, visible_rows)
        # Replace the dictionary, because another thread may be reading it.
        self._views = {**dict(list(views.items())[1 - _VIEWS_KEPT :]), key: visible}
        return visible

    def _nominated(
        self, query: NDArray[np.float32], count: int, hidden: NDArray[np.bool_] | None
    ) -> NDArray[np.intp]:
        """Return about ``count`` visible rows that differ from a query in the fewest bits."""
        distances = self._distances(query)
        if hidden is not None:
            np.putmask(distances, hidden, np.iinfo(distances.dtype).max)
        # Every n-th row approximates the distribution of all distances.
        step = max(len(distances) // _PART, 1)
        counts = np.bincount(distances[::step]).cumsum()
        bound = np.searchsorted(counts, min(count / step, counts[-1]))
        near = np.flatnonzero(distances <= bound)
        if len(near) > 2 * count:
            # Very many rows are equally near: take the first of them.
            nearer = near[distances[near] < bound]
            near = np.union1d(nearer, near[distances[near] == bound][:count])
        return near if hidden is None else near[~hidden[near]]

    def _distances(self, query: NDArray[np.float32]) -> NDArray[np.unsignedinteger[Any]]:
        """Return the number of signs in which each row differs from a query.

        With 256 dimensions the count of an exact opposite overflows to 0; the ranking corrects it.
        """
        words = sign_words(query[None, :], len(self._bits))[0]
        width = np.uint8 if len(words) <= 4 else np.uint16
        distances: NDArray[np.unsignedinteger[Any]] = np.zeros(self._bits.shape[1], width)
        for start in range(0, len(distances), _PART):
            part = slice(start, start + _PART)
            for row, word in zip(self._bits[:, part], words, strict=True):
                distances[part] += np.bitwise_count(row ^ word)
        return distances

    def _cosines(
        self, query: NDArray[np.float32], places: NDArray[np.intp] | None
    ) -> NDArray[np.float32]:
        """Return the cosine of each row, or of the rows at ``places``, with a unit vector."""
        count = len(self.keys) if places is None else len(places)
        cosines = np.empty(count, np.float32)
        # Process parts that fit into the processor's cache.
        for start in range(0, count, _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            codes = self._codes[part]
            if places is not None:
                codes = self._codes.take(places[part], axis=0)
            cosines[part] = np.vecdot(codes.astype(np.float32), query)
        cosines *= self._scales if places is None else self._scales[places]
        return cosines


def sign_words(rows: NDArray[np.int8] | NDArray[np.float32], words: int) -> NDArray[np.uint64]:
    """Return the signs of rows as bits, shape (n, words): 1 for a positive number."""
    packed = np.zeros((len(rows), words * 8), np.uint8)
    signs = np.packbits(rows > 0, axis=1, bitorder="little")
    packed[:, : signs.shape[1]] = signs
    return packed.view(np.uint64)


def smallest(keys: NDArray[np.int64], values: NDArray[np.float32], limit: int) -> NDArray[np.intp]:
    """Return the indexes of the ``limit`` smallest values, ordered by value, then by key."""
    if len(keys) <= limit:
        return np.lexsort((keys, values))
    bound = np.partition(values, limit - 1)[limit - 1]
    close = np.flatnonzero(values <= bound)
    return close[np.lexsort((keys[close], values[close]))[:limit]]
