"""What was handed out can be looked up: by whoever may see all of it."""

from __future__ import annotations

from contextlib import nullcontext
from hashlib import sha256
from typing import Any

import pytest
from working import put

from memgraph import ContextAssembler, MemoryService, Orchestrator, Scope, Viewer
from memgraph.errors import InvalidInput, NotFound
from memgraph.model.recall import RecallRequest
from memgraph.model.receipts import Receipt, ReceiptList
from memgraph.operations.read import receipt_lookup as reading
from memgraph.store.receipts import NewReceipt

ATLAS = Viewer(project_ids=frozenset({"atlas"}))


def test_a_recalls_receipt_tells_what_was_asked_and_given_and_why(orc: Orchestrator) -> None:
    orc.remember_many({"content": f"Note {number} about the harbour."} for number in range(3))
    bundle = orc.recall("harbour", tags=[], top_n=2)
    receipt = orc.receipts.get(bundle.receipt_id)
    assert receipt.query_sha256 == sha256(b"harbour").hexdigest()
    assert receipt.asked["top_n"] == 2
    assert tuple(item.memory_id for item in receipt.items) == bundle.ids
    assert [dict(item.legs) for item in receipt.items] == [dict(one.legs) for one in bundle.items]
    assert [item.score for item in receipt.items] == [one.score for one in bundle.items]


def test_a_recalls_receipt_says_for_whom_it_was(orc: Orchestrator) -> None:
    put(orc, "The harbour closes at nine.")
    plain = orc.recall("harbour")
    bundle = orc.recall(
        "harbour", for_conversation_id="talk", for_workflow_run_id="run-7", for_step_id="s1"
    )
    assert bundle.ids == plain.ids
    found = orc.receipts.get(bundle.receipt_id)
    assert (found.conversation_id, found.workflow_run_id, found.step_id) == ("talk", "run-7", "s1")
    listed = orc.receipts.list(workflow_run_id="run-7").receipts
    assert [each.receipt_id for each in listed] == [bundle.receipt_id]
    # Of whose memories are asked for it says nothing of whom they are for.
    filtered = orc.recall("harbour", conversation_id="talk")
    assert orc.receipts.get(filtered.receipt_id).conversation_id is None


def test_a_contexts_receipt_says_for_what_it_was(orc: Orchestrator) -> None:
    told = put(orc, "The harbour closes at nine.")
    block = orc.context("When does the harbour close?")
    receipt = orc.receipts.get(block.receipt_id)
    assert tuple(item.memory_id for item in receipt.items) == block.memory_ids == (told,)
    assert receipt.asked["purpose"] == "get_context"


def test_what_is_no_id_is_told(orc: Orchestrator) -> None:
    for no_id in (None, 7, "\ud800"):
        with pytest.raises(InvalidInput):
            orc.receipts.get(no_id)  # type: ignore[arg-type]  # what a caller may pass
    for no_task in (7, "\ud800"):
        with pytest.raises(InvalidInput):
            orc.receipts.list(task_id=no_task)  # type: ignore[arg-type]


def test_receipts_are_listed_newest_first_and_for_whom(service: MemoryService) -> None:
    orc = service.orchestrator("o", create=True)
    assert orc.receipts.list() == ReceiptList((), cut=False)
    told = put(orc, "The harbour closes at nine.")
    assembler = ContextAssembler(service, "o")
    places = [("t1", "r1", "c1"), ("t1", "r2", "c1"), ("t2", "r1", "c2")]
    ids = [
        assembler.build_context(task, workflow_run_id=run, conversation_id=talk).receipt_id
        for task, run, talk in places
    ]
    recalled = orc.recall("harbour").receipt_id

    def listed(**fields: Any) -> list[str]:
        return [each.receipt_id for each in orc.receipts.list(**fields).receipts]

    assert listed() == [recalled, *ids[::-1]]
    assert listed(task_id="t1") == [ids[1], ids[0]]
    assert listed(task_id="t1", workflow_run_id="r1") == [ids[0]]
    assert listed(conversation_id="c2") == [ids[2]]
    assert listed(conversation_id="c3") == []
    newest = orc.receipts.list(limit=1)
    assert (newest.receipts[0], newest.cut) == (orc.receipts.get(recalled), True)
    assert [each.memory_id for each in newest.receipts[0].items] == [told]
    assert orc.receipts.list(limit=4).cut is False


