"""The open orchestrators of a service, opened on first use and closed when there are too many."""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Final

from memgraph.errors import (
    DatabaseBusy,
    DatabaseCorrupt,
    DatabaseMissing,
    DatabaseReplaced,
    MemgraphError,
    MemoryDisabled,
    StorageError,
)
from memgraph.log import EventLog

if TYPE_CHECKING:
    from memgraph.service.open_orchestrator import OpenOrchestrator
    from memgraph.store.engine import Server

GATES = 64


class OrchestratorPool:
    """Shares open orchestrators between threads. One in use is never closed.

    Args:
        open_one: opens an orchestrator by name.
        troubles: records damaged files and files that cannot be opened.
        is_elsewhere: returns True if the settings have since named another store.
    """

    def __init__(
        self,
        open_one: Callable[[str], OpenOrchestrator],
        failures: OpenFailures,
        is_elsewhere: Callable[[OpenOrchestrator], bool] = lambda _opened: False,
    ) -> None:
        self._open_one = open_one
        self._is_elsewhere = is_elsewhere
        self._troubles = failures
        self._opened: OrderedDict[str, OpenOrchestrator] = OrderedDict()
        self._lock = threading.Lock()
        # One thread at a time opens an orchestrator; others wait and then find it open.
        self._gates = tuple(threading.Lock() for _ in range(GATES))
        self._closed = False
        self._pid = os.getpid()

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
            self._replace(name, opened)
            raise
        except DatabaseMissing:
            if self._is_elsewhere(opened):
                self._replace(name, opened)
            raise
        except DatabaseCorrupt as error:
            opened.damage = error
            self._troubles.met(name, error)
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

    def forget(self, name: str) -> None:
        """Remove an orchestrator: it is closed once unused, and opened again on demand."""
        with self._lock:
            idle = self._retire([name] if name in self._opened else [])
        for opened in idle:
            opened.close()

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
        for opened in idle:
            opened.close()

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
                allowed = opened.settings.memory.storage.max_open_orchestrators
                idle = self._retire(list(self._opened) if self._closed else self._excess(allowed))
        for retired in idle:
            retired.close()
        return opened

    def _opened_anew(self, name: str) -> OpenOrchestrator:
        try:
            opened = self._open_one(name)
        except (DatabaseBusy, DatabaseReplaced):
            # Another process has it locked; the file itself may be fine.
            raise
        except StorageError as error:
            self._troubles.met(name, error)
            raise
        self._troubles.over(name)
        return opened

    def _in_service(self, name: str) -> OpenOrchestrator | None:
        """Return the open orchestrator with one more user; None if it must be (re)opened."""
        opened = self._held(name)
        if opened is None or not self._was_replaced(opened):
            return opened
        # Another process restored the file, so this one is stale even if it was damaged.
        self._replace(name, opened)
        self._release(opened)
        return None

    def _replace(self, name: str, opened: OpenOrchestrator) -> None:
        """Retire an orchestrator so that the next use opens the current file."""
        with self._lock:
            if self._opened.get(name) is opened:
                self._retire([name])

    def _held(self, name: str) -> OpenOrchestrator | None:
        with self._lock:
            if self._closed:
                raise MemoryDisabled("the service was closed")
            opened = self._opened.get(name)
            if opened is not None:
                opened.users += 1
                self._opened.move_to_end(name)
            return opened

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

    def _excess(self, allowed: int) -> list[str]:
        """Return the idle names to close so that ``allowed`` remain, least recently used first.

        Orchestrators that are still embedding come last.
        """
        excess = len(self._opened) - allowed
        if excess <= 0:
            return []
        idle = [name for name, opened in self._opened.items() if not opened.users]
        chosen = list(
            islice((idle_name for idle_name in idle if not self._opened[idle_name].busy), excess)
        )
        if len(chosen) < excess:
            # A worker may have finished meanwhile, so a name could appear twice.
            chosen += [idle_name for idle_name in idle if idle_name not in chosen][
                : excess - len(chosen)
            ]
        return chosen

    def _was_replaced(self, opened: OpenOrchestrator) -> bool:
        try:
            opened.database.require_same_store()
        except DatabaseReplaced:
            return True
        except (DatabaseMissing, OSError):
            # The file was removed: it remains readable, and a write raises, unless the store moved.
            return self._is_elsewhere(opened)
        return False


class OpenFailures:
    """The current error of each orchestrator, kept until its file is opened without one.

    Args:
        log_of: returns the log of an orchestrator; each error is logged once.
    """

    def __init__(self, log_of: Callable[[str], EventLog]) -> None:
        self._log_of = log_of
        self._codes: dict[str, str] = {}
        self._lock = threading.Lock()
        self.changes = 0
        """The number of changes so far."""

    def code(self, name: str) -> str | None:
        """Return the code of the current error, or None."""
        return self._codes.get(name)

    def met(self, name: str, error: StorageError) -> None:
        """Record and log an error, unless it is already the current one."""
        if self._note(name, error.code):
            self._log_of(name).failure("database.unusable", error)

    def over(self, name: str) -> None:
        """Clear the error, after the file was opened."""
        self._note(name, None)

    def _note(self, name: str, code: str | None) -> bool:
        with self._lock:
            if self._codes.get(name) == code:
                return False
            if code is None:
                del self._codes[name]
            else:
                self._codes[name] = code
            self.changes += 1
            return True


POLL_S: Final = 0.25
"""The maximum delay, in seconds, before a write by another process is noticed."""

Listener = Callable[[Collection[str]], None]


_log = logging.getLogger(__name__)


class StoreWatch:
    """Polls database servers for changes, in its own thread. Thread-safe."""

    def __init__(self) -> None:
        self._servers: dict[str, Server] = {}
        self._listeners: list[Listener] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, url: str) -> None:
        """Start watching a server; an empty URL is ignored.

        Raises:
            StorageError: the server cannot be queried.
        """
        if not url or url in self._servers:
            return
        from memgraph.store.engine import server_of

        server = server_of(url)
        try:
            server.look()
        except BaseException:
            server.close()
            raise
        with self._lock:
            if url in self._servers or self._closing.is_set():
                server.close()
                return
            self._servers[url] = server
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="memgraph-watch", daemon=True
                )
                self._thread.start()

    def listen(self, listener: Listener) -> None:
        """Register a function that is called with the names of changed orchestrators."""
        self._listeners.append(listener)

    def ignore(self, listener: Listener) -> None:
        """Remove a registered function."""
        self._listeners.remove(listener)

    def names(self, url: str) -> list[str]:
        """Return the orchestrators of a server that the database user may read.

        Raises:
            StorageError: the server cannot be queried.
        """
        from memgraph.store.engine import server_of

        if watched := self._servers.get(url):
            return list(watched.stamps)
        server = server_of(url)
        try:
            server.look()
            return list(server.stamps)
        finally:
            server.close()

    def close(self) -> None:
        """Stop the thread and close the connections."""
        with self._lock:
            self._closing.set()
            thread = self._thread
        if thread is not None:
            thread.join()
        for server in self._servers.values():
            server.close()

    def _run(self) -> None:
        while not self._closing.wait(POLL_S):
            for server in list(self._servers.values()):
                try:
                    changed = server.look()
                except StorageError:
                    # Its users get the error; changes are noticed once it is back.
                    continue
                for listener in list(self._listeners) if changed else ():
                    try:
                        listener(changed)
                    except (MemgraphError, OSError):
                        # The next change is reported all the same.
                        _log.exception("a change by another process was not handled")
