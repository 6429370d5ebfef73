"""SQLite as a ``memgraph.store.engine.Engine``: operations on snapshots and transactions."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pysqlite3.dbapi2 as driver
import sqlalchemy as sa
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.selectable import Lateral

from memgraph.errors import DatabaseCorrupt, StorageError
from memgraph.model.columns import stored_type
from memgraph.model.tables import metadata as models
from memgraph.store import metadata, sqlite, whole_tables
from memgraph.store.engine import Deadline, DeadlinePassed, Engine, EngineDamage, RowChange
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.sqlite import indexes
from memgraph.store.sqlite.indexes import SqliteVectorIndex
from memgraph.store.statements import (
    GreatestOf,
    JsonEach,
    JsonElement,
    JsonMember,
    JsonNumbers,
    LeastOf,
    OrderedJoin,
    RawText,
    RowPlace,
    StoredText,
    Unindexed,
    arguments,
)
from memgraph.store.text_index import PhraseMatches
from memgraph.store.vector_index import VectorIndex
from memgraph.store.whole_tables import DigestedColumns

if TYPE_CHECKING:
    from memgraph.store.vector_cache import HeldVectors

APPLICATION_ID = 0x4D474D47  # "MGMG"
MAX_MESSAGES = 20
_OF_INDEX = " index "


def _text_or_bytes(text: bytes) -> str | bytes:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text


def _damage(message: str) -> EngineDamage:
    if "fts5" in message.lower():
        return EngineDamage("the full-text index is damaged", "fts")
    for of_row in ("CHECK constraint failed in ", " value in "):
        _, is_of_row, column = message.partition(of_row)
        if is_of_row:
            return EngineDamage(message, row=(column.partition(".")[0], None))
    # Such as "row 7 missing from index …" and "wrong # of entries in index …".
    return EngineDamage(message, "indexes" if _OF_INDEX in message else None)


def _damaged_rows(snapshot: Snapshot) -> Iterator[EngineDamage]:
    """Yield a damage for each value whose type is not that of its column."""
    for table in models.sorted_tables:
        stored = set(columns_of(snapshot.driver, table.name))
        columns = {column.name: column.type for column in table.columns if column.name in stored}
        wrong = [f'{_is_wrong(name, kind)} AS "{name}"' for name, kind in columns.items()]
        if not wrong:
            continue
        has_rowid = table.dialect_options["sqlite"]["with_rowid"]
        any_wrong = " OR ".join(f'"{name}"' for name in columns)
        rows = snapshot.driver.execute(
            f"SELECT * FROM (SELECT {'rowid' if has_rowid else 'NULL'}, {', '.join(wrong)}"
            f' FROM "{table.name}") WHERE {any_wrong}'
        )
        for number, *cells in rows:
            for name, is_wrong in zip(columns, cells, strict=True):
                if is_wrong:
                    message = f"a value in {table.name}.{name} has a wrong type"
                    yield EngineDamage(message, row=(table.name, number))


def _is_wrong(name: str, kind: sa.types.TypeEngine[Any]) -> str:
    fitting = {bytes: "'blob'", int: "'integer'", str: "'text'"}
    expected = fitting.get(stored_type(kind), "'real', 'integer'")  # type: ignore[arg-type]
    return f"typeof(\"{name}\") NOT IN ({expected}, 'null')"


def schema(snapshot: Snapshot) -> dict[str, str]:
    """Return the statement that created each table, index and trigger, by ``type name``."""
    rows = snapshot.driver.execute(
        "SELECT type || ' ' || name, sql FROM sqlite_schema"
        " WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    )
    return {str(name): " ".join(str(statement).split()) for name, statement in rows}


def begin(connection: Any) -> None:
    """Set the application id of an empty file, and disable its journal and its syncs."""
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


_TABLE = "row_changes"
_FUNCTION = "memgraph_row_digest"
_TAKE = f"SELECT name, sign, digest FROM temp.{_TABLE}"


def columns_of(connection: Any, table: str) -> tuple[str, ...]:
    """Return the names of a table's columns in the order of their creation."""
    return tuple(row[1] for row in connection.execute(f"PRAGMA main.table_info({table})"))


