"""Without the extra: who asks for a model of litellm is told so, and all else goes on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from memgraph import MemoryService
from memgraph.errors import ExtraMissing
from memgraph.providers.completion import completion_provider
from memgraph.providers.embedding import embedding_provider

MODEL = "litellm/openai/some-model"
HINT = r"pip install 'memgraph-memory\[litellm\]'"
EMBEDDING = {"memory.embedding.provider": MODEL, "memory.embedding.dimensions": 256}
EXTRACTOR = {"memory.extractor.provider": MODEL}


@pytest.fixture(autouse=True)
def _no_litellm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can import it, and nobody finds it: as if it were not installed."""
    monkeypatch.setitem(sys.modules, "litellm", None)


def asked_of_each() -> dict[str, Any]:
    return {
        "embedding": lambda: embedding_provider(MODEL, dimensions=8).embed(["a text"]),
        "completion": lambda: completion_provider(MODEL).complete_json("s", "u", {}),
    }


@pytest.mark.parametrize("manner", asked_of_each())
def test_a_call_names_the_extra_at_once(manner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("tenacity.nap.time.sleep", pauses.append)
    with pytest.raises(ExtraMissing, match=HINT) as told:
        asked_of_each()[manner]()
    assert told.value.as_dict()["code"] == "extra.missing"
    assert told.value.details == {"extra": "litellm"}
    assert pauses == []


@pytest.mark.parametrize("package", ["openai", "httpx"])
def test_what_comes_with_it_may_lack_too(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ExtraMissing, match=rf"{package} is not installed: {HINT}"):
        asked_of_each()["embedding"]()


@pytest.mark.parametrize("config", [EMBEDDING, EXTRACTOR])
def test_health_tells_of_it_before_anyone_asks(config: dict[str, Any], tmp_path: Path) -> None:
    with MemoryService(tmp_path, config=config, environ={}, background=False) as service:
        service.create("orc")
        health = service.health("orc")
    assert (health["status"], health["degraded"]) == ("ready", ["extra.missing"])
