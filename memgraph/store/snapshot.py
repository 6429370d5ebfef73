"""Snapshots to read and transactions to write: the first argument of the store's functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

import sqlalchemy as sa

from memgraph.errors import DatabaseCorrupt
from memgraph.store.statements import BuiltStatement, Executed, SkippedRows, Values

if TYPE_CHECKING:
    from memgraph.store.engine import Engine

T = TypeVar("T")
Rows = sa.CursorResult[*tuple[Any, ...]]
_SKIPPED: ContextVar[SkippedRows | None] = ContextVar("skipped rows", default=None)
_DAMAGED: Final = (AttributeError, DatabaseCorrupt, KeyError, TypeError, ValueError)
"""What a value of a wrong type may raise."""


def despite_damage(read: Callable[[], T]) -> tuple[T, int]:
    """Return ``read()`` and 0; if damaged rows stop it, read without them, and return their number.

    Damaged are rows with a value of a wrong type. What depends on such a row is left out as well,
    as far as it turns out that it cannot be read without.

    Raises:
        DatabaseCorrupt: it cannot be read without them either.
    """
    try:
        return read(), 0
    except _DAMAGED as error:
        skipped, known, last = SkippedRows(), -1, error
    while known < len(skipped.ids):
        known = len(skipped.ids)
        token = _SKIPPED.set(skipped)
        try:
            return read(), max(len(skipped.damaged), int(skipped.found))
        except _DAMAGED as error:
            last = error
        finally:
            _SKIPPED.reset(token)
    if not skipped.found or isinstance(last, DatabaseCorrupt):
        raise last
    raise DatabaseCorrupt("a damaged row cannot be left out; run: memgraph verify") from last


class Snapshot(Executed):
    """A consistent state of a database, unaffected by concurrent writes.

    Its methods take a statement that is built where it is used; see ``BuiltStatement``.

    Args:
        connection: a connection in a transaction that ends with the block of the snapshot.
        engine: the engine of the connection.

    Attributes:
        skipped: receives damaged rows, which are left out; None: they are read as they are.
    """

    __slots__ = ("connection", "driver", "engine", "skipped")

    def __init__(self, connection: sa.Connection, engine: Engine) -> None:
        self.connection = connection
        self.engine = engine
        # The driver's connection, in the same transaction; its rows are tuples.
        self.driver: Any = connection.connection.driver_connection
        self.skipped = _SKIPPED.get()
        if self.skipped is not None:
            engine.read_undecodable(self)

    def execute(
        self,
        statement: sa.Executable,
        values: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    ) -> Rows:
        """Execute an expression or a text with named values."""
        return self.connection.execute(statement, values)

    def _execute(self, statement: Any, values: Values, more: dict[str, Any], /) -> Any:
        return BuiltStatement(statement)._execute(self, values, more)

    def pages(self, statement: Any, size: int, values: Values = None) -> Iterator[list[Any]]:
        """Yield the rows in lists of at most ``size``; no more are in memory at once."""
        text, params = BuiltStatement(statement).compiled(self, values, {})
        pages: Iterator[list[Any]] = self.driver.pages(text, params, size)
        return pages

    def exec_driver_sql(
        self,
        statement: str,
        values: tuple[Any, ...] | list[tuple[Any, ...]] | Mapping[str, Any] | None = None,
    ) -> Rows:
        """Execute SQL of the engine's own dialect; the rows have named columns."""
        return self.connection.exec_driver_sql(statement, values)


class Transaction(Snapshot):
    """A write transaction: committed when its block ends, rolled back if the block raises.

    Reads in it see its own writes.
    """

    __slots__ = ()

    def write(self, statement: Any, values: Values = None, /, **more: Any) -> int:
        """Execute a statement and return the number of rows it affected."""
        count: int = self._execute(statement, values, more).rowcount
        return count

    def begin_nested(self) -> sa.NestedTransaction:
        """Begin a savepoint, which can be rolled back separately."""
        return self.connection.begin_nested()


@dataclass(frozen=True, slots=True)
class NewEntry:
    """A journal entry to append at commit.

    Attributes:
        action: the name of the action, such as ``remember`` or ``resolve``.
        subject: the id of the memory that it concerns, if any.
    """

    action: str
    subject: str | None = None
    details: dict[str, Any] = field(default_factory=dict)


class JournalledTransaction(Transaction):
    """A transaction with its actor, its time and its journal entries.

    Attributes:
        at: when it began, in milliseconds since 1970; everything it writes has this time.
        actor: the actor's name in the journal.
        entries: the entries to append to the journal at commit.
        completed_sessions: the ids of sessions for the host's callbacks after the commit.
    """

    __slots__ = ("actor", "at", "completed_sessions", "entries")

    def __init__(self, transaction: Transaction, at: int, actor: str) -> None:
        super().__init__(transaction.connection, transaction.engine)
        self.at = at
        self.actor = actor
        self.entries: list[NewEntry] = []
        self.completed_sessions: list[str] = []

    def record(self, entries: Sequence[NewEntry]) -> None:
        """Add journal entries, which are appended at commit."""
        self.entries.extend(entries)


class InsertRows:
    """A callable that inserts rows into some columns of a table, with constant SQL.

    A row has plain values in the order of the columns, or by their names: binding an enum member
    takes 10 µs more.

    Args:
        or_ignore: skip rows that conflict with existing ones instead of failing.
        values: the SQL of one row, with a ``?`` for each value; by default just the placeholders.
    """

    def __init__(
        self,
        table: str,
        columns: Sequence[str],
        *,
        or_ignore: bool = False,
        values: str | None = None,
    ) -> None:
        row = values or f"({', '.join('?' * len(columns))})"
        tail = " ON CONFLICT DO NOTHING" if or_ignore else ""
        self._values = itemgetter(*columns)
        self._statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES {row}{tail}"

    def __call__(
        self, snapshot: Snapshot, rows: Sequence[Sequence[Any]] | Sequence[Mapping[str, Any]]
    ) -> None:
        if rows:
            if isinstance(rows[0], dict):
                rows = list(map(self._values, rows))
            statement = self._statement.replace("?", snapshot.engine.placeholder)
            snapshot.driver.executemany(statement, rows)
