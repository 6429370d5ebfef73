"""A file that SQLite has open is opened by nobody else: closing it would drop SQLite's locks."""

from __future__ import annotations

from pathlib import Path

import pytest
from database_workers import NAME, NOW, increment, open_database, read_number

from memgraph.errors import DatabaseForeign
from memgraph.store import files
from memgraph.store.sqlite import copies, stores
from memgraph.store.sqlite.stores import SqliteStore

LOCKS = Path("/proc/locks")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    result = tmp_path / "memory.db"
    SqliteStore(result, NAME).create(dimensions=8, now_ms=NOW)
    return result


def may_be_read(path: Path) -> bool:
    with files.without_sqlite(path) as result:
        return result


def test_a_file_is_known_to_be_open_until_its_last_connection_is_closed(path: Path) -> None:
    assert may_be_read(path)
    first, second = open_database(path), open_database(path)
    assert not may_be_read(path)
    read_number(first)
    first.close()
    assert not may_be_read(path)
    second.close()
    assert may_be_read(path)


def test_the_name_does_not_matter_and_another_file_of_the_name_is_not_it(path: Path) -> None:
    database = open_database(path)
    moved = path.with_name("moved.db")
    path.rename(moved)
    path.write_bytes(b"")
    assert (may_be_read(moved), may_be_read(path)) == (False, True)
    database.close()
    assert may_be_read(moved)


def locks_on(path: Path) -> list[str]:
    """The POSIX locks on a file, without their places in the list of all."""
    inode = f":{path.stat().st_ino}"
    lines = (line.split() for line in LOCKS.read_text().splitlines())
    return sorted(
        " ".join(line[1:]) for line in lines if any(item.endswith(inode) for item in line)
    )


@pytest.mark.skipif(not LOCKS.exists(), reason="the system does not tell who locks what")
def test_opening_what_is_open_leaves_its_locks_to_it(path: Path) -> None:
    database = open_database(path)
    increment(database)
    locks = locks_on(path)
    assert locks
    # Looked at from the outside, and opened beside: as readiness, or a service of another time.
    stores.inspect_file(path)
    assert locks_on(path) == locks
    open_database(path).close()
    assert locks_on(path) == locks
    database.close()


def test_a_database_in_use_is_not_copied_as_a_file(path: Path, tmp_path: Path) -> None:
    database = open_database(path)
    with pytest.raises(DatabaseForeign):
        copies.copy_file(path, tmp_path / "copy.db")
    database.close()
    copies.copy_file(path, tmp_path / "copy.db")
    assert (tmp_path / "copy.db").read_bytes() == path.read_bytes()
