"""The latency bench runs whole at a small size; its figures are held loosely."""

from __future__ import annotations

import pytest

from memgraph.errors import InvalidInput
from memgraph.service.bench import latency
from memgraph.service.bench.corpus import corpus


def test_the_corpus_is_the_same_every_time() -> None:
    one, other = corpus(), corpus()
    assert [one.text(at) for at in range(30)] == [other.text(at) for at in range(30)]
    assert one.question(1, 30) == other.question(1, 30)
    assert corpus(2).text(0) != one.text(0)


def test_percentiles_are_nearest_ranks() -> None:
    taken = [number / 1000 for number in range(1, 101)]
    assert latency.percentiles(taken) == {"p50": 50.0, "p95": 95.0, "p99": 99.0}
    assert latency.percentiles([0.002]) == {"p50": 2.0, "p95": 2.0, "p99": 2.0}


def test_a_small_size_is_measured() -> None:
    found = latency.run([200], rounds=8)["sizes"]["200"]
    for name in ("recall", "raw_recall", "write", "raw_write", "subgraph", "bulletin_changed"):
        assert 0.0 < found[name]["p50"] <= found[name]["p95"] <= found[name]["p99"]
    assert found["overlap_at_20"] >= 0.9
    assert found["recall_ratio"] > 0.0
    assert found["bulk_per_s"] > 0.0
    assert min(found["disk_bytes_per_memory"], found["raw_disk_bytes_per_memory"]) > 0.0


@pytest.mark.parametrize("sizes", [[], [10]])
def test_sizes_have_a_least(sizes: list[int]) -> None:
    with pytest.raises(InvalidInput):
        latency.run(sizes)
