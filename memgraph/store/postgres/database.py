"""An open schema, with concurrent readers and one writer at a time.

Writers take a lock of this process, then the advisory lock of the schema, which is released with
the transaction. So the writers of all processes wait in one queue. Each reader sees one snapshot.
Connections are shared by the schemas of a server: each transaction first sets its schema.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import psycopg
import sqlalchemy as sa
from psycopg.pq import TransactionStatus
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from memgraph.errors import DatabaseMissing, DatabaseReplaced
from memgraph.paths import Stamp
from memgraph.store import postgres
from memgraph.store.engine import Database, wait_s
from memgraph.store.files import busy, held_by_thread
from memgraph.store.postgres import row_changes
from memgraph.store.postgres.dialect import Dialect
from memgraph.store.postgres.engine import ENGINE
from memgraph.store.snapshot import Snapshot, Transaction

if TYPE_CHECKING:
    from memgraph.config.schema import StorageSettings
    from memgraph.model.erasure import ServerTraces
    from memgraph.store.postgres.stores import PostgresStore

CONNECTIONS: Final = 4
MORE_CONNECTIONS: Final = 28
POOL_TIMEOUT_S: Final = 60
RECONNECT_S: Final = 5.0
"""How many seconds a transaction waits to begin if a server that was reachable no longer is."""
RECONNECT_PAUSE_S: Final = 0.1


_READING: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresServer:
    """The connections of this process to one database, shared by all of its schemas."""

    def __init__(self, url: sa.URL) -> None:
        self.url = url
        self.users = 0
        # The stamps at the last look of ``stores.PostgresStores``; None: it does not watch them.
        self.stamps: dict[str, Stamp] | None = None
        dialect = Dialect()
        pool = QueuePool(
            lambda: postgres.connect(url),  # type: ignore[arg-type]
            dialect=dialect,
            pool_size=CONNECTIONS,
            max_overflow=MORE_CONNECTIONS,
            timeout=POOL_TIMEOUT_S,
        )
        self._engine = sa.Engine(pool, dialect, url)
        self._is_known = False
        self._lock = threading.Lock()

    @contextmanager
    def begun(
        self, begin: str, shared: dict[str, Any] | None = None, *, watched: bool = False
    ) -> Iterator[Transaction]:
        """Run statements that begin a transaction, which ends with the block.

        A connection that broke while it was idle is replaced.

        Args:
            begin: the SQL that begins the transaction.
            shared: data shared by the readers of the schema; None: for a writer.
            watched: record row changes in the temporary table that ``begin`` creates.
        """
        connection = self._connected(begin, watched)
        try:
            transaction = Transaction(connection, ENGINE)
            transaction.driver.shared = shared
            with connection.begin() as ending:
                yield transaction
                if not begin.startswith(_READING):
                    with postgres.committing():
                        ending.commit()
        finally:
            connection.close()

    def _connected(self, begin: str, watched: bool) -> sa.Connection:
        tries = CONNECTIONS + MORE_CONNECTIONS + 1
        until = time.monotonic() + RECONNECT_S
        while True:
            tries -= 1
            try:
                connection = self._engine.connect()
            except (psycopg.OperationalError, DBAPIError) as error:
                # Nothing has begun, so wait: the server may be restarting or failing over.
                is_soon = self._is_known and postgres.is_away(error)
                if not is_soon or time.monotonic() >= until:
                    raise
                time.sleep(RECONNECT_PAUSE_S)
                continue
            raw: Any = connection.connection.driver_connection
            try:
                if not self._is_known:
                    self._know(connection)
                raw.is_watching = watched
                cursor = raw.execute(begin)
                while cursor.nextset():
                    pass
                raw.found = cursor.fetchone() if cursor.description else None
            except BaseException as error:
                is_broken = raw.closed
                if is_broken:
                    connection.invalidate()
                connection.close()
                if not (is_broken and tries and isinstance(error, psycopg.Error)):
                    raise
            else:
                return connection

    def _know(self, connection: sa.Connection) -> None:
        # Initialise the dialect from the server once, as ``create_engine`` would.
        with self._lock:
            if not self._is_known:
                self._engine.dialect.initialize(connection)
                connection.rollback()
                self._is_known = True

    def close(self) -> None:
        """Close all idle connections."""
        self._engine.pool.dispose()


_SERVERS: dict[tuple[int, sa.URL], PostgresServer] = {}
_SERVERS_LOCK = threading.Lock()


def take_server(url: sa.URL) -> PostgresServer:
    """Return the shared server for a URL; release it with ``give_back``."""
    # The process id is part of the key, because a forked process needs its own connections.
    key = os.getpid(), url
    with _SERVERS_LOCK:
        if key not in _SERVERS:
            _SERVERS[key] = PostgresServer(url)
        _SERVERS[key].users += 1
        return _SERVERS[key]


def stamp_of(url: sa.URL, orchestrator_id: str) -> Stamp | None:
    """Return an orchestrator's stamp at the last look at its server; None if it is not watched."""
    server = _SERVERS.get((os.getpid(), url))
    if server is None or server.stamps is None:
        return None
    return server.stamps.get(orchestrator_id, ())


