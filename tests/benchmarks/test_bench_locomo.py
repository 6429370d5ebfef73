"""The benchmark counts what it says it counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import locomo
from memgraph.errors import InvalidInput


def sample() -> dict[str, Any]:
    def turn(number: int, speaker: str, text: str, **more: str) -> dict[str, str]:
        return {"speaker": speaker, "dia_id": f"D1:{number}", "text": text, **more}

    return {
        "conversation": {
            "speaker_a": "Ana",
            "speaker_b": "Ben",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                turn(1, "Ana", "My bicycle has a flat tyre again."),
                turn(2, "Ben", "Take mine.", blip_caption="a red tandem"),
            ],
            "session_2_date_time": "9:00 am on 1 June, 2023",
        },
        "qa": [
            {"question": "Whose bicycle has a flat tyre?", "evidence": ["D1:1"], "category": 4},
            {"question": "Who has a tandem?", "evidence": ["D1:2; D9:9"], "category": 1},
            {"question": "Unanswerable?", "evidence": [], "category": 5},
        ],
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["D8:6; D9:17"], {"D8:6", "D9:17"}),
        (["D:11:26"], {"D11:26"}),
        (["D"], set()),
        (["D1:2", "D1:2"], {"D1:2"}),
    ],
)
def test_evidence_ids(given: list[str], expected: set[str]) -> None:
    assert locomo.evidence_ids(given) == expected


def test_score() -> None:
    ranked = [f"t{number}" for number in range(1, 21)]
    found = locomo.score(ranked, frozenset({"t3", "t8", "t15", "other"}))
    assert found == {
        "recall@5": 0.25,
        "recall@10": 0.5,
        "recall@20": 0.75,
        "hit@10": 1.0,
        "mrr": pytest.approx(1 / 3),
    }
    assert locomo.score(ranked[10:], frozenset({"t1"}))["mrr"] == 0.0


def test_a_small_file_is_measured(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    path.write_text(json.dumps([sample()]))
    told: list[str] = []
    found = locomo.run(path, told.append)
    assert found["recall@5"] == found["hit@10"] == 1.0
    assert (found["questions"], found["turns"], found["conversations"]) == (2, 2, 1)
    assert found["by_category"]["single_hop"]["questions"] == 1
    assert found["by_category"]["adversarial"]["questions"] == 0
    assert found["plain"]["FTS5"]["recall@5"] == 1.0
    assert list(found["plain"]) == ["FTS5", "static vectors", "FTS5 + vectors"]
    assert len(told) == 1


@pytest.mark.parametrize("content", ["{", "[{}]"])
def test_another_file_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(InvalidInput):
        locomo.run(path)
    with pytest.raises(InvalidInput, match="cannot read"):
        locomo.run(tmp_path / "none.json")
