"""A bulletin is made once per change, kept beside the database, and never missing."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filling import Filling

from memgraph.bulletin import board as board_module, generate as generate_module
from memgraph.bulletin.board import EMPTY, NO_SNAPSHOT, STALE, BulletinBoard, without_database
from memgraph.clock import FixedClock
from memgraph.config.schema import BulletinSettings
from memgraph.errors import DatabaseCorrupt
from memgraph.log import EventLog, MemorySink
from memgraph.model.context import Bulletin
from memgraph.model.enums import Sensitivity
from memgraph.rules.blocks import FENCE_INTRO
from memgraph.rules.scope import DEFAULT_VIEWER, Viewer
from memgraph.store import metadata
from memgraph.store.erasure import ERASED_KEY
from memgraph.store.sqlite.database import SqliteDatabase

SETTINGS = BulletinSettings()
OPEN_TO_ALL = Viewer(clearance=Sensitivity.PUBLIC)


@pytest.fixture
def sink() -> MemorySink:
    return MemorySink()


def told(sink: MemorySink) -> list[tuple[str, str, str]]:
    lines = [json.loads(line) for line in sink.lines]
    return [(line["event"], line["level"], line["error"]) for line in lines]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "bulletins"


@pytest.fixture
def filling(database: SqliteDatabase) -> Filling:
    filled = Filling(database)
    filled.memory(type="Goal")
    filled.flush()
    return filled


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Bulletin]:
    """Every bulletin that was composed anew."""
    bulletins: list[Bulletin] = []
    real: Callable[..., Bulletin] = generate_module.generate_in

    def counted(*arguments: Any) -> Bulletin:
        bulletins.append(real(*arguments))
        return bulletins[-1]

    monkeypatch.setattr(generate_module, "generate_in", counted)
    return bulletins


def board_of(
    database: SqliteDatabase, folder: Path | None = None, sink: MemorySink | None = None
) -> BulletinBoard:
    log = EventLog(sink or MemorySink(), FixedClock())
    folder = folder or database.path.with_name("bulletins of nobody")
    return BulletinBoard(database, SETTINGS, folder=folder, log=log)


def flushed(board: BulletinBoard) -> Bulletin:
    """Return the current bulletin, after its snapshot was written."""
    bulletin = board.current()
    board.flush()
    return bulletin


def damage(database: SqliteDatabase) -> None:
    """Garble the file under the open connections, as a failing disk would."""
    with database.exclusive() as driver:
        driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = database.path.stat().st_size
    database._reader.dispose()  # a fresh connection has nothing cached
    with database.path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * (size - 100))


def test_it_is_made_anew_only_after_a_change(
    database: SqliteDatabase, filling: Filling, made: list[Bulletin]
) -> None:
    board = board_of(database)
    first = board.current()
    assert board.current() is first
    assert len(made) == 1
    goal = filling.memory(type="Goal")
    filling.flush()
    second = board.current()
    assert goal in second.memory_ids
    assert second.change_seq > first.change_seq
    assert len(made) == 2


def test_every_view_has_its_own(
    database: SqliteDatabase, filling: Filling, made: list[Bulletin]
) -> None:
    board = board_of(database)
    internal, public = board.current(), board.current(OPEN_TO_ALL)
    assert internal.memory_ids
    assert not public.memory_ids
    assert (board.current(), board.current(OPEN_TO_ALL)) == (internal, public)
    assert len(made) == 2


def test_the_number_of_kept_views_is_bounded(
    database: SqliteDatabase,
    filling: Filling,
    made: list[Bulletin],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(board_module, "MAX_VIEWS", 3)
    board = board_of(database)
    sessions = [Viewer(session_ids=frozenset({f"s{n}"})) for n in range(4)]
    for viewer in sessions:
        board.current(viewer)
    board.current(sessions[-1])
    assert len(made) == 4
    board.current(sessions[0])
    assert len(made) == 5


def test_a_damaged_database_leaves_the_last_good_one(
    database: SqliteDatabase, filling: Filling, sink: MemorySink
) -> None:
    board = board_of(database, sink=sink)
    good = board.current()
    damage(database)
    with pytest.raises(DatabaseCorrupt):
        board.current()
    issued = board.bulletin_or_fallback()
    assert (issued.bulletin, issued.warning, issued.cause) == (good, STALE, "storage.corrupt")
    assert told(sink) == [(STALE, "warning", "DatabaseCorrupt")]


def test_after_a_restart_the_snapshot_is_the_last_good_one(
    database: SqliteDatabase, filling: Filling, folder: Path
) -> None:
    good = flushed(board_of(database, folder))
    damage(database)
    restarted = board_of(database, folder)
    issued = restarted.bulletin_or_fallback()
    assert (issued.bulletin, issued.warning) == (good, STALE)


def test_another_view_is_never_fallen_back_to(
    database: SqliteDatabase, filling: Filling, folder: Path
) -> None:
    flushed(board_of(database, folder))
    damage(database)
    for board in (
        board_of(database, folder),
        board_of(database),
    ):
        issued = board.bulletin_or_fallback(OPEN_TO_ALL)
        assert issued.warning == EMPTY
        assert not issued.bulletin.memory_ids
        assert issued.bulletin.text.startswith(FENCE_INTRO)
        assert issued.bulletin.change_seq == 0


def test_a_bulletin_without_a_snapshot_is_still_a_good_one(
    database: SqliteDatabase, filling: Filling, folder: Path, sink: MemorySink
) -> None:
    folder.write_text("in the way")
    board = board_of(database, folder, sink)
    issued = board.bulletin_or_fallback()
    assert issued.warning is None
    assert issued.bulletin.memory_ids
    board.flush()
    assert told(sink) == [(NO_SNAPSHOT, "warning", "FileExistsError")]
    damage(database)
    assert board_of(database, folder).bulletin_or_fallback().warning == EMPTY


def test_a_mistake_in_the_program_is_not_hidden(
    database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Bulletin:
        raise ZeroDivisionError

    monkeypatch.setattr(generate_module, "generate_in", broken)
    with pytest.raises(ZeroDivisionError):
        board_of(database).bulletin_or_fallback()


def test_what_waited_while_another_process_erased_is_not_left_in_a_file(
    database: SqliteDatabase, filling: Filling, folder: Path
) -> None:
    board = board_of(database, folder)
    issued = flushed(board)
    filling.journal("confirm")
    waiting = board.current()
    filling.journal("erase")
    with database.write() as transaction:
        metadata.put(transaction, ERASED_KEY, str(waiting.change_seq + 1))
    assert board.flush() == 1
    assert sorted(path.name for path in folder.iterdir()) == [
        f"{issued.change_seq}.json",
        f"{issued.change_seq}.md",
    ]


def test_a_bulletin_made_while_text_was_erased_is_not_kept(
    database: SqliteDatabase, filling: Filling, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = board_of(database, folder)
    real = generate_module.generate_in

    def overtaken(*arguments: Any) -> Bulletin:
        bulletin = real(*arguments)
        board.forget()
        return bulletin

    monkeypatch.setattr(generate_module, "generate_in", overtaken)
    assert flushed(board).memory_ids
    assert not folder.exists()
    database.close()
    assert board.bulletin_or_fallback().warning == EMPTY


def test_snapshots_wait_and_only_the_last_of_a_view_is_written(
    database: SqliteDatabase, filling: Filling, folder: Path
) -> None:
    board = board_of(database, folder)
    board.current()
    filling.journal("confirm")
    last = board.current()
    board.current(OPEN_TO_ALL)
    assert not folder.exists()
    assert board.flush() == 2
    assert (folder / f"{last.change_seq}.md").read_text(encoding="utf-8") == last.text
    assert len(list(folder.iterdir())) == 4
    assert board.flush() == 0
    filling.journal("confirm")
    board.current()
    board.forget()
    assert board.flush() == 0
    assert len(list(folder.iterdir())) == 4


def test_threads_agree(database: SqliteDatabase, filling: Filling, folder: Path) -> None:
    board = board_of(database, folder)
    found: list[Bulletin] = []

    def ask() -> None:
        found.extend(flushed(board) for _ in range(5))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 30
    assert {one.model_dump_json() for one in found} == {board.current().model_dump_json()}


def test_a_database_that_does_not_open_still_has_its_snapshots(
    database: SqliteDatabase, filling: Filling, folder: Path, tmp_path: Path
) -> None:
    good = flushed(board_of(database, folder))
    broken = DatabaseCorrupt("cut short")
    issued = without_database(folder, SETTINGS, DEFAULT_VIEWER, broken)
    assert (issued.bulletin, issued.warning, issued.cause) == (good, STALE, "storage.corrupt")
    for place, viewer in ((folder, OPEN_TO_ALL), (tmp_path / "nowhere", DEFAULT_VIEWER)):
        issued = without_database(place, SETTINGS, viewer, broken)
        assert (issued.warning, issued.bulletin.memory_ids) == (EMPTY, ())
