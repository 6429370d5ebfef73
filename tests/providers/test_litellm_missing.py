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
LLM = {"memory.llm.provider": MODEL}
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


@pytest.fixture
def started(tmp_path: Path) -> Any:
    services: list[MemoryService] = []

    def start(config: dict[str, Any]) -> MemoryService:
        service = MemoryService(tmp_path, config=config, environ={}, background=False)
        services.append(service)
        return service

    yield start
    for service in services:
        service.close()


def test_recall_goes_on_over_words_and_embeddings_wait(started: Any) -> None:
    service = started(EMBEDDING)
    orc = service.orchestrator("orc", create=True)
    kept = orc.remember("The office is in Berlin.")
    drained = orc.maintenance.embed_pending()
    assert (drained.error_code, drained.failed, drained.put_off) == ("extra.missing", 0, 1)
    bundle = orc.recall("Where is the office?")
    assert [item.memory.memory_id for item in bundle.items] == [kept]
    [note] = [each for each in bundle.degraded if each.code == "vector.provider_failed"]
    assert "extra.missing" in note.text


def test_a_session_waits_for_its_model(started: Any) -> None:
    orc = started(LLM).orchestrator("orc", create=True)
    orc.save_episode("I live in Berlin.", session_id="s", source_role="user")
    [report] = orc.jobs.consolidate(session_id="s")
    assert report.error_code == "extra.missing"
    assert [one.pending for one in orc.sessions.list()] == [1]


@pytest.mark.parametrize("config", [EMBEDDING, LLM, EXTRACTOR])
def test_health_tells_of_it_before_anyone_asks(config: dict[str, Any], started: Any) -> None:
    service = started(config)
    service.create("orc")
    health = service.health("orc")
    assert (health["status"], health["degraded"]) == ("ready", ["extra.missing"])
