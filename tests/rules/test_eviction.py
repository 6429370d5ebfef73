"""What goes first when a project holds too much."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from item_worlds import item, items
from sampling import often

from memgraph.errors import InvalidInput
from memgraph.model.context import ContextItem
from memgraph.rules.lifecycle import evicted, excess

rows = st.lists(
    items(payload=st.just({})), unique_by=lambda each: each.context_item_id, max_size=12
)


@settings(max_examples=often(160))
@given(rows, st.integers(1, 14))
def test_no_more_than_fit_are_left_and_the_order_of_the_rows_does_not_matter(
    items: list[ContextItem], max_items: int
) -> None:
    gone = evicted(items, max_items)
    assert len(gone) == excess(len(items), max_items)
    assert evicted(reversed(items), max_items) == gone
    if items:
        new = items[0].context_item_id
        assert new not in evicted(items, max_items, new=new)


def test_what_is_worked_for_goes_last_and_the_least_important_first() -> None:
    there = [
        item("todo", kind="todo", importance=0.0),
        item("old", kind="note", importance=0.2, timestamp="2025-01-01"),
        item("light", kind="note", importance=0.1),
        item("new", kind="note", importance=0.2),
        item("unweighed", kind="note", importance=None),
    ]
    assert evicted(there, 1) == ("unweighed", "light", "old", "new")


def test_nothing_is_no_bound() -> None:
    with pytest.raises(InvalidInput):
        evicted([], 0)


@pytest.mark.parametrize(
    ("count", "max_items", "number"),
    [(10, 10, 0), (11, 10, 1), (1001, 1000, 100), (30, 10, 20), (0, 1, 0), (2, 1, 1)],
)
def test_a_tenth_goes_and_at_least_what_is_too_many(
    count: int, max_items: int, number: int
) -> None:
    assert excess(count, max_items) == number
