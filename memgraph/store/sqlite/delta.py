"""Compare a store with an older copy of it, and bring the copy up to date.

The copy is a file, whatever the store is. New and changed rows and the keys of deleted rows are
collected in temporary tables of its connection.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from memgraph.errors import DatabaseCorrupt
from memgraph.store import metadata, sqlite, whole_tables
from memgraph.store.files import fsync
from memgraph.store.snapshot import Transaction
from memgraph.store.sqlite import engine
from memgraph.store.statements import row_count
from memgraph.store.whole_tables import COUNTED, SEALED, TableDigest

ROWID: Final = "rowid"
_PLACE: Final = "place"
"""The name of a row's number in temporary tables."""
_TRIGGERS: Final = (
    "SELECT name, sql FROM main.sqlite_schema"
    " WHERE type = 'trigger' AND name NOT LIKE 'memory_fts%'"
)


class Table(NamedTuple):
    """A table of a file.

    Attributes:
        key: the columns of the primary key; empty if rows are identified by ``rowid``.
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]

    def names(self, place: str, of: str = "") -> list[str]:
        """Return the quoted columns; without a key also ``place``, the engine's name of a rowid."""
        return _quoted(self.columns if self.key else (*self.columns, place), of)

    def keys(self, place: str, of: str = "") -> list[str]:
        """Return the quoted columns that identify a row."""
        return _quoted(self.key or (place,), of)

    def listed(self, place: str, of: str = "") -> str:
        """Return ``names`` for a statement."""
        return ", ".join(self.names(place, of))

    @property
    def order(self) -> str:
        """Return the position of the column to order rows by."""
        return "1" if self.key else str(len(self.columns) + 1)

    @property
    def is_counted(self) -> bool:
        """True if every write updates the row count and the digest of this table."""
        return self.name in SEALED or self.name in COUNTED


def _quoted(names: Iterable[str], of: str) -> list[str]:
    return [f'{of}"{name}"' for name in names]


def opened(file: Path) -> Any:
    """Connect to a file that no other process uses yet."""
    connection = sqlite.connect(file, busy_timeout_ms=5_000, synchronous="OFF")
    connection.execute("PRAGMA journal_mode = MEMORY")
    connection.execute("PRAGMA foreign_keys = OFF")
    return connection


def tables_of(file: Any) -> list[Table]:
    """Return the tables of a connection that are copied row by row."""
    names = file.execute(
        "SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
        " AND name NOT LIKE 'sqlite%' AND name <> 'alembic_version' ORDER BY name"
    ).fetchall()
    tables = []
    for name, has_no_number in names:
        columns = file.execute(
            "SELECT name, type, pk FROM pragma_table_info(?)", (name,)
        ).fetchall()
        keys = sorted((place, column, kind) for column, kind, place in columns if place)
        is_numbered = [kind.upper() for _, _, kind in keys] == ["INTEGER"]
        key = tuple(column for _, column, _ in keys) if has_no_number or is_numbered else ()
        tables.append(Table(name, tuple(column for column, *_ in columns), key))
    return tables


