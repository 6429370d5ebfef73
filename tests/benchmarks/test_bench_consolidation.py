"""The benchmark of consolidation counts correctly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import consolidation
from memgraph.errors import InvalidInput


def written(folder: Path) -> Path:
    said = [
        ("Ana", "I moved to Porto yesterday with my wife."),
        ("Ben", "Wow, great news!"),
        ("Ana", "My dog is called Rex."),
        ("Ben", "How lovely, thanks for telling me all of this, I can't wait to see you both!"),
    ]
    sample: dict[str, Any] = {
        "conversation": {
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": speaker, "dia_id": f"D1:{number}", "text": text}
                for number, (speaker, text) in enumerate(said, start=1)
            ],
        },
        "qa": [
            {"question": "Where did Ana move to?", "evidence": ["D1:1"], "category": 4},
            {"question": "What is the dog called?", "evidence": ["D1:3", "D1:2"], "category": 1},
        ],
    }
    path = folder / "talk.json"
    path.write_text(json.dumps([sample]))
    return path


def test_facts_and_what_they_cover(tmp_path: Path) -> None:
    found = consolidation.run(written(tmp_path))
    assert found["facts"]["number"] == 2
    assert sum(found["facts"]["by_type"].values()) == 2
    assert found["turns"] == {"number": 4, "sessions": 1, "covered": 0.5}
    assert found["coverage"]["facts"]["questions"] == 1.0
    assert found["coverage"]["facts"]["evidence"] == 0.75
    # The first and the last turn are the longest.
    assert found["coverage"]["longest_turns"]["questions"] == 0.5
    assert found["cpu_ms_per_20_turns"] > 0


def test_the_base_line_depends_on_its_seed_alone(tmp_path: Path) -> None:
    path = written(tmp_path)
    first, again = (consolidation.run(path, 3)["coverage"] for _ in range(2))
    assert first == again


def test_recall_counts_a_fact_as_its_turns(tmp_path: Path) -> None:
    told: list[str] = []
    found = consolidation.run(written(tmp_path), recall=True, progress=told.append)["recall"]
    assert found["turns"]["questions"] == 2
    assert found["facts"]["recall@10"] == 0.75
    assert found["consolidated"]["facts"] > 0
    assert found["facts"]["hit@10"] == 1.0
    assert found["turns_and_facts"]["recall@10"] >= found["turns"]["recall@10"] - 1e-9
    assert len(told) == 1


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text("[1]")
    with pytest.raises(InvalidInput):
        consolidation.run(path)
