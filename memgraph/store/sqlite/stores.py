"""A ``memgraph.store.engine.Store`` in an SQLite file.

A new database is built in a draft and then renamed, so that nobody ever sees an incomplete one.
A damaged, foreign or empty file is reported as such and left unchanged.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pysqlite3.dbapi2 as driver
import sqlalchemy as sa
from sqlalchemy.pool import NullPool
from sqlmodel import Session

from memgraph.errors import (
    DatabaseCorrupt,
    DatabaseEmpty,
    DatabaseForeign,
    DatabaseMissing,
    OrchestratorExists,
    StorageError,
)
from memgraph.paths import Stamp, stamp_of
from memgraph.store import metadata, sqlite
from memgraph.store.engine import Store
from memgraph.store.files import FileLock, draft_beside, publish
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.sqlite import copies, engine
from memgraph.store.sqlite.database import SqliteDatabase, file_identity
from memgraph.store.sqlite.engine import ENGINE

if TYPE_CHECKING:
    from memgraph.config.schema import StorageSettings


class SqliteStore:
    """The file of one orchestrator, or a draft of it.

    Args:
        path: the path of the file; its WAL and its lock file are in the same folder.
    """

    engine = ENGINE

    def __init__(self, path: Path, orchestrator_id: str) -> None:
        self.path = path
        self.orchestrator_id = orchestrator_id

    def files(self) -> tuple[Path, ...]:
        side_files = (
            self.path.with_name(f"{self.path.name}{suffix}") for suffix in ("-wal", "-shm")
        )
        return self.path, *side_files

    def stamp(self) -> Stamp | None:
        return stamp_of(self.path, self.path.with_name(f"{self.path.name}-wal"))

    def exists(self) -> bool:
        return os.path.lexists(self.path)

    def require_free(self) -> None:
        # A WAL without its database would be replayed into the new one.
        for file in (self.path, self.path.with_name(self.path.name + "-wal")):
            if os.path.lexists(file):
                raise OrchestratorExists(f"the database already exists: {file}", path=str(file))

    def create(self, *, dimensions: int, now_ms: int) -> None:
        sqlite.require_suitable_sqlite()
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)

        def copy(draft: Path) -> None:
            draft.write_bytes(engine.template(metadata.SCHEMA_HEAD).content)
            copies.use_wal(draft)

        def stamp(transaction: Transaction) -> None:
            metadata.begin(transaction, self.orchestrator_id, dimensions, now_ms)

        with self.locked():
            self.require_free()
            for left in self.path.parent.glob(f".{self.path.name}-*.draft"):
                left.unlink(missing_ok=True)  # by a process that was killed here
            copied(copy, self.path, force=False, stamp=stamp, check=None)

    def open(self, settings: StorageSettings) -> SqliteDatabase:
        sqlite.require_suitable_sqlite()
        require_file(self.path)
        identity = file_identity(self.path)
        opened = SqliteDatabase(self, settings, identity)
        try:
            with opened.read() as snapshot:
                self._check(snapshot.driver)
            # Otherwise later connections would be to another file than this connection.
            opened.require_same_store()
        except BaseException:
            opened.close()
            raise
        return opened

    def session(self, settings: StorageSettings) -> Session:
        """Return a read-only session; see ``engine.Store``.

        ``BEGIN`` combines several statements in one transaction, until ``commit``, ``rollback`` or
        ``close``.
        """
        sqlite.require_suitable_sqlite()
        require_file(self.path)

        def connect() -> Any:
            connection = sqlite.connect(
                self.path, busy_timeout_ms=settings.busy_timeout_ms, read_only=True
            )
            try:
                self._check(connection)
            except BaseException:
                connection.close()
                raise
            return connection

        # Without a pool, closing the session closes its connection.
        pooled = sa.create_engine(
            "sqlite+pysqlite://", module=driver, creator=connect, poolclass=NullPool
        )
        session = Session(pooled)
        with sqlite.translated_errors():
            session.connection()
        return session

    @contextmanager
    def locked(self) -> Iterator[Callable[[], None]]:
        with FileLock(self.path.with_name("memory.lock")).held():
            # A file lock cannot be lost while the process that holds it lives.
            yield lambda: None

    def inspect(self) -> AbstractContextManager[Snapshot]:
        # SQLite removes the WAL of an empty file, even if it may only read.
        require_file(self.path)
        return engine.inspected(self.path)

    def alone(self) -> AbstractContextManager[Transaction]:
        return engine.alone(self.path)

    def back_up(
        self,
        file: Path,
        *,
        force: bool = False,
        stamp: Callable[[Transaction], None] | None = None,
        check: Callable[[Snapshot], None] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> int:
        return copied(
            lambda draft: copies.copy_online(self.path, draft, progress),
            file,
            force=force,
            stamp=stamp,
            check=check,
        )

    @contextmanager
    def draft(self, folder: Path) -> Iterator[Store]:
        # No orchestrator's name begins with a dot.
        with TemporaryDirectory(prefix=".draft-", dir=folder) as directory:
            yield SqliteStore(Path(directory) / self.path.name, self.orchestrator_id)

    def take(self, file: Path) -> str:
        file = file.resolve()
        if file.with_name(f"{file.name}-wal").exists():
            raise DatabaseForeign(
                f"{file} has a WAL, so it is a database in use, not a backup; run: memgraph backup",
                path=str(file),
            )
        copies.copy_file(file, self.path)
        with self.path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def admit(self) -> str:
        with self.inspect() as snapshot:
            return _owner(snapshot.driver, self.path)

    def publish(
        self, draft: Store, *, aside: Path | None = None, files: Sequence[str] = ()
    ) -> str | None:
        assert isinstance(draft, SqliteStore)
        copies.use_wal(draft.path)
        moved = [] if aside is None else copies.move_aside(self.path, aside, files)
        publish(draft.path, self.path, force=False)
        return str(aside) if moved else None

    def put_aside(self, folder: Path) -> str | None:
        return str(folder) if copies.move_aside(self.path, folder) else None

    def _check(self, connection: Any) -> None:
        """Raise StorageError unless the database is this orchestrator's and at head."""
        if _owner(connection, self.path) != self.orchestrator_id:
            raise DatabaseForeign(
                f"{self.path} belongs to another orchestrator", path=str(self.path)
            )