def give_back(server: PostgresServer) -> None:
    """Release a server; close its connections after the last release."""
    with _SERVERS_LOCK:
        server.users -= 1
        if not server.users:
            _SERVERS.pop((os.getpid(), server.url), None)
            server.close()


@contextmanager
def using(url: sa.URL) -> Iterator[PostgresServer]:
    """Take a server for the block, and release it afterwards."""
    server = take_server(url)
    try:
        yield server
    finally:
        give_back(server)


@contextmanager
def begun(url: sa.URL, begin: str) -> Iterator[Transaction]:
    """Run statements that begin a transaction on a server, and translate the driver's errors."""
    with postgres.translated_errors(), using(url) as server, server.begun(begin) as transaction:
        yield transaction


IDLE_S: Final = 10.0
"""How many seconds at least a write transaction may be idle; others have given up long before."""
_HOLDER: Final = (
    "SELECT a.application_name FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)"
    " WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1"
    " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND l.classid = {high} AND l.objid = {low}"
)
COMMITS_BETWEEN_FOLDS: Final = 8
LEAST_GROWTH: Final = 200
_ANALYZED: Final = ("memories", "memory_words", "memory_edges", "memory_sources", "memory_entities")
# The planner's estimate of the number of memories, and the actual number, roughly.
_GROWN: Final = (
    "SELECT (SELECT reltuples FROM pg_class WHERE oid = 'memories'::regclass),"
    " (SELECT coalesce(max(pk), 0) FROM memories)"
)
# Our statements define the order of joins, and each step has an index. Without these settings the
# server's estimates for lists and JSON lead to table scans, to JIT compilation (a third of a
# second), and to parallel workers, each of which takes milliseconds to start.
_PLANNING: Final = (
    " SET LOCAL jit = off; SET LOCAL max_parallel_workers_per_gather = 0;"
    " SET LOCAL join_collapse_limit = 1; SET LOCAL enable_seqscan = off;"
    " SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off;"
    " SET LOCAL plan_cache_mode = force_generic_plan;"
)


def reading(schema: str) -> str:
    """Return the SQL that begins a snapshot."""
    return (
        f"{_READING};"
        f" SET LOCAL search_path TO {postgres.quoted(schema)};{_PLANNING} {found(schema)}"
    )


def writing(
    schema: str, *, wait_ms: int, durable: bool = True, watched: bool = False, idle_ms: int = 0
) -> str:
    """Return the SQL that begins a write transaction, with the lock of the schema.

    It is READ COMMITTED, because a snapshot taken before the lock would be outdated.

    Args:
        wait_ms: the maximum wait for the lock.
        durable: wait for the disk at the commit.
        watched: create the temporary table for row changes. Every transaction does so, because a
            pooler may give each one another session.
        idle_ms: how long it may be idle until the server ends it, so that a frozen process does not
            hold the lock for ever; 0: for any time.
    """
    return (
        f"BEGIN; SET LOCAL search_path TO {postgres.quoted(schema)};"
        f"{row_changes.MAKE if watched else ''}"
        # Flush the counters that ``stores.PostgresStores`` watches, which may be seconds late.
        " SELECT pg_stat_force_next_flush();"
        f" SET LOCAL lock_timeout = {max(wait_ms, 1)};"
        f" SET LOCAL idle_in_transaction_session_timeout = {idle_ms};"
        f" SET LOCAL synchronous_commit = {'on' if durable else 'off'};"
        f"{_PLANNING}"
        f" SELECT pg_advisory_xact_lock({postgres.lock_key(schema)}); {found(schema)}"
    )


def found(schema: str) -> str:
    """Return the query for the schema's oid, which becomes ``Connection.found``."""
    return f"SELECT oid FROM pg_namespace WHERE nspname = {postgres.literal(schema)}"


