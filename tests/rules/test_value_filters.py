"""Filters over JSON values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memgraph.errors import InvalidInput
from memgraph.rules import namespaces, value_filters

VALUE: dict[str, Any] = {
    "name": "Ann",
    "age": 41,
    "score": "2.5",
    "day": "2026-03-01",
    "tags": ["a", "b"],
    "home": {"city": "Turin", "floor": 3},
    "none": None,
    "big": 2**53 + 1,
}


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"name": "Ann", "age": 41},
        {"none": None},
        {"absent": None},
        {"age": {"$gt": 40, "$lte": 41}},
        {"age": {"$gte": "41"}},
        {"score": {"$lt": 10}},
        {"day": {"$gte": "2026-02-28", "$lt": "2026-04-01"}},
        {"name": {"$ne": "Bob"}},
        {"absent": {"$ne": 1}},
        {"name": {"$eq": "Ann"}},
        {"tags": ["a", "b"]},
        {"tags": ["a", {"$gt": "a"}]},
        {"home": {"city": "Turin"}},
        {"home": {"floor": {"$gt": 2}}},
        {"home": {"$eq": {"city": "Turin", "floor": 3}}},
        {"big": {"$gt": 2**53}},
    ],
)
def test_fits(wanted: dict[str, Any]) -> None:
    value_filters.check(wanted)
    assert value_filters.matches(VALUE, wanted)


@pytest.mark.parametrize(
    "wanted",
    [
        {"name": "ann"},
        {"age": {"$gt": 41}},
        {"age": {"$gt": 40, "$lt": 41}},
        {"absent": {"$gt": 0}},
        {"none": {"$lte": 0}},
        {"name": {"$gt": 1}},
        {"tags": {"$gte": "a"}},
        {"tags": ["a"]},
        {"tags": "a"},
        {"home": {"city": "Rome"}},
        {"name": {"city": "Turin"}},
        {"big": 2**53},
    ],
)
def test_does_not_fit(wanted: dict[str, Any]) -> None:
    value_filters.check(wanted)
    assert not value_filters.matches(VALUE, wanted)


@pytest.mark.parametrize(
    "wanted",
    [
        {"age": {"$near": 3}},
        {"age": {"$gt": 1, "plain": 2}},
        {"home": {"floor": {"$in": [1]}}},
        {"tags": [{"$x": 1}]},
        {"age": {"$gt": None}},
        {"age": {"$lt": [1]}},
    ],
)
def test_what_cannot_be_asked(wanted: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        value_filters.check(wanted)


@pytest.mark.parametrize("inside", [lambda found: {"a": found}, lambda found: [found]])
def test_a_filter_is_no_deeper_than_a_value(inside: Callable[[Any], Any]) -> None:
    wanted: Any = 1
    for _ in range(namespaces.MAX_DEPTH - 1):
        wanted = inside(wanted)
    value_filters.check({"a": wanted})
    assert value_filters.matches({"a": wanted}, {"a": wanted})
    for more in (1, 5_000):
        for _ in range(more):
            wanted = inside(wanted)
        with pytest.raises(InvalidInput, match="deeper"):
            value_filters.check({"a": wanted})


def test_a_number_and_a_text_that_is_none_have_no_order() -> None:
    assert not value_filters.matches({"x": "/a"}, {"x": {"$lt": "1"}})
    assert not value_filters.matches({"x": "1"}, {"x": {"$lt": "later"}})
    assert value_filters.matches({"x": "a"}, {"x": {"$lt": "b"}})
    assert value_filters.matches({"x": "2"}, {"x": {"$lt": "10"}})
