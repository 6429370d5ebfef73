"""Writers of several threads and processes lose nothing; what goes wrong is named."""

from __future__ import annotations

import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from database_workers import (
    NAME,
    NOW,
    hold,
    increment,
    increment_often,
    increment_until_killed,
    open_database,
    read_number,
)
from processes import Process, wait_until

from memgraph.config.schema import StorageSettings
from memgraph.errors import (
    DatabaseBusy,
    DatabaseFull,
    DatabaseMissing,
    DatabaseReplaced,
    StorageError,
)
from memgraph.store import metadata, sqlite
from memgraph.store.files import FileLock
from memgraph.store.sqlite import database as database_module, engine
from memgraph.store.sqlite.database import SqliteDatabase
from memgraph.store.sqlite.stores import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    created = tmp_path / "memory.db"
    SqliteStore(created, NAME).create(dimensions=8, now_ms=NOW)
    return created


@pytest.fixture
def database(path: Path) -> Iterator[SqliteDatabase]:
    opened = open_database(path)
    yield opened
    opened.close()


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_eight_processes_lose_no_increment(path: Path, database: SqliteDatabase) -> None:
    workers = [Process(increment_often, path, 40) for _ in range(8)]
    assert [worker.wait() for worker in workers] == [0] * 8
    assert read_number(database) == 320


def test_killed_writers_lose_nothing_they_acknowledged(path: Path, tmp_path: Path) -> None:
    acknowledged = tmp_path / "acknowledged"
    workers = [Process(increment_until_killed, path, acknowledged) for _ in range(3)]
    assert wait_until(lambda: acknowledged.exists() and acknowledged.stat().st_size >= 300)
    assert [worker.kill() for worker in workers] == [-signal.SIGKILL] * 3
    numbers = [int(line) for line in acknowledged.read_text().split()]
    assert len(numbers) == len(set(numbers))
    database = open_database(path)
    # Each may have died between its commit and the telling of it.
    assert max(numbers) <= read_number(database) <= len(numbers) + 3
    with engine.inspected(path) as connection:
        assert engine.ENGINE.damage(connection) == []
    assert increment(database) == read_number(database)
    database.close()


def test_a_database_that_another_program_locks_is_busy_and_then_not(
    path: Path, tmp_path: Path
) -> None:
    database = open_database(path, timeout_ms=50)
    marker, until = tmp_path / "held", tmp_path / "until"
    with Process(hold, path, marker, until) as holder:
        assert wait_until(marker.exists)
        with pytest.raises(DatabaseBusy) as caught:
            increment(database)
        assert caught.value.code == "storage.busy"
        with pytest.raises(DatabaseBusy), database.write():
            pytest.fail("the lock is held")
        # Readers are not in its way, nor it in theirs.
        assert read_number(database) == 0
        until.touch()
        assert holder.wait() == 0
    assert increment(database) == 1
    database.close()


def _change_much(database: SqliteDatabase) -> None:
    with database.write() as connection:
        connection.exec_driver_sql("INSERT OR REPLACE INTO memory_metadata VALUES ('n', '7')")
        connection.exec_driver_sql(
            "INSERT INTO memory_metadata (key, value) VALUES ('big', ?)", ("x" * 100_000,)
        )


def test_a_full_disk_writes_nothing_and_the_connection_goes_on(database: SqliteDatabase) -> None:
    increment(database)
    with database.exclusive() as raw:
        (pages,) = raw.execute("PRAGMA page_count").fetchone()
        raw.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(DatabaseFull) as caught:
        _change_much(database)
    assert "disk is full" in caught.value.message
    assert read_number(database) == 1
    assert increment(database) == 2


def test_after_commit_runs_when_it_is_durable_and_not_when_it_failed(
    database: SqliteDatabase,
) -> None:
    visible: list[int] = []

    def after() -> None:
        visible.append(read_number(database))

    with database.write(after) as connection:
        connection.exec_driver_sql("INSERT INTO memory_metadata VALUES ('n', '5')")
        assert read_number(database) == 0
    assert visible == [5]
    with pytest.raises(RuntimeError), database.write(after):
        raise RuntimeError
    assert visible == [5]


def test_what_can_be_made_again_does_not_wait_for_the_disk(path: Path) -> None:
    full, normal = 2, 1
    opened = SqliteStore(path, NAME).open(StorageSettings(synchronous="FULL", busy_timeout_ms=1000))

    def waits(*, durable: bool) -> int:
        with opened.write(durable=durable) as connection:
            return int(connection.exec_driver_sql("PRAGMA synchronous").scalar_one())

    assert [waits(durable=True), waits(durable=False), waits(durable=True)] == [full, normal, full]
    with pytest.raises(ZeroDivisionError), opened.write(durable=False):
        _ = 1 // 0
    assert waits(durable=True) == full
    opened.close()


