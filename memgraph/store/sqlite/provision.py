"""Making, opening and upgrading the database of an orchestrator.

A new database is built beside its place and renamed into it, so that half of one is never seen.
A file that is damaged, foreign or empty is named as such and left untouched.
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
from memgraph.store import files, journal, metadata, postings, sqlite
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
    """Provision a new database.

    Raises:
        OrchestratorExists: something lies at ``path`` already, whatever it is.
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
    """Raise OrchestratorExists: something is in the place of a new database."""
    # A WAL without its database would be replayed into the new one.
    for file in (path, path.with_name(path.name + "-wal")):
        if os.path.lexists(file):
            raise OrchestratorExists(f"the database already exists: {file}", path=str(file))


def expected_schema() -> dict[str, str]:
    """Return the statement that makes each table, index and trigger, by ``type name``."""
    return dict(template(metadata.SCHEMA_HEAD).schema)


class _Template(NamedTuple):
    content: bytes
    schema: dict[str, str]


@cache
def template(revision: str) -> _Template:
    """Return the file of a database with all tables and no rows: migrated once per process."""
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
    """Open a database that ``create`` made, after checks.

    Raises:
        DatabaseMissing, DatabaseEmpty, DatabaseCorrupt: no file, no bytes, not a whole database.
        DatabaseForeign: another program's, or another orchestrator's.
        DatabaseReplaced: another file was put there meanwhile; try again.
        SchemaOutdated, SchemaTooNew: made by an older or a newer version of memgraph.
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
            # Else the connections to come would be to another file than this one.
            opened.require_same_store()
        except BaseException:
            connection.close()
            raise
        return opened


def reading_session(path: Path, orchestrator_id: str, *, busy_timeout_ms: int) -> Session:
    """Return a session that reads the whole database by the classes of ``memgraph.model.tables``.

    Each statement is a transaction by itself, so that an idle session holds no old state: the WAL
    could not be folded behind it, nor an erasure end. ``BEGIN`` makes one of several statements,
    until ``commit``, ``rollback`` or ``close``.

    Raises:
        StorageError: as ``open_database`` does.
    """
    # Making its classes takes 0.3 s.
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

    # Without a pool: a closed session leaves no connection open.
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
    """Bring the schema to head.

    Args:
        first: called when there is something to do, before it is done and while nobody writes.
        key: of a keyed journal.

    Raises:
        SchemaTooNew: made by a newer version of memgraph.
    """
    sqlite.require_suitable_sqlite()
    inspect_file(path)
    with provisioning_lock(path), sqlite.translated_errors(), _raw(path) as connection:
        check_identity(connection, path, orchestrator_id)
        before, written = _revision(connection), engine.last_entry(connection)
        if before < metadata.SCHEMA_HEAD:
            first()
        migrate(connection, key=key)
        sealed_at = engine.last_entry(connection, journal.UPGRADE)
        sealed_anew = sealed_at > written
        return SchemaUpgrade(before, _revision(connection), sealed_at if sealed_anew else None)


def migrate(connection: Any, *, key: bytes | None = None) -> None:
    """Run the migrations that are missing, in one transaction, on a driver connection; then index
    the texts anew that an earlier schema had no postings of.

    Raises:
        SchemaTooNew: made by a newer version of memgraph.
    """
    from memgraph.store import migrations as migrating

    if _revision(connection) < metadata.SCHEMA_HEAD:
        with writing(connection) as sa_connection:
            migrating.upgrade(sa_connection, ENGINE, "head", key=key)
        _fill_postings(connection)
    else:
        check_schema(connection)


def admit(path: Path, orchestrator_id: str | None, *, key: bytes | None) -> str:
    """Upgrade a copy that nobody else uses; return the name of its orchestrator.

    Args:
        orchestrator_id: whose it has to be; None: anybody's.

    Raises:
        StorageError: the subclass that says why not.
    """
    inspect_file(path)
    with sqlite.translated_errors(), _raw(path, busy_timeout_ms=5_000) as connection:
        owner = orchestrator_of(connection) if orchestrator_id is None else orchestrator_id
        check_identity(connection, path, owner or "")
        migrate(connection, key=key)
    return str(owner)


@contextmanager
def writing(connection: Any) -> Iterator[sa.Connection]:
    """Begin a write transaction on a driver connection."""
    engine = sqlite.engine_of(connection, "BEGIN IMMEDIATE")
    with engine.connect() as wrapped, wrapped.begin():
        yield wrapped


def _fill_postings(connection: Any) -> None:
    """Index the texts of a database at head, in many transactions.

    What is left when it is killed is merged as whatever is stored.
    """
    committed = True
    while committed:
        with writing(connection) as wrapped:
            transaction = Transaction(wrapped, ENGINE)
            draft = postings.due(transaction)
            committed = draft is not None and postings.commit(transaction, draft)


@contextmanager
def inspected(path: Path, *, busy_timeout_ms: int = 30_000) -> Iterator[Snapshot]:
    """Open a read-only snapshot on a connection of its own, damaged or not.

    Raises:
        StorageError: or the subclass that says what is wrong.
    """
    with sqlite.translated_errors():
        raw = sqlite.connect(path, busy_timeout_ms=busy_timeout_ms)
    try:
        with sqlite.translated_errors():
            engine.prepare(raw)
        with sqlite.translated_errors(), sqlite.engine_of(raw, "BEGIN").connect() as connection:
            # It ends by rolling back: on damaged pages even an empty COMMIT fails.
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
    """Check from the outside that a regular file contains a whole database.

    Raises:
        DatabaseMissing, DatabaseForeign, DatabaseEmpty, DatabaseCorrupt: what is wrong with it.
        StorageError: it may not be read, or the disk fails.
    """
    try:
        _inspect(path)
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "unknown")
        raise StorageError(f"{path} cannot be read ({name})", errno=name) from error


def _inspect(path: Path) -> None:
    if not path.exists():
        raise DatabaseMissing(
            f"no database at {path}; run: memgraph init, or name its server (memory.storage.url)",
            path=str(path),
        )
    if not path.is_file():
        raise DatabaseForeign(f"{path} is not a regular file", path=str(path))
    size = path.stat().st_size
    if size == 0:
        raise DatabaseEmpty(f"{path} is empty; restore a backup", path=str(path))
    with files.without_sqlite(path) as may_be_read:
        if not may_be_read:
            # This process has it open: SQLite reports damage itself.
            return
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise DatabaseCorrupt(f"{path} is not a SQLite database; restore a backup", path=str(path))
    page = int.from_bytes(header[16:18], "big")
    page = 65_536 if page == 1 else page
    pages = int.from_bytes(header[28:32], "big")
    wal = path.with_name(path.name + "-wal")
    # With frames in the WAL the header may run ahead of the file, and rightly so.
    if page * pages > size and not (wal.exists() and wal.stat().st_size):
        raise DatabaseCorrupt(f"{path} was cut short; restore a backup", path=str(path))


def check_identity(connection: Any, path: Path, orchestrator_id: str) -> None:
    """Raise DatabaseForeign: it is another program's database, or another orchestrator's."""
    if engine.application_id(connection) != APPLICATION_ID:
        raise DatabaseForeign(f"{path} belongs to another program", path=str(path))
    if orchestrator_of(connection) != orchestrator_id:
        raise DatabaseForeign(f"{path} belongs to another orchestrator", path=str(path))


def orchestrator_of(connection: Any) -> str | None:
    """Return the orchestrator of a database; None: unknown."""
    return engine.fact(connection, metadata.ORCHESTRATOR_KEY)


def check_schema(connection: Any) -> None:
    """Raise SchemaOutdated or SchemaTooNew: the schema does not fit this version of memgraph."""
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
    # Left by a process that died while provisioning; nothing was ever written to it by a user.
    for suffix in ("", "-wal", "-shm", "-journal"):
        draft.with_name(draft.name + suffix).unlink(missing_ok=True)
