"""Notices what other processes write on servers of databases.

A file shows by its times that it was written; of a schema only its server knows. One thread of a
service asks each of them four times a second: a statement that reads counters, and no table.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

from memgraph.errors import StorageError

if TYPE_CHECKING:
    from memgraph.store.engine import Server

POLL_S: Final = 0.25
"""Seconds after which a write by another process is noticed, at most."""

Listener = Callable[[Collection[str]], None]


class StoreWatch:
    """Asks the servers it was given for what changed, in a thread of its own. Thread-safe."""

    def __init__(self) -> None:
        self._servers: dict[str, Server] = {}
        self._listeners: list[Listener] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, url: str) -> None:
        """Watch a server, too; an empty URL is no server.

        Raises:
            StorageError: it cannot be asked.
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
        """Call a function with the names of orchestrators that were written; it returns at once."""
        self._listeners.append(listener)

    def ignore(self, listener: Listener) -> None:
        """Call a function no more."""
        self._listeners.remove(listener)

    def names(self, url: str) -> list[str]:
        """Return the orchestrators of a server that its user may read.

        Raises:
            StorageError: it cannot be asked.
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
        """End the thread and give the servers back."""
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
                    # Whoever uses it meets the error; what changed is noticed when it is back.
                    continue
                for listener in list(self._listeners) if changed else ():
                    listener(changed)
