from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from item_worlds import TIMES, filters, item, items, times, weights

from memgraph.clock import parse_time
from memgraph.errors import InvalidInput
from memgraph.model.context import ContextItem
from memgraph.rules.filters import (
    MAX_LIMIT,
    ORDER_FIELDS,
    FilterTerm,
    Operator,
    matches,
    ordered,
    parse,
    parse_limit,
    parse_order,
    same,
)

FEW = st.lists(
    items(payload=st.just({"text": "x"})), max_size=6, unique_by=lambda each: each.context_item_id
)


def passes(one: ContextItem, wanted: dict[str, Any]) -> bool:
    return matches(one, parse(wanted))


def parsed(wanted: dict[str, Any]) -> tuple[FilterTerm, ...]:
    """A filter that is taken; others are of no interest."""
    try:
        return parse(wanted)
    except InvalidInput:
        assume(False)
        raise


@settings(max_examples=50)
@given(items(), filters())
def test_all_that_is_wanted_has_to_hold(one: ContextItem, wanted: dict[str, Any]) -> None:
    terms = parsed(wanted)

    assert matches(one, terms) == all(matches(one, [each]) for each in terms)


@settings(max_examples=50)
@given(items(payload=st.just({})), weights())
def test_unequal_is_the_opposite_of_equal(one: ContextItem, weight: float | None) -> None:
    assert passes(one, {"importance": {"$ne": weight}}) != passes(one, {"importance": weight})


@settings(max_examples=50)
@given(items(payload=st.just({})), st.lists(weights(), max_size=4))
def test_in_a_list_is_equal_to_one_of_it(one: ContextItem, some: list[float | None]) -> None:
    each = [passes(one, {"importance": weight}) for weight in some]

    assert passes(one, {"importance": {"$in": some}}) == any(each)


@settings(max_examples=50)
@given(items(payload=st.just({})), st.floats(0, 1))
def test_a_number_is_below_equal_or_above(one: ContextItem, weight: float) -> None:
    ways = [passes(one, {"importance": {each: weight}}) for each in ("$lt", "$eq", "$gt")]

    assert sum(ways) == (one.importance is not None)
    assert passes(one, {"importance": {"$lte": weight}}) == (ways[0] or ways[1])
    assert passes(one, {"importance": {"$gte": weight}}) == (ways[1] or ways[2])


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


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (None, False, False),
        (None, 0, False),
        ("1", 1, False),
        ([1, [2]], (1, (2.0,)), True),
        ([1], [True], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": None}, {}, False),
        (2**53 + 1, float(2**53), False),
        ("e\u0301", "é", False),
    ],
)
def test_equal_is_equal_as_json(left: Any, right: Any, expected: bool) -> None:
    assert same(left, right) is same(right, left) is expected


@pytest.mark.parametrize("value", [None, True, "2", [3], {"a": 3}])
def test_what_is_no_number_passes_no_comparison_with_one(value: Any) -> None:
    one = item(payload={"n": value})

    for operator in ("$gt", "$gte", "$lt", "$lte"):
        assert not passes(one, {"payload.n": {operator: 2}})


def test_a_path_that_leads_nowhere_is_none() -> None:
    one = item(payload={"a": {"b": None}, "c": "text"})

    for path in ("payload.a.b", "payload.a.z", "payload.c.d", "payload.z"):
        assert passes(one, {path: None})
        assert not passes(one, {path: {"$ne": None}})


@settings(max_examples=25)
@given(FEW, st.data())
def test_the_order_is_the_same_however_they_came(
    given_items: list[ContextItem], data: st.DataObject
) -> None:
    shuffled = data.draw(st.randoms(use_true_random=False)).sample(given_items, len(given_items))
    for field in ORDER_FIELDS:
        for order in (field, f"-{field}"):
            found = ordered(given_items, parse_order(order))
            assert found == ordered(shuffled, parse_order(order))
            assert len(found) == len(given_items)


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


def test_an_order_is_turned_round_by_a_minus() -> None:
    assert parse_order("kind").descending
    assert not parse_order("-kind").descending


def test_limits_have_bounds() -> None:
    assert (parse_limit(1), parse_limit(MAX_LIMIT)) == (1, 1_000_000)
    with pytest.raises(InvalidInput, match="limit"):
        parse_limit(MAX_LIMIT + 1)


def test_what_a_filter_wants_is_kept_as_it_is_compared() -> None:
    assert parse({"timestamp": {"$gte": "1970-01-01T00:00:01Z"}, "tags": ["a"]}) == (
        FilterTerm("timestamp", Operator.GTE, 1_000),
        FilterTerm("tags", Operator.ANY, ("a",)),
    )


@pytest.mark.parametrize("field", ["kind", "tags", "importance", "timestamp", "payload.n"])
@given(st.recursive(st.none() | st.text(), lambda inner: st.lists(inner, max_size=2)))
def test_what_cannot_be_wanted_is_refused_by_the_name_of_its_field(field: str, wanted: Any) -> None:
    try:
        terms = parse({field: wanted})
    except InvalidInput as error:
        refused = error.details["field"]
    else:
        refused = None
        assert matches(item(), terms) in (True, False)

    assert refused in (field, None)
