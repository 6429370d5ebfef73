"""Which contradictions are listed, in what order, and for whom."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from filling import DAY, NOW, Filling
from graph_worlds import plans, reading, stored, viewers
from hypothesis import given, settings, strategies as st
from sampling import often

from memgraph.errors import InvalidInput
from memgraph.graph import cases
from memgraph.model.enums import Sensitivity
from memgraph.rules.scope import Viewer
from memgraph.store.engine import Database

LATER = NOW + 10 * DAY
list_contradictions = partial(reading(cases.list_contradictions), now_ms=LATER)


@settings(max_examples=often(60))
@given(plans, viewers, st.booleans(), st.booleans(), st.integers(1, 3))
def test_every_visible_pair_is_on_exactly_one_page_in_order(
    plan: Any, viewer: Viewer, resolved: bool, oldest_first: bool, limit: int
) -> None:
    with stored(plan) as (database, world):
        seen = world.seen(viewer)
        active = {one for one, row in world.memories.items() if row["status"] == "active"}
        expected = {
            (edge["resolved_at" if resolved else "created_at"], edge["edge_id"])
            for edge in world.edges
            if (
                edge["type"] == "Contradicts"
                or (edge["type"] == "Updates" and edge["weight"] < 1.0)
            )
            and (edge["resolved_at"] is not None) == (resolved)
            and {edge["from"], edge["to"]} <= (seen if resolved else seen & active)
        }
        shown: list[str] = []
        after = None
        while True:
            page = list_contradictions(
                database,
                resolved=resolved,
                viewer=viewer,
                limit=limit,
                after=after,
                oldest_first=oldest_first,
            )
            assert len(page.items) <= limit
            assert not world.leaks(page.model_dump_json(), viewer)
            shown.extend(item.edge.edge_id for item in page.items)
            after = page.next_after
            if after is None:
                break
        in_order = sorted(expected, reverse=not oldest_first)
        assert shown == [edge_id for _, edge_id in in_order]


def test_both_sides_come_with_source_age_and_time(filling: Filling) -> None:
    source = filling.source("src_file", source_type="ingest_file", source_path="/b.md")
    newer = filling.memory(created_at=NOW + 2 * DAY, source_id=source)
    older = filling.memory(created_at=NOW)
    filling.edge(newer, older, "Contradicts", created_at=NOW + 3 * DAY, reason="other day")
    (item,) = list_contradictions(filling).items
    assert (item.first.memory_id, item.second.memory_id) == (older, newer)
    assert [one.source_path for one in item.sources] == [None, "/b.md"]
    assert item.edge.created_at == NOW + 3 * DAY
    assert item.open_days == 7.0
    assert item.edge.reason == "other day"
    assert item.state == "open"
    assert not item.moot


def test_open_ones_come_newest_first_and_moot_ones_with_their_memory(filling: Filling) -> None:
    one, gone = filling.memory(), filling.memory(status="retracted")
    others = [filling.memory() for _ in range(3)]
    times = (NOW + 5, NOW + 9, NOW + 5)
    ids = [
        filling.edge(one, other, "Contradicts", created_at=time)
        for other, time in zip(others, times, strict=True)
    ]
    moot = filling.edge(gone, one, "Contradicts", created_at=NOW)
    items = list_contradictions(filling).items
    assert [item.edge.edge_id for item in items] == [ids[1], ids[2], ids[0]]
    items = list_contradictions(filling, memory_id=one).items
    assert [item.edge.edge_id for item in items] == [ids[1], ids[2], ids[0], moot]
    assert [item.moot for item in items] == [False, False, False, True]


def test_as_of_shows_what_was_open_then(filling: Filling) -> None:
    one, other, late = filling.memory(), filling.memory(), filling.memory(created_at=NOW + 50)
    resolution = {"winner_id": one, "loser_id": other}
    edge = filling.edge(
        one,
        other,
        "Contradicts",
        created_at=NOW + 10,
        resolved_at=NOW + 20,
        resolution=resolution,
    )
    filling.edge(one, late, "Contradicts", created_at=NOW + 50)

    def at(time: int, *, resolved: bool) -> list[str]:
        page = list_contradictions(filling, resolved=resolved, as_of=time)
        return [item.edge.edge_id for item in page.items]

    assert at(NOW + 9, resolved=False) == []
    assert at(NOW + 10, resolved=False) == at(NOW + 19, resolved=False) == [edge]
    assert at(NOW + 20, resolved=False) == []
    assert at(NOW + 20, resolved=True) == [edge]
    assert at(NOW + 19, resolved=True) == []


@pytest.mark.parametrize("resolved", [False, True])
def test_a_page_goes_on_whatever_became_of_its_last_edge(filling: Filling, resolved: bool) -> None:
    decision = {"resolved_at": NOW + DAY, "resolution": {"reason": "measured"}}
    given = decision if resolved else {}
    edges = [
        filling.edge(filling.memory(), filling.memory(), "Contradicts", **given) for _ in range(4)
    ]
    pages = [list_contradictions(filling, resolved=resolved, limit=2)]
    last = pages[0].items[-1].edge.edge_id
    # It changes its list between the pages.
    changed = "NULL, resolution = NULL" if resolved else f"{LATER}, resolution = '{{}}'"
    with filling.database.write() as connection:
        connection.exec_driver_sql(
            f"UPDATE memory_edges SET resolved_at = {changed} WHERE edge_id = ?", (last,)
        )
    after = pages[0].next_after
    pages.append(list_contradictions(filling, resolved=resolved, limit=2, after=after))
    shown = [item.edge.edge_id for page in pages for item in page.items]
    assert (sorted(shown), pages[1].next_after) == (sorted(edges), None)


def test_a_place_tells_of_no_hidden_edge(filling: Filling) -> None:
    shown = filling.edge(filling.memory(), filling.memory(), "Contradicts")
    secret = filling.memory(sensitivity="Restricted")
    hidden = filling.edge(filling.memory(), secret, "Contradicts", created_at=NOW + DAY)
    for one in (hidden, "edge_unknown"):
        page = list_contradictions(filling, after=f"{NOW + DAY}.{one}")
        assert [item.edge.edge_id for item in page.items] == [shown]


def test_a_wrong_page_is_named(database: Database) -> None:
    with pytest.raises(InvalidInput, match="next_after"):
        list_contradictions(database, after="edge_unknown")


def test_some_are_looked_for_by_what_a_side_says_and_by_memory(filling: Filling) -> None:
    tea = filling.memory(content="The kettle boils at 100 degrees.", search_terms=None)
    dry = filling.memory(content="A kettle was sold; boils are no matter.", search_terms=None)
    other = filling.memory(content="Nobody drinks coffee in 東京都.", search_terms="東京 京都")
    secret = filling.memory(
        content="The kettle is hidden.", search_terms=None, sensitivity="Restricted"
    )
    one, two = (filling.edge(tea, each, "Contradicts", created_at=NOW) for each in (dry, other))
    filling.edge(other, secret, "Contradicts", created_at=NOW)

    def found(**sought: Any) -> set[str]:
        items = list_contradictions(filling, **sought).items
        return {item.edge.edge_id for item in items}

    assert found() == found(text="  ") == found(memory_id=tea) == {one, two}
    assert found(text="BOILS kettle") == {one, two}
    assert found(text="sold") == found(memory_id=dry) == {one}
    assert found(text="京都") == found(text="coffee", memory_id=tea) == {two}
    # Every word on one side; nothing in a text is an operator of the index.
    for text in ("degrees sold", "hidden", "kettle OR coffee", '"', "content : kettle", "!!!", "*"):
        assert found(text=text) == set(), text
    assert found(memory_id=secret) == found(memory_id="fact_none") == set()
    cleared = Viewer(clearance=Sensitivity.RESTRICTED)
    assert len(found(text="hidden", viewer=cleared)) == 1
    for wrong in ("x" * 201, "a\0b", "\ud800"):
        for field in ("text", "memory_id"):
            with pytest.raises(InvalidInput):
                found(**{field: wrong})
