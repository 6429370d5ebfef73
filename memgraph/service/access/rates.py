"""Rates that all servers of one database share; without the database each counts alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from memgraph.errors import MemgraphError
from memgraph.log import EventLog, error_fields

RETRY_S: Final = 5.0
"""The seconds after a failure during which the database is not queried."""
MINUTE_S: Final = 60.0


class RateLimit(NamedTuple):
    """A token bucket for each source of a kind.

    Attributes:
        burst_s: the capacity, as the number of seconds at the full rate.
    """

    kind: str
    per_second: float
    burst_s: float

    @classmethod
    def of_minute(cls, kind: str, number: int) -> RateLimit:
        """Return a limit of ``number`` at once, and ``number`` in each following minute."""
        return cls(kind, number / MINUTE_S, MINUTE_S)


class Grant(NamedTuple):
    """The tokens taken, and the seconds until another one is available; 0 if one is."""

    tokens: int
    wait_s: float


class TokenTable(Protocol):
    """Stores the buckets; see ``store.postgres.rate_table.RateTable``."""

    def take(
        self, source: str, tokens: int, *, interval_s: float, burst_s: float
    ) -> tuple[int, float]: ...


class SharedRates:
    """The buckets in a database. Thread-safe; ``take`` waits for the database.

    Attributes:
        log: receives a line when the database fails, and when it is available again.
    """

    def __init__(self, table: TokenTable, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.log: EventLog | None = None
        self._table = table
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._retry_at = monotonic()
        self._has_failed = False

    @property
    def is_away(self) -> bool:
        """True while the database is not queried."""
        return self._monotonic() < self._retry_at

    def take(self, limit: RateLimit, source: str, tokens: int = 1) -> Grant | None:
        """Take tokens, or as many as are left; 0 takes none. Return None without the database."""
        with self._lock:
            if self.is_away:
                return None
            if self._has_failed:
                # One request tests whether the database is available; the others do not wait.
                self._retry_at = self._monotonic() + RETRY_S
        try:
            grant = self._table.take(
                f"{limit.kind} {source}",
                tokens,
                interval_s=1 / limit.per_second,
                burst_s=limit.burst_s,
            )
        except MemgraphError as error:
            self.fail(error)
            return None
        if self._note(failed=False, retry_at=self._monotonic()) and self.log is not None:
            self.log.info("rates", shared=True)
        return Grant(*grant)

    def fail(self, error: MemgraphError) -> None:
        """Let this process count alone for ``RETRY_S``."""
        is_new = self._note(failed=True, retry_at=self._monotonic() + RETRY_S)
        if is_new and self.log is not None:
            self.log.warning("rates", shared=False, reason=error.message, **error_fields(error))

    def _note(self, *, failed: bool, retry_at: float) -> bool:
        """Set the state, and return True if it changed, so that an outage is logged once."""
        with self._lock:
            is_new, self._has_failed = failed is not self._has_failed, failed
            self._retry_at = retry_at
        return is_new


def shared_rates(url: str) -> SharedRates:
    """Return the shared rates in the database at a URL."""
    from memgraph.store.postgres import checked_url
    from memgraph.store.postgres.rate_table import RateTable

    return SharedRates(RateTable(checked_url(url)))
