"""``memgraph bench labels`` scores the entities of the provider that it is asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import labels
from memgraph.config import Settings
from memgraph.errors import InvalidConfig, ProviderRejected


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    text = "Caroline Smith joined tidewater"
    entities = [
        {"start": 0, "end": 14, "type": "person"},
        {"start": 22, "end": 31, "type": "organization"},
    ]
    line = json.dumps({"text": text, "entities": entities})
    (tmp_path / "entities.jsonl").write_text(line, encoding="utf-8")
    return tmp_path


def with_pipeline(folder: Path) -> Settings:
    import spacy

    made = spacy.blank("en")
    ruler: Any = made.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "ORG", "pattern": "tidewater"}])
    made.to_disk(folder / "pipeline")
    pipeline = {"spacy_model": str(folder / "pipeline")}
    return Settings.model_validate({"memory": {"entities": pipeline}})


def hits(found: dict[str, Any]) -> dict[str, int]:
    per_type = found["entities"]["per_type"]
    return {kind: each["hits"] for kind, each in per_type.items() if each["hits"]}


def test_each_provider_is_scored_alone_and_the_strategy_as_a_whole(folder: Path) -> None:
    settings = with_pipeline(folder)
    assert hits(labels.run(folder)) == {"person": 1}
    assert hits(labels.run(folder, "spacy", settings)) == {"organization": 1}
    both = {"person": 1, "organization": 1}
    assert hits(labels.run(folder, "accurate", settings)) == both


def test_what_is_not_configured_or_fails_is_no_score(folder: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"memory\.llm\.provider"):
        labels.run(folder, "llm")
    broken = {"memory": {"entities": {"spacy_model": str(folder / "none")}}}
    with pytest.raises(ProviderRejected):
        labels.run(folder, "accurate", Settings.model_validate(broken))
