"""A request that is asked once more, as of its receipt, gives the same, or it is told why not."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from working import put

from memgraph import (
    ContextAssembler,
    EdgeType,
    MemoryHooks,
    MemoryKind,
    MemoryService,
    Orchestrator,
    Scope,
    Viewer,
)
from memgraph.clock import FixedClock
from memgraph.errors import AccessDenied, InvalidInput, NotFound
from memgraph.model.receipts import WHY, Replay, bundle_bytes

pytestmark = pytest.mark.engines

HOUR = 3_600_000
QUERY = "When does the harbour close?"
ATLAS = Viewer(project_ids=frozenset({"atlas"}))


@pytest.fixture
def told(orc: Orchestrator, clock: FixedClock) -> list[str]:
    texts = ("The harbour closes at nine.", "The harbour opens at six.", "The mole is of granite.")
    ids = [put(orc, text) for text in texts]
    clock.advance(ms=HOUR)
    return ids


def recalled(orc: Orchestrator, clock: FixedClock, **fields: Any) -> str:
    found = orc.recall(QUERY, **fields).receipt_id
    clock.advance(ms=HOUR)
    return found


def test_the_same_is_found_whatever_came_of_it_since(
    orc: Orchestrator, clock: FixedClock, told: list[str]
) -> None:
    receipt_id = recalled(orc, clock, top_n=2)
    orc.correct(told[0], "The harbour closes at ten.", reason="it was told")
    clock.advance(ms=HOUR)
    orc.retract(told[1], reason="nobody knows")
    orc.confirm(told[2])
    clock.advance(ms=HOUR)
    for _ in range(3):
        orc.recall(QUERY)
    found = orc.receipts.replay(receipt_id, query=QUERY)
    assert (found.same, found.differences, found.because) == (True, (), ())
    assert found.at == orc.receipts.get(receipt_id).at


def test_nothing_changed_and_the_bytes_are_the_same(
    orc: Orchestrator, clock: FixedClock, told: list[str]
) -> None:
    bundle = orc.recall(QUERY)
    clock.advance(ms=HOUR)
    orc.recall(QUERY)
    receipt = orc.receipts.get(bundle.receipt_id)
    assert receipt.sha256 == sha256(bundle_bytes(bundle)).hexdigest()
    found = orc.receipts.replay(bundle.receipt_id, query=QUERY)
    assert (found.same, found.same_digest) == (True, True)


def test_an_access_that_was_written_after_the_answer_is_none_that_it_knew(
    orc: Orchestrator, clock: FixedClock, told: list[str]
) -> None:
    clock.advance(ms=40 * 24 * HOUR)
    orc.recall("harbour", top_n=2)
    clock.advance(ms=1_000)
    bundle = orc.recall(QUERY)
    block = orc.context(QUERY)
    package = orc.contexts.build(None, query=QUERY)
    clock.advance(ms=1_000)
    for receipt_id in (bundle.receipt_id, block.receipt_id, package.receipt_id):
        found = orc.receipts.replay(receipt_id, query=QUERY)
        assert (found.same, found.same_digest) == (True, True)
    first = orc.receipts.get(bundle.receipt_id).items[0]
    assert (first.access_count, first.last_accessed_at) == (0, None)


def test_an_answer_that_waited_is_of_the_moment_of_its_snapshot(
    service: MemoryService, orc: Orchestrator, clock: FixedClock, told: list[str]
) -> None:
    written: list[str] = []

    class Waiting:
        def __enter__(self) -> None:
            clock.advance(ms=500)
            written.append(put(orc, "The harbour closes when the mate goes home."))
            clock.advance(ms=500)

        def __exit__(self, *_: object) -> None:
            pass

    with service.opened("orc-1") as opened:
        turns, opened.turns = opened.turns, Waiting()  # type: ignore[assignment]
        bundle = orc.recall(QUERY)
        opened.turns = turns
    assert set(written) < set(bundle.ids)
    clock.advance(ms=HOUR)
    assert orc.receipts.replay(bundle.receipt_id, query=QUERY).same


def test_vectors_that_came_later_are_told(orc: Orchestrator, clock: FixedClock) -> None:
    put(orc, "The kitten sleeps on the sofa.")
    put(orc, "The truck is red.")
    clock.advance(ms=HOUR)
    query = "Where do cats sleep?"
    before = orc.recall(query)
    assert orc.receipts.get(before.receipt_id).asked["degraded"] == ["vector.pending"]
    clock.advance(ms=HOUR)
    orc.maintenance.embed_pending()
    found = orc.receipts.replay(before.receipt_id, query=query)
    assert (found.same, found.because) == (False, ("embeddings",))
    assert set(found.because) <= WHY.keys()


def test_the_entry_that_makes_the_difference_is_named(
    orc: Orchestrator, clock: FixedClock, told: list[str]
) -> None:
    put(orc, "The harbour opens when the harbour master comes.")
    receipt = orc.recall(QUERY)
    # Within the same millisecond: no time tells it from what was there before.
    later = put(orc, "The harbour closes when the harbour master goes home.")
    clock.advance(ms=HOUR)
    found = orc.receipts.replay(receipt.receipt_id, query=QUERY)
    assert not found.same
    [came] = [each for each in found.differences if each.rank is None]
    assert came.memory_id == later
    assert [(note.action, note.subject) for note in came.because] == [("remember", later)]
    assert came.because[0].seq > (found.change_seq or 0)


def test_what_was_asked_has_to_be_named_where_its_digest_is_kept(
    orc: Orchestrator, clock: FixedClock, told: list[str]
) -> None:
    receipt_id = recalled(orc, clock)
    with pytest.raises(InvalidInput, match="pass the query as query="):
        orc.receipts.replay(receipt_id)
    with pytest.raises(InvalidInput, match="differs from the original"):
        orc.receipts.replay(receipt_id, query="When does it open?")
    with pytest.raises(NotFound):
        orc.receipts.replay("rcl_none", query=QUERY)


def test_what_is_kept_need_not_be_named(tmp_path: Path, clock: FixedClock) -> None:
    environ = {"MEMGRAPH_MEMORY__RECEIPTS__QUERY_TEXT": "true"}
    with MemoryService(tmp_path, clock=clock, environ=environ, background=False) as service:
        orc = service.orchestrator("o", create=True)
        put(orc, "The harbour closes at nine.")
        clock.advance(ms=HOUR)
        receipt_id = recalled(orc, clock)
        assert orc.receipts.get(receipt_id).query == QUERY
        assert orc.receipts.replay(receipt_id).same


def test_who_sees_less_than_the_asker_may_not_ask_again(
    service: MemoryService, clock: FixedClock
) -> None:
    owner = service.orchestrator("o", create=True, viewer=ATLAS)
    owner.remember("The harbour closes at nine.")
    clock.advance(ms=HOUR)
    receipt_id = recalled(owner, clock)
    assert owner.receipts.replay(receipt_id, query=QUERY).same
    anyone = service.orchestrator("o")
    assert anyone.receipts.get(receipt_id).viewer == {
        "clearance": "Internal",
        "project_ids": [],
        "session_ids": [],
        "scopes": ["global", "project", "session"],
        "agent_id": None,
        "shared": True,
    }
    with pytest.raises(AccessDenied):
        anyone.receipts.replay(receipt_id, query=QUERY)


@pytest.mark.parametrize("form", ["fenced", "list", "sections"])
def test_a_block_is_made_again_byte_for_byte(
    orc: Orchestrator, clock: FixedClock, told: list[str], form: str
) -> None:
    week = put(orc, "A week of boats.", kind=MemoryKind.REFLECTION, tags=("weekly",))
    clock.advance(ms=HOUR)
    block = orc.context(QUERY, format=form, exclude_session_id="monday")
    clock.advance(ms=HOUR)
    orc.correct(told[0], "The harbour closes at ten.", reason="it was told")
    orc.retract(week, reason="it was another week")
    found = orc.receipts.replay(block.receipt_id, query=QUERY)
    assert (found.same, found.same_digest) == (True, True)
    assert orc.receipts.get(block.receipt_id).conversation_id == "monday"


def test_a_context_is_laid_out_again_byte_for_byte(
    service: MemoryService, orc: Orchestrator, clock: FixedClock, told: list[str]
) -> None:
    put(orc, "Ask the harbour master.", scope=Scope.SESSION, scope_id="t1")
    clock.advance(ms=HOUR)
    assembler = ContextAssembler(service, "orc-1")
    package = assembler.build_context("t1", query=QUERY, budget_tokens=300, workflow_run_id="r1")
    clock.advance(ms=HOUR)
    orc.retract(told[0], reason="nobody knows")
    owner = service.orchestrator("orc-1", viewer=Viewer(session_ids=frozenset({"t1"})))
    found = owner.receipts.replay(package.receipt_id, query=QUERY)
    assert (found.same, found.same_digest, found.differences) == (True, True, ())


def test_changed_settings_are_told(tmp_path: Path, clock: FixedClock) -> None:
    with MemoryService(tmp_path, clock=clock, environ={}, background=False) as service:
        orc = service.orchestrator("o", create=True)
        for number in range(4):
            put(orc, f"The harbour: {number}.")
        orc.maintenance.embed_pending()
        clock.advance(ms=HOUR)
        receipt_id = recalled(orc, clock)
    environ = {"MEMGRAPH_MEMORY__RETRIEVAL__TOP_N": "1"}
    with MemoryService(tmp_path, clock=clock, environ=environ, background=False) as service:
        found: Replay = service.orchestrator("o").receipts.replay(receipt_id, query=QUERY)
    assert not found.same
    assert found.because == ("settings",)


def test_a_turn_is_shown_again_byte_for_byte(
    service: MemoryService, orc: Orchestrator, clock: FixedClock, told: list[str]
) -> None:
    orc.relate(told[0], EdgeType.CONTRADICTS, told[1])
    clock.advance(ms=HOUR)
    with MemoryHooks(service, "orc-1", deadline_ms=60_000) as hooks:
        turn = hooks.on_message(QUERY, conversation_id="monday")
        receipt_id = turn.receipt_id or ""
    assert turn.codes == ()
    later = clock.now_ms()
    clock.advance(ms=HOUR)
    orc.retract(told[0], reason="nobody knows")
    with pytest.raises(AccessDenied):
        orc.receipts.replay(receipt_id, query=QUERY)
    owner = service.orchestrator("orc-1", viewer=Viewer(session_ids=frozenset({"monday"})))
    found = owner.receipts.replay(receipt_id, query=QUERY)
    assert (found.same, found.same_digest, found.because) == (True, True, ())
    assert orc.receipts.get(receipt_id).sha256 == sha256(turn.prompt.encode()).hexdigest()
    assert later == found.at


def test_a_turn_whose_context_is_kept_no_longer_cannot_be_shown_again(
    service: MemoryService, orc: Orchestrator, clock: FixedClock, told: list[str]
) -> None:
    one = orc.receipts.get(recalled(orc, clock))
    asked = {"purpose": "on_step", "context": "rcl_gone", "bulletin": {"memory_ids": []}}
    with service.opened("orc-1") as opened:
        opened.receipts.add(replace(one, receipt_id="rcl_0", asked=asked, purpose="on_step"))
    with pytest.raises(InvalidInput, match="rcl_gone, no longer exists"):
        orc.receipts.replay("rcl_0", query=QUERY)


def test_a_diagnosis_cannot_be_asked_again(
    service: MemoryService, orc: Orchestrator, clock: FixedClock, told: list[str]
) -> None:
    one = orc.receipts.get(recalled(orc, clock))
    with service.opened("orc-1") as opened:
        opened.receipts.add(replace(one, receipt_id="rcl_0", purpose="diagnose"))
    with pytest.raises(InvalidInput, match="a receipt of diagnose cannot be replayed"):
        orc.receipts.replay("rcl_0", query=QUERY)


def test_a_bulletin_is_made_again_byte_for_byte(
    orc: Orchestrator, clock: FixedClock, told: list[str]
) -> None:
    orc.relate(told[0], EdgeType.CONTRADICTS, told[1])
    clock.advance(ms=HOUR)
    issued = orc.bulletin()
    clock.advance(ms=HOUR)
    orc.correct(told[0], "The harbour closes at ten.", reason="it was told")
    put(orc, "The harbour has a crane.")
    found = orc.receipts.replay(issued.receipt_id or "")
    assert (found.same, found.same_digest, found.because) == (True, True, ())
    assert orc.bulletin().bulletin.text != issued.bulletin.text
    with pytest.raises(InvalidInput, match="had no query"):
        orc.receipts.replay(issued.receipt_id or "", query=QUERY)
