"""The benchmark of contexts measures what it reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import contexts
from memgraph.errors import InvalidInput


def test_every_kind_is_measured_and_a_kept_database_is_taken_as_it_is(tmp_path: Path) -> None:
    stages: list[str] = []

    def tell(stage: str, _done: int, _total: int) -> None:
        stages.append(stage)

    for _ in range(2):
        found = contexts.run([300], tell, rounds=2, budget_tokens=500, keep=tmp_path)
    figures = found["sizes"]["300"]
    assert figures["items"] > 0
    assert 0 < figures["tokens"] <= 500
    for name in ("context", "context_without_query", "recall", "recall_of_all"):
        assert 0.0 < figures[name]["p50"] <= figures[name]["p95"]
    assert stages.count("300: filling") == 1
    assert "300: measuring" in stages


@pytest.mark.parametrize("sizes", [[], [99], [1_000_001]])
def test_impossible_sizes_are_refused(sizes: list[int]) -> None:
    with pytest.raises(InvalidInput):
        contexts.run(sizes)
