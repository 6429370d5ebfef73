"""Create, open and upgrade the database of an orchestrator.

A new database is built in a draft and then renamed, so that nobody ever sees an incomplete one.
A damaged, foreign or empty file is reported as such and left unchanged.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pysqlite3.dbapi2 as driver
import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from memgraph.errors import (
    DatabaseCorrupt,
    DatabaseEmpty,
    DatabaseForeign,
    DatabaseMissing,
    OrchestratorExists,
    StorageError,
)
from memgraph.store import files, journal, metadata, sqlite
from memgraph.store.engine import SchemaUpgrade
from memgraph.store.files import FileLock, fsync
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.sqlite import copies, engine
from memgraph.store.sqlite.database import SqliteDatabase, file_identity
from memgraph.store.sqlite.engine import ENGINE

if TYPE_CHECKING:
    from sqlmodel import Session

APPLICATION_ID = 0x4D474D47  # "MGMG"
_HEADER_BYTES = 100
_MAGIC = b"SQLite format 3\x00"


def create(path: Path, orchestrator_id: str, *, dimensions: int, now_ms: int) -> None:
    """Create a new database.

    Raises:
        OrchestratorExists: anything already exists at ``path``.
    """
    sqlite.require_suitable_sqlite()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with provisioning_lock(path):
        require_free(path)
        draft = path.with_name(path.name + ".new")
        _remove_draft(draft)
        draft.write_bytes(template(metadata.SCHEMA_HEAD).content)
        with alone(draft) as transaction:
            metadata.put(transaction, metadata.ORCHESTRATOR_KEY, orchestrator_id)
            metadata.put(transaction, "created_at", str(now_ms))
            metadata.put(transaction, "embedding_dimensions", str(dimensions))
        copies.use_wal(draft)
        fsync(draft)
        draft.chmod(0o600)
        draft.rename(path)
        fsync(path.parent)


def require_free(path: Path) -> None:
    """Raise OrchestratorExists if anything exists at the path of a new database."""
    # A WAL without its database would be replayed into the new one.
    for file in (path, path.with_name(path.name + "-wal")):
        if os.path.lexists(file):
            raise OrchestratorExists(f"the database already exists: {file}", path=str(file))


def expected_schema() -> dict[str, str]:
    """Return the statement that creates each table, index and trigger, by ``type name``."""
    return dict(template(metadata.SCHEMA_HEAD).schema)


class _Template(NamedTuple):
    content: bytes
    schema: dict[str, str]


@cache
def template(revision: str) -> _Template:
    """Return the content of a database with all tables and no rows, built once per process."""
    from memgraph.store import migrations as migrating

    with tempfile.TemporaryDirectory(prefix="memgraph-") as folder:
        path = Path(folder) / "template.db"
        with _raw(path, create=True) as connection:
            engine.begin(connection, APPLICATION_ID)
            with writing(connection) as wrapped:
                migrating.upgrade(wrapped, ENGINE, revision)
        with inspected(path) as snapshot:
            schema = engine.schema(snapshot)
        return _Template(path.read_bytes(), schema)


def open_database(
    path: Path, orchestrator_id: str, *, synchronous: str, busy_timeout_ms: int
) -> SqliteDatabase:
    """Open a database that ``create`` made, after checking it.

    Raises:
        DatabaseMissing, DatabaseEmpty, DatabaseCorrupt: the file is missing, empty or damaged.
        DatabaseForeign: it belongs to another program or another orchestrator.
        DatabaseReplaced: the file was replaced meanwhile; try again.
        SchemaOutdated, SchemaUnknown: another version of memgraph made it.
    """
    sqlite.require_suitable_sqlite()
    inspect_file(path)
    identity = file_identity(path)
    with sqlite.translated_errors():
        connection = sqlite.connect(path, busy_timeout_ms=busy_timeout_ms, synchronous=synchronous)
        try:
            check_identity(connection, path, orchestrator_id)
            check_schema(connection)
            opened = SqliteDatabase(
                path,
                orchestrator_id,
                synchronous=synchronous,
                busy_timeout_ms=busy_timeout_ms,
                connected=connection,
                identity=identity,
            )
            # Otherwise later connections would be to another file than this connection.
            opened.require_same_store()
        except BaseException:
            connection.close()
            raise
        return opened


def reading_session(path: Path, orchestrator_id: str, *, busy_timeout_ms: int) -> Session:
    """Return a session that reads the whole database by the classes of ``memgraph.model.tables``.

    Each statement is a separate transaction: an idle session that kept an old snapshot would block
    checkpoints and erasures. ``BEGIN`` combines several statements in one transaction, until
    ``commit``, ``rollback`` or ``close``.

    Raises:
        StorageError: as for ``open_database``.
    """
    # Importing sqlmodel takes 0.3 s.
    from sqlmodel import Session

    sqlite.require_suitable_sqlite()
    inspect_file(path)

    def connect() -> Any:
        connection = sqlite.connect(path, busy_timeout_ms=busy_timeout_ms, read_only=True)
        try:
            check_identity(connection, path, orchestrator_id)
            check_schema(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    # Without a pool, closing the session closes its connection.
    session = Session(
        sa.create_engine("sqlite+pysqlite://", module=driver, creator=connect, poolclass=NullPool)
    )
    with sqlite.translated_errors():
        session.connection()
    return session


def upgrade(
    path: Path,
    orchestrator_id: str,
    *,
    first: Callable[[], None] = lambda: None,
    key: bytes | None = None,
) -> SchemaUpgrade:
    """Upgrade the schema to the latest revision.

    Args:
        first: called before an upgrade, while nobody can write; not called if there is nothing to
            do.
        key: the key of a keyed journal.

    Raises:
        SchemaUnknown: this version of memgraph does not know its schema.
    """
    sqlite.require_suitable_sqlite()
    inspect_file(path)
    with provisioning_lock(path), sqlite.translated_errors(), _raw(path) as connection:
        check_identity(connection, path, orchestrator_id)
        before, last_before = _revision(connection), engine.last_entry(connection)
        if metadata.is_outdated(before):
            first()
        migrate(connection, key=key)
        sealed_at = engine.last_entry(connection, journal.UPGRADE)
        is_resealed = sealed_at > last_before
        return SchemaUpgrade(before, _revision(connection), sealed_at if is_resealed else None)


def migrate(connection: Any, *, key: bytes | None = None) -> None:
    """Run the missing migrations on a driver connection, in one transaction.

    Raises:
        SchemaUnknown: this version of memgraph does not know its schema.
    """
    from memgraph.store import migrations as migrating

    if metadata.is_outdated(_revision(connection)):
        with writing(connection) as sa_connection:
            migrating.upgrade(sa_connection, ENGINE, "head", key=key)


def admit(path: Path, orchestrator_id: str | None, *, key: bytes | None) -> str:
    """Check and upgrade a copy that nobody else uses, and return the id of its orchestrator.

    Args:
        orchestrator_id: the orchestrator it must belong to; None: any.

    Raises:
        StorageError: or the subclass for the specific problem.
    """
    inspect_file(path)
    with sqlite.translated_errors(), _raw(path, busy_timeout_ms=5_000) as connection:
        owner = orchestrator_of(connection) if orchestrator_id is None else orchestrator_id
        check_identity(connection, path, owner or "")
        migrate(connection, key=key)
    return str(owner)


@contextmanager
def writing(connection: Any) -> Iterator[sa.Connection]:
    """Open a write transaction on a driver connection."""
    engine = sqlite.engine_of(connection, "BEGIN IMMEDIATE")
    with engine.connect() as wrapped, wrapped.begin():
        yield wrapped


@contextmanager
def inspected(path: Path, *, busy_timeout_ms: int = 30_000) -> Iterator[Snapshot]:
    """Open a read-only snapshot on its own connection, even if the database is damaged.

    Raises:
        StorageError: or the subclass for the specific problem.
    """
    with sqlite.translated_errors():
        raw = sqlite.connect(path, busy_timeout_ms=busy_timeout_ms)
    try:
        with sqlite.translated_errors():
            engine.prepare(raw)
        with sqlite.translated_errors(), sqlite.engine_of(raw, "BEGIN").connect() as connection:
            # The transaction is rolled back, because damaged pages make even an empty COMMIT fail.
            connection.begin()
            yield Snapshot(connection, ENGINE)
    finally:
        raw.close()


@contextmanager
def alone(path: Path) -> Iterator[Transaction]:
    """Open a write transaction on a file that nobody else uses."""
    with sqlite.translated_errors():
        raw = sqlite.connect(path, busy_timeout_ms=5_000)
        try:
            with writing(raw) as connection:
                yield Transaction(connection, ENGINE)
        finally:
            raw.close()


def inspect_file(path: Path) -> None:
    """Check that a path is a regular file with a complete database, without opening it in SQLite.

    Raises:
        DatabaseMissing, DatabaseForeign, DatabaseEmpty, DatabaseCorrupt: it is not.
        StorageError: reading it is not permitted, or the disk failed.
    """
    try:
        _inspect(path)
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "unknown")
        raise StorageError(f"{path} cannot be read ({name})", errno=name) from error


def _inspect(path: Path) -> None:
    if not path.exists():
        raise DatabaseMissing(
            f"no database at {path}; run: memgraph init, or set its server (memory.storage.url)",
            path=str(path),
        )
    if not path.is_file():
        raise DatabaseForeign(f"{path} is not a regular file", path=str(path))
    size = path.stat().st_size
    if size == 0:
        raise DatabaseEmpty(f"{path} is empty; restore a backup", path=str(path))
    with files.without_sqlite(path) as may_be_read:
        if not may_be_read:
            # This process has it open, so SQLite will report any damage.
            return
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise DatabaseCorrupt(f"{path} is not a SQLite database; restore a backup", path=str(path))
    page = int.from_bytes(header[16:18], "big")
    page = 65_536 if page == 1 else page
    pages = int.from_bytes(header[28:32], "big")
    wal = path.with_name(path.name + "-wal")
    # With frames in the WAL, the header may legitimately count more pages than the file has.
    if page * pages > size and not (wal.exists() and wal.stat().st_size):
        raise DatabaseCorrupt(f"{path} was truncated; restore a backup", path=str(path))


def check_identity(connection: Any, path: Path, orchestrator_id: str) -> None:
    """Raise DatabaseForeign if the database belongs to another program or orchestrator."""
    if engine.application_id(connection) != APPLICATION_ID:
        raise DatabaseForeign(f"{path} belongs to another program", path=str(path))
    if orchestrator_of(connection) != orchestrator_id:
        raise DatabaseForeign(f"{path} belongs to another orchestrator", path=str(path))


def orchestrator_of(connection: Any) -> str | None:
    """Return the id of a database's orchestrator, or None if it has none."""
    return engine.fact(connection, metadata.ORCHESTRATOR_KEY)


def check_schema(connection: Any) -> None:
    """Raise SchemaOutdated or SchemaUnknown if the schema is not that of this version."""
    metadata.require_head(_revision(connection))


@contextmanager
def provisioning_lock(path: Path) -> Iterator[None]:
    """Hold the lock that creating, upgrading, restoring and writing share."""
    with FileLock(path.with_name("memory.lock")).held():
        yield


@contextmanager
def _raw(path: Path, *, busy_timeout_ms: int = 30_000, create: bool = False) -> Iterator[Any]:
    connection = sqlite.connect(path, busy_timeout_ms=busy_timeout_ms, create=create)
    try:
        yield connection
    finally:
        connection.close()


def _revision(connection: Any) -> str:
    return engine.revision(connection) or ""


def _remove_draft(draft: Path) -> None:
    # A process that died while creating the database left it; it contains no user's data.
    for suffix in ("", "-wal", "-shm", "-journal"):
        draft.with_name(draft.name + suffix).unlink(missing_ok=True)