def watch(connection: Any) -> None:
    """Start recording the row changes of a driver connection that is not in a transaction.

    Do nothing if it already records them.
    """
    if _is_watching(connection):
        return
    execute = connection.execute
    # Without this, REPLACE would not fire triggers for the rows that it removes.
    execute("PRAGMA recursive_triggers = ON")
    connection.create_function(_FUNCTION, -1, whole_tables.row_digest, deterministic=True)
    execute(f"CREATE TEMP TABLE {_TABLE} (name TEXT, sign INTEGER, digest BLOB)")
    for digested in whole_tables.digested_columns(lambda table: columns_of(connection, table)):
        listed = ", ".join(digested.columns)
        removed, added = _record_change(digested, -1, "OLD"), _record_change(digested, 1, "NEW")
        for event, body in (
            ("INSERT", added),
            ("DELETE", removed),
            (f"UPDATE OF {listed}", f"{removed}; {added}"),
        ):
            kind = event.partition(" ")[0].lower()
            execute(
                f"CREATE TEMP TRIGGER IF NOT EXISTS watch_{digested.table}_{kind}"
                f" AFTER {event} ON main.{digested.table} BEGIN {body}; END"
            )


def _record_change(digested: DigestedColumns, sign: int, row: str) -> str:
    values = ", ".join(f"{row}.{column}" for column in digested.columns)
    digest = f"{_FUNCTION}('{digested.table}', {values})"
    return f"INSERT INTO {_TABLE} VALUES ('{digested.table}', {sign}, {digest})"


def take(connection: Any) -> list[RowChange]:
    """Return the row changes of this transaction since the last call, and forget them."""
    try:
        changes: list[RowChange] = connection.execute(_TAKE).fetchall()
    except driver.OperationalError:
        if _is_watching(connection):
            raise
        return []
    if changes:
        connection.execute(f"DELETE FROM temp.{_TABLE}")
    return changes


def _is_watching(connection: Any) -> bool:
    rows = connection.execute("SELECT 1 FROM temp.sqlite_schema WHERE name = ?", (_TABLE,))
    return rows.fetchone() is not None


class _Compiler(SQLiteCompiler):
    def visit_bindparam(self, bindparam: Any, *rest: Any, **options: Any) -> Any:
        # A ``value`` is required and bound later; other parameters become literals.
        if not bindparam.required:
            options["literal_binds"] = True
        return super().visit_bindparam(bindparam, *rest, **options)  # type: ignore[no-untyped-call]

    def visit_unary(self, unary: Any, *rest: Any, **options: Any) -> Any:
        text = super().visit_unary(unary, *rest, **options)  # type: ignore[no-untyped-call]
        if unary.operator is sa.sql.operators.exists:
            # SELECT * would keep SQLite from using a covering index.
            return text.replace("EXISTS (SELECT * ", "EXISTS (SELECT 1 ", 1)
        return text

    def get_from_hint_text(self, table: Any, text: Any) -> Any:  # noqa: ARG002
        return text


class _Dialect(SQLiteDialect_pysqlite):
    statement_compiler = _Compiler
    supports_statement_cache = True


DIALECT: Final = _Dialect(paramstyle="named", dbapi=driver)


@compiles(OrderedJoin, "sqlite")
def _cross_join(join: OrderedJoin, compiler: Any, **options: Any) -> str:
    inner = options | {"asfrom": True, "from_linter": None}
    left = join.left._compiler_dispatch(compiler, **inner)
    right = join.right._compiler_dispatch(compiler, **inner)
    on = compiler.process(join.onclause)
    return f"{left} CROSS JOIN {right} ON {on}"


@compiles(Unindexed, "sqlite")
def _unindexed(construct: Unindexed, compiler: Any, **options: Any) -> str:
    [column] = arguments(construct, compiler, options)
    return f"+{column}"


@compiles(GreatestOf, "sqlite")
@compiles(LeastOf, "sqlite")
def _extreme(construct: GreatestOf | LeastOf, compiler: Any, **options: Any) -> str:
    name = "max" if isinstance(construct, GreatestOf) else "min"
    return f"{name}({', '.join(arguments(construct, compiler, options))})"