class PostgresDatabase(Database):
    """The open schema of one orchestrator; see ``engine.Database``."""

    def __init__(self, store: PostgresStore, settings: StorageSettings, identity: int) -> None:
        super().__init__(store, settings)
        self.schema = store.schema
        self._server = take_server(store.url)
        self._identity = identity
        self._durable = settings.synchronous == "FULL"
        name = postgres.literal(postgres.quoted(self.schema))
        self._end = f"SELECT to_regnamespace({name})::oid; COMMIT"
        self._shared: dict[str, Any] = {}
        self._uncut: list[str] = []

    @contextmanager
    def read(self) -> Iterator[Snapshot]:
        self._require_open()
        with (
            postgres.translated_errors(),
            self._server.begun(reading(self.schema), self._shared) as snapshot,
        ):
            self._require_same(identity_of(snapshot, self.schema))
            yield snapshot
            if snapshot.driver.info.transaction_status == TransactionStatus.INTRANS:
                # Names are not part of a snapshot: another schema may have taken this one's.
                self._require_same(*snapshot.driver.execute(self._end).fetchone())

    @contextmanager
    def write(
        self, after_commit: Callable[[], None] | None = None, *, durable: bool = True
    ) -> Iterator[Transaction]:
        self._require_open()
        is_durable = durable and self._durable
        seconds = wait_s(self._busy_timeout_ms)
        with (
            self._noting_full(),
            held_by_thread(self._lock, seconds) as left_s,
            postgres.translated_errors(),
        ):
            begin = writing(
                self.schema,
                wait_ms=round(left_s * 1000),
                durable=is_durable,
                watched=True,
                idle_ms=round(max(IDLE_S, 2 * seconds) * 1000),
            )
            with self._naming_holder(), self._server.begun(begin, watched=True) as transaction:
                self._require_same(identity_of(transaction, self.schema))
                with self._sealed(transaction):
                    yield transaction
            self._committed(after_commit)

    @contextmanager
    def _naming_holder(self) -> Iterator[None]:
        """Name the process that holds the lock of the schema in an error about it."""
        try:
            yield
        except (psycopg.errors.LockNotAvailable, DBAPIError) as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            if not isinstance(cause, psycopg.errors.LockNotAvailable):
                raise
            key = postgres.lock_key(self.schema) % 2**64
            query = _HOLDER.format(high=key >> 32, low=key % 2**32)
            with self._server.begun(f"BEGIN; {query}") as snapshot:
                [name] = snapshot.driver.found or ("",)
            raise busy(str(name).removeprefix(postgres.APPLICATION), sqlstate="55P03") from error

    def fold(self, *, after: int | None = None) -> None:
        """Update the planner's statistics if many rows were added; see ``engine.Database``.

        Autovacuum checks only once a minute.

        Raises:
            StorageError: the server failed.
        """
        if not self._is_fold_due(COMMITS_BETWEEN_FOLDS if after is None else after):
            return
        begin = f"BEGIN; SET LOCAL search_path TO {postgres.quoted(self.schema)}; {_GROWN}"
        with postgres.translated_errors(), self._server.begun(begin) as transaction:
            estimate, last = transaction.driver.found
            if last > 2 * max(estimate, 0) + LEAST_GROWTH:
                transaction.driver.execute(f"ANALYZE {', '.join(_ANALYZED)}")

    def cut(self, *, wait_ms: int) -> bool:
        """Rewrite every table without its dead rows; see ``engine.Database``.

        A plain VACUUM would leave their bytes in the free space of pages. A table is locked while
        it is rewritten. A table with readers is skipped and tried again, because waiting for its
        lock would block everybody else.
        """
        deadline = time.monotonic() + wait_ms / 1000
        if not self._uncut:
            drop_left_drafts(self._server)
            with self.read() as snapshot:
                self._uncut = tables_of(snapshot, self.schema)
        with postgres.translated_errors(), self._server.begun("SELECT 1") as transaction:
            while self._uncut:
                if rewrite_table(transaction.driver, self._uncut[-1]):
                    # Statistics contain samples of values, so renew them as well.
                    transaction.driver.execute(f"ANALYZE {self._uncut.pop()}")
                elif time.monotonic() < deadline:
                    time.sleep(CUT_PAUSE_S)
                else:
                    return False
        return True

    def contents(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        with self.read() as snapshot:
            for schema in (self.schema, *self._earlier(snapshot)):
                for table in tables_of(snapshot, schema):
                    yield table.replace('"', ""), _copied(snapshot, f"TABLE {table}")
            yield (
                "pg_stats",
                _copied(
                    snapshot,
                    "SELECT most_common_vals::text, histogram_bounds::text, most_common_elems::text"
                    " FROM pg_stats WHERE schemaname = current_schema()",
                ),
            )

    def copies(self, memory_ids: Collection[str]) -> list[str]:
        with self.read() as snapshot:
            return [
                schema
                for schema in self._earlier(snapshot)
                if snapshot.driver.execute(
                    f"SELECT 1 FROM {postgres.quoted(schema)}.memories WHERE memory_id = ANY(%s)"
                    " LIMIT 1",
                    (list(memory_ids),),
                ).fetchall()
            ]

    def remove_copy(self, name: str) -> None:
        with postgres.translated_errors(), self._server.begun("BEGIN") as transaction:
            drop_schema(transaction, name)

    def _earlier(self, snapshot: Snapshot) -> list[str]:
        """Return the names of the schemas that a restore or a move replaced."""
        rows = snapshot.driver.execute(
            "SELECT nspname FROM pg_namespace WHERE starts_with(nspname, %s) ORDER BY nspname",
            (postgres.replaced_prefix(self.orchestrator_id),),
        )
        return [name for (name,) in rows]

    def traces(self) -> ServerTraces:
        from memgraph.model.erasure import ServerTraces

        with self.read() as snapshot:
            [(position, mode, replicas, until)] = snapshot.driver.execute(
                "SELECT pg_current_wal_lsn()::text, current_setting('archive_mode'),"
                " (SELECT count(*) FROM (SELECT active_pid FROM pg_replication_slots"
                " WHERE active_pid IS NULL UNION ALL SELECT pid FROM pg_stat_replication) AS r),"
                # Two checkpoints later no recovery reads it.
                " CASE WHEN current_setting('wal_keep_size') = '0' THEN (1000 * (extract(epoch"
                " FROM now() + 2 * current_setting('checkpoint_timeout')::interval)))::bigint END"
            )
        archived = mode != "off"
        return ServerTraces(
            wal_until=position,
            wal_expected_until=None if archived or replicas else until,
            archived=archived,
            replicas=replicas,
        )

    def sizes(self) -> dict[str, int]:
        statement = (
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class"
            " WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
        )
        with self.read() as snapshot:
            [(size,)] = snapshot.driver.execute(statement)
        return {self.schema: int(size)}

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            give_back(self._server)

    def _require_same(self, identity: int | None) -> None:
        if identity != self._identity:
            raise DatabaseReplaced(
                f"the schema {self.schema} was replaced; close the orchestrator and reopen it"
            )


def identity_of(snapshot: Snapshot, schema: str) -> int:
    """Return the oid of the schema, as read when the transaction began.

    Raises:
        DatabaseMissing: the schema does not exist.
    """
    row = snapshot.driver.found
    if row is None:
        raise DatabaseMissing(
            f"the server has no schema {schema}; run: memgraph init", schema=schema
        )
    return int(row[0])


CUT_PAUSE_S: Final = 0.002
_STILL_DEAD: Final = re.compile(r"\D*(\d+)")
"""Matches the number of dead rows still visible to older snapshots in VACUUM's localised report."""


def rewrite_table(raw: Any, table: str) -> bool:
    """Rewrite a table with VACUUM FULL, on a connection outside of a transaction.

    Returns:
        True if nobody was reading it, and no older snapshot still sees its dead rows.
    """
    details: list[str] = []

    def note(diagnostic: Any) -> None:
        details.append(diagnostic.message_detail or "")

    raw.add_notice_handler(note)
    try:
        raw.execute(f"VACUUM (FULL, VERBOSE, SKIP_LOCKED) {table}")
    finally:
        raw.remove_notice_handler(note)
    numbers = [match.group(1) for match in map(_STILL_DEAD.match, details) if match]
    return numbers == ["0"]


def tables_of(snapshot: Snapshot, schema: str) -> list[str]:
    """Return the qualified names of a schema's tables."""
    rows = snapshot.driver.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = %s ORDER BY tablename", (schema,)
    )
    return [f"{postgres.quoted(schema)}.{postgres.quoted(name)}" for (name,) in rows]


