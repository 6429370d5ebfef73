"""What was handed out can be looked up: by whoever may see all of it."""

from __future__ import annotations

import pytest

from memgraph import MemoryService, Orchestrator, Scope, Viewer
from memgraph.errors import NotFound
from memgraph.model.receipts import Receipt

ATLAS = Viewer(project_ids=frozenset({"atlas"}))


def test_a_recalls_receipt_tells_what_was_asked_and_given_and_why(orc: Orchestrator) -> None:
    orc.remember_many({"content": f"Note {number} about the harbour."} for number in range(3))
    bundle = orc.recall("harbour", tags=[], top_n=2)
    receipt = orc.receipt(bundle.receipt_id)
    assert receipt.query == "harbour"
    assert receipt.asked["top_n"] == 2
    assert tuple(item.memory_id for item in receipt.items) == bundle.ids
    assert [dict(item.legs) for item in receipt.items] == [dict(one.legs) for one in bundle.items]
    assert [item.score for item in receipt.items] == [one.score for one in bundle.items]


def test_a_contexts_receipt_says_for_what_it_was(orc: Orchestrator) -> None:
    told = orc.remember("The harbour closes at nine.")
    block = orc.get_context("When does the harbour close?")
    receipt = orc.receipt(block.receipt_id)
    assert tuple(item.memory_id for item in receipt.items) == block.memory_ids == (told,)
    assert receipt.asked["purpose"] == "get_context"


def test_a_receipt_that_names_what_one_may_not_see_is_not_there(service: MemoryService) -> None:
    owner = service.orchestrator("o", create=True, viewer=ATLAS)
    owner.remember("Atlas ships in June.", scope=Scope.PROJECT, scope_id="atlas")
    owner.remember("The harbour ships nothing in June.")
    bundle = owner.recall("what ships in June")
    assert len(bundle.ids) == 2
    assert owner.receipt(bundle.receipt_id).query == "what ships in June"
    with pytest.raises(NotFound):
        service.orchestrator("o").receipt(bundle.receipt_id)
    with pytest.raises(NotFound):
        owner.receipt("rcl_none")


def test_the_bulletin_of_a_turn_counts_as_handed_out(service: MemoryService) -> None:
    owner = service.orchestrator("o", create=True, viewer=ATLAS)
    told = owner.remember("Atlas ships in June.", scope=Scope.PROJECT, scope_id="atlas")
    with service.opened("o") as opened:
        shown = {"bulletin": {"change_seq": 1, "memory_ids": [told]}, "purpose": "on_message"}
        opened.receipts.add(Receipt("rcl_1", 1, "", shown, (), counts=False))
    assert owner.receipt("rcl_1").asked == shown
    with pytest.raises(NotFound):
        service.orchestrator("o").receipt("rcl_1")


def test_who_sees_one_agents_memories_alone_sees_no_receipt_of_others(
    service: MemoryService,
) -> None:
    owner = service.orchestrator("o", create=True)
    owner.remember("The harbour closes at nine.")
    bundle = owner.recall("harbour")
    agent = service.orchestrator("o", viewer=Viewer(shared=False, agent_id="ada"))
    with pytest.raises(NotFound):
        agent.receipt(bundle.receipt_id)
    agent.remember("The harbour opens at six.", agent_id="ada")
    own = agent.recall("harbour")
    assert agent.receipt(own.receipt_id).query == "harbour"
