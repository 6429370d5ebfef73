"""The table with the access keys of all servers that share a database; see ``store.key_file``.

It is in the schema ``memgraph``, which belongs to no orchestrator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psycopg
import sqlalchemy as sa

from memgraph.errors import InvalidConfig
from memgraph.store import key_file, postgres
from memgraph.store.files import LOCK_TIMEOUT_S
from memgraph.store.postgres.database import begun, using, writing

SCHEMA: Final = "memgraph"
_IS_MADE: Final = f"SELECT to_regclass('{SCHEMA}.keys') IS NOT NULL"
_MAKE: Final = f"""
    CREATE SCHEMA IF NOT EXISTS {SCHEMA};
    CREATE TABLE IF NOT EXISTS {SCHEMA}.keys
        (name text PRIMARY KEY, version bigint NOT NULL, body text NOT NULL);
    REVOKE ALL ON {SCHEMA}.keys FROM PUBLIC
"""
_PUT: Final = (
    f"INSERT INTO {SCHEMA}.keys VALUES ('keys', 1, %s)"
    " ON CONFLICT (name) DO UPDATE SET version = keys.version + 1, body = excluded.body"
)


class KeyTable:
    """The keys in a database, with the interface of ``key_file.KeyFile``."""

    def __init__(self, url: sa.URL) -> None:
        self._url = url

    def __str__(self) -> str:
        return f"the table {SCHEMA}.keys"

    def stamp(self) -> key_file.Stamp | None:
        row = self._row("oid::bigint, version", "JOIN pg_namespace AS n ON n.nspname = 'memgraph'")
        return None if row is None else tuple(row)

    def read(self) -> list[dict[str, Any]]:
        row = self._row("body")
        return [] if row is None else key_file.parsed(row[0], str(self))

    @contextmanager
    def changing(self) -> Iterator[None]:
        with begun(self._url, writing(SCHEMA, wait_ms=round(LOCK_TIMEOUT_S * 1_000))):
            yield

    def write(self, keys: Sequence[dict[str, Any]]) -> None:
        with begun(self._url, "BEGIN") as transaction:
            execute = transaction.driver.execute
            # Check first, because a user who may write the table may lack the right to create it.
            if not execute(_IS_MADE).fetchone()[0]:
                execute(_MAKE)
            execute(_PUT, (key_file.rendered(keys, str(self)),))

    def _row(self, columns: str, join: str = "") -> Any:
        begin = f"BEGIN READ ONLY; SELECT {columns} FROM {SCHEMA}.keys {join}"
        try:
            with using(self._url) as server, server.begun(begin) as snapshot:
                return snapshot.driver.found
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
            return None
        except psycopg.errors.InsufficientPrivilege as error:
            raise InvalidConfig(f"this user may not read {self}", path=str(self)) from error
        except psycopg.Error as error:
            raise postgres.translate(error) from error
