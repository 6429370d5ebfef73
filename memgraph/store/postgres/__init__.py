"""The PostgreSQL driver: connect to a server, and translate the driver's errors.

psycopg is an extra. Nothing outside of this package imports it, or SQLAlchemy's dialect for it.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError, TimeoutError as PoolTimeoutError

from memgraph.errors import (
    Conflict,
    DatabaseBusy,
    DatabaseCorrupt,
    DatabaseFull,
    DatabaseUnreachable,
    ExtraMissing,
    InvalidConfig,
    InvalidInput,
    OutcomeUnknown,
    StorageError,
)
from memgraph.store.files import process_name

try:
    import psycopg
    from psycopg.adapt import Loader
    from psycopg.types.numeric import Int8Dumper
    from psycopg.types.string import TextLoader
except ModuleNotFoundError:
    raise ExtraMissing.of("PostgreSQL needs psycopg", extra="postgres") from None

MOST_NAME_BYTES: Final = 63
MINIMUM_VERSION: Final = 160_000
CONNECT_TIMEOUT_S: Final = 10
PREPARED_FROM: Final = 2
PREPARE_THRESHOLD: Final = "prepare_threshold"
"""A parameter of the URL; ``none`` if a connection pooler does not support prepared statements."""
MOST_PREPARED: Final = 1_000
PREFIX: Final = "memgraph_"
APPLICATION: Final = "memgraph "
"""The beginning of the name of each connection; its process follows."""

_CONSTRAINTS: Final = frozenset({"23503", "23514", "23502"})
"""Foreign key, check and not null."""
_UNPREPARED: Final = (
    f"a connection pooler lost a prepared statement; add {PREPARE_THRESHOLD}=none to"
    " memory.storage.url"
)
_BY_STATE: Final[dict[str, tuple[type[StorageError], str]]] = {
    "55P03": (DatabaseBusy, "another process holds the database; try again"),
    "40001": (DatabaseBusy, "another transaction interfered; try again"),
    "40P01": (DatabaseBusy, "another transaction interfered; try again"),
    "25P03": (DatabaseBusy, "the process was idle in a write for too long; try again"),
    "57014": (DatabaseBusy, "the server cancelled the statement; try again"),
    "53100": (DatabaseFull, "the server's disk is full; nothing was written"),
    "53300": (DatabaseBusy, "the server has no connection left; try again"),
    "26000": (StorageError, _UNPREPARED),
    "42P05": (StorageError, _UNPREPARED),
    "XX001": (DatabaseCorrupt, "the server's data are damaged; restore a backup"),
    "XX002": (DatabaseCorrupt, "an index of the server is damaged; run REINDEX"),
}
_AWAY: Final = frozenset({"57P01", "57P02", "57P03", "08001", "08006"})
_BY_CLASS: Final[dict[str, tuple[type[StorageError], str]]] = {
    "08": (DatabaseUnreachable, "the connection to the server broke; try again"),
    "28": (DatabaseUnreachable, "the server refuses the login"),
    "3D": (DatabaseUnreachable, "the server has no such database"),
    "53": (DatabaseBusy, "the server lacks resources; try again"),
    "57": (DatabaseUnreachable, "the server is shutting down or starting; try again"),
}

_NUMBERS: Final = itertools.count()


class _WholeNumber(Loader):
    """Loads booleans as 0 or 1, as in SQLite."""

    def load(self, data: Any) -> int:
        return int(bytes(data) == b"t")


class _Number(Loader):
    """Loads sums as int or float, which have enough digits for ours."""

    def load(self, data: Any) -> int | float:
        text = bytes(data).decode()
        return int(text) if text.lstrip("-").isdigit() else float(text)


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection without implicit transactions.

    Attributes:
        found: the last row returned by the SQL that began the transaction, or None.
        shared: data shared by the readers of a database, by index; None: the transaction may write.
        is_watching: whether triggers record the row changes of the transaction.
    """

    shared: dict[str, Any] | None = None
    found: tuple[Any, ...] | None = None
    is_watching = False

    def executemany(self, statement: str, values: Iterable[Any]) -> None:
        """Execute a statement once for each mapping or row of values."""
        with self.cursor() as cursor:
            cursor.executemany(statement, values)

    def pages(self, statement: str, values: Any, size: int) -> Iterator[list[Any]]:
        """Yield the rows of a statement in lists of at most ``size``.

        The server sends each when it is asked for. So a long job on all rows holds few of them, and
        is not idle for as long as it takes.
        """
        cursor = self.cursor(name=f"pages_{next(_NUMBERS)}")
        try:
            cursor.execute(statement, values)
            while rows := cursor.fetchmany(size):
                yield rows
            cursor.close()
        finally:
            # Of one that is left early only the server's part is open, until its transaction ends.
            psycopg.Cursor.close(cursor)


