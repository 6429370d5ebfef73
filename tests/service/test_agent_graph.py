"""Edges that a model proposes: what it may join, and what rules keep from it."""

from __future__ import annotations

from typing import Any

import pytest
from working import put

from memgraph import MemoryService, Orchestrator, Viewer
from memgraph.errors import AccessDenied, Conflict, InvalidInput, MemgraphError, NotFound
from memgraph.model.enums import EdgeType, Sensitivity
from memgraph.operations.tools import functions

EVERYTHING = Viewer(
    clearance=Sensitivity.RESTRICTED,
    project_ids=frozenset({"web", "shop"}),
    session_ids=frozenset({"s1"}),
)


@pytest.fixture
def agent(service: MemoryService) -> Orchestrator:
    return service.orchestrator("orc-1", create=True, viewer=EVERYTHING, actor="agent")


def fact(agent: Orchestrator, content: str, **fields: Any) -> str:
    """A fact that no person confirmed."""
    source = {"captured_by": "extractor"}
    return put(agent, content, **{"confidence": 0.8, "source": source, **fields})


@pytest.mark.parametrize("edge_type", EdgeType)
def test_an_edge_is_joined_once_and_is_no_certainty(
    agent: Orchestrator, edge_type: EdgeType
) -> None:
    new, old = fact(agent, "The shop opens at ten."), fact(agent, "The shop opens at nine.")
    made = agent.agents.propose_relation(new, edge_type, old, reason="Said so.")
    again = agent.agents.propose_relation(new, edge_type, old)
    assert (made.outcome, again.outcome) == ("stored", "duplicate")
    assert made.edge_id == again.edge_id
    [edge] = agent.trace(new).edges_out
    replaced = edge_type is EdgeType.UPDATES
    assert (edge.weight, edge.reason) == (1.0 if replaced else 0.9, "Said so.")
    assert agent.get(old).status.value == ("superseded" if replaced else "active")


PROJECT = {"scope": "project", "scope_id": "web"}
SESSION = {"scope": "session", "scope_id": "s1"}


@pytest.mark.parametrize(
    ("new", "old", "allowed"),
    [
        ({}, {}, True),
        ({}, PROJECT, True),
        (PROJECT, PROJECT, True),
        (PROJECT, {}, False),
        (SESSION, {}, False),
        (SESSION, PROJECT, False),
        (PROJECT, {**PROJECT, "scope_id": "shop"}, False),
        ({"sensitivity": "Confidential"}, {}, False),
        ({}, {"sensitivity": "Confidential"}, True),
        ({"agent_id": "a"}, {}, False),
        ({}, {"agent_id": "a"}, True),
        ({"agent_id": "a"}, {"agent_id": "a"}, True),
        ({"agent_id": "a"}, {"agent_id": "b"}, False),
    ],
)
def test_who_sees_what_is_replaced_sees_what_replaces_it(
    agent: Orchestrator, new: dict[str, Any], old: dict[str, Any], allowed: bool
) -> None:
    ends = fact(agent, "The shop opens at ten.", **new), fact(agent, "It opens at nine.", **old)
    if allowed:
        agent.agents.propose_relation(ends[0], "Updates", ends[1])
    else:
        with pytest.raises(AccessDenied, match="could not see"):
            agent.agents.propose_relation(ends[0], "Updates", ends[1])
    assert agent.get(ends[1]).status.value == ("superseded" if allowed else "active")
    # To say that they contradict one another hides nothing from anybody.
    assert agent.agents.propose_relation(ends[0], "Contradicts", ends[1]).outcome == "stored"


@pytest.mark.parametrize(
    ("old", "error"),
    [
        ({"type": "Identity"}, AccessDenied),
        ({"kind": "reflection"}, InvalidInput),
        ({"kind": "episode", "session_id": "s1", "source_role": "user"}, InvalidInput),
    ],
)
def test_what_only_a_person_replaces_stands(
    agent: Orchestrator, old: dict[str, Any], error: type[MemgraphError]
) -> None:
    new, kept = fact(agent, "The shop opens at ten."), fact(agent, "It opens at nine.", **old)
    with pytest.raises(error):
        agent.agents.propose_relation(new, "Updates", kept)
    assert agent.get(kept).status.value == "active"
    assert agent.trace(new).edges_out == ()


