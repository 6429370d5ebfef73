"""The nightly job of decay on a real database: what it retires and leaves, night after night."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from working import INFERRED, working

from memgraph import MemoryService, Orchestrator
from memgraph.clock import MS_PER_DAY, FixedClock
from memgraph.errors import DatabaseFull
from memgraph.ids import CountingIds
from memgraph.model.enums import MemoryStatus
from memgraph.model.jobs import JobReport
from memgraph.operations.life import decay as decaying
from memgraph.operations.write import changes

ACTIVE, RETRACTED = MemoryStatus.ACTIVE, MemoryStatus.RETRACTED


def night(orc: Orchestrator, *, days: float = 0.0, **options: Any) -> JobReport:
    """Run the job, ``days`` later than the orchestrator's clock says."""
    with orc._service.opened(orc.name) as opened:
        now_ms = opened.clock.now_ms() + round(days * MS_PER_DAY)
        return decaying.decay(opened, now_ms=now_ms, actor="nightly", **options)


def status(orc: Orchestrator, memory_id: str) -> MemoryStatus:
    return orc.get(memory_id).status


def journalled(orc: Orchestrator) -> int:
    with orc._service.opened(orc.name) as opened, opened.database.read() as connection:
        return int(connection.exec_driver_sql("SELECT max(seq) FROM audit_log").scalar_one())


@pytest.mark.engines
def test_what_expired_is_retracted_with_its_reason_and_end(
    orc: Orchestrator, clock: FixedClock
) -> None:
    one = orc.remember("The printer is on the second floor.", source=INFERRED)
    orc.settle()
    assert "vector" in orc.recall("where is the printer", as_of=clock.now_ms()).items[0].legs
    clock.advance(days=29.9)
    assert night(orc).counts["retired"] == 0
    assert status(orc, one) is ACTIVE
    clock.advance(days=0.1)
    assert night(orc).counts == {"looked_at": 1, "retired": 1, "kept": 0, "rejected": 0}
    memory = orc.get(one)
    assert (memory.status, memory.valid_until) == (RETRACTED, clock.now_ms())
    assert memory.confidence == 1.0
    last = orc.trace(one).status_history[-1]
    assert (last.status, last.reason, last.actor) == (RETRACTED, "decayed", "nightly")
    assert orc.recall("where is the printer").ids == ()
    assert orc.verify().ok
    # What is restored begins anew.
    orc.restore(one, reason="still true")
    assert orc.get(one).valid_until is None
    clock.advance(days=1)
    assert night(orc).counts["retired"] == 0
    clock.advance(days=29)
    assert night(orc).counts["retired"] == 1


def test_a_second_night_changes_nothing(orc: Orchestrator, clock: FixedClock) -> None:
    orc.remember("The printer is on the second floor.", source=INFERRED)
    kept = orc.remember("The cellar key hangs by the door.", decay_rate=0.001)
    clock.advance(days=40)
    night(orc)
    seq, memory = journalled(orc), orc.get(kept)
    assert night(orc).counts == {"looked_at": 1, "retired": 0, "kept": 0, "rejected": 0}
    assert (journalled(orc), orc.get(kept)) == (seq, memory)


def test_what_never_expires(orc: Orchestrator, clock: FixedClock) -> None:
    kept = [
        orc.remember("A thought about the week.", kind="reflection"),
        orc.save_episode("Good morning.", session_id="s", source_role="user"),
        orc.remember("Anna is the owner.", decay_rate=0.0, confidence=0.01),
        orc.remember("The vat id is 12345.", source=INFERRED),
    ]
    orc.confirm(kept[-1])
    clock.advance(days=4_000)
    assert night(orc).counts["retired"] == 0
    assert [status(orc, each) for each in kept] == [ACTIVE] * 4


@pytest.mark.engines
def test_an_access_that_is_not_written_down_yet_counts(
    orc: Orchestrator, clock: FixedClock
) -> None:
    one = orc.remember("The printer is on the second floor.", source=INFERRED)
    clock.advance(days=29)
    assert orc.recall("which floor has the printer").ids == (one,)
    clock.advance(days=2)
    assert night(orc).counts["retired"] == 0
    clock.advance(days=29)
    assert night(orc).counts["retired"] == 1


