"""Receipts of recalls, kept until there are some, then written in one go off the read path."""

from __future__ import annotations

import threading
from collections.abc import Callable

from memgraph.model.recall import Bundle, RecallRequest
from memgraph.storage import receipts
from memgraph.storage.database import Database

FLUSH_AT = 16
# A database that cannot be written to must not fill the memory of a reader.
MAX_KEPT = 1_024


class ReceiptBook:
    """Receipts of one open database that await writing. Safe from several threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._kept: list[tuple[RecallRequest, Bundle]] = []
        self.dropped = 0

    def add(self, request: RecallRequest, bundle: Bundle) -> bool:
        """Keep a receipt; whether there are enough to be written."""
        with self._lock:
            if len(self._kept) >= MAX_KEPT:
                self.dropped += 1
                return True
            self._kept.append((request, bundle))
            return len(self._kept) >= FLUSH_AT

    def flush(self, _stop: Callable[[], bool] = lambda: False) -> int:
        """Write what is kept; gives how many receipts.

        Raises:
            StorageError: the receipts are kept for the next try.
        """
        with self._lock:
            taken, self._kept = self._kept, []
        if not taken:
            return 0
        try:
            # They were in memory alone until now: a power failure may take some either way.
            with self._database.write(durable=False) as connection:
                receipts.write(connection, taken)
        except BaseException:
            with self._lock:
                self._kept[:0] = taken
            raise
        return len(taken)
