"""Constant SQL for what is written often, handed to the driver itself.

SQLAlchemy takes 20 to 200 µs for a statement, several times what SQLite needs for one row. Many
rows go in one statement: FTS5, the constraints and the driver each have work to do per statement,
and a memory is stored in half the time; meanwhile other threads of the process go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import sqlalchemy as sa

_MOST_VALUES = 16_000
_MOST_ROWS = 500
_SOME_ROWS = 16


def driver(connection: sa.Connection) -> Any:
    """The driver's connection, inside the transaction of ``connection``. Its rows are tuples.

    It binds plain values: an enum's member takes it 10 µs more than the member's value.
    """
    return connection.connection.driver_connection


class Insert:
    """``INSERT INTO table (columns)``; called with rows of values in the order of the columns.

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
        verb = "INSERT OR IGNORE" if or_ignore else "INSERT"
        self._head = f"{verb} INTO {table} ({', '.join(columns)}) VALUES "
        self._row = values or f"({', '.join('?' * len(columns))})"
        most = max(min(_MOST_ROWS, _MOST_VALUES // self._row.count("?")), 1)
        # Three statements at most: the driver keeps them prepared.
        self._statements = [
            (size, self._head + ", ".join([self._row] * size))
            for size in sorted({most, min(_SOME_ROWS, most), 1}, reverse=True)
        ]

    def __call__(self, connection: sa.Connection, rows: Sequence[Sequence[Any]]) -> None:
        if not rows:
            return
        execute = driver(connection).execute
        done = 0
        for size, statement in self._statements:
            while len(rows) - done >= size:
                values = rows[done] if size == 1 else chain.from_iterable(rows[done : done + size])
                execute(statement, tuple(values))
                done += size
