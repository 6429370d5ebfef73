"""Every way in compares new facts with what is stored, and the outcome says what was found."""

from __future__ import annotations

from pathlib import Path

from memgraph import MemoryService, Orchestrator, Viewer
from memgraph.model.enums import EdgeType, MemoryStatus, Sensitivity

STATED = "Access tokens expire after 15 minutes."
CONVERSATION = {
    "source_type": "channel_transcript",
    "captured_by": "extractor",
    "conversation_id": "c-1",
}


def test_a_fact_said_again_in_other_letters_is_not_stored_twice(orc: Orchestrator) -> None:
    first = orc.store(STATED)
    again = orc.store("access tokens  expire after 15 minutes")
    assert first.outcome == "stored"
    assert (first.duplicate_of, first.updates, first.contradicts) == (None, (), ())
    assert (again.outcome, again.memory_id) == ("duplicate", first.memory_id)
    assert again.duplicate_of == first.memory_id
    assert again.reasons == {first.memory_id: "the same words"}
    assert orc.remember("ACCESS TOKENS expire after 15 minutes") == first.memory_id


def test_the_exact_text_names_what_it_repeats_too(orc: Orchestrator) -> None:
    first = orc.remember(STATED)
    assert orc.store(STATED).duplicate_of == first


def test_two_authors_keep_a_memory_each_and_an_edge_between_them(orc: Orchestrator) -> None:
    typed = orc.remember(STATED)
    drawn = orc.store("access tokens expire after 15 minutes", source=CONVERSATION)
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


def test_another_type_is_another_memory(orc: Orchestrator) -> None:
    first = orc.remember(STATED)
    assert orc.store("access tokens expire after 15 minutes", type="Decision").memory_id != first


def test_what_the_writer_may_not_see_is_named_in_no_outcome(
    orc: Orchestrator, service: MemoryService
) -> None:
    hidden = service.orchestrator(orc.name, viewer=Viewer(clearance=Sensitivity.RESTRICTED))
    secret = hidden.remember(STATED, sensitivity="Restricted")
    outcome = orc.store("access tokens expire after 15 minutes", sensitivity="Restricted")
    assert outcome.outcome == "stored"
    assert secret not in outcome.model_dump_json()


def test_many_at_a_time_are_compared_after_the_answer(
    orc: Orchestrator, service: MemoryService
) -> None:
    typed = orc.remember(STATED)
    [outcome] = orc.remember_many(
        [{"content": "access tokens expire after 15 minutes", "source": CONVERSATION}]
    )
    assert (outcome.outcome, outcome.contradicts) == ("stored", None)
    assert orc.pending_comparisons() == 1
    settled = orc.settle()
    assert (settled.compared.compared, settled.compared.edges) == (1, 1)
    assert orc.pending_comparisons() == 0
    [edge] = orc.trace(typed).edges_in
    assert (edge.from_id, edge.reason) == (outcome.memory_id, "the same words")
    assert orc.verify().ok


def test_what_waits_to_be_compared_survives_a_restart(tmp_path: Path) -> None:
    with MemoryService(tmp_path, background=False) as first:
        first.create("orc-1")
        orc = first.orchestrator("orc-1")
        typed = orc.remember(STATED)
        orc.remember_many(
            [{"content": "access tokens expire after 15 minutes", "source": CONVERSATION}]
        )
    with MemoryService(tmp_path, background=False) as again:
        orc = again.orchestrator("orc-1")
        orc.embed_pending()
        assert len(orc.trace(typed).edges_in) == 1


def test_what_was_retracted_meanwhile_is_not_joined(orc: Orchestrator) -> None:
    typed = orc.remember(STATED)
    orc.remember_many(
        [{"content": "access tokens expire after 15 minutes", "source": CONVERSATION}]
    )
    orc.retract(typed, reason="wrong")
    assert orc.settle().compared.edges == 0
    assert orc.trace(typed).edges_in == ()


def test_turns_and_items_do_not_wait_to_be_compared(orc: Orchestrator) -> None:
    orc.save_episode("I moved to Porto.", session_id="s", source_role="user")
    orc.remember_many([{"content": "A long text. It has two sentences."}])
    assert orc.pending_comparisons() == 0


def test_nothing_waits_of_what_was_erased(orc: Orchestrator) -> None:
    [outcome] = orc.remember_many([{"content": STATED}])
    assert orc.pending_comparisons() == 1
    orc.erase(memory_id=outcome.memory_id, reason="asked for", dry_run=False)
    assert orc.pending_comparisons() == 0