@pytest.mark.parametrize("change", ["confirm", "recall", "retract"])
def test_who_was_faster_than_the_job_is_heard(
    orc: Orchestrator, clock: FixedClock, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    one = orc.remember("The printer is on the second floor.", source=INFERRED)
    clock.advance(days=40)
    changes: dict[str, Callable[[], object]] = {
        "confirm": lambda: orc.confirm(one),
        "recall": lambda: orc.recall("printer"),
        "retract": lambda: orc.retract(one, reason="wrong"),
    }
    retire = decaying._retire

    def after_the_change(*args: Any, **options: Any) -> int:
        changes[change]()
        return retire(*args, **options)

    monkeypatch.setattr(decaying, "_retire", after_the_change)
    counts = night(orc).counts
    assert (counts["retired"], counts["kept"]) == (0, 1)
    assert orc.trace(one).status_history[-1].reason in (None, "wrong")


def test_a_clock_that_went_back_and_times_to_come_retire_nothing(
    orc: Orchestrator, clock: FixedClock
) -> None:
    one = orc.remember("The printer is on the second floor.", source=INFERRED)
    clock.advance(days=-400)
    assert night(orc).counts["retired"] == 0
    two = orc.remember("The scanner is on the third floor.", source=INFERRED)
    clock.advance(days=430)
    assert night(orc).counts["retired"] == 2
    clock.advance(days=-100)
    orc.restore(two, reason="the clock was wrong")
    assert night(orc).counts["retired"] == 0
    assert [status(orc, each) for each in (one, two)] == [RETRACTED, ACTIVE]
    assert orc.verify().ok


def test_the_exponent_of_the_settings_is_used(tmp_path: Path) -> None:
    clock = FixedClock()
    config = {"memory.decay.exponent": 0.8, "memory.decay.threshold": 0.2}
    with working(tmp_path, config=config, clock=clock) as service:
        orc = service.orchestrator("orc-1", create=True)
        orc.remember("The printer is on the second floor.", source=INFERRED)
        # exp(-0.1 x d^0.8) is 0.2 at d = (10 ln 5)^(1/0.8), which is 32.2 days.
        clock.advance(days=32.1)
        assert night(orc).counts["retired"] == 0
        clock.advance(days=0.2)
        assert night(orc).counts["retired"] == 1


@pytest.mark.engines
def test_a_run_that_was_stopped_is_ended_by_the_next(
    orc: Orchestrator, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memgraph.store.decay.PAGE", 3)
    orc.remember_many([{"content": f"Note {number}.", "source": INFERRED} for number in range(10)])
    clock.advance(days=40)
    answers = iter([False, False])
    told: list[tuple[str, int, int]] = []
    first = night(orc, stop=lambda: next(answers, True), progress=lambda *each: told.append(each))
    assert (first.counts["retired"], first.reason) == (6, "stopped")
    second = night(orc, progress=lambda *each: told.append(each))
    assert (second.counts["retired"], second.reason) == (4, None)
    assert (told[:2], told[-1]) == ([("decay", 3, 10), ("decay", 6, 10)], ("decay", 4, 4))
    assert orc.verify().ok


@pytest.fixture
def two(tmp_path: Path, clock: FixedClock) -> Iterator[tuple[Orchestrator, Orchestrator]]:
    """Handles of one orchestrator, of a host and of the worker beside it."""
    made: dict[str, Any] = {"clock": clock, "environ": {}, "background": False}
    with (
        MemoryService(tmp_path, ids=CountingIds(), **made) as host,
        MemoryService(tmp_path, **made) as worker,
    ):
        yield host.orchestrator("orc-1", create=True), worker.orchestrator("orc-1")


def write_down(orc: Orchestrator) -> None:
    with orc._service.opened(orc.name) as opened:
        opened.receipts.flush()


@pytest.mark.parametrize(
    "use", [lambda orc: orc.recall("which floor has the printer"), lambda orc: orc.bulletin()]
)
def test_what_another_process_used_comes_back_when_it_says_so(
    two: tuple[Orchestrator, Orchestrator],
    clock: FixedClock,
    monkeypatch: pytest.MonkeyPatch,
    use: Callable[[Orchestrator], object],
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise DatabaseFull("no room")

    orc, worker = two
    one = orc.remember("The printer is on the second floor.", source=INFERRED)
    clock.advance(days=29)
    use(orc)
    other = orc.remember("The cellar key hangs by the door.", decay_rate=5)
    clock.advance(days=2)
    assert worker.jobs.run("decay").counts["retired"] == 2
    with monkeypatch.context() as patched:
        patched.setattr(changes, "restore", fail)
        with pytest.raises(DatabaseFull):
            write_down(orc)
    assert status(orc, one) is RETRACTED
    # What cannot be restored at once is restored later.
    write_down(orc)
    assert [status(orc, each) for each in (one, other)] == [ACTIVE, RETRACTED]
    last = orc.trace(one).status_history[-1]
    assert (last.reason, last.actor) == ("used before it was retired", "decay")
    assert orc.get(one).valid_until is None
    assert worker.jobs.run("decay").counts["retired"] == 0
    assert orc.verify().ok


def test_what_expired_again_since_its_recall_stays_retired(
    two: tuple[Orchestrator, Orchestrator], clock: FixedClock
) -> None:
    orc, worker = two
    expired = orc.remember("The printer is on the second floor.", source=INFERRED)
    taken_back = orc.remember("The cellar key hangs by the door.", source=INFERRED)
    clock.advance(days=1)
    assert orc.recall("printer").ids == (expired,)
    clock.advance(days=20)
    assert orc.recall("cellar key").ids == (taken_back,)
    worker.retract(taken_back, reason="wrong")
    clock.advance(days=20)
    assert worker.jobs.run("decay").counts["retired"] == 1
    write_down(orc)
    assert [status(orc, each) for each in (expired, taken_back)] == [RETRACTED] * 2


def test_what_stands_in_a_bulletin_is_used(orc: Orchestrator, clock: FixedClock) -> None:
    one = orc.remember("The printer is on the second floor.", source=INFERRED)
    for _ in range(12):
        clock.advance(days=10)
        assert one in orc.bulletin().bulletin.memory_ids
        assert night(orc).counts["retired"] == 0
    assert orc.get(one).access_count == 0
    clock.advance(days=30)
    assert night(orc).counts["retired"] == 1


def test_facts_about_a_protected_entity_stay(orc: Orchestrator, clock: FixedClock) -> None:
    kept = orc.remember("Mrs. Vitalia Borges likes tea.", source=INFERRED, decay_rate=0.1)
    gone = orc.remember("Mrs. Osane Ruiz likes tea.", source=INFERRED, decay_rate=0.1)
    orc.entities.protect("Vitalia Borges", reason="she signs so")
    assert orc.entities.get("Vitalia Borges").protected
    clock.advance(days=400)
    orc.jobs.run("decay")
    assert [status(orc, each) for each in (kept, gone)] == [ACTIVE, RETRACTED]
    orc.entities.protect("Vitalia Borges", protected=False, reason="she signs so")
    orc.jobs.run("decay")
    assert status(orc, kept) is RETRACTED
    assert orc.verify().findings == []