@compiles(JsonMember, "sqlite")
def _member(construct: JsonMember, compiler: Any, **options: Any) -> str:
    column, key = construct.clauses
    return f"({compiler.process(column, **options)} ->> '$.{key.value}')"


@compiles(JsonElement, "sqlite")
def _element(construct: JsonElement, compiler: Any, **options: Any) -> str:
    array, index = arguments(construct, compiler, options)
    return f"({array} ->> {index})"


@compiles(JsonNumbers, "sqlite")
def _json_each(construct: JsonEach, compiler: Any, **options: Any) -> str:
    [array] = arguments(construct, compiler, options)
    return f"json_each({array})"


@compiles(StoredText, "sqlite")
def _as_read(construct: StoredText, compiler: Any, **options: Any) -> str:  # noqa: ARG001
    return "NULL"


@compiles(RawText, "sqlite")
def _raw_text(construct: RawText, compiler: Any, **options: Any) -> str:
    [column] = arguments(construct, compiler, options)
    return f"CAST({column} AS BLOB)"


@compiles(PhraseMatches, "sqlite")
def _phrase_matches(construct: PhraseMatches, compiler: Any, **options: Any) -> str:
    [match] = arguments(construct, compiler, options)
    return f"(SELECT rowid AS pk, rank FROM memory_fts WHERE memory_fts MATCH {match})"


@compiles(Lateral, "sqlite")
def _lateral(lateral: Lateral, compiler: Any, **options: Any) -> str:
    # SQLite has no LATERAL, but a table-valued function may read a scalar subquery. IN would make
    # a temporary table for each row, which takes longer than the lookups.
    select: Any = lateral.element
    query = compiler.process(select.element, **options | {"asfrom": True, "lateral": True})
    name = compiler.preparer.format_alias(lateral, lateral.name)
    return f"json_each((SELECT json_group_array(value) FROM ({query}))) AS {name}"


@compiles(RowPlace, "sqlite")
def _place(place: RowPlace, compiler: Any, **options: Any) -> str:
    rowid = sa.column("rowid", sa.Integer, _selectable=place.table)
    return str(compiler.process(rowid, **options))


# The clock is checked about every 100 µs.
_STEPS_BETWEEN_LOOKS = 20_000


class SqliteEngine(Engine):
    """The functions of this package as a ``memgraph.store.engine.Engine``."""

    dialect = DIALECT
    placeholder = "?"
    phrases = indexes
    translated_errors = staticmethod(sqlite.translated_errors)
    schema = staticmethod(schema)

    def vectors(self, snapshot: Snapshot, cache: HeldVectors | None = None) -> VectorIndex:
        return SqliteVectorIndex(snapshot, cache)

    @contextmanager
    def thorough(self, transaction: Transaction) -> Iterator[None]:
        # By default SQLite only marks deleted data as free and leaves its bytes in place.
        transaction.driver.execute("PRAGMA secure_delete = ON")
        indexes.remove_words(transaction, at_once=True)
        try:
            yield
        finally:
            transaction.driver.execute("PRAGMA secure_delete = FAST")
        indexes.remove_words(transaction, at_once=False)

    def read_undecodable(self, snapshot: Snapshot) -> None:
        # The pooled connection keeps it: the next reader of a damaged row needs it as well.
        snapshot.driver.text_factory = _text_or_bytes

    def deadlines(self, snapshot: Snapshot) -> AbstractContextManager[Deadline]:
        return nullcontext(partial(self._deadline, snapshot.driver))

    @contextmanager
    def _deadline(self, raw: Any, ms: int) -> Iterator[None]:
        end = time.monotonic() + ms / 1000
        raw.set_progress_handler(lambda: time.monotonic() > end, _STEPS_BETWEEN_LOOKS)
        try:
            yield
        except driver.OperationalError as error:
            if getattr(error, "sqlite_errorcode", None) != driver.SQLITE_INTERRUPT:
                raise
            raise DeadlinePassed from error
        finally:
            raw.set_progress_handler(None, 0)

    def damage(self, snapshot: Snapshot) -> list[EngineDamage]:
        """Return the damage that SQLite's ``integrity_check`` reports, and values of wrong types.

        It checks the structure of the pages and compares indexes with their tables. A flipped byte
        in a text that has no index is not found.
        """
        try:
            with sqlite.translated_errors():
                rows = snapshot.driver.execute(f"PRAGMA integrity_check({MAX_MESSAGES})").fetchall()
        except DatabaseCorrupt as error:
            return [_damage(error.message)]
        messages = [str(message) for message, *_ in rows]
        found = [] if messages == ["ok"] else [_damage(message) for message in messages]
        return [*found, *_damaged_rows(snapshot)]

    def dangling(self, snapshot: Snapshot) -> Iterator[tuple[str, int | None, str]]:
        for table, rowid, parent, _ in snapshot.driver.execute("PRAGMA foreign_key_check"):
            yield str(table), rowid, str(parent)

    def reindex(self, transaction: Transaction) -> int:
        transaction.driver.execute("REINDEX")
        return sum(name.startswith("index ") for name in self.schema(transaction))

    def row_changes(self, transaction: Transaction) -> list[RowChange]:
        return take(transaction.driver)

    def columns(self, snapshot: Snapshot, table: str) -> tuple[str, ...]:
        return columns_of(snapshot.driver, table)

    def expected_schema(self) -> dict[str, str]:
        return dict(template(metadata.SCHEMA_HEAD).schema)

    def is_schema_fault(self, error: StorageError) -> bool:
        return error.details.get("sqlite") == "SQLITE_ERROR"


