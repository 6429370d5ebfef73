"""Vectors that a process keeps in memory, and the search over them.

A search has two steps, each over whole arrays: the number of differing sign bits nominates
candidates among all that a reader may see, and the stored vectors rank these. Where a reader sees
few, all of them are ranked.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Ranked by their vectors: so many and this share of all. On real sentences 0.99 of the nearest 50
# are among them, at 100,000 vectors as at a million.
RANKED, RANKED_SHARE = 16_000, 0.015
_PART = 65_536
_ROWS_AT_ONCE = 512
_WORD_BITS = 64
# A reader's snapshot may be older than the state that another reader has loaded.
_STATES_KEPT = 8
_VIEWS_KEPT = 8
# The visibility of a vector that was removed, as a place in ``_Arrays.visibilities``.
_REMOVED = 0


class VectorRows(NamedTuple):
    """Vectors as they are stored, by ascending key.

    Attributes:
        keys: shape (n,).
        visibilities: shape (n,).
        codes: shape (n, dimensions), integers of -127..127.
    """

    keys: NDArray[np.int64]
    visibilities: NDArray[np.int64]
    codes: NDArray[np.int8]


class VectorStamp(NamedTuple):
    """The stamp of a snapshot's vectors: equal stamps of one database mean equal vectors."""

    version: int
    model: str | None
    dimensions: int


class LocalVectorCache:
    """Room for the vectors of many orchestrators; the longest unused give way.

    Args:
        max_bytes: of all vectors together.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._used: OrderedDict[LocalHeldVectors, int] = OrderedDict()

    def make_room(self, vectors: LocalHeldVectors, size: int) -> bool:
        """Record how many bytes one orchestrator's vectors take; False: too many to keep."""
        with self._lock:
            self._used.pop(vectors, None)
            if size > self.max_bytes:
                return False
            self._used[vectors] = size
            idle = []
            while sum(self._used.values()) > self.max_bytes:
                idle.append(self._used.popitem(last=False)[0])
        for entry in idle:
            entry.clear()
        return True

    @property
    def used(self) -> int:
        """Bytes that all vectors together take."""
        with self._lock:
            return sum(self._used.values())

    def hold(self) -> LocalHeldVectors:
        """Return an empty place for one orchestrator's vectors."""
        return LocalHeldVectors(self)

    def forget(self, vectors: LocalHeldVectors) -> None:
        with self._lock:
            self._used.pop(vectors, None)


