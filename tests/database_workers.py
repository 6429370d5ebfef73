"""What other processes do to a database in tests."""

from __future__ import annotations

import time
from pathlib import Path

from memgraph.config.schema import StorageSettings
from memgraph.errors import MemgraphError
from memgraph.store import sqlite
from memgraph.store.engine import Database
from memgraph.store.sqlite.stores import SqliteStore

NAME = "orc-1"
NOW = 1_767_225_600_000


def open_database(path: Path, *, timeout_ms: int = 30_000) -> Database:
    settings = StorageSettings(synchronous="NORMAL", busy_timeout_ms=timeout_ms)
    return SqliteStore(path, NAME).open(settings)


def read_number(database: Database) -> int:
    with database.read() as connection:
        found = connection.exec_driver_sql("SELECT value FROM memory_metadata WHERE key = 'n'")
        return int(found.scalar() or 0)


def increment(database: Database) -> int:
    """Read, add one, write: what a transaction that begins as a reader would lose."""
    with database.write() as connection:
        found = connection.exec_driver_sql("SELECT value FROM memory_metadata WHERE key = 'n'")
        number = int(found.scalar() or 0) + 1
        connection.exec_driver_sql(
            "INSERT OR REPLACE INTO memory_metadata (key, value) VALUES ('n', ?)", (str(number),)
        )
    return number


def increment_often(path: Path, times: int) -> None:
    database = open_database(path)
    for _ in range(times):
        increment(database)
    database.close()


def increment_until_killed(path: Path, acknowledged: Path) -> None:
    """Tells of each number after it is committed, in a file that the other process reads."""
    database = open_database(path)
    with acknowledged.open("ab", buffering=0) as file:
        while True:
            file.write(b"%d\n" % increment(database))


def create_at(path: Path, at: float, results: Path) -> None:
    """Create, then open, at an agreed moment."""
    time.sleep(max(at - time.time(), 0))
    told = "created"
    try:
        SqliteStore(path, NAME).create(dimensions=8, now_ms=NOW)
    except MemgraphError as error:
        told = error.code
    try:
        database = open_database(path)
        increment(database)
        database.close()
    except MemgraphError as error:
        told += f" {error.code}"
    with results.open("a") as file:
        file.write(told + "\n")


def hold(path: Path, held: Path, until: Path) -> None:
    """Hold SQLite's own write lock, as a program would that knows nothing of memgraph's."""
    connection = sqlite.connect(path, busy_timeout_ms=5_000)
    connection.execute("BEGIN IMMEDIATE")
    held.touch()
    while not until.exists():
        time.sleep(0.005)
    connection.execute("ROLLBACK")
    connection.close()
