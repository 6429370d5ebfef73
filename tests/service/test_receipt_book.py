"""Receipts and handed-out lines wait in memory and are written together, off the read path."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from processes import Process, wait_until

from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.errors import DatabaseFull
from memgraph.ids import CountingIds
from memgraph.model.recall import RecallRequest
from memgraph.model.receipts import Receipt
from memgraph.operations.life import echoes
from memgraph.operations.life.consolidation import consolidate_session
from memgraph.operations.life.echoes import catch_up
from memgraph.operations.read import receipts as module
from memgraph.rules.similarity import form_hash, normal_form
from memgraph.store import echoes as echoes_rows
from memgraph.store import receipts

NAME = "orc-1"
TEXT = "The lantern hangs above the north door."
HOUR = 3_600_000


def lines(service: MemoryService) -> dict[int, tuple[int, int]]:
    """What is known of handed-out lines once those that were written are hashed."""
    with service.opened(NAME) as opened:
        catch_up(opened)
    return hashed(service)


def hashed(service: MemoryService) -> dict[int, tuple[int, int]]:
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
    assert hashed(service) == {}
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
    # That of the bulletin too.
    assert flush(service) == 2
    assert accesses(service, memory_id)[0] == 1
    assert len(lines(service)) >= 1


def test_in_the_background_they_are_written_a_few_at_a_time(
    service: MemoryService, orc: Orchestrator
) -> None:
    memory_id = orc.remember(TEXT)
    with service.opened(NAME) as opened:
        for number in range(module.STEP + 1):
            orc.recall("lantern")
            # An odd number of texts beside: neither kind waits for the other.
            if number % 2:
                orc.agents.note_handed_out([f"Row {number} of the long table."])
        before = opened.database.commits
        with patch.object(receipts, "write", wraps=receipts.write) as written:
            opened.receipts.flush_in_steps()
        assert [len(call.args[1]) for call in written.call_args_list] == [module.STEP, 1]
        assert opened.database.commits == before + 2
        assert opened.receipts.flush() == 0
    assert accesses(service, memory_id)[0] == module.STEP + 1


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


def test_where_very_many_wait_the_steps_are_longer(
    service: MemoryService, orc: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_STEPS", 2)
    orc.remember(TEXT)
    for _ in range(2 * module.STEP + 4):
        orc.recall("lantern")
    with service.opened(NAME) as opened, patch.object(receipts, "write") as written:
        opened.receipts.flush_in_steps()
    assert [len(call.args[1]) for call in written.call_args_list] == [module.STEP + 2] * 2


def test_what_a_later_step_cannot_write_is_kept(service: MemoryService, orc: Orchestrator) -> None:
    memory_id = orc.remember(TEXT)
    for _ in range(module.STEP + 3):
        orc.recall("lantern")
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
    assert flush(service) == 3


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
        book = module.ReceiptBook(opened.database, opened.recalls)
        with patch.object(module, "MAX_KEPT", 3):
            for number in range(5):
                book.add_text(f"Line number {number} of a long text.", number)
                book.add(Receipt.of(RecallRequest(query="lantern"), bundle))
        assert book.dropped == 4


def test_a_changed_bulletin_is_kept_by_what_is_new_in_it(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    orc.remember(TEXT, type="Decision")
    orc.bulletin()
    clock.advance(ms=1)
    orc.remember("The lift stops at the third floor.", type="Decision")
    orc.bulletin()
    flush(service)
    with service.opened(NAME) as opened, opened.database.read() as connection:
        pending = echoes_rows.oldest(connection, 10)
    assert pending is not None
    (whole, first_at), (news, second_at) = pending.texts
    assert TEXT in whole
    assert TEXT not in news
    assert "third floor" in news
    assert lines(service)[form_hash(normal_form(TEXT))] == (first_at, first_at)
    assert lines(service)[form_hash(normal_form("The lift stops at the third floor."))] == (
        second_at,
        second_at,
    )


def test_the_oldest_texts_go_and_no_recall(service: MemoryService, orc: Orchestrator) -> None:
    memory_id = orc.remember(TEXT)
    orc.recall("lantern")
    with patch.object(echoes_rows, "MAX_TEXTS", 3), service.opened(NAME) as opened:
        for number in range(5):
            opened.receipts.add_text(f"Line number {number} of a long text.", number)
            opened.receipts.flush()
        with opened.database.read() as connection:
            pending = echoes_rows.oldest(connection, 10)
    assert pending is not None
    assert [at for _, at in pending.texts] == [2, 3, 4]
    assert [each.content for each in pending.recalled] == [TEXT]
    assert accesses(service, memory_id)[0] == 1


def test_nothing_is_lost_between_writing_and_hashing(
    service: MemoryService, orc: Orchestrator
) -> None:
    orc.remember(TEXT)
    orc.recall("lantern")
    orc.bulletin()
    flush(service)
    with (
        service.opened(NAME) as opened,
        patch.object(echoes_rows, "remove", side_effect=DatabaseFull("no room")),
        pytest.raises(DatabaseFull),
    ):
        catch_up(opened)
    assert hashed(service) == {}
    with service.opened(NAME) as opened:
        assert catch_up(opened) == 2
        assert catch_up(opened) == 0
    assert form_hash(normal_form(TEXT)) in hashed(service)


def test_more_than_a_batch_is_caught_up(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    orc.remember(TEXT)
    start = clock.now_ms()
    with service.opened(NAME) as opened, patch.object(echoes, "BATCH", 4):
        for _ in range(11):
            orc.recall("lantern")
            clock.advance(ms=1)
        opened.receipts.flush()
        assert catch_up(opened, stop=lambda: True) == 0
        assert catch_up(opened) == 11
    assert hashed(service) == {form_hash(normal_form(TEXT)): (start, start + 10)}


def catch_up_after(root: Path, go: Path, ready: Path) -> None:
    with MemoryService(root, background=False) as service, service.opened(NAME) as opened:
        ready.touch()
        assert wait_until(go.exists)
        catch_up(opened)


def test_several_processes_catch_up_at_once(tmp_path: Path, clock: FixedClock) -> None:
    made: dict[str, Any] = {"clock": clock, "environ": {}, "background": False}
    count = 150
    start = clock.now_ms()
    with MemoryService(tmp_path, ids=CountingIds(), **made) as service:
        orc = service.orchestrator(NAME, create=True)
        orc.remember(TEXT)
        for number in range(count):
            orc.recall("lantern")
            orc.agents.note_handed_out([f"Row {number} of the long table."])
            clock.advance(ms=1)
        flush(service)
        expected = 1 + count
        go = tmp_path / "go"
        running = [
            Process(catch_up_after, tmp_path, go, ready)
            for ready in (tmp_path / "ready-1", tmp_path / "ready-2")
        ]
        assert wait_until(lambda: len(list(tmp_path.glob("ready-*"))) == 2)
        go.touch()
        assert [process.wait() for process in running] == [0, 0]
        found = hashed(service)
        assert len(found) == expected
        assert found[form_hash(normal_form(TEXT))] == (start, start + count - 1)
        with service.opened(NAME) as opened:
            assert catch_up(opened) == 0


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
