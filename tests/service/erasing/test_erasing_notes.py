"""What was written about a memory goes with it: reasons and decisions, wherever they are kept."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from erasing_worlds import left
from hypothesis import given, settings, strategies as st
from sampling import WHOLE
from working import members_of, tool

from memgraph import MemoryService, Orchestrator, Sensitivity, Viewer
from memgraph.clock import FixedClock
from memgraph.model.enums import EdgeType, MemoryStatus
from memgraph.operations.handle import Handle
from memgraph.operations.life.models import LanguageModel
from memgraph.operations.tools.tools import call_tool
from memgraph.providers.fake import FakeCompletion

WHY = "asked for by the person"
NOTE = "Quast showed badge 4711-KANARIE"
CANARY = ("4711-KANARIE", "Quast")


def rivals(orc: Orchestrator) -> tuple[str, str, str]:
    """Two that contradict each other, and the edge."""
    one, two = orc.remember("The gate opens at six"), orc.remember("Nobody enters by night")
    return one, two, orc.relate(one, EdgeType.CONTRADICTS, two)


@pytest.mark.parametrize(("note", "winner_goes"), [(NOTE, True), ("Quast", False)])
def test_the_reason_of_a_decision_goes_with_either_side(
    service: MemoryService, orc: Orchestrator, note: str, winner_goes: bool
) -> None:
    one, two, edge = rivals(orc)
    orc.contradictions.resolve(edge, winner=one, reason=note)
    report = orc.erasure.erase(memory_id=one if winner_goes else two, reason=WHY, dry_run=False)
    assert report.complete
    assert orc.verify().totals == {}
    assert left(service, orc.paths.directory, CANARY) == []


def test_the_reason_of_a_second_replacement_goes_with_it(
    service: MemoryService, orc: Orchestrator
) -> None:
    old, first = orc.remember("The gate opens at six"), orc.remember("The gate opens at seven")
    orc.relate(first, EdgeType.UPDATES, old)
    orc.retract(first, reason="a typing error")
    orc.restore(old, reason="it holds again")
    second = orc.remember("The gate opens at nine")
    orc.relate(second, EdgeType.UPDATES, old, reason=NOTE)
    assert NOTE in repr(orc.history.get(old))
    assert orc.erasure.erase(memory_id=second, reason=WHY, dry_run=False).complete
    assert left(service, orc.paths.directory, CANARY) == []


def test_the_reasons_of_what_an_edge_was_before_go_with_it(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    one, two = orc.remember("The gate opens at six"), orc.remember("Nobody enters by night")
    edge = orc.relate(one, EdgeType.UPDATES, two, weight=0.8, reason=NOTE)
    for decide in (orc.contradictions.dismiss, orc.contradictions.reopen) * 2:
        clock.advance(days=1)
        decide(edge, reason=NOTE)
    clock.advance(days=1)
    orc.contradictions.accept(edge, reason=NOTE)
    exported = [json.loads(line) for line in orc.exchange.export_lines()]
    states = [each for each in exported if each["record"] == "edge_state"]
    assert [each["resolution"] is not None for each in states] == [False, True] * 2 + [False]
    assert {each["reason"] for each in states} == {NOTE}
    assert orc.erasure.erase(memory_id=two, reason=WHY, dry_run=False).complete
    assert orc.verify().totals == {}
    assert left(service, orc.paths.directory, CANARY) == []


def test_words_that_are_said_of_other_decisions_stay_there(orc: Orchestrator) -> None:
    common = "the later statement is the right one"
    one, two, edge = rivals(orc)
    orc.contradictions.resolve(edge, winner=one, reason=common)
    three, four = orc.remember("The lamp is red"), orc.remember("Every wall is blue")
    other = orc.relate(three, EdgeType.CONTRADICTS, four)
    orc.contradictions.resolve(other, winner=three, reason=common)
    orc.erasure.erase(memory_id=one, reason=WHY, dry_run=False)
    assert common in repr(orc.history.get(four))
    assert common not in repr(orc.history.get(two))
    assert orc.verify().totals == {}


def test_a_reason_may_be_given_again_for_the_erasure(orc: Orchestrator) -> None:
    one = orc.remember("The gate opens at six")
    orc.retract(one, reason=WHY)
    assert orc.erasure.erase(memory_id=one, reason=WHY, dry_run=False).complete


WRITTEN = {
    "remember": "content",
    "memories.store": "content",
    "save_episode": "content",
    "correct": "content reason",
    "relate": "reason",
    "contradictions.resolve": "reason",
    "contradictions.accept": "reason",
    "contradictions.reopen": "reason",
    "contradictions.dismiss": "reason",
    "retract": "reason",
    "restore": "reason",
    "memories.forget": "reason",
    "contexts.promote": "reason",
    "entities.merge": "reason",
    "entities.remove_alias": "reason",
    "entities.protect": "reason",
    "sources.retract": "reason",
    "recall": "query",
    "context": "prompt",
}
"""What writes free text about a memory or an entity; the test below writes a canary into each."""
OTHER = {
    "maintenance.accept_journal": "reason",  # about the database
    "erasure.erase": "reason text",  # refused where it repeats what is erased
    "contradictions.list": "text",  # read alone
    "ingestion.propose": "text",
}


def test_every_free_text_that_an_operation_takes_is_written_below_or_about_no_memory() -> None:
    free = {"reason", "content", "text", "query", "prompt", "note", "comment", "title"}
    found: dict[str, str] = {}
    for name, method in members_of(Orchestrator).items():
        if inspect.isfunction(method):
            names = sorted(free & set(inspect.signature(method).parameters))
            if names:
                found[name] = " ".join(names)
    assert found == WRITTEN | OTHER


@settings(max_examples=3 if WHOLE else 1, deadline=None)
@given(data=st.data())
def test_no_canary_is_left_wherever_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Every text that an operation takes has a canary of its own, and all of them go."""
    salt = data.draw(st.text("bcdfghjklmnpqrstvwxz", min_size=6, max_size=6))
    canaries: list[str] = []

    def say(place: str) -> str:
        canaries.append(f"{salt}{len(canaries)}q")
        return f"in {place} stands {canaries[-1]} for once"

    root = tmp_path_factory.mktemp("canaries")
    config = {"memory.receipts.query_text": True, "memory.embedding.provider": "fake"}
    llm = LanguageModel(SameName(), Sensitivity.RESTRICTED)
    with MemoryService(
        root / "root", config=config, environ={}, background=False, llm=llm
    ) as service:
        service.create("orc-1")
        viewer = Viewer(project_ids=frozenset({"web"}))
        orc = service.orchestrator("orc-1", viewer=viewer)
        used = Used(orc)
        written(used, say)  # type: ignore[arg-type]  # it is one but for its class
        written_about_entities(used, say)  # type: ignore[arg-type]
        assert used.names >= WRITTEN.keys()
        erased = orc.memories.list(statuses=[*MemoryStatus], limit=200)
        for each in erased:
            if orc.get(each.memory_id).content:
                report = orc.erasure.erase(memory_id=each.memory_id, reason=WHY, dry_run=False)
                assert report.complete, report.unfinished
        assert orc.verify().totals == {}
        assert len(canaries) > 24
        assert left(service, orc.paths.directory, tuple(canaries)) == []


