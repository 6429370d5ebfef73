"""Copy a PostgreSQL schema to a SQLite file and back, for backups and moves between engines.

The file has the tables of the same revision, and every row keeps its number. Rows are digested when
they are read and again after they were written, so a finished copy is verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

from memgraph.errors import DatabaseCorrupt
from memgraph.store import postgres, sqlite, whole_tables
from memgraph.store.postgres import indexes, schema
from memgraph.store.postgres.dialect import PLACE
from memgraph.store.snapshot import Transaction
from memgraph.store.sqlite import provision
from memgraph.store.whole_tables import TableDigest

Progress = Callable[[int, int], None]
"""Called with the number of copied tables and the total."""

_ROWS: Final = 2_000
_SEQUENCES: Final = (
    "SELECT c.relname, a.attname, pg_get_serial_sequence(quote_ident(c.relname), a.attname)"
    " FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid"
    " WHERE c.relnamespace = current_schema()::regnamespace AND a.attidentity <> ''"
)


class _Table(NamedTuple):
    """A table of a file: its columns, and whether its rows have an implicit number (rowid)."""

    name: str
    columns: tuple[str, ...]
    is_placed: bool

    def listed(self, place: str) -> str:
        """Return the column list for a statement; ``place`` is the engine's name for the number."""
        names = (*self.columns, place) if self.is_placed else self.columns
        return ", ".join(map(postgres.quoted, names))

    @property
    def order(self) -> str:
        """Return the position of the sort column, for ``ORDER BY``."""
        return str(len(self.columns) + 1 if self.is_placed else 1)


def write_file(source: Any, file: Path, progress: Progress | None = None) -> None:
    """Copy the schema of a snapshot into a new file.

    Args:
        source: a driver connection in a snapshot transaction.
    """
    [(revision,)] = source.execute("SELECT version_num FROM alembic_version")
    file.write_bytes(provision.template(revision).content)
    with sqlite.translated_errors(), closing(_opened(file)) as target:
        target.execute("PRAGMA foreign_keys = OFF")
        target.execute("BEGIN IMMEDIATE")
        tables = _tables(target)
        for number, table in enumerate(tables):
            _report(progress, number, len(tables))
            with source.cursor(name="copied") as cursor:
                cursor.itersize = _ROWS
                cursor.execute(
                    f"SELECT {table.listed(PLACE)} FROM {table.name} ORDER BY {table.order}"
                )
                rows = _Digested(table.name, cursor)
                target.execute(f"DELETE FROM {table.name}")
                listed = table.listed("rowid")
                marks = ", ".join("?" * (listed.count(",") + 1))
                target.executemany(f"INSERT INTO {table.name} ({listed}) VALUES ({marks})", rows)
            _require_same(table.name, rows.digest, _rows_of(target, table))
        target.execute("DELETE FROM sqlite_sequence")
        last = source.execute("SELECT name, number FROM last_numbers").fetchall()
        target.executemany("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", last)
        _report(progress, len(tables), len(tables))
        target.execute("COMMIT")


def read_file(file: Path, transaction: Transaction) -> None:
    """Fill the new schema of a transaction from a file of the same schema revision.

    Raises:
        DatabaseCorrupt: the copy differs from the file.
    """
    target = transaction.driver
    with sqlite.translated_errors(), closing(_opened(file)) as source:
        tables = {item.name: item for item in _tables(source)}
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
            with target.cursor(name="copied") as cursor:
                cursor.itersize = _ROWS
                cursor.execute(f"SELECT {table.listed(PLACE)} FROM {name}")
                _require_same(name, rows.digest, cursor)
        last = source.execute("SELECT name, seq FROM sqlite_sequence").fetchall()
    target.executemany("INSERT INTO last_numbers VALUES (%s, %s)", last)
    for name, column, sequence in target.execute(_SEQUENCES).fetchall():
        # Sequences continue after the last number, which is never reused.
        target.execute(
            f"SELECT setval(%s, greatest((SELECT max({column}) FROM {name}),"
            " (SELECT number FROM last_numbers WHERE name = %s), 0) + 1, false)",
            (sequence, name),
        )
    indexes.rebuild(transaction)


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


def _require_same(name: str, digest: TableDigest, rows: Iterable[Any]) -> None:
    copied = _Digested(name, rows)
    for _ in copied:
        pass
    if copied.digest != digest:
        raise DatabaseCorrupt(f"the copy of {name} differs from the original", table=name)


def _opened(file: Path) -> Any:
    connection = sqlite.connect(file, busy_timeout_ms=5_000, synchronous="OFF")
    # No other process uses the file yet.
    connection.execute("PRAGMA journal_mode = MEMORY")
    return connection


def _tables(file: Any) -> list[_Table]:
    names = file.execute(
        "SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
        " AND name NOT LIKE 'sqlite%' AND name <> 'alembic_version' ORDER BY name"
    ).fetchall()
    tables = []
    for name, has_no_number in names:
        columns = file.execute(
            "SELECT name, type, pk FROM pragma_table_info(?)", (name,)
        ).fetchall()
        keys = [kind for _, kind, place in columns if place]
        is_numbered = [key.upper() for key in keys] == ["INTEGER"]
        listed = tuple(column for column, *_ in columns)
        tables.append(_Table(name, listed, not (has_no_number or is_numbered)))
    return tables


def _rows_of(file: Any, table: _Table) -> Iterator[Any]:
    rows: Iterator[Any] = file.execute(f"SELECT {table.listed('rowid')} FROM {table.name}")
    return rows


def _report(progress: Progress | None, done: int, total: int) -> None:
    if progress is not None:
        progress(done, total)
