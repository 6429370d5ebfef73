"""Receipts and handed-out lines wait in memory and are written together, off the read path."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.errors import DatabaseFull
from memgraph.ids import CountingIds
from memgraph.policy.echo import form_hash, normal_form
from memgraph.service import receipts as module
from memgraph.service.life.consolidating import consolidate_session
from memgraph.storage import receipts

NAME = "orc-1"
TEXT = "The lantern hangs above the north door."
HOUR = 3_600_000


def lines(service: MemoryService) -> dict[int, tuple[int, int]]:
    with service.opened(NAME) as opened, opened.database.read() as connection:
        rows = connection.exec_driver_sql("SELECT line_hash, first_at, last_at FROM echo_lines")
        return {row[0]: (row[1], row[2]) for row in rows}


def accesses(service: MemoryService, memory_id: str) -> tuple[int, int | None]:
    with service.opened(NAME) as opened, opened.database.read() as connection:
        row = connection.exec_driver_sql(
            "SELECT access_count, last_accessed_at FROM memories WHERE memory_id = ?", (memory_id,)
        ).one()
        return row[0], row[1]


def flush(service: MemoryService) -> int:
    with service.opened(NAME) as opened:
        return opened.receipts.flush()


def test_a_recall_writes_nothing_by_itself(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    memory_id = orc.remember(TEXT)
    times = []
    for _ in range(3):
        clock.advance(ms=HOUR)
        times.append(clock.now_ms())
        assert orc.recall("lantern").ids == (memory_id,)
    assert accesses(service, memory_id) == (0, None)
    assert lines(service) == {}
    assert flush(service) == 3
    assert accesses(service, memory_id) == (3, times[-1])
    assert lines(service) == {form_hash(normal_form(TEXT)): (times[0], times[-1])}
    assert flush(service) == 0


def test_enough_of_them_are_written(service: MemoryService, orc: Orchestrator) -> None:
    memory_id = orc.remember(TEXT)
    for _ in range(module.FLUSH_AT):
        orc.recall("lantern")
    assert accesses(service, memory_id)[0] == module.FLUSH_AT


def test_they_survive_closing(tmp_path: Path, clock: FixedClock) -> None:
    made: dict[str, Any] = {"clock": clock, "environ": {}, "background": False}
    with MemoryService(tmp_path, ids=CountingIds(), **made) as first:
        orc = first.orchestrator(NAME, create=True)
        memory_id = orc.remember(TEXT)
        clock.advance(ms=HOUR)
        orc.recall("lantern")
        orc.bulletin()
    with MemoryService(tmp_path, **made) as again:
        assert accesses(again, memory_id) == (1, clock.now_ms())
        assert form_hash(normal_form(TEXT)) in lines(again)


def test_what_cannot_be_written_is_kept(service: MemoryService, orc: Orchestrator) -> None:
    memory_id = orc.remember(TEXT)
    orc.recall("lantern")
    orc.bulletin()
    with (
        patch.object(receipts, "write", side_effect=DatabaseFull("no room")),
        pytest.raises(DatabaseFull),
    ):
        flush(service)
    assert lines(service) == {}
    assert flush(service) == 1
    assert accesses(service, memory_id)[0] == 1
    assert len(lines(service)) >= 1


def test_a_bulletin_is_noted_when_it_is_new_and_every_hour(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    orc.remember(TEXT)
    clock.advance(ms=HOUR)
    start = clock.now_ms()
    for _ in range(40):
        orc.bulletin()
    flush(service)
    line = form_hash(normal_form(TEXT))
    assert lines(service)[line] == (start, start)
    clock.advance(ms=HOUR - 1)
    orc.bulletin()
    flush(service)
    assert lines(service)[line] == (start, start)
    clock.advance(ms=1)
    orc.bulletin()
    flush(service)
    assert lines(service)[line] == (start, start + HOUR)


def test_what_nobody_writes_is_bounded(service: MemoryService, orc: Orchestrator) -> None:
    orc.remember(TEXT)
    bundle = orc.recall("lantern")
    with service.opened(NAME) as opened:
        book = module.ReceiptBook(opened.database)
        with patch.object(module, "MAX_KEPT", 3):
            for number in range(5):
                book.add_text(f"Line number {number} of a long text.", number)
                book.add(None, bundle)  # type: ignore[arg-type]  # never written here
        assert book.dropped == 4


def test_an_echo_counts_as_no_access(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    memory_id = orc.remember(TEXT)
    clock.advance(ms=HOUR)
    orc.recall("lantern")
    clock.advance(ms=60_000)
    orc.save_episode(TEXT, session_id="s", source_role="assistant")
    flush(service)
    before = accesses(service, memory_id)
    clock.advance(ms=24 * HOUR)
    with service.opened(NAME) as opened:
        report = consolidate_session(opened, "s")
    assert (report.echoes, report.facts) == (1, ())
    assert accesses(service, memory_id) == before
