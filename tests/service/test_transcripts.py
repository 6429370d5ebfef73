"""Transcripts over real databases: order, retraction, threads, processes, what becomes facts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from denial_lines import denials
from processes import Process
from transcript_workers import append_numbered

from memgraph import MemoryService, Orchestrator, Sensitivity, Viewer
from memgraph.errors import AccessDenied, DatabaseCorrupt, InvalidInput
from memgraph.model.conversation import ConversationEntry
from memgraph.model.enums import MemoryKind, MemoryStatus, Scope
from memgraph.operations.tools.transcript import Transcript


def said(text: str) -> ConversationEntry:
    return ConversationEntry({"text": text}, text, "person")


def records(transcript: Transcript, limit: int | None = None) -> list[Any]:
    return [entry.record for entry in transcript.entries(limit)]


def texts(transcript: Transcript) -> list[str]:
    return [entry.text for entry in transcript.entries()]


@pytest.fixture
def transcript(orc: Orchestrator) -> Transcript:
    return Transcript(orc, "s")


def test_entries_come_back_in_order_and_the_last_ones_on_demand(transcript: Transcript) -> None:
    transcript.append([ConversationEntry(number) for number in range(3)])
    transcript.append(
        [ConversationEntry(3), ConversationEntry({"long": "x" * 50_000}), ConversationEntry(5)]
    )
    expected = [0, 1, 2, 3, {"long": "x" * 50_000}, 5]
    assert records(transcript) == expected
    for limit in range(8):
        assert records(transcript, limit) == (expected[-limit:] if limit else [])
    with pytest.raises(InvalidInput):
        transcript.entries(-1)


def test_more_entries_than_a_page_holds(transcript: Transcript) -> None:
    transcript.append([ConversationEntry(number) for number in range(2_500)])
    assert records(transcript) == list(range(2_500))
    assert records(transcript, 1_200) == list(range(1_300, 2_500))


def test_what_is_popped_and_cleared_stays_in_the_history(
    transcript: Transcript, orc: Orchestrator
) -> None:
    transcript.append([said("first"), said("second"), ConversationEntry("r" * 20_000)])
    last = transcript.pop()
    assert last is not None
    assert last.record == "r" * 20_000
    assert texts(transcript) == ["first", "second"]
    assert transcript.clear() == 2
    assert (transcript.entries(), transcript.pop(), transcript.clear()) == ([], None, 0)
    gone = orc.memories.list(statuses=(MemoryStatus.RETRACTED,))
    reasons = [orc.trace(one.memory_id).status_history[-1].reason for one in gone]
    assert sorted(reasons) == ["cleared"] * 2 + ["popped"] * 3
    transcript.append([said("again")])
    assert texts(transcript) == ["again"]


def test_what_is_cleared_refutes_nothing_and_what_is_popped_does(orc: Orchestrator) -> None:
    def stale() -> set[str]:
        found = orc.recall("Berlin tea dog", kinds=(MemoryKind.FACT,), top_n=10).items
        assert len(found) == 3
        return {one.memory.content for one in found if one.modifiers["stale_basis"] < 1}

    transcript = Transcript(orc, "s")
    spoken = ("Fact: I live in Berlin.", "Fact: I like tea.", "Fact: My dog is called Rex.")
    transcript.append([said(text) for text in spoken])
    orc.jobs.consolidate("s")
    assert stale() == set()
    [turn] = [one for one in orc.memories.list(session_id="s") if one.content == spoken[1]]
    orc.correct(turn.memory_id, "I like coffee.", reason="misheard")
    transcript.pop()
    refuted = {"I like tea.", "My dog is called Rex."}
    assert stale() == refuted
    transcript.clear()
    assert transcript.entries() == []
    assert stale() == refuted


def test_sessions_and_other_turns_are_kept_apart(orc: Orchestrator) -> None:
    one, two = Transcript(orc, "one"), Transcript(orc, "two")
    one.append([said("of one")])
    orc.save_episode("told otherwise", session_id="one", source_role="user")
    two.append([said("of two")])
    assert (texts(one), texts(two)) == (["of one"], ["of two"])
    assert one.clear() == 1
    assert texts(two) == ["of two"]
    [left] = orc.memories.list(session_id="one")
    assert left.content == "told otherwise"


def test_a_turn_with_attributes_like_an_entry_is_none(
    transcript: Transcript, orc: Orchestrator
) -> None:
    transcript.append([said("mine")])
    attributes = {"entry": {"part": 0, "of": 1, "said": True, "record": "no JSON"}}
    turn: dict[str, Any] = {"content": "hey", "session_id": "s", "source_role": "user"}
    orc.save_episodes([{**turn, "attributes": attributes}])
    assert texts(transcript) == ["mine"]
    orc.save_episodes([{**turn, "attributes": attributes, "item_id": "entry_broken"}])
    with pytest.raises(DatabaseCorrupt, match="entry"):
        transcript.entries()


def test_one_name_in_two_places_is_two_sessions(service: MemoryService) -> None:
    service.create("orc-1")
    wide = service.orchestrator("orc-1", viewer=Viewer(project_ids=frozenset({"p", "q"})))
    agent = service.orchestrator("orc-1", viewer=Viewer(agent_id="ann"))
    places = {
        "p": Transcript(wide, "s", scope=Scope.PROJECT, scope_id="p"),
        "q": Transcript(wide, "s", scope=Scope.PROJECT, scope_id="q"),
        "everywhere": Transcript(wide, "s"),
        "ann": Transcript(agent, "s"),
    }
    for name, each in places.items():
        each.append([said(f"of {name}")])
    for name, each in places.items():
        assert texts(each) == [f"of {name}"]
    assert places["p"].clear() == 1
    popped = places["ann"].pop()
    assert popped is not None
    assert popped.text == "of ann"
    assert places["ann"].pop() is None
    left = [texts(each) for each in places.values()]
    assert left == [[], ["of q"], ["of everywhere"], []]


def test_a_part_that_was_taken_back_takes_its_entry_with_it(
    transcript: Transcript, orc: Orchestrator
) -> None:
    transcript.append([said("before"), said("word " * 20_000), said("after")])
    middle = orc.memories.list(session_id="s")[2]
    orc.retract(middle.memory_id, reason="private")
    assert texts(transcript) == ["before", "after"]
    assert transcript.pop() is not None
    assert transcript.pop() is not None
    assert transcript.pop() is None


def test_a_corrected_turn_is_still_what_was_said(transcript: Transcript, orc: Orchestrator) -> None:
    transcript.append([said("I live in Bonn.")])
    [turn] = orc.memories.list(session_id="s")
    orc.correct(turn.memory_id, "I live in Berlin.", reason="slip of the tongue")
    assert texts(transcript) == ["I live in Bonn."]
    assert transcript.clear() == 1
    assert transcript.entries() == []
    assert orc.get(turn.memory_id).status is MemoryStatus.RETRACTED


def test_facts_come_from_what_was_said_alone(orc: Orchestrator) -> None:
    transcript = Transcript(orc, "s", person="Anna")
    transcript.append(
        [
            said("Fact: I live in Berlin."),
            ConversationEntry(
                {"output": "Fact: Anna lives in Paris."}, label="function_call_output"
            ),
            ConversationEntry({"summary": "I live in Rome."}, label="reasoning"),
            ConversationEntry(
                {"role": "system", "content": "Fact: the user lives in Oslo."}, label="message"
            ),
        ]
    )
    orc.jobs.consolidate("s")
    facts = [one.content for one in orc.memories.list(kinds=(MemoryKind.FACT,))]
    assert facts == ["I live in Berlin."]
    shown = orc.recall("Who lives in Paris, Rome or Oslo?").items
    assert not [one for one in shown if "Paris" in one.memory.content]


def test_a_reader_who_would_not_see_it_does_not_store_it(service: MemoryService) -> None:
    service.create("orc-1")
    for fields in ({"sensitivity": "Restricted"}, {"scope": "project", "scope_id": "p"}):
        with pytest.raises(AccessDenied):
            Transcript(service.orchestrator("orc-1"), "s", **fields)  # type: ignore[arg-type]
    assert denials(service.root)
    viewer = Viewer(
        clearance=Sensitivity.RESTRICTED, project_ids=frozenset({"p"}), agent_id="agent-7"
    )
    orc = service.orchestrator("orc-1", viewer=viewer)
    transcript = Transcript(orc, "s", scope="project", scope_id="p", sensitivity="Restricted")
    transcript.append([said("secret")])
    [turn] = orc.memories.list()
    assert (turn.scope, turn.scope_id, turn.agent_id) == (Scope.PROJECT, "p", "agent-7")
    assert Transcript(service.orchestrator("orc-1"), "s").entries() == []


def test_an_audit_finds_nothing(transcript: Transcript, orc: Orchestrator) -> None:
    transcript.append(
        [said("I live in Berlin."), ConversationEntry("r" * 20_000), said("word " * 20_000)]
    )
    transcript.append([ConversationEntry("popped")])
    transcript.pop()
    assert orc.verify().totals == {}
    transcript.clear()
    assert orc.verify().totals == {}


def test_each_entry_is_popped_once(transcript: Transcript) -> None:
    transcript.append([ConversationEntry(number) for number in range(40)])
    with ThreadPoolExecutor(4) as pool:
        popped = [entry for entry in pool.map(lambda _: transcript.pop(), range(50)) if entry]
    assert sorted(entry.record for entry in popped) == list(range(40))


def test_two_processes_share_a_session(tmp_path: Path) -> None:
    with MemoryService(tmp_path, environ={}, background=False) as service:
        service.create("orc")
    workers = [Process(append_numbered, tmp_path, worker, 20) for worker in range(2)]
    assert [worker.wait() for worker in workers] == [0, 0]
    with MemoryService(tmp_path, environ={}, background=False) as service:
        found = records(Transcript(service.orchestrator("orc"), "s"))
    assert len(found) == 40
    for worker in range(2):
        assert [number for who, number in found if who == worker] == list(range(20))
