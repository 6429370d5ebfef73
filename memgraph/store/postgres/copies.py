"""Copy a PostgreSQL schema to a SQLite file and back, for backups and moves between engines.

The file has the tables of the same revision, and every row keeps its number. Rows are digested when
they are read and again after they were written, so a finished copy is verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

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


class Table(NamedTuple):
    """A table of a file; without an integer key, its rows are also copied with their ``rowid``."""

    name: str
    columns: tuple[str, ...]
    is_keyed: bool

    def names(self, place: str) -> list[str]:
        """Return the quoted columns; without a key also ``place``, the engine's name of a rowid."""
        names = self.columns if self.is_keyed else (*self.columns, place)
        return [f'"{name}"' for name in names]

    def listed(self, place: str) -> str:
        """Return ``names`` for a statement."""
        return ", ".join(self.names(place))

    @property
    def order(self) -> str:
        """Return the position of the column to order rows by."""
        return "1" if self.is_keyed else str(len(self.columns) + 1)


def _opened(file: Path) -> Any:
    """Connect to a file that no other process uses yet."""
    connection = sqlite.connect(file, busy_timeout_ms=5_000, synchronous="OFF")
    connection.execute("PRAGMA journal_mode = MEMORY")
    connection.execute("PRAGMA foreign_keys = OFF")
    return connection


def _tables_of(file: Any) -> list[Table]:
    """Return the tables of a connection that are copied row by row."""
    names = file.execute(
        "SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
        " AND name NOT LIKE 'sqlite%' AND name <> 'alembic_version' ORDER BY name"
    ).fetchall()
    tables = []
    for name, has_no_rowid in names:
        columns = file.execute(
            "SELECT name, type, pk FROM pragma_table_info(?)", (name,)
        ).fetchall()
        keys = [kind.upper() for _, kind, place in columns if place]
        is_keyed = bool(has_no_rowid) or keys == ["INTEGER"]
        tables.append(Table(name, tuple(column for column, *_ in columns), is_keyed))
    return tables


def write_file(source: Any, file: Path, progress: Progress | None = None) -> None:
    """Copy the schema of a snapshot into a new file.

    Args:
        source: a driver connection in a snapshot transaction.
    """
    [(revision,)] = source.execute("SELECT version_num FROM alembic_version")
    file.write_bytes(engine.template(revision).content)
    with sqlite.translated_errors(), closing(_opened(file)) as target:
        target.execute("BEGIN IMMEDIATE")
        tables = _tables_of(target)
        for number, table in enumerate(tables):
            _report(progress, number, len(tables))
            ordered = f"{table.name} ORDER BY {table.order}"
            with _selected(source, table.listed(PLACE), ordered) as selected:
                rows = _Digested(table.name, selected)
                target.execute(f"DELETE FROM {table.name}")
                marks = ", ".join("?" * len(table.names(ROWID)))
                target.executemany(
                    f"INSERT INTO {table.name} ({table.listed(ROWID)}) VALUES ({marks})", rows
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
        tables = {item.name: item for item in _tables_of(source)}
        # In the order of foreign keys.
        for name in (item.name for item in schema.tables()):
            table = tables[name]
            target.execute(f"ALTER TABLE {name} DISABLE TRIGGER USER")
            rows = _Digested(name, _rows_of(source, table))
            with (
                target.cursor() as cursor,
                cursor.copy(f"COPY {name} ({table.listed(PLACE)}) FROM STDIN") as copy,
            ):
                for row in rows:
                    copy.write_row(row)
            target.execute(f"ALTER TABLE {name} ENABLE TRIGGER USER")
            with _selected(target, table.listed(PLACE), name) as copied:
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
def _selected(connection: Any, columns: str, rest: str) -> Iterator[Any]:
    """Select rows in batches instead of loading all of them."""
    with connection.cursor(name="selected") as cursor:
        cursor.itersize = _ROWS
        cursor.execute(f"SELECT {columns} FROM {rest}")
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


def _rows_of(file: Any, table: Table) -> Iterator[Any]:
    rows: Iterator[Any] = file.execute(f"SELECT {table.listed(ROWID)} FROM {table.name}")
    return rows


def _report(progress: Progress | None, done: int, total: int) -> None:
    if progress is not None:
        progress(done, total)
