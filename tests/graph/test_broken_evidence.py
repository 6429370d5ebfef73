"""The broken evidence of memories, against the stored rows, and when a step is cut."""

from __future__ import annotations

from typing import Any

import pytest
from filling import NOW, Filling, flushed
from graph_worlds import World, plans, reached, reverse, stands_on, stored, successors, viewers
from hypothesis import given, settings

from memgraph.rules.evidence import MAX_HOPS
from memgraph.rules.scope import DEFAULT_VIEWER, Viewer
from memgraph.store.evidence import broken_evidence
from memgraph.store.visibility import View


def refuted_evidence(world: World, viewer: Viewer) -> dict[str, set[str]]:
    """Return the refuted evidence of each visible memory, from the rows alone."""
    seen = world.seen(viewer)
    pairs = reverse({pair for pair in stands_on(world) if seen.issuperset(pair)})
    result: dict[str, set[str]] = {}
    for ground in seen:
        if world.memories[ground]["status"] == "active":
            continue
        hops = reached(pairs, {ground}, seen - successors(world, ground))
        for dependent, distance in hops.items():
            if distance <= MAX_HOPS:
                result.setdefault(dependent, set()).add(ground)
    return result


@settings(max_examples=30)
@given(plans, viewers)
def test_broken_evidence_is_what_the_rows_say(plan: Any, viewer: Viewer) -> None:
    with stored(plan) as (database, world):
        with database.read() as snapshot:
            paths = broken_evidence(snapshot, world.seen(viewer), View(viewer))
        expected = refuted_evidence(world, viewer)
        since = {one: row["history"][-1][1] for one, row in world.memories.items()}
        assert paths.keys() == expected.keys()
        for dependent, path in paths.items():
            assert path[0].dependent_id == dependent
            assert path[-1].ground_id == max(expected[dependent], key=lambda one: (since[one], one))
            for step in path:
                assert (step.dependent_id, step.ground_id) in stands_on(world)


def test_hidden_rows_do_not_use_up_a_step(
    filling: Filling, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = [("active", NOW, NOW + 1), ("retracted", NOW + 1, None)]
    memory, ground = filling.memory(), filling.memory(status="retracted", history=ended)
    hidden = [filling.memory(scope="project", scope_id="other") for _ in range(5)]
    for evidence in (*hidden, ground):
        filling.derived(memory, evidence)
    monkeypatch.setattr("memgraph.store.evidence.MAX_ROWS", 3)
    with flushed(filling).read() as snapshot:
        paths = broken_evidence(snapshot, [memory], View(DEFAULT_VIEWER))
    assert [step.ground_id for step in paths[memory]] == [ground]
