"""What is done now and then beside the work: old events go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from memgraph.clock import Clock
from memgraph.log import EventLog
from memgraph.storage import events
from memgraph.storage.database import Database

EVERY_MS: Final = 10 * 60 * 1_000
STEP: Final = 2_000


class Upkeep:
    """Small steps, each a transaction that nobody waits for long."""

    def __init__(self, database: Database, clock: Clock, log: EventLog) -> None:
        self._database = database
        self._clock = clock
        self._log = log
        self._next_at = 0

    def run(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Do what is due.

        Raises:
            StorageError: the database failed.
        """
        now = self._clock.now_ms()
        if now < self._next_at:
            return
        self._next_at = now + EVERY_MS
        with self._database.read() as connection:
            through = events.removable(connection, now)
        if not through:
            return
        removed = STEP
        while removed == STEP and not stop():
            with self._database.write(durable=False) as connection:
                for name in events.skip(connection, through):
                    self._log.warning("events.lost", subscriber=name, through=through)
                removed = events.remove(connection, through, STEP)
