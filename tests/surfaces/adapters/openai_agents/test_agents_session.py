"""The session returns every item of the SDK unchanged, also with concurrent writers."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from agents_env import (
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

from memgraph.errors import InvalidInput
from memgraph.model.enums import MemoryKind
from memgraph.surfaces.adapters.openai_agents import MemorySession

ITEMS: list[Any] = [
    {"role": "user", "content": "I live in Berlin."},
    {"role": "user", "content": [{"type": "input_text", "text": "Look:"}, {"type": "input_image"}]},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x" * 40_000},
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "find", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "y" * 50_000},
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Nice.\x00 \ud83d", "annotations": []}],
    },
    {"role": "user", "content": ""},
    {"role": "user", "content": "word " * 20_000},
    {"role": "system", "content": "Be kind."},
]


def texts(items: list[Any]) -> list[str]:
    return [json.dumps(item) for item in items]


def user(text: str) -> Any:
    return {"role": "user", "content": text}


def test_items_come_back_byte_by_byte_also_after_a_restart(tmp_path: Path) -> None:
    with remembering(tmp_path) as orc:
        asyncio.run(MemorySession(orc, "s").add_items(ITEMS))
    with remembering(tmp_path) as orc:
        found = asyncio.run(MemorySession(orc, "s").get_items())
    assert texts(found) == texts(ITEMS)


def test_it_does_what_the_session_of_the_sdk_does(tmp_path: Path) -> None:
    """The same calls on both sessions have the same results."""

    async def drive(session: Any) -> list[Any]:
        told: list[Any] = [await session.get_items(), await session.pop_item()]
        await session.add_items(ITEMS[:5])
        await session.add_items([])
        told += [await session.get_items(limit) for limit in (None, 0, 1, 3, 99)]
        told.append(await session.pop_item())
        await session.add_items(ITEMS[5:])
        session.session_settings = SessionSettings(limit=4)
        told += [await session.get_items(), await session.get_items(2)]
        told += [await session.pop_item() for _ in range(3)]
        told.append(await session.get_items(100))
        await session.clear_session()
        told += [await session.get_items(), await session.pop_item()]
        await session.add_items([user("again"), user("again")])
        return [*told, await session.get_items()]

    theirs = SQLiteSession("s", tmp_path / "theirs.db")
    try:
        expected = asyncio.run(drive(theirs))
    finally:
        theirs.close()
    with remembering(tmp_path / "ours") as orc:
        assert texts(asyncio.run(drive(MemorySession(orc, "s")))) == texts(expected)


def test_what_is_no_item_is_refused_and_nothing_is_stored(tmp_path: Path) -> None:
    async def drive(session: MemorySession) -> list[Any]:
        for wrong in ([user("good"), object()], [user("good"), "text"], [{"x": float("nan")}]):
            with pytest.raises(InvalidInput):
                await session.add_items(wrong)
        with pytest.raises(InvalidInput):
            await session.get_items(-1)
        return await session.get_items()

    with remembering(tmp_path) as orc:
        assert asyncio.run(drive(MemorySession(orc, "s"))) == []


@pytest.mark.parametrize("fails", [False, True])
def test_a_cancelled_write_is_over_when_its_task_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    began, go_on = threading.Event(), threading.Event()

    async def drive(session: MemorySession) -> list[Any]:
        real = session._transcript.append

        def slow(entries: Any) -> None:
            began.set()
            assert go_on.wait(60)
            if fails:
                raise InvalidInput("no")
            real(entries)

        monkeypatch.setattr(session._transcript, "append", slow)
        adding = asyncio.create_task(session.add_items([user("kept")]))
        while not began.is_set():
            await asyncio.sleep(0)
        adding.cancel()
        await asyncio.sleep(0)
        adding.cancel()
        assert not adding.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await adding
        return await session.get_items()

    with remembering(tmp_path) as orc:
        found = asyncio.run(drive(MemorySession(orc, "s")))
    assert found == ([] if fails else [user("kept")])


def test_two_turns_with_a_tool_and_a_handoff(tmp_path: Path) -> None:
    @function_tool
    def weather(city: str) -> str:
        return f"Anna lives in {city}."

    async def drive(session: MemorySession) -> Any:
        second, _ = helper([assistant_message("It rains.")])
        agent, model = helper(
            [function_call("weather", {"city": "Oslo"}, call_id="c1")],
            [function_call("transfer_to_helper", {}, call_id="c2")],
            [assistant_message("You live in Berlin.")],
            tools=[weather],
            handoffs=[handoff(second)],
        )
        await run(agent, "Fact: I live in Berlin. What is the weather in Oslo?", session)
        before = await session.get_items()
        await run(agent, "Where do I live?", session)
        return before, model.calls[-1].input, await session.get_items()

    with remembering(tmp_path) as orc:
        before, sent, after = asyncio.run(drive(MemorySession(orc, "s")))
        orc.jobs.consolidate("s")
        facts = [one.content for one in orc.memories.list(kinds=(MemoryKind.FACT,))]
    kinds = [item.get("type", item.get("role")) for item in before]
    assert kinds == [
        *("user", "function_call", "function_call_output"),
        *("function_call", "function_call_output", "message"),
    ]
    # In the second turn the model received all earlier items, unchanged.
    assert texts(sent[:-1]) == texts(before)
    assert texts(after[: len(before)]) == texts(before)
    assert facts == ["I live in Berlin."]
