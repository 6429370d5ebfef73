"""The latest reflection for each reader, cached until something is written."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import NamedTuple

from memgraph.model.values import Memory
from memgraph.rules.scope import Viewer
from memgraph.store import journal
from memgraph.store import reflections as queries
from memgraph.store.engine import Database
from memgraph.store.visibility import View

MAX_VIEWS = 64
# One that stays the same is told to the book of receipts anew so often, as a bulletin is.
AGAIN_MS = 3_600_000


class _Kept(NamedTuple):
    head: tuple[int, str]
    found: Memory | None


class LatestReflections:
    """The cache of one open database. Thread-safe; writes by other processes apply at once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._kept: OrderedDict[Viewer, _Kept] = OrderedDict()
        self._told: OrderedDict[str, int] = OrderedDict()

    def latest(self, viewer: Viewer, as_of: int | None = None) -> Memory | None:
        """Return the latest active reflection that may be seen. Raises StorageError.

        Args:
            as_of: as it was at that time, milliseconds.
        """
        with self._database.read() as snapshot:
            if as_of is not None:
                return queries.latest(snapshot, View(viewer, as_of))
            head = journal.head(snapshot)
            with self._lock:
                cached = self._kept.get(viewer)
            if cached is not None and cached.head == head:
                return cached.found
            latest = queries.latest(snapshot, View(viewer))
        with self._lock:
            self._kept[viewer] = _Kept(head, latest)
            self._kept.move_to_end(viewer)
            while len(self._kept) > MAX_VIEWS:
                self._kept.popitem(last=False)
        return latest

    def forget(self) -> None:
        """Clear the cache, after texts were erased."""
        with self._lock:
            self._kept.clear()

    def is_news(self, memory: Memory, now_ms: int) -> bool:
        """Return True when it was not handed out within the last hour, and record that it is
        now.
        """
        with self._lock:
            text = self._told.get(memory.memory_id)
            if text is not None and 0 <= now_ms - text < AGAIN_MS:
                return False
            self._told[memory.memory_id] = now_ms
            self._told.move_to_end(memory.memory_id)
            while len(self._told) > MAX_VIEWS:
                self._told.popitem(last=False)
        return True
