"""Nothing that a reader may not see ever shows: not as an item, nor at the end of an edge.

And what it may see is not pushed out by what it may not.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memgraph import MemoryService
from memgraph.clock import FixedClock
from memgraph.errors import AccessDenied
from memgraph.ids import CountingIds
from memgraph.model.enums import EdgeType, Scope, Sensitivity
from memgraph.model.values import Memory
from memgraph.rules.scope import ScopeFacts, Viewer, visible

PLACES = (
    (Scope.GLOBAL, None),
    (Scope.PROJECT, "p1"),
    (Scope.PROJECT, "p2"),
    (Scope.SESSION, "s1"),
    (Scope.SESSION, "s2"),
)
EVERYONE = Viewer(Sensitivity.RESTRICTED, frozenset({"p1", "p2"}), frozenset({"s1", "s2"}))
AGENTS = (None, "agent-1", "agent-2")

viewers = st.builds(
    Viewer,
    clearance=st.sampled_from(Sensitivity),
    project_ids=st.frozensets(st.sampled_from(["p1", "p2", "p3"])),
    session_ids=st.frozensets(st.sampled_from(["s1", "s2", "s3"])),
    scopes=st.frozensets(st.sampled_from(Scope)),
    agent_id=st.sampled_from(AGENTS),
)


def seen(viewer: Viewer, memory: Memory) -> bool:
    facts = ScopeFacts(
        memory.scope.value, memory.scope_id, memory.sensitivity.value, memory.agent_id
    )
    return visible(viewer, facts).allowed


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MemoryService, int]]:
    """Turns of every scope, sensitivity and agent side by side, joined, some replaced later."""
    clock = FixedClock()
    root = tmp_path_factory.mktemp("isolation")
    overrides = {"memory.retrieval.top_k_text": 500, "memory.retrieval.top_k_vector": 500}
    with MemoryService(
        root, clock=clock, ids=CountingIds(), environ={}, background=False, config=overrides
    ) as service:
        memory = service.orchestrator("orc", create=True, viewer=EVERYONE)
        everything = itertools.product(PLACES, Sensitivity, AGENTS)
        ids = [
            outcome.memory_id or ""
            for outcome in memory.remember_many(
                {
                    "content": f"The harbour crane report, copy {n}, filed by @keeper.",
                    "kind": "episode",
                    "session_id": f"talk-{n % 3}",
                    "scope": scope,
                    "scope_id": scope_id,
                    "sensitivity": sensitivity,
                    "agent_id": agent_id,
                    "source_role": "Keeper",
                }
                for n, ((scope, scope_id), sensitivity, agent_id) in enumerate(everything)
            )
        ]
        kinds = itertools.cycle(
            [EdgeType.RELATED_TO, EdgeType.CONTRADICTS, EdgeType.CAUSED_BY, EdgeType.PART_OF]
        )
        for step in (1, 7):
            for one, other in zip(ids, ids[step:], strict=False):
                memory.relate(one, next(kinds), other)
        clock.advance(days=1)
        before = clock.now_ms()
        clock.advance(days=1)
        for old in ids[::9]:
            memory.correct(old, f"A crane inspection replaced {old}.", reason="test")
        for gone in ids[4::9]:
            memory.retract(gone, reason="test")
        memory.maintenance.embed_pending()
        yield service, before


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    viewer=viewers,
    then=st.booleans(),
    include_superseded=st.booleans(),
    query=st.sampled_from(["harbour crane report", "inspection", "@keeper", "copy 7"]),
)
def test_only_what_the_reader_may_see_shows(
    world: tuple[MemoryService, int],
    viewer: Viewer,
    then: bool,
    include_superseded: bool,
    query: str,
) -> None:
    service, before = world
    full = service.orchestrator("orc", viewer=EVERYONE)
    known = {each.memory_id: each for each in full.memories.list(statuses=(), limit=1_000)}
    reader = service.orchestrator("orc", viewer=viewer)
    fields: dict[str, Any] = {"as_of": before} if then else {}
    bundle = reader.recall(query, top_n=200, include_superseded=include_superseded, **fields)
    shown = {item.memory.memory_id for item in bundle.items}
    ends = {end for edge in bundle.edges for end in (edge.from_id, edge.to_id)}
    told = {one for item in bundle.items for one in item.contradicted_by}
    assert all(seen(viewer, known[one]) for one in shown | ends | told)
    assert {source.source_id for source in bundle.sources} == {
        item.memory.source_id for item in bundle.items
    }
    if then:
        assert all(known[one].created_at <= before for one in shown | ends | told)
    if query == "harbour crane report":
        expected = {
            one
            for one, each in known.items()
            if seen(viewer, each)
            and "crane report" in each.content
            and (
                each.created_at <= before
                if then
                else each.status == "active" or (include_superseded and each.status == "superseded")
            )
        }
        assert expected <= shown


def test_a_request_cannot_widen_the_view(world: tuple[MemoryService, int]) -> None:
    reader = world[0].orchestrator("orc", viewer=Viewer(project_ids=frozenset({"p1"})))
    for fields in (
        {"project_ids": ["p2"]},
        {"clearance": "Restricted"},
        {"session_scope_ids": ["s1"]},
    ):
        with pytest.raises(AccessDenied):
            reader.recall("crane", **fields)
    narrowed = reader.recall(
        "harbour crane report", scopes=["project"], project_ids=["p1"], top_n=99
    )
    assert {item.memory.scope_id for item in narrowed.items} == {"p1"}
