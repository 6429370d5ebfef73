"""What speaks for a side of a contradiction, and what it comes to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.clock import MS_PER_DAY
from memgraph.rules.contradictions import (
    LEAST_CONFIDENCE,
    SideFacts,
    SuggestionGround,
    WeighedSuggestion,
    suggest,
)

PLAIN = SideFacts("one", 0, 1, 0.8, confirmed=False, active=True, stale=False)
OTHER = replace(PLAIN, memory_id="two")

sides = st.builds(
    SideFacts,
    memory_id=st.just("one"),
    said_at=st.integers(0, 3 * MS_PER_DAY),
    independent_sources=st.integers(1, 20),
    effective_confidence=st.floats(0.0, 1.0),
    confirmed=st.booleans(),
    active=st.booleans(),
    stale=st.booleans(),
)


def balance(found: WeighedSuggestion, memory_id: str) -> float:
    return sum(each.weight if each.favours == memory_id else -each.weight for each in found.reasons)


@given(sides, sides)
def test_the_order_of_the_sides_does_not_matter(one: SideFacts, other: SideFacts) -> None:
    other = replace(other, memory_id="two")
    assert suggest(one, other) == suggest(other, one)


@given(sides, sides)
def test_who_is_suggested_has_the_evidence_and_holds(one: SideFacts, other: SideFacts) -> None:
    other = replace(other, memory_id="two")
    found = suggest(one, other)
    assert 0.5 <= found.confidence <= 1.0
    assert all(each.weight > 0.0 for each in found.reasons)
    weights = [each.weight for each in found.reasons]
    assert weights == sorted(weights, reverse=True)
    if found.winner_id is None:
        stronger = one if balance(found, "one") > 0 else other
        assert found.confidence < LEAST_CONFIDENCE or not stronger.active
        return
    winner = one if found.winner_id == "one" else other
    assert winner.active
    assert found.confidence >= LEAST_CONFIDENCE
    assert balance(found, found.winner_id) > 0.0


@given(sides)
def test_equal_sides_are_left_to_whoever_decides(side: SideFacts) -> None:
    found = suggest(side, replace(side, memory_id="two"))
    assert found == WeighedSuggestion(None, 0.5, ())


@pytest.mark.parametrize(
    ("change", "ground"),
    [
        ({"confirmed": True}, SuggestionGround.CONFIRMED),
        ({"independent_sources": 2}, SuggestionGround.MORE_SOURCES),
        ({"effective_confidence": 0.9}, SuggestionGround.HIGHER_CONFIDENCE),
        ({"said_at": MS_PER_DAY}, SuggestionGround.NEWER),
    ],
)
def test_each_reason_is_named(change: dict[str, Any], ground: SuggestionGround) -> None:
    [reason] = suggest(replace(PLAIN, **change), OTHER).reasons
    assert (reason.ground, reason.favours) == (ground, "one")


@pytest.mark.parametrize(
    ("change", "ground"),
    [
        ({"active": False}, SuggestionGround.OTHER_ENDED),
        ({"stale": True}, SuggestionGround.OTHER_STALE),
    ],
)
def test_what_speaks_against_a_side_speaks_for_the_other(
    change: dict[str, Any], ground: SuggestionGround
) -> None:
    found = suggest(replace(PLAIN, **change), OTHER)
    assert [(each.ground, each.favours) for each in found.reasons] == [(ground, "two")]
    assert found.winner_id == "two"


@given(sides, sides, st.integers(1, 20))
def test_more_sources_never_speak_against(one: SideFacts, other: SideFacts, more: int) -> None:
    other = replace(other, memory_id="two")
    richer = replace(one, independent_sources=one.independent_sources + more)
    assert balance(suggest(richer, other), "one") >= balance(suggest(one, other), "one")


def test_a_crowd_does_not_outweigh_a_person() -> None:
    crowd = replace(PLAIN, independent_sources=1_000)
    confirmed = replace(OTHER, confirmed=True)
    assert suggest(crowd, confirmed).winner_id == "two"