ENGINE: Final[Engine] = SqliteEngine()


# -- databases outside a ``Database``: templates, drafts, damaged files ---------------------------


class _Template(NamedTuple):
    content: bytes
    schema: dict[str, str]


@cache
def template(revision: str) -> _Template:
    """Return the content of a database with all tables and no rows, built once per process."""
    with tempfile.TemporaryDirectory(prefix="memgraph-") as folder:
        path = Path(folder) / "template.db"
        with closing(sqlite.connect(path, busy_timeout_ms=30_000, create=True)) as connection:
            begin(connection)
            with writing(connection) as wrapped:
                upgrade(wrapped, revision)
        with inspected(path) as snapshot:
            return _Template(path.read_bytes(), schema(snapshot))


def migrations_folder() -> Path:
    """Return the folder of the migrations: inside the package in a wheel, else next to it."""
    package = Path(__file__).resolve().parents[2]
    shipped = package / "_migrations"
    return shipped if shipped.is_dir() else package.parent / "migrations"


def upgrade(connection: sa.Connection, revision: str) -> None:
    """Run all migrations up to ``revision`` in the transaction of a connection."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


@contextmanager
def writing(connection: Any) -> Iterator[sa.Connection]:
    """Open a write transaction on a driver connection."""
    with (
        sqlite.engine_of(lambda: connection, "BEGIN IMMEDIATE").connect() as wrapped,
        wrapped.begin(),
    ):
        yield wrapped


@contextmanager
def inspected(path: Path) -> Iterator[Snapshot]:
    """Open a read-only snapshot on its own connection, even if the database is damaged.

    The file and its WAL stay as they are, unless the file is empty.

    Raises:
        StorageError: or the subclass for the specific problem.
    """
    with (
        sqlite.translated_errors(),
        closing(sqlite.connect(path, busy_timeout_ms=30_000, read_only=True)) as raw,
    ):
        # Let the sorting of a large journal use the disk, not memory.
        raw.execute("PRAGMA temp_store = FILE")
        # Decode damaged texts as far as possible.
        raw.text_factory = lambda text: text.decode("utf-8", "replace")
        with sqlite.engine_of(lambda: raw, "BEGIN").connect() as connection:
            # The transaction is rolled back, because damaged pages make even an empty COMMIT fail.
            connection.begin()
            yield Snapshot(connection, ENGINE)


@contextmanager
def alone(path: Path) -> Iterator[Transaction]:
    """Open a write transaction on a file that nobody else uses."""
    with (
        sqlite.translated_errors(),
        closing(sqlite.connect(path, busy_timeout_ms=5_000)) as raw,
        writing(raw) as connection,
    ):
        yield Transaction(connection, ENGINE)