def test_a_list_holds_what_the_viewer_may_see_whole(service: MemoryService) -> None:
    owner = service.orchestrator("o", create=True, viewer=ATLAS)
    atlas = owner.remember("Atlas ships in June.", scope=Scope.PROJECT, scope_id="atlas")
    hidden = owner.recall("June").receipt_id
    with service.opened("o") as opened:
        shown = {"bulletin": {"change_seq": 1, "memory_ids": [atlas]}, "purpose": "on_message"}
        opened.receipts.add(NewReceipt(Receipt("rcl_0", 1, "", shown, (), counts=False)))
    owner.remember("The harbour opens in June.")
    mixed = owner.recall("June").receipt_id
    anyone = service.orchestrator("o")
    open_ = anyone.recall("June").receipt_id
    assert [each.receipt_id for each in anyone.receipts.list().receipts] == [open_]
    assert {each.receipt_id for each in owner.receipts.list().receipts} == {
        *(open_, mixed, hidden, "rcl_0")
    }
    # A page of one that is hidden does not end the list.
    assert [each.receipt_id for each in anyone.receipts.list(limit=1).receipts] == [open_]
    # A hidden one and none sound the same, and say what to do.
    told = []
    for each in (hidden, "rcl_0", "rcl_none"):
        with pytest.raises(NotFound, match="a task or project") as caught:
            anyone.receipts.get(each)
        told.append(caught.value.message.replace(each, ""))
    assert len(set(told)) == 1


def test_a_receipt_without_memories_is_its_places(service: MemoryService) -> None:
    service.orchestrator("o", create=True)
    anyone, of_task = Viewer(), Viewer(session_ids=frozenset({"t1"}))
    ben, ben_alone = Viewer(agent_id="ben"), Viewer(agent_id="ben", shared=False)
    asked_and_seen: list[tuple[dict[str, Any], Viewer, bool]] = [
        *(({}, anyone, True), ({}, ben, True), ({}, ben_alone, False)),
        *(({"task_id": "t1"}, anyone, False), ({"task_id": "t1"}, of_task, True)),
        *(({"project_id": "atlas"}, anyone, False), ({"project_id": "atlas"}, ATLAS, True)),
        ({"project_ids": ["atlas", "zephyr"]}, ATLAS, False),
        ({"project_ids": ["atlas"]}, ATLAS, True),
        ({"session_scope_ids": ["t1"]}, ATLAS, False),
        *(({"agent_id": "ada"}, anyone, True), ({"agent_id": "ada"}, ben, False)),
        ({"agent_id": "ben"}, ben_alone, True),
    ]
    for number, (asked, viewer, seen) in enumerate(asked_and_seen):
        name = f"rcl_{number}"
        with service.opened("o") as opened:
            opened.receipts.add(NewReceipt(Receipt(name, 1, "what nobody knows", asked, ())))
        receipts = service.orchestrator("o", viewer=viewer).receipts
        listed = {each.receipt_id for each in receipts.list().receipts}
        assert (name in listed) is seen, (asked, viewer)
        # What is not listed is not to be had by its id either.
        with nullcontext() if seen else pytest.raises(NotFound):
            receipts.get(name)


def test_a_receipt_names_no_place_that_its_reader_was_not_granted(service: MemoryService) -> None:
    both = Viewer(project_ids=frozenset({"atlas", "zephyr"}), session_ids=frozenset({"t1"}))
    owner = service.orchestrator("o", create=True, viewer=both)
    owner.remember("The harbour closes at nine.")
    places = {"project_ids": ("atlas", "zephyr"), "session_scope_ids": ("t1",)}
    receipt_id = owner.recall("harbour", **places).receipt_id
    assert owner.receipts.get(receipt_id).asked["project_ids"] == ["atlas", "zephyr"]
    told = service.orchestrator("o", viewer=ATLAS).receipts.get(receipt_id)
    assert told.viewer is not None
    assert told.asked["project_ids"] == told.viewer["project_ids"] == ["atlas"]
    assert told.asked["session_scope_ids"] == told.viewer["session_ids"] == []


def test_only_so_many_receipts_are_looked_at(
    orc: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_RECEIPTS_LOOKED_AT", 2)
    put(orc, "The harbour closes at nine.")
    ids = [orc.recall("harbour").receipt_id for _ in range(3)]
    found = orc.receipts.list()
    assert [each.receipt_id for each in found.receipts] == [ids[2], ids[1]]
    assert found.cut


def test_what_was_brought_in_beside_another_says_so(service: MemoryService) -> None:
    orc = service.orchestrator("orc-1", create=True)
    said = put(orc, "The harbour ferry leaves at nine.")
    other = put(orc, "The harbour ferry leaves at ten.")
    bundle = orc.recall("harbour ferry", top_n=2)
    items = [
        item.model_copy(update={"brought_by": said if item.memory.memory_id == other else None})
        for item in bundle.items
    ]
    given = bundle.model_copy(update={"items": tuple(items), "receipt_id": "rcl_beside"})
    with service.opened("orc-1") as opened:
        opened.receipts.add(NewReceipt(Receipt.of(RecallRequest(query="harbour ferry"), given)))
    told = {item.memory_id: item.reasons for item in orc.receipts.get("rcl_beside").items}
    assert told == {said: (), other: (f"beside:{said}",)}
