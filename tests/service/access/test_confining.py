"""A key writes where it could read, and nowhere else, whatever the way."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.errors import AccessDenied, InvalidInput, NotFound
from memgraph.model.access import ANY, Narrowing, Permission, Principal
from memgraph.model.conversation import AgentTurn, UserTurn
from memgraph.model.enums import Sensitivity
from memgraph.operations.tools import functions
from memgraph.rules.scope import ScopeFacts, Viewer, visible
from memgraph.service.access.gate import Gate
from memgraph.service.access.keys import KeyStore

SEES_ALL = Viewer(
    clearance=Sensitivity.RESTRICTED,
    project_ids=frozenset({"p1", "p2"}),
    session_ids=frozenset({"s1", "s2"}),
)
PLACES = [("global", None), ("project", "p1"), ("project", "p2"), ("session", "s1")]
Place = dict[str, Any]
NUMBERS = count()
Way = Callable[[Orchestrator, Place, str], object]


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Any:
    root: Path = tmp_path_factory.mktemp("confined") / "root"
    config = {"memory.storage.synchronous": "NORMAL"}
    with MemoryService(
        root, clock=FixedClock(), environ={}, background=False, config=config
    ) as service:
        service.create("orc-1")
        yield Gate(service, KeyStore(service.root, service.clock))


def principal(**fields: Any) -> Principal:
    given = {
        "key_id": "0123456789ab",
        "name": "a test",
        "orchestrators": ("orc-1",),
        "permissions": frozenset(Permission),
    }
    return Principal(**{**given, **fields})


def everything(gate: Gate) -> list[tuple[Any, ...]]:
    """What is stored: who may see each memory, its text and its status."""
    columns = "memory_id, content, scope, scope_id, sensitivity, agent_id, status"
    with gate.service.opened("orc-1") as opened, opened.database.read() as connection:
        rows = connection.exec_driver_sql(f"SELECT {columns} FROM memories ORDER BY pk").all()
    return [tuple(each) for each in rows]


def batch(stored: list[Any]) -> object:
    [outcome] = stored
    if outcome.code is not None:
        assert outcome.memory_id is None
        raise AccessDenied(outcome.message or "")
    return outcome.memory_id


def said(place: Place) -> dict[str, Any]:
    return {**place, "session_id": f"talk {next(NUMBERS)}", "source_role": "user"}


def correct(orc: Orchestrator, place: Place, text: str) -> object:
    """Of a memory that any handle of the test sees: it moves, or changes who may see it."""
    host = orc._service.orchestrator(orc.name)
    old = host.remember(f"{text} of old", sensitivity="Public")
    return orc.correct(old, text, reason="a test", **place)


WAYS: dict[str, Way] = {
    "remember": lambda orc, place, text: orc.remember(text, **place),
    "remember_many": lambda orc, place, text: batch(
        orc.remember_many([{"content": text, **place}])
    ),
    "save_episode": lambda orc, place, text: orc.save_episode(text, **said(place)),
    "save_episodes": lambda orc, place, text: batch(
        orc.save_episodes([{"content": text, **said(place)}])
    ),
    "publish a person's": lambda orc, place, text: orc.events.publish(
        UserTurn(content=text, **said(place))
    ),
    "publish an agent's": lambda orc, place, text: orc.events.publish(
        AgentTurn(content=text, **said(place))
    ),
    "correct": correct,
}
principals = st.builds(
    principal,
    clearance=st.sampled_from(Sensitivity),
    project_ids=st.sampled_from([(), ("p1",), ("p1", "p2"), (ANY,)]),
    session_ids=st.sampled_from([(), ("s1",), (ANY,)]),
    agent_id=st.sampled_from([None, "x"]),
)
narrowings = st.builds(
    Narrowing,
    project_ids=st.sampled_from([None, (), ("p1",)]),
    session_ids=st.sampled_from([None, ()]),
    clearance=st.sampled_from([None, Sensitivity.PUBLIC]),
)
places = st.builds(
    lambda place, level, agent: {
        "scope": place[0],
        "scope_id": place[1],
        "sensitivity": level.value,
        "agent_id": agent,
    },
    st.sampled_from(PLACES),
    st.sampled_from(Sensitivity),
    st.sampled_from([None, "x", "y"]),
)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(WAYS)), principals, narrowings, places)
def test_what_is_stored_is_what_the_key_sees_itself(
    gate: Gate, way: str, one: Principal, narrowing: Narrowing, place: Place
) -> None:
    try:
        handle = gate.enter(one, "orc-1", Permission.WRITE, narrowing)
    except AccessDenied:
        return
    text = f"Text {next(NUMBERS)}"
    allowed = visible(handle.viewer, ScopeFacts(**place)).allowed
    try:
        stored: object = WAYS[way](handle, place, text)
    except AccessDenied:
        stored = None
    assert (stored is not None) is allowed
    [*found] = [each for each in everything(gate) if each[1] == text]
    assert [each[2:6] for each in found] == [tuple(place.values())] * allowed


def handle_of(gate: Gate, narrowing: Narrowing | None = None, **fields: Any) -> Orchestrator:
    return gate.enter(principal(**fields), "orc-1", Permission.WRITE, narrowing)


@pytest.mark.parametrize("clearance", list(Sensitivity))
def test_what_a_store_or_a_model_keeps_is_seen_by_the_key(
    gate: Gate, clearance: Sensitivity
) -> None:
    """Both choose a sensitivity of their own."""
    orc = handle_of(gate, project_ids=("p1",), clearance=clearance, agent_id="x")
    number = list(Sensitivity).index(clearance)
    orc.stores.project("p1").add_decision(f"Bread number {number} rises in the warm.")
    proposed = functions.remember_fact(
        orc, f"The shop number {number} sells bread.", scope="project", scope_id="p1"
    )
    for each in orc.memories.list(limit=1000):
        facts = ScopeFacts(each.scope, each.scope_id, each.sensitivity, each.agent_id)
        assert visible(orc.viewer, facts).allowed
    assert orc.get(proposed["memory_id"]).scope_id == "p1"


def test_a_conversation_of_which_it_sees_nothing_takes_no_turn(gate: Gate) -> None:
    host = gate.service.orchestrator("orc-1", viewer=SEES_ALL)
    for text in ("Hello.", "Goodbye."):
        host.save_episode(text, session_id="closed", source_role="user", sensitivity="Restricted")
    orc = handle_of(gate)
    before = everything(gate)
    with pytest.raises(AccessDenied):
        orc.save_episode("Me too.", session_id="closed", source_role="user")
    [outcome] = orc.save_episodes(
        [{"content": "Me too.", "session_id": "closed", "source_role": "user"}]
    )
    assert outcome.code == "access.denied"
    assert everything(gate) == before
    # One that it begins itself is its own, and those that others begin openly.
    own = orc.save_episode("Anybody here?", session_id="open", source_role="user")
    host.save_episode("Yes.", session_id="open", source_role="user")
    orc.save_episode("Good.", session_id="open", source_role="user")
    assert orc.get(own).sequence == 0


def test_a_conversation_that_begins_ends_those_alone_of_which_the_key_sees_a_turn(
    gate: Gate,
) -> None:
    host = gate.service.orchestrator("orc-1", viewer=SEES_ALL)
    orc = handle_of(gate, project_ids=("p1",))
    orc.save_episode("Let us begin.", session_id="first", source_role="user")
    orc.save_episode("The two of us.", session_id="shared", source_role="user")
    place: dict[str, Any] = {"scope": "project", "scope_id": "p2"}
    # The host's own new conversation ends all.
    host.save_episode("Elsewhere.", session_id="elsewhere", source_role="user", **place)
    host.save_episode("Go on.", session_id="shared", source_role="user", **place)
    with pytest.raises(NotFound):
        orc.sessions.end("elsewhere")
    orc.save_episode("And now?", session_id="second", source_role="user")
    still_open = {each.session_id for each in host.sessions.list() if each.completed_at is None}
    assert {"elsewhere", "second"} <= still_open
    assert not {"first", "shared"} & still_open
    host.save_episode("All over.", session_id="last", source_role="user")
    still_open = {each.session_id for each in host.sessions.list() if each.completed_at is None}
    assert still_open == {"last"}


def test_an_invalid_scope_is_wrong_before_it_is_denied(gate: Gate) -> None:
    orc = handle_of(gate)
    for place in ({"scope": "project"}, {"scope": "universe"}, {"scope_id": "p1"}):
        with pytest.raises(InvalidInput):
            orc.remember("Nowhere.", **place)
