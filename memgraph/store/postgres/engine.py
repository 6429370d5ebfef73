"""PostgreSQL as an ``engine.Engine``: what works on its snapshots and transactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

import psycopg
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from memgraph.errors import StorageError
from memgraph.store import postgres
from memgraph.store.engine import (
    ConstraintViolated,
    DeadlinePassed,
    Engine,
    EngineDamage,
    RowChange,
)
from memgraph.store.ports import HeldVectors, VectorCache, VectorIndex
from memgraph.store.postgres import phrases, row_changes, schema
from memgraph.store.postgres.dialect import DIALECT
from memgraph.store.postgres.phrases import PostgresPhraseIndex
from memgraph.store.postings import PostingsIndex
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.statements import CompiledStatement

if TYPE_CHECKING:
    from memgraph.store.vector_cache import LocalHeldVectors

_SCHEMA_FAULTS: Final = frozenset({"42P01", "42703", "42883", "3F000"})


class PostgresTextIndex(PostingsIndex):
    """The postings; what was stored is known to the index of phrases at once."""

    @staticmethod
    def add(transaction: Transaction, first: int, last: int) -> None:
        phrases.follow(transaction)
        PostingsIndex.add(transaction, first, last)


class PostgresEngine:
    """The functions of this package as a ``memgraph.store.engine.Engine``."""

    dialect = DIALECT
    placeholder = "%s"
    keeps_temporary_tables = False
    texts = PostgresTextIndex()
    phrases = PostgresPhraseIndex()
    translated_errors = staticmethod(postgres.translated_errors)

    def vectors(self, snapshot: Snapshot, held: HeldVectors | None = None) -> VectorIndex:
        from memgraph.store.postgres.vector_index import PostgresVectorIndex

        return PostgresVectorIndex(snapshot, cast("LocalHeldVectors | None", held))

    def vector_cache(self, capacity: int) -> VectorCache:
        from memgraph.store.vector_cache import LocalVectorCache

        return LocalVectorCache(capacity)

    @contextmanager
    def deadline(self, snapshot: Snapshot, ms: int) -> Iterator[None]:
        execute = snapshot.driver.execute
        execute(f"SAVEPOINT deadline; SET LOCAL statement_timeout = {max(ms, 1)}")
        try:
            yield
        except (psycopg.errors.QueryCanceled, DBAPIError) as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            if not isinstance(cause, psycopg.errors.QueryCanceled):
                raise
            execute("ROLLBACK TO SAVEPOINT deadline; RELEASE SAVEPOINT deadline")
            raise DeadlinePassed from error
        execute("RELEASE SAVEPOINT deadline; SET LOCAL statement_timeout = 0")

    def insert_each(
        self, transaction: Transaction, statement: str, rows: Sequence[Mapping[str, Any]]
    ) -> None:
        raw: Any = transaction.driver
        raw.execute("SAVEPOINT batch")
        try:
            raw.executemany(statement, rows)
        except psycopg.IntegrityError as error:
            raw.execute("ROLLBACK TO SAVEPOINT batch; RELEASE SAVEPOINT batch")
            raise ConstraintViolated(postgres.violated(error)) from error
        raw.execute("RELEASE SAVEPOINT batch")

    @contextmanager
    def thorough(self, transaction: Transaction) -> Iterator[None]:  # noqa: ARG002
        yield

    def row_changes(self, transaction: Transaction) -> list[RowChange]:
        return row_changes.take(transaction.driver)

    def columns(self, snapshot: Snapshot, table: str) -> tuple[str, ...]:  # noqa: ARG002
        return row_changes.columns_of(table)

    def damage(self, snapshot: Snapshot) -> list[EngineDamage]:  # noqa: ARG002
        return []

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
    """Return what finds rows that refer to nothing, with their table and the other."""
    results = []
    for table in schema.tables():
        for foreign_key in table.foreign_keys:
            child, to = table.alias("c"), foreign_key.column.table.alias("p")
            its = to.c[foreign_key.column.name] == child.c[foreign_key.parent.name]
            stray = sa.select(sa.literal(1)).select_from(child)
            stray = stray.where(child.c[foreign_key.parent.name].is_not(None))
            stray = stray.where(~sa.exists().where(its).correlate(child))
            results.append((table.name, foreign_key.column.table.name, CompiledStatement(stray)))
    return tuple(results)


ENGINE: Final[Engine] = PostgresEngine()
