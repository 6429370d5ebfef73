"""The open orchestrators of a service, opened on first use and closed when there are too many."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from typing import TYPE_CHECKING

from memgraph.clock import Clock
from memgraph.errors import (
    DatabaseBusy,
    DatabaseCorrupt,
    DatabaseMissing,
    DatabaseReplaced,
    DatabaseUnreachable,
    MemoryDisabled,
    StorageError,
)
from memgraph.log import EventLog

if TYPE_CHECKING:
    from memgraph.service.open_orchestrator import OpenOrchestrator
    from memgraph.store.postgres.stores import PostgresStores

GATES = 64
MAX_OPEN = 64
"""The maximum number of databases that one process keeps open."""
AWAY_MS = 30_000
"""Milliseconds to wait before retrying a server that did not answer, as a retry takes seconds."""


class OrchestratorPool:
    """Shares open orchestrators between threads. One in use is never closed.

    Args:
        open_one: opens an orchestrator by name.
        log_of: returns the log of an orchestrator.
        is_elsewhere: returns True if the settings have since named another store.
    """

    def __init__(
        self,
        open_one: Callable[[str], OpenOrchestrator],
        log_of: Callable[[str], EventLog],
        is_elsewhere: Callable[[OpenOrchestrator], bool],
    ) -> None:
        self._open_one = open_one
        self._log_of = log_of
        self._is_elsewhere = is_elsewhere
        self._opened: OrderedDict[str, OpenOrchestrator] = OrderedDict()
        self._failures: dict[str, StorageError] = {}
        self._lock = threading.Lock()
        # One thread at a time opens an orchestrator; others wait and then find it open.
        self._gates = tuple(threading.Lock() for _ in range(GATES))
        self._closed = False
        self._pid = os.getpid()

    def failure(self, name: str) -> StorageError | None:
        """Return the last damage, or error of an opening, until a file is opened."""
        # A copy has no traceback, which would keep the frames of every raise alive.
        return copy(self._failures.get(name))

    def failed(self, name: str, error: StorageError) -> None:
        """Record damage or a file that cannot be opened; it is logged if it is not the last one."""
        with self._lock:
            known = self._failures.get(name)
            self._failures[name] = copy(error)
        if known is None or known.code != error.code:
            self._log_of(name).failure("database.unusable", error)

    @contextmanager
    def use(self, name: str) -> Iterator[OpenOrchestrator]:
        """Yield the open orchestrator for the duration of the block.

        Raises:
            MemoryDisabled: the pool was closed, or created before a fork.
            MemgraphError: the orchestrator cannot be opened.
        """
        opened = self._acquire(name)
        try:
            yield opened
        except DatabaseReplaced:
            # After a restore: the next use opens the file that is there now.
            self.forget(name, opened)
            raise
        except DatabaseMissing:
            if self._is_elsewhere(opened):
                self.forget(name, opened)
            raise
        except DatabaseCorrupt as error:
            self.failed(name, error)
            raise
        finally:
            self._release(opened)

    @contextmanager
    def if_open(self, name: str) -> Iterator[OpenOrchestrator | None]:
        """Yield the orchestrator if it is already open, else None; does not make it recent."""
        with self._lock:
            opened = self._opened.get(name)
            if opened is not None:
                opened.users += 1
        try:
            yield opened
        finally:
            if opened is not None:
                self._release(opened)

    def forget(self, name: str, opened: OpenOrchestrator | None = None) -> None:
        """Remove an orchestrator: it is closed once unused, and opened again on demand.

        Args:
            opened: only if it is still this one; None: whichever is open.
        """
        with self._lock:
            current = self._opened.get(name)
            is_meant = current is not None and opened in (None, current)
            idle = self._retire([name] if is_meant else [])
        _close(idle)

    def write_down(self) -> None:
        """Flush the buffers of all open orchestrators to disk."""
        with self._lock:
            names = list(self._opened)
        for name in names:
            with self.if_open(name) as opened:
                if opened is not None:
                    opened.write_down()

    def close(self) -> None:
        """Close all unused orchestrators and refuse further use; the last users close the rest."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            self._closed = True
            idle = self._retire(list(self._opened))
        _close(idle)

    def _acquire(self, name: str) -> OpenOrchestrator:
        if os.getpid() != self._pid:
            # Connections and locks are the parent's; SQLite would damage the file through them.
            raise MemoryDisabled(
                "this service was created before a fork; create one in this process"
            )
        current = self._in_service(name)
        if current is not None:
            return current
        with self._gates[hash(name) % GATES]:
            current = self._in_service(name)
            if current is not None:
                return current
            opened = self._opened_anew(name)
            with self._lock:
                opened.users += 1
                self._opened[name] = opened
                idle = self._retire(list(self._opened) if self._closed else self._excess())
        _close(idle)
        return opened

    def _opened_anew(self, name: str) -> OpenOrchestrator:
        before = self._failures.get(name)
        try:
            opened = self._open_one(name)
        except (DatabaseBusy, DatabaseReplaced):
            # Another process has it locked; the file itself may be fine.
            raise
        except StorageError as error:
            self.failed(name, error)
            raise
        with self._lock:
            # Its background work has begun, and may have found new damage.
            if self._failures.get(name) is before:
                self._failures.pop(name, None)
        return opened

    def _in_service(self, name: str) -> OpenOrchestrator | None:
        """Return the open orchestrator with one more user; None if it must be (re)opened."""
        with self._lock:
            if self._closed:
                raise MemoryDisabled("the service was closed")
            opened = self._opened.get(name)
            if opened is None:
                return None
            opened.users += 1
            self._opened.move_to_end(name)
        if not self._was_replaced(opened):
            return opened
        # Another process restored the file, so this one is stale even if it was damaged.
        self.forget(name, opened)
        self._release(opened)
        return None

    def _release(self, opened: OpenOrchestrator) -> None:
        with self._lock:
            opened.users -= 1
            last = opened.retired and opened.users == 0
        if last:
            opened.close()

    def _retire(self, names: Sequence[str]) -> list[OpenOrchestrator]:
        """Remove orchestrators and return the unused ones; the last users close the others."""
        removed = [self._opened.pop(name) for name in names]
        for opened in removed:
            opened.retired = True
        return [opened for opened in removed if opened.users == 0]

    def _excess(self) -> list[str]:
        """Return the idle names to close so that ``MAX_OPEN`` remain, least recently used first.

        Orchestrators that are still embedding come last.
        """
        idle = [name for name, opened in self._opened.items() if not opened.users]
        idle.sort(key=lambda name: self._opened[name].background.busy)
        return idle[: max(len(self._opened) - MAX_OPEN, 0)]

    def _was_replaced(self, opened: OpenOrchestrator) -> bool:
        try:
            opened.database.require_same_store()
        except DatabaseReplaced:
            return True
        except (DatabaseMissing, OSError):
            # The file was removed: it remains readable, and a write raises, unless the store moved.
            return self._is_elsewhere(opened)
        return False


