"""The ablation leaves out what it says, and nothing else."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

from benchmarks import ablation
from memgraph.retrieval import legs, scores


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


def test_every_leg_and_every_modifier_has_a_row() -> None:
    rows = ablation.variants()
    assert {f"without the {leg} leg" for leg in legs.WEIGHTS} <= rows.keys()
    touched = {name for each in ablation.NEUTRAL.values() for name in each}
    assert touched | {"recency_half_life_days"} == {each.name for each in fields(scores.MODIFIERS)}
