"""Which orchestrators are open, who closes them, and what a thread in the background survives."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from processes import Process

from memgraph import ContextAssembler, MemoryService
from memgraph.errors import DatabaseCorrupt, DatabaseMissing, MemoryDisabled
from memgraph.providers.fake import FakeEmbedding
from memgraph.service import open_orchestrator as opened_module, pool
from memgraph.service.background import BackgroundWork
from memgraph.store import embeddings, receipts
from memgraph.store.snapshot import Snapshot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WAIT_S = 30


class Stalled(FakeEmbedding):
    """A model that answers when it is told to."""

    def __init__(self) -> None:
        super().__init__(16)
        self.asked, self.answer = threading.Event(), threading.Event()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked.set()
        assert self.answer.wait(WAIT_S)
        return super().embed(texts)


def wal(service: MemoryService, name: str) -> Path:
    """It is there as long as somebody has the database open."""
    database = service.paths(name).database
    return database.with_name(database.name + "-wal")


def test_no_more_stay_open_than_allowed_and_none_in_use_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "MAX_OPEN", 2)
    with MemoryService(tmp_path, environ={}, background=False) as service:
        for name in "abcd":
            service.create(name)
        with service.opened("a"):
            for name in "bcd":
                service.orchestrator(name).remember(f"I am {name}.")
            assert service.orchestrator("a").remember("Still here.")
        service.orchestrator("b").remember("Again.")
        assert sum(wal(service, name).exists() for name in "abcd") == 2
        contents = [service.orchestrator(name).memories.list()[-1].content for name in "bcd"]
    assert contents == ["I am b.", "I am c.", "I am d."]


@pytest.mark.parametrize("end", ["forget", "close"])
def test_who_is_at_work_comes_to_its_end_and_closes(service: MemoryService, end: str) -> None:
    orc = service.orchestrator("orc-1", create=True)
    with service.opened("orc-1") as opened:
        service.forget("orc-1") if end == "forget" else service.close()
        with opened.transaction("test") as transaction:
            assert transaction.exec_driver_sql("SELECT 1").scalar() == 1
        assert wal(service, "orc-1").exists()
    assert not wal(service, "orc-1").exists()
    if end == "forget":
        assert orc.remember("Opened anew.")
    else:
        with pytest.raises(MemoryDisabled, match="closed"):
            orc.remember("Too late.")


def test_who_embeds_is_closed_last_so_that_nobody_waits_for_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "MAX_OPEN", 2)
    model = Stalled()
    with MemoryService(tmp_path, environ={}, embedding=model) as service:
        for name in "abc":
            service.create(name)
        service.orchestrator("a").remember("Takes its time.")
        assert model.asked.wait(WAIT_S)
        service.orchestrator("b").memories.list()
        # It would hang here if "a", the longest idle one, had to be closed for it.
        service.orchestrator("c").memories.list()
        assert [wal(service, name).exists() for name in "abc"] == [True, False, True]
        model.answer.set()


def test_a_backlog_is_worked_off_after_a_restart_without_a_write(tmp_path: Path) -> None:
    model = FakeEmbedding(16)
    with MemoryService(tmp_path, environ={}, embedding=model, background=False) as service:
        service.orchestrator("a", create=True).remember("Left behind.")
    with MemoryService(tmp_path, environ={}, embedding=model) as service:
        with service.opened("a") as opened:
            assert opened.background.wait_idle(WAIT_S)
        assert service.orchestrator("a").maintenance.embeddings_status().states["ready"] == 1


def test_neither_a_bug_in_a_chore_nor_an_error_of_ours_ends_the_background_for_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []
    raised = threading.Event()
    # The thread ends after it is idle: its error must not reach a later test.
    monkeypatch.setattr(threading, "excepthook", lambda _arguments: raised.set())

    def failing(_stop: object) -> None:
        raise DatabaseMissing("gone")

    def buggy(_stop: object) -> bool:
        done.append("ran")
        if len(done) == 2:
            raise ZeroDivisionError
        return False

    background = BackgroundWork(
        [failing, buggy], lambda error: done.append(error.code), threaded=True
    )
    assert background.wait_idle(0)
    for _ in range(2):
        background.wake()
        assert background.wait_idle(WAIT_S)
        assert raised.wait(WAIT_S)
    background.stop()
    # Whoever is stopped looks a last time.
    assert done == ["storage.missing", "ran"] * 3
    background.wake()
    assert background.wait_idle(0)


def test_a_single_recall_is_written_soon_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BackgroundWork, "LATER_S", 0.1)
    written = threading.Event()
    write = receipts.write

    def told(*given: Any, **how: Any) -> None:
        write(*given, **how)
        written.set()

    with MemoryService(tmp_path, environ={}, background=False) as service:
        service.orchestrator("a", create=True).remember("The harbour is closed.")
    monkeypatch.setattr(receipts, "write", told)
    with MemoryService(tmp_path, environ={}) as service:
        assert service.orchestrator("a").recall("harbour").ids
        assert written.wait(WAIT_S)


def test_receipts_are_written_down_beside_a_model_that_does_not_answer(tmp_path: Path) -> None:
    model = Stalled()
    with MemoryService(tmp_path, environ={}, embedding=model) as service:
        orc = service.orchestrator("a", create=True)
        orc.remember("The harbour is closed.")
        assert model.asked.wait(WAIT_S)
        orc.bulletin()
        with service.opened("a") as opened:
            assert opened.receipts.waiting
            service.write_down()
            assert not opened.receipts.waiting
        model.answer.set()


def test_what_one_worker_finished_another_cannot_fail(tmp_path: Path) -> None:
    with MemoryService(
        tmp_path, environ={}, embedding=FakeEmbedding(16), background=False
    ) as service:
        orc = service.orchestrator("a", create=True)
        orc.remember("Done already.")
        orc.settle()
        with service.opened("a") as opened, opened.database.write() as connection:
            embeddings.mark_failed(connection, [1], "provider.rejected")
            embeddings.put_off(connection, [1], 10, "provider.unavailable")
        assert orc.maintenance.embeddings_status().states == {"pending": 0, "ready": 1, "failed": 0}
        assert orc.maintenance.embeddings_status().errors == {}


def test_what_was_half_made_is_made_and_what_was_lost_is_not(tmp_path: Path) -> None:
    with MemoryService(tmp_path, environ={}, background=False) as service:
        paths = service.paths("orc-1")
        paths.logs.mkdir(parents=True)
        paths.database.with_name(".memory.db-1.draft").write_bytes(b"half")
        orc = service.orchestrator("orc-1", create=True)
        assert orc.remember("Made after all.")
        service.forget("orc-1")
        paths.database.unlink()
        with pytest.raises(DatabaseMissing):
            service.orchestrator("orc-1", create=True).remember("Not in silence.")
    assert not paths.database.exists()


def fork_at_work(root: Path, told: Path) -> None:
    """Note how a forked child ends that writes, and what the parent stores after it."""
    service = MemoryService(root, environ={}, background=False)
    orc = service.orchestrator("orc-1", create=True)
    orc.remember("From the parent.")
    pid = os.fork()
    if pid == 0:
        try:
            orc.remember("From the child.")
        except MemoryDisabled as error:
            service.close()
            os._exit(7 if "fork" in error.message else 1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    told.write_text(f"{os.waitstatus_to_exitcode(status)} {orc.remember('After it.')[:5]}")
    service.close()


def test_a_forked_child_does_not_work_on_its_parents_connections(tmp_path: Path) -> None:
    told = tmp_path / "told"
    assert Process(fork_at_work, tmp_path / "root", told).wait() == 0
    assert told.read_text() == "7 fact_"


def damaged() -> AbstractContextManager[Snapshot]:
    raise DatabaseMissing("gone")


class Turns(AbstractContextManager[None]):
    """Turns that are counted: how many were taken, how many are held."""

    def __init__(self) -> None:
        self.taken = self.held = 0

    def __enter__(self) -> None:
        self.taken += 1
        self.held += 1

    def __exit__(self, *_: object) -> None:
        self.held -= 1


def test_a_recall_and_a_context_take_a_turn_while_they_read_and_give_it_back(
    service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    orc = service.orchestrator("a", create=True)
    orc.remember("The lamp is green.")
    assembler = ContextAssembler(service, "a")
    turns, held = Turns(), list[int]()
    with service.opened("a") as opened:
        monkeypatch.setattr(opened, "turns", turns)
        read = opened.database.read

        def counting() -> AbstractContextManager[Snapshot]:
            held.append(turns.held)
            return read()

        for number, ask in enumerate(
            [lambda: orc.recall("lamp"), lambda: assembler.build_context("t", query="Which lamp?")]
        ):
            monkeypatch.setattr(opened.database, "read", counting)
            held.clear()
            assert ask().items
            assert (turns.taken, turns.held, max(held)) == (2 * number + 1, 0, 1)
            monkeypatch.setattr(opened.database, "read", damaged)
            with pytest.raises(DatabaseMissing):
                ask()
            assert turns.held == 0
        monkeypatch.setattr(opened.database, "read", read)


def test_an_orchestrator_that_fails_to_open_leaves_no_file_open(
    service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.create("a")
    service.close()

    def damage(*_: object) -> None:
        raise DatabaseCorrupt("damaged")

    monkeypatch.setattr(opened_module, "model_mismatch", damage)
    gc.disable()
    try:
        with MemoryService(service.root, environ={}, background=False) as another:
            before = len(list(Path("/proc/self/fd").iterdir()))
            for _ in range(3):
                with pytest.raises(DatabaseCorrupt):
                    another.orchestrator("a").maintenance.stats()
            assert len(list(Path("/proc/self/fd").iterdir())) == before
    finally:
        gc.enable()


def test_damage_that_is_told_again_and_again_keeps_no_trace(service: MemoryService) -> None:
    service.create("a")
    with pytest.raises(DatabaseCorrupt), service.opened("a") as opened:
        raise DatabaseCorrupt("damaged")

    def depth() -> int:
        with pytest.raises(DatabaseCorrupt) as told:
            opened.require_sound()
        return len(told.traceback)

    assert depth() == depth()
