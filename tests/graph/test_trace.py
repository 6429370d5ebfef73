"""The trace of a memory: where it comes from and what became of it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from filling import NOW, Filling
from graph_worlds import (
    plans,
    reached,
    reading,
    reverse,
    stands_on,
    stored,
    successors,
    upwards,
    viewers,
)
from hypothesis import given, settings
from sampling import often

from memgraph.errors import NotFound
from memgraph.graph import trace as traces
from memgraph.graph.trace import MAX_DEPTH, MAX_EDGES, MAX_JOURNAL, MAX_LINKS
from memgraph.model.enums import EdgeType
from memgraph.rules.scope import Viewer

trace = reading(traces.trace)


@settings(max_examples=often(60))
@given(plans, viewers)
def test_chains_are_what_the_stored_rows_say_and_nothing_hidden_is_told(
    plan: Any, viewer: Viewer
) -> None:
    with stored(plan) as (database, world):
        seen = world.seen(viewer)
        start = next(iter(world.memories))
        if start not in seen:
            with pytest.raises(NotFound):
                trace(database, start, viewer=viewer)
            return
        found = trace(database, start, viewer=viewer)
        grounds, updates = stands_on(world), upwards(world, "Updates")
        for links, pairs in (
            (found.grounds, grounds),
            (found.dependents, reverse(grounds)),
            (found.replaced, updates),
            (found.replaced_by, reverse(updates)),
        ):
            told = {link.memory_id: link.distance for link in links}
            assert told == reached(pairs, {start}, seen)
            assert all((link.via_id, link.memory_id) in pairs for link in links)
        assert not world.leaks(found.model_dump_json(), viewer)
        assert not found.cut
        known = set(found.memory_by_id)
        for links in (found.grounds, found.dependents, found.replaced, found.replaced_by):
            assert {link.memory_id for link in links} <= known
        assert {one.source_id for one in found.memories} == {one.source_id for one in found.sources}


@settings(max_examples=often(48))
@given(plans)
def test_what_stands_on_a_replaced_ground_is_told_however_it_is_reached(plan: Any) -> None:
    with stored(plan) as (database, world):
        start = next(iter(world.memories))
        everything = Viewer(
            clearance=list(type(Viewer().clearance))[-1],
            project_ids=frozenset("ab"),
            session_ids=frozenset("ab"),
        )
        found = trace(database, start, viewer=everything)
        down = reverse(stands_on(world))
        family = {start, *reached(down, {start}, set(world.memories))}
        active = {one for one, row in world.memories.items() if row["status"] == "active"}
        shaken: set[str] = set()
        for ground in family - active:
            beside = set(world.memories) - successors(world, ground)
            shaken |= reached(down, {ground}, beside).keys()
        assert set(found.stale_dependents) == (shaken & active) - {start}
        assert set(found.stale_grounds) == {link.memory_id for link in found.grounds} - active


def test_a_probable_change_replaces_nothing(filling: Filling) -> None:
    old, new, other = filling.memory(), filling.memory(), filling.memory()
    edge = filling.edge(new, old, "Updates", weight=0.9)
    filling.edge(
        other, old, "Updates", weight=0.9, resolved_at=NOW, resolution={"outcome": "dismissed"}
    )
    found = trace(filling, old)
    assert found.replaced_by == trace(filling, new).replaced == ()
    assert [each.edge_id for each in found.probable_changes] == [edge]
    assert trace(filling, new).probable_changes == found.probable_changes
    assert trace(filling, other).probable_changes == ()


def test_a_chain_names_its_edges_and_what_replaced_a_part(filling: Filling) -> None:
    old, new = (filling.memory(status="superseded") for _ in range(2))
    newest, partial, consequence, part = (filling.memory() for _ in range(4))
    summary = filling.memory(kind="reflection")
    filling.edge(new, old, "Updates")
    filling.edge(newest, new, "Updates")
    filling.edge(partial, old, "Updates", partial=1, created_at=NOW + 9)
    filling.edge(consequence, old, "CausedBy")
    filling.edge(part, consequence, "PartOf")
    filling.derived(summary, part)
    found = trace(filling, old)
    assert [(link.memory_id, link.distance, link.partial) for link in found.replaced_by] == [
        (new, 1, False),
        (partial, 1, True),
        (newest, 2, False),
    ]
    assert [(link.memory_id, link.edge_type) for link in found.dependents] == [
        (consequence, EdgeType.CAUSED_BY),
        (part, EdgeType.PART_OF),
        (summary, None),
    ]
    assert found.stale_dependents == (consequence, part, summary)
    assert trace(filling, summary).stale_grounds == (old,)


def test_where_it_was_handed_out(filling: Filling) -> None:
    memory_id = filling.memory()
    before = trace(filling, memory_id).handed_out
    assert (before.count, before.last_at, before.last_recall_id) == (0, None, None)
    for number, at in enumerate((NOW + 7, NOW + 9, NOW + 8)):
        filling.change(
            "INSERT INTO recalls (recall_id, created_at, query, request) VALUES (?, ?, '', '{}')",
            f"rec_{number}",
            at,
        )
        filling.change(
            "INSERT INTO recall_items (recall_id, rank, memory_id, score, explanation)"
            " VALUES (?, 1, ?, 0.5, '{}')",
            f"rec_{number}",
            memory_id,
        )
    after = trace(filling, memory_id).handed_out
    assert (after.count, after.last_at, after.last_recall_id) == (3, NOW + 9, "rec_1")


def test_a_circle_ends(filling: Filling) -> None:
    ring = [filling.memory(status="superseded") for _ in range(3)]
    for one, other in zip(ring, ring[1:] + ring[:1], strict=True):
        filling.derived(one, other)
        filling.edge(one, other, "Updates")
    found = trace(filling, ring[0])
    assert [link.memory_id for link in found.grounds] == [ring[1], ring[2]]
    assert [link.memory_id for link in found.replaced_by] == [ring[2], ring[1]]
    assert not found.cut


def test_bounds_are_told(filling: Filling) -> None:
    long = [filling.memory() for _ in range(MAX_DEPTH + 2)]
    for one, ground in pairwise(long):
        filling.derived(one, ground)
    hub = filling.memory()
    for _ in range(10 * MAX_LINKS):
        filling.edge(filling.memory(), hub, "PartOf")
    deep = trace(filling, long[0])
    assert [link.memory_id for link in deep.grounds] == long[1:-1]
    assert deep.cut_reasons == ("depth",)
    for number in range(MAX_JOURNAL + 1):
        filling.journal("confirm", hub, number=number)
    wide = trace(filling, hub)
    assert len(wide.dependents) == MAX_LINKS
    assert len(wide.edges_in) == MAX_EDGES
    assert [note.details["number"] for note in wide.journal] == list(range(1, MAX_JOURNAL + 1))
    assert wide.cut_reasons == ("max_edges", "max_journal", "max_links")
    assert trace(filling, long[1]).cut_reasons == ()