def _copied(snapshot: Snapshot, query: str) -> Iterator[bytes]:
    """Yield the result of a query in binary form: texts in UTF-8, bytes unchanged."""
    with (
        snapshot.driver.cursor() as cursor,
        cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT binary)") as rows,
    ):
        for row in rows:
            yield bytes(row)


DRAFT: Final = "memgraph~draft_"
_DRAFTS: Final = f"SELECT nspname FROM pg_namespace WHERE starts_with(nspname, '{DRAFT}')"


def draft_key(name: str) -> int:
    """Return the key of the lock that is held as long as a schema is a draft."""
    # It differs from the lock for writing the schema, which filling the draft needs.
    return postgres.lock_key(f"draft {name}")


def drop_left_drafts(server: PostgresServer) -> None:
    """Drop the drafts of processes that died."""
    with postgres.translated_errors(), server.begun("BEGIN") as transaction:
        for (name,) in transaction.driver.execute(_DRAFTS).fetchall():
            is_free = f"SELECT pg_try_advisory_xact_lock({draft_key(name)})"
            if transaction.driver.execute(is_free).fetchone()[0]:
                drop_schema(transaction, name)


def drop_schema(transaction: Transaction, name: str) -> None:
    """Drop a schema with all that is in it, if it exists."""
    transaction.driver.execute(f"DROP SCHEMA IF EXISTS {postgres.quoted(name)} CASCADE")
