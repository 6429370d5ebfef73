"""Tools and instructions over an orchestrator, in runs of the real SDK."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from agents_env import (
    FunctionTool,
    SQLiteSession,
    assistant_message,
    function_call,
    helper,
    remembering,
    run,
)
from jsonschema import Draft202012Validator

from memgraph import tools_for
from memgraph.errors import StorageError
from memgraph.operations.tools.tools import TOOLS
from memgraph.surfaces.adapters.openai_agents import memory_instructions, memory_tools

SEARCH = {"query": "Where does Anna live?", "kind": None, "tag": None, "limit": 5}


def text_of(items: list[Any]) -> str:
    [output] = [each for each in items if each.get("type") == "function_call_output"]
    return output["output"]


def output_of(items: list[Any]) -> dict[str, Any]:
    return json.loads(text_of(items))


def call(name: str, arguments: Any) -> tuple[list[Any], list[Any]]:
    """The two answers of a model that calls one tool."""
    return [function_call(name, arguments, call_id="c1")], [assistant_message("Done.")]


def objects(schema: Any) -> list[dict[str, Any]]:
    """Every object in a schema, itself included."""
    inner = schema.values() if isinstance(schema, dict) else schema
    found = [] if not isinstance(inner, list | type({}.values())) else [*inner]
    own = [schema] if isinstance(schema, dict) else []
    return own + [each for one in found if isinstance(one, dict | list) for each in objects(one)]


def test_schemas_are_strict(tmp_path: Path) -> None:
    with remembering(tmp_path) as orc:
        tools = memory_tools(orc, only=TOOLS)
        names = [each["function"]["name"] for each in tools_for(orc, only=TOOLS)]
    assert [tool.name for tool in tools] == names
    for tool in tools:
        assert isinstance(tool, FunctionTool)
        assert tool.strict_json_schema
        schema = tool.params_json_schema
        Draft202012Validator.check_schema(schema)
        assert sorted(schema["required"]) == sorted(schema["properties"])
        assert schema["additionalProperties"] is False
        for part in objects(schema):
            assert not {"default", "minLength", "maxLength", "title"} & set(part)


def test_a_model_remembers_and_finds(tmp_path: Path) -> None:
    async def drive(orc: Any) -> tuple[Any, Any]:
        told = {"content": "Anna lives in Berlin.", "confidence": 0.8, "entity_names": ["Anna"]}
        first, second = SQLiteSession("one"), SQLiteSession("two")
        agent, _ = helper(*call("remember_fact", told), tools=memory_tools(orc, session_id="one"))
        await run(agent, "Remember where Anna lives.", first)
        agent, _ = helper(*call("search_memory", SEARCH), tools=memory_tools(orc))
        await run(agent, "Where does Anna live?", second)
        return output_of(await first.get_items()), text_of(await second.get_items())

    with remembering(tmp_path) as orc:
        stored, found = asyncio.run(drive(orc))
        fact = orc.trace(stored["memory_id"])
    assert fact.source.conversation_id == "one"
    assert ", Fact: Anna lives in Berlin. #" in found


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("no json", "input.invalid"),
        ({**SEARCH, "limit": 500}, "input.invalid"),
    ],
)
def test_an_error_is_a_value_for_the_model(tmp_path: Path, arguments: Any, code: str) -> None:
    async def drive(orc: Any) -> list[Any]:
        session = SQLiteSession("s")
        agent, model = helper(*call("search_memory", arguments), tools=memory_tools(orc))
        assert (await run(agent, "Find it.", session)).final_output == "Done."
        assert len(model.calls) == 2
        return await session.get_items()

    with remembering(tmp_path) as orc:
        error = output_of(asyncio.run(drive(orc)))["error"]
    assert (error["code"], bool(error["message"])) == (code, True)


def test_instructions_bring_what_belongs_to_the_last_message(tmp_path: Path) -> None:
    async def drive(orc: Any) -> list[str]:
        session = SQLiteSession("s")
        agent, model = helper(
            [assistant_message("Hello.")],
            [assistant_message("In Berlin.")],
            instructions=memory_instructions(orc, "Be brief.", session_id="s", budget_tokens=70),
        )
        await run(agent, "How tall is the tower?", session)
        await run(agent, [{"role": "user", "content": "Where does Anna live?"}], session)
        return [step.system_instructions for step in model.calls]

    with remembering(tmp_path) as orc:
        orc.remember("Anna lives in Berlin.")
        orc.remember("The tower is 368 metres tall.")
        tower, anna = asyncio.run(drive(orc))
    assert tower.startswith("Be brief.\n\n")
    assert ("368 metres" in tower, "Berlin" in tower) == (True, False)
    assert ("368 metres" in anna, "Berlin" in anna) == (False, True)


@pytest.mark.parametrize("asked", ["", "Berlin " * 9_000, [{"role": "user", "content": []}]])
def test_instructions_take_any_message(tmp_path: Path, asked: Any) -> None:
    with remembering(tmp_path) as orc:
        orc.remember("The office is in Berlin.")
        agent, model = helper([assistant_message("Yes.")], instructions=memory_instructions(orc))
        assert asyncio.run(run(agent, asked)).final_output == "Yes."
    assert "The office is in Berlin." in model.calls[0].system_instructions


def test_a_failing_memory_leaves_the_instructions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with remembering(tmp_path) as orc:

        def fail(*_: Any, **__: Any) -> None:
            raise StorageError("the disk is gone")

        monkeypatch.setattr(orc, "context", fail)
        agent, model = helper(
            [assistant_message("Yes.")], instructions=memory_instructions(orc, "Be brief.")
        )
        with caplog.at_level(logging.WARNING, "memgraph.openai_agents"):
            asyncio.run(run(agent, "Are you there?"))
    assert model.calls[0].system_instructions == "Be brief."
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "storage.error" in caplog.text
