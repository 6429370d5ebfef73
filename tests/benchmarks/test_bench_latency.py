"""The latency bench runs whole at small sizes; its figures are held loosely.

The bounds are those of something that became ten times slower, not of a busy machine.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import median

import pytest
from sampling import WHOLE

from benchmarks import latency, latency_load, latency_targets
from benchmarks.synthetic import corpus
from benchmarks.timing import percentiles
from memgraph.errors import BenchFailed, InvalidInput
from memgraph.service.memory_service import MemoryService

SIZE, WORST = 300, 11


def test_the_corpus_is_the_same_every_time() -> None:
    one = corpus()
    texts, question = [one.text(at) for at in range(30)], one.question(1, 30)
    corpus.cache_clear()
    other = corpus()
    assert [other.text(at) for at in range(30)] == texts
    assert other.question(1, 30) == question


def test_the_corpus_is_shaped_like_conversations() -> None:
    texts = [corpus().text(at) for at in range(500)]
    words = [set(re.findall(r"\w+", text.lower())) for text in texts]
    share = {word: sum(word in each for each in words) / len(words) for word in set().union(*words)}
    ranked = sorted(share.values(), reverse=True)
    assert 0.35 < ranked[0] < 0.75
    assert 0.1 < ranked[9] < 0.4
    assert 0.02 < ranked[99] < 0.1
    assert sum(each == 1 / len(words) for each in ranked) > len(ranked) / 4
    assert 15 < median(len(text.split()) for text in texts) < 25


def test_percentiles_are_nearest_ranks() -> None:
    taken = [number / 1000 for number in range(1, 101)]
    assert percentiles(taken) == {"p50": 50.0, "p95": 95.0, "p99": 99.0}
    assert percentiles([0.002]) == {"p50": 2.0, "p95": 2.0, "p99": 2.0}


@pytest.mark.skipif(not WHOLE, reason="measures processes of its own: runs with `make check`")
def test_every_figure_of_a_small_size_is_measured_and_has_its_target(tmp_path: Path) -> None:
    found = latency.run([SIZE], rounds=5, keep=tmp_path)
    # Nothing but what was loaded stays.
    assert [each.name for each in tmp_path.iterdir()] == [str(SIZE)]
    figures = found["sizes"][str(SIZE)]
    for name in (
        "recall",
        "raw_recall",
        "context",
        "write",
        "raw_write",
        "save_episode",
        "subgraph",
    ):
        assert 0.0 < figures[name]["p50"] <= figures[name]["p95"] <= figures[name]["p99"], name
    assert figures["overlap_at_20"] >= 0.95
    # What they are on a busy machine is left to chance.
    assert min(figures["recall_ratio"], figures["write_ratio"]) > 0.0
    assert min(figures["bulletin_unchanged"]["p50"], figures["bulletin_changed"]["p50"]) > 0.0
    assert figures["bulk_per_s"] > 20.0
    assert 30.0 < figures["peak_memory_mb"] < 300.0
    assert figures["disk_bytes_per_memory"] < 2 * figures["raw_disk_bytes_per_memory"] + 4_000
    assert figures["subgraph_nodes"] >= 100
    assert all(0.0 < each < 60.0 for each in figures["start"].values())
    rates = figures["http"]
    assert min(rates["recalls_per_s"], rates["writes_per_s"]) > 1.0
    # With this little to do, and other programs beside it, a second process may be no faster.
    assert min(rates["recalls_two"], rates["writes_two"]) > 0.0
    assert figures["seconds"] > 0.0
    assert len(figures["worst"]) == WORST
    for name, case in figures["worst"].items():
        assert case["p50"] < 40 * figures["recall"]["p50"], name
        assert (case["target"], case["met"]) == (None, None), "only the sizes of the table ask"
    assert [each["met"] for each in figures["targets"]] == [None] * len(latency_targets.TARGETS)
    assert all(each["value"] >= 0.0 for each in figures["targets"])


def test_what_was_kept_is_not_loaded_again(tmp_path: Path) -> None:
    told: list[str] = []

    def tell(stage: str, _done: int, _total: int) -> None:
        told.append(stage)

    first = latency_load.loaded(tmp_path / "kept", 100, corpus(), tell)
    assert told == ["loading"]
    again = latency_load.loaded(tmp_path / "kept", 100, corpus(), tell)
    assert told == ["loading"]
    assert again == {**first, "reused": True}
    latency_load.copied(tmp_path / "kept", tmp_path / "copy")
    with MemoryService(tmp_path / "copy", environ={}, background=False) as service:
        assert len(latency_load.memory_ids(service, 1_000)) == 100
        service.orchestrator(latency_load.NAME).remember("One more.")
        assert len(latency_load.memory_ids(service, 1_000)) == 101
    with MemoryService(tmp_path / "kept" / "root", environ={}, background=False) as service:
        assert len(latency_load.memory_ids(service, 1_000)) == 100


def test_a_kept_folder_with_other_memories_is_refused(tmp_path: Path) -> None:
    facts = tmp_path / latency_load.FACTS
    facts.write_text(json.dumps({"sample": ["another"]}))
    with pytest.raises(InvalidInput, match="other memories"):
        latency_load.loaded(tmp_path, 100, corpus(), lambda *_: None)
    facts.unlink()
    (tmp_path / "begun").touch()
    with pytest.raises(InvalidInput, match="no run has finished"):
        latency_load.loaded(tmp_path, 100, corpus(), lambda *_: None)


def test_a_process_that_dies_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "100"
    folder.mkdir()
    (folder / latency_load.FACTS).write_text("{")
    with pytest.raises(BenchFailed) as told:
        latency.run([100], rounds=1, keep=tmp_path)
    assert told.value.details == {"size": 100}
    assert "JSONDecodeError" in capfd.readouterr().err


@pytest.mark.parametrize("sizes", [[], [10]])
def test_sizes_have_a_least(sizes: list[int]) -> None:
    with pytest.raises(InvalidInput):
        latency.run(sizes)
