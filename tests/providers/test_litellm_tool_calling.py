"""Tool calls against a real server that answers well, badly, late or for ever."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from model_server import KEY

from memgraph.errors import (
    InvalidConfig,
    ProviderAnswerInvalid,
    ProviderError,
    ProviderRejected,
    ProviderUnavailable,
)
from memgraph.providers.fake import FakeToolCalling
from memgraph.providers.litellm_chat import LitellmToolCalling
from memgraph.providers.tool_calls import (
    MAX_TOOL_CALLS,
    ChatTurn,
    ToolCall,
    ToolCallingProvider,
    as_message,
    tool_calling_provider,
)

NoSecret = Callable[[BaseException], None]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "count",
            "description": "Counts.",
            "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}},
        },
    }
]
# What is sent must not be seen in an error either.
ASKED = [{"role": "user", "content": f"count, please {KEY}"}]


@pytest.fixture
def make(model_server: Any, key: str) -> Callable[..., LitellmToolCalling]:
    def build(model: str = "openai/gpt-4o-mini", **changed: Any) -> LitellmToolCalling:
        settings = {
            "timeout_s": 30.0,
            "retries": 1,
            "first_wait_s": 0.0,
            "api_base": model_server.url,
            "api_key": key,
        }
        return LitellmToolCalling(model, **(settings | changed))

    return build


def failure(provider: ToolCallingProvider) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        provider.chat(ASKED, TOOLS)
    return caught.value


def test_calls_and_tokens_come_back(model_server: Any, make: Any, key: str) -> None:
    model_server.behave(model_server.calls(("count", {"n": 7}), ("count", {"n": 8}), text="both"))
    provider = make()
    assert isinstance(provider, ToolCallingProvider)
    turn = provider.chat([{"role": "system", "content": "be brief"}, *ASKED], TOOLS)
    first, second = ToolCall("call_0", "count", '{"n": 7}'), ToolCall("call_1", "count", '{"n": 8}')
    assert turn == ChatTurn("both", (first, second), 30, 12)
    request = model_server.requests[0]
    assert request["path"] == "/v1/chat/completions"
    assert request["authorization"] == f"Bearer {key}"
    assert request["tools"] == TOOLS
    assert request["tool_choice"] == "auto"
    assert request["temperature"] == 0


def test_the_answers_of_tools_are_sent_back(model_server: Any, make: Any) -> None:
    model_server.behave(model_server.calls(("count", {"n": 7})), model_server.writes("Seven."))
    provider = make()
    asked = provider.chat(ASKED, TOOLS)
    answer = {"role": "tool", "tool_call_id": asked.tool_calls[0].id, "content": '{"ok": true}'}
    last = provider.chat([*ASKED, as_message(asked), answer], TOOLS)
    assert last.text == "Seven."
    assert last.tool_calls == ()
    sent = model_server.requests[1]["messages"]
    assert sent[1]["tool_calls"][0]["function"] == {"name": "count", "arguments": '{"n": 7}'}
    assert sent[2] == answer


@pytest.mark.parametrize("arguments", ["", "{", '{"n": 7', "[1]", "seven", '{"n": NaN}'])
def test_arguments_that_are_no_json_and_unknown_tools_are_left_to_the_caller(
    model_server: Any, make: Any, arguments: str
) -> None:
    model_server.behave(model_server.calls(("forget_everything", arguments)))
    turn = make().chat(ASKED, TOOLS)
    assert turn.tool_calls == (ToolCall("call_0", "forget_everything", arguments),)


def test_without_tools_none_are_offered(model_server: Any, make: Any) -> None:
    model_server.behave(model_server.writes("Hello."))
    assert make().chat(ASKED, []).text == "Hello."
    assert "tools" not in model_server.requests[0]
    assert "tool_choice" not in model_server.requests[0]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_overload_passes(model_server: Any, make: Any, status: int) -> None:
    model_server.behave(model_server.fails(status), model_server.calls(("count", {"n": 1})))
    assert make().chat(ASKED, TOOLS).tool_calls[0].name == "count"
    assert len(model_server.requests) == 2


@pytest.mark.parametrize("status", [429, 500])
def test_lasting_overload_is_unavailable(
    model_server: Any, make: Any, assert_no_secret: NoSecret, status: int
) -> None:
    model_server.behave(model_server.fails(status))
    error = failure(make())
    assert isinstance(error, ProviderUnavailable)
    assert error.details["status"] == status
    assert len(model_server.requests) == 2
    assert_no_secret(error)


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_refusal_is_not_retried(
    model_server: Any, make: Any, assert_no_secret: NoSecret, status: int
) -> None:
    model_server.behave(model_server.fails(status))
    error = failure(make())
    assert isinstance(error, ProviderRejected)
    assert len(model_server.requests) == 1
    assert_no_secret(error)


@pytest.mark.parametrize("way", ["hangs", "dribbles"])
def test_a_late_model_is_unavailable(
    model_server: Any, make: Any, assert_no_secret: NoSecret, way: str
) -> None:
    model_server.behave(getattr(model_server, way))
    provider = make(timeout_s=0.3)
    model_server.behave(model_server.writes("loaded"), getattr(model_server, way))
    make().chat(ASKED, TOOLS)
    began = time.monotonic()
    error = failure(provider)
    assert isinstance(error, ProviderUnavailable)
    assert len(model_server.requests) == 3
    # Far from the limits of a server that never ends.
    assert time.monotonic() - began < 20
    assert_no_secret(error)


def test_nobody_listens(make: Any, assert_no_secret: NoSecret) -> None:
    error = failure(make(api_base="http://127.0.0.1:9/v1", retries=0))
    assert isinstance(error, ProviderUnavailable)
    assert_no_secret(error)


def test_an_answer_cut_off_is_invalid(model_server: Any, make: Any) -> None:
    model_server.behave(model_server.calls(("count", '{"n": '), finish_reason="length"))
    error = failure(make())
    assert isinstance(error, ProviderAnswerInvalid)
    assert error.details["reason"] == "cut_off"
    assert len(model_server.requests) == 1


@pytest.mark.parametrize(
    "body",
    [
        "<html>",
        "",
        '{"choices": [{"index": 0, "mess',
        {"object": "chat.completion", "choices": []},
        {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant"}}]},
    ],
)
def test_half_answers_are_invalid(
    model_server: Any, make: Any, assert_no_secret: NoSecret, body: Any
) -> None:
    model_server.behave(model_server.says(200, body))
    error = failure(make())
    assert isinstance(error, ProviderAnswerInvalid)
    assert_no_secret(error)


@pytest.mark.parametrize(
    "calls",
    [[{"id": 7}], [{"id": "a", "type": "function", "function": {"name": None}}], ["count"], "all"],
)
def test_calls_of_no_known_shape_are_an_error(
    model_server: Any, make: Any, assert_no_secret: NoSecret, calls: Any
) -> None:
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    model_server.behave(model_server.says(200, {"choices": [choice]}))
    # litellm takes some of them for a failure of the server.
    error = failure(make())
    assert isinstance(error, ProviderAnswerInvalid | ProviderUnavailable)
    assert_no_secret(error)


def test_too_many_calls_are_invalid(model_server: Any, make: Any) -> None:
    model_server.behave(model_server.calls(*[("count", {})] * (MAX_TOOL_CALLS + 1)))
    error = failure(make())
    assert isinstance(error, ProviderAnswerInvalid)
    assert error.details["reason"] == "tool_calls"


@pytest.mark.parametrize("name", ["", "litellm/", "local", "openai/x"])
def test_factory_refuses_unknown_names(name: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        tool_calling_provider(name)
    assert caught.value.details["key"] == "name"


def test_factory_checks_and_passes_settings(model_server: Any, key: str) -> None:
    with pytest.raises(InvalidConfig):
        tool_calling_provider("litellm/openai/x", max_tokens=0)
    model_server.behave(model_server.writes("Yes."))
    provider = tool_calling_provider(
        "litellm/openai/x", max_tokens=9, api_base=model_server.url, api_key=key
    )
    assert provider.name == "litellm/openai/x"
    assert provider.chat(ASKED, ()).text == "Yes."
    assert model_server.requests[0]["max_tokens"] == 9


def test_the_fake_plays_its_turns() -> None:
    down = ProviderUnavailable("down")
    provider = FakeToolCalling([ChatTurn("one"), down])
    provider.play(lambda messages: ChatTurn(messages[-1]["content"]))
    assert isinstance(provider, ToolCallingProvider)
    assert provider.chat(ASKED, TOOLS).text == "one"
    assert failure(provider) is down
    assert provider.chat(ASKED, TOOLS).text == ASKED[0]["content"]
    assert provider.chat(ASKED, TOOLS) == ChatTurn("Done.")
    assert provider.calls == [ASKED] * 4
    assert provider.tools == ("count",)
