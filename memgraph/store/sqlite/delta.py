"""The tables of a file, and what a store has that an older copy of it has not.

The copy is a file, whatever the store is. Rows that differ and keys of rows that are gone are
collected in temporary tables of its connection; then the copy and a draft that was made of it
follow the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from memgraph.errors import DatabaseCorrupt
from memgraph.store import metadata, sqlite, whole_tables
from memgraph.store.snapshot import Transaction
from memgraph.store.sqlite import engine, provision
from memgraph.store.sqlite.engine import ENGINE
from memgraph.store.statements import row_count
from memgraph.store.whole_tables import COUNTED, SEALED, TableDigest

ROWID: Final = "rowid"
_PLACE: Final = "place"
"""The name of a row's number in temporary tables."""
DIGESTS: Final = "SELECT name, rows, digest FROM {}table_digests"
_TRIGGERS: Final = "SELECT name, sql FROM main.sqlite_schema WHERE type = 'trigger'"


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

    @property
    def is_digested(self) -> bool:
        """Return whether equal digests mean equal rows: no column or number is left out."""
        return self.is_counted and bool(self.key) and not {**SEALED, **COUNTED}[self.name]


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


class DigestedRows:
    """Rows on their way, and their digest when all of them have passed."""

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


def require_same(name: str, read: DigestedRows, rows: Iterable[Any]) -> None:
    """Raise DatabaseCorrupt: rows that were written are not those that were read."""
    written = DigestedRows(name, rows)
    for _ in written:
        pass
    if written.digest != read.digest:
        raise DatabaseCorrupt(f"the copy of {name} is not what was read", table=name)


class Delta:
    """The difference of a store and its copy.

    Attributes:
        connection: to the copy, in a transaction.
        last_numbers: the last number of each table that never gives one twice.
        counts: how many rows the store has in each table without a digest.
        size: how many rows differ.
    """

    def __init__(self, copy: Any) -> None:
        self.connection = copy
        self.tables = tables_of(copy)
        self.last_numbers: list[tuple[str, int]] = []
        self.counts: dict[str, int] = {}
        self.size = 0
        self._digests = _by_name(copy.execute(DIGESTS.format("main.")))
        # Nobody searches the copy: no trigger has to follow it.
        for name, _ in copy.execute(_TRIGGERS).fetchall():
            copy.execute(f"DROP TRIGGER main.{name}")
        for table in self.tables:
            as_collected = table.listed(ROWID).replace('"rowid"', f"rowid AS {_PLACE}")
            keys = ", ".join(table.keys(_PLACE))
            for kind, listed in (("came", table.listed(_PLACE)), ("went", keys)):
                copy.execute(
                    f"CREATE TEMP TABLE {kind}_{table.name} AS SELECT {listed}"
                    f" FROM (SELECT {as_collected} FROM main.{table.name} LIMIT 0)"
                )

    def differing(self, digests: Iterable[Any]) -> Iterator[Table]:
        """Yield the tables in which rows may differ, by the stored digests of the store."""
        theirs = _by_name(digests)
        for table in self.tables:
            digest = theirs.get(table.name)
            if not table.is_digested or digest is None or digest != self._digests.get(table.name):
                yield table

    def compare(self, table: Table, relation: str, place: str) -> None:
        """Collect the rows of a relation that the copy has not, or has otherwise."""
        theirs, ours = table.listed(place, "l."), table.listed(ROWID, "c.")
        self.size += self.connection.execute(
            f"INSERT INTO temp.came_{table.name} SELECT {theirs} FROM {relation} AS l"
            f" LEFT JOIN main.{table.name} AS c ON {_same(table, place, ROWID)}"
            f" WHERE ({theirs}) IS NOT ({ours})"
        ).rowcount

    def compare_keys(self, table: Table, relation: str, place: str) -> None:
        """Collect the keys of the copy that a relation with all keys has not."""
        self.size += self.connection.execute(
            f"INSERT INTO temp.went_{table.name} SELECT {', '.join(table.keys(ROWID, 'c.'))}"
            f" FROM main.{table.name} AS c LEFT JOIN {relation} AS l"
            f" ON {_same(table, place, ROWID)} WHERE {table.keys(place, 'l.')[0]} IS NULL"
        ).rowcount

    def take(self, table: Table, rows: Iterable[Any]) -> None:
        """Collect those of some rows that the copy has not, or has otherwise."""
        with self._arrived(table.names(_PLACE), rows) as relation:
            self.compare(table, relation, _PLACE)

    def take_keys(self, table: Table, rows: Iterable[Any]) -> None:
        """Collect the keys of the copy that are not among all keys of the store."""
        with self._arrived(table.keys(_PLACE), rows) as relation:
            self.compare_keys(table, relation, _PLACE)

    def is_complete(self, table: Table, count: int) -> bool:
        """Return whether a table has ``count`` rows with what was collected of it."""
        [(rows,)] = self.connection.execute(
            f"SELECT (SELECT count(*) FROM main.{table.name}) + count(*)"
            f" FROM temp.came_{table.name} AS l LEFT JOIN main.{table.name} AS c"
            f" ON {_same(table, _PLACE, ROWID)} WHERE {table.keys(ROWID, 'c.')[0]} IS NULL"
        )
        return bool(rows == count)

    def came(self, table: Table) -> Iterator[Any]:
        """Yield the rows that are new or changed."""
        return iter(self.connection.execute(f"SELECT * FROM temp.came_{table.name}"))

    def went(self, table: Table) -> list[Any]:
        """Return the keys of the rows that are gone."""
        keys: list[Any] = self.connection.execute(
            f"SELECT * FROM temp.went_{table.name}"
        ).fetchall()
        return keys

    def apply(self) -> None:
        """Let the copy follow."""
        for table in self.tables:
            keys = ", ".join(table.keys(ROWID))
            self.connection.execute(
                f"DELETE FROM main.{table.name} WHERE ({keys}) IN temp.went_{table.name}"
            )
            self.connection.execute(
                f"INSERT OR REPLACE INTO main.{table.name} ({table.listed(ROWID)})"
                f" SELECT * FROM temp.came_{table.name}"
            )

    @contextmanager
    def _arrived(self, names: list[str], rows: Iterable[Any]) -> Iterator[str]:
        self.connection.execute(f"CREATE TEMP TABLE arrived ({', '.join(names)})")
        marks = ", ".join("?" * len(names))
        self.connection.executemany(f"INSERT INTO temp.arrived VALUES ({marks})", rows)
        yield "temp.arrived"
        self.connection.execute("DROP TABLE temp.arrived")


