"""Copy a PostgreSQL schema to a SQLite file and back, for backups and moves between engines.

The file has the tables of the same revision, and every row keeps its number. Rows are digested when
they are read and again after they were written, so a finished copy is verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from memgraph.errors import DatabaseCorrupt
from memgraph.store import sqlite, whole_tables
from memgraph.store.postgres import indexes, schema
from memgraph.store.postgres.dialect import PLACE
from memgraph.store.snapshot import Transaction
from memgraph.store.sqlite import engine
from memgraph.store.whole_tables import TableDigest

Progress = Callable[[int, int], None]
"""Called with the number of copied tables and the total."""

ROWID: Final = "rowid"
_ROWS: Final = 2_000
_SEQUENCES: Final = (
    "SELECT c.relname, a.attname, pg_get_serial_sequence(quote_ident(c.relname), a.attname)"
    " FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid"
    " WHERE c.relnamespace = current_schema()::regnamespace AND a.attidentity <> ''"
)


def _columns(table: sa.Table, place: str) -> list[str]:
    """Return the quoted columns of a table; the last one is ``place`` if it has row numbers."""
    names = [column.name for column in table.columns if column.name != PLACE]
    keys = [isinstance(key.type, sa.Integer) for key in table.primary_key]
    if table.dialect_options["sqlite"]["with_rowid"] and keys != [True]:
        names.append(place)
    return [f'"{name}"' for name in names]


def _opened(file: Path) -> Any:
    """Connect to a file that no other process uses yet."""
    connection = sqlite.connect(file, busy_timeout_ms=5_000, synchronous="OFF")
    connection.execute("PRAGMA journal_mode = MEMORY")
    connection.execute("PRAGMA foreign_keys = OFF")
    return connection


def write_file(source: Any, file: Path, progress: Progress | None = None) -> None:
    """Copy the schema of a snapshot into a new file.

    Args:
        source: a driver connection in a snapshot transaction.
    """
    [(revision,)] = source.execute("SELECT version_num FROM alembic_version")
    file.write_bytes(engine.template(revision).content)
    with sqlite.translated_errors(), closing(_opened(file)) as target:
        target.execute("BEGIN IMMEDIATE")
        tables = schema.tables()
        for number, table in enumerate(tables):
            _report(progress, number, len(tables))
            names, columns = _columns(table, PLACE), _columns(table, ROWID)
            order = len(names) if names != columns else 1
            with _selected(source, names, f"{table.name} ORDER BY {order}") as selected:
                rows = _Digested(table.name, selected)
                target.execute(f"DELETE FROM {table.name}")
                marks = ", ".join("?" * len(columns))
                target.executemany(
                    f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({marks})", rows
                )
            _require_same(table.name, rows, _rows_of(target, table))
        _report(progress, len(tables), len(tables))
        target.execute("COMMIT")


def read_file(file: Path, transaction: Transaction) -> None:
    """Fill the new schema of a transaction from a file of the same schema revision.

    Raises:
        DatabaseCorrupt: the copy differs from the file.
    """
    target = transaction.driver
    with sqlite.translated_errors(), closing(_opened(file)) as source:
        # In the order of foreign keys.
        for table in schema.tables():
            name, names = table.name, _columns(table, PLACE)
            target.execute(f"ALTER TABLE {name} DISABLE TRIGGER USER")
            rows = _Digested(name, _rows_of(source, table))
            with (
                target.cursor() as cursor,
                cursor.copy(f"COPY {name} ({', '.join(names)}) FROM STDIN") as copy,
            ):
                for row in rows:
                    copy.write_row(row)
            target.execute(f"ALTER TABLE {name} ENABLE TRIGGER USER")
            with _selected(target, names, name) as copied:
                _require_same(name, rows, copied)
    _number(target)
    indexes.rebuild(transaction)
    # Without statistics, checking the copy takes quadratic time.
    target.execute(f"ANALYZE {', '.join(item.name for item in schema.tables())}, memory_words")


def _number(target: Any) -> None:
    """Set the sequences so that new numbers follow the existing rows."""
    for name, column, sequence in target.execute(_SEQUENCES).fetchall():
        target.execute(
            f"SELECT setval(%s, coalesce((SELECT max({column}) FROM {name}), 0) + 1, false)",
            (sequence,),
        )


@contextmanager
def _selected(connection: Any, columns: Sequence[str], rest: str) -> Iterator[Any]:
    """Select rows in batches instead of loading all of them."""
    with connection.cursor(name="selected") as cursor:
        cursor.itersize = _ROWS
        cursor.execute(f"SELECT {', '.join(columns)} FROM {rest}")
        yield cursor


class _Digested:
    """Passes rows through, and computes their digest."""

    def __init__(self, name: str, rows: Iterable[Any]) -> None:
        self._name = name
        self._rows = rows
        self.digest = TableDigest()

    def __iter__(self) -> Iterator[Any]:
        count = total = 0
        for row in self._rows:
            count += 1
            total += int.from_bytes(whole_tables.row_digest(self._name, *row), "big")
            yield row
        self.digest = self.digest.plus(count, total)


def _require_same(name: str, rows: _Digested, written: Iterable[Any]) -> None:
    copied = _Digested(name, written)
    for _ in copied:
        pass
    if copied.digest != rows.digest:
        raise DatabaseCorrupt(f"the copy of {name} differs from the original", table=name)


def _rows_of(file: Any, table: sa.Table) -> Iterator[Any]:
    columns = ", ".join(_columns(table, ROWID))
    rows: Iterator[Any] = file.execute(f"SELECT {columns} FROM {table.name}")
    return rows


def _report(progress: Progress | None, done: int, total: int) -> None:
    if progress is not None:
        progress(done, total)