def test_a_turn_replaces_nothing(agent: Orchestrator) -> None:
    turn = agent.save_episode("It opens at ten.", session_id="talk", source_role="user")
    with pytest.raises(InvalidInput):
        agent.agents.propose_relation(turn, "Updates", fact(agent, "It opens at nine."))


@pytest.mark.parametrize("edge_type", EdgeType)
def test_what_is_hidden_is_not_joined(
    service: MemoryService, agent: Orchestrator, edge_type: EdgeType
) -> None:
    hidden = fact(agent, "It opens at nine.", **PROJECT)
    seen = fact(agent, "It opens at ten.")
    narrow = service.orchestrator("orc-1", viewer=Viewer(), actor="agent")
    absent = "fact_00000000000000000000000000"
    for one in (hidden, absent):
        for ends in ((seen, one), (one, seen)):
            with pytest.raises(NotFound):
                narrow.agents.propose_relation(ends[0], edge_type, ends[1])
    assert agent.trace(seen).edges_out == agent.trace(seen).edges_in == ()


def test_nothing_is_joined_to_itself_or_by_an_unknown_edge(agent: Orchestrator) -> None:
    one = fact(agent, "It opens at nine.")
    with pytest.raises(InvalidInput):
        agent.agents.propose_relation(one, "RelatedTo", one)
    with pytest.raises(InvalidInput):
        agent.agents.propose_relation(one, "Hates", fact(agent, "It opens at ten."))


def test_two_facts_do_not_replace_each_other(agent: Orchestrator) -> None:
    new, old = fact(agent, "The shop opens at ten."), fact(agent, "The shop opens at nine.")
    agent.agents.propose_relation(new, "Updates", old)
    with pytest.raises(Conflict):
        agent.agents.propose_relation(old, "Updates", new)


@pytest.mark.parametrize("end", ["superseded", "retracted"])
def test_what_is_out_of_force_replaces_nothing(agent: Orchestrator, end: str) -> None:
    new, old = fact(agent, "The shop opens at ten."), fact(agent, "The ferry leaves at nine.")
    if end == "superseded":
        agent.agents.propose_relation(fact(agent, "The shop opens at noon."), "Updates", new)
    else:
        agent.retract(new, reason="It was wrong.")
    assert agent.get(new).status.value == end
    with pytest.raises(Conflict):
        agent.agents.propose_relation(new, "Updates", old)
    assert agent.get(old).status.value == "active"


def test_contradictions_come_in_pages_of_short_texts(agent: Orchestrator) -> None:
    made = set()
    for number in range(5):
        sides = [fact(agent, f"Shelf {number} {side} {'x' * 490}") for side in ("is", "is not")]
        made.add(agent.relate(sides[0], "Contradicts", sides[1]))
    told: list[str] = []
    after = None
    while True:
        page = functions.contradictions(agent, limit=2, after=after)
        for each in page["contradictions"]:
            assert {len(side["text"]) for side in each["sides"]} == {functions.MAX_TEXT_CHARS}
            assert all(side["text"].endswith(functions.CUT) for side in each["sides"])
            told.append(each["edge_id"])
        after = page["next_after"]
        if after is None:
            break
    assert (len(told), set(told)) == (5, made)


def test_a_trace_names_each_memory_once_and_no_hidden_one(
    service: MemoryService, agent: Orchestrator
) -> None:
    first = fact(agent, "The rent is 800.")
    second = agent.correct(first, "The rent is 900.", reason="x")
    derived = fact(agent, "Rent is the largest cost.", derived_from=[second])
    hidden = fact(agent, "A secret cost.", derived_from=[second], **PROJECT)
    told = functions.trace(agent, second)
    roles = {each["memory_id"]: each["role"] for each in told["linked"]}
    assert roles == {first: "replaced", derived: "dependent", hidden: "dependent"}
    narrow = service.orchestrator("orc-1", viewer=Viewer())
    seen = {each["memory_id"] for each in functions.trace(narrow, second)["linked"]}
    assert seen == {first, derived}
    assert [each["status"] for each in functions.trace(agent, first)["history"]] == [
        "active",
        "superseded",
    ]
