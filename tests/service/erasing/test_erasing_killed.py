"""An erasure that is killed anywhere is finished by the next one; one in the way is told."""

from __future__ import annotations

import json
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pysqlite3.dbapi2 as sqlite
import pytest
from erasing_workers import PLACES, killed
from erasing_worlds import filled, left

from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.operations.erasure.signatures import check_signature

WHY = "asked for"


@pytest.mark.parametrize("place", PLACES)
def test_what_was_killed_is_finished_by_the_next(tmp_path: Path, place: str) -> None:
    root = tmp_path / "root"
    with MemoryService(root, environ={}, background=False) as service:
        world = filled(service.orchestrator("orc-1", create=True))
    folder = root / "orc-1"
    shown = {str(each.relative_to(folder)) for each in folder.rglob("bulletins/*")}
    assert shown
    assert killed(root, world.secret, place) == -signal.SIGKILL
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1")
        report = orc.erasure.erase(memory_id=world.secret, reason=WHY, dry_run=False)
        assert report.unfinished == ()
        assert set(report.memory_ids) == {world.secret, world.alone}
        assert len(report.tombstones) == 2
        assert report.residue.strings > 4
        assert set(report.files_removed) == shown
        assert check_signature(report)
        assert orc.verify().totals == {}
        assert list((orc.paths.memory / "erasing").iterdir()) == []
        assert left(service, orc.paths.directory) == []


def test_the_next_erasure_of_something_else_finishes_it_too(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with MemoryService(root, environ={}, background=False) as service:
        world = filled(service.orchestrator("orc-1", create=True))
    assert killed(root, world.secret, "rows") == -signal.SIGKILL
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1")
        report = orc.erasure.erase(memory_id=world.other, reason=WHY, dry_run=False)
        assert report.memory_ids == (world.other, world.shared)
        assert len(list((orc.paths.memory / "erasures").iterdir())) == 2
        assert left(service, orc.paths.directory) == []


def test_a_reader_in_the_way_is_told_and_waited_for_next_time(
    tmp_path: Path, clock: FixedClock
) -> None:
    with MemoryService(
        tmp_path / "root",
        clock=clock,
        environ={},
        background=False,
        config={"memory.storage.busy_timeout_ms": 200},
    ) as service:
        orc = service.orchestrator("orc-1", create=True)
        world = filled(orc)
        reader = sqlite.connect(str(orc.paths.database), isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM memories").fetchone()
        report = orc.erasure.erase(memory_id=world.secret, reason=WHY, dry_run=False)
        assert "database.in_use" in report.unfinished
        assert not report.complete
        assert list((orc.paths.memory / "erasing").iterdir())
        reader.execute("COMMIT")
        reader.close()
        again = orc.erasure.erase(memory_id=world.secret, reason=WHY, dry_run=False)
        assert again.unfinished == ()
        assert again.erasure_id == report.erasure_id
        assert again.tombstones == report.tombstones
        assert left(service, orc.paths.directory) == []


def test_others_write_while_it_waits_for_a_reader(orc: Orchestrator) -> None:
    world = filled(orc)
    reader = sqlite.connect(str(orc.paths.database), isolation_level=None, check_same_thread=False)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM memories").fetchone()
    waiting = threading.Event()

    def progress(step: str, _done: int, _total: int) -> None:
        if step == "database":
            waiting.set()

    def write_then_end_the_reader() -> None:
        assert waiting.wait(60)
        # The first may come before the erasure has the lock.
        for number in range(3):
            time.sleep(0.3)
            orc.remember(f"The kettle of room {number} is new.")
        reader.close()

    with ThreadPoolExecutor(1) as other:
        written = other.submit(write_then_end_the_reader)
        report = orc.erasure.erase(
            memory_id=world.secret, reason=WHY, dry_run=False, progress=progress
        )
        written.result()
    # With the lock held all along neither would end before the other gives up.
    assert report.unfinished == ()
    assert report.wal_truncated


def test_what_another_process_still_had_in_hand_is_not_written_back(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with MemoryService(root, environ={}, background=False) as one:
        orc = one.orchestrator("orc-1", create=True)
        world = filled(orc)
        with MemoryService(root, environ={}, background=False) as two:
            late = two.orchestrator("orc-1")
            late.bulletin()
            late.recall("vault")
            orc.erasure.erase(memory_id=world.secret, reason=WHY, dry_run=False)
            # Closing writes what it kept in memory: snapshots, receipts, lines.
        assert left(one, root) == []


def test_a_plan_is_its_owners_alone(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with MemoryService(root, environ={}, background=False) as service:
        world = filled(service.orchestrator("orc-1", create=True))
    assert killed(root, world.secret, "planned") == -signal.SIGKILL
    [plan] = (root / "orc-1" / "memory" / "erasing").iterdir()
    assert plan.stat().st_mode & 0o077 == 0
    assert json.loads(plan.read_text())["memory_ids"]
