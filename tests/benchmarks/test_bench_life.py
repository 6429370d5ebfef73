"""The bench of the life of a memory measures what it says."""

from __future__ import annotations

import pytest

from benchmarks.life import run
from benchmarks.talks import TURNS
from memgraph.errors import InvalidInput


def test_every_session_is_consolidated() -> None:
    stages: list[str] = []
    found = run(4, facts=200, progress=lambda part, _done, _total: stages.append(part))
    assert (found["sessions"], found["turns"]) == (4, 4 * TURNS)
    assert found["counts"]["sessions"] == 4
    assert found["counts"]["turns"] == 4 * TURNS
    assert found["counts"]["facts"] > 0
    assert 0 < found["ms_p50"] <= found["ms_p99"]
    assert {"storing", "sessions", "storing facts", "nights"} <= set(stages)
    retired = {name: night["retired"] for name, night in found["decay"].items()}
    assert retired == {"nothing expired": 0, "one in a hundred": 2, "all others": 198}


@pytest.mark.parametrize("wrong", [{"sessions": 0}, {"facts": -1}])
def test_impossible_numbers_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidInput):
        run(**wrong)
