"""What is done now and then beside the work: the text index is merged, old events go."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from memgraph.clock import Clock
from memgraph.log import EventLog
from memgraph.storage import events, text_index
from memgraph.storage.database import Database

# Each message leaves a part of the text index; SQLite itself merges sixteen of a size.
COMMITS_BETWEEN_MERGES: Final = 64
# About 2 ms of work, which is what a message may have to wait for it; then others have their turn.
MERGED_AT_ONCE: Final = 16
GIVE_WAY_S: Final = 0.004
MOST_MERGES: Final = 32

EVENTS_EVERY_MS: Final = 10 * 60 * 1_000
REMOVED_AT_ONCE: Final = 2_000


class Upkeep:
    """Small steps, each a transaction that nobody waits for long."""

    def __init__(self, database: Database, clock: Clock, log: EventLog) -> None:
        self._database = database
        self._clock = clock
        self._log = log
        self._merged_at = database.commits
        self._events_at = 0

    def run(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Do what is due.

        Raises:
            StorageError: the database failed.
        """
        self._merge(stop)
        now = self._clock.now_ms()
        if now >= self._events_at:
            self._events_at = now + EVENTS_EVERY_MS
            self._remove_events(now, stop)

    def _merge(self, stop: Callable[[], bool]) -> None:
        if self._database.commits - self._merged_at < COMMITS_BETWEEN_MERGES:
            return
        for _ in range(MOST_MERGES):
            with self._database.write(durable=False) as connection:
                more = text_index.merge(connection, MERGED_AT_ONCE)
            if not more:
                self._merged_at = self._database.commits
                return
            if stop():
                return
            time.sleep(GIVE_WAY_S)

    def _remove_events(self, now: int, stop: Callable[[], bool]) -> None:
        with self._database.read() as connection:
            through = events.removable(connection, now)
        if not through:
            return
        removed = REMOVED_AT_ONCE
        while removed == REMOVED_AT_ONCE and not stop():
            with self._database.write(durable=False) as connection:
                for name in events.skip(connection, through):
                    self._log.warning("events.lost", subscriber=name, through=through)
                removed = events.remove(connection, through, REMOVED_AT_ONCE)
