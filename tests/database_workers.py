"""What other processes do to a database in tests.

One interpreter is started, imports what is needed, and forks: eight workers cost one start.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from memgraph.errors import MemgraphError
from memgraph.store import sqlite
from memgraph.store.engine import Database
from memgraph.store.sqlite import provisioning

NAME = "orc-1"
NOW = 1_767_225_600_000


class Workers:
    """Processes that each run one function of this module; killed with the block that has them."""

    def __init__(self, function: str, *calls: tuple[object, ...]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", "import database_workers as w; w.fork()", function],
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(calls) + "\n")
        self._process.stdin.close()
        self.pids: list[int] = json.loads(self._process.stdout.readline())

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def wait(self) -> list[int]:
        """How each of them ended, as ``os.wait`` tells it; 0 is well."""
        assert self._process.stdout is not None
        told: list[int] = json.loads(self._process.stdout.readline())
        return told


def fork() -> None:
    """Runs in the started interpreter: forks, tells the pids, waits, tells the exit statuses."""
    calls = json.loads(sys.stdin.readline())
    function = globals()[sys.argv[1]]
    provisioning.expected_schema()  # made once, before there are several of us
    pids = []
    for call in calls:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                function(*call)
                status = 0
            finally:
                os._exit(status)
        pids.append(pid)
    print(json.dumps(pids), flush=True)  # noqa: T201  # the answer
    print(json.dumps([os.waitpid(pid, 0)[1] for pid in pids]), flush=True)  # noqa: T201  # same


def open_database(path: Path, *, synchronous: str = "NORMAL", timeout_ms: int = 30_000) -> Database:
    return provisioning.open_database(
        path, NAME, synchronous=synchronous, busy_timeout_ms=timeout_ms
    )


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


def increment_often(path: str, times: int) -> None:
    database = open_database(Path(path))
    for _ in range(times):
        increment(database)
    database.close()


def increment_until_killed(path: str, acknowledged: str) -> None:
    """Tells of each number after it is committed, in a file that the other process reads."""
    database = open_database(Path(path))
    with Path(acknowledged).open("ab", buffering=0) as file:
        while True:
            file.write(b"%d\n" % increment(database))


def create_at(path: str, at: float, results: str) -> None:
    """Create, then open, at an agreed moment."""
    time.sleep(max(at - time.time(), 0))
    told = "created"
    try:
        provisioning.create(Path(path), NAME, dimensions=8, now_ms=NOW)
    except MemgraphError as error:
        told = error.code
    try:
        database = open_database(Path(path))
        increment(database)
        database.close()
    except MemgraphError as error:
        told += f" {error.code}"
    with Path(results).open("a") as file:
        file.write(told + "\n")


def hold(path: str, held: str, until: str) -> None:
    """Hold SQLite's own write lock, as a program would that knows nothing of memgraph's."""
    connection = sqlite.connect(Path(path), busy_timeout_ms=5_000)
    connection.execute("BEGIN IMMEDIATE")
    Path(held).touch()
    while not Path(until).exists():
        time.sleep(0.005)
    connection.execute("ROLLBACK")
    connection.close()
