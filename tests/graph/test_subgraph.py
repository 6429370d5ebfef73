"""The neighbourhood of memories: complete within its bounds, and nothing of what is hidden."""

from __future__ import annotations

from typing import Any

from filling import NOW, Filling, flushed
from graph_worlds import World, plans, reading, stored, viewers
from hypothesis import given, settings, strategies as st
from sampling import often

from memgraph.graph import subgraph as subgraphs
from memgraph.model.enums import STORED_STATUSES, EdgeType, MemoryStatus
from memgraph.rules.scope import DEFAULT_VIEWER, Viewer
from memgraph.store.engine import Database
from memgraph.store.visibility import STANDING

subgraph = reading(subgraphs.subgraph, STANDING)


def status_at(row: dict[str, Any], as_of: int | None) -> str | None:
    """The status that a stored memory had; None before it was there."""
    if as_of is None:
        return str(row["status"])
    held = [
        status
        for status, since, until in row["history"]
        if since <= as_of and (until is None or until > as_of)
    ]
    return held[-1] if held else None


def expected(
    world: World, viewer: Viewer, seed: str, hops: int, as_of: int | None, statuses: set[str]
) -> tuple[dict[str, int], set[str]]:
    """Distances and edge ids by walking the stored rows one by one."""
    seen = {
        one
        for one in world.seen(viewer)
        if status_at(world.memories[one], as_of) in statuses
        and (as_of is None or world.memories[one]["created_at"] <= as_of)
    }
    edges = [
        edge
        for edge in world.edges
        if {edge["from"], edge["to"]} <= seen and (as_of is None or edge["created_at"] <= as_of)
    ]
    distances = {seed: 0} if seed in seen else {}
    for distance in range(1, hops + 1):
        near = set(distances)
        for edge in edges:
            for one, other in ((edge["from"], edge["to"]), (edge["to"], edge["from"])):
                if one in near and other not in distances:
                    distances[other] = distance
    inside = {edge["edge_id"] for edge in edges if {edge["from"], edge["to"]} <= set(distances)}
    return distances, inside


@settings(max_examples=often(60))
@given(
    plans,
    viewers,
    st.integers(1, 4),
    st.none() | st.integers(NOW - 1, NOW + 9),
    st.sets(st.sampled_from(STORED_STATUSES), min_size=1),
)
def test_it_holds_exactly_what_the_reader_may_reach(
    plan: Any, viewer: Viewer, hops: int, as_of: int | None, statuses: set[MemoryStatus]
) -> None:
    with stored(plan) as (database, world):
        seed = next(iter(world.memories))
        found = subgraph(
            database, [seed], hops=hops, viewer=viewer, as_of=as_of, statuses=frozenset(statuses)
        )
        distances, edges = expected(world, viewer, seed, hops, as_of, set(statuses))
        assert found.distances == distances
        assert {edge.edge_id for edge in found.edges} == edges
        derived = [(one.memory_id, one.derived_from_id) for one in found.derivations]
        assert derived == sorted(
            pair for pair in world.derivations if set(pair) <= distances.keys()
        )
        assert found.missing == (() if distances else (seed,))
        assert not found.cut
        told = found.model_copy(update={"missing": ()}).model_dump_json()
        assert not world.leaks(told, viewer)
        for node in found.nodes:
            assert node.status == status_at(world.memories[node.memory_id], as_of)
        assert {node.source_id for node in found.nodes} == {one.source_id for one in found.sources}


@settings(max_examples=often(60))
@given(plans, viewers, st.integers(1, 3), st.integers(1, 4), st.integers(1, 3))
def test_bounds_hold_and_cutting_is_told(
    plan: Any, viewer: Viewer, hops: int, max_nodes: int, max_degree: int
) -> None:
    with stored(plan) as (database, world):
        seeds = list(world.memories)[:2]
        whole = subgraph(database, seeds, hops=hops, viewer=viewer)
        bounds = {"hops": hops, "max_nodes": max_nodes, "max_degree": max_degree}
        found = subgraph(database, seeds, viewer=viewer, **bounds)
        nodes = {node.memory_id for node in found.nodes}
        assert len(nodes) <= max_nodes
        assert nodes <= set(whole.distances)
        assert all({edge.from_id, edge.to_id} <= nodes for edge in found.edges)
        assert found.cut == bool(found.cut_reasons)
        if not found.cut:
            assert found.distances == whole.distances
            assert found.edges == whole.edges
        again = subgraph(database, seeds, viewer=viewer, **bounds)
        assert again.model_dump_json() == found.model_dump_json()


def test_what_is_derived_is_told_unless_types_of_edges_are_asked_for(
    filling: Filling,
) -> None:
    ground, derived, far = (filling.memory() for _ in range(3))
    filling.derived(derived, ground)
    filling.derived(far, ground)
    found = subgraph(filling, [ground, derived])
    assert [(one.memory_id, one.derived_from_id) for one in found.derivations] == [
        (derived, ground)
    ]
    assert subgraph(filling, [ground, derived], edge_types=list(EdgeType)).derivations == ()