def require_file(path: Path) -> None:
    """Raise an error unless a path is a regular file that is not empty.

    Raises:
        DatabaseMissing, DatabaseForeign, DatabaseEmpty: it is not.
        StorageError: it may not be looked at.
    """
    try:
        if not path.exists():
            raise DatabaseMissing(
                f"no database at {path}; run: memgraph init, or set its server"
                " (memory.storage.url)",
                path=str(path),
            )
        if not path.is_file():
            raise DatabaseForeign(f"{path} is not a regular file", path=str(path))
        if path.stat().st_size == 0:
            raise DatabaseEmpty(f"{path} is empty; restore a backup", path=str(path))
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "unknown")
        raise StorageError(f"{path} cannot be read ({name})", errno=name) from error


def _owner(connection: Any, path: Path) -> str:
    """Return the orchestrator of a database, after checking that it is one of ours and at head."""

    def value(statement: str, *values: Any) -> Any:
        row = connection.execute(statement, values).fetchone()
        return row[0] if row else None

    if value("PRAGMA application_id") != engine.APPLICATION_ID:
        raise DatabaseForeign(f"{path} belongs to another program", path=str(path))
    facts = "SELECT value FROM memory_metadata WHERE key = ?"
    try:
        owner = value(facts, metadata.ORCHESTRATOR_KEY)
        metadata.require_head(value("SELECT version_num FROM alembic_version") or "")
    except driver.OperationalError as error:
        if getattr(error, "sqlite_errorname", "") != "SQLITE_ERROR":
            raise
        raise DatabaseCorrupt("tables are missing in the database; restore a backup") from error
    return owner or ""


def copied(
    copy: Callable[[Path], None],
    file: Path,
    *,
    force: bool,
    stamp: Callable[[Transaction], None] | None,
    check: Callable[[Snapshot], None] | None,
) -> int:
    """Make a database file, filled by ``copy``, and return its size; see ``Store.back_up``."""
    with draft_beside(file) as draft:
        try:
            copy(draft)
            if stamp is not None:
                with engine.alone(draft) as transaction:
                    stamp(transaction)
            if check is not None:
                with engine.inspected(draft) as snapshot:
                    check(snapshot)
            size = draft.stat().st_size
            publish(draft, file, force=force)
        finally:
            copies.remove_side_files(draft)
    return size