def _same(table: Table, theirs: str, ours: str) -> str:
    pairs = zip(table.keys(theirs, "l."), table.keys(ours, "c."), strict=True)
    return " AND ".join(f"{left} = {right}" for left, right in pairs)


def _by_name(digests: Iterable[Any]) -> dict[str, Any]:
    return {name: (rows, digest) for name, rows, digest in digests}


@contextmanager
def collecting(copy: Path, live: Path | None = None) -> Iterator[Delta]:
    """Open a copy to collect in it; it follows the store when the block ends.

    Args:
        live: the file that is compared with it, as the database ``live``; None: rows are taken.
    """
    with sqlite.translated_errors(), closing(opened(copy)) as connection:
        # Of an orchestrator that is written to all the time much is collected.
        connection.execute("PRAGMA temp_store = FILE")
        if live is not None:
            connection.execute("ATTACH ? AS live", (str(live),))
        # Deferred: the other kinds would lock the file in use, too.
        connection.execute("BEGIN")
        delta = Delta(connection)
        yield delta
        delta.apply()
        connection.execute("COMMIT")


@contextmanager
def of_file(path: Path, copy: Path) -> Iterator[Delta]:
    """Collect what one state of a file has that its copy has not."""
    # What ATTACH opens is not known to ``store.files``.
    with (
        closing(sqlite.connect(path, busy_timeout_ms=30_000)),
        collecting(copy, path) as delta,
    ):
        read = delta.connection.execute
        [(revision,)] = read("SELECT version_num FROM live.alembic_version")
        metadata.require_head(revision)
        digests = read(DIGESTS.format("live.")).fetchall()
        for table in delta.differing(digests):
            delta.compare(table, f"live.{table.name}", ROWID)
            delta.compare_keys(table, f"live.{table.name}", ROWID)
            if not table.is_counted:
                [(delta.counts[table.name],)] = read(f"SELECT count(*) FROM live.{table.name}")
        delta.last_numbers = read("SELECT name, seq FROM live.sqlite_sequence").fetchall()
        yield delta


def follow(file: Path, delta: Delta) -> None:
    """Bring a draft that was made of the copy to the state of the store, and check that it is.

    Raises:
        DatabaseCorrupt: it is not; nothing was written.
    """
    with sqlite.translated_errors(), closing(opened(file)) as raw:
        engine.watch(raw)
        with provision.writing(raw) as connection:
            transaction = Transaction(connection, ENGINE)
            before = whole_tables.stored(transaction)
            # What they would write is copied; the index of phrases is not.
            triggers = raw.execute(f"{_TRIGGERS} AND name NOT LIKE 'memory_fts%'").fetchall()
            for name, _ in triggers:
                raw.execute(f"DROP TRIGGER main.{name}")
            for table in delta.tables:
                its = " AND ".join(f"{name} = ?" for name in table.keys(ROWID))
                raw.executemany(f"DELETE FROM main.{table.name} WHERE {its}", delta.went(table))
                listed = table.listed(ROWID)
                put = (
                    f"INSERT OR REPLACE INTO main.{table.name} ({listed})"
                    f" VALUES ({', '.join('?' * len(table.names(ROWID)))}) RETURNING {listed}"
                )
                rows = DigestedRows(table.name, delta.came(table))
                written = (row for values in rows for row in raw.execute(put, values).fetchall())
                require_same(table.name, rows, written)
            for _, statement in triggers:
                raw.execute(statement)
            raw.execute("DELETE FROM sqlite_sequence")
            put = "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)"
            raw.executemany(put, delta.last_numbers)
            require_followed(transaction, before, delta)


def require_followed(
    transaction: Transaction, before: Mapping[str, TableDigest], delta: Delta
) -> None:
    """Raise DatabaseCorrupt: what a transaction wrote does not lead to the state of the store.

    Args:
        before: the digests of the draft's rows before.
    """
    names = set(whole_tables.unexplained(transaction, before))
    names |= {name for name, count in delta.counts.items() if row_count(transaction, name) != count}
    if names:
        raise DatabaseCorrupt(
            f"rows of {', '.join(sorted(names))} were changed by something else than memgraph while"
            " they were copied; run: memgraph verify",
            tables=sorted(names),
        )