class Used:
    """An orchestrator, or one of its groups, that notes which of its operations were used."""

    def __init__(self, orc: Any, names: set[str] | None = None, path: str = "") -> None:
        self._orc = orc
        self._path = path
        self.names: set[str] = set() if names is None else names

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._orc, name)
        if isinstance(member, Handle):
            return Used(member, self.names, f"{name}.")
        self.names.add(self._path + name)
        return member


class SameName(FakeCompletion):
    """Finds one name in every text."""

    def complete_json(self, system: str, user: str, schema: Mapping[str, Any]) -> Any:
        return {"entities": [{"name": "Vitka", "type": "Person"}]}


def written_about_entities(orc: Orchestrator, say: Callable[[str], str]) -> None:
    """Write reasons about entities by every operation that takes one."""
    for text in (
        "Mrs. Vitalia Borges signed the lease.",
        "Mrs. Vitka sends her regards about the lease.",
        "Eva Lind has met Ida Falk in Bergen.",
    ):
        orc.remember(text)
    orc.jobs.run("enrichment")
    orc.entities.merge("Eva Lind", "Ida Falk", reason=say("a merge"))
    orc.entities.remove_alias("Eva Lind", "Ida Falk", reason=say("another name"))
    orc.entities.protect("Eva Lind", reason=say("a protection"))


def written(orc: Orchestrator, say: Callable[[str], str]) -> None:
    """Write about memories of one conversation by every operation that takes free text."""
    talk = {"conversation_id": "talk", "source_type": "channel_transcript"}

    def fact(place: str, **fields: Any) -> str:
        return orc.remember(say(place), **fields)

    one = fact(
        "a memory",
        tags=[say("a tag")],
        attributes={"quote": say("an attribute"), "deep": [{"note": say("a deep one")}]},
        item_id=say("an item id"),
        source=talk,
    )
    two, three = fact("another"), orc.memories.store(say("a stored one")).memory_id
    assert three is not None
    orc.save_episode(say("a turn"), session_id="monday", source_role="user")
    orc.sessions.end("monday")
    orc.relate(one, EdgeType.RELATED_TO, two, reason=say("a relation"))
    edge = orc.relate(one, EdgeType.CONTRADICTS, two, reason=say("a contradiction"))
    orc.contradictions.resolve(edge, winner=one, reason=say("a decision"))
    orc.contradictions.reopen(edge, reason=say("a reopening"))
    orc.contradictions.dismiss(edge, reason=say("a dismissal"))
    changed = orc.relate(
        fact("a later one"),
        EdgeType.UPDATES,
        fact("an earlier one"),
        weight=0.8,
        reason=say("a mark"),
    )
    orc.contradictions.accept(changed, reason=say("an acceptance"))
    corrected = orc.correct(three, say("a correction"), reason=say("why it was corrected"))
    orc.retract(corrected, reason=say("a retraction"))
    orc.restore(corrected, reason=say("a restoration"))
    orc.memories.forget([two], reason=say("forgetting"))
    orc.restore(two, reason=say("remembering"))
    orc.sources.retract(conversation_id="talk", reason=say("a source"), dry_run=False)
    fields = {"content": say("a proposal"), "entity_names": [say("a name")]}
    proposed = tool(orc, "remember_fact", **fields)["memory_id"]
    mended = tool(orc, "correct_fact", memory_id=proposed, new_content=say("a proposed correction"))
    of_project = orc.remember(say("a project"), scope="project", scope_id="web")
    orc.contexts.promote(of_project, "global", reason=say("a promotion"))
    orc.recall(say("a query"))
    orc.recall(f"{say('a query that finds')} in a memory stands")
    # The receipt of a prompt that no memory answered stays, see the guide.
    orc.context("What stands in a memory?")
    call_tool(orc, "search_memory", {"query": "What stands in a memory?"})
    tool(orc, "forget", memory_id=mended["memory_id"], reason=say("forgetting"))
    orc.bulletin()
