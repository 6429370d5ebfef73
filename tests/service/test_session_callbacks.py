"""Callbacks for sessions: after the commit, in a thread of their own, alone in failure."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from memgraph import MemoryService, Orchestrator
from memgraph.errors import Conflict
from memgraph.model.conversation import SessionCompleted, SessionConsolidated, SessionEvent
from memgraph.service import background, pool

PATIENCE_S = 10.0


def say(orc: Orchestrator, *sessions: str) -> None:
    for session in sessions:
        orc.save_episode("We moved to Leeds in May.", session_id=session, source_role="user")


def test_a_callback_hears_of_the_end_and_of_the_consolidation(orc: Orchestrator) -> None:
    heard: list[SessionEvent] = []
    orc.events.subscribe(heard.append)
    orc.save_episode("TODO: find a flat in Leeds.", session_id="a", source_role="user")
    say(orc, "a", "b")
    orc.jobs.run("consolidation", session_id="a")
    assert heard == [
        SessionCompleted(session_id="a"),
        SessionConsolidated(session_id="a", facts=1),
    ]
    assert orc.events.unsubscribe(heard.append) is True
    assert orc.events.unsubscribe(heard.append) is False
    say(orc, "c")
    assert len(heard) == 2


def test_nothing_is_announced_that_was_not_committed(orc: Orchestrator) -> None:
    heard: list[SessionEvent] = []
    say(orc, "a")
    orc.events.subscribe(heard.append)

    def interrupted() -> None:
        with orc._service.opened(orc.name) as opened, opened.transaction("test") as transaction:
            transaction.session_events.append(SessionCompleted(session_id="a"))
            raise Conflict("no")

    with pytest.raises(Conflict):
        interrupted()
    assert heard == []


def test_a_callback_may_write_and_what_another_raises_stops_it_not(
    orc: Orchestrator, service: MemoryService
) -> None:
    def note(event: SessionEvent) -> None:
        # What was committed is seen.
        [session] = [each for each in orc.sessions.list() if each.session_id == event.session_id]
        orc.remember(f"{session.turns} turn in {event.session_id}.")

    def fail(_event: SessionEvent) -> None:
        raise ValueError("secret")

    orc.events.subscribe(fail)
    orc.events.subscribe(note)
    say(orc, "a", "b")
    assert [each.content for each in orc.memories.list(kinds=["fact"])] == ["1 turn in a."]
    log = service.paths(orc.name).log_file.read_text()
    assert "event.callback" in log
    assert "ValueError" in log
    assert "secret" not in log


def test_in_the_background_no_write_waits_for_a_callback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, came = threading.Event(), threading.Event()

    def slow(_event: SessionEvent) -> None:
        came.set()
        go.wait(PATIENCE_S)

    monkeypatch.setattr(pool, "MAX_OPEN", 1)
    config = {"memory.embedding.provider": "none"}
    with MemoryService(tmp_path, environ={}, config=config) as service:
        orc = service.orchestrator("orc-1", create=True)
        orc.events.subscribe(slow)
        # An idle orchestrator is closed meanwhile, and keeps its callbacks.
        say(service.orchestrator("orc-2", create=True), "x")
        say(orc, "a", "b")
        assert came.wait(PATIENCE_S)
        say(orc, "b")
        assert not go.is_set()
        go.set()


def test_a_callback_may_close_its_own_service(tmp_path: Path) -> None:
    took: list[float] = []
    closed = threading.Event()
    config = {"memory.embedding.provider": "none"}
    service = MemoryService(tmp_path, environ={}, config=config)

    def close(_event: SessionEvent) -> None:
        began = time.monotonic()
        service.close()
        took.append(time.monotonic() - began)
        closed.set()

    orc = service.orchestrator("orc-1", create=True)
    orc.events.subscribe(close)
    say(orc, "a", "b")
    assert closed.wait(PATIENCE_S)
    assert took[0] < background.PATIENCE_S
