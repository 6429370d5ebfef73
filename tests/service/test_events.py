"""The event bus: at least once, in order, alone in failure, across restarts and processes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from memgraph import MemoryKind, MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.errors import Conflict, InvalidInput, NotFound
from memgraph.model.events import DeliveredEvent, Handler
from memgraph.rules.conversations import KEEP_TAKEN_MS, KEEP_WAITING_MS, MOST_ATTEMPTS
from memgraph.service import open_orchestrator as opened_module
from memgraph.service.events import INTERRUPTED, PAGE, DeliverLater

COMPLETED = "memory.session_completed"
PATIENCE_S = 10.0
LONG_MS = 3_600_000


def say(orc: Orchestrator, *sessions: str) -> None:
    for session in sessions:
        orc.save_episode("Hello.", session_id=session, source_role="user")


class Taker:
    """A subscriber that keeps what it gets, and fails as long as it is told to."""

    def __init__(self) -> None:
        self.seqs: list[int] = []
        self.failing: Exception | None = None

    def __call__(self, given: DeliveredEvent) -> None:
        if self.failing is not None:
            raise self.failing
        self.seqs.append(given.seq)


def rows(orc: Orchestrator, table: str) -> int:
    with orc._service.opened(orc.name) as opened, opened.database.read() as connection:
        return int(connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one())


def test_every_event_comes_once_and_in_order(orc: Orchestrator) -> None:
    taker = Taker()
    orc.events.subscribe("one", taker)
    orc.save_episodes(
        {"content": "Hi.", "session_id": "s", "source_role": "user"} for _ in range(3 * PAGE)
    )
    assert orc.events.deliver().handled == 3 * PAGE
    say(orc, "s")
    orc.events.deliver()
    assert taker.seqs == list(range(1, 3 * PAGE + 2))
    assert orc.events.deliver().handled == 0


def test_only_the_topics_that_were_asked_for_come(orc: Orchestrator) -> None:
    taker = Taker()
    orc.events.subscribe("one", taker, topics=[COMPLETED])
    say(orc, "a", "a", "b", "b", "c")
    orc.events.deliver()
    assert taker.seqs == [3, 6]


def test_a_new_name_begins_at_the_end_or_at_the_start(orc: Orchestrator) -> None:
    say(orc, "a")
    late, early = Taker(), Taker()
    orc.events.subscribe("late", late)
    orc.events.subscribe("early", early, from_start=True)
    say(orc, "a")
    orc.events.deliver()
    assert (late.seqs, early.seqs) == ([2], [1, 2])


def test_what_happened_meanwhile_comes_after_a_restart(tmp_path: Path) -> None:
    before, after = Taker(), Taker()
    for taker in (before, None, after):
        with MemoryService(tmp_path, environ={}, background=False) as service:
            orc = service.orchestrator("orc-1", create=True)
            if taker is not None:
                orc.events.subscribe("one", taker)
                orc.events.deliver()
            say(orc, "s")
            if taker is before:
                orc.events.deliver()
    assert (before.seqs, after.seqs) == ([1], [2])


def test_one_that_fails_holds_up_nobody_and_gets_it_again(
    orc: Orchestrator, clock: FixedClock, service: MemoryService
) -> None:
    bad, good = Taker(), Taker()
    bad.failing = RuntimeError("secret")
    orc.events.subscribe("bad", bad)
    orc.events.subscribe("good", good)
    say(orc, "s", "s")
    assert orc.events.deliver().failed == 1
    assert good.seqs == [1, 2]
    assert service.health("orc-1")["degraded"] == ["events.failing"]
    bad.failing = None
    assert orc.events.deliver().handled == 0
    clock.advance(ms=1_000)
    orc.events.deliver()
    assert bad.seqs == [1, 2]
    assert service.health("orc-1")["degraded"] == []
    log = service.paths("orc-1").log_file.read_text()
    assert "RuntimeError" in log
    assert "secret" not in log


def test_what_nobody_takes_is_put_aside_and_can_be_tried_again(
    orc: Orchestrator, clock: FixedClock, service: MemoryService
) -> None:
    bad = Taker()
    orc.events.subscribe("bad", bad)
    say(orc, "s")
    bad.failing = NotFound("gone")
    for _ in range(MOST_ATTEMPTS):
        orc.events.deliver()
        clock.advance(ms=LONG_MS)
    bad.failing = None
    say(orc, "s")
    orc.events.deliver()
    assert bad.seqs == [2]
    [failure] = orc.events.failures()
    assert (failure.subscriber, failure.seq, failure.error_code) == ("bad", 1, NotFound.code)
    assert service.health("orc-1")["degraded"] == ["events.failing"]
    bad.failing = ValueError("still")
    assert orc.events.retry() == 0
    bad.failing = None
    assert orc.events.retry() == 1
    assert bad.seqs == [2, 1]
    assert orc.events.failures() == []
    assert service.health("orc-1")["degraded"] == []


def test_an_event_that_ends_its_process_is_put_aside(orc: Orchestrator, clock: FixedClock) -> None:
    class Killed(BaseException):
        """Stands for the end of the process: nothing after the handler happens."""

    deaths = 0

    def kill(given: DeliveredEvent) -> None:
        nonlocal deaths
        if given.seq == 1:
            deaths += 1
            raise Killed

    orc.events.subscribe("one", kill)
    say(orc, "s", "s")
    for _ in range(MOST_ATTEMPTS):
        with pytest.raises(Killed):
            orc.events.deliver()
        # Until the claim runs out nobody tries.
        assert orc.events.deliver().handled == 0
        clock.advance(ms=LONG_MS)
    told = orc.events.deliver()
    assert (told.parked, told.handled, deaths) == (1, 1, MOST_ATTEMPTS)
    assert [each.error_code for each in orc.events.failures()] == [INTERRUPTED]


def test_of_two_with_one_name_one_gets_an_event(tmp_path: Path) -> None:
    """Two services stand for two processes: nothing but the database is theirs together."""
    takers = [Taker(), Taker()]
    services = [MemoryService(tmp_path, environ={}, background=False) for _ in takers]
    try:
        handles = [each.orchestrator("orc-1", create=True) for each in services]
        for handle, taker in zip(handles, takers, strict=True):
            handle.events.subscribe("one", taker)
        for _ in range(20):
            handles[0].save_episodes(
                {"content": "Hi.", "session_id": "s", "source_role": "user"} for _ in range(9)
            )
            threads = [threading.Thread(target=each.events.deliver) for each in handles]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        for handle in handles:
            handle.events.deliver()
        assert sorted(takers[0].seqs + takers[1].seqs) == list(range(1, 181))
    finally:
        for each in services:
            each.close()


def test_a_handler_may_use_the_memory_it_hears_of(orc: Orchestrator) -> None:
    def summarise(given: DeliveredEvent) -> None:
        orc.remember(f"Session told by event {given.seq}.")
        assert orc.events.deliver().handled == 0

    orc.events.subscribe("one", summarise, topics=[COMPLETED])
    say(orc, "a", "b")
    orc.events.deliver()
    assert [each.content for each in orc.memories.list(kinds=[MemoryKind.FACT])] == [
        "Session told by event 2."
    ]


def test_the_background_delivers_what_is_said(tmp_path: Path) -> None:
    came = threading.Event()
    with MemoryService(tmp_path, environ={}) as service:
        orc = service.orchestrator("orc-1", create=True)
        orc.events.subscribe("one", lambda _: came.set(), topics=[COMPLETED])
        say(orc, "a", "b")
        assert came.wait(PATIENCE_S)


def test_subscribers_stay_when_an_idle_orchestrator_is_closed(tmp_path: Path) -> None:
    config = {"memory.storage.max_open_orchestrators": 1}
    taker = Taker()
    with MemoryService(tmp_path, environ={}, config=config, background=False) as service:
        orc = service.orchestrator("orc-1", create=True)
        orc.events.subscribe("one", taker)
        say(service.orchestrator("orc-2", create=True), "s")
        say(orc, "s")
        orc.events.deliver()
    assert taker.seqs == [1]


def ignore(_: DeliveredEvent) -> None:
    """Takes everything."""


@pytest.mark.parametrize(
    "subscribe",
    [
        lambda orc, handler: orc.events.subscribe("", handler),
        lambda orc, handler: orc.events.subscribe("one", handler, topics=["no_topic"]),
        lambda orc, handler: orc.events.subscribe("one", handler, topics=[]),
        lambda orc, handler: orc.events.subscribe("one", handler, claim_s=0.5),
    ],
)
def test_a_wrong_subscription_is_refused(
    orc: Orchestrator, subscribe: Callable[[Orchestrator, Handler], None]
) -> None:
    with pytest.raises(InvalidInput):
        subscribe(orc, ignore)
    assert rows(orc, "event_cursors") == 0


def test_a_name_is_taken_once_in_a_process(orc: Orchestrator) -> None:
    orc.events.subscribe("one", ignore)
    with pytest.raises(Conflict):
        orc.events.subscribe("one", ignore)
    assert orc.events.unsubscribe("one") is True
    assert orc.events.unsubscribe("one", forget=True) is False
    assert rows(orc, "event_cursors") == 0


def test_events_go_when_all_have_had_them(orc: Orchestrator, clock: FixedClock) -> None:
    say(orc, "s", "s")
    clock.advance(ms=KEEP_TAKEN_MS + 1)
    say(orc, "s")
    orc.events.deliver()
    assert rows(orc, "events") == 1


def test_events_wait_for_a_subscriber_but_not_for_ever(
    orc: Orchestrator, clock: FixedClock, service: MemoryService
) -> None:
    taker = Taker()
    orc.events.subscribe("away", ignore)
    orc.events.unsubscribe("away")
    say(orc, "s")
    clock.advance(ms=KEEP_TAKEN_MS + 1)
    orc.events.deliver()
    assert rows(orc, "events") == 1
    clock.advance(ms=KEEP_WAITING_MS)
    say(orc, "s")
    orc.events.deliver()
    assert rows(orc, "events") == 1
    assert "events.lost" in service.paths("orc-1").log_file.read_text()
    orc.events.subscribe("away", taker)
    orc.events.deliver()
    assert taker.seqs == [2]


def test_a_claim_of_a_clock_that_was_ahead_holds_up_nothing(
    orc: Orchestrator, clock: FixedClock
) -> None:
    def killed(_: DeliveredEvent) -> None:
        raise KeyboardInterrupt

    taker = Taker()
    orc.events.subscribe("one", killed)
    say(orc, "s")
    clock.advance(days=365)
    with pytest.raises(KeyboardInterrupt):
        orc.events.deliver()
    clock.advance(days=-365)
    orc.events.unsubscribe("one")
    orc.events.subscribe("one", taker)
    orc.events.deliver()
    assert taker.seqs == [1]


def test_one_that_blocks_holds_up_nobody_and_not_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opened_module, "HANDLER_PATIENCE_S", 0.1)
    go, came, held = threading.Event(), threading.Event(), threading.Event()

    def slow(_given: DeliveredEvent) -> None:
        held.set()
        go.wait(PATIENCE_S)

    with MemoryService(tmp_path, environ={}) as service:
        orc = service.orchestrator("orc-1", create=True)
        orc.events.subscribe("slow", slow)
        orc.events.subscribe("quick", lambda given: came.set() if given.seq == 2 else None)
        say(orc, "s", "s")
        assert came.wait(PATIENCE_S)
        assert held.wait(PATIENCE_S)
        closing = threading.Thread(target=service.close)
        closing.start()
        closing.join(PATIENCE_S / 2)
        assert not closing.is_alive()
        assert not go.is_set()
        go.set()
    log = service.paths("orc-1").log_file.read_text()
    assert "events.subscriber_blocks" in log


def test_a_subscriber_to_a_rare_topic_keeps_no_other_events(
    orc: Orchestrator, clock: FixedClock, service: MemoryService
) -> None:
    taker = Taker()
    orc.events.subscribe("rare", taker, topics=["memory.contradiction_found"])
    turns = [{"content": "Hi.", "session_id": "s", "source_role": "user"}]
    orc.save_episodes(turns * (PAGE + 1))
    orc.events.deliver()
    clock.advance(ms=KEEP_TAKEN_MS + 1)
    orc.save_episodes(turns)
    orc.events.deliver()
    assert rows(orc, "events") == 1
    clock.advance(ms=KEEP_WAITING_MS + 1)
    orc.save_episodes(turns)
    orc.events.deliver()
    assert rows(orc, "events") == 1
    log = service.paths("orc-1").log_file
    assert not log.exists() or "events.lost" not in log.read_text()


def test_what_comes_later_is_no_failure(
    orc: Orchestrator, clock: FixedClock, service: MemoryService
) -> None:
    taker = Taker()
    busy = True

    def handle(given: DeliveredEvent) -> None:
        if busy:
            raise DeliverLater(60_000)
        taker(given)

    orc.events.subscribe("one", handle)
    say(orc, "s", "s")
    for _ in range(2 * MOST_ATTEMPTS):
        told = orc.events.deliver()
        assert (told.handled, told.failed, told.parked) == (0, 0, 0)
        clock.advance(ms=60_000)
    assert service.health("orc-1")["degraded"] == []
    busy = False
    assert orc.events.deliver().handled == 2


def test_so_many_events_are_delivered_and_no_more(
    orc: Orchestrator, service: MemoryService
) -> None:
    takers = {"one": Taker(), "two": Taker()}
    for name, taker in takers.items():
        orc.events.subscribe(name, taker)
    say(orc, *["s"] * 5)
    with service.opened("orc-1") as opened:
        assert opened.events.deliver(only="one", limit=3).handled == 3
        assert opened.events.deliver(only="one", limit=3).handled == 2
    assert (takers["one"].seqs, takers["two"].seqs) == ([1, 2, 3, 4, 5], [])


def parked(orc: Orchestrator, clock: FixedClock, taker: Taker) -> None:
    """One event of the subscriber ``one`` that is put aside."""
    orc.events.subscribe("one", taker)
    say(orc, "s")
    taker.failing = ValueError("no")
    for _ in range(MOST_ATTEMPTS):
        orc.events.deliver()
        clock.advance(ms=LONG_MS)
    taker.failing = None
    assert len(orc.events.failures()) == 1


def test_who_tries_again_waits_for_nobody_and_is_alone(
    tmp_path: Path, orc: Orchestrator, clock: FixedClock, service: MemoryService
) -> None:
    taker, tried = Taker(), []
    parked(orc, clock, taker)
    other = MemoryService(service.root, clock=clock, environ={}, background=False)
    handle = other.orchestrator("orc-1")
    handle.events.subscribe("one", taker)

    def asks(_: DeliveredEvent) -> None:
        # In this process, and in another one.
        tried.append((orc.events.retry(), handle.events.retry()))

    orc.events.unsubscribe("one")
    orc.events.subscribe("one", asks)
    say(orc, "s")
    orc.events.deliver()
    assert tried == [(0, 0)]
    assert taker.seqs == []
    assert handle.events.retry() == 1
    assert taker.seqs == [1]
    other.close()


def test_what_was_put_aside_goes_some_day(
    orc: Orchestrator, clock: FixedClock, service: MemoryService
) -> None:
    parked(orc, clock, Taker())
    clock.advance(ms=KEEP_WAITING_MS)
    orc.events.deliver()
    assert orc.events.failures() == []
    assert service.health("orc-1")["degraded"] == []
    assert "events.given_up" in service.paths("orc-1").log_file.read_text()
