"""Agents of pydantic-ai with our tools and instructions; scripted models, no network."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage
from working import working

from memgraph import MemoryService, Orchestrator, Viewer, tools_for
from memgraph.errors import InvalidInput
from memgraph.model.enums import MemoryKind
from memgraph.surfaces.adapters.pydantic_ai import (
    memory_instructions,
    memory_toolset,
    save_messages,
)

TOLD = "Ann's heron is called Boris."


@pytest.fixture
def service(tmp_path: Path) -> Iterator[MemoryService]:
    with working(tmp_path / "root") as made:
        yield made


@pytest.fixture
def orc(service: MemoryService) -> Orchestrator:
    return service.orchestrator("orc-1", create=True)


class Script:
    """A model that calls one tool, then says what came back; it keeps what it was shown."""

    def __init__(self, tool: str, arguments: Any) -> None:
        self.call = ToolCallPart(tool, arguments)
        self.instructions: list[str] = []
        self.answers: list[Any] = []

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.instructions.append(info.instructions or "")
        last = messages[-1].parts[-1]
        if isinstance(last, ToolReturnPart | RetryPromptPart):
            self.answers.append(last.content)
            return ModelResponse(parts=[TextPart(str(last.content))])
        return ModelResponse(parts=[self.call])


def run(script: Script, prompt: str, **agent: Any) -> Any:
    return finish(Agent(FunctionModel(script), **agent), prompt)


def finish(agent: Agent[None, str], prompt: Any, **options: Any) -> Any:
    # run_sync of pydantic-ai leaves an event loop open, which is a warning.
    return asyncio.run(agent.run(prompt, **options))


def test_a_fact_told_in_one_run_is_recalled_in_another(orc: Orchestrator) -> None:
    tools = memory_toolset(orc)
    telling = Script("remember_fact", {"content": TOLD})
    run(telling, f"{TOLD} Remember that.", toolsets=[tools])
    assert telling.answers[0]["outcome"] == "stored"
    asking = Script("search_memory", {"query": "heron"})
    done = run(
        asking,
        "What is the heron called?",
        toolsets=[tools],
        instructions=memory_instructions(orc),
    )
    assert "Boris" in done.output
    # Before it asked, it was told.
    assert all("Boris" in each for each in asking.instructions)


def test_the_tools_are_those_of_the_memory_as_they_are(orc: Orchestrator) -> None:
    model = TestModel(call_tools=[])
    finish(Agent(model, toolsets=[memory_toolset(orc, maintenance=True)]), "Hello")
    parameters = model.last_model_request_parameters
    assert parameters is not None
    offered = [
        {
            "type": "function",
            "function": {
                "name": each.name,
                "description": each.description,
                "parameters": each.parameters_json_schema,
            },
        }
        for each in parameters.function_tools
    ]
    assert offered == tools_for(orc, maintenance=True)


def test_every_tool_answers_what_the_test_model_makes_up(orc: Orchestrator) -> None:
    done = finish(Agent(TestModel(), toolsets=[memory_toolset(orc)]), "Hello")
    answered = {
        part.tool_name
        for message in done.all_messages()
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    }
    assert answered == {each["function"]["name"] for each in tools_for(orc)}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"query": ""}, "input.invalid"),
        ({"context": "x"}, "input.invalid"),
        ({"query": "x", "limit": 10**6}, "input.invalid"),
        ("[1]", "should be an object"),
        ('{"query": "x', "Invalid JSON"),
    ],
)
def test_what_a_model_gets_wrong_does_not_end_the_run(
    orc: Orchestrator, arguments: Any, told: str
) -> None:
    script = Script("search_memory", arguments)
    run(script, "Look.", toolsets=[memory_toolset(orc)])
    assert told in str(script.answers[0])


def test_a_memory_that_fails_does_not_end_the_run(
    service: MemoryService, orc: Orchestrator
) -> None:
    orc.remember(TOLD)
    script = Script("search_memory", {"query": "heron"})
    toolset, instructions = memory_toolset(orc), memory_instructions(orc)
    service.close()
    agent = {"toolsets": [toolset], "instructions": instructions}
    with pytest.warns(RuntimeWarning, match=r"memory\.disabled"):
        run(script, "Look.", **agent)
    assert script.answers[0]["error"]["code"] == "memory.disabled"
    assert script.instructions == ["", ""]


def test_what_is_not_allowed_is_not_there(service: MemoryService, orc: Orchestrator) -> None:
    orc.remember(TOLD, scope="project", scope_id="p")
    script = Script("search_memory", {"query": "heron"})
    done = run(
        script,
        "heron",
        toolsets=[memory_toolset(orc, read_only=True)],
        instructions=memory_instructions(orc),
    )
    assert "Boris" not in done.output + "".join(script.instructions)
    refused = Script("remember_fact", {"content": TOLD})
    run(refused, "heron", toolsets=[memory_toolset(orc, read_only=True)])
    assert "remember_fact" in str(refused.answers[0])
    assert orc.memories.list() == []
    seeing = service.orchestrator("orc-1", viewer=Viewer(project_ids=frozenset({"p"})))
    run(script, "heron", toolsets=[memory_toolset(seeing)])
    assert "Boris" in str(script.answers[-1])
    with pytest.raises(InvalidInput):
        memory_toolset(orc, only=["fly"])


def test_instructions_stay_the_same_within_a_run(orc: Orchestrator) -> None:
    orc.remember(TOLD)
    script = Script("remember_fact", {"content": "The heron eats fish."})
    instructions = memory_instructions(orc)
    agent = {"toolsets": [memory_toolset(orc)], "instructions": instructions}
    run(script, "heron", **agent)
    run(script, "heron", **agent)
    first, again, second, _ = script.instructions
    assert first == again
    assert "fish" not in first
    assert "fish" in second


@pytest.mark.parametrize("run_id", ["same", None])
def test_another_prompt_has_instructions_of_its_own(orc: Orchestrator, run_id: str | None) -> None:
    orc.remember(TOLD)
    orc.remember("The lemon tree is in bloom.")
    instructions = memory_instructions(orc, budget_tokens=70)

    def told(prompt: str) -> str:
        context = RunContext(deps=None, model=TestModel(), usage=RunUsage(), prompt=prompt)
        return instructions(replace(context, run_id=run_id))

    assert "Boris" in told("heron")
    assert "lemon" in told("lemon tree")
    assert "Boris" in told("heron")
    before = told("lemon tree")
    orc.remember("A lemon tree lemon tree.")
    assert (told("lemon tree") == before) is (run_id is not None)


def test_the_conversation_is_the_source_and_its_own_turns_are_left_out(
    orc: Orchestrator,
) -> None:
    orc.save_episode("My heron Boris is ill.", session_id="c1", source_role="user")
    script = Script("remember_fact", {"content": TOLD})
    agent: Agent[None, str] = Agent(
        FunctionModel(script),
        toolsets=[memory_toolset(orc)],
        instructions=memory_instructions(orc),
    )
    finish(agent, "heron", conversation_id="c1")
    [fact] = orc.memories.list(kinds=(MemoryKind.FACT,))
    assert orc.trace(fact.memory_id).source.conversation_id == "c1"
    assert "ill" not in script.instructions[0]


def test_messages_are_stored_once(orc: Orchestrator) -> None:
    agent: Agent[None, str] = Agent(TestModel(custom_output_text="Noted."), instructions="Secret.")
    first = finish(agent, [TOLD, BinaryContent(b"x", media_type="image/png"), "Nice, is it?"])
    outcomes = save_messages(orc, first.new_messages(), session_id="s1")
    assert [each.outcome for each in outcomes] == ["stored", "stored"]
    second = finish(agent, "And now?", message_history=first.all_messages())
    outcomes = save_messages(orc, second.all_messages(), session_id="s1")
    assert [each.outcome for each in outcomes] == ["duplicate", "duplicate", "stored", "stored"]
    turns = orc.memories.list(session_id="s1")[::-1]
    assert [(each.source_role, each.content) for each in turns] == [
        ("user", f"{TOLD}\nNice, is it?"),
        ("assistant", "Noted."),
        ("user", "And now?"),
        ("assistant", "Noted."),
    ]


def test_messages_of_no_conversation_need_one(orc: Orchestrator) -> None:
    lone = [
        ModelRequest(parts=[UserPromptPart("Hello")]),
        ModelResponse(parts=[TextPart("Hi"), TextPart("  ")]),
    ]
    with pytest.raises(InvalidInput, match="session_id"):
        save_messages(orc, lone)
    assert orc.memories.list() == []
    assert len(save_messages(orc, lone, session_id="s1")) == 2


def test_agents_run_side_by_side(orc: Orchestrator) -> None:
    agent: Agent[None, str] = Agent(
        TestModel(call_tools=["memory_stats"]),
        toolsets=[memory_toolset(orc, all=True)],
        instructions=memory_instructions(orc),
    )

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(agent.run(f"heron {at}") for at in range(20)))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = asyncio.run(all_of_them())
    assert len({id(each) for each in done}) == 20
    assert all("memory_stats" in each.output for each in done)
