"""Periodic upkeep in small steps: merging the text index, removing old rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from memgraph.clock import MS_PER_DAY, Clock
from memgraph.config.schema import ReceiptSettings
from memgraph.store import receipts as receipts_rows
from memgraph.store.engine import Database

# Each commit leaves a segment of the text index; SQLite itself merges sixteen of equal size.
COMMITS_BETWEEN_MERGES: Final = 64
# The pause between merges, for other writers; one merge takes about 2 ms.
GIVE_WAY_S: Final = 0.004
MOST_MERGES: Final = 32

REMOVE_EVERY_MS: Final = 10 * 60 * 1_000
# With about twenty items each, this takes some milliseconds.
RECEIPTS_AT_ONCE: Final = 100
KEEP_RECEIPTS: Final = 50_000
"""The number of receipts kept, the newest ones."""


class Housekeeping:
    """Does periodic upkeep in small steps, each in a short transaction.

    Attributes:
        removes: True to remove expired data; False with a fixed clock.
    """

    def __init__(self, database: Database, clock: Clock, receipts: ReceiptSettings) -> None:
        self._database = database
        self._receipts = receipts
        self._clock = clock
        self._merged_at = database.commits
        # The first run merges, because other processes may have written before.
        self._postings_at = self._merged_at
        self._removes_at = 0
        self.removes = True

    def run(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Do all upkeep that is due.

        Raises:
            StorageError: the database failed.
        """
        self._merge(stop)
        self._merge_postings(stop)
        now = self._clock.now_ms()
        if self.removes and now >= self._removes_at:
            self._removes_at = now + REMOVE_EVERY_MS
            self._remove_receipts(now, stop)

    def _merge(self, stop: Callable[[], bool]) -> None:
        if self._database.commits - self._merged_at < COMMITS_BETWEEN_MERGES:
            return
        for _ in range(MOST_MERGES):
            with self._database.write(durable=False) as transaction:
                more = transaction.engine.phrases.merge(transaction)
            if not more:
                self._merged_at = self._database.commits
                return
            if stop():
                return
            time.sleep(GIVE_WAY_S)

    def _merge_postings(self, stop: Callable[[], bool]) -> None:
        if self._database.commits >= self._postings_at:
            self._postings_at = self._database.commits + COMMITS_BETWEEN_MERGES
            self._database.engine.texts.merge(self._database, stop)

    def _remove_receipts(self, now: int, stop: Callable[[], bool]) -> None:
        since = max(now - int(self._receipts.keep_days * MS_PER_DAY), 0)
        while not stop():
            with self._database.read() as snapshot:
                if not receipts_rows.has_old(snapshot, keep=KEEP_RECEIPTS, since=since):
                    return
            with self._database.write(durable=False) as transaction:
                receipts_rows.remove_old(
                    transaction, keep=KEEP_RECEIPTS, since=since, limit=RECEIPTS_AT_ONCE
                )
                receipts_rows.remove_bulletins(transaction, RECEIPTS_AT_ONCE)
            time.sleep(GIVE_WAY_S)
