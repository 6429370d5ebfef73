"""Who may not see a memory cannot change it, build on it or learn that it is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memgraph import MemoryService, MemoryStatus, Orchestrator, Sensitivity, Viewer
from memgraph.errors import InvalidInput, NotFound
from memgraph.operations.tools import functions

SECRET = "The vault code is 8."

Change = Callable[[Orchestrator, str, str], Any]

CHANGES: dict[str, Change] = {
    "relate": lambda who, secret, own: who.relate(own, "RelatedTo", secret),
    "relate from": lambda who, secret, own: who.relate(secret, "Updates", own),
    "correct": lambda who, secret, _own: who.correct(secret, "It is 9.", reason="x"),
    "confirm": lambda who, secret, _own: who.confirm(secret),
    "retract": lambda who, secret, _own: who.retract(secret, reason="x"),
    "restore": lambda who, secret, _own: who.restore(secret, reason="x"),
    "derive": lambda who, secret, _own: who.remember("Derived.", derived_from=[secret]),
    "promote": lambda who, secret, _own: who.contexts.promote(
        secret, "global", confirmation_callback=lambda _question: True
    ),
    "correct_fact": lambda who, secret, _own: functions.correct_fact(who, secret, "It is 9."),
    "confirm_fact": lambda who, secret, _own: functions.confirm_fact(who, secret),
}


@pytest.fixture
def owner(service: MemoryService) -> Orchestrator:
    viewer = Viewer(clearance=Sensitivity.RESTRICTED, project_ids=frozenset({"p"}))
    return service.orchestrator("orc-1", create=True, viewer=viewer)


@pytest.fixture
def stranger(service: MemoryService, owner: Orchestrator) -> Orchestrator:
    return service.orchestrator("orc-1")


def outcome_of(change: Change, who: Orchestrator, target: str, own: str) -> str:
    """What an error says, with the id that was asked for taken out."""
    with pytest.raises(NotFound) as caught:
        change(who, target, own)
    return repr(caught.value.as_dict()).replace(target, "ID")


@pytest.mark.parametrize("hidden", [{"sensitivity": "Restricted"}, {"scope": "project"}])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_hidden_memory_is_changed_by_nobody_and_sounds_like_a_missing_one(
    owner: Orchestrator, stranger: Orchestrator, change: Change, hidden: dict[str, str]
) -> None:
    fields = hidden | ({"scope_id": "p"} if "scope" in hidden else {})
    secret, own = owner.remember(SECRET, **fields), owner.remember("An own one.")
    before = owner.trace(secret)
    assert outcome_of(change, stranger, secret, own) == outcome_of(
        change, stranger, "fact_" + "0" * 26, own
    )
    assert owner.trace(secret) == before
    assert owner.maintenance.stats()["memories"]["kind"] == {"fact": 2}


def test_a_contradiction_with_a_hidden_side_is_not_there(
    owner: Orchestrator, stranger: Orchestrator
) -> None:
    secret, own = owner.remember(SECRET, sensitivity="Restricted"), owner.remember("It is 9.")
    edge = owner.relate(secret, "Contradicts", own)
    for name in (edge, "edge_missing"):
        with pytest.raises(NotFound, match=f"no edge '{name}'"):
            stranger.contradictions.resolve(name, winner=own, reason="x")
        with pytest.raises(NotFound, match=f"no edge '{name}'"):
            stranger.contradictions.reopen(name, reason="x")
    assert owner.get(secret).status is MemoryStatus.ACTIVE
    owner.contradictions.resolve(edge, winner=own, reason="looked")
    assert owner.get(secret).status is MemoryStatus.SUPERSEDED


@pytest.mark.parametrize("as_what", ["Internal", "Restricted"])
def test_a_repeated_text_is_no_duplicate_of_a_hidden_one(
    owner: Orchestrator, stranger: Orchestrator, as_what: str
) -> None:
    secret = owner.remember(SECRET, sensitivity="Restricted")
    [outcome] = stranger.remember_many([{"content": SECRET, "sensitivity": as_what}])
    assert outcome.outcome == "stored"
    assert outcome.memory_id != secret
    assert owner.remember(SECRET, sensitivity="Restricted") == secret


def test_what_two_agents_say_in_the_same_words_is_seen_by_both(service: MemoryService) -> None:
    ids = {}
    for name in ("ana", "ben"):
        agent = service.orchestrator("orc-1", create=True, viewer=Viewer(agent_id=name))
        ids[name] = agent.remember("The key lies under the mat.", agent_id=name)
        assert agent.get(ids[name]).agent_id == name
    assert ids["ana"] != ids["ben"]


def test_a_status_is_one_of_three_and_no_sql(owner: Orchestrator, stranger: Orchestrator) -> None:
    owner.remember(SECRET, sensitivity="Restricted")
    with pytest.raises(InvalidInput, match="active, superseded, retracted"):
        stranger.memories.list(statuses=["active') OR ('1'='1"])  # type: ignore[list-item]
    with pytest.raises(InvalidInput, match="Preference"):
        stranger.memories.list(types=["Nope"])  # type: ignore[list-item]
