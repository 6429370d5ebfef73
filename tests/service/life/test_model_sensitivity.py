"""Nothing above the configured sensitivity is in any request to a language model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from model_server import ModelServer
from page_models import settings

from memgraph import MemoryService
from memgraph.model.enums import Sensitivity
from memgraph.rules.scope import Viewer

LEVELS = ("Public", "Internal", "Confidential", "Restricted")
INGESTED = "canaryingested"
CANARIES = {level: f"canary{level.lower()}" for level in LEVELS}


def empty(request: dict[str, Any]) -> Any:
    """An answer with nothing in it, of the shape that was asked for."""
    schema = request["response_format"]["json_schema"]["schema"]
    values = {"boolean": False, "string": "", "array": [], "integer": 0, "object": {}}
    answer = {name: values[each["type"]] for name, each in schema["properties"].items()}
    return ModelServer.writes(json.dumps(answer))(request)


@pytest.mark.parametrize("limit", ["Public", "Confidential"])
def test_canaries_above_the_limit_reach_no_request(
    tmp_path: Path, server: ModelServer, limit: str
) -> None:
    server.behave(empty)
    config = settings(
        server,
        **{
            "memory.llm.max_sensitivity": limit,
            "memory.entities.accurate": ["llm"],
            "memory.extractor.provider": "litellm/openai/any",
            "memory.extractor.api_base": server.url,
            "memory.extractor.api_key_from": "KEY",
        },
    )
    with MemoryService(tmp_path, config=config, environ={"KEY": "k"}, background=False) as service:
        everybody = Viewer(clearance=Sensitivity.RESTRICTED)
        orchestrator = service.orchestrator("ana", create=True, viewer=everybody)
        for level in LEVELS:
            word = CANARIES[level]
            orchestrator.save_episode(
                f"Bruno hid the {word} in Oslo yesterday.",
                session_id=f"s-{level}",
                source_role="Bruno",
                sensitivity=level,
            )
            orchestrator.save_episode(
                f"We painted the {word} in Oslo green.",
                session_id="mixed",
                source_role="Ana",
                sensitivity=level,
            )
            orchestrator.sessions.end(f"s-{level}")
            for verb in ("stands", "lies"):
                orchestrator.remember(f"The {word} {verb} in Oslo.", sensitivity=level)
        orchestrator.sessions.end("mixed")
        orchestrator.settle()
        for job in ("consolidation", "enrichment", "reflection"):
            orchestrator.jobs.run(job)
        orchestrator.ingestion.propose(f"The {INGESTED} leads to Oslo.")
        orchestrator.ask("Where in Oslo are the canaries?")
        uses = set(orchestrator.maintenance.stats()["model"]["by_use"])
    sent = json.dumps(server.requests)
    place = LEVELS.index(limit)
    for level in LEVELS[: place + 1]:
        assert CANARIES[level] in sent
    for level in LEVELS[place + 1 :]:
        assert CANARIES[level] not in sent
    assert (INGESTED in sent) == (limit != "Public")
    # Internal is the least that facts and files have; profiles need three of one place.
    assert uses >= {"consolidation", "comparison", "enrichment", "reflection", "ask"}
    assert ("ingest" in uses) == (limit != "Public")
    assert "profiles" in uses
