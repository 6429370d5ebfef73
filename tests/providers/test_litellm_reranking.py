"""Reranking through litellm, against a real server that answers well, badly, late or for ever."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from model_server import KEY

from memgraph.errors import (
    ProviderAnswerInvalid,
    ProviderError,
    ProviderRejected,
    ProviderUnavailable,
)
from memgraph.providers import _litellm
from memgraph.providers.litellm_reranking import LitellmChatReranking, LitellmReranking

NoSecret = Callable[[BaseException], None]
Make = Callable[..., LitellmReranking | LitellmChatReranking]

TEXTS = ["xx", "x", "xxxx", "xxx"]
BY_LENGTH = (2, 3, 0, 1)
# What a text says must not be seen in an error or a log either.
SECRET = f"my text {KEY}"


@pytest.fixture
def make(model_server: Any, key: str) -> Make:
    def build(kind: Any = LitellmReranking, model: str = "", **changed: Any) -> Any:
        settings = {
            "timeout_s": 60.0,
            "retries": 1,
            "first_wait_s": 0.0,
            "api_base": model_server.url,
            "api_key": key,
        }
        chosen = model or ("openai/any" if kind is LitellmChatReranking else "jina_ai/any")
        return kind(chosen, **(settings | changed))

    return build


@pytest.fixture(params=[LitellmReranking, LitellmChatReranking])
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


def length(_query: str, text: str) -> float:
    return float(len(text))


def failure(provider: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        provider.rank(SECRET, [SECRET, *TEXTS])
    return caught.value


@pytest.mark.parametrize(
    "model", ["cohere/m", "jina_ai/m", "infinity/m", "hosted_vllm/m", "litellm_proxy/m"]
)
def test_an_order_comes_back_from_any_rerank_interface(
    model_server: Any, make: Any, key: str, model: str
) -> None:
    model_server.behave(model_server.reranks(length))
    assert make(model=model).rank("how long?", TEXTS) == BY_LENGTH
    request = model_server.requests[0]
    assert request["path"].endswith("/rerank")
    assert request["authorization"].casefold() == f"bearer {key}"
    assert (request["model"], request["query"], request["documents"]) == ("m", "how long?", TEXTS)
    assert request["top_n"] == len(TEXTS)
    assert request["return_documents"] is False


def test_an_order_comes_back_from_a_chat_model(model_server: Any, make: Any) -> None:
    model_server.behave(model_server.writes('{"order": [3, 4, 1, 2]}'))
    assert make(LitellmChatReranking).rank("how long?", TEXTS) == BY_LENGTH
    request = model_server.requests[0]
    lines = request["messages"][1]["content"].splitlines()
    assert json.loads(lines[1]) == {"question": "how long?"}
    assert [json.loads(line) for line in lines[2:-1]] == [
        {"number": number, "text": text} for number, text in enumerate(TEXTS, start=1)
    ]
    assert request["temperature"] == 0


def test_the_mark_of_a_chat_prompt_is_new_every_time(model_server: Any, make: Any) -> None:
    model_server.behave(model_server.writes("[1]"))
    provider = make(LitellmChatReranking)
    for _ in range(2):
        provider.rank("q", TEXTS)
    first, second = (each["messages"][1]["content"] for each in model_server.requests)
    marks = [re.findall(r"^</?data-(\w{16,})>$", each, re.MULTILINE) for each in (first, second)]
    assert [len(set(each)) for each in marks] == [1, 1]
    assert marks[0] != marks[1]


def test_a_partial_order_is_an_order(model_server: Any, make: Any) -> None:
    model_server.behave(model_server.reranks(length, first=2))
    assert make().rank("q", TEXTS) == (0, 1)
    model_server.behave(model_server.writes("```json\n[4, 4, 99, 0, -1, 2]\n```"))
    assert make(LitellmChatReranking).rank("q", TEXTS) == (3, 1)


def test_any_text_can_be_sent(model_server: Any, make: Any) -> None:
    model_server.behave(model_server.reranks(length))
    assert make().rank("\ud800", ["", "\x00", "東京"]) == (2, 1, 0)
    model_server.behave(model_server.writes("[3, 2, 1]"))
    assert make(LitellmChatReranking).rank("\ud800", ["", "\x00", "東京"]) == (2, 1, 0)


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_passing_trouble_is_retried(model_server: Any, make: Any, status: int) -> None:
    model_server.behave(model_server.fails(status), model_server.reranks(length))
    assert make().rank("q", TEXTS) == BY_LENGTH
    assert len(model_server.requests) == 2


@pytest.mark.parametrize("status", [429, 500, 503])
def test_lasting_trouble_is_unavailable(
    model_server: Any, make: Any, kind: Any, assert_no_secret: NoSecret, status: int
) -> None:
    model_server.behave(model_server.fails(status))
    error = failure(make(kind))
    assert isinstance(error, ProviderUnavailable)
    assert error.details["status"] == status
    assert len(model_server.requests) == 2
    assert_no_secret(error)


@pytest.mark.parametrize("status", [400, 401, 404, 422])
def test_a_refusal_is_not_retried(
    model_server: Any, make: Any, kind: Any, assert_no_secret: NoSecret, status: int
) -> None:
    model_server.behave(model_server.fails(status))
    error = failure(make(kind))
    assert isinstance(error, ProviderRejected)
    assert len(model_server.requests) == 1
    assert_no_secret(error)


@pytest.mark.parametrize("late", ["hangs", "dribbles"])
def test_the_limit_of_time_is_hard(
    model_server: Any, make: Any, kind: Any, assert_no_secret: NoSecret, late: str
) -> None:
    model_server.behave(getattr(model_server, late))
    _litellm.load()
    provider = make(kind, timeout_s=0.3, retries=20)
    begun = time.monotonic()
    error = failure(provider)
    # A dribbled byte comes every 0.02 s: without the limit this would last as long as the server.
    assert time.monotonic() - begun < 10.0
    assert isinstance(error, ProviderUnavailable)
    assert_no_secret(error)


def test_pauses_before_retries_count_as_well(model_server: Any, make: Any) -> None:
    model_server.behave(model_server.fails(500))
    begun = time.monotonic()
    failure(make(timeout_s=1.0, retries=20, first_wait_s=0.2))
    assert time.monotonic() - begun < 10.0
    asked = len(model_server.requests)
    assert asked < 20
    time.sleep(0.5)
    # One may have been under way; nobody goes on trying for an answer that is not awaited.
    assert len(model_server.requests) <= asked + 1


def test_a_flood_is_not_read(model_server: Any, make: Any, assert_no_secret: NoSecret) -> None:
    model_server.behave(model_server.floods)
    error = failure(make())
    assert isinstance(error, ProviderAnswerInvalid)
    assert_no_secret(error)


@pytest.mark.parametrize(
    "body",
    [
        "",
        f"<html>{SECRET}</html>",
        [1, 2],
        {"results": None},
        {"results": SECRET},
        {"results": [{"index": 0}]},
        {"results": [{"index": 0, "relevance_score": float("nan")}]},
        {"results": [{"index": 99, "relevance_score": 0.5}]},
        "[" * 100_000,
    ],
)
@pytest.mark.parametrize("model", ["cohere/m", "jina_ai/m"])
def test_an_unusable_answer_is_invalid(
    model_server: Any, make: Any, assert_no_secret: NoSecret, model: str, body: Any
) -> None:
    model_server.behave(model_server.says(200, body))
    error = failure(make(model=model))
    assert isinstance(error, ProviderAnswerInvalid)
    assert len(model_server.requests) == 1
    assert_no_secret(error)


@pytest.mark.parametrize(
    "text",
    [None, "", "3, 1, 2", '{"order": [1.5]}', '{"order": {}}', "[NaN]", "[]", "[99]", "[true]"],
)
def test_an_unusable_chat_answer_is_invalid(
    model_server: Any, make: Any, assert_no_secret: NoSecret, text: str | None
) -> None:
    model_server.behave(model_server.writes(text))
    error = failure(make(LitellmChatReranking))
    assert isinstance(error, ProviderAnswerInvalid)
    assert_no_secret(error)


def test_a_model_without_a_rerank_interface_is_an_error(make: Any, model_server: Any) -> None:
    model_server.behave(model_server.reranks(length))
    failure(make(model="openai/gpt-4o-mini"))
    assert model_server.requests == []


def test_only_our_own_calls_silence_litellm(
    model_server: Any, make: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its log quotes what a server answered; a host application that uses it keeps its log."""
    model_server.behave(model_server.says(400, SECRET))
    failure(make())
    assert capfd.readouterr().err == ""
    logging.getLogger("LiteLLM").error("of the host")
    assert "of the host" in capfd.readouterr().err
