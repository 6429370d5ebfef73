"""What speaks for a side of a contradiction, and what it comes to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from memgraph.clock import MS_PER_DAY
from memgraph.model.enums import MemoryStatus
from memgraph.model.graph import CaseSide, InvalidPremise, Suggestion
from memgraph.model.values import Memory
from memgraph.rules.contradictions import LEAST_CONFIDENCE, suggest


def case_side(memory_id: str = "one", **changed: Any) -> CaseSide:
    """A side with what is weighed: ``active`` and ``stale`` are its status and its premise."""
    active, stale = changed.pop("active", True), changed.pop("stale", False)
    status = MemoryStatus.ACTIVE if active else MemoryStatus.SUPERSEDED
    fields = {
        "memory": Memory.model_construct(memory_id=memory_id, status=status),
        "said_at": 0,
        "independent_sources": 1,
        "effective_confidence": 0.8,
        "confirmed": False,
        "premise": InvalidPremise.model_construct() if stale else None,
    }
    return CaseSide.model_construct(**(fields | changed))


def as_other(side: CaseSide) -> CaseSide:
    memory = side.memory.model_copy(update={"memory_id": "two"})
    return side.model_copy(update={"memory": memory})


OTHER = case_side("two")

sides = st.builds(
    case_side,
    said_at=st.integers(0, 3 * MS_PER_DAY),
    independent_sources=st.integers(1, 20),
    effective_confidence=st.floats(0.0, 1.0),
    confirmed=st.booleans(),
    active=st.booleans(),
    stale=st.booleans(),
)
others = sides.map(as_other)


def is_active(side: CaseSide) -> bool:
    return side.memory.status is MemoryStatus.ACTIVE


def balance(found: Suggestion, memory_id: str) -> float:
    return sum(each.weight if each.favours == memory_id else -each.weight for each in found.reasons)


@given(sides, others)
def test_the_order_of_the_sides_does_not_matter(one: CaseSide, other: CaseSide) -> None:
    assert suggest(one, other) == suggest(other, one)


@given(sides, others)
def test_who_is_suggested_has_the_evidence_and_holds(one: CaseSide, other: CaseSide) -> None:
    found = suggest(one, other)
    assert 0.5 <= found.confidence <= 1.0
    assert all(each.weight > 0.0 for each in found.reasons)
    weights = [each.weight for each in found.reasons]
    assert weights == sorted(weights, reverse=True)
    if found.winner_id is None:
        stronger = one if balance(found, "one") > 0 else other
        assert found.confidence < LEAST_CONFIDENCE or not is_active(stronger)
        return
    winner = one if found.winner_id == "one" else other
    assert is_active(winner)
    assert found.confidence >= LEAST_CONFIDENCE
    assert balance(found, found.winner_id) > 0.0


@given(sides)
def test_equal_sides_are_left_to_whoever_decides(side: CaseSide) -> None:
    found = suggest(side, as_other(side))
    assert found == Suggestion(winner_id=None, confidence=0.5, reasons=())


@pytest.mark.parametrize(
    ("change", "ground", "favours"),
    [
        ({"confirmed": True}, "confirmed", "one"),
        ({"independent_sources": 2}, "more_sources", "one"),
        ({"effective_confidence": 0.9}, "higher_confidence", "one"),
        ({"said_at": MS_PER_DAY}, "newer", "one"),
        ({"active": False}, "other_ended", "two"),
        ({"stale": True}, "other_stale", "two"),
    ],
)
def test_each_reason_is_named(change: dict[str, Any], ground: str, favours: str) -> None:
    [reason] = suggest(case_side(**change), OTHER).reasons
    assert (reason.code, reason.favours) == (ground, favours)


@given(sides, others, st.integers(1, 20))
def test_more_sources_never_speak_against(one: CaseSide, other: CaseSide, more: int) -> None:
    richer = one.model_copy(update={"independent_sources": one.independent_sources + more})
    # The weights are rounded.
    less = balance(suggest(one, other), "one")
    assert balance(suggest(richer, other), "one") >= less - 0.001


def test_a_crowd_does_not_outweigh_a_person() -> None:
    crowd = case_side(independent_sources=1_000)
    confirmed = case_side("two", confirmed=True)
    assert suggest(crowd, confirmed).winner_id == "two"
