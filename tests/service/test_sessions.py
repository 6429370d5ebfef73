"""Sessions: registered by turns, completed by the next one, told to callbacks after the commit."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from ingest.pipeline import IngestPipeline
from memgraph import MemoryKind, MemoryService, Orchestrator, Sensitivity, Viewer
from memgraph.clock import FixedClock, parse_time
from memgraph.errors import Conflict, InvalidInput, NotFound
from memgraph.model.conversation import AgentTurn, SessionCompleted, SessionInfo, UserTurn
from memgraph.model.sources import Document
from memgraph.model.values import EpisodeInput, MemoryInput
from memgraph.service import pool


def say(orc: Orchestrator, session_id: str, role: str = "user", **fields: Any) -> str:
    return orc.save_episode(f"Said in {session_id}.", session_id=session_id, source_role=role)


@pytest.fixture
def told(orc: Orchestrator) -> list[SessionCompleted]:
    """The events of sessions, in their order."""
    found: list[SessionCompleted] = []
    orc.events.subscribe(found.append)
    return found


def completed(told: list[SessionCompleted]) -> list[str]:
    return [each.session_id for each in told]


def known(orc: Orchestrator) -> dict[str, SessionInfo]:
    return {each.session_id: each for each in orc.sessions.list()}


def states(orc: Orchestrator) -> dict[str, bool]:
    """Whether each session is open."""
    return {name: each.completed_at is None for name, each in known(orc).items()}


def consolidate(orc: Orchestrator, session_id: str, through: str) -> None:
    with orc._service.opened(orc.name) as opened, opened.database.write() as connection:
        connection.exec_driver_sql(
            "UPDATE sessions SET consolidated_at = 1, consolidated_through = ?,"
            " completed_at = coalesce(completed_at, 1) WHERE session_id = ?",
            (through, session_id),
        )


def test_a_published_turn_says_itself_what_it_is(orc: Orchestrator) -> None:
    anna = orc.events.publish(UserTurn(content="Hello.", session_id="s", source_role="Anna"))
    agent = orc.events.publish(AgentTurn(content="Hello Anna.", session_id="s"))
    assert [orc.get(each).sequence for each in (anna, agent)] == [0, 1]
    # Kept where the role says something else, and only by the kind of a turn.
    assert orc.get(anna).attributes == {"told_as": "person"}
    assert orc.get(agent).attributes == {}
    claims = {"source_role": "Robin", "attributes": {"told_as": "person", "mood": "calm"}}
    claimed = orc.save_episode("Hello.", session_id="s", **claims)
    assert orc.get(claimed).attributes == {"mood": "calm"}
    with pytest.raises(InvalidInput):
        orc.events.publish(EpisodeInput(content="x", session_id="s", source_role="user"))  # type: ignore[arg-type]


def test_a_new_session_completes_the_open_ones_once_and_a_later_turn_opens_one_again(
    orc: Orchestrator, told: list[SessionCompleted]
) -> None:
    for session in ("a", "a", "b", "b", "a"):
        say(orc, session)
    assert states(orc) == {"a": True, "b": True}
    assert completed(told) == ["a"]
    say(orc, "c")
    assert completed(told) == ["a", "a", "b"]
    assert states(orc) == {"a": False, "b": False, "c": True}
    assert (orc.sessions.end("c"), orc.sessions.end("c")) == (True, False)
    say(orc, "d")
    assert completed(told) == ["a", "a", "b", "c"]
    with pytest.raises(NotFound):
        orc.sessions.end("nobody's")


@pytest.mark.engines
def test_a_turn_opens_what_was_consolidated_and_only_it_is_pending(
    orc: Orchestrator, told: list[SessionCompleted]
) -> None:
    consolidate(orc, "a", say(orc, "a"))
    say(orc, "b")
    assert completed(told) == []
    assert [each.session_id for each in orc.sessions.list(pending=True)] == ["b"]
    assert [each.session_id for each in orc.sessions.list(pending=False)] == ["a"]
    say(orc, "a")
    info = known(orc)["a"]
    assert (info.completed_at, info.consolidated_at) == (None, None)
    assert (info.turns, info.pending) == (2, 1)


@pytest.mark.parametrize("way", ["one by one", "many", "a document"])
def test_turns_from_elsewhere_tell_of_their_sessions_alone(
    orc: Orchestrator, told: list[SessionCompleted], way: str
) -> None:
    say(orc, "live")
    turn: dict[str, Any] = {"kind": MemoryKind.EPISODE, "session_id": "old", "source_role": "user"}
    turns = [MemoryInput(key=f"t{at}", content=f"Turn {at}.", **turn) for at in range(4)]
    if way == "one by one":
        for at in range(4):
            orc.remember(f"Turn {at}.", **turn)
    elif way == "many":
        orc.remember_many(turns[:3])
        orc.remember_many(turns[3:])
    else:
        document = Document(sha256="a" * 64, path="/drop/a.txt", memories=tuple(turns), main="#t0")
        orc.ingestion.store(document)
    assert completed(told) == ["old"]
    assert states(orc) == {"live": True, "old": False}
    assert known(orc)["old"].pending == 4


@pytest.mark.engines
def test_a_talk_of_a_file_has_its_own_days_and_none_if_it_has_no_date(
    orc: Orchestrator, clock: FixedClock
) -> None:
    talk = "User: It rains.\nAssistant: I see.\n"
    (orc.paths.ingest / "dated.txt").write_text(f"8 May 2023\n{talk}\n# 9 May 2023\n{talk}")
    (orc.paths.ingest / "undated.txt").write_text(talk)
    IngestPipeline(orc).run()
    say(orc, "live")
    assert {name: (each.first_said_at, each.last_said_at) for name, each in known(orc).items()} == {
        "dated#1": (parse_time("2023-05-08"),) * 2,
        "dated#2": (parse_time("2023-05-09"),) * 2,
        "undated": (None, None),
        "live": (clock.now_ms(), clock.now_ms()),
    }


def test_who_sees_no_turn_sees_no_session(orc: Orchestrator, service: MemoryService) -> None:
    say(orc, "open")
    turn = {"content": "Quiet.", "session_id": "quiet", "source_role": "user"}
    orc.save_episodes([{**turn, "sensitivity": "Restricted"}])
    orc.save_episodes([{**turn, "session_id": "open", "sensitivity": "Restricted"}])
    assert {name: each.turns for name, each in known(orc).items()} == {"open": 1}
    with pytest.raises(NotFound):
        orc.sessions.end("quiet")
    cleared = service.orchestrator("orc-1", viewer=Viewer(clearance=Sensitivity.RESTRICTED))
    assert {name: each.turns for name, each in known(cleared).items()} == {"quiet": 1, "open": 2}


@pytest.mark.engines
def test_hidden_turns_move_no_time_and_no_place(
    orc: Orchestrator, service: MemoryService, clock: FixedClock
) -> None:
    hidden = {"content": "Quiet.", "session_id": "a", "source_role": "user"}
    orc.save_episodes([{**hidden, "sensitivity": "Restricted"}])
    clock.advance(ms=1_000)
    begun = clock.now_ms()
    say(orc, "a")
    clock.advance(ms=1_000)
    say(orc, "b")
    clock.advance(ms=1_000)
    # The turn in another session has ended it.
    assert orc.sessions.end("a") is False
    assert known(orc)["a"].completed_at == begun + 1_000
    orc.save_episodes([{**hidden, "content": "Quieter.", "sensitivity": "Restricted"}])
    orc.sessions.end("a")
    cleared = service.orchestrator("orc-1", viewer=Viewer(clearance=Sensitivity.RESTRICTED))
    whole = known(cleared)["a"]
    assert (whole.first_seen_at, whole.last_seen_at) == (begun - 1_000, clock.now_ms())
    assert whole.completed_at == clock.now_ms()
    seen = known(orc)["a"]
    assert (seen.first_seen_at, seen.last_seen_at, seen.completed_at) == (begun, begun, None)
    assert [each.session_id for each in orc.sessions.list()] == ["b", "a"]
    assert [each.session_id for each in cleared.sessions.list()] == ["a", "b"]
    assert [
        each.session_id for each in orc.sessions.list(limit=1, before=known(orc)["b"].cursor)
    ] == ["a"]
    assert list(cleared.sessions.list(before=known(cleared)["b"].cursor)) == []


@pytest.mark.engines
def test_pages_repeat_and_omit_nothing_while_sessions_go_on(
    orc: Orchestrator, service: MemoryService, clock: FixedClock
) -> None:
    for at in range(4):
        say(orc, f"s-{at}")
        clock.advance(ms=1)
    first = orc.sessions.list(limit=2)
    assert [each.session_id for each in first] == ["s-3", "s-2"]
    say(orc, "s-2")
    assert [each.session_id for each in orc.sessions.list(before=first[-1].cursor)] == [
        "s-1",
        "s-0",
    ]
    # It may be hidden by then: the place is what counts.
    low = service.orchestrator("orc-1", viewer=Viewer(clearance=Sensitivity.PUBLIC))
    assert list(low.sessions.list(before=first[-1].cursor)) == []


def test_what_is_no_cursor_is_refused(orc: Orchestrator) -> None:
    for cursor in ("", "1.", "-1.s", "1e3.s", "\u0661.s", f"{10**16}.s", 1, []):
        with pytest.raises(InvalidInput):
            orc.sessions.list(before=cursor)  # type: ignore[arg-type]  # what a caller may pass


PATIENCE_S = 10.0


def say_in(orc: Orchestrator, *sessions: str) -> None:
    for session in sessions:
        orc.save_episode("We moved to Leeds in May.", session_id=session, source_role="user")


def test_a_callback_hears_of_the_end(orc: Orchestrator) -> None:
    heard: list[SessionCompleted] = []
    orc.events.subscribe(heard.append)
    say_in(orc, "a", "b")
    assert heard == [SessionCompleted(session_id="a")]
    assert orc.events.unsubscribe(heard.append) is True
    assert orc.events.unsubscribe(heard.append) is False
    say_in(orc, "c")
    assert len(heard) == 1


def test_nothing_is_announced_that_was_not_committed(orc: Orchestrator) -> None:
    heard: list[SessionCompleted] = []
    say_in(orc, "a")
    orc.events.subscribe(heard.append)

    def interrupted() -> None:
        with orc._service.opened(orc.name) as opened, opened.transaction("test") as transaction:
            transaction.completed_sessions.append("a")
            raise Conflict("no")

    with pytest.raises(Conflict):
        interrupted()
    assert heard == []


def test_a_callback_may_write_and_what_another_raises_stops_it_not(
    orc: Orchestrator, service: MemoryService
) -> None:
    def note(event: SessionCompleted) -> None:
        # What was committed is seen.
        [session] = [each for each in orc.sessions.list() if each.session_id == event.session_id]
        orc.remember(f"{session.turns} turn in {event.session_id}.")

    def fail(_event: SessionCompleted) -> None:
        raise ValueError("secret")

    orc.events.subscribe(fail)
    orc.events.subscribe(note)
    say_in(orc, "a", "b")
    assert [each.content for each in orc.memories.list(kinds=["fact"])] == ["1 turn in a."]
    log = service.paths(orc.name).log_file.read_text()
    assert "event.callback" in log
    assert "ValueError" in log
    assert "secret" not in log


def test_in_the_background_no_write_waits_for_a_callback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, came = threading.Event(), threading.Event()

    def slow(_event: SessionCompleted) -> None:
        came.set()
        go.wait(PATIENCE_S)

    monkeypatch.setattr(pool, "MAX_OPEN", 1)
    config = {"memory.embedding.provider": "none"}
    with MemoryService(tmp_path, environ={}, config=config) as service:
        orc = service.orchestrator("orc-1", create=True)
        orc.events.subscribe(slow)
        # An idle orchestrator is closed meanwhile, and keeps its callbacks.
        say_in(service.orchestrator("orc-2", create=True), "x")
        say_in(orc, "a", "b")
        assert came.wait(PATIENCE_S)
        say_in(orc, "b")
        assert not go.is_set()
        go.set()
