"""The ablation leaves out what it says, and nothing else."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

from test_bench_locomo import sample

from benchmarks import ablation
from memgraph.retrieval import legs, scores


def test_every_row_is_measured_and_compared_with_the_whole(tmp_path: Path) -> None:
    told: list[str] = []
    path = tmp_path / "small.json"
    path.write_text(json.dumps([sample()]))
    found = ablation.run(path, histories=0, progress=told.append)
    rows = found["conversations"]
    assert list(rows) == list(ablation.variants())
    assert found["histories"] == {}
    assert rows[ablation.WHOLE]["difference"] == 0.0
    assert rows[ablation.WHOLE]["recall@10"] == rows["text alone"]["recall@10"] == 1.0
    assert {row["questions"] for row in rows.values()} == {2}
    assert len(told) == 1 + len(rows)


def test_every_leg_and_every_modifier_has_a_row() -> None:
    rows = ablation.variants()
    assert {f"without the {leg} leg" for leg in legs.WEIGHTS} <= rows.keys()
    touched = {name for each in ablation.NEUTRAL.values() for name in each}
    assert touched | {"recency_half_life_days"} == {each.name for each in fields(scores.MODIFIERS)}
