"""Sources through the handle: who replaces whom, and what goes with a source."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from working import put

from memgraph import MemoryService, MemoryStatus, Orchestrator, Viewer
from memgraph.errors import InvalidInput, NotFound
from memgraph.model.enums import EdgeType, Sensitivity, SourceName
from memgraph.model.sources import Document, FileLink, SourceRetraction
from memgraph.model.values import EdgeInput, MemoryInput, Source
from memgraph.operations.write.changes import strengthen
from memgraph.operations.write.edges import OTHER_SOURCE, STATED_ELSEWHERE
from memgraph.store import memories
from memgraph.store.snapshot import Snapshot

FORUM, MANUAL = {"conversation_id": "forum"}, {"conversation_id": "manual"}


def said(orc: Orchestrator, content: str, source: dict[str, Any], **fields: Any) -> str:
    return put(orc, content, source=source, **fields)


def journal(service: MemoryService, action: str) -> list[tuple[str | None, dict[str, Any]]]:
    with service.opened("orc-1") as opened, opened.database.read() as connection:
        found = connection.exec_driver_sql(
            "SELECT subject, details FROM audit_log WHERE action = ? ORDER BY seq", (action,)
        )
        return [(row[0], json.loads(row[1])) for row in found]


def status(orc: Orchestrator, memory_id: str) -> MemoryStatus:
    return orc.get(memory_id).status


def document(mark: str, *texts: str, **fields: Any) -> Document:
    source = Source(source_path=f"/drop/{mark}.md", content_sha256=mark * 64)
    items = tuple(
        MemoryInput(key=f"m{n}", content=each, source=source) for n, each in enumerate(texts)
    )
    return Document(sha256=mark * 64, path=f"/drop/{mark}.md", memories=items, main="#m0", **fields)


def repeats(service: MemoryService, memory_id: str, source: dict[str, Any], *turns: str) -> None:
    """A further source says it, as consolidation notes it."""
    noted = Source(**source)
    with service.opened("orc-1") as opened, opened.transaction("test") as transaction:
        source_id = noted_source(transaction, noted)
        transaction.record(strengthen(transaction, memory_id, source_id=source_id, evidence=turns))


def noted_source(connection: Snapshot, source: Source) -> str:
    source_id = memories.source_id(source)
    memories.insert_sources(connection, {source_id: source})
    return source_id


UPDATES = FileLink(local="#m0", target="adr:1", edge_type=EdgeType.UPDATES, reason="Supersedes")
NINE, EIGHT = "The gate of the yard opens at 9:00.", "The gate of the yard opens at 8:00 now."
DROPPED = {"source_type": "ingest_file", "captured_by": "extractor"}


def dropped(orc: Orchestrator, path: str, *texts: str, **fields: Any) -> list[str]:
    """Store a file as ingestion does, and compare what it says."""
    mark = hashlib.sha256(path.encode()).hexdigest()
    source = Source(**DROPPED, source_path=path, content_sha256=mark)
    items = tuple(
        MemoryInput(key=f"m{n}", content=each, source=source) for n, each in enumerate(texts)
    )
    given = Document(sha256=mark, path=path, memories=items, main="#m0", **fields)
    outcome = orc.ingestion.store(given)
    orc.settle()
    return [str(each.memory_id) for each in outcome.memories]


class TestWhatNobodyDecided:
    """A statement replaces another only where a person, an agent or its own source decides it."""

    def test_a_file_that_decides_about_a_person_opens_a_case(self, orc: Orchestrator) -> None:
        """Of a text that is stored already a file has the memory itself in its hands."""
        told = [orc.remember(text) for text in (NINE, "The yard has one gate.")]
        edge = EdgeInput(from_id="#m1", to_id="#m0", edge_type=EdgeType.UPDATES)
        given = document("a", NINE, "The yard has one gate.", edges=(edge,))
        outcome = orc.ingestion.store(given)
        assert [each.memory_id for each in outcome.memories] == told
        assert [each.code for each in outcome.edges] == [OTHER_SOURCE]
        assert {status(orc, each) for each in told} == {MemoryStatus.ACTIVE}
        assert len(orc.contradictions.list().items) == 1

    @pytest.mark.parametrize("decision", ["accept", "dismiss"])
    def test_what_a_document_says_of_another_folder_is_a_mark_to_decide(
        self, orc: Orchestrator, decision: str
    ) -> None:
        [old] = dropped(orc, "/drop/adr/a.md", "We bake at night.", document_keys=("adr:1",))
        [new] = dropped(orc, "/drop/mail/b.md", "We bake at noon.", links=(UPDATES,))
        [edge] = orc.trace(old).open_contradictions
        assert (edge.from_id, edge.to_id, edge.weight) == (new, old, STATED_ELSEWHERE)
        assert edge.reason == (
            "only an explicit decision replaces what another source said: Supersedes"
        )
        items = {item.memory.memory_id: item for item in orc.recall("When do we bake?").items}
        assert items[old].mark.startswith("probably contradicts ")
        assert [mark.weight for mark in items[old].marks] == [STATED_ELSEWHERE]
        getattr(orc.contradictions, decision)(edge.edge_id, reason="the board said so")
        ended = MemoryStatus.SUPERSEDED if decision == "accept" else MemoryStatus.ACTIVE
        assert (status(orc, old), status(orc, new)) == (ended, MemoryStatus.ACTIVE)
        assert orc.trace(old).open_contradictions == ()

    def test_a_folder_of_which_a_person_says_the_same_is_protected(
        self, orc: Orchestrator, service: MemoryService
    ) -> None:
        [old] = dropped(orc, "/drop/adr/a.md", "We bake at night.", document_keys=("adr:1",))
        repeats(service, old, FORUM)
        dropped(orc, "/drop/adr/b.md", "We bake at noon.", links=(UPDATES,))
        assert status(orc, old) is MemoryStatus.ACTIVE

    @pytest.mark.parametrize("further", [True, False])
    def test_a_detail_that_another_source_states_outlives_its_decision(
        self, orc: Orchestrator, service: MemoryService, further: bool
    ) -> None:
        older = document("a", "We bake at night.", "At four.", document_keys=("adr:1",))
        detail = older.memories[1].model_copy(update={"attributes": {"role": "decision_detail"}})
        edge = EdgeInput(from_id="#m1", to_id="#m0", edge_type=EdgeType.PART_OF)
        given = {"memories": (older.memories[0], detail), "edges": (edge,)}
        main, part = orc.ingestion.store(older.model_copy(update=given)).memories
        if further:
            repeats(service, str(part.memory_id), FORUM)
        orc.ingestion.store(document("b", "We bake at noon.", links=(UPDATES,)))
        assert status(orc, str(main.memory_id)) is MemoryStatus.SUPERSEDED
        assert (status(orc, str(part.memory_id)) is MemoryStatus.ACTIVE) is further


class TestRetractingASource:
    def test_it_takes_what_it_gave_and_what_stands_on_that_alone(
        self, orc: Orchestrator, service: MemoryService
    ) -> None:
        poison = said(orc, "The password is on the wiki.", FORUM)
        first = orc.remember("Read the wiki for it.", derived_from=[poison])
        second = orc.remember("Everybody reads the wiki.", derived_from=[first])
        other = said(orc, "The wiki is public.", MANUAL)
        both = orc.remember("The wiki leaks.", derived_from=[poison, other])
        above = orc.remember("Leaks are bad.", derived_from=[both])
        dry = orc.sources.retract(conversation_id="forum", reason="poisoned")
        assert dry.dry_run
        assert orc.maintenance.stats()["memories"]["status"] == {"active": 6}
        done = orc.sources.retract(conversation_id="forum", reason="poisoned", dry_run=False)
        assert done == dry.model_copy(update={"dry_run": False})
        assert (done.given, done.derived, done.kept, done.retracted) == (1, 2, 1, 3)
        assert [(each.memory_id, each.because) for each in done.retracted_items] == [
            (poison, "given"),
            (first, "derived"),
            (second, "derived"),
        ]
        assert [(each.memory_id, each.because) for each in done.kept_items] == [(both, "grounds")]
        assert {status(orc, one) for one in (poison, first, second)} == {MemoryStatus.RETRACTED}
        assert {status(orc, one) for one in (other, both, above)} == {MemoryStatus.ACTIVE}
        [(subject, told)] = journal(service, "retract_source")
        assert (subject, told["name"], told["reason"]) == (None, "forum", "poisoned")
        assert [one for one, _ in journal(service, "retract")] == [poison, first, second]
        assert orc.verify().ok
        again = orc.sources.retract(conversation_id="forum", reason="x", dry_run=False)
        assert (again.retracted, again.kept) == (0, 0)
        orc.restore(poison, reason="it was true")
        assert status(orc, poison) is MemoryStatus.ACTIVE

    @pytest.mark.engines
    def test_what_it_said_as_well_stays_and_loses_what_it_gave(
        self, orc: Orchestrator, service: MemoryService
    ) -> None:
        fact = said(orc, "The roof leaks.", MANUAL, confidence=0.6)
        turn = orc.save_episode("The roof leaks.", session_id="forum", source_role="user")
        repeats(service, fact, FORUM, turn)
        raised = orc.get(fact).confidence
        repeats(service, fact, {"conversation_id": "desk"})
        assert 0.6 < raised < orc.get(fact).confidence
        dry = orc.sources.retract(conversation_id="forum", reason="poisoned")
        done = orc.sources.retract(conversation_id="forum", reason="poisoned", dry_run=False)
        assert done == dry.model_copy(update={"dry_run": False})
        assert [each.memory_id for each in done.retracted_items] == [turn]
        [loss] = done.weakened_items
        assert loss.memory_id == fact
        # What the desk says counts as if the forum had never spoken.
        assert loss.confidence_after == pytest.approx(raised, abs=1e-5)
        assert orc.get(fact).confidence == loss.confidence_after
        trace = orc.trace(fact)
        assert [each.source.conversation_id for each in trace.supports] == ["desk"]
        assert trace.independent_sources == 2
        assert [subject for subject, _ in journal(service, "weaken")] == [fact]
        assert orc.sources.retract(conversation_id="forum", reason="x").weakened == 0
        # Said again it counts again.
        repeats(service, fact, FORUM)
        assert orc.trace(fact).independent_sources == 3
        assert orc.verify().ok

    @pytest.mark.parametrize("order", ["ab", "ba"])
    def test_of_two_sources_of_a_text_the_second_that_goes_takes_it(
        self, orc: Orchestrator, order: str
    ) -> None:
        [one] = orc.ingestion.store(document("a", "The roof leaks.")).memories
        orc.ingestion.store(document("b", "The roof leaks."))
        fact = str(one.memory_id)
        first, second = (f"/drop/{mark}.md" for mark in order)
        done = orc.sources.retract(path=first, reason="x", dry_run=False)
        kept = [(one.memory_id, one.because) for one in done.kept_items]
        assert kept == [(fact, "supported")] * (order == "ab")
        assert status(orc, fact) is MemoryStatus.ACTIVE
        assert orc.trace(fact).independent_sources == 1
        done = orc.sources.retract(path=second, reason="x", dry_run=False)
        assert [each.memory_id for each in done.retracted_items] == [fact]
        assert status(orc, fact) is MemoryStatus.RETRACTED

    def test_a_folder_takes_no_neighbour(self, orc: Orchestrator) -> None:
        for mark, path in (("a", "/drop/in/x.md"), ("b", "/drop/inner.md"), ("c", "/drop/in")):
            source = Source(source_path=path, content_sha256=mark * 64)
            given = MemoryInput(content=f"{mark} says so.", source=source)
            orc.ingestion.store(Document(sha256=mark * 64, path=path, memories=(given,)))
        done = orc.sources.retract(path="/drop/in", reason="x")
        assert sorted(each.summary for each in done.retracted_items) == ["a says so.", "c says so."]

    def test_what_it_had_replaced_has_its_place_back(
        self, orc: Orchestrator, service: MemoryService
    ) -> None:
        old = said(orc, "The gate opens at 9.", MANUAL)
        lost = said(orc, "The gate is blue.", MANUAL, confidence=0.9)
        new, won = said(orc, "It opens at 8.", FORUM), said(orc, "The gate is red.", FORUM)
        orc.relate(new, "Updates", old)
        case = orc.relate(won, "Contradicts", lost)
        orc.contradictions.resolve(case, winner=won, reason="x")
        dry = orc.sources.retract(conversation_id="forum", reason="poisoned")
        assert {status(orc, one) for one in (old, lost)} == {MemoryStatus.SUPERSEDED}
        done = orc.sources.retract(conversation_id="forum", reason="poisoned", dry_run=False)
        assert done == dry.model_copy(update={"dry_run": False})
        assert {each.memory_id: each.by for each in done.reinstated_items} == {
            old: (new,),
            lost: (won,),
        }
        assert {status(orc, one) for one in (old, lost)} == {MemoryStatus.ACTIVE}
        assert (orc.get(lost).confidence, orc.get(old).valid_until) == (0.9, None)
        assert (done.reopened, [each.edge_id for each in done.reopened_items]) == (1, [case])
        assert {done.reopened_items[0].from_id, done.reopened_items[0].to_id} == {lost, won}
        assert orc.contradictions.get(case).state == "open"
        assert [one for one, _ in journal(service, "restore")] == [old]
        assert [one for one, _ in journal(service, "reopen")] == [won]
        assert orc.verify().ok

    def test_nor_is_what_replaced_what_is_gone(self, orc: Orchestrator) -> None:
        """Whoever corrected the poison said what holds now; what was before it is old."""
        old, false, true = (
            said(orc, f"The gate opens at {hour}.", source)
            for hour, source in ((9, MANUAL), (8, FORUM), (10, MANUAL))
        )
        orc.relate(false, "Updates", old)
        orc.relate(true, "Updates", false)
        done = orc.sources.retract(conversation_id="forum", reason="x", dry_run=False)
        assert (done.retracted, done.reinstated) == (1, 0)
        assert status(orc, old) is MemoryStatus.SUPERSEDED
        orc.retract(true, reason="wrong as well")
        orc.restore(old, reason="nothing stands against it")
        assert status(orc, old) is MemoryStatus.ACTIVE

    @pytest.mark.parametrize("kind", ["Updates", "Contradicts"])
    @pytest.mark.parametrize("last", [("first", "second"), ("second", "first")])
    def test_in_whatever_order_all_that_replaced_it_goes(
        self, orc: Orchestrator, kind: str, last: tuple[str, str]
    ) -> None:
        old, middle, top = (
            said(orc, f"The gate opens at {hour}.", {"conversation_id": talk})
            for hour, talk in ((9, "manual"), (8, "first"), (7, "second"))
        )
        cases = []
        for newer, older in ((middle, old), (top, middle)):
            edge = orc.relate(newer, kind, older)
            if kind == "Contradicts":
                orc.contradictions.resolve(edge, winner=newer, reason="x")
                cases.append(edge)
        for talk in last:
            done = orc.sources.retract(conversation_id=talk, reason="x", dry_run=False)
        assert status(orc, old) is MemoryStatus.ACTIVE
        assert (old, (middle,)) in [(one.memory_id, one.by) for one in done.reinstated_items]
        if cases:
            assert orc.contradictions.get(cases[0]).state == "open"

    def test_what_is_hidden_is_neither_told_nor_taken(
        self, orc: Orchestrator, service: MemoryService
    ) -> None:
        seen, old, top = (
            said(orc, f"The gate opens at {hour}.", source)
            for hour, source in ((6, FORUM), (9, MANUAL), (7, FORUM))
        )
        closed = {"sensitivity": Sensitivity.RESTRICTED}
        owner = service.orchestrator("orc-1", viewer=Viewer(clearance=Sensitivity.RESTRICTED))
        hidden = said(owner, "The code is 1234.", FORUM, **closed)
        above = said(owner, "Codes are short.", MANUAL, derived_from=[hidden], **closed)
        between = said(owner, "The gate opens at 8.", MANUAL, **closed)
        repeats(service, said(owner, "The safe is blue.", MANUAL, **closed), FORUM)
        owner.relate(between, "Updates", old)
        owner.retract(between, reason="x")
        owner.relate(top, "Updates", old)
        told = owner.sources.retract(conversation_id="forum", reason="x")
        assert [(each.memory_id, each.by) for each in told.reinstated_items] == [(old, (between,))]
        assert told.weakened == 1
        done = orc.sources.retract(conversation_id="forum", reason="x", dry_run=False)
        assert {each.memory_id for each in done.retracted_items} == {seen, top}
        assert (done.reinstated_items, done.weakened) == ((), 0)
        assert {status(owner, one) for one in (hidden, above)} == {MemoryStatus.ACTIVE}
        said(owner, "Alone.", {"workflow_run_id": "secret"}, **closed)
        with pytest.raises(NotFound):
            orc.sources.retract(workflow_run_id="secret", reason="x")
        with pytest.raises(NotFound):
            orc.sources.get("run", "secret")
        assert [each.name for each in orc.sources.list().items] == ["forum", "manual"]


class TestListing:
    def test_sources_are_counted_by_kind_and_name(self, orc: Orchestrator) -> None:
        orc.save_episode("Hello.", session_id="c1", source_role="user")
        first = said(orc, "One.", FORUM)
        said(orc, "Two.", FORUM)
        said(orc, "Three.", {"workflow_run_id": "r1"})
        orc.retract(first, reason="x")
        found = orc.sources.list().items
        assert [(each.kind.value, each.name) for each in found] == [
            ("conversation", "c1"),
            ("conversation", "forum"),
            ("run", "r1"),
        ]
        forum = found[1]
        assert (forum.memories, forum.active, forum.retracted) == (2, 1, 1)
        assert orc.sources.get("conversation", "forum") == forum

    def test_pages_hold_each_once(self, orc: Orchestrator) -> None:
        for n in range(3):
            said(orc, f"C {n}.", {"conversation_id": f"c{n}", "workflow_run_id": f"r{n}"})
        names, after = list[str](), None
        while True:
            page = orc.sources.list(limit=2, after=after)
            names += [each.name for each in page.items]
            after = page.next_after
            if after is None:
                break
        assert names == ["c0", "c1", "c2", "r0", "r1", "r2"]

    def test_what_is_no_name_kind_or_cursor_is_refused(self, orc: Orchestrator) -> None:
        keywords = ("path", "conversation_id", "workflow_run_id", "content_sha256")
        for name in ("", " ", "a\x00b", "lone \ud800 surrogate", 5, ["a"]):
            for kind, keyword in zip(SourceName, keywords, strict=True):
                with pytest.raises(InvalidInput):
                    orc.sources.get(kind, name)  # type: ignore[arg-type]  # what a caller may pass
                with pytest.raises(InvalidInput):
                    orc.sources.retract(**{keyword: name}, reason="asked")  # type: ignore[arg-type]
        for no_kind in ("", "file", "Path", 5):
            with pytest.raises(InvalidInput, match="path, conversation, run, content"):
                orc.sources.list(kind=no_kind)  # type: ignore[arg-type]
            with pytest.raises(InvalidInput, match="path, conversation, run, content"):
                orc.sources.get(no_kind, "a")  # type: ignore[arg-type]
        # Exactly one source is named.
        given: tuple[dict[str, Any], ...] = ({}, {"path": "a", "conversation_id": "b"})
        for fields in (*given, {"content_sha256": "ABC"}):
            with pytest.raises(InvalidInput):
                orc.sources.retract(reason="x", **fields)
        for after in ("", "x", "run", "run:", "host:x"):
            with pytest.raises(InvalidInput):
                orc.sources.list(after=after)


Grounds = list[tuple[bool, list[int]]]


@given(
    st.lists(
        st.tuples(st.booleans(), st.lists(st.integers(0, 100), max_size=3)), min_size=1, max_size=9
    )
)
@settings(max_examples=12)
def test_what_goes_is_the_least_that_stands_on_the_source_alone(
    tmp_path_factory: pytest.TempPathFactory, drawn: Grounds
) -> None:
    """Against a plain reckoning over the whole, for any graph of grounds."""
    root = tmp_path_factory.mktemp("sources")
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1", create=True)
        ids: list[str] = []
        grounds: dict[str, set[str]] = {}
        gone: set[str] = set()
        for n, (poisoned, picks) in enumerate(drawn):
            on = {ids[one % len(ids)] for one in picks} if ids else set()
            source = FORUM if poisoned else {"workflow_run_id": f"r{n}"}
            ids.append(said(orc, f"Text {n}.", source, derived_from=sorted(on)))
            grounds[ids[-1]] = on
            if poisoned or (on and on <= gone):
                gone.add(ids[-1])
        if not any(poisoned for poisoned, _ in drawn):
            with pytest.raises(NotFound):
                orc.sources.retract(conversation_id="forum", reason="x")
            return
        done: SourceRetraction = orc.sources.retract(
            conversation_id="forum", reason="x", dry_run=False
        )
        assert {each.memory_id for each in done.retracted_items} == gone
        touched = {one for one in ids if grounds[one] & gone and one not in gone}
        assert {each.memory_id for each in done.kept_items} == touched
        assert {one for one in ids if status(orc, one) is MemoryStatus.RETRACTED} == gone
