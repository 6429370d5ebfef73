"""Every way in compares new facts with what is stored, and the outcome says what was found."""

from __future__ import annotations

from pathlib import Path

import pytest

from memgraph import MemoryService, Orchestrator, Viewer
from memgraph.model.enums import EdgeType, MemoryStatus, Sensitivity
from memgraph.operations.write.writer import SMALL_BATCH

STATED = "Access tokens expire after 15 minutes."
CONVERSATION = {
    "source_type": "channel_transcript",
    "captured_by": "extractor",
    "conversation_id": "c-1",
}

pytestmark = pytest.mark.engines


def test_a_fact_said_again_in_other_letters_is_not_stored_twice(orc: Orchestrator) -> None:
    first = orc.memories.store(STATED)
    again = orc.memories.store("access tokens  expire after 15 minutes")
    assert first.outcome == "stored"
    assert (first.duplicate_of, first.updates, first.contradicts) == (None, (), ())
    assert (again.outcome, again.memory_id) == ("duplicate", first.memory_id)
    assert again.duplicate_of == first.memory_id
    assert again.reasons == {first.memory_id: "the same words"}
    assert orc.remember("ACCESS TOKENS expire after 15 minutes") == first.memory_id


def test_the_exact_text_names_what_it_repeats_too(orc: Orchestrator) -> None:
    first = orc.remember(STATED)
    assert orc.memories.store(STATED).duplicate_of == first


def test_two_authors_keep_a_memory_each_and_an_edge_between_them(orc: Orchestrator) -> None:
    typed = orc.remember(STATED)
    drawn = orc.memories.store("access tokens expire after 15 minutes", source=CONVERSATION)
    assert drawn.outcome == "stored"
    assert drawn.reasons == {typed: "the same words"}
    [edge] = orc.trace(typed).edges_in
    assert (edge.edge_type, edge.from_id, edge.to_id) == (
        EdgeType.RELATED_TO,
        drawn.memory_id,
        typed,
    )
    assert edge.reason == "the same words"
    assert orc.get(typed).status is MemoryStatus.ACTIVE


LATER = "Access tokens expire after 60 minutes now."


def test_an_actor_replaces_what_it_said_and_contradicts_what_another_said(
    orc: Orchestrator, service: MemoryService
) -> None:
    ann, ben = (service.orchestrator(orc.name, actor=actor) for actor in ("ann", "ben"))
    said = ann.remember(STATED)
    told = ben.memories.store(LATER)
    assert (told.updates, told.contradicts) == ((), (said,))
    [edge] = orc.trace(said).edges_in
    assert (edge.edge_type, edge.from_id) == (EdgeType.CONTRADICTS, told.memory_id)
    assert orc.get(said).status is MemoryStatus.ACTIVE
    own = service.orchestrator(orc.name, actor="ann").memories.store(
        "Access tokens expire after a day now."
    )
    assert (own.updates, own.contradicts) == ((said,), (told.memory_id,))
    assert orc.get(said).status is MemoryStatus.SUPERSEDED


def test_the_outbox_knows_who_said_what(orc: Orchestrator, service: MemoryService) -> None:
    ann, ben = (service.orchestrator(orc.name, actor=actor) for actor in ("ann", "ben"))
    ours, theirs = ann.remember(STATED), ben.remember("The mail relay is smtp1.example.org.")
    late = ["The mail relay is smtp4.example.org now.", LATER]
    told = ben.remember_many([*_filler(), *({"content": each} for each in late)])
    orc.settle()
    new = [each.memory_id for each in told[-2:] if each.memory_id]
    edges = {(each.edge_type, each.to_id) for each in orc.graph.subgraph(new).edges}
    assert edges == {(EdgeType.UPDATES, theirs), (EdgeType.CONTRADICTS, ours)}
    assert orc.get(ours).status is MemoryStatus.ACTIVE
    assert orc.get(theirs).status is MemoryStatus.SUPERSEDED


def test_a_statement_of_an_earlier_time_is_not_replaced_by_what_another_said(
    orc: Orchestrator, service: MemoryService
) -> None:
    ann, ben = (service.orchestrator(orc.name, actor=actor) for actor in ("ann", "ben"))
    newer = ann.remember(LATER, event_time="2025-06-01T00:00:00Z")
    older = ben.memories.store(STATED, event_time="2025-01-01T00:00:00Z")
    assert (older.updated_by, older.contradicts) == ((), (newer,))
    assert older.memory_id is not None
    assert orc.get(older.memory_id).status is MemoryStatus.ACTIVE


def test_a_place_of_living_said_in_three_ways_is_one_fact_that_was_strengthened(
    orc: Orchestrator,
) -> None:
    first = orc.remember("Anna lives in Oslo.", confidence=0.6)
    again = [
        orc.memories.store(each, source={"conversation_id": each})
        for each in ("Anna lives in Oslo now.", "Anna's home is in Oslo.")
    ]
    assert [(each.outcome, each.memory_id) for each in again] == [("duplicate", first)] * 2
    assert orc.get(first).confidence > 0.6


def test_another_type_is_another_memory(orc: Orchestrator) -> None:
    first = orc.remember(STATED)
    assert (
        orc.memories.store("access tokens expire after 15 minutes", type="Decision").memory_id
        != first
    )


