from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from item_worlds import TIMES, item, items, times, weights

from memgraph.clock import parse_time
from memgraph.errors import InvalidInput
from memgraph.model.context import ContextItem
from memgraph.rules.filters import matches, ordered, parse, parse_order

FEW = st.lists(
    items(payload=st.just({"text": "x"})), max_size=6, unique_by=lambda each: each.context_item_id
)


def passes(one: ContextItem, wanted: dict[str, Any]) -> bool:
    return matches(one, parse(wanted))


@settings(max_examples=50)
@given(items(payload=st.just({})), weights(), st.lists(weights(), max_size=4))
def test_a_number_is_equal_or_unequal_below_or_above(
    one: ContextItem, weight: float | None, some: list[float | None]
) -> None:
    assert passes(one, {"importance": {"$ne": weight}}) != passes(one, {"importance": weight})
    each = [passes(one, {"importance": other}) for other in some]
    assert passes(one, {"importance": {"$in": some}}) == any(each)
    if weight is not None:
        ways = [passes(one, {"importance": {each: weight}}) for each in ("$lt", "$eq", "$gt")]
        assert sum(ways) == (one.importance is not None)
        assert passes(one, {"importance": {"$lte": weight}}) == (ways[0] or ways[1])
        assert passes(one, {"importance": {"$gte": weight}}) == (ways[1] or ways[2])


@settings(max_examples=40)
@given(times(), times())
def test_times_are_compared_as_instants(stamp: str, other: str) -> None:
    one = item(timestamp=stamp)

    assert passes(one, {"timestamp": other}) == (parse_time(stamp) == parse_time(other))
    assert passes(one, {"timestamp": {"$lt": other}}) == (parse_time(stamp) < parse_time(other))


def test_an_instant_has_many_spellings() -> None:
    one = item(timestamp="2026-01-01T01:00:00+01:00")
    spelled = ["2026-01-01", "20260101T000000Z", datetime(2026, 1, 1, tzinfo=UTC), 1767225600000]

    assert all(passes(one, {"timestamp": each}) for each in spelled)
    assert {parse_time(each) for each in TIMES[:5]} == {1767225600000}


@settings(max_examples=25)
@given(FEW)
def test_items_come_by_value_then_by_id_and_those_without_it_last(
    given_items: list[ContextItem],
) -> None:
    found = ordered(given_items, parse_order("importance"))

    keys = [(each.importance is None, -(each.importance or 0)) for each in found]
    assert keys == sorted(keys)
    for one, other in pairwise(found):
        if one.importance == other.importance:
            assert one.context_item_id < other.context_item_id


@pytest.mark.parametrize("field", ["kind", "tags", "importance", "timestamp"])
@given(st.recursive(st.none() | st.text(), lambda inner: st.lists(inner, max_size=2)))
def test_what_cannot_be_wanted_is_refused_by_the_name_of_its_field(field: str, wanted: Any) -> None:
    refused = field
    try:
        terms = parse({field: wanted})
    except InvalidInput as error:
        refused = error.details["field"]
    else:
        assert matches(item(), terms) in (True, False)
    assert refused == field
