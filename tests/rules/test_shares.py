"""A share of the places for each source."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from memgraph.model.enums import SourceName
from memgraph.model.sources import NamedSource
from memgraph.rules.shares import (
    COMPARABLE,
    COMPARABLE_TURN,
    PlaceClaim,
    crowding,
    flooding,
    most_of,
    rivals,
    shared,
)


def claim(source: str, relevance: float = 1.0, *, is_turn: bool = False) -> PlaceClaim:
    names = frozenset({NamedSource(SourceName.CONVERSATION, source)} if source else ())
    return PlaceClaim(names, relevance, is_turn)


def crowd_of(claims: list[PlaceClaim], limit: int) -> frozenset[NamedSource]:
    return crowding((each.names for each in claims), limit)


@pytest.mark.parametrize(
    ("share", "places", "most"), [(0.33, 20, 7), (0.33, 1, 2), (1.0, 5, 5), (0.01, 10, 2)]
)
def test_how_many_places_a_share_is(share: float, places: int, most: int) -> None:
    assert most_of(share, places) == most


def test_one_source_holds_its_share_while_others_are_as_relevant() -> None:
    claims = [claim("a")] * 5 + [claim("b", 0.7), claim("c", 0.7), claim("c", 0.7)]
    assert crowd_of(claims, 2) == claims[0].names
    assert shared(claims, 5, 2) == [0, 1, 5, 6, 7, 2, 3, 4]


def test_who_has_less_to_do_with_it_takes_no_place() -> None:
    claims = [claim("a")] * 3 + [claim("b", COMPARABLE - 0.01)]
    assert shared(claims, 3, 1) == [0, 1, 2, 3]


def test_a_flood_holds_over_two_thirds_of_what_is_found() -> None:
    flood, other = claim("a").names, claim("b").names
    assert flooding([flood] * 7 + [other] * 3, flood)
    assert not flooding([flood] * 6 + [other] * 3, flood)
    # Two that are large together are two.
    assert not flooding([flood] * 5 + [other] * 5, flood | other)
    assert not flooding([], flood)


def test_other_sources_that_are_as_relevant_are_rivals() -> None:
    flood = [claim("a")] * 9
    crowd = flood[0].names
    assert rivals([*flood, claim("b", 0.5), claim("c", 0.5)], crowd) == 2
    assert rivals([*flood, claim("b", 0.5), claim("b", 0.5)], crowd) == 1
    assert rivals([*flood, claim("b", 0.5), claim("c", 0.4)], crowd) == 1
    assert rivals([*flood, claim("b", 0.5), claim("", 0.9)], crowd) == 1


def test_a_turn_gives_way_to_what_is_nearly_as_relevant_alone() -> None:
    turns = [claim("a", is_turn=True)] * 3
    assert shared([*turns, claim("b", COMPARABLE)], 3, 1) == [0, 1, 2, 3]
    assert shared([*turns, claim("b", COMPARABLE_TURN)], 3, 1) == [0, 3, 1, 2]


def test_what_has_no_source_is_not_bounded() -> None:
    claims = [claim("")] * 3 + [claim("b")]
    assert crowd_of(claims, 1) == frozenset()
    assert shared(claims, 3, 1) == [0, 1, 2, 3]


claims_of = st.lists(
    st.builds(claim, st.sampled_from(["", "a", "b", "c"]), st.floats(0.0, 1.0)), max_size=30
)


@given(claims_of, st.integers(1, 20), st.integers(1, 8))
def test_nothing_is_lost_and_no_share_is_passed_where_others_would_do(
    claims: list[PlaceClaim], places: int, most: int
) -> None:
    order = shared(claims, places, most)
    assert sorted(order) == list(range(len(claims)))
    held: dict[NamedSource, int] = {}
    for place, at in enumerate(order[:places]):
        one = claims[at]
        over = any(held.get(name, 0) >= most for name in one.names)
        if over:
            left = [claims[each] for each in order[place + 1 :]]
            assert not any(
                each.relevance >= COMPARABLE * one.relevance
                and all(held.get(name, 0) < most for name in each.names)
                for each in left
            )
        for name in one.names:
            held[name] = held.get(name, 0) + 1