def test_what_the_writer_may_not_see_is_named_in_no_outcome(
    orc: Orchestrator, service: MemoryService
) -> None:
    hidden = service.orchestrator(orc.name, viewer=Viewer(clearance=Sensitivity.RESTRICTED))
    secret = hidden.remember(STATED, sensitivity="Restricted")
    outcome = orc.memories.store("access tokens expire after 15 minutes", sensitivity="Restricted")
    assert outcome.outcome == "stored"
    assert secret not in outcome.model_dump_json()


def _filler(number: int = SMALL_BATCH) -> list[dict[str, str]]:
    """Return facts that are like no others, so many that a batch is compared by the outbox."""
    return [{"content": f"Lamp {each} is green."} for each in "abcdefghijklmnop"[:number]]


def test_a_few_at_a_time_are_compared_before_the_answer(orc: Orchestrator) -> None:
    typed = orc.remember(STATED)
    drawn, later = orc.remember_many(
        [
            {"content": "access tokens expire after 15 minutes", "source": CONVERSATION},
            {"content": "Access tokens expire after 30 minutes."},
        ]
    )
    assert (drawn.outcome, drawn.comparison, drawn.contradicts) == ("stored", "done", ())
    assert drawn.reasons == {typed: "the same words"}
    assert (later.comparison, later.updates) == ("done", (typed,))
    assert later.contradicts == (drawn.memory_id,)
    assert orc.maintenance.pending_comparisons() == 0
    assert orc.verify().ok


def test_the_items_of_a_small_batch_are_compared_with_one_another(orc: Orchestrator) -> None:
    first, second, third = orc.remember_many(
        [{"content": f"Access tokens expire after {each} minutes."} for each in (15, 30, 45)]
    )
    assert first.updates == ()
    assert (second.updates, third.updates) == ((first.memory_id,), (second.memory_id,))
    orc.settle()
    assert orc.get(first.memory_id or "").status is MemoryStatus.SUPERSEDED


def test_many_at_a_time_are_compared_after_the_answer(
    orc: Orchestrator, service: MemoryService
) -> None:
    typed = orc.remember(STATED)
    outcome, *others = orc.remember_many(
        [{"content": "access tokens expire after 15 minutes", "source": CONVERSATION}, *_filler()]
    )
    assert (outcome.outcome, outcome.comparison, outcome.contradicts) == ("stored", "pending", None)
    assert orc.maintenance.pending_comparisons() == 1 + len(others)
    settled = orc.settle()
    assert (settled.compared.compared, settled.compared.edges) == (1 + len(others), 1)
    assert orc.maintenance.pending_comparisons() == 0
    [edge] = orc.trace(typed).edges_in
    assert (edge.from_id, edge.reason) == (outcome.memory_id, "the same words")
    assert orc.verify().ok


def test_what_a_bounded_comparison_leaves_is_compared_by_the_outbox(orc: Orchestrator) -> None:
    rooms = [f"The kettle in room {each} holds {each} litres." for each in range(10, 40)]
    orc.remember_many([{"content": each} for each in rooms])
    orc.settle()
    outcome = orc.memories.store("The kettle in the kitchen holds 9 litres.")
    assert (outcome.comparison, outcome.contradicts) == ("pending", ())
    assert orc.maintenance.pending_comparisons() == 1
    assert orc.settle().compared.compared == 1


def test_what_waits_to_be_compared_survives_a_restart(tmp_path: Path) -> None:
    with MemoryService(tmp_path, background=False) as first:
        first.create("orc-1")
        orc = first.orchestrator("orc-1")
        typed = orc.remember(STATED)
        orc.remember_many(
            [
                {"content": "access tokens expire after 15 minutes", "source": CONVERSATION},
                *_filler(),
            ]
        )
    with MemoryService(tmp_path, background=False) as again:
        orc = again.orchestrator("orc-1")
        orc.maintenance.embed_pending()
        assert len(orc.trace(typed).edges_in) == 1


def test_what_was_retracted_meanwhile_is_not_joined(orc: Orchestrator) -> None:
    typed = orc.remember(STATED)
    orc.remember_many(
        [{"content": "access tokens expire after 15 minutes", "source": CONVERSATION}, *_filler()]
    )
    orc.retract(typed, reason="wrong")
    assert orc.settle().compared.edges == 0
    assert orc.trace(typed).edges_in == ()


def test_turns_and_items_do_not_wait_to_be_compared(orc: Orchestrator) -> None:
    orc.save_episode("I moved to Porto.", session_id="s", source_role="user")
    orc.remember_many([{"content": "A long text. It has two sentences."}])
    assert orc.maintenance.pending_comparisons() == 0


@pytest.mark.sqlite
def test_nothing_waits_of_what_was_erased(orc: Orchestrator) -> None:
    outcome, *others = orc.remember_many([{"content": STATED}, *_filler()])
    assert orc.maintenance.pending_comparisons() == 1 + len(others)
    orc.erasure.erase(memory_id=outcome.memory_id, reason="asked for", dry_run=False)
    assert orc.maintenance.pending_comparisons() == len(others)
