"""``config check`` calls a configured language model once, and reports what it can do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from model_server import KEY, ModelServer

GOOD = '{"word": "memory", "letters": 6}'


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    server = ModelServer()
    for key, value in {
        "provider": "litellm/openai/gpt-4o-mini",
        "api_base": server.url,
        "api_key_from": "MY_KEY",
    }.items():
        monkeypatch.setenv(f"MEMGRAPH_MEMORY__LLM__{key.upper()}", value)
    monkeypatch.setenv("MY_KEY", KEY)
    yield server
    server.close()


def test_a_model_that_answers_by_the_schema_is_reported(cli: Any, model: ModelServer) -> None:
    model.behave(model.writes(GOOD))
    [check] = cli.json("config", "check")["models"]
    assert (check["model"], check["answers"], check["schema"]) == (
        "litellm/openai/gpt-4o-mini",
        True,
        True,
    )
    assert check["error"] is None
    assert len(model.requests) == 1
    shown = cli("config", "check").out.splitlines()[-1]
    assert shown.split()[1:3] == ["yes", "yes"]


def test_a_model_that_fails_is_an_error_with_a_code(cli: Any, model: ModelServer) -> None:
    for behaviour, answers, code in (
        (model.writes("The word has six letters."), True, "provider.answer_invalid"),
        (model.fails(503), False, "provider.unavailable"),
    ):
        model.behave(behaviour)
        before = len(model.requests)
        error = cli.error("config", "check")
        assert error["code"] == code
        [check] = error["details"]["models"]
        assert (check["answers"], check["schema"]) == (answers, False)
        assert check["error"]["code"] == code
        assert KEY not in str(error)
        assert len(model.requests) == before + 1
    assert cli("config", "check").out.splitlines()[-1].endswith(f"   {code}")


def test_what_was_checked_is_named_and_how_to_add_a_model(cli: Any) -> None:
    cli.json("init", "orc-1", "--exist-ok")
    shown = cli("config", "check").out
    assert shown.startswith("the root: ok\norchestrator orc-1: ok\nno language model is configured")
    assert '[memory.llm]\nprovider = "litellm/' in shown
