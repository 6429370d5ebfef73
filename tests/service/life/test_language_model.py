"""Which language model is in force: of the settings, of the environment's key, or given by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from model_server import KEY, ModelServer

from memgraph import MemoryService
from memgraph.config import load_settings
from memgraph.model.enums import Sensitivity
from memgraph.operations.life.models import LanguageModel, configured_llm
from memgraph.providers.fake import FakeCompletion


def settings(root: Path, **llm: Any) -> Any:
    overrides = {f"memory.llm.{key}": value for key, value in llm.items()}
    return load_settings(root, environ={}, overrides=overrides)


def test_without_a_provider_there_is_none(tmp_path: Path) -> None:
    assert configured_llm(settings(tmp_path), {}) is None


def test_it_uses_the_configured_server_and_key(tmp_path: Path) -> None:
    server = ModelServer()
    try:
        chosen = settings(
            tmp_path,
            provider="litellm/openai/any",
            api_base=server.url,
            api_key_from="MY_KEY",
            max_sensitivity="Confidential",
        )
        llm = configured_llm(chosen, {"MY_KEY": KEY})
        assert llm is not None
        assert llm.name == "litellm/openai/any"
        server.behave(server.writes("{}"))
        assert llm.completion.complete_json("s", "u", {}) == {}
        assert {each["authorization"] for each in server.requests} == {f"Bearer {KEY}"}
    finally:
        server.close()
    assert llm.may_read(Sensitivity.CONFIDENTIAL)
    assert not llm.may_read(Sensitivity.RESTRICTED)


@pytest.mark.parametrize("configured", ["none", "litellm/openai/any"])
def test_an_open_orchestrator_has_the_configured_one_or_the_one_given(
    tmp_path: Path, configured: str
) -> None:
    given = LanguageModel(FakeCompletion())
    config = {"memory.llm.provider": configured}
    for llm, name in ((given, "fake"), (None, None if configured == "none" else configured)):
        with MemoryService(tmp_path, config=config, environ={}, llm=llm) as service:
            service.orchestrator("ana", create=True)
            with service.opened("ana") as opened:
                assert (opened.llm.name if opened.llm else None) == name
