"""The generated pairs that the relation classifier learns from."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def generator(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import relation_near_misses

    module = sys.modules["relation_near_misses"]
    assert module is relation_near_misses
    return module


def test_the_same_seed_gives_the_same_pairs(generator: ModuleType) -> None:
    assert generator.near_rows(3) == generator.near_rows(3)
    assert generator.near_rows(3) != generator.near_rows(4)


def test_most_pairs_are_near_misses(generator: ModuleType) -> None:
    rows = generator.near_rows()
    labels = Counter(row["label"] for row in rows)
    assert set(labels) == {"compatible", "contradicts", "updates"}
    assert labels["compatible"] > 0.7 * len(rows)
    assert all(row["a"] and row["b"] and row["a_time"] < row["b_time"] for row in rows)
    assert not any("{" in row["a"] + row["b"] for row in rows)


def test_a_family_is_held_out_as_a_whole(generator: ModuleType) -> None:
    from relation_families import family_groups

    groups = family_groups()
    assert all(row["group"] == groups[row["family"]] for row in generator.near_rows())


def test_two_things_of_a_near_miss_differ(generator: ModuleType) -> None:
    import random

    parts = {"form": ["the {a} {b}"], "a": ["old", "new"], "b": ["barn", "kiosk"]}
    drawn = [generator._things(parts, random.Random(seed)) for seed in range(50)]
    assert all(one != other for one, other in drawn)
    assert any(set(one.split()) & set(other.split()) - {"the"} for one, other in drawn)
