"""The bench of turns measures what it says."""

from __future__ import annotations

import sys

import pytest

from benchmarks.turns import Load, run
from memgraph.errors import InvalidInput


def test_every_turn_is_run_and_kept() -> None:
    stages: list[str] = []
    usual = sys.getswitchinterval()
    load = Load(turns=4, orchestrators=2, memories=20, rounds=2, pause_ms=10, switch_ms=1.0)
    found = run(load, lambda stage, _done, _total: stages.append(stage))
    assert (found["in_flight"]["turns"], found["burst"]["turns"]) == (8, 4)
    assert found["in_flight"]["errors"] == found["burst"]["errors"] == 0
    assert found["stored"] is True
    assert found["lost"] == 0
    for hook in ("message", "step", "output", "reply"):
        times = found["in_flight"][f"on_{hook}_ms"]
        assert 0 < times["p50"] <= times["p95"] <= times["p99"]
    assert {"storing", "warming", "turns", "burst"} <= set(stages)
    assert sys.getswitchinterval() == usual


@pytest.mark.parametrize(
    "wrong", [{"turns": 0}, {"orchestrators": 0}, {"rounds": 0}, {"switch_ms": 0.0}]
)
def test_impossible_loads_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidInput):
        Load(**wrong)
