"""What a store has that an older copy of it has not, and the copy brought up to it.

The copy is a file, whatever the store is. Rows that differ and keys of rows that are gone are
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
    """A table of a file: its columns, and its key; no key: its rows have a number that is no
    column.
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]

    def names(self, place: str, of: str = "") -> list[str]:
        """Return the quoted columns, that of the number under an engine's name."""
        return _quoted(self.columns if self.key else (*self.columns, place), of)

    def keys(self, place: str, of: str = "") -> list[str]:
        """Return the quoted columns by which rows are told apart."""
        return _quoted(self.key or (place,), of)

    def listed(self, place: str, of: str = "") -> str:
        """Return ``names`` for a statement."""
        return ", ".join(self.names(place, of))

    @property
    def order(self) -> str:
        """Return the place of the column by which rows are read, for ``ORDER BY``."""
        return "1" if self.key else str(len(self.columns) + 1)

    @property
    def is_counted(self) -> bool:
        """Return whether its rows are counted and digested with every write."""
        return self.name in SEALED or self.name in COUNTED


def _quoted(names: Iterable[str], of: str) -> list[str]:
    return [f'{of}"{name}"' for name in names]


def opened(file: Path) -> Any:
    """Connect to a file that nobody else sees yet."""
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
    """The difference of a store and its copy.

    Attributes:
        connection: to the copy.
        counts: how many rows the store has in each table without a digest.
        last_numbers: the last number of each table that never gives one twice.
        size: how many rows differ.
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
        """Collect the rows of a relation that the copy has not, or has otherwise."""
        theirs, ours = table.listed(place, "l."), table.listed(ROWID, "c.")
        self.size += self.connection.execute(
            f"INSERT INTO temp.came_{table.name} SELECT {theirs} FROM {relation} AS l"
            f" LEFT JOIN main.{table.name} AS c ON {_same(table, place)}"
            f" WHERE ({theirs}) IS NOT ({ours})"
        ).rowcount

    def compare_keys(self, table: Table, relation: str, place: str) -> None:
        """Collect the keys of the copy that a relation with all keys has not."""
        self.size += self.connection.execute(
            f"INSERT INTO temp.went_{table.name} SELECT {', '.join(table.keys(ROWID, 'c.'))}"
            f" FROM main.{table.name} AS c LEFT JOIN {relation} AS l ON {_same(table, place)}"
            f" WHERE {table.keys(place, 'l.')[0]} IS NULL"
        ).rowcount

    def take(self, table: Table, rows: Iterable[Any]) -> None:
        """Collect those of some rows that the copy has not, or has otherwise."""
        with self._arrived(table.names(_PLACE), rows) as relation:
            self.compare(table, relation, _PLACE)

    def take_keys(self, table: Table, rows: Iterable[Any]) -> None:
        """Collect the keys of the copy that are not among all keys of the store."""
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
        """Return whether the copy will have ``count`` rows with those that came."""
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
        """Return the keys of the rows that are gone."""
        return list(self.connection.execute(f"SELECT * FROM temp.went_{table.name}"))

    def apply(self) -> None:
        """Bring the copy to the state of the store.

        Raises:
            DatabaseCorrupt: its rows would not have the digests of the store.
        """
        execute = self.connection.execute
        before = whole_tables.stored(self._copy)
        # What they would write is in the delta; the index of phrases is not.
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
        """Raise DatabaseCorrupt: what was written does not lead to the digests of the store.

        Args:
            transaction: of the writes, which is watched.
            digests: of the rows before, or as they followed until now.
        """
        counts = self.counts.items()
        names = {name for name, count in counts if row_count(transaction, name) != count}
        names |= set(whole_tables.unexplained(transaction, digests))
        if names:
            raise DatabaseCorrupt(
                f"rows of {', '.join(sorted(names))} were changed by something else than memgraph"
                " while they were copied; run: memgraph verify",
                tables=sorted(names),
            )


def _same(table: Table, place: str) -> str:
    pairs = zip(table.keys(place, "l."), table.keys(ROWID, "c."), strict=True)
    return " AND ".join(f"{left} = {right}" for left, right in pairs)


@contextmanager
def collecting(copy: Path, live: Path | None = None) -> Iterator[Delta]:
    """Open a copy to collect what it lacks, which is applied when the block ends.

    Args:
        live: the file that is compared with it, as the database ``live``; None: rows are taken.
    """
    with sqlite.translated_errors(), closing(opened(copy)) as raw:
        # Of an orchestrator that is written to all the time much is collected.
        raw.execute("PRAGMA temp_store = FILE")
        engine.watch(raw)
        if live is not None:
            raw.execute("ATTACH ? AS live", (str(live),))
        # Deferred: the other kinds would lock the file in use, too.
        with sqlite.engine_of(raw, "BEGIN").connect() as connection, connection.begin():
            delta = Delta(Transaction(connection, engine.ENGINE))
            yield delta
            delta.apply()
    # Else the disk would be waited for when it is published.
    fsync(copy)


@contextmanager
def of_file(path: Path, copy: Path) -> Iterator[Delta]:
    """Collect what one state of a file has that its copy has not; see ``collecting``."""
    # What ATTACH opens is not known to ``store.files``.
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
