"""An erasure that is killed anywhere is finished by the next one; one in the way is told."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pysqlite3.dbapi2 as sqlite
import pytest
from erasing_worlds import CANARIES, SECRET, filled, left
from processes import Process

from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.errors import Conflict
from memgraph.operations.erasure import erase, files
from memgraph.service.open_orchestrator import OpenOrchestrator


def killed(root: Path, memory_id: str, place: str) -> int:
    """Erase in another process that is killed at a place; gives its exit code."""
    return Process(_erase, root, memory_id, place).wait()


def _erase(root: Path, memory_id: str, place: str) -> None:
    with (
        MemoryService(root, environ={}, background=False) as service,
        patch.object(*BEFORE[place], lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)),
    ):
        service.orchestrator("orc-1").erasure.erase(
            memory_id=memory_id, reason="asked for", dry_run=False
        )


BEFORE: dict[str, tuple[Any, str]] = {
    "planned": (erase.Erasing, "redact"),
    "rows": (erase, "sealed"),
    "noted": (erase.metadata, "put"),
    "committed": (erase.Erasing, "finish"),
    "files": (files, "erase_files"),
    "overwriting": (files, "_overwrite"),
    "emptied": (erase.OpenOrchestrator, "forget_texts"),
    "cut": (erase, "_fold_and_cut"),
    "search": (files, "search"),
    "reported": (erase.metadata, "drop"),
}
"""The function before which the process dies, by the name of the place."""


def write_on(root: Path, number: int) -> None:
    """Store memories in a process of its own."""
    with MemoryService(root, environ={}, background=False) as service:
        for count in range(number):
            service.orchestrator("orc-1").remember(f"The kettle of room {count} is new.")


WHY = "asked for"


@pytest.mark.parametrize("place", BEFORE)
def test_what_was_killed_is_finished_by_the_next_open(tmp_path: Path, place: str) -> None:
    root = tmp_path / "root"
    with MemoryService(root, environ={}, background=False) as service:
        world = filled(service.orchestrator("orc-1", create=True))
    assert killed(root, world.secret, place) == -signal.SIGKILL
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1")
        if place in ("planned", "rows", "noted"):
            # Nothing was committed.
            assert orc.get(world.secret).content == SECRET
            assert orc.erasure.reports().erasures == ()
            assert orc.verify().totals == {}
            orc.erasure.erase(memory_id=world.secret, reason=WHY, dry_run=False)
        assert orc.get(world.secret).content == ""
        [report] = orc.erasure.reports().erasures
        assert report.complete
        assert report.remains == ()
        assert set(report.memory_ids) == {world.secret, world.alone}
        assert report.searched.strings > 4
        assert "erasure.unfinished" not in service.health("orc-1")["degraded"]
        assert orc.verify().totals == {}
        assert left(service, orc.paths.directory) == []


def test_another_writes_while_erasures_are_killed_and_finished(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with MemoryService(root, environ={}, background=False) as service:
        world = filled(service.orchestrator("orc-1", create=True))
        writer = Process(write_on, root, 40)
        for place in ("files", "search"):
            assert killed(root, world.secret, place) == -signal.SIGKILL
        assert writer.wait() == 0
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1")
        [report] = orc.erasure.reports().erasures
        assert report.complete
        written = [each for each in orc.memories.list(limit=200) if "kettle" in each.content]
        assert len(written) == 40
        assert orc.verify().totals == {}
        assert left(service, orc.paths.directory) == []


def test_what_was_written_after_the_rows_went_goes_too(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with MemoryService(root, environ={}, background=False) as service:
        world = filled(service.orchestrator("orc-1", create=True))
    assert killed(root, world.secret, "committed") == -signal.SIGKILL
    with sqlite.connect(str(root / "orc-1/memory/memory.db")) as connection:
        connection.execute("INSERT INTO memory_metadata VALUES ('late', ?)", (f"so: {SECRET}",))
    connection.close()
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1")
        [report] = orc.erasure.reports().erasures
        assert report.complete
        assert report.rows["memory_metadata"] == 1
        assert left(service, orc.paths.directory) == []


def test_an_export_waits_for_it(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1", create=True)
        world = filled(orc)
        waits = orc.paths.ingest / "waits.md"
        waits.write_text(SECRET, encoding="utf-8")
        report = orc.erasure.erase(memory_id=world.secret, reason=WHY, dry_run=False)
        assert report.unfinished == ("residue.found",)
        assert orc.erasure.reports().erasures == ()
        with pytest.raises(Conflict, match="unfinished"):
            orc.exchange.export(tmp_path / "early.jsonl")
        with pytest.raises(Conflict, match="erased"):
            orc.restore(world.secret, reason="was right")
        with pytest.raises(Conflict, match=report.erasure_id):
            orc.erasure.erase(memory_id=world.other, reason=WHY, dry_run=False)
        waits.unlink()
        again = orc.erasure.erase(memory_id=world.secret, reason=WHY, dry_run=False)
        assert (again.erasure_id, again.complete) == (report.erasure_id, True)
        orc.exchange.export(tmp_path / "late.jsonl")
        assert "zwieback" not in (tmp_path / "late.jsonl").read_text(encoding="utf-8")


def test_the_row_of_an_unfinished_erasure_says_nothing(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with MemoryService(root, environ={}, background=False) as service:
        world = filled(service.orchestrator("orc-1", create=True))
    assert killed(root, world.secret, "files") == -signal.SIGKILL
    with sqlite.connect(str(root / "orc-1/memory/memory.db")) as connection:
        [(row,)] = connection.execute("SELECT value FROM memory_metadata WHERE key = 'erasing'")
    connection.close()
    assert world.secret in row
    assert [each for each in CANARIES if each in row] == []
    # Without the key nobody knows the texts any more; that is reported, and it ends.
    (root / "erasure.key").unlink()
    with MemoryService(root, environ={}, background=False) as service:
        [report] = service.orchestrator("orc-1").erasure.reports().erasures
        assert report.remains == ("unknown: erasure.key is another one",)


def test_a_reader_in_the_way_is_told_and_waited_for_next_time(
    tmp_path: Path, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erase, "LONGER", 1)
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
        reader.execute("COMMIT")
        reader.close()
        again = orc.erasure.erase(memory_id=world.secret, reason=WHY, dry_run=False)
        assert again.unfinished == ()
        assert again.erasure_id == report.erasure_id
        assert left(service, orc.paths.directory) == []


def test_others_write_while_it_waits_for_a_reader(
    orc: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = filled(orc)
    reader = sqlite.connect(str(orc.paths.database), isolation_level=None, check_same_thread=False)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM memories").fetchone()
    waiting, fold = threading.Event(), erase._fold_and_cut

    def folding(opened: OpenOrchestrator) -> bool:
        waiting.set()
        return fold(opened)

    monkeypatch.setattr(erase, "_fold_and_cut", folding)

    def write_then_end_the_reader() -> None:
        assert waiting.wait(60)
        # The first may come before the erasure has the lock.
        for number in range(3):
            time.sleep(0.2)
            orc.remember(f"The kettle of room {number} is new.")
        reader.close()

    with ThreadPoolExecutor(1) as other:
        written = other.submit(write_then_end_the_reader)
        report = orc.erasure.erase(memory_id=world.secret, reason=WHY, dry_run=False)
        written.result()
    # With the lock held all along neither would end before the other gives up.
    assert report.unfinished == ()


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