class Delta:
    """The difference between a store and its copy.

    Attributes:
        connection: the connection to the copy.
        counts: the number of rows in each table of the store without a digest.
        last_numbers: the last number of each table with ``AUTOINCREMENT``.
        size: the number of rows that differ.
    """

    def __init__(self, copy: Transaction) -> None:
        self._copy = copy
        self.connection = copy.driver
        self.tables = tables_of(self.connection)
        self.counts: dict[str, int] = {}
        self.last_numbers: list[tuple[str, int]] = []
        self.size = 0
        for table in self.tables:
            rows = table.listed(ROWID).replace('"rowid"', f'rowid AS "{_PLACE}"')
            keys = ", ".join(table.keys(_PLACE))
            for kind, listed in (("came", "*"), ("went", keys)):
                self.connection.execute(
                    f"CREATE TEMP TABLE {kind}_{table.name} AS SELECT {listed}"
                    f" FROM (SELECT {rows} FROM main.{table.name} LIMIT 0)"
                )

    def compare(self, table: Table, relation: str, place: str) -> None:
        """Collect the rows of a relation that are missing or different in the copy."""
        theirs, ours = table.listed(place, "l."), table.listed(ROWID, "c.")
        self.size += self.connection.execute(
            f"INSERT INTO temp.came_{table.name} SELECT {theirs} FROM {relation} AS l"
            f" LEFT JOIN main.{table.name} AS c ON {_same(table, place)}"
            f" WHERE ({theirs}) IS NOT ({ours})"
        ).rowcount

    def compare_keys(self, table: Table, relation: str, place: str) -> None:
        """Collect the keys of the copy that are missing in a relation with all keys."""
        self.size += self.connection.execute(
            f"INSERT INTO temp.went_{table.name} SELECT {', '.join(table.keys(ROWID, 'c.'))}"
            f" FROM main.{table.name} AS c LEFT JOIN {relation} AS l ON {_same(table, place)}"
            f" WHERE {table.keys(place, 'l.')[0]} IS NULL"
        ).rowcount

    def take(self, table: Table, rows: Iterable[Any]) -> None:
        """Collect the rows that are missing or different in the copy."""
        with self._arrived(table.names(_PLACE), rows) as relation:
            self.compare(table, relation, _PLACE)

    def take_keys(self, table: Table, rows: Iterable[Any]) -> None:
        """Collect the keys of the copy that are missing in all keys of the store."""
        with self._arrived(table.keys(_PLACE), rows) as relation:
            self.compare_keys(table, relation, _PLACE)

    @contextmanager
    def _arrived(self, names: list[str], rows: Iterable[Any]) -> Iterator[str]:
        self.connection.execute(f"CREATE TEMP TABLE arrived ({', '.join(names)})")
        marks = ", ".join("?" * len(names))
        self.connection.executemany(f"INSERT INTO temp.arrived VALUES ({marks})", rows)
        yield "temp.arrived"
        self.connection.execute("DROP TABLE temp.arrived")

    def is_complete(self, table: Table, count: int) -> bool:
        """Return True if the copy will have ``count`` rows, so that none has to be deleted."""
        [(rows,)] = self.connection.execute(
            f"SELECT (SELECT count(*) FROM main.{table.name}) + count(*)"
            f" FROM temp.came_{table.name} AS l LEFT JOIN main.{table.name} AS c"
            f" ON {_same(table, _PLACE)} WHERE {table.keys(ROWID, 'c.')[0]} IS NULL"
        )
        return bool(rows == count)

    def came(self, table: Table) -> Iterator[Any]:
        """Yield the rows that are new or changed."""
        return iter(self.connection.execute(f"SELECT * FROM temp.came_{table.name}"))

    def went(self, table: Table) -> list[Any]:
        """Return the keys of the deleted rows."""
        return list(self.connection.execute(f"SELECT * FROM temp.went_{table.name}"))

    def apply(self) -> None:
        """Bring the copy to the state of the store.

        Raises:
            DatabaseCorrupt: the digests of its rows would differ from those of the store.
        """
        execute = self.connection.execute
        before = whole_tables.stored(self._copy)
        # The delta contains the rows that these triggers would write.
        triggers = execute(_TRIGGERS).fetchall()
        for name, _ in triggers:
            execute(f"DROP TRIGGER main.{name}")
        for table in self.tables:
            name, keys = table.name, ", ".join(table.keys(ROWID))
            execute(f"DELETE FROM main.{name} WHERE ({keys}) IN temp.went_{name}")
            execute(
                f"INSERT OR REPLACE INTO main.{name} ({table.listed(ROWID)})"
                f" SELECT * FROM temp.came_{name}"
            )
        for _, statement in triggers:
            execute(statement)
        execute("DELETE FROM sqlite_sequence")
        number = "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)"
        self.connection.executemany(number, self.last_numbers)
        self.require_applied(self._copy, before)

    def require_applied(self, transaction: Transaction, digests: Mapping[str, TableDigest]) -> None:
        """Raise DatabaseCorrupt if the written rows do not lead to the digests of the store.

        Args:
            transaction: the transaction of the writes, whose row changes are recorded.
            digests: the digests before the writes, updated as far as ``followed`` was called.
        """
        counts = self.counts.items()
        names = {name for name, count in counts if row_count(transaction, name) != count}
        names |= set(whole_tables.unexplained(transaction, digests))
        if names:
            raise DatabaseCorrupt(
                f"another program changed rows of {', '.join(sorted(names))} during the copy;"
                " run: memgraph verify",
                tables=sorted(names),
            )


def _same(table: Table, place: str) -> str:
    pairs = zip(table.keys(place, "l."), table.keys(ROWID, "c."), strict=True)
    return " AND ".join(f"{left} = {right}" for left, right in pairs)


@contextmanager
def collecting(copy: Path, live: Path | None = None) -> Iterator[Delta]:
    """Open a copy to collect its difference from a store, which is applied when the block ends.

    Args:
        live: the file to compare with, attached as ``live``; None: call ``Delta.take`` instead.
    """
    with sqlite.translated_errors(), closing(opened(copy)) as raw:
        # A busy orchestrator may have many changed rows.
        raw.execute("PRAGMA temp_store = FILE")
        engine.watch(raw)
        if live is not None:
            raw.execute("ATTACH ? AS live", (str(live),))
        # A deferred transaction does not lock the live file.
        with sqlite.engine_of(raw, "BEGIN").connect() as connection, connection.begin():
            delta = Delta(Transaction(connection, engine.ENGINE))
            yield delta
            delta.apply()
    # Synchronise now, so that publishing does not wait for the disk.
    fsync(copy)


@contextmanager
def of_file(path: Path, copy: Path) -> Iterator[Delta]:
    """Collect the difference between one state of a file and its copy; see ``collecting``."""
    # ``store.files`` does not see files opened by ATTACH, so keep a connection open.
    with (
        closing(sqlite.connect(path, busy_timeout_ms=30_000)),
        collecting(copy, path) as delta,
    ):
        read = delta.connection.execute
        metadata.require_head(*read("SELECT version_num FROM live.alembic_version").fetchone())
        for table in delta.tables:
            delta.compare(table, f"live.{table.name}", ROWID)
            [(count,)] = read(f"SELECT count(*) FROM live.{table.name}")
            if not delta.is_complete(table, count):
                delta.compare_keys(table, f"live.{table.name}", ROWID)
            if not table.is_counted:
                delta.counts[table.name] = count
        delta.last_numbers = read("SELECT name, seq FROM live.sqlite_sequence").fetchall()
        yield delta
