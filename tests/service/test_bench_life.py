"""The bench of the life of a memory measures what it says."""

from __future__ import annotations

import pytest

from memgraph.errors import InvalidInput
from memgraph.service.bench.life import run
from memgraph.service.bench.talks import TURNS, talks


def test_every_session_is_consolidated() -> None:
    stages: list[str] = []
    found = run(4, progress=lambda part, _done, _total: stages.append(part))
    assert (found["sessions"], found["turns"]) == (4, 4 * TURNS)
    assert found["counts"]["sessions"] == 4
    assert found["counts"]["turns"] == 4 * TURNS
    assert found["counts"]["facts"] > 0
    assert 0 < found["ms_p50"] <= found["ms_p99"]
    assert {"storing", "sessions"} <= set(stages)


def test_the_same_seed_gives_the_same_talks() -> None:
    assert list(talks(2, seed=3)) == list(talks(2, seed=3))
    assert list(talks(2, seed=3)) != list(talks(2, seed=4))


def test_no_sessions_are_refused() -> None:
    with pytest.raises(InvalidInput):
        run(0)
