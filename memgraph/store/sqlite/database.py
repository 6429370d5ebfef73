"""An open database, with concurrent readers and one writer at a time.

Writers take a lock of this process, then a lock file shared with other processes, then run
``BEGIN IMMEDIATE``. Waiting in a queue before SQLite's own lock halves the worst wait, and SQLite
does not let a transaction that began as a reader wait for the lock. Each reader has its own
connection and sees one snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from memgraph.errors import DatabaseMissing, DatabaseReplaced
from memgraph.paths import naming_full_disk
from memgraph.store import sqlite
from memgraph.store.engine import Database, wait_s
from memgraph.store.files import FileLock, held_by_thread
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.sqlite import engine
from memgraph.store.sqlite.engine import ENGINE

if TYPE_CHECKING:
    from memgraph.config.schema import StorageSettings
    from memgraph.store.sqlite.stores import SqliteStore

# A message writes about ten pages to the WAL.
COMMITS_BETWEEN_FOLDS = 800
READERS = 4
MORE_READERS = 12


def file_identity(path: Path) -> tuple[int, int]:
    """Return the device and the inode of a file. Raise DatabaseMissing if it does not exist."""
    try:
        status = path.stat()
    except FileNotFoundError:
        raise DatabaseMissing(f"no database at {path}; restore a backup") from None
    return status.st_dev, status.st_ino


class SqliteDatabase(Database):
    """The open database of one orchestrator; made by ``SqliteStore.open``.

    Args:
        identity: the file's identity from before the first connection.
    """

    def __init__(
        self, store: SqliteStore, settings: StorageSettings, identity: tuple[int, int]
    ) -> None:
        super().__init__(store, settings)
        self.path = path = store.path
        busy_timeout_ms, synchronous = settings.busy_timeout_ms, settings.synchronous

        def connect() -> Any:
            return sqlite.connect(path, busy_timeout_ms=busy_timeout_ms, synchronous=synchronous)

        shared: dict[str, Any] = {}

        def connect_reader() -> Any:
            reader = connect()
            reader.shared = shared
            return reader

        self._connect = connect
        self._reader = sqlite.engine_of(
            connect_reader, "BEGIN", pool_size=READERS, max_overflow=MORE_READERS
        )
        self._file_lock = FileLock(path.with_name("memory.lock"))
        self._synchronous = synchronous
        self._identity = identity

    @cached_property
    def _writer(self) -> sa.Engine:
        # Created under the lock by the first write; a reader never needs it.
        def connect() -> Any:
            connection = self._connect()
            engine.watch(connection)
            return connection

        return sqlite.engine_of(connect, "BEGIN IMMEDIATE")

    @contextmanager
    def read(self) -> Iterator[Snapshot]:
        self._require_open()
        with sqlite.translated_errors(), self._reader.connect() as connection, connection.begin():
            yield Snapshot(connection, ENGINE)

    @contextmanager
    def write(
        self,
        after_commit: Callable[[], None] | None = None,
        *,
        durable: bool = True,
    ) -> Iterator[Transaction]:
        self._require_open()
        with (
            self._noting_full(),
            naming_full_disk(self.path.parent),
            held_by_thread(self._lock, wait_s(self._busy_timeout_ms)) as left_s,
            self._file_lock.held(left_s),
            sqlite.translated_errors(),
            self._writer.connect() as connection,
        ):
            self.require_same_store()
            with (
                self._waiting_for_disk(connection, durable),
                connection.begin(),
                self._sealed(Transaction(connection, ENGINE)) as transaction,
            ):
                yield transaction
            self._committed(after_commit)

    @contextmanager
    def _waiting_for_disk(self, connection: sa.Connection, durable: bool) -> Iterator[None]:
        """Set whether commits in the block wait for the disk."""
        driver: Any = connection.connection.driver_connection
        if durable:
            yield
            return
        try:
            driver.execute("PRAGMA synchronous = NORMAL")
            yield
        finally:
            driver.execute(f"PRAGMA synchronous = {self._synchronous}")

    @contextmanager
    def exclusive(self) -> Iterator[Any]:
        """Yield a driver connection outside any transaction, while nobody else can write."""
        self._require_open()
        with (
            held_by_thread(self._lock, wait_s(self._busy_timeout_ms)) as left_s,
            self._file_lock.held(left_s),
            sqlite.translated_errors(),
            self._writer.connect() as connection,
        ):
            self.require_same_store()
            raw = connection.connection.driver_connection
            try:
                yield raw
            finally:
                # Setting ``temp_store`` drops the temporary triggers.
                engine.watch(raw)

    def fold(self, *, after: int | None = None) -> None:
        """Checkpoint the WAL if there were enough commits since the last time.

        Readers and a writer can continue meanwhile.

        Raises:
            StorageError: the disk failed.
        """
        # The size of the WAL is no measure, because a checkpoint does not shrink the file.
        if not self._is_fold_due(COMMITS_BETWEEN_FOLDS if after is None else after):
            return
        with sqlite.translated_errors(), self._reader.connect() as connection:
            driver: Any = connection.connection.driver_connection
            driver.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def cut(self, *, wait_ms: int) -> bool:
        with self.exclusive() as raw:
            [(usual_ms,)] = raw.execute("PRAGMA busy_timeout").fetchall()
            raw.execute(f"PRAGMA busy_timeout = {wait_ms}")
            try:
                busy, _, _ = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                raw.execute(f"PRAGMA busy_timeout = {usual_ms}")
            return not busy

    def rewrite(self) -> None:
        with self.exclusive() as raw:
            # VACUUM keeps the rowids of tables with an index or an INTEGER PRIMARY KEY. Every table
            # whose rowids are used has one.
            try:
                raw.execute("PRAGMA temp_store = FILE")
                raw.execute("VACUUM")
            finally:
                raw.execute("PRAGMA temp_store = MEMORY")

    def sizes(self) -> dict[str, int]:
        files = (self.path, self.path.with_name(self.path.name + "-wal"))
        return {file.name: file.stat().st_size for file in files if file.exists()}

    def close(self) -> None:
        """Close every connection. Closing the last one checkpoints the WAL."""
        self._closed = True
        self._reader.pool.dispose()
        if "_writer" in self.__dict__:
            self._writer.pool.dispose()

    def require_same_store(self) -> None:
        """Raise DatabaseMissing or DatabaseReplaced if the opened file is gone or replaced."""
        # Commits to a renamed or removed file would be lost.
        if file_identity(self.path) != self._identity:
            raise DatabaseReplaced(
                f"{self.path} is not the file that was opened; close the orchestrator and reopen it"
            )
