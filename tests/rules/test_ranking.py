"""Reciprocal rank fusion and the modifiers."""

from __future__ import annotations

import math
from functools import partial

import pytest
from hypothesis import given, strategies as st

from memgraph.clock import MS_PER_DAY
from memgraph.errors import InvalidInput
from memgraph.model.enums import STORED_STATUSES, MemoryStatus
from memgraph.rules.ranking import (
    ModifierSettings,
    importance_factor,
    modifiers,
    recency_factor,
    reciprocal_rank_fusion,
)

lists = st.lists(st.integers(1, 30), max_size=20)
legs_of = st.dictionaries(st.sampled_from(["text", "vector", "entity", "graph"]), lists)
factors_of = st.builds(
    partial(modifiers, ModifierSettings()),
    importance=st.integers(0, 100),
    effective_confidence=st.floats(0, 1),
    age_ms=st.integers(-(10**13), 10**14),
    status=st.sampled_from(STORED_STATUSES),
    in_open_contradiction=st.booleans(),
    stale_basis=st.booleans(),
)


def test_fusion_by_hand() -> None:
    fused = reciprocal_rank_fusion({"text": ["a", "b"], "vector": ["b", "c"]}, k=60)
    assert [one.id for one in fused] == ["b", "a", "c"]
    assert fused[0].score == math.fsum([1 / 62, 1 / 61])
    assert fused[0].ranks == {"text": 2, "vector": 1}
    assert fused[2].ranks == {"vector": 2}


def test_a_repeated_id_counts_where_it_comes_first() -> None:
    (only,) = reciprocal_rank_fusion({"text": ["a", "a", "a"]})
    assert (only.score, only.ranks) == (1 / 61, {"text": 1})


def test_weights() -> None:
    legs = {"text": [1], "vector": [2], "entity": [3]}
    fused = reciprocal_rank_fusion(legs, weights={"vector": 2.0, "entity": 0, "absent": 5})
    assert [(one.id, one.score) for one in fused] == [(2, 2 / 61), (1, 1 / 61), (3, 0.0)]


@given(legs_of)
def test_every_candidate_once_best_first(legs: dict[str, list[int]]) -> None:
    fused = reciprocal_rank_fusion(legs)
    assert {one.id for one in fused} == {one for leg in legs.values() for one in leg}
    assert len({one.id for one in fused}) == len(fused)
    keys = [(-one.score, one.id) for one in fused]
    assert keys == sorted(keys)
    assert all(one.score <= len(legs) / 61 for one in fused)


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
def test_a_weight_is_finite_and_not_negative(weight: float) -> None:
    with pytest.raises(InvalidInput):
        reciprocal_rank_fusion({"text": [1]}, weights={"text": weight})


@given(factors_of)
def test_modifiers_are_listed_and_bounded(factors: dict[str, float]) -> None:
    assert list(factors) == [
        "importance", "recency", "confidence", "contradiction", "stale_basis", "status",
    ]  # fmt: skip
    assert 0.9 <= factors["importance"] <= 1.1
    assert 0.98 <= factors["recency"] <= 1.0
    assert 0.7 <= factors["confidence"] <= 1.0
    assert all(0 < factor <= 1.1 for factor in factors.values())


@given(st.integers(0, 99))
def test_more_important_ranks_higher(importance: int) -> None:
    limits = ModifierSettings()
    assert importance_factor(importance, limits) < importance_factor(importance + 1, limits)


@given(st.integers(-(10**12), 10**13), st.integers(0, 10**12))
def test_older_never_ranks_higher(age: int, more: int) -> None:
    limits = ModifierSettings()
    assert recency_factor(age + more, limits) <= recency_factor(age, limits)


def test_half_of_the_way_to_the_floor_at_the_half_life() -> None:
    limits = ModifierSettings(recency_floor=0.5, recency_half_life_days=10)
    assert recency_factor(10 * MS_PER_DAY, limits) == pytest.approx(0.75)
    assert recency_factor(-5, limits) == 1.0


@pytest.mark.parametrize(
    ("change", "name", "factor"),
    [
        ({"in_open_contradiction": True}, "contradiction", 0.95),
        ({"stale_basis": True}, "stale_basis", 0.95),
        ({"status": MemoryStatus.SUPERSEDED}, "status", 0.5),
        ({"status": MemoryStatus.RETRACTED}, "status", 0.25),
    ],
)
def test_each_penalty_touches_its_own_factor(
    change: dict[str, object], name: str, factor: float
) -> None:
    factors = modifiers(ModifierSettings(), 50, 1.0, 0, **change)  # type: ignore[arg-type]  # one keyword at a time
    assert factors.pop(name) == factor
    assert set(factors.values()) == {1.0}
