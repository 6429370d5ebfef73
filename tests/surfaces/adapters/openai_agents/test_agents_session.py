"""A session of the SDK keeps its items; what is said in it is remembered."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from agents_env import (
    Session,
    SessionSettings,
    SQLiteSession,
    assistant_message,
    function_call,
    function_tool,
    handoff,
    helper,
    remembering,
    run,
)

from memgraph import Orchestrator, Viewer
from memgraph.errors import AccessDenied
from memgraph.model.enums import MemoryKind
from memgraph.surfaces.adapters.openai_agents import MemorySession

ITEMS: list[Any] = [
    {"role": "user", "content": "I live in Berlin."},
    {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "Look:"},
            {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
            {"type": "input_text", "text": "my cat"},
        ],
    },
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm"}]},
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "find", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "I live in Rome."},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Nice.", "annotations": []}],
    },
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "I will not."}]},
    {"role": "user", "content": ""},
    {"role": "system", "content": "I live in Oslo."},
]


def turns(orc: Orchestrator) -> list[tuple[str | None, str]]:
    found = orc.memories.list(kinds=[MemoryKind.EPISODE], limit=100)
    return [(each.source_role, each.content) for each in reversed(found)]


def test_items_are_the_sessions_and_what_was_said_is_remembered(tmp_path: Path) -> None:
    async def drive(session: MemorySession) -> None:
        await session.add_items([])
        await session.add_items(ITEMS)
        assert await session.get_items() == ITEMS
        assert await session.get_items(1) == ITEMS[-1:]
        assert await session.pop_item() == ITEMS[-1]
        await session.clear_session()
        assert await session.get_items() == []

    inner = SQLiteSession("s", tmp_path / "items.db", session_settings=SessionSettings(limit=20))
    with remembering(tmp_path) as orc:
        session = MemorySession(inner, orc, person="Anna", agent="desk")
        assert isinstance(session, Session)
        assert (session.session_id, session.session_settings) == ("s", SessionSettings(limit=20))
        asyncio.run(drive(session))
        assert turns(orc) == [
            ("Anna", "I live in Berlin."),
            ("Anna", "Look:\nmy cat"),
            ("desk", "Nice."),
            ("desk", "I will not."),
        ]
        assert {each.session_id for each in orc.memories.list()} == {"s"}
    inner.close()


def test_turns_belong_to_the_project_which_must_be_open(tmp_path: Path) -> None:
    item: Any = {"role": "user", "content": "The shop opens at nine."}
    with remembering(tmp_path) as orc:
        session = MemorySession(SQLiteSession("s"), orc, project_id="shop")
        asyncio.run(session.add_items([item]))
        assert turns(orc) == []
        seen = orc._service.orchestrator(orc.name, viewer=Viewer(project_ids=frozenset({"shop"})))
        assert turns(seen) == [("user", "The shop opens at nine.")]
        confined = orc._service.orchestrator(orc.name, viewer=Viewer(confined=True))
        closed = MemorySession(SQLiteSession("s"), confined, project_id="shop")
        with pytest.raises(AccessDenied):
            asyncio.run(closed.add_items([item]))


def test_a_memory_that_fails_is_logged_and_the_run_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with remembering(tmp_path, config={"memory.enabled": False}) as orc:
        session = MemorySession(SQLiteSession("s"), orc)
        with caplog.at_level(logging.WARNING, "memgraph.openai_agents"):
            asyncio.run(session.add_items(ITEMS[:1]))
        assert asyncio.run(session.get_items()) == ITEMS[:1]
    assert "memory.disabled" in caplog.text


def test_a_cancelled_write_is_over_when_its_task_is(tmp_path: Path) -> None:
    began, go_on = threading.Event(), threading.Event()

    async def drive(session: MemorySession) -> None:
        real = session._turns

        class Slow:
            def on_transcript(self, transcript: Any) -> Any:
                began.set()
                assert go_on.wait(60)
                return real.on_transcript(transcript)

        session._turns = Slow()  # type: ignore[assignment]
        adding = asyncio.create_task(session.add_items(ITEMS[:1]))
        while not began.is_set():
            await asyncio.sleep(0.001)
        adding.cancel()
        await asyncio.sleep(0)
        adding.cancel()
        assert not adding.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await adding

    with remembering(tmp_path) as orc:
        asyncio.run(drive(MemorySession(SQLiteSession("s"), orc)))
        assert turns(orc) == [("user", "I live in Berlin.")]


def test_two_turns_with_a_tool_and_a_handoff(tmp_path: Path) -> None:
    @function_tool
    def weather(city: str) -> str:
        return f"Anna lives in {city}."

    async def drive(session: MemorySession) -> None:
        second, _ = helper([assistant_message("It rains.")])
        agent, _ = helper(
            [function_call("weather", {"city": "Oslo"}, call_id="c1")],
            [function_call("transfer_to_helper", {}, call_id="c2")],
            [assistant_message("You live in Berlin.")],
            tools=[weather],
            handoffs=[handoff(second)],
        )
        await run(agent, "Fact: I live in Berlin. What is the weather in Oslo?", session)
        await run(agent, "Where do I live?", session)

    with remembering(tmp_path) as orc:
        asyncio.run(drive(MemorySession(SQLiteSession("s"), orc)))
        assert turns(orc) == [
            ("user", "Fact: I live in Berlin. What is the weather in Oslo?"),
            ("assistant", "It rains."),
            ("user", "Where do I live?"),
            ("assistant", "You live in Berlin."),
        ]
        orc.jobs.consolidate("s")
        facts = [one.content for one in orc.memories.list(kinds=(MemoryKind.FACT,))]
    assert facts == ["I live in Berlin."]