def test_a_hub_gives_its_strongest_edges_then_the_newest_then_the_highest_id(
    filling: Filling,
) -> None:
    hub = filling.memory()
    by_weight = [filling.memory() for _ in range(3)]
    for weight, one in zip((0.2, 0.9, 0.5), by_weight, strict=True):
        filling.edge(one, hub, "PartOf", weight=weight, created_at=NOW + 100)
    older, newer = filling.memory(), filling.memory()
    filling.edge(hub, newer, weight=0.1, created_at=NOW + 2)
    filling.edge(hub, older, weight=0.1, created_at=NOW + 1)
    last = filling.memory()
    filling.edge(hub, last, weight=0.1, created_at=NOW + 1)
    order = [by_weight[1], by_weight[2], by_weight[0], newer, last, older]
    for degree in range(1, len(order) + 1):
        found = subgraph(filling, [hub], max_degree=degree)
        assert list(found.distances) == [hub, *order[:degree]]
        assert found.cut_reasons == (() if degree == len(order) else ("max_degree",))
    found = subgraph(filling, [hub], max_nodes=3)
    assert list(found.distances) == [hub, *order[:2]]
    assert found.cut_reasons == ("max_nodes",)


def test_a_hub_of_thousands_of_edges_is_walked_in_part(filling: Filling) -> None:
    hub = filling.memory()
    parts = [filling.memory() for _ in range(4_000)]
    for number, part in enumerate(parts):
        filling.edge(part, hub, "PartOf", weight=number / 4_000)
    steps = _virtual_machine_steps(flushed(filling), lambda: subgraph(filling, [hub], hops=2))
    found = subgraph(filling, [hub], hops=2)
    assert set(found.distances) == {hub, *parts[-50:]}
    assert found.cut_reasons == ("max_degree",)
    # Reading all of the hub's edges takes more than a hundred thousand.
    assert 0 < steps < 30_000, steps


def _virtual_machine_steps(database: Database, work: Any) -> int:
    """Work that SQLite did, in units of 1,000 instructions of its machine: no clock involved."""
    count = 0

    def tick() -> int:
        nonlocal count
        count += 1
        return 0

    with database.read() as connection:
        driver: Any = connection.driver
        driver.set_progress_handler(tick, 1_000)
    try:
        work()
    finally:
        driver.set_progress_handler(None, 0)
    return count * 1_000


def test_hidden_neighbours_take_no_room_and_carry_no_path(filling: Filling) -> None:
    seed, behind = filling.memory(), filling.memory()
    hidden = [filling.memory(sensitivity="Restricted") for _ in range(20)]
    shown = filling.memory()
    for one in hidden:
        filling.edge(seed, one, weight=1.0)
        filling.edge(one, behind, weight=1.0)
    filling.edge(seed, shown, weight=0.1)
    found = subgraph(filling, [seed], hops=3, max_nodes=2, max_degree=1)
    assert found.distances == {seed: 0, shown: 1}
    assert not found.cut


def test_edge_types_are_followed_and_shown_alone(filling: Filling) -> None:
    one, two, three = (filling.memory() for _ in range(3))
    updates = filling.edge(one, two, "Updates")
    filling.edge(one, two, "RelatedTo")
    filling.edge(two, three, "PartOf")
    found = subgraph(filling, [one], hops=2, edge_types=[EdgeType.UPDATES])
    assert list(found.distances) == [one, two]
    assert [edge.edge_id for edge in found.edges] == [updates]
    assert subgraph(filling, [one], edge_types=[]).edges == ()


def test_more_seeds_than_room_are_cut(filling: Filling) -> None:
    ids = [filling.memory() for _ in range(5)]
    found = subgraph(filling, [*ids, ids[0], "fact_unknown"], max_nodes=3)
    assert found.seeds == tuple(ids[:3])
    assert found.missing == ("fact_unknown",)
    assert found.cut_reasons == ("max_nodes",)


def test_more_edges_than_are_shown_are_cut(filling: Filling) -> None:
    ids = [filling.memory() for _ in range(4)]
    for one in ids:
        for other in ids:
            if one != other:
                for edge_type in EdgeType:
                    filling.edge(one, other, edge_type.value, weight=0.5)
    found = subgraph(filling, ids, max_nodes=4)
    assert len(found.edges) == 40
    assert found.cut_reasons == ("max_edges",)


def test_no_seeds_give_an_empty_graph(database: Database) -> None:
    found = subgraph(database, [])
    assert found.nodes == found.edges == found.sources == ()
    assert not found.cut


def test_networkx_gets_every_field(filling: Filling) -> None:
    source = filling.source("src_file", source_type="ingest_file", source_path="/a.md")
    one = filling.memory(source_id=source, tags=["x"], attributes={"k": [1]})
    other = filling.memory()
    first, second = filling.edge(one, other), filling.edge(one, other, "Updates", weight=0.5)
    found = subgraph(filling, [one], viewer=DEFAULT_VIEWER)
    graph = found.to_networkx()
    node = graph.nodes[one]
    assert set(graph) == {one, other}
    assert node["distance"] == 0
    assert node["type"] == "Fact"
    assert type(node["type"]) is str
    assert node["attributes"] == {"k": [1]}
    assert node["provenance"]["source_path"] == "/a.md"
    assert graph.edges[one, other, first]["edge_type"] == "RelatedTo"
    assert graph.edges[one, other, second]["weight"] == 0.5
    assert graph.graph == {"cut": False, "cut_reasons": ()}
    node["attributes"]["k"].append(2)
    assert found.nodes[0].attributes == {"k": [1]}
