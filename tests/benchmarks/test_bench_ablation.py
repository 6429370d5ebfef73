"""The ablation leaves out what it says, by settings alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import ablation, staleness
from memgraph.config.schema import Settings


def turns(*texts: str) -> list[dict[str, str]]:
    return [
        {"speaker": "Ana" if at % 2 else "Ben", "dia_id": f"D1:{at}", "text": text}
        for at, text in enumerate(texts, start=1)
    ]


def written(folder: Path) -> Path:
    path = folder / "small.json"
    said = {
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": turns("My bicycle has a flat tyre.", "Take mine.", "It is a tandem."),
    }
    asked = {"question": "Whose bicycle has a flat tyre?", "evidence": ["D1:1"], "category": 4}
    path.write_text(json.dumps([{"conversation": said, "qa": [asked]}]))
    return path


def test_every_row_is_measured_and_compared_with_the_whole(tmp_path: Path) -> None:
    told: list[str] = []
    found = ablation.run(written(tmp_path), histories=0, progress=told.append)
    rows = found["conversations"]
    assert list(rows) == list(ablation.variants())
    assert found["histories"] == {}
    assert rows[ablation.WHOLE]["difference"] == 0.0
    assert rows[ablation.WHOLE]["recall@10"] == rows["text alone"]["recall@10"] == 1.0
    assert {row["questions"] for row in rows.values()} == {1}
    assert len(told) == 1 + len(rows)


def test_histories_are_played_with_the_settings_of_their_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[dict[str, Any]] = []

    def played(count: int, *, config: dict[str, Any]) -> dict[str, Any]:
        given.append(config)
        return dict.fromkeys((*ablation.HISTORY_MEASURES, "questions"), count)

    monkeypatch.setattr(staleness, "run", played)
    rows = ablation.run(written(tmp_path), histories=7)["histories"]
    assert list(rows)[:2] == [ablation.WHOLE, "without the graph leg"]
    assert given == [ablation.variants()[name] for name in rows]
    assert rows["without status"] == dict.fromkeys(ablation.HISTORY_MEASURES, 7)


def test_every_leg_and_every_modifier_has_a_row() -> None:
    retrieval = Settings().memory.retrieval
    assert set(ablation.LEGS) == set(type(retrieval.weights).model_fields)
    touched = {name for each in ablation.NEUTRAL.values() for name in each}
    assert touched | {"recency_half_life_days"} == set(type(retrieval.modifiers).model_fields)
