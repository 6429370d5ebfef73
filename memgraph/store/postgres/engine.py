"""PostgreSQL as a ``memgraph.store.engine.Engine``: operations on snapshots and transactions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Final

import psycopg
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from memgraph.errors import StorageError
from memgraph.store import postgres
from memgraph.store.engine import Deadline, DeadlinePassed, Engine, RowChange
from memgraph.store.postgres import indexes, row_changes, schema
from memgraph.store.postgres.dialect import DIALECT
from memgraph.store.postgres.indexes import PostgresVectorIndex
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.statements import CompiledStatement
from memgraph.store.vector_index import VectorIndex

if TYPE_CHECKING:
    from memgraph.store.vector_cache import HeldVectors

_SCHEMA_FAULTS: Final = frozenset({"42P01", "42703", "42883", "3F000"})


class PostgresEngine(Engine):
    """Implements ``memgraph.store.engine.Engine`` with the functions of this package."""

    dialect = DIALECT
    placeholder = "%s"
    phrases = indexes
    translated_errors = staticmethod(postgres.translated_errors)

    def vectors(self, snapshot: Snapshot, cache: HeldVectors | None = None) -> VectorIndex:
        return PostgresVectorIndex(snapshot, cache)

    @contextmanager
    def deadlines(self, snapshot: Snapshot) -> Iterator[Deadline]:
        execute = snapshot.driver.execute
        # Use one savepoint, and set the timeout only when it changes, to save round trips.
        current_ms: int | None = None

        @contextmanager
        def deadline(ms: int) -> Iterator[None]:
            nonlocal current_ms
            if current_ms != ms:
                begin = "SAVEPOINT deadline; " if current_ms is None else ""
                execute(f"{begin}SET LOCAL statement_timeout = {max(ms, 1)}")
                current_ms = ms
            try:
                yield
            except (psycopg.errors.QueryCanceled, DBAPIError) as error:
                cause = error.orig if isinstance(error, DBAPIError) else error
                if not isinstance(cause, psycopg.errors.QueryCanceled):
                    raise
                # The rollback keeps the savepoint, and resets the timeout.
                execute("ROLLBACK TO SAVEPOINT deadline")
                current_ms = 0
                raise DeadlinePassed from error

        yield deadline
        if current_ms is not None:
            execute("RELEASE SAVEPOINT deadline; SET LOCAL statement_timeout = 0")

    def row_changes(self, transaction: Transaction) -> list[RowChange]:
        return row_changes.take(transaction.driver)

    def columns(self, snapshot: Snapshot, table: str) -> tuple[str, ...]:  # noqa: ARG002
        return row_changes.columns_of(table)

    def reindex(self, transaction: Transaction) -> int:
        execute = transaction.driver.execute
        for (table,) in execute(
            "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = current_schema()"
        ).fetchall():
            execute(f"REINDEX TABLE {table}")
        return sum(name.startswith("index ") for name in self.schema(transaction))

    def dangling(self, snapshot: Snapshot) -> Iterator[tuple[str, int | None, str]]:
        for table, parent, statement in _references():
            for _ in statement.rows(snapshot):
                yield table, None, parent

    def schema(self, snapshot: Snapshot) -> dict[str, str]:
        return schema.described(snapshot.driver)

    def expected_schema(self) -> dict[str, str]:
        return schema.expected()

    def is_schema_fault(self, error: StorageError) -> bool:
        return error.details.get("sqlstate") in _SCHEMA_FAULTS


@cache
def _references() -> tuple[tuple[str, str, CompiledStatement], ...]:
    """Return (table, referenced table, query for violated references) of each foreign key."""
    results = []
    for table in schema.tables():
        for foreign_key in table.foreign_keys:
            child, parent = table.alias("c"), foreign_key.column.table.alias("p")
            is_parent = parent.c[foreign_key.column.name] == child.c[foreign_key.parent.name]
            dangling_rows = sa.select(sa.literal(1)).select_from(child)
            dangling_rows = dangling_rows.where(child.c[foreign_key.parent.name].is_not(None))
            dangling_rows = dangling_rows.where(~sa.exists().where(is_parent).correlate(child))
            results.append(
                (table.name, foreign_key.column.table.name, CompiledStatement(dangling_rows))
            )
    return tuple(results)


ENGINE: Final[Engine] = PostgresEngine()