class LocalHeldVectors:
    """The vectors of one orchestrator in the states of the last snapshots. Thread-safe."""

    def __init__(self, cache: LocalVectorCache) -> None:
        self._cache = cache
        self._lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        """Keep nothing any more."""
        self._states: OrderedDict[VectorStamp, VectorState] = OrderedDict()
        self._loading: _Loading | None = None

    def close(self) -> None:
        self._cache.forget(self)
        self.clear()

    def has(self, stamp: VectorStamp) -> bool:
        """Return whether the vectors of a snapshot are kept."""
        with self._lock:
            return stamp in self._states

    def state(
        self,
        stamp: VectorStamp,
        last_key: int,
        read: Callable[[int], tuple[VectorRows, int]],
        changed: Callable[[int], Iterable[tuple[int, int, VectorRows]] | None],
    ) -> VectorState | None:
        """Return the vectors of a snapshot, updated by changes.

        What an interrupted call has read is kept for the next.

        Args:
            last_key: no memory has a higher one.
            read: a key to the rows of some keys above it, and the last key looked at.
            changed: a version to (first key, last key, their rows) of all changes after it;
                None: nobody knows them any more.

        Returns:
            None: they are too many to keep, or the snapshot is older than what is kept.
        """
        with self._lock:
            state_found = self._states.get(stamp)
            if state_found is None:
                newest = next(reversed(self._states.values()), None)
                if newest is not None and newest.stamp[1:] == stamp[1:]:
                    if newest.stamp.version > stamp.version:
                        return None
                    state_found = newest.followed(stamp, changed(newest.stamp.version))
                if state_found is None:
                    state_found = self._loaded(stamp, last_key, read, changed)
                if state_found is None:
                    return None
                self._states[stamp] = state_found
                while len(self._states) > _STATES_KEPT:
                    self._states.popitem(last=False)
        if not self._cache.make_room(self, state_found.size):
            self.clear()
        return state_found

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
            # With some room for what will be added.
            arrays = _Arrays(stamp.dimensions, last_key * 5 // 4 + _ROWS_AT_ONCE)
            loading = self._loading = _Loading(stamp, arrays)
        while loading.through < last_key:
            rows, through = read(loading.through)
            loading.rows = loading.arrays.append(loading.rows, rows)
            loading.through = through
        self._loading = None
        loaded = VectorState(
            loading.stamp, loading.arrays, loading.arrays.marks[: loading.rows].copy(), None
        )
        if loading.stamp == stamp:
            return loaded
        # Its parts are of several snapshots; all that changed since the first is read once more.
        return loaded.followed(stamp, changed(loading.stamp.version))


class _Arrays:
    """Arrays that states share: each sees the first rows, which never change.

    Attributes:
        keys: shape (room,).
        codes: shape (room, dimensions).
        bits: shape (words, room), the signs of the codes.
        scales: shape (room,), what makes a unit vector of the codes.
        marks: shape (room,), places in ``visibilities`` as they were when a row was added.
        visibilities: the different ones; the first stands for removed rows.
    """

    def __init__(self, dimensions: int, room: int) -> None:
        self.dimensions = dimensions
        self.words = -(-dimensions // _WORD_BITS)
        self.visibilities: dict[int | None, int] = {None: _REMOVED}
        # Nothing of them takes memory before it is written to.
        self.keys = np.empty(room, np.int64)
        self.codes = np.empty((room, dimensions), np.int8)
        self.bits = np.empty((self.words, room), np.uint64)
        self.scales = np.empty(room, np.float32)
        self.marks = np.empty(room, np.int32)

    @staticmethod
    def row_bytes(dimensions: int) -> int:
        """Return the bytes of a row."""
        return dimensions + -(-dimensions // _WORD_BITS) * 8 + 16

    def append(self, count: int, rows: VectorRows) -> int:
        """Write rows behind the first ``count``; returns how many there are then."""
        end = count + len(rows.keys)
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
    """The rows read so far, from the snapshot of ``stamp`` on."""

    stamp: VectorStamp
    arrays: _Arrays
    rows: int = 0
    through: int = 0


class _Order(NamedTuple):
    """Keys in ascending order, and the place of each."""

    keys: NDArray[np.int64]
    places: NDArray[np.intp]


class _Seen(NamedTuple):
    """Which rows are hidden from a reader, and the places of visible rows if they are few."""

    hidden: NDArray[np.bool_]
    places: NDArray[np.intp] | None


class VectorState:
    """The vectors of one snapshot; never changed.

    Args:
        marks: shape (n,), places in ``_Arrays.visibilities``.
        order: None: the keys are ascending.
    """

    def __init__(
        self, stamp: VectorStamp, arrays: _Arrays, marks: NDArray[np.int32], order: _Order | None
    ) -> None:
        count = len(marks)
        self.stamp = stamp
        self._arrays = arrays
        self._marks = marks
        self._order = order
        # Growing replaces the arrays: these stay as they are.
        self.keys = arrays.keys[:count]
        self._codes = arrays.codes[:count]
        self._bits = arrays.bits[:, :count]
        self._scales = arrays.scales[:count]
        self._views: dict[tuple[int, ...], _Seen | None] = {}

    @property
    def size(self) -> int:
        """Bytes in use."""
        return len(self.keys) * self._arrays.row_bytes(self._arrays.dimensions)

    def nearest(
        self,
        query: NDArray[np.float32],
        limit: int,
        visibilities: Collection[int],
        among: Collection[int] | None,
    ) -> list[int]:
        """Return keys by descending cosine, equal ones by key. Args: as of the port's search."""
        hidden, places = self._seen(visibilities) or (None, None)
        if among is not None:
            candidates, there = self._places(np.fromiter(among, np.int64, count=len(among)))
            places = candidates[there]
            if hidden is not None:
                places = places[~hidden[places]]
        elif places is None and len(self.keys) > self._ranked:
            places = self._nominated(query, max(self._ranked, limit), hidden)
        scores = self._cosines(query, places)
        keys = self.keys if places is None else self.keys[places]
        best = smallest(keys, -scores, limit)
        nearest_keys: list[int] = keys[best].tolist()
        return nearest_keys

    def visible(self, visibilities: Collection[int]) -> NDArray[np.int64]:
        """Return the keys of all vectors of some visibilities."""
        visible = self._seen(visibilities)
        return self.keys if visible is None else self.keys[~visible.hidden]

    @property
    def _ranked(self) -> int:
        """Return how many are ranked by their vectors."""
        return RANKED + int(RANKED_SHARE * len(self.keys))

    def vectors(self, pks: Sequence[int]) -> NDArray[np.float32]:
        """Return a unit vector for each key, zeros where there is none."""
        places, there = self._places(np.fromiter(pks, np.int64, count=len(pks)))
        result = np.zeros((len(pks), self._codes.shape[1]), np.float32)
        places = places[there]
        result[there] = self._codes.take(places, axis=0) * self._scales[places, None]
        return result

    def followed(
        self, stamp: VectorStamp, changes: Iterable[tuple[int, int, VectorRows]] | None
    ) -> VectorState | None:
        """Return the state after some changes; None: it has to be read anew.

        Args:
            changes: as of ``LocalHeldVectors.state``.
        """
        if changes is None:
            return None
        state = self
        marks = self._marks
        for first, last, rows in changes:
            known_places, there = state._places(rows.keys)
            known_places = known_places[there]
            if not np.array_equal(state._codes[known_places], rows.codes[there]):
                # Another vector for a known key: rows that states share never change.
                return None
            if marks is self._marks:
                marks = marks.copy()
            marks[state._between(first, last)] = _REMOVED
            marks[known_places] = state._arrays.marks_of(rows.visibilities[there])
            new = VectorRows(rows.keys[~there], rows.visibilities[~there], rows.codes[~there])
            state = state._with(marks, new)
            marks = state._marks
        return VectorState(stamp, state._arrays, marks, state._order)

    def _with(self, marks: NDArray[np.int32], new: VectorRows) -> VectorState:
        """Return the state with new rows behind the known ones."""
        if not len(new.keys):
            return VectorState(self.stamp, self._arrays, marks, self._order)
        count = len(marks)
        end = self._arrays.append(count, new)
        order = self._order
        # A key that was removed comes again: its new place is found first.
        if order is not None or (count and new.keys[0] <= self.keys[-1]):
            if order is None:
                order = _Order(self.keys, np.arange(count))
            at = np.searchsorted(order.keys, new.keys)
            order = _Order(
                np.insert(order.keys, at, new.keys),
                np.insert(order.places, at, np.arange(count, end)),
            )
        marks = np.concatenate([marks, self._arrays.marks[count:end]])
        return VectorState(self.stamp, self._arrays, marks, order)

    def _places(self, pks: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the place of each key, and which keys exist."""
        keys, places = (self.keys, None) if self._order is None else self._order
        if not len(keys):
            return np.zeros(len(pks), np.intp), np.zeros(len(pks), np.bool_)
        at = np.minimum(np.searchsorted(keys, pks), len(keys) - 1)
        there = keys[at] == pks
        at = at if places is None else places[at]
        return at, there & (self._marks[at] != _REMOVED)

    def _between(self, first: int, last: int) -> NDArray[np.intp] | slice:
        """Return the places of all keys from ``first`` to ``last``."""
        keys, places = (self.keys, None) if self._order is None else self._order
        start, end = np.searchsorted(keys, first), np.searchsorted(keys, last, side="right")
        return slice(start, end) if places is None else places[start:end]

    def _seen(self, visibilities: Collection[int]) -> _Seen | None:
        """Return the rows visible to a reader; None: all rows."""
        key = tuple(visibilities)
        views = self._views
        if key in views:
            return views[key]
        places_by_visibility = self._arrays.visibilities
        hides = np.ones(len(places_by_visibility), np.bool_)
        hides[
            [
                places_by_visibility[visibility]
                for visibility in key
                if visibility in places_by_visibility
            ]
        ] = False
        hidden = hides[self._marks]
        visible_count = len(hidden) - int(np.count_nonzero(hidden))
        few = np.flatnonzero(~hidden) if visible_count <= self._ranked else None
        visible = None if visible_count == len(hidden) else _Seen(hidden, few)
        # Replaced, not changed: another thread may be reading it.
        self._views = {**dict(list(views.items())[1 - _VIEWS_KEPT :]), key: visible}
        return visible

    def _nominated(
        self, query: NDArray[np.float32], count: int, hidden: NDArray[np.bool_] | None
    ) -> NDArray[np.intp]:
        """Return the places of about ``count`` rows that differ from a query in few bits."""
        distances = self._distances(query)
        if hidden is not None:
            np.putmask(distances, hidden, np.iinfo(distances.dtype).max)
        # Every n-th row approximates the distribution of all distances.
        step = max(len(distances) // _PART, 1)
        counts = np.bincount(distances[::step]).cumsum()
        bound = np.searchsorted(counts, min(count / step, counts[-1]))
        near = np.flatnonzero(distances <= bound)
        if len(near) > 2 * count:
            # Very many are equally near: those with the lowest keys count.
            nearer = near[distances[near] < bound]
            near = np.union1d(nearer, near[distances[near] == bound][:count])
        return near if hidden is None else near[~hidden[near]]

    def _distances(self, query: NDArray[np.float32]) -> NDArray[np.unsignedinteger[Any]]:
        """Return in how many signs each row differs from a query.

        With 256 dimensions the exact opposite counts as equal: it is ranked low later.
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
        """Return the cosine of each row, or of those at some places, with a unit vector."""
        count = len(self.keys) if places is None else len(places)
        cosines = np.empty(count, np.float32)
        # Parts that fit a processor's cache.
        for start in range(0, count, _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            codes = self._codes[part]
            if places is not None:
                codes = self._codes.take(places[part], axis=0)
            cosines[part] = np.vecdot(codes.astype(np.float32), query)
        cosines *= self._scales if places is None else self._scales[places]
        return cosines


def sign_words(rows: NDArray[np.int8] | NDArray[np.float32], words: int) -> NDArray[np.uint64]:
    """Return the signs of rows, shape (n, words): a bit is 1 where a number is positive."""
    packed = np.zeros((len(rows), words * 8), np.uint8)
    signs = np.packbits(rows > 0, axis=1, bitorder="little")
    packed[:, : signs.shape[1]] = signs
    return packed.view(np.uint64)


def smallest(keys: NDArray[np.int64], values: NDArray[np.float32], limit: int) -> NDArray[np.intp]:
    """Return the places of the ``limit`` smallest by value, then by key."""
    if len(keys) <= limit:
        return np.lexsort((keys, values))
    bound = np.partition(values, limit - 1)[limit - 1]
    close = np.flatnonzero(values <= bound)
    return close[np.lexsort((keys[close], values[close]))[:limit]]
