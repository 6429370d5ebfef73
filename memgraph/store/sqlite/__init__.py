"""The SQLite driver: connect to a database, and translate the driver's errors.

pysqlite3 bundles its own SQLite, with FTS5 and loadable extensions, so that neither the
interpreter's build nor the system's version matters.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pysqlite3.dbapi2 as sqlite
import sqlalchemy as sa
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.exc import DBAPIError, TimeoutError as PoolTimeoutError
from sqlalchemy.pool import QueuePool
from sqlalchemy.util import LRUCache

from memgraph.errors import (
    Conflict,
    DatabaseBusy,
    DatabaseCorrupt,
    DatabaseFull,
    DatabaseMissing,
    InvalidInput,
    SqliteUnsuitable,
    StorageError,
)

# Before 3.51.3 a WAL reset that met a checkpoint could corrupt the database.
MINIMUM_VERSION = (3, 51, 3)
CACHE_KIB = 16_384
COMPILED_STATEMENTS = 1_000
# The number of WAL pages (64 MB) at which a commit itself runs a checkpoint, unless the background
# was faster. With SQLite's default of 1,000, two writes in a hundred pay for a checkpoint, and a
# bulk load rewrites the same pages after every commit.
MOST_WAL_PAGES = 16_000

_BY_PRIMARY_CODE: dict[int, tuple[type[StorageError], str]] = {
    sqlite.SQLITE_BUSY: (DatabaseBusy, "another process holds the database; try again"),
    sqlite.SQLITE_LOCKED: (DatabaseBusy, "the database is locked; try again"),
    sqlite.SQLITE_FULL: (DatabaseFull, "the disk is full; nothing was written"),
    sqlite.SQLITE_IOERR: (StorageError, "the disk failed to read or write; nothing was written"),
    sqlite.SQLITE_CORRUPT: (
        DatabaseCorrupt,
        "the database is damaged; memgraph verify lists what can be read, memgraph restore takes a"
        " backup",
    ),
    sqlite.SQLITE_NOTADB: (DatabaseCorrupt, "the file is not a database; restore a backup"),
    sqlite.SQLITE_CANTOPEN: (DatabaseMissing, "the database cannot be opened"),
    sqlite.SQLITE_READONLY: (StorageError, "the database is read-only"),
}
_BY_TEXT: dict[str, int] = {
    "database or disk is full": sqlite.SQLITE_FULL,
    "disk I/O error": sqlite.SQLITE_IOERR,
}


def require_suitable_sqlite(version: tuple[int, ...] = sqlite.sqlite_version_info) -> None:
    """Raise SqliteUnsuitable if the SQLite in use has the WAL-reset corruption bug."""
    if version < MINIMUM_VERSION:
        number = ".".join(map(str, version))
        raise SqliteUnsuitable(
            f"SQLite {number} can corrupt a database in WAL mode; install pysqlite3 with 3.51.3"
            " or newer (and uninstall pysqlite3-binary)",
            version=number,
        )


class Connection(sqlite.Connection):  # type: ignore[misc]  # the driver has no types
    """A connection that may be one of several readers of a database.

    Attributes:
        shared: data shared by the readers of a database, by index; None: the connection may write.
    """

    shared: dict[str, Any] | None = None

    def pages(self, statement: str, values: Any, size: int) -> Iterator[list[Any]]:
        """Yield the rows of a statement in lists of at most ``size``."""
        cursor = self.execute(statement, values)
        while rows := cursor.fetchmany(size):
            yield rows


@cache
def _vector_extension() -> str:
    """Return the path of sqlite-vec's library without importing it, which would load numpy."""
    spec = find_spec("sqlite_vec")
    if spec is None or spec.origin is None:
        raise SqliteUnsuitable("sqlite-vec is not installed; reinstall memgraph", version="none")
    return str(Path(spec.origin).with_name("vec0"))


