"""What goes first when a project holds too much."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.errors import InvalidInput
from memgraph.model.context import ContextItem
from memgraph.rules.lifecycle import EvictionCandidate, evicted, excess, held

rows = st.lists(
    st.builds(
        EvictionCandidate,
        id=st.text("abc", min_size=1, max_size=4),
        importance=st.sampled_from([0.0, 0.5, 1.0]),
        at=st.integers(0, 3),
        kept=st.booleans(),
    ),
    unique_by=lambda each: each.id,
    max_size=40,
)


@given(rows, st.integers(1, 45))
def test_no_more_than_fit_are_left_and_no_better_one_goes_before_a_worse(
    items: list[EvictionCandidate], max_items: int
) -> None:
    gone = evicted(items, max_items)
    assert len(items) - len(gone) <= max_items
    if len(items) <= max_items:
        assert gone == ()
    else:
        assert len(gone) == max(len(items) - max_items, len(items) // 10) >= 1
    by_id = {each.id: each for each in items}
    went = [by_id[one] for one in gone]
    stayed = [each for each in items if each.id not in gone]

    def worth(each: EvictionCandidate) -> tuple[bool, float, int, str]:
        return (each.kept, each.importance, each.at, each.id)

    assert went == sorted(went, key=worth)
    assert all(worth(one) < worth(other) for one in went for other in stayed)


@given(rows.filter(bool), st.integers(1, 45), st.data())
def test_what_room_is_made_for_stays_and_nobody_pays_twice(
    items: list[EvictionCandidate], max_items: int, data: st.DataObject
) -> None:
    new = data.draw(st.sampled_from(items)).id
    gone = evicted(items, max_items, new=new)
    assert new not in gone
    assert len(items) - len(gone) <= max_items
    others = [each for each in items if each.id != new]
    others.sort(key=lambda each: (each.kept, each.importance, each.at, each.id))
    assert gone == tuple(each.id for each in others[: len(gone)])


@given(rows, st.integers(1, 45))
def test_the_order_of_the_rows_does_not_matter(
    items: list[EvictionCandidate], max_items: int
) -> None:
    assert evicted(items, max_items) == evicted(reversed(items), max_items)


@pytest.mark.parametrize("max_items", [0, -1])
def test_nothing_is_no_bound(max_items: int) -> None:
    with pytest.raises(InvalidInput):
        evicted([], max_items)
    with pytest.raises(InvalidInput):
        excess(0, max_items)


@pytest.mark.parametrize(
    ("count", "max_items", "number"),
    [(10, 10, 0), (11, 10, 1), (1001, 1000, 100), (30, 10, 20), (0, 1, 0), (2, 1, 1)],
)
def test_a_tenth_goes_and_at_least_what_is_too_many(
    count: int, max_items: int, number: int
) -> None:
    assert excess(count, max_items) == number


@pytest.mark.parametrize(
    ("kind", "kept"),
    [("decision", True), ("goal", True), ("todo", True), ("failure", False), ("reasoning", False)],
)
def test_an_item_is_judged_by_its_kind(kind: str, kept: bool) -> None:
    item = ContextItem(
        context_item_id="i", kind=kind, source="project/p", timestamp="1970-01-01T00:00:01Z"
    )
    assert held(item) == EvictionCandidate("i", 0.0, 1_000, kept)
