"""A ``memgraph.store.engine.Store`` in a schema of a PostgreSQL database."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import psycopg
import sqlalchemy as sa
from sqlalchemy.pool import NullPool
from sqlmodel import Session

from memgraph.errors import DatabaseEmpty, DatabaseForeign, InvalidInput, OrchestratorExists
from memgraph.paths import DATABASE_NAME, Stamp, check_orchestrator_name
from memgraph.store import metadata, postgres
from memgraph.store.engine import Store
from memgraph.store.files import LOCK_TIMEOUT_S
from memgraph.store.postgres import copies, indexes, schema
from memgraph.store.postgres.database import (
    DRAFT,
    PostgresDatabase,
    begun,
    draft_key,
    drop_left_drafts,
    drop_schema,
    found,
    give_back,
    identity_of,
    reading,
    stamp_of,
    take_server,
    using,
    writing,
)
from memgraph.store.postgres.engine import ENGINE
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.sqlite.copies import move_aside
from memgraph.store.sqlite.stores import SqliteStore, copied

if TYPE_CHECKING:
    from memgraph.config.schema import StorageSettings

PROVISIONING_WAIT_MS = 5_000
LOCK_WAIT_MS: Final = round(LOCK_TIMEOUT_S * 1_000)
_LASTING: Final = "SET LOCAL idle_in_transaction_session_timeout = 0"
"""Disables the server's idle timeout, so that a session can hold a lock or a snapshot while another
copies."""


class PostgresStore:
    """One orchestrator's schema, or a draft of it.

    Args:
        url: the URL of the server's database, without a password.
        schema: the name of a draft's schema; None: the orchestrator's own schema.
        backup: the file into which a draft copies the backup that it is filled from.
    """

    engine = ENGINE

    def __init__(
        self,
        url: sa.URL,
        orchestrator_id: str,
        schema: str | None = None,
        *,
        backup: SqliteStore | None = None,
    ) -> None:
        self.url = url
        self._backup = backup
        self.orchestrator_id = orchestrator_id
        self.schema = postgres.schema_of(orchestrator_id) if schema is None else schema

    def files(self) -> tuple[Path, ...]:
        return ()

    def stamp(self) -> Stamp | None:
        return stamp_of(self.url, self.orchestrator_id)

    def exists(self) -> bool:
        with self._begun(reading(self.schema)) as snapshot:
            return snapshot.driver.found is not None

    def require_free(self) -> None:
        if self.exists():
            raise self._taken()

    def create(self, *, dimensions: int, now_ms: int) -> None:
        begin = writing(self.schema, wait_ms=PROVISIONING_WAIT_MS)
        with self._begun(begin) as transaction:
            if transaction.driver.found is not None:
                raise self._taken()
            self._make_tables(transaction)
            metadata.begin(transaction, self.orchestrator_id, dimensions, now_ms)

    def open(self, settings: StorageSettings) -> PostgresDatabase:
        with self.inspect() as snapshot:
            self._check(snapshot)
            identity = identity_of(snapshot, self.schema)
        return PostgresDatabase(self, settings, identity)

    def session(self, settings: StorageSettings) -> Session:  # noqa: ARG002
        with self.inspect() as snapshot:
            self._check(snapshot)
        # These are startup options: a transaction pooler such as PgBouncer rejects them, whereas a
        # SET would leak into the next client's session.
        path = postgres.quoted(self.schema)
        options = f"-c default_transaction_read_only=on -c search_path={path}"
        options_value = f"{self.url.query.get('options', '')} {options}"
        url = self.url.update_query_dict({"options": options_value})

        def connect() -> Any:
            return postgres.connect(url)

        engine = sa.create_engine("postgresql+psycopg://", creator=connect, poolclass=NullPool)
        return Session(engine)

    @contextmanager
    def locked(self) -> Iterator[Callable[[], None]]:
        with self._begun(writing(self.schema, wait_ms=LOCK_WAIT_MS)) as transaction:
            # The lock ends with its session, so the query fails once the lock is lost.
            yield lambda: transaction.driver.execute("SELECT 1")

    @contextmanager
    def inspect(self) -> Iterator[Snapshot]:
        with self._begun(reading(self.schema)) as snapshot:
            identity_of(snapshot, self.schema)
            yield snapshot

    @contextmanager
    def alone(self) -> Iterator[Transaction]:
        with self._begun(writing(self.schema, wait_ms=PROVISIONING_WAIT_MS)) as transaction:
            yield transaction
            indexes.index_texts(transaction)

    def back_up(
        self,
        file: Path,
        *,
        force: bool = False,
        stamp: Callable[[Transaction], None] | None = None,
        check: Callable[[Snapshot], None] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> int:
        """Copy one state of the schema into a file of SQLite; see ``engine.Store.back_up``."""

        def copy(draft: Path) -> None:
            with self.inspect() as snapshot:
                copies.write_file(snapshot.driver, draft, progress)

        return copied(copy, file, force=force, stamp=stamp, check=check)

    @contextmanager
    def draft(self, folder: Path) -> Iterator[Store]:
        with using(self.url) as server:
            drop_left_drafts(server)
        # No orchestrator's schema has this prefix.
        name = f"{DRAFT}{uuid.uuid4().hex}"
        # The lock is held as long as the draft is used: an unlocked draft is a crashed process's.
        begin = f"BEGIN; SELECT pg_advisory_xact_lock({draft_key(name)})"
        with TemporaryDirectory(prefix=".draft-", dir=folder) as temporary, self._begun(begin):
            backup = SqliteStore(Path(temporary) / DATABASE_NAME, self.orchestrator_id)
            try:
                yield PostgresStore(self.url, self.orchestrator_id, name, backup=backup)
            finally:
                with self._begun("BEGIN") as transaction:
                    drop_schema(transaction, name)

    def take(self, file: Path) -> str:
        return self._as_file().take(file)

    def admit(self) -> str:
        backup = self._as_file()
        name = backup.admit()
        with self._begun("BEGIN") as transaction:
            self._make_tables(transaction)
            copies.read_file(backup.path, transaction)
        return name

    def publish(
        self, draft: Store, *, aside: Path | None = None, files: Sequence[str] = ()
    ) -> str | None:
        assert isinstance(draft, PostgresStore)
        with self._begun("BEGIN") as transaction:
            replaced = None if aside is None else self._rename_aside(transaction)
            _rename(transaction, draft.schema, self.schema)
            if aside is not None:
                # After all statements: if one fails, the files stay as well.
                move_aside(aside.parent.parent / DATABASE_NAME, aside, files)
        return replaced

    def put_aside(self, folder: Path) -> str | None:  # noqa: ARG002
        with self._begun("BEGIN") as transaction:
            return self._rename_aside(transaction)

    def _as_file(self) -> SqliteStore:
        assert self._backup is not None, "only a draft can be filled from a backup"
        return self._backup

    def _rename_aside(self, transaction: Transaction) -> str | None:
        """Rename the schema and return its new name, or None if it does not exist."""
        if not transaction.driver.execute(found(self.schema)).fetchall():
            return None
        name = f"{postgres.replaced_prefix(self.orchestrator_id)}{uuid.uuid4().hex[:8]}"
        _rename(transaction, self.schema, name)
        return name

    def _make_tables(self, transaction: Transaction) -> None:
        name = postgres.quoted(self.schema)
        statements = schema.statements(metadata.SCHEMA_HEAD)
        transaction.driver.execute(
            f"CREATE SCHEMA {name}; SET LOCAL search_path TO {name}; {'; '.join(statements)}"
        )

    def _begun(self, begin: str) -> AbstractContextManager[Transaction]:
        first, _, rest = begin.partition(";")
        return begun(self.url, f"{first}; {_LASTING}; {rest}")

    def _check(self, snapshot: Snapshot) -> None:
        """Raise StorageError unless the schema is complete, this orchestrator's and at head."""
        has_facts = "SELECT to_regclass('memory_metadata') IS NOT NULL"
        if not snapshot.driver.execute(has_facts).fetchone()[0]:
            raise DatabaseEmpty(f"the schema {self.schema} has no tables; restore a backup")
        if metadata.get(snapshot, metadata.ORCHESTRATOR_KEY) != self.orchestrator_id:
            raise DatabaseForeign(
                f"the schema {self.schema} belongs to another orchestrator", schema=self.schema
            )
        metadata.require_head(metadata.revision(snapshot) or "")

    def _taken(self) -> OrchestratorExists:
        return OrchestratorExists(f"the schema already exists: {self.schema}", schema=self.schema)


