"""Copy a PostgreSQL schema to a SQLite file and back, for backups and moves between engines.

The file has the tables of the same revision, and every row keeps its number. Rows are digested when
they are read and again after they were written, so a finished copy is verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final

from memgraph.errors import DatabaseCorrupt
from memgraph.store import metadata, sqlite, whole_tables
from memgraph.store.postgres import indexes, schema
from memgraph.store.postgres.dialect import PLACE
from memgraph.store.snapshot import Transaction
from memgraph.store.sqlite import provision
from memgraph.store.sqlite.delta import ROWID, Delta, Table, opened, tables_of
from memgraph.store.whole_tables import TableDigest

Progress = Callable[[int, int], None]
"""Called with the number of copied tables and the total."""

_ROWS: Final = 2_000
_SEQUENCES: Final = (
    "SELECT c.relname, a.attname, pg_get_serial_sequence(quote_ident(c.relname), a.attname)"
    " FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid"
    " WHERE c.relnamespace = current_schema()::regnamespace AND a.attidentity <> ''"
)
# The rows that these triggers would write are copied.
_DISABLE: Final = (
    "ALTER TABLE memories DISABLE TRIGGER memory_revisions_keep,"
    " DISABLE TRIGGER text_changes_update, DISABLE TRIGGER text_changes_delete"
)


def write_file(source: Any, file: Path, progress: Progress | None = None) -> None:
    """Copy the schema of a snapshot into a new file.

    Args:
        source: a driver connection in a snapshot transaction.
    """
    [(revision,)] = source.execute("SELECT version_num FROM alembic_version")
    file.write_bytes(provision.template(revision).content)
    with sqlite.translated_errors(), closing(opened(file)) as target:
        target.execute("BEGIN IMMEDIATE")
        tables = tables_of(target)
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
    with sqlite.translated_errors(), closing(opened(file)) as source:
        tables = {item.name: item for item in tables_of(source)}
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
        last = source.execute("SELECT name, seq FROM sqlite_sequence").fetchall()
    _number(target, last)
    indexes.rebuild(transaction)
    # Without statistics, checking the copy takes quadratic time.
    target.execute(f"ANALYZE {', '.join(item.name for item in schema.tables())}, memory_words")


def _number(target: Any, last: Iterable[Any]) -> None:
    """Set the sequences so that new numbers follow existing rows and ``last``."""
    target.execute("DELETE FROM last_numbers")
    target.executemany("INSERT INTO last_numbers VALUES (%s, %s)", last)
    for name, column, sequence in target.execute(_SEQUENCES).fetchall():
        # Sequences continue after the last number, which is never reused.
        target.execute(
            f"SELECT setval(%s, greatest((SELECT max({column}) FROM {name}),"
            " (SELECT number FROM last_numbers WHERE name = %s), 0) + 1, false)",
            (sequence, name),
        )


def collect(source: Any, delta: Delta, since: int) -> None:
    """Collect the difference between a snapshot and a copy.

    Args:
        since: the lowest number of a transaction that the copy may lack.
    """
    metadata.require_head(*source.execute("SELECT version_num FROM alembic_version").fetchone())
    # There is no index on transaction numbers.
    source.execute("SET LOCAL enable_seqscan = on")
    counts = dict(source.execute("SELECT name, rows FROM table_digests").fetchall())
    for table in delta.tables:
        came = f"{table.name} WHERE age(xmin) <= age(CAST(CAST('{since}' AS xid8) AS xid))"
        with _selected(source, table.listed(PLACE), came) as rows:
            delta.take(table, rows)
        if not table.is_counted:
            [(counts[table.name],)] = source.execute(f"SELECT count(*) FROM {table.name}")
            delta.counts[table.name] = counts[table.name]
        if not delta.is_complete(table, counts.get(table.name, 0)):
            with _selected(source, ", ".join(table.keys(PLACE)), table.name) as rows:
                delta.take_keys(table, rows)
    delta.last_numbers = source.execute("SELECT name, number FROM last_numbers").fetchall()


def follow(delta: Delta, transaction: Transaction) -> None:
    """Bring a draft that was made from a copy to the state of the store.

    Raises:
        DatabaseCorrupt: the digests of its rows would differ from those of the store.
    """
    target = transaction.driver
    digests = whole_tables.stored(transaction)
    by_name = {table.name: table for table in delta.tables}
    # Insert referenced rows first, and delete them last.
    tables = [by_name[item.name] for item in schema.tables()]
    target.execute(_DISABLE)
    for table in reversed(tables):
        if keys := delta.went(table):
            with _arrived(target, table, table.keys(PLACE), keys):
                same = " AND ".join(f"t.{name} = a.{name}" for name in table.keys(PLACE))
                target.execute(f"DELETE FROM {table.name} AS t USING arrived AS a WHERE {same}")
    for table in tables:
        came = delta.came(table)
        while batch := list(islice(came, _ROWS)):
            rows = _Digested(table.name, batch)
            with _arrived(target, table, table.names(PLACE), rows):
                _require_same(table.name, rows, target.execute(_replacing(table)))
            # Once per batch, because all recorded changes are read into memory.
            digests = whole_tables.followed(transaction, digests)
    target.execute(_DISABLE.replace("DISABLE", "ENABLE"))
    _number(target, delta.last_numbers)
    indexes.follow(transaction)
    delta.require_applied(transaction, digests)


@contextmanager
def _arrived(target: Any, table: Table, names: list[str], rows: Iterable[Any]) -> Iterator[None]:
    """Store rows with some columns of a table in the temporary table ``arrived``."""
    listed = ", ".join(names)
    target.execute(f"CREATE TEMP TABLE arrived AS SELECT {listed} FROM {table.name} WITH NO DATA")
    with target.cursor() as cursor, cursor.copy("COPY pg_temp.arrived FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    yield
    target.execute("DROP TABLE pg_temp.arrived")


def _replacing(table: Table) -> str:
    listed, keys = table.listed(PLACE), table.keys(PLACE)
    rest = [name for name in table.names(PLACE) if name not in keys] or keys
    values = ", ".join(f"{name} = excluded.{name}" for name in rest)
    return (
        f"INSERT INTO {table.name} ({listed}) OVERRIDING SYSTEM VALUE SELECT {listed} FROM arrived"
        f" ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {values} RETURNING {listed}"
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
    rows: Iterator[Any] = file.execute(f"SELECT {table.listed('rowid')} FROM {table.name}")
    return rows


def _report(progress: Progress | None, done: int, total: int) -> None:
    if progress is not None:
        progress(done, total)
