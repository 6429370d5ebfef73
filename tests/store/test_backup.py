"""Copies are one snapshot, published whole or not at all; nothing is overwritten or deleted."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from memgraph.config.schema import StorageSettings
from memgraph.errors import Conflict
from memgraph.store.files import draft_beside, publish
from memgraph.store.sqlite import copies, engine
from memgraph.store.sqlite.database import SqliteDatabase
from memgraph.store.sqlite.stores import SqliteStore

NOW = 1_767_225_600_000


def opened(folder: Path) -> SqliteDatabase:
    path = folder / "memory.db"
    SqliteStore(path, "orc").create(dimensions=8, now_ms=NOW)
    return SqliteStore(path, "orc").open(
        StorageSettings(synchronous="NORMAL", busy_timeout_ms=30_000)
    )


def write_pair(database: SqliteDatabase, number: int) -> None:
    with database.write() as connection:
        for half in ("left", "right"):
            connection.exec_driver_sql(
                "INSERT INTO memory_metadata (key, value) VALUES (?, ?)",
                (f"{half} {number:06}", "x" * 500),
            )


def keys(path: Path) -> list[str]:
    with engine.inspected(path) as connection:
        result = connection.driver.execute("SELECT key FROM memory_metadata ORDER BY key")
        return [key for (key,) in result]


def test_a_copy_beside_a_writer_is_one_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "PAGES_PER_STEP", 4)
    database = opened(tmp_path)
    for number in range(200):
        write_pair(database, number)
    acknowledged = [200]
    stop = threading.Event()

    def go_on() -> None:
        while not stop.is_set():
            write_pair(database, acknowledged[0])
            acknowledged[0] += 1

    writer = threading.Thread(target=go_on)
    steps: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        # The copy is in its middle and goes on only after more was written.
        if len(steps) in (5, 20):
            before = acknowledged[0]
            while acknowledged[0] < before + 3:
                stop.wait(0.001)
        steps.append((done, total))

    copy = tmp_path / "copy.db"
    copy.touch()
    before = acknowledged[0]
    writer.start()
    try:
        copies.copy_online(database.path, copy, progress)
    finally:
        stop.set()
        writer.join()
        database.close()
    assert acknowledged[0] >= before + 6
    assert len(steps) > 20
    assert steps[-1][0] == steps[-1][1]
    result = keys(copy)
    lefts = {key.split()[1] for key in result if key.startswith("left")}
    rights = {key.split()[1] for key in result if key.startswith("right")}
    assert lefts == rights
    assert len(lefts) >= before
    # No step began again: what was copied only grew.
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert [name.name for name in tmp_path.iterdir() if name.name.startswith("copy")] == ["copy.db"]
    with engine.inspected(copy) as connection:
        assert engine.ENGINE.damage(connection) == []


def test_a_draft_is_private_and_leaves_nothing_behind(tmp_path: Path) -> None:
    target = tmp_path / "sub" / "copy.db"
    with pytest.raises(FileNotFoundError, match="folder does not exist"), draft_beside(target):
        pass
    target.parent.mkdir()
    with draft_beside(target) as draft:
        assert draft.parent == target.parent
        assert draft.stat().st_mode & 0o777 == 0o600
        draft.write_bytes(b"half")
    assert list(target.parent.iterdir()) == []


def test_publish_refuses_to_overwrite_unless_forced(tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    target.write_bytes(b"precious")
    with draft_beside(target) as draft:
        draft.write_bytes(b"new")
        with pytest.raises(Conflict):
            publish(draft, target, force=False)
        assert target.read_bytes() == b"precious"
        publish(draft, target, force=True)
    assert target.read_bytes() == b"new"
    assert [file.name for file in tmp_path.iterdir()] == ["copy.db"]


def test_publish_works_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise PermissionError(1, "no links here")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    target = tmp_path / "copy.db"
    for content, is_taken in ((b"first", False), (b"second", True)):
        with draft_beside(target) as draft:
            draft.write_bytes(content)
            if is_taken:
                with pytest.raises(Conflict):
                    publish(draft, target, force=False)
            else:
                publish(draft, target, force=False)
    assert target.read_bytes() == b"first"


def test_a_database_is_moved_aside_with_all_that_belongs_to_it(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    for name in ("memory.db", "memory.db-wal", "memory.db-shm", "journal.anchor", "other"):
        (tmp_path / name).write_text(name)
    folder = tmp_path / "replaced" / "one"
    moved = copies.move_aside(database, folder, ("journal.anchor",))
    assert moved == ["memory.db", "memory.db-wal", "memory.db-shm", "journal.anchor"]
    assert {file.name: file.read_text() for file in folder.iterdir()} == {n: n for n in moved}
    assert {file.name for file in tmp_path.iterdir()} == {"other", "replaced"}
    assert copies.move_aside(database, tmp_path / "replaced" / "two") == []
    assert not (tmp_path / "replaced" / "two").exists()