def test_many_readers_at_once(database: SqliteDatabase) -> None:
    together = threading.Barrier(12)
    result: list[int] = []

    def read() -> None:
        with database.read() as connection:
            together.wait(30)
            result.append(connection.exec_driver_sql("SELECT 1").scalar_one())

    threads = [threading.Thread(target=read) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert result == [1] * 12


@pytest.mark.parametrize("replacement", [None, "copy"])
def test_a_file_that_was_exchanged_takes_no_more_writes(
    path: Path, database: SqliteDatabase, replacement: str | None
) -> None:
    increment(database)
    aside = path.with_name("aside.db")
    path.rename(aside)
    if replacement is not None:
        SqliteStore(path.with_name("new") / "memory.db", NAME).create(dimensions=8, now_ms=NOW)
        path.with_name("new").joinpath("memory.db").rename(path)
    error = DatabaseMissing if replacement is None else DatabaseReplaced
    with pytest.raises(error):
        increment(database)
    with pytest.raises(error), database.exclusive():
        pytest.fail("not the file that was opened")
    aside.unlink()
    with pytest.raises(error):
        increment(database)


def test_folding_comes_after_some_commits_and_loses_nothing(
    path: Path, database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "COMMITS_BETWEEN_FOLDS", 2)
    sizes = []
    for value in ("x" * 2_000_000, "y"):
        with database.write() as connection:
            connection.exec_driver_sql(
                "INSERT INTO memory_metadata (key, value) VALUES (?, ?)", (value[0], value)
            )
        database.fold()
        sizes.append(path.stat().st_size)
    # The first one stood in the WAL alone.
    assert sizes[0] < 2_000_000 < sizes[1]
    with database.read() as connection:
        result = connection.exec_driver_sql(
            "SELECT length(value) FROM memory_metadata WHERE key IN ('x', 'y') ORDER BY key"
        ).scalars()
        assert list(result) == [2_000_000, 1]


def test_closing_folds_the_wal_into_the_file(path: Path, database: SqliteDatabase) -> None:
    increment(database)
    assert path.with_name("memory.db-wal").stat().st_size > 0
    database.close()
    assert not path.with_name("memory.db-wal").exists()


def test_the_lock_file_is_private_and_no_link_is_followed(tmp_path: Path) -> None:
    lock = tmp_path / "memory.lock"
    with FileLock(lock).held():
        assert lock.stat().st_mode & 0o777 == 0o600
    lock.unlink()
    elsewhere = tmp_path / "elsewhere"
    lock.symlink_to(elsewhere)
    with pytest.raises(StorageError) as caught, FileLock(lock).held():
        pytest.fail("a link")
    assert caught.value.details == {"errno": "ELOOP"}
    assert not elsewhere.exists()
    with pytest.raises(DatabaseMissing), FileLock(tmp_path / "gone" / "memory.lock").held():
        pytest.fail("no folder")


def test_the_connection_that_looked_at_a_database_reads_it_and_none_stays_open(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    created: list[object] = []
    connect = sqlite.connect

    def counted(*values: Any, **names: Any) -> Any:
        created.append(connection := connect(*values, **names))
        return connection

    monkeypatch.setattr(sqlite, "connect", counted)
    before = descriptors()
    opened = open_database(path)
    for _ in range(3):
        with opened.read() as connection:
            connection.exec_driver_sql("SELECT 1")
    assert len(created) == 1
    with opened.write() as connection:
        connection.exec_driver_sql("SELECT 1")
    assert len(created) == 2
    opened.close()
    open_database(path).close()
    assert descriptors() == before


def test_a_file_put_in_its_place_while_it_is_opened_is_not_mixed_with_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = path.with_name("other.db")
    shutil.copyfile(path, other)
    check, before = metadata.require_head, descriptors()

    def replacing(revision: str) -> None:
        check(revision)
        other.replace(path)

    monkeypatch.setattr(metadata, "require_head", replacing)
    with pytest.raises(DatabaseReplaced):
        open_database(path)
    assert descriptors() == before
    monkeypatch.undo()
    opened = open_database(path)
    with opened.write() as connection:
        connection.exec_driver_sql("SELECT 1")
    opened.close()
