"""Who may not see a memory does not learn by what they write that it is there."""

from __future__ import annotations

import pytest

from memgraph import MemoryService, Orchestrator, Sensitivity, Viewer
from memgraph.errors import InvalidInput

SECRET = "The vault code is 8."


@pytest.fixture
def owner(service: MemoryService) -> Orchestrator:
    viewer = Viewer(clearance=Sensitivity.RESTRICTED, project_ids=frozenset({"p"}))
    return service.orchestrator("orc-1", create=True, viewer=viewer)


@pytest.fixture
def stranger(service: MemoryService, owner: Orchestrator) -> Orchestrator:
    return service.orchestrator("orc-1")


@pytest.mark.parametrize("as_what", ["Internal", "Restricted"])
def test_a_repeated_text_is_no_duplicate_of_a_hidden_one(
    owner: Orchestrator, stranger: Orchestrator, as_what: str
) -> None:
    secret = owner.remember(SECRET, sensitivity="Restricted")
    [outcome] = stranger.remember_many([{"content": SECRET, "sensitivity": as_what}])
    assert outcome.outcome == "stored"
    assert outcome.memory_id != secret
    assert owner.remember(SECRET, sensitivity="Restricted") == secret


def test_a_status_is_one_of_three_and_no_sql(owner: Orchestrator, stranger: Orchestrator) -> None:
    owner.remember(SECRET, sensitivity="Restricted")
    with pytest.raises(InvalidInput, match="active, superseded, retracted"):
        stranger.memories.list(statuses=["active') OR ('1'='1"])  # type: ignore[list-item]
    with pytest.raises(InvalidInput, match="Preference"):
        stranger.memories.list(types=["Nope"])  # type: ignore[list-item]
