"""The table of token buckets that all servers on a database share; see ``key_table``.

A row stores when a bucket will be full, by the clock of the database, because the clocks of servers
may differ. The table is UNLOGGED: after a crash of the database all buckets are full.
"""

from __future__ import annotations

import hashlib
import time
from typing import Any, Final

import psycopg
import sqlalchemy as sa

from memgraph.errors import InvalidConfig
from memgraph.store import postgres
from memgraph.store.postgres.database import using
from memgraph.store.postgres.key_table import SCHEMA

TABLE: Final = f"{SCHEMA}.rates"
ANSWER_MS: Final = 500
SWEEP_S: Final = 60.0
# Several statements in one message are one transaction, which ends before the answer is sent, so
# that no row stays locked during the round trip.
_BOUNDED: Final = f"SET LOCAL statement_timeout = {ANSWER_MS}; "
# A time later than a full burst from now was stored before the clock was set back, so cap it.
_TAKE: Final = (
    f"INSERT INTO {TABLE} AS r (source, full_at, granted)"
    " SELECT '\\x{source}'::bytea, clock.now + {tokens} * {interval}::float8, {tokens}"
    " FROM (SELECT extract(epoch FROM now())::float8 AS now) AS clock"
    " ON CONFLICT (source) DO UPDATE SET (full_at, granted) ="
    " (SELECT busy.until + room.tokens * {interval}::float8, room.tokens"
    " FROM (SELECT extract(epoch FROM now())::float8 AS now) AS clock,"
    " LATERAL (SELECT least(greatest(r.full_at, clock.now), clock.now + {burst}) AS until) AS busy,"
    " LATERAL (SELECT least({tokens},"
    " floor((clock.now + {burst} - busy.until) / {interval} + 1e-6)) AS tokens) AS room)"
    " RETURNING granted,"
    " greatest(full_at + {interval} - {burst} - extract(epoch FROM now())::float8, 0)"
)
_HAS_SCHEMA: Final = f"SELECT to_regnamespace('{SCHEMA}') IS NOT NULL"
_MAKE: Final = f"""
    CREATE UNLOGGED TABLE IF NOT EXISTS {TABLE}
        (source bytea PRIMARY KEY, full_at float8 NOT NULL, granted integer NOT NULL);
    REVOKE ALL ON {TABLE} FROM PUBLIC
"""
# A full bucket needs no row. Rows that other processes are changing are skipped.
_SWEEP: Final = (
    f"DELETE FROM {TABLE} WHERE source IN (SELECT source FROM {TABLE}"
    " WHERE full_at < extract(epoch FROM now()) LIMIT 10000 FOR UPDATE SKIP LOCKED)"
)


class RateTable:
    """The token buckets in a database."""

    def __init__(self, url: sa.URL) -> None:
        self._url = url
        self._sweep_at = time.monotonic() + SWEEP_S

    def take(
        self, source: str, tokens: int, *, interval_s: float, burst_s: float
    ) -> tuple[int, float]:
        """Take up to ``tokens`` tokens from the bucket of a source.

        Args:
            source: any text; only its digest is stored.
            tokens: at most the capacity; 0 takes none.
            interval_s: the time between two tokens, in seconds.
            burst_s: the capacity, as the seconds in which an empty bucket fills up.

        Returns:
            The number of tokens taken, and the seconds until another one is available, or 0.

        Raises:
            InvalidConfig: this user may not create or change the table.
            StorageError: the database failed, or did not answer in time.
        """
        digest = hashlib.blake2b(source.encode("utf-8", "surrogatepass"), digest_size=16)
        statement = _TAKE.format(
            source=digest.hexdigest(), tokens=tokens, interval=interval_s, burst=burst_s
        )
        with postgres.translated_errors():
            try:
                row = self._row(statement)
            except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
                self._make()
                row = self._row(statement)
            now = time.monotonic()
            if now >= self._sweep_at:
                self._sweep_at = now + SWEEP_S
                self._row(_SWEEP)
        granted, wait_s = row
        return granted, wait_s

    def _row(self, statement: str) -> Any:
        try:
            with using(self._url) as server, server.begun(_BOUNDED + statement) as connection:
                raw: Any = connection.connection.driver_connection
                return raw.found
        except psycopg.errors.InsufficientPrivilege as error:
            raise InvalidConfig(f"this user may not make or change the table {TABLE}") from error

    def _make(self) -> None:
        # Check first, because a user who may create tables may lack the right to create schemas.
        schema = "" if self._row(_HAS_SCHEMA)[0] else f"CREATE SCHEMA IF NOT EXISTS {SCHEMA};"
        lock = f"SELECT pg_advisory_xact_lock({postgres.lock_key(SCHEMA)})"
        self._row(f"{lock}; {schema} {_MAKE}")