def _close(idle: Iterable[OpenOrchestrator]) -> None:
    for opened in idle:
        opened.close()


class WatchedServers:
    """The database servers on which a process looks for changes. Thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._servers: dict[str, PostgresStores] = {}
        # Those that did not answer, each with the time of the next attempt.
        self._away: dict[str, tuple[int, DatabaseUnreachable]] = {}
        self._lock = threading.Lock()

    @property
    def is_any_away(self) -> bool:
        """True if a server did not answer within the last ``AWAY_MS``."""
        return any(self._clock.now_ms() < until for until, _ in self._away.values())

    def watch(self, url: str) -> None:
        """Watch a server, unless it is watched already; an empty URL is ignored.

        Raises:
            DatabaseUnreachable: the server does not answer, or did not within ``AWAY_MS``.
            StorageError: the server cannot be queried.
        """
        until, error = self._away.get(url, (0, None))
        if error is not None and self._clock.now_ms() < until:
            raise error.with_traceback(None)
        if not url or url in self._servers:
            return
        server = self._looked_at(url)
        with self._lock:
            if self._servers.setdefault(url, server) is not server:
                server.close()

    def missed(self, url: str, error: DatabaseUnreachable) -> None:
        """Record that a server did not answer, unless that is known."""
        if self._away.get(url, (0, error))[0] <= self._clock.now_ms():
            self._away[url] = self._clock.now_ms() + AWAY_MS, error

    def look(self) -> bool:
        """Return True if an orchestrator on a watched server was changed since the last call."""
        return sum(map(_changed, list(self._servers.values()))) > 0

    def names(self, url: str) -> list[str]:
        """Return the orchestrators of a server that the database user may read.

        Raises:
            StorageError: the server cannot be queried, and is not watched.
        """
        if watched := self._servers.get(url):
            _changed(watched)
            return list(watched.stamps)
        server = self._looked_at(url)
        try:
            return list(server.stamps)
        finally:
            server.close()

    def close(self) -> None:
        """Close the connections."""
        for server in self._servers.values():
            server.close()

    def _looked_at(self, url: str) -> PostgresStores:
        from memgraph.store.stores import server_of

        server = server_of(url)
        try:
            server.look()
        except BaseException as error:
            server.close()
            if isinstance(error, DatabaseUnreachable):
                self.missed(url, error)
            raise
        return server


def _changed(server: PostgresStores) -> bool:
    # Without an answer, its users get the error; changes are noticed once it is back.
    with suppress(StorageError):
        return server.look()
    return False
