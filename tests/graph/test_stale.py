"""What is listed as standing on a fallen ground, against the stored rows; and its bounds."""

from __future__ import annotations

from typing import Any

import pytest
from filling import NOW, Filling
from graph_worlds import (
    World,
    plans,
    reached,
    reading,
    reverse,
    stands_on,
    stored,
    successors,
    viewers,
)
from hypothesis import given, settings

from memgraph.graph import stale
from memgraph.graph.stale import find_stale
from memgraph.rules.evidence import MAX_HOPS
from memgraph.rules.scope import DEFAULT_VIEWER, Viewer
from memgraph.store import evidence
from memgraph.store.engine import Database
from memgraph.store.visibility import View

list_stale = reading(stale.list_stale)


def fallen(world: World, viewer: Viewer) -> dict[str, set[str]]:
    """By each visible, active memory the grounds that fell under it, as the rows say."""
    seen = world.seen(viewer)
    stands = {pair for pair in stands_on(world) if seen.issuperset(pair)}
    ended = {one for one in seen if world.memories[one]["status"] != "active"}
    found: dict[str, set[str]] = {}
    for ground in ended:
        beside = seen - successors(world, ground)
        above = reached(reverse(stands), {ground}, beside)
        for one in {one for one, hops in above.items() if hops <= MAX_HOPS} - ended:
            found.setdefault(one, set()).add(ground)
    return found


@settings(max_examples=30)
@given(plans, viewers)
def test_it_lists_what_the_rows_say_and_nothing_hidden(plan: Any, viewer: Viewer) -> None:
    with stored(plan) as (database, world):
        page = list_stale(database, viewer=viewer)
        expected = fallen(world, viewer)
        since = {one: row["history"][-1][1] for one, row in world.memories.items()}
        told = {each.memory.memory_id: each.premise.ground.memory_id for each in page.items}
        assert told.keys() == expected.keys()
        for one, ground in told.items():
            assert ground == max(expected[one], key=lambda each: (since[each], each))
        assert len(page.items) == len(told)
        ended = [each.premise.ended_at for each in page.items]
        assert ended == sorted(ended, reverse=True)
        assert not world.leaks(page.model_dump_json(), viewer)
        assert (page.next_after, page.cut) == (None, False)
        with database.read() as connection:
            recalled = evidence.broken_evidence(connection, world.seen(viewer), View(viewer))
        active = {one for one, row in world.memories.items() if row["status"] == "active"}
        assert recalled.keys() & active == told.keys()


@settings(max_examples=15)
@given(plans, viewers)
def test_pages_of_one_are_the_whole_list(plan: Any, viewer: Viewer) -> None:
    with stored(plan) as (database, _):
        whole = [each.memory.memory_id for each in list_stale(database, viewer=viewer).items]
        seen: list[str] = []
        after = None
        while len(seen) <= len(whole):
            page = list_stale(database, viewer=viewer, limit=1, after=after)
            seen += [each.memory.memory_id for each in page.items]
            after = page.next_after
            if after is None:
                break
        assert seen == whole


def retracted(filling: Filling, at: int, reason: str = "wrong") -> str:
    history = [("active", NOW, at), ("retracted", at, None)]
    ground = str(filling.memory(status="retracted", history=history))
    filling.flush()
    return ground


def test_as_of_a_time_it_is_what_stood_then(database: Database) -> None:
    filling = Filling(database)
    ground = retracted(filling, NOW + 10)
    above = filling.memory()
    filling.derived(above, ground)
    filling.flush()
    assert list_stale(database, as_of=NOW + 9).items == ()
    [item] = list_stale(database, as_of=NOW + 10).items
    assert (item.memory.memory_id, item.premise.ended_at) == (above, NOW + 10)


def test_a_walk_that_ends_early_says_where_to_go_on(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    filling = Filling(database)
    grounds = [retracted(filling, NOW + number) for number in range(1, 8)]
    above = [filling.memory() for _ in grounds]
    for one, ground in zip(above, grounds, strict=True):
        filling.derived(one, ground)
    filling.flush()
    monkeypatch.setattr("memgraph.graph.stale._AT_FIRST", 2)
    view = View(DEFAULT_VIEWER)
    seen: list[str] = []
    place = None
    with database.read() as connection:
        for looked in (3, 3, 1):
            found = find_stale(connection, view, limit=50, after=place, max_looks=3)
            assert len(found.items) == looked
            seen += [each.memory_id for each in found.items]
            place = found.place
    assert place is None
    assert seen == above[::-1]


def paged(database: Database, limit: int) -> list[str]:
    seen: list[str] = []
    after = None
    while True:
        page = list_stale(database, limit=limit, after=after)
        seen += [each.memory.memory_id for each in page.items]
        after = page.next_after
        if after is None:
            return seen


def test_grounds_that_ended_together_are_listed_once(database: Database) -> None:
    """Whatever page they are on: of several of one moment always the same one counts."""
    filling = Filling(database)
    grounds = [retracted(filling, NOW + 1) for _ in range(12)]
    above = [filling.memory() for _ in range(6)]
    for one in above:
        for ground in grounds:
            filling.derived(one, ground)
    filling.flush()
    assert paged(database, 2) == sorted(above, reverse=True)


def test_what_stands_on_very_much_is_listed_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many of them are on a page: a step reads so many rows and no more."""
    filling = Filling(database)
    old, new = retracted(filling, NOW + 1), retracted(filling, NOW + 2)
    above = [filling.memory() for _ in range(120)]
    for one in above:
        for ground in (old, new):
            filling.derived(one, ground)
    filling.flush()
    monkeypatch.setattr("memgraph.store.evidence.MAX_ROWS", 151)
    assert paged(database, 100) == sorted(above, reverse=True)


def test_more_than_is_read_of_a_step_is_told(database: Database) -> None:
    filling = Filling(database)
    ground = retracted(filling, NOW + 1)
    for _ in range(4):
        filling.derived(filling.memory(), ground)
    filling.flush()
    with database.read() as connection:
        found = find_stale(connection, View(DEFAULT_VIEWER), limit=50, max_rows=3)
    assert (len(found.items), found.cut) == (3, True)
