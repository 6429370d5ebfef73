"""A client of OpenAI's or Anthropic's with a memory: the real package, a server on loopback."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from model_server import KEY, ModelServer
from openai import APIError, APIStatusError, AsyncOpenAI, OpenAI

from memgraph import MemoryService, Orchestrator
from memgraph.errors import StorageError
from memgraph.model.enums import MemoryKind
from memgraph.surfaces.adapters.clients import remembering

FACT = "Ada is allergic to walnuts."
QUESTION = "What is Ada allergic to?"
ASKED: Any = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]


@pytest.fixture
def model() -> Iterator[ModelServer]:
    server = ModelServer()
    server.behave(ModelServer.writes("To walnuts."))
    yield server
    server.close()


@pytest.fixture
def orc(tmp_path: Any) -> Iterator[Orchestrator]:
    with MemoryService(tmp_path, environ={}, background=False) as service:
        made = service.orchestrator("orc-1", create=True)
        made.remember(FACT)
        yield made


def turns(orc: Orchestrator) -> list[tuple[str | None, str]]:
    found = orc.memories.list(kinds=[MemoryKind.EPISODE])
    return [(each.source_role, each.content) for each in reversed(found)]


def events(*bodies: dict[str, Any]) -> Any:
    lines = [f"event: {body.get('type', 'x')}\ndata: {json.dumps(body)}\n\n" for body in bodies]
    text = "".join(lines) + "data: [DONE]\n\n"
    return ModelServer.says(200, text, **{"Content-Type": "text/event-stream"})


def chunk(text: str) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"} | {
        "choices": [choice]
    }


def test_a_chat_is_shown_what_is_known_and_kept(model: ModelServer, orc: Orchestrator) -> None:
    client = remembering(OpenAI(api_key=KEY, base_url=model.url), orc, session_id="monday")
    answer = client.chat.completions.create(model="m", messages=ASKED)
    assert answer.choices[0].message.content == "To walnuts."
    [request] = model.requests
    system, user = request["messages"]
    assert system == ASKED[0]
    assert FACT in user["content"]
    assert user["content"].endswith(QUESTION)
    assert ASKED[1]["content"] == QUESTION
    assert turns(orc) == [("user", QUESTION), ("assistant", "To walnuts.")]
    assert {each.session_id for each in orc.memories.list(kinds=[MemoryKind.EPISODE])} == {"monday"}


def test_results_of_tools_and_parts_of_a_message_are_no_turns(
    model: ModelServer, orc: Orchestrator
) -> None:
    client = remembering(OpenAI(api_key=KEY, base_url=model.url), orc).with_options(max_retries=0)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    parts = [{"type": "text", "text": QUESTION}, image]
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    said: list[Any] = [
        {"role": "user", "content": parts},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "the label of a tool"},
    ]
    client.chat.completions.create(model="m", messages=said)
    shown = model.requests[0]["messages"][0]["content"]
    assert shown[1:] == parts
    assert FACT in shown[0]["text"]
    # The message was kept with the call that it began.
    assert turns(orc) == [("assistant", "To walnuts.")]


def test_of_a_call_what_was_answered_is_kept_and_nothing_where_it_fails(
    model: ModelServer, orc: Orchestrator
) -> None:
    failure = {"error": {"message": "overloaded", "type": "server_error"}}
    client = remembering(OpenAI(api_key=KEY, base_url=model.url, max_retries=0), orc)
    create: Any = client.chat.completions.create
    model.behave(ModelServer.fails(400))
    with pytest.raises(APIStatusError):
        create(model="m", messages=ASKED)
    model.behave(events(chunk("To "), failure))
    with pytest.raises(APIError):
        list(create(model="m", messages=ASKED, stream=True))
    assert turns(orc) == []
    model.behave(events(chunk("To "), chunk("walnuts.")))
    with create(model="m", messages=ASKED, stream=True) as opened:
        assert [each.choices[0].delta.content for each in opened] == ["To ", "walnuts."]
    assert turns(orc) == [("user", QUESTION), ("assistant", "To walnuts.")]
    for _ in create(model="m", messages=ASKED, stream=True):
        break
    assert turns(orc)[2:] == [("user", QUESTION), ("assistant", "To ")]


def test_asynchronous_clients_and_their_streams(model: ModelServer, orc: Orchestrator) -> None:
    async def ask() -> None:
        async with remembering(AsyncOpenAI(api_key=KEY, base_url=model.url), orc) as client:
            await client.chat.completions.create(model="m", messages=ASKED)
            model.behave(events(chunk("As I "), chunk("said.")))
            create: Any = client.chat.completions.create
            async for _ in await create(model="m", messages=ASKED, stream=True):
                pass

    asyncio.run(ask())
    assert FACT in model.requests[0]["messages"][1]["content"]
    assert [said for _, said in turns(orc)] == [QUESTION, "To walnuts.", QUESTION, "As I said."]


def test_responses_take_a_text_or_a_list(model: ModelServer, orc: Orchestrator) -> None:
    part = {"type": "output_text", "text": "To walnuts.", "annotations": []}
    output = {"id": "o", "type": "message", "role": "assistant", "status": "completed"}
    body = {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
    body |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    model.behave(ModelServer.says(200, {**body, "output": [{**output, "content": [part]}]}))
    client = remembering(OpenAI(api_key=KEY, base_url=model.url), orc)
    assert client.responses.create(model="m", input=QUESTION).output_text == "To walnuts."
    client.responses.create(
        model="m",
        input=[{"role": "user", "content": [{"type": "input_text", "text": QUESTION}]}],
    )
    text, listed = (each["input"][0]["content"] for each in model.requests)
    assert FACT in text
    assert listed[0]["type"] == "input_text"
    assert FACT in listed[0]["text"]
    assert turns(orc) == [("user", QUESTION), ("assistant", "To walnuts.")] * 2
    delta: dict[str, Any] = {
        "type": "response.output_text.delta",
        "delta": "Walnuts.",
        "item_id": "o",
    }
    delta |= {"output_index": 0, "content_index": 0, "sequence_number": 1, "logprobs": []}
    model.behave(events(delta))
    for _ in client.responses.create(model="m", input="Again?", stream=True):
        pass
    assert turns(orc)[-2:] == [("user", "Again?"), ("assistant", "Walnuts.")]


@dataclass
class Anthropic:
    """The form of Anthropic's client, whose package is not installed here."""

    requests: list[dict[str, Any]]

    @property
    def messages(self) -> Any:
        return SimpleNamespace(create=self.create, count_tokens=lambda **_: 7)

    def create(self, **request: Any) -> Any:
        self.requests.append(request)
        if request.get("stream"):
            delta = SimpleNamespace(type="text_delta", text="Walnuts.")
            start = SimpleNamespace(type="message_start", message=None)
            return iter((start, SimpleNamespace(type="content_block_delta", delta=delta)))
        blocks = [SimpleNamespace(type="text", text="To walnuts.")]
        return SimpleNamespace(content=[*blocks, SimpleNamespace(type="tool_use", name="f")])


