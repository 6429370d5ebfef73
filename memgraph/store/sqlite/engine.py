"""SQLite as a ``memgraph.store.engine.Engine``: what works on its snapshots and transactions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast

import pysqlite3.dbapi2 as driver

from memgraph.errors import StorageError
from memgraph.store import sqlite
from memgraph.store.engine import ConstraintViolated, DeadlinePassed, Engine, RowChange
from memgraph.store.ports import HeldVectors, VectorCache, VectorIndex
from memgraph.store.postings import PostingsIndex
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.sqlite import full_text, inspection, row_changes
from memgraph.store.sqlite.dialect import DIALECT
from memgraph.store.sqlite.full_text import SqlitePhraseIndex

if TYPE_CHECKING:
    from memgraph.store.vector_cache import LocalHeldVectors

# A look at the clock every some 100 µs.
_STEPS_BETWEEN_LOOKS = 20_000


class SqliteEngine:
    """The functions of this package as a ``memgraph.store.engine.Engine``."""

    dialect = DIALECT
    placeholder = "?"
    keeps_temporary_tables = True
    texts = PostingsIndex()
    phrases = SqlitePhraseIndex()
    translated_errors = staticmethod(sqlite.translated_errors)
    damage = staticmethod(inspection.damage)
    dangling = staticmethod(inspection.dangling)
    schema = staticmethod(inspection.schema)

    def vectors(self, snapshot: Snapshot, cache: HeldVectors | None = None) -> VectorIndex:
        # With it comes numpy, which most commands do without.
        from memgraph.store.sqlite.vector_index import SqliteVectorIndex

        return SqliteVectorIndex(snapshot, cast("LocalHeldVectors | None", cache))

    def vector_cache(self, capacity: int) -> VectorCache:
        from memgraph.store.vector_cache import LocalVectorCache

        return LocalVectorCache(capacity)

    @contextmanager
    def thorough(self, transaction: Transaction) -> Iterator[None]:
        # By itself SQLite marks deleted data as free, and leaves the bytes where they are.
        transaction.driver.execute("PRAGMA secure_delete = ON")
        full_text.remove_words(transaction, at_once=True)
        try:
            yield
        finally:
            transaction.driver.execute("PRAGMA secure_delete = FAST")
        full_text.remove_words(transaction, at_once=False)

    @contextmanager
    def deadline(self, snapshot: Snapshot, ms: int) -> Iterator[None]:
        raw: Any = snapshot.driver
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

    def insert_each(
        self, transaction: Transaction, statement: str, rows: Sequence[Mapping[str, Any]]
    ) -> None:
        raw: Any = transaction.driver
        raw.execute("SAVEPOINT batch")
        try:
            raw.executemany(statement, rows)
        except driver.IntegrityError as error:
            raw.execute("ROLLBACK TO batch")
            raw.execute("RELEASE batch")
            raise ConstraintViolated(sqlite.violated(error)) from error
        raw.execute("RELEASE batch")

    def row_changes(self, transaction: Transaction) -> list[RowChange]:
        return row_changes.take(transaction.driver)

    def columns(self, snapshot: Snapshot, table: str) -> tuple[str, ...]:
        return row_changes.columns_of(snapshot.driver, table)

    def expected_schema(self) -> dict[str, str]:
        from memgraph.store.sqlite import provision

        return provision.expected_schema()

    def is_schema_fault(self, error: StorageError) -> bool:
        return error.details.get("sqlite") == "SQLITE_ERROR"


ENGINE: Final[Engine] = SqliteEngine()