def checked_url(text: str) -> sa.URL:
    """Parse the URL of a server's database.

    Raises:
        InvalidConfig: it is invalid or contains a password. The message does not repeat it.
    """
    try:
        url = sa.make_url(text)
    except ArgumentError:
        url = None
    if url is None or url.drivername not in ("postgresql", "postgresql+psycopg"):
        raise InvalidConfig(
            "memory.storage.url must look like postgresql+psycopg://user@host:5432/name",
            field="memory.storage.url",
        )
    if url.query.get(PREPARE_THRESHOLD, "none") != "none":
        raise InvalidConfig(
            f"{PREPARE_THRESHOLD} in memory.storage.url must be none or omitted",
            field="memory.storage.url",
        )
    if url.password is not None or "password" in url.query:
        raise InvalidConfig(
            "memory.storage.url contains a password; use PGPASSWORD or PGPASSFILE instead",
            field="memory.storage.url",
        )
    return url


def schema_of(orchestrator_id: str) -> str:
    """Return the name of an orchestrator's schema."""
    name = PREFIX + orchestrator_id
    if len(name) <= MOST_NAME_BYTES:
        return name
    digest = hashlib.sha256(orchestrator_id.encode()).hexdigest()[:12]
    return f"{name[: MOST_NAME_BYTES - len(digest) - 1]}~{digest}"


def replaced_prefix(orchestrator_id: str) -> str:
    """Return the name prefix of schemas that a restore or a move of an orchestrator replaced."""
    return f"memgraph~replaced_{hashlib.sha256(orchestrator_id.encode()).hexdigest()[:12]}_"


def quoted(name: str) -> str:
    """Return a name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def lock_key(schema: str) -> int:
    """Return the key of the advisory lock for writing a schema."""
    digest = hashlib.blake2b(schema.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def _application() -> str:
    # The server cuts the name after 63 bytes.
    host, _, process = process_name().partition(":")
    return f"{APPLICATION}{host[:20]}:{process}"


def connect(url: sa.URL) -> Connection:
    """Return a connection. Its user begins each transaction with the name of the schema."""
    parameters: dict[str, Any] = {
        "host": url.host,
        "port": url.port,
        "dbname": url.database,
        "user": url.username,
        "connect_timeout": CONNECT_TIMEOUT_S,
        "application_name": _application(),
        "client_encoding": "utf8",
    }
    parameters.update(url.query)
    is_unprepared = parameters.pop(PREPARE_THRESHOLD, "") == "none"
    connection = Connection.connect(autocommit=True, **parameters)
    # A statement is planned only once per connection; see ``_PLANNING`` in ``database``.
    connection.prepare_threshold = None if is_unprepared else PREPARED_FROM
    connection.prepared_max = MOST_PREPARED
    adapters = connection.adapters
    adapters.register_dumper(int, Int8Dumper)
    adapters.register_loader("bool", _WholeNumber)
    adapters.register_loader("numeric", _Number)
    adapters.register_loader("jsonb", TextLoader)
    if connection.info.server_version < MINIMUM_VERSION:
        version = connection.info.server_version // 10_000
        connection.close()
        raise StorageError(
            f"PostgreSQL {version} is too old; 16 or newer is needed", version=str(version)
        )
    return connection


def translate(error: Exception) -> Exception:
    """Return our own error for a driver's. The driver's message is dropped: it may contain data."""
    if isinstance(error, PoolTimeoutError):
        return DatabaseBusy("too many connections at once; try again")
    cause = error.orig if isinstance(error, DBAPIError) else error
    state = getattr(cause, "sqlstate", None) or ""
    name = state or type(cause).__name__
    diagnostic = getattr(cause, "diag", None)
    constraint = str(getattr(diagnostic, "constraint_name", None) or "")
    if state == "23505":
        return Conflict(f"it already exists: {constraint}", constraint=constraint)
    if state in _CONSTRAINTS:
        return InvalidInput(f"the database rejected it: {constraint}", constraint=constraint)
    if state == "22003":
        return InvalidInput("a number is too large to store")
    if state in ("22021", "22P02", "22P05") or isinstance(cause, UnicodeEncodeError):
        return InvalidInput("a text contains a character that PostgreSQL cannot store")
    if isinstance(cause, psycopg.DataError) and not state:
        return InvalidInput("a text contains a NUL, which PostgreSQL cannot store")
    if entry := _BY_STATE.get(state) or _BY_CLASS.get(state[:2]):
        kind, message = entry
        return kind(f"{message} ({name})", sqlstate=name)
    if not state and isinstance(cause, psycopg.OperationalError):
        return DatabaseUnreachable("the server cannot be reached; try again")
    return StorageError(f"the database failed ({name})", sqlstate=name)


def is_away(error: Exception) -> bool:
    """Return True if no server answered, or if it is starting or shutting down."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    state = getattr(cause, "sqlstate", None)
    return state in _AWAY if state else isinstance(cause, psycopg.OperationalError)


@contextmanager
def committing() -> Iterator[None]:
    """Raise OutcomeUnknown if the connection breaks in the block, which is a commit."""
    try:
        yield
    except (DBAPIError, psycopg.Error) as error:
        if isinstance(translate(error), DatabaseUnreachable):
            raise OutcomeUnknown(
                "the connection to the server broke in a commit: it is not known whether this was"
                " written; sent again with the same turn_id or callId, it is stored once"
            ) from error
        raise


@contextmanager
def translated_errors() -> Iterator[None]:
    """Translate the driver's errors in the block to errors of ``memgraph.errors``."""
    try:
        yield
    except (DBAPIError, PoolTimeoutError, psycopg.Error, UnicodeError) as error:
        raise translate(error) from error