def _rename(transaction: Transaction, schema: str, name: str) -> None:
    old, new = postgres.quoted(schema), postgres.quoted(name)
    transaction.driver.execute(f"ALTER SCHEMA {old} RENAME TO {new}")


# One row per schema, by which other processes notice a write. The statistics counters cost a writer
# neither a lock nor a row; NOTIFY would serialise all commits of the server.
_STAMPS: Final = """
    SELECT n.nspname, CAST(n.oid AS bigint), CAST(sum(
        pg_stat_get_tuples_inserted(c.oid) + pg_stat_get_tuples_updated(c.oid)) AS bigint)
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relname IN ('audit_log', 'job_runs') AND c.relkind = 'r'
        AND starts_with(n.nspname, 'memgraph_') AND has_schema_privilege(n.oid, 'USAGE')
    GROUP BY n.nspname, n.oid ORDER BY n.nspname
"""


class PostgresStores:
    """The orchestrators' schemas in one database.

    Attributes:
        stamps: the stamps of the orchestrators that the user may read, at the last ``look``;
            ``Store.stamp`` returns them.
    """

    def __init__(self, url: sa.URL) -> None:
        self._server = take_server(url)
        self._names: dict[str, str] = {}
        self.stamps: dict[str, Stamp] = {}

    def look(self) -> bool:
        """Update the stamps; return True if one of them changed.

        Raises:
            StorageError: the server cannot be queried.
        """
        with postgres.translated_errors(), self._server.begun("BEGIN READ ONLY") as snapshot:
            rows = snapshot.driver.execute(_STAMPS).fetchall()
            stamps: dict[str, Stamp] = {}
            for schema, number, count in rows:
                if (name := self._name_of(snapshot.driver, schema)) is not None:
                    stamps[name] = ((number, count),)
        changed = stamps != self.stamps
        self._server.stamps = self.stamps = stamps
        return changed

    def close(self) -> None:
        self._server.stamps = None
        give_back(self._server)

    def _name_of(self, connection: Any, schema: str) -> str | None:
        """Return the orchestrator that a schema belongs to, or None if it belongs to none."""
        name = self._names.get(schema, schema.removeprefix(postgres.PREFIX))
        if "~" in name:
            # The name was shortened; the full name is stored in the schema.
            table = f"{postgres.quoted(schema)}.memory_metadata"
            statement = f"SELECT value FROM {table} WHERE key = %s"
            try:
                with connection.transaction():
                    row = connection.execute(statement, (metadata.ORCHESTRATOR_KEY,)).fetchone()
            except psycopg.ProgrammingError:
                # The table does not exist, or reading it is not permitted.
                return None
            name = str(row[0]) if row else ""
        try:
            is_own = postgres.schema_of(check_orchestrator_name(name)) == schema
        except InvalidInput:
            is_own = False
        if not is_own:
            return None
        self._names[schema] = name
        return name
