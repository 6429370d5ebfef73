"""Snapshots to read, transactions to write: the first argument of every function of the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

if TYPE_CHECKING:
    from memgraph.store.engine import Engine

Rows = sa.CursorResult[*tuple[Any, ...]]


class Snapshot:
    """One state of a database; all that is read through it agrees, whatever others write.

    Args:
        connection: in a transaction, which ends with the block that made the snapshot.
        engine: whose connection it is.
    """

    __slots__ = ("connection", "driver", "engine")

    def __init__(self, connection: sa.Connection, engine: Engine) -> None:
        self.connection = connection
        self.engine = engine
        # The driver's own connection, inside of the same transaction; its rows are tuples.
        self.driver: Any = connection.connection.driver_connection

    def execute(
        self,
        statement: sa.Executable,
        values: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    ) -> Rows:
        """Execute an expression, or a text with named values."""
        return self.connection.execute(statement, values)

    def scalar(self, statement: sa.Executable, values: Mapping[str, Any] | None = None) -> Any:
        """Return the first value of the first row; None: there is no row."""
        return self.connection.scalar(statement, values)

    def exec_driver_sql(
        self,
        statement: str,
        values: tuple[Any, ...] | list[tuple[Any, ...]] | Mapping[str, Any] | None = None,
    ) -> Rows:
        """Execute the engine's own SQL; rows have names."""
        return self.connection.exec_driver_sql(statement, values)


class Transaction(Snapshot):
    """A write: all of it becomes durable when its block ends, or none of it happens.

    It reads what it has written itself.
    """

    __slots__ = ()

    def begin_nested(self) -> sa.NestedTransaction:
        """Begin a savepoint, which can be rolled back alone."""
        return self.connection.begin_nested()


@dataclass(frozen=True, slots=True)
class NewEntry:
    """A journal entry to append at commit.

    Attributes:
        action: such as ``remember`` or ``resolve``.
        subject: the id of a memory, if it is about one.
    """

    action: str
    subject: str | None = None
    details: dict[str, Any] = field(default_factory=dict)


class JournalledTransaction(Transaction):
    """A change with its actor, its time and its journal entries.

    Attributes:
        at: when it began, milliseconds since 1970; the time of all that it writes.
        actor: the name in the journal.
        entries: appended to the journal when it commits.
    """

    __slots__ = ("actor", "at", "entries")

    def __init__(self, transaction: Transaction, at: int, actor: str) -> None:
        super().__init__(transaction.connection, transaction.engine)
        self.at = at
        self.actor = actor
        self.entries: list[NewEntry] = []

    def record(self, entries: Sequence[NewEntry]) -> None:
        """Add entries for the journal."""
        self.entries.extend(entries)


_MOST_VALUES = 16_000
_MOST_ROWS = 500
_SOME_ROWS = 16


class InsertRows:
    """``INSERT INTO table (columns)`` as constant SQL; called with rows of values.

    The values are plain and in the order of the columns: an enum's member takes 10 µs more to bind.

    Args:
        or_ignore: a row that is there already stays as it is.
        values: what stands for a row, with a ``?`` for each value; by default just those.
    """

    def __init__(
        self,
        table: str,
        columns: Sequence[str],
        *,
        or_ignore: bool = False,
        values: str | None = None,
    ) -> None:
        self._head = f"INSERT INTO {table} ({', '.join(columns)}) VALUES "
        self._row = values or f"({', '.join('?' * len(columns))})"
        self._tail = " ON CONFLICT DO NOTHING" if or_ignore else ""
        self._most = max(min(_MOST_ROWS, _MOST_VALUES // self._row.count("?")), 1)
        self._by_placeholder: dict[str, list[tuple[int, str]]] = {}

    def __call__(self, snapshot: Snapshot, rows: Sequence[Sequence[Any]]) -> None:
        if not rows:
            return
        execute = snapshot.driver.execute
        placeholder = snapshot.engine.placeholder
        statements = self._by_placeholder.get(placeholder) or self._statements(placeholder)
        done = 0
        for size, statement in statements:
            while len(rows) - done >= size:
                values = rows[done] if size == 1 else chain.from_iterable(rows[done : done + size])
                execute(statement, tuple(values))
                done += size

    def _statements(self, placeholder: str) -> list[tuple[int, str]]:
        # Three statements at most: the driver keeps them prepared.
        row = self._row.replace("?", placeholder)
        sizes = sorted({self._most, min(_SOME_ROWS, self._most), 1}, reverse=True)
        statements = [(size, self._head + ", ".join([row] * size) + self._tail) for size in sizes]
        self._by_placeholder[placeholder] = statements
        return statements