def connect(
    path: Path,
    *,
    busy_timeout_ms: int,
    synchronous: str = "FULL",
    create: bool = False,
    read_only: bool = False,
) -> Any:
    """Open a driver connection without implicit transactions, with sqlite-vec loaded.

    Without ``create`` a missing file is an error, where SQLite would make an empty database. Unless
    the connection is ``read_only``, a rollback journal next to a database in WAL mode is renamed to
    ``…-journal.foreign``.
    """
    if not read_only:
        _set_foreign_journal_aside(path)
    mode = "ro" if read_only else "rwc" if create else "rw"
    connection = sqlite.connect(
        f"file:{quote(str(path))}?mode={mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=busy_timeout_ms / 1000,
        cached_statements=256,
        factory=Connection,
    )
    try:
        connection.enable_load_extension(True)
        connection.load_extension(_vector_extension())
        connection.enable_load_extension(False)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        # Overwrite deleted data with zeros in pages that are written anyway.
        connection.execute("PRAGMA secure_delete = FAST")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(f"PRAGMA wal_autocheckpoint = {MOST_WAL_PAGES}")
        if read_only:
            connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _set_foreign_journal_aside(path: Path) -> None:
    """Rename a rollback journal next to a database in WAL mode, so that SQLite does not replay it.

    It cannot belong to the database, and its page count would truncate the file.
    """
    foreign = path.with_name(f"{path.name}-journal")
    try:
        if not foreign.stat().st_size:
            return
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        # The file format versions: https://sqlite.org/fileformat.html, 1.3.3.
        versions = os.pread(handle, 2, 18)
    except OSError:
        return
    if versions != b"\x02\x02":
        os.close(handle)
    else:
        # The handle stays open: closing it would drop the locks of this process on the file.
        # Another connection may have done so meanwhile.
        with suppress(FileNotFoundError):
            foreign.replace(foreign.with_name(f"{foreign.name}.foreign"))


class _BeginDialect(SQLiteDialect_pysqlite):
    """SQLite's dialect for connections without implicit transactions; it begins them itself."""

    supports_statement_cache = True

    def __init__(self, begin: str) -> None:
        super().__init__(dbapi=sqlite)
        self._begin = begin

    def do_begin(self, dbapi_connection: Any) -> None:
        dbapi_connection.execute(self._begin)


@cache
def _dialect(begin: str) -> _BeginDialect:
    dialect = _BeginDialect(begin)
    # The properties that a dialect reads from a connection are the same for all databases.
    engine = sa.create_engine("sqlite+pysqlite://", module=sqlite)
    with engine.connect() as connection:
        dialect.initialize(connection)
    engine.dispose()
    return dialect


# Shared by all databases, whose tables are equal.
_COMPILED: Final[LRUCache[Any, Any]] = LRUCache(COMPILED_STATEMENTS)


def engine_of(
    connect: Callable[[], Any], begin: str, *, pool_size: int = 1, max_overflow: int = 0
) -> sa.Engine:
    """Return an SQLAlchemy engine with a pool of driver connections.

    Args:
        begin: the statement that begins a transaction.
    """
    # ``create_engine`` would take a millisecond each time.
    dialect = _dialect(begin)
    return sa.Engine(
        QueuePool(
            connect, dialect=dialect, pool_size=pool_size, max_overflow=max_overflow, timeout=60
        ),
        dialect,
        sa.URL.create("sqlite+pysqlite"),
        query_cache_size=0,
        execution_options={"compiled_cache": _COMPILED},
    )


def translate(error: Exception) -> Exception:
    """Return memgraph's error for a driver's, without its message, which may contain data."""
    if isinstance(error, PoolTimeoutError):
        return DatabaseBusy("too many readers at once; try again")
    cause = error.orig if isinstance(error, DBAPIError) else error
    code = getattr(cause, "sqlite_errorcode", None)
    name = getattr(cause, "sqlite_errorname", type(cause).__name__)
    if isinstance(cause, sqlite.IntegrityError):
        # The driver does not enable SQLite's extended codes; SQLite's message is stable.
        kind_of, _, constraint = str(cause).rpartition(": ")
        if kind_of.startswith("UNIQUE"):
            return Conflict(f"it already exists: {constraint}", constraint=constraint)
        return InvalidInput(f"the database rejected it: {constraint}", constraint=constraint)
    if isinstance(cause, OverflowError):
        return InvalidInput("a number is too large to store")
    if isinstance(cause, UnicodeEncodeError):
        return InvalidInput("a text contains a lone surrogate")
    if isinstance(cause, UnicodeDecodeError) or str(cause).startswith("Could not decode to UTF-8"):
        return DatabaseCorrupt("the database contains invalid text; restore a backup")
    if code is None:
        # The driver's error for a failed backup has no code, only SQLite's message.
        code = _BY_TEXT.get(str(cause))
    if code is not None and (rule := _BY_PRIMARY_CODE.get(code & 0xFF)):
        kind, message = rule
        return kind(f"{message} ({name})", sqlite=name)
    # Our statements fit our schema, so the schema is probably damaged.
    return StorageError(f"the database failed ({name}); verify it or restore a backup", sqlite=name)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Translate the driver's errors in the block to errors of ``memgraph.errors``."""
    try:
        yield
    # Binding an integer beyond 64 bits or a lone surrogate raises Python's errors. So does reading
    # a damaged text, including SQLite's message about a damaged schema.
    except (
        DBAPIError,
        PoolTimeoutError,
        sqlite.Error,
        OverflowError,
        UnicodeError,
    ) as error:
        raise translate(error) from error
