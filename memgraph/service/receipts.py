"""Receipts of recalls, kept until there are some, then written in one go off the read path.

With them goes what was handed out otherwise (bulletins, injected context), so that its lines are
known when they come back.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from memgraph.model.recall import Bundle, RecallRequest
from memgraph.model.values import Memory
from memgraph.policy.echo import line_hashes
from memgraph.storage import echo_lines, receipts
from memgraph.storage.database import Database

if TYPE_CHECKING:
    from memgraph.bulletin.document import Bulletin

FLUSH_AT = 16
# A database that cannot be written to must not fill the memory of a reader.
MAX_KEPT = 1_024
# A bulletin that stays the same is noted anew so often: well within ``policy.echo.WINDOW_MS``.
BULLETIN_AGAIN_MS = 3_600_000
# The same memories are recalled again and again, and their texts never change.
MAX_CACHED = 4_096
MAX_VIEWS = 64


class _Handed(NamedTuple):
    """A text that was handed out otherwise than by a recall."""

    text: str
    at: int


class ReceiptBook:
    """Receipts of one open database that await writing. Safe from several threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._kept: list[tuple[RecallRequest, Bundle]] = []
        self._handed: list[_Handed] = []
        self._bulletins: OrderedDict[str, _Handed] = OrderedDict()
        self._hashes: OrderedDict[str, frozenset[int]] = OrderedDict()
        self.dropped = 0

    def add(self, request: RecallRequest, bundle: Bundle) -> bool:
        """Keep a receipt; whether there are enough to be written."""
        with self._lock:
            if len(self._kept) >= MAX_KEPT:
                self.dropped += 1
                return True
            self._kept.append((request, bundle))
            return self._enough()

    def add_bulletin(self, bulletin: Bulletin, at: int) -> bool:
        """Keep a bulletin that was issued, unless it was just kept; whether to write."""
        with self._lock:
            last = self._bulletins.get(bulletin.view_key)
            if last is not None and at - last.at < BULLETIN_AGAIN_MS and last.text == bulletin.text:
                return False
            self._bulletins[bulletin.view_key] = _Handed(bulletin.text, at)
            self._bulletins.move_to_end(bulletin.view_key)
            while len(self._bulletins) > MAX_VIEWS:
                self._bulletins.popitem(last=False)
        return self.add_text(bulletin.text, at)

    def add_text(self, text: str, at: int) -> bool:
        """Keep a text that was handed out; whether there is enough to be written."""
        with self._lock:
            if len(self._handed) >= MAX_KEPT:
                self.dropped += 1
                return True
            self._handed.append(_Handed(text, at))
            return self._enough()

    def flush(self, _stop: Callable[[], bool] = lambda: False) -> int:
        """Write what is kept; gives how many receipts.

        Raises:
            StorageError: they are kept for the next try.
        """
        with self._lock:
            taken, self._kept = self._kept, []
            handed, self._handed = self._handed, []
        if not taken and not handed:
            return 0
        try:
            lines = self._lines(taken, handed)
            # They were in memory alone until now: a power failure may take some either way.
            with self._database.write(durable=False) as connection:
                receipts.write(connection, taken)
                echo_lines.record(connection, lines)
        except BaseException:
            with self._lock:
                self._kept[:0] = taken
                self._handed[:0] = handed
            raise
        return len(taken)

    def _enough(self) -> bool:
        return len(self._kept) + len(self._handed) >= FLUSH_AT

    def _lines(
        self, taken: Iterable[tuple[RecallRequest, Bundle]], handed: Iterable[_Handed]
    ) -> list[tuple[int, int, int]]:
        """Every line once: its hash, and when it was handed out first and last."""
        times: dict[int, tuple[int, int]] = {}
        for hashes, at in (
            *((self._hashes_of(i.memory), b.at) for _, b in taken for i in b.items),
            *((line_hashes(each.text), each.at) for each in handed),
        ):
            for line_hash in hashes:
                first, last = times.get(line_hash, (at, at))
                times[line_hash] = min(first, at), max(last, at)
        return [(line_hash, first, last) for line_hash, (first, last) in sorted(times.items())]

    def _hashes_of(self, memory: Memory) -> frozenset[int]:
        with self._lock:
            known = self._hashes.get(memory.memory_id)
        if known is None:
            known = line_hashes(memory.content)
            if memory.summary:
                known |= line_hashes(memory.summary)
            with self._lock:
                self._hashes[memory.memory_id] = known
                while len(self._hashes) > MAX_CACHED:
                    self._hashes.popitem(last=False)
        return known
