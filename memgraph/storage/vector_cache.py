"""Canonical vectors that a process keeps between recalls.

A memory's vector never changes while the ``vector_generation`` of its database stays the same, so
what is kept is right in every snapshot of that generation. Which memories there are, and who may
see them, is what the index says: a copy of it is right while its ``vector_index_version`` stays.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_FLOAT_BYTES = 4
_FIRST_ROWS = 1_024

Fetch = Callable[[list[int]], list[tuple[int, bytes]]]
"""Keys to (key, little-endian float32) of those that have a vector, in their order."""


class IndexCopy(NamedTuple):
    """The vector index, in its order.

    Attributes:
        pks: shape (n,).
        packed: shape (n, bytes), the signs of a vector.
        marks: shape (n,), the visibility of each.
    """

    pks: NDArray[np.int64]
    packed: NDArray[np.uint8]
    marks: NDArray[np.int64]

    @property
    def size(self) -> int:
        return self.pks.nbytes + self.packed.nbytes + self.marks.nbytes


class VectorCache:
    """Room for the vectors of many orchestrators; the longest unused give way.

    Args:
        max_bytes: of all vectors together.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._used: OrderedDict[HeldVectors, int] = OrderedDict()

    def make_room(self, held: HeldVectors, size: int) -> bool:
        """Note what one orchestrator's vectors take, bytes; False: they are too many to keep."""
        with self._lock:
            self._used.pop(held, None)
            if size > self.max_bytes:
                return False
            self._used[held] = size
            idle = []
            while sum(self._used.values()) > self.max_bytes:
                idle.append(self._used.popitem(last=False)[0])
        for each in idle:
            each.clear()
        return True

    @property
    def used(self) -> int:
        """Bytes that all vectors together take."""
        with self._lock:
            return sum(self._used.values())

    def hold(self) -> HeldVectors:
        """A place for one orchestrator's vectors, empty."""
        return HeldVectors(self)

    def forget(self, held: HeldVectors) -> None:
        with self._lock:
            self._used.pop(held, None)