def test_messages_of_anthropic(orc: Orchestrator) -> None:
    client = remembering(Anthropic([]), orc)
    client.messages.create(
        model="m", max_tokens=9, messages=[{"role": "user", "content": QUESTION}]
    )
    result = {"type": "tool_result", "tool_use_id": "1", "content": "the label of a tool"}
    said = [{"role": "user", "content": QUESTION}, {"role": "user", "content": [result]}]
    for _ in client.messages.create(model="m", max_tokens=9, messages=said, stream=True):
        pass
    assert FACT in client.requests[0]["messages"][0]["content"]
    assert client.requests[1]["messages"][1] == said[1]
    assert client.messages.count_tokens() == 7
    said_and_kept = [said for _, said in turns(orc)]
    assert said_and_kept == [QUESTION, "To walnuts.", "Walnuts."]


def test_a_memory_that_fails_is_logged_and_the_call_goes_on(
    model: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def context(self, *_: Any, **__: Any) -> Any:
            raise StorageError("the disk is gone")

        save_episode = context

    client = remembering(OpenAI(api_key=KEY, base_url=model.url), Broken())
    with caplog.at_level(logging.WARNING):
        client.chat.completions.create(model="m", messages=ASKED)
    assert model.requests[0]["messages"] == ASKED
    assert len(caplog.records) == 3
    assert "storage" in caplog.text
