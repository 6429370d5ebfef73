"""Receipts wait in memory and are written together, off the read path."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.errors import DatabaseFull
from memgraph.ids import CountingIds
from memgraph.model.recall import RecallRequest
from memgraph.model.receipts import Receipt
from memgraph.operations.life.consolidation import Consolidator
from memgraph.operations.read import receipts as module
from memgraph.rules.scope import Viewer
from memgraph.store import receipts

NAME = "orc-1"
TEXT = "The lantern hangs above the north door."
HOUR = 3_600_000


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
    assert flush(service) == 3
    assert accesses(service, memory_id) == (3, times[-1])
    assert flush(service) == 0
    # When there are enough of them they are written.
    for _ in range(module.FLUSH_AT):
        orc.recall("lantern")
    assert accesses(service, memory_id)[0] == 3 + module.FLUSH_AT


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


def test_in_the_background_they_are_written_a_few_at_a_time(
    service: MemoryService, orc: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_id = orc.remember(TEXT)
    with service.opened(NAME) as opened:
        for _ in range(module.STEP + 1):
            orc.recall("lantern")
        before = opened.database.commits
        with patch.object(receipts, "write", wraps=receipts.write) as written:
            opened.receipts.flush_in_steps()
        assert [len(call.args[1]) for call in written.call_args_list] == [module.STEP, 1]
        assert opened.database.commits == before + 2
        assert opened.receipts.flush() == 0
        assert accesses(service, memory_id)[0] == module.STEP + 1
        # Where very many wait the steps are longer.
        monkeypatch.setattr(module, "MOST_STEPS", 2)
        for _ in range(2 * module.STEP + 4):
            orc.recall("lantern")
        with patch.object(receipts, "write") as written:
            opened.receipts.flush_in_steps()
    assert [len(call.args[1]) for call in written.call_args_list] == [module.STEP + 2] * 2


def test_a_step_waits_until_no_recall_is_answered(
    service: MemoryService, orc: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GIVE_WAY_S", 60.0)
    orc.remember(TEXT)
    orc.recall("lantern")
    with service.opened(NAME) as opened:
        writing = threading.Thread(target=opened.receipts.flush_in_steps)
        with opened.recalls:
            writing.start()
            writing.join(0.1)
            assert opened.receipts.waiting
        writing.join(30.0)
        assert not opened.receipts.waiting


def test_it_waits_before_each_receipt_that_it_prepares(
    service: MemoryService, orc: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    orc.remember(TEXT)
    # Only where something is hidden, hidden matches are searched.
    orc.remember("The key hangs in the cellar.", sensitivity="Restricted")
    orc.recall("lantern")
    orc.recall("lantern")
    with service.opened(NAME) as opened:
        prepared = threading.Semaphore(0)
        hidden = receipts.hidden_matches

        def look(*given: Any) -> Any:
            # A recall has come.
            opened.recalls.__enter__()
            prepared.release()
            return hidden(*given)

        monkeypatch.setattr(receipts, "hidden_matches", look)
        monkeypatch.setattr(module, "GIVE_WAY_S", 60.0)
        writing = threading.Thread(target=opened.receipts.flush_in_steps)
        writing.start()
        for _ in range(2):
            assert prepared.acquire(timeout=30.0)
            assert not prepared.acquire(timeout=0.1)
            assert opened.receipts.waiting
            opened.recalls.__exit__()
        writing.join(30.0)
        assert not opened.receipts.waiting


def test_hidden_matches_are_searched_for_readers_who_may_miss_some(
    service: MemoryService, orc: Orchestrator
) -> None:
    orc.remember(TEXT, agent_id="ada")
    readers = [orc, service.orchestrator(NAME, viewer=Viewer(agent_id="bo"))]
    receipt_ids = [reader.recall("lantern").receipt_id for reader in readers]
    with (
        service.opened(NAME) as opened,
        patch.object(receipts, "hidden_matches", wraps=receipts.hidden_matches) as searched,
    ):
        opened.receipts.flush()
    assert searched.call_count == 1
    left_out = [orc.receipts.get(receipt_id).left_out for receipt_id in receipt_ids]
    assert [(each["scope"], each["clearance"]) for each in left_out if each] == [(0, 0), (1, 0)]


def test_what_a_later_step_cannot_write_is_kept(service: MemoryService, orc: Orchestrator) -> None:
    memory_id = orc.remember(TEXT)
    for _ in range(module.STEP + 3):
        orc.recall("lantern")
    orc.bulletin()
    full = [receipts.write, DatabaseFull("no room")]

    def write(*given: Any, **named: Any) -> None:
        outcome = full.pop(0)
        if isinstance(outcome, DatabaseFull):
            raise outcome
        outcome(*given, **named)

    with (
        service.opened(NAME) as opened,
        patch.object(receipts, "write", write),
        pytest.raises(DatabaseFull),
    ):
        opened.receipts.flush_in_steps()
    assert accesses(service, memory_id)[0] == module.STEP
    assert flush(service) == 4


def test_what_nobody_writes_is_bounded(service: MemoryService, orc: Orchestrator) -> None:
    orc.remember(TEXT)
    bundle = orc.recall("lantern")
    with service.opened(NAME) as opened:
        book = module.ReceiptBook(opened.database, opened.recalls)
        with patch.object(module, "MAX_KEPT", 3):
            for _ in range(5):
                book.add(Receipt.of(RecallRequest(query="lantern"), bundle))
        assert book.dropped == 2


def test_an_echo_counts_as_no_access(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    memory_id = orc.remember(TEXT)
    clock.advance(ms=HOUR)
    orc.recall("lantern", for_conversation_id="s")
    clock.advance(ms=60_000)
    orc.save_episode(TEXT, session_id="s", source_role="assistant")
    flush(service)
    before = accesses(service, memory_id)
    clock.advance(ms=24 * HOUR)
    with service.opened(NAME) as opened:
        report = Consolidator(opened).session("s")
    assert (report.echoes, report.facts) == (1, [])
    assert accesses(service, memory_id) == before