class HeldVectors:
    """The vectors of one orchestrator. Safe from several threads."""

    def __init__(self, cache: VectorCache) -> None:
        self._cache = cache
        self._lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        """Keep nothing any more."""
        self._state = _NOTHING
        self._index: tuple[str, IndexCopy] | None = None
        self._met: Met | None = None

    def index(self, version: str, size: int, read: Callable[[], IndexCopy]) -> IndexCopy | None:
        """The index of a version, read where another one is kept; None: too large to keep.

        Args:
            size: about what it takes, bytes.
        """
        known = self._index
        if known is not None and known[0] == version:
            return known[1]
        if size > self._cache.max_bytes:
            return None
        found = read()
        self._index = (version, found)
        if not self._fits(self._kept):
            self.clear()
        return found

    def close(self) -> None:
        self._cache.forget(self)
        self.clear()

    def aligned(
        self, generation: str, pks: NDArray[np.int64], dimensions: int, fetch: Fetch
    ) -> NDArray[np.float32] | None:
        """The vectors of ``pks``, a row for each, in their order.

        None where one of them has no vector, or they are too many to keep.
        """
        # Some rows to spare are counted, see ``_followed``.
        if not self._fits(len(pks) * dimensions * _FLOAT_BYTES * 5 // 4 + self._index_size):
            return None
        with self._lock:
            state = self._state
            if (state.generation, state.rows.shape[1]) != (generation, dimensions):
                state = _empty(generation, dimensions)
            if not np.array_equal(state.pks, pks):
                followed = _followed(state, pks, fetch)
                if followed is None:
                    return None
                state = followed
            self._state = state
            return state.rows[: len(pks)]

    def of(self, generation: str, pks: Sequence[int]) -> NDArray[np.float32] | None:
        """The vectors of ``pks``, a row for each; None: not all of them are kept."""
        state = self._state
        places = None if state.generation != generation else state.places(pks)
        return None if places is None else state.rows[places]

    def met(
        self, generation: str, dimensions: int, pks: Sequence[int], fetch: Fetch
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """As ``Met.of``; what is fetched is kept for the next, as far as there is room."""
        known = self._met
        if known is None or (known.generation, known.dimensions) != (generation, dimensions):
            rows = (self._cache.max_bytes - self._index_size) // (dimensions * _FLOAT_BYTES)
            known = self._met = Met(generation, dimensions, max(rows, 0))
        found = known.of(pks, fetch)
        if not self._fits(self._kept):
            self.clear()
        return found

    def _fits(self, size: int) -> bool:
        """Make room for so many bytes beside the vectors met one by one, which give way to them."""
        met = self._met
        if met is not None and self._cache.make_room(self, size + met.size):
            return True
        self._met = None
        return self._cache.make_room(self, size)

    @property
    def _kept(self) -> int:
        """Bytes of all but the vectors met one by one."""
        return self._state.rows.nbytes + self._index_size

    @property
    def _index_size(self) -> int:
        index = self._index
        return 0 if index is None else index[1].size


class Met:
    """Vectors of one generation by key, filled as they are asked for; the oldest give way.

    Safe from several threads.

    Args:
        most: how many are kept.
    """

    def __init__(self, generation: str, dimensions: int, most: int) -> None:
        self.generation = generation
        self.dimensions = dimensions
        self._most = most
        self._lock = threading.Lock()
        # Doubled when they are full: nothing of them takes memory before it is written to, but who
        # allows more than the machine has is not given it as one piece.
        self._rows = np.empty((min(most, _FIRST_ROWS), dimensions), np.float32)
        self._places: dict[int, int] = {}
        self._pks = np.zeros(len(self._rows), np.int64)
        self._added = 0

    @property
    def size(self) -> int:
        """Bytes in use."""
        return min(self._added, self._most) * (self.dimensions * _FLOAT_BYTES)

    def of(self, pks: Sequence[int], fetch: Fetch) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """A row for each of ``pks``, and which of them have a vector; the others' rows are 0."""
        with self._lock:
            places = np.fromiter(
                (self._places.get(pk, -1) for pk in pks), dtype=np.intp, count=len(pks)
            )
            # ``take`` copies: what gives way later changes nothing here.
            found = (
                self._rows.take(places, axis=0, mode="clip") if self._added else _zeros(self, pks)
            )
        there = places >= 0
        lacking = np.flatnonzero(~there)
        if len(lacking):
            found[lacking] = 0.0
            wanted = sorted({pks[at] for at in lacking.tolist()})
            fetched = dict(fetch(wanted))
            for at in lacking.tolist():
                vector = fetched.get(pks[at])
                if vector is not None:
                    found[at] = np.frombuffer(vector, "<f4")
                    there[at] = True
            self._add(fetched)
        return found, there

    def _add(self, fetched: Mapping[int, bytes]) -> None:
        with self._lock:
            for pk, vector in fetched.items():
                if pk in self._places or not self._most:
                    continue
                place = self._added % self._most
                if place == len(self._rows):
                    self._grow()
                if self._added >= self._most:
                    del self._places[int(self._pks[place])]
                self._rows[place] = np.frombuffer(vector, "<f4")
                self._pks[place] = pk
                self._places[pk] = place
                self._added += 1

    def _grow(self) -> None:
        known = len(self._rows)
        rows = np.empty((min(2 * known, self._most), self.dimensions), np.float32)
        rows[:known] = self._rows
        pks = np.zeros(len(rows), np.int64)
        pks[:known] = self._pks
        self._rows, self._pks = rows, pks


def _zeros(met: Met, pks: Sequence[int]) -> NDArray[np.float32]:
    return np.zeros((len(pks), met.dimensions), np.float32)


@dataclass(frozen=True, slots=True)
class _State:
    """Replaced as a whole, so that nobody sees the keys of one time and the rows of another.

    Attributes:
        pks: shape (n,), in the order of the index, which is mostly ascending.
        rows: shape (at least n, dimensions); those behind the n-th are to come.
        order: places of ``pks`` by ascending key; None: they are ascending.
    """

    generation: str
    pks: NDArray[np.int64]
    rows: NDArray[np.float32]
    order: NDArray[np.intp] | None

    def places(self, pks: Sequence[int]) -> NDArray[np.intp] | None:
        """Where the rows of these keys are; None: one is missing."""
        wanted = np.fromiter(pks, dtype=np.int64, count=len(pks))
        at = np.searchsorted(self.pks, wanted, sorter=self.order)
        if not len(self.pks) or (len(at) and at.max() >= len(self.pks)):
            return None
        found = at if self.order is None else self.order[at]
        return found if np.array_equal(self.pks[found], wanted) else None


def _empty(generation: str, dimensions: int) -> _State:
    return _State(generation, np.empty(0, np.int64), np.empty((0, dimensions), np.float32), None)


_NOTHING = _empty("", 0)


def _followed(state: _State, pks: NDArray[np.int64], fetch: Fetch) -> _State | None:
    """The state for these keys: what is there is taken over, what is new is fetched."""
    known = len(state.pks)
    if np.array_equal(pks[:known], state.pks):
        rows, lacking = state.rows, np.arange(known, len(pks))
        if len(rows) < len(pks):
            # Some to spare, so that not every new memory copies all that are there.
            rows = np.empty((len(pks) * 5 // 4, rows.shape[1]), np.float32)
            rows[:known] = state.rows[:known]
    else:
        rows = np.empty((len(pks), state.rows.shape[1]), np.float32)
        at = np.searchsorted(state.pks, pks, sorter=state.order)
        at = np.minimum(at, max(known - 1, 0))
        places = at if state.order is None else state.order[at]
        same = state.pks[places] == pks if known else np.zeros(len(pks), bool)
        rows[same] = state.rows[places[same]]
        lacking = np.flatnonzero(~same)
    fetched = fetch(pks[lacking].tolist())
    if [pk for pk, _ in fetched] != pks[lacking].tolist():
        return None
    if fetched:
        joined = b"".join(vector for _, vector in fetched)
        rows[lacking] = np.frombuffer(joined, "<f4").reshape(len(lacking), -1)
    ascending = bool((np.diff(pks) > 0).all())
    return _State(state.generation, pks, rows, None if ascending else np.argsort(pks))
