"""Sources through the handle: whom one trusts, who replaces whom, and what goes with a source."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from working import put

from memgraph import MemoryService, MemoryStatus, Orchestrator, Viewer
from memgraph.clock import FixedClock, iso
from memgraph.errors import Conflict, InvalidInput, NotFound, QuotaReached
from memgraph.ids import CountingIds
from memgraph.model import context
from memgraph.model.enums import EdgeType, Sensitivity, SourceName, TrustTier
from memgraph.model.sources import Document, FileLink, SourceRetraction
from memgraph.model.values import EdgeInput, MemoryInput, Source
from memgraph.operations.context.database_backend import DatabaseBackend
from memgraph.operations.write.changes import strengthen
from memgraph.rules.trust import LESS_TRUSTED
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


class TestTrust:
    def test_a_less_trusted_source_opens_a_case(
        self, orc: Orchestrator, service: MemoryService
    ) -> None:
        old = said(orc, "Backups are kept for 30 days.", MANUAL)
        new = said(orc, "Backups are deleted at once.", FORUM)
        orc.sources.trust("conversation", "forum", "low", reason="anybody writes there")
        edge = orc.relate(new, "Updates", old, reason="says so")
        assert status(orc, old) is MemoryStatus.ACTIVE
        [case] = orc.contradictions.list().items
        assert (case.edge.edge_id, case.edge.from_id, case.edge.to_id) == (edge, new, old)
        assert case.edge.edge_type is EdgeType.CONTRADICTS
        assert not case.resolved
        assert case.edge.reason is not None
        assert case.edge.reason.endswith("says so")
        # Once more opens no second one, and a person may decide for it.
        assert orc.relate(new, "Updates", old) == edge
        orc.contradictions.resolve(edge, winner=new, reason="they are right")
        assert status(orc, old) is MemoryStatus.SUPERSEDED
        assert [each[1]["type"] for each in journal(service, "relate")] == ["Contradicts"]

    @pytest.mark.parametrize("partial", [True, False])
    def test_nor_does_it_amend(self, orc: Orchestrator, partial: bool) -> None:
        orc.sources.trust("conversation", "forum", "low", reason="x")
        old, new = said(orc, "The gate opens at 9.", MANUAL), said(orc, "It opens at 8.", FORUM)
        orc.relate(new, "Updates", old, partial=partial)
        assert [each.edge_type for each in orc.graph.subgraph([old]).edges] == [
            EdgeType.CONTRADICTS
        ]

    @pytest.mark.parametrize(
        ("newer", "older", "replaces"),
        [
            ("low", "low", True),
            ("standard", "low", True),
            ("high", "standard", True),
            ("low", "standard", False),
            ("standard", "high", False),
            ("low", "high", False),
        ],
    )
    def test_as_trusted_or_more_replaces(
        self, orc: Orchestrator, newer: str, older: str, replaces: bool
    ) -> None:
        orc.sources.trust("conversation", "forum", newer, reason="x")
        orc.sources.trust("conversation", "manual", older, reason="x")
        old, new = said(orc, "The gate opens at 9.", MANUAL), said(orc, "It opens at 8.", FORUM)
        orc.relate(new, "Updates", old)
        assert (status(orc, old) is MemoryStatus.SUPERSEDED) is replaces
        assert bool(orc.contradictions.list().items) is not replaces

    def test_a_model_that_repeats_it_gains_it_nothing(self, orc: Orchestrator) -> None:
        orc.sources.trust("conversation", "forum", "low", reason="x")
        old = said(orc, "The gate opens at 9.", MANUAL)
        ground = said(orc, "The gate opens at 8.", FORUM)
        middle = orc.remember("I read that it opens at 8.", derived_from=[ground])
        washed = orc.remember("Opening is at 8.", derived_from=[middle, old])
        orc.relate(washed, "Updates", old)
        assert status(orc, old) is MemoryStatus.ACTIVE

    def test_nor_does_it_by_saying_it_again(
        self, orc: Orchestrator, service: MemoryService
    ) -> None:
        """Turns that came later are no ground to judge by, those that came first are one."""
        orc.sources.trust("conversation", "forum", "low", reason="x")
        old, ground = said(orc, "The gate opens at 9.", MANUAL), said(orc, "At 8.", FORUM)
        washed = put(orc, "The gate opens at 8.", derived_from=[ground])
        honest = said(orc, "The gate opens at 7.", {"conversation_id": "desk"})
        repeats(service, washed, FORUM)
        repeats(service, honest, FORUM, ground)
        orc.relate(washed, "Updates", old)
        assert status(orc, old) is MemoryStatus.ACTIVE
        orc.relate(honest, "Updates", old)
        assert status(orc, old) is MemoryStatus.SUPERSEDED

    def test_a_folder_is_told_and_a_file_in_it_otherwise(self, orc: Orchestrator) -> None:
        folder = service_path(orc, "mail")
        orc.sources.trust("path", "mail", "low", reason="whoever writes to us")
        orc.sources.trust("path", "mail/boss.md", "high", reason="signed")
        old = said(orc, "The fair is in May.", MANUAL)
        for name, replaces in (("spam.md", False), ("boss.md", True)):
            new = f"{name} says that the fair is in June."
            [outcome] = orc.ingestion.store(
                Document(
                    sha256=("1" if replaces else "2") * 64,
                    path=name,
                    memories=(
                        MemoryInput(content=new, source=Source(source_path=f"{folder}/{name}")),
                    ),
                )
            ).memories
            orc.relate(str(outcome.memory_id), "Updates", old)
            assert (status(orc, old) is MemoryStatus.SUPERSEDED) is replaces

    def test_settings_decide_where_nobody_said_anything(self, service: MemoryService) -> None:
        orc = service.orchestrator("orc-1", create=True)
        config = orc.paths.config_file
        config.write_text('[memory.trust.captured_by]\nextractor = "low"\n')
        service.close()
        with MemoryService(service.root, ids=CountingIds(), environ={}, background=False) as again:
            orc = again.orchestrator("orc-1")
            old = orc.remember("The gate opens at 9.")
            new = said(orc, "It opens at 8.", {"captured_by": "extractor"})
            orc.relate(new, "Updates", old)
            assert status(orc, old) is MemoryStatus.ACTIVE
            orc.relate(old, "Updates", new)
            assert status(orc, new) is MemoryStatus.SUPERSEDED

    def test_a_dropped_file_opens_a_case_and_says_so(self, orc: Orchestrator) -> None:
        older = document("a", "We bake at night.", document_keys=("adr:1",))
        link = FileLink(
            local="#m0", target="adr:1", edge_type=EdgeType.UPDATES, reason="Supersedes"
        )
        newer = document("b", "We bake at noon.", document_keys=("adr:2",), links=(link,))
        orc.sources.trust("path", "/drop/b.md", "low", reason="x")
        [old] = orc.ingestion.store(older).memories
        outcome = orc.ingestion.store(newer)
        assert status(orc, str(old.memory_id)) is MemoryStatus.ACTIVE
        assert outcome.links_made == 1
        assert len(orc.contradictions.list().items) == 1

    @pytest.mark.parametrize("tier", ["standard", "high"])
    def test_a_detail_that_a_more_trusted_source_says_outlives_its_decision(
        self, orc: Orchestrator, service: MemoryService, tier: str
    ) -> None:
        older = document("a", "We bake at night.", "At four.", document_keys=("adr:1",))
        detail = older.memories[1].model_copy(update={"attributes": {"role": "decision_detail"}})
        edge = EdgeInput(from_id="#m1", to_id="#m0", edge_type=EdgeType.PART_OF)
        given = {"memories": (older.memories[0], detail), "edges": (edge,)}
        main, part = orc.ingestion.store(older.model_copy(update=given)).memories
        repeats(service, str(part.memory_id), FORUM)
        orc.sources.trust("conversation", "forum", tier, reason="x")
        link = FileLink(
            local="#m0", target="adr:1", edge_type=EdgeType.UPDATES, reason="Supersedes"
        )
        orc.ingestion.store(document("b", "We bake at noon.", links=(link,)))
        assert status(orc, str(main.memory_id)) is MemoryStatus.SUPERSEDED
        stays = tier == "high"
        assert (status(orc, str(part.memory_id)) is MemoryStatus.ACTIVE) is stays

    def test_an_agent_is_told_that_it_replaced_nothing(self, orc: Orchestrator) -> None:
        from memgraph.operations.tools.schemas import correct

        orc.sources.trust("conversation", "chat", "low", reason="x")
        old = orc.agents.propose_fact("The gate of the yard opens at 9.").memory_id
        done = correct(orc, old, "The gate of the yard opens at 8.", session_id="chat")
        assert done["replaced"] is None
        assert status(orc, old) is MemoryStatus.ACTIVE
        assert len(orc.contradictions.list().items) == 1

    def test_a_confined_handle_is_told_of_what_it_sees_or_said(
        self, orc: Orchestrator, service: MemoryService
    ) -> None:
        said(orc, "One.", FORUM)
        for name in ("forum", "elsewhere"):
            orc.sources.trust("conversation", name, "low", reason="x")
        viewer = Viewer(confined=True)
        confined = service.orchestrator("orc-1", viewer=viewer, actor="a-key")
        said(orc, "Two.", {"workflow_run_id": "mine"})
        confined.sources.trust("run", "mine", "low", reason="x")
        assert [each.name for each in confined.sources.trusted()] == ["forum", "mine"]
        with pytest.raises(NotFound):
            confined.sources.distrust("conversation", "elsewhere", reason="x")
        # Whether something was said of it makes no difference: what is not seen is not there.
        for name in ("elsewhere", "nowhere"):
            with pytest.raises(NotFound, match="no memory comes from this source"):
                confined.sources.trust("conversation", name, "high", reason="x")
        told = {each.name: each.tier for each in orc.sources.trusted()}
        assert told == {"elsewhere": TrustTier.LOW, "forum": TrustTier.LOW, "mine": TrustTier.LOW}

    def test_an_item_of_less_trust_stands_beside_it(self, orc: Orchestrator) -> None:
        first = orc.remember(
            "Bake at night.", scope="project", scope_id="web", item_id="plan", source=MANUAL
        )
        orc.sources.trust("conversation", "manual", "high", reason="signed")
        web = orc._service.orchestrator("orc-1", viewer=Viewer(project_ids=frozenset({"web"})))
        backend = DatabaseBackend(web, context.Scope.PROJECT, "web")
        item = backend.get("plan")
        assert item is not None
        with pytest.raises(Conflict):
            backend.add(item.model_copy(update={"importance": 0.9}))
        # Said again it opens no second case.
        for _ in range(2):
            backend.add(item.model_copy(update={"payload": {"text": "Bake at noon."}}))
        assert status(web, first) is MemoryStatus.ACTIVE
        assert backend.get("plan") == item
        [case] = web.contradictions.list().items
        assert case.edge.to_id == first

    def test_what_was_said_is_listed_and_taken_back(
        self, orc: Orchestrator, service: MemoryService
    ) -> None:
        orc.sources.trust("run", "r1", "low", max_memories=3, reason="a test run")
        orc.sources.trust("run", "r1", "high", reason="it was none")
        [told] = orc.sources.trusted()
        assert (told.kind, told.name, told.tier) == (SourceName.RUN, "r1", TrustTier.HIGH)
        assert (told.max_memories, told.reason) == (None, "it was none")
        orc.sources.distrust("run", "r1", reason="enough")
        assert orc.sources.trusted() == []
        with pytest.raises(NotFound):
            orc.sources.distrust("run", "r1", reason="again")
        assert [each[1]["reason"] for each in journal(service, "trust")] == [
            "a test run",
            "it was none",
        ]
        assert len(journal(service, "distrust")) == 1
        assert orc.verify().ok

    @pytest.mark.parametrize(
        ("kind", "name", "tier", "most"),
        [
            ("host", "x", "low", None),
            ("run", " ", "low", None),
            ("run", "a\0b", "low", None),
            ("content", "abc", "low", None),
            ("run", "x", "lowest", None),
            ("run", "x", "low", -1),
        ],
    )
    def test_what_is_no_word_is_refused(
        self, orc: Orchestrator, kind: str, name: str, tier: str, most: int | None
    ) -> None:
        with pytest.raises(InvalidInput):
            orc.sources.trust(kind, name, tier, max_memories=most, reason="x")
        assert orc.sources.trusted() == []


def service_path(orc: Orchestrator, name: str) -> str:
    return str((orc.paths.processed / name).resolve())


class TestQuotas:
    def test_what_is_too_much_is_refused_item_by_item(self, orc: Orchestrator) -> None:
        orc.sources.trust("conversation", "forum", "standard", max_memories=2, reason="x")
        given = [{"content": f"Line {n}.", "source": FORUM} for n in range(4)]
        done = orc.remember_many([*given, {"content": "Elsewhere.", "source": MANUAL}, given[0]])
        assert [each.outcome for each in done] == [
            "stored",
            "stored",
            "rejected",
            "rejected",
            "stored",
            "duplicate",
        ]
        assert done[2].code == QuotaReached.code
        with pytest.raises(QuotaReached) as told:
            orc.remember("One more.", source=FORUM)
        assert told.value.details == {"kind": "conversation", "limit": 2}
        # What is retracted makes room.
        orc.retract(str(done[0].memory_id), reason="x")
        assert said(orc, "One more.", FORUM)

    @given(st.lists(st.sampled_from(["add", "retract", "two", "turn"]), max_size=14))
    @settings(max_examples=12)
    def test_it_holds_as_many_as_it_may_whatever_was_before(
        self, tmp_path_factory: pytest.TempPathFactory, steps: list[str]
    ) -> None:
        root = tmp_path_factory.mktemp("quota")
        with MemoryService(root, ids=CountingIds(), environ={}, background=False) as service:
            orc = service.orchestrator("orc-1", create=True)
            orc.sources.trust("conversation", "c1", "low", max_memories=3, reason="x")
            source, held = {"conversation_id": "c1"}, list[str]()
            for n, step in enumerate(steps):
                if step == "retract":
                    if held:
                        orc.retract(held.pop(), reason="x")
                    continue
                item: dict[str, Any] = {"content": f"Text {n}.", "source": source}
                if step == "turn":
                    item |= {"kind": "episode", "session_id": "c1", "source_role": "user"}
                more = [{"content": f"More {n}.", "source": source}] if step == "two" else []
                done = orc.remember_many([item, *more])
                stored = [str(each.memory_id) for each in done if each.outcome == "stored"]
                assert len(stored) == min(len(done), 3 - len(held))
                held += stored

    def test_a_turn_counts_for_its_conversation(self, orc: Orchestrator) -> None:
        orc.sources.trust("conversation", "c1", "low", max_memories=1, reason="x")
        orc.save_episode("Hello.", session_id="c1", source_role="user")
        with pytest.raises(QuotaReached):
            orc.save_episode("Hello again.", session_id="c1", source_role="user")

    def test_zero_closes_a_source(self, orc: Orchestrator) -> None:
        orc.sources.trust("run", "r1", "low", max_memories=0, reason="x")
        with pytest.raises(QuotaReached):
            orc.remember("Anything.", source={"workflow_run_id": "r1"})

    def test_a_manifest_tells_what_was_too_much(self, orc: Orchestrator) -> None:
        orc.sources.trust("path", "/drop", "standard", max_memories=1, reason="x")
        outcome = orc.ingestion.store(document("a", "A house.", "Its roof."))
        assert [each.outcome for each in outcome.memories] == ["stored", "rejected"]
        told = outcome.manifest["items"]["memories"][1]
        assert (told["outcome"], told["code"]) == ("rejected", QuotaReached.code)


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

    def test_what_another_file_says_stays(self, orc: Orchestrator) -> None:
        [one, two] = orc.ingestion.store(document("a", "The roof leaks.", "Trust me.")).memories
        orc.ingestion.store(document("b", "The roof leaks."))
        done = orc.sources.retract(path="/drop/a.md", reason="x", dry_run=False)
        assert [(each.memory_id, each.because) for each in done.kept_items] == [
            (one.memory_id, "supported")
        ]
        assert [each.memory_id for each in done.retracted_items] == [two.memory_id]
        # Both files were the poison.
        done = orc.sources.retract(path="/drop", reason="x", dry_run=False)
        assert [each.memory_id for each in done.retracted_items] == [one.memory_id]

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

    def test_what_a_person_confirmed_loses_nothing(
        self, orc: Orchestrator, service: MemoryService
    ) -> None:
        fact = said(orc, "The roof leaks.", MANUAL, confidence=0.6)
        repeats(service, fact, FORUM)
        orc.confirm(fact)
        [loss] = orc.sources.retract(conversation_id="forum", reason="x").weakened_items
        assert (loss.confidence_before, loss.confidence_after) == (1.0, 1.0)

    @pytest.mark.parametrize("order", ["ab", "ba"])
    def test_nothing_stands_on_sources_that_were_taken_back(
        self, orc: Orchestrator, order: str
    ) -> None:
        """Whichever goes first: the second takes what both said."""
        [one] = orc.ingestion.store(document("a", "The roof leaks.")).memories
        orc.ingestion.store(document("b", "The roof leaks."))
        fact = str(one.memory_id)
        first, second = (f"/drop/{mark}.md" for mark in order)
        orc.sources.retract(path=first, reason="x", dry_run=False)
        assert status(orc, fact) is MemoryStatus.ACTIVE
        assert orc.trace(fact).independent_sources == 1
        done = orc.sources.retract(path=second, reason="x", dry_run=False)
        assert [each.memory_id for each in done.retracted_items] == [fact]
        assert status(orc, fact) is MemoryStatus.RETRACTED

    def test_what_was_taken_back_protects_nothing(
        self, orc: Orchestrator, service: MemoryService
    ) -> None:
        orc.sources.trust("conversation", "manual", "high", reason="ours")
        one = said(orc, "The gate opens at 9.", MANUAL)
        repeats(service, one, FORUM)
        orc.sources.retract(conversation_id="manual", reason="forged", dry_run=False)
        orc.relate(said(orc, "The gate opens at 8.", {"conversation_id": "desk"}), "Updates", one)
        assert status(orc, one) is MemoryStatus.SUPERSEDED
        orc.sources.restore(conversation_id="manual", reason="ours after all", dry_run=False)
        case = orc.relate(said(orc, "It opens at 7.", {"conversation_id": "desk"}), "Updates", one)
        assert orc.contradictions.get(case).edge.edge_type is EdgeType.CONTRADICTS

    def test_what_is_hidden_loses_nothing(self, orc: Orchestrator, service: MemoryService) -> None:
        owner = service.orchestrator("orc-1", viewer=Viewer(clearance=Sensitivity.RESTRICTED))
        fact = said(owner, "The code is 1234.", MANUAL, sensitivity=Sensitivity.RESTRICTED)
        repeats(service, fact, FORUM)
        with pytest.raises(NotFound):
            orc.sources.retract(conversation_id="forum", reason="x")
        assert owner.sources.retract(conversation_id="forum", reason="x").weakened == 1

    def test_a_copy_of_the_file_is_no_other_source(self, orc: Orchestrator) -> None:
        [one] = orc.ingestion.store(document("a", "The roof leaks.")).memories
        copy = document("a", "The roof leaks.").memories[0]
        copied = copy.source.model_copy(update={"source_path": "/drop/copy.md"})
        again = copy.model_copy(update={"source": copied})
        orc.ingestion.store(Document(sha256="c" * 64, path="/drop/copy.md", memories=(again,)))
        done = orc.sources.retract(path="/drop/a.md", reason="x", dry_run=False)
        assert [each.memory_id for each in done.retracted_items] == [one.memory_id]

    def test_a_folder_takes_no_neighbour(self, orc: Orchestrator) -> None:
        for mark, path in (("a", "/drop/in/x.md"), ("b", "/drop/inner.md"), ("c", "/drop/in")):
            source = Source(source_path=path, content_sha256=mark * 64)
            given = MemoryInput(content=f"{mark} says so.", source=source)
            orc.ingestion.store(Document(sha256=mark * 64, path=path, memories=(given,)))
        done = orc.sources.retract(path="/drop/in", reason="x")
        assert sorted(each.summary for each in done.retracted_items) == ["a says so.", "c says so."]

    def test_turns_and_facts_of_a_conversation_go_together(self, orc: Orchestrator) -> None:
        turn = orc.save_episode("I keep bees.", session_id="c1", source_role="user")
        fact = said(orc, "The user keeps bees.", {"conversation_id": "c1"}, derived_from=[turn])
        done = orc.sources.retract(conversation_id="c1", reason="x", dry_run=False)
        assert {each.memory_id for each in done.retracted_items} == {turn, fact}

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

    def test_what_something_else_replaced_as_well_is_not(self, orc: Orchestrator) -> None:
        old = said(orc, "The gate opens at 9.", MANUAL)
        for source in (FORUM, {"conversation_id": "desk"}):
            orc.relate(said(orc, f"At 8, by {source}.", source), "Updates", old)
        done = orc.sources.retract(conversation_id="forum", reason="x", dry_run=False)
        assert done.reinstated == 0
        assert status(orc, old) is MemoryStatus.SUPERSEDED

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
        else:
            dry = orc.sources.restore(conversation_id="second", reason="x")
            assert [each.memory_id for each in dry.replaced_items] == [old]
            orc.sources.restore(conversation_id="second", reason="x", dry_run=False)
            assert status(orc, old) is MemoryStatus.SUPERSEDED
            orc.sources.restore(conversation_id="first", reason="x", dry_run=False)
            assert [status(orc, one).value for one in (old, middle, top)] == [
                *("superseded",) * 2,
                "active",
            ]
        assert orc.verify().ok

    def test_what_is_hidden_between_is_not_named(
        self, orc: Orchestrator, service: MemoryService
    ) -> None:
        owner = service.orchestrator("orc-1", viewer=Viewer(clearance=Sensitivity.RESTRICTED))
        old, top = said(orc, "At 9.", MANUAL), said(orc, "At 7.", FORUM)
        middle = said(owner, "At 8.", MANUAL, sensitivity=Sensitivity.RESTRICTED)
        owner.relate(middle, "Updates", old)
        owner.relate(top, "Updates", middle)
        owner.retract(middle, reason="x")
        assert orc.sources.retract(conversation_id="forum", reason="x").reinstated_items == ()
        [told] = owner.sources.retract(conversation_id="forum", reason="x").reinstated_items
        assert (told.memory_id, told.by) == (old, (middle,))

    def test_what_replaced_it_replaces_it_again(self, orc: Orchestrator) -> None:
        old, new = said(orc, "At 9.", MANUAL), said(orc, "At 8.", FORUM)
        orc.relate(new, "Updates", old)
        orc.sources.retract(conversation_id="forum", reason="x", dry_run=False)
        orc.restore(new, reason="it was true")
        assert (status(orc, old), status(orc, new)) == (
            MemoryStatus.SUPERSEDED,
            MemoryStatus.ACTIVE,
        )
        assert orc.verify().ok

    def test_superseded_ones_go_as_well(self, orc: Orchestrator) -> None:
        old, new = said(orc, "At 9.", FORUM), said(orc, "At 8.", FORUM)
        orc.relate(new, "Updates", old)
        done = orc.sources.retract(conversation_id="forum", reason="x", dry_run=False)
        assert done.retracted == 2
        assert status(orc, old) is MemoryStatus.RETRACTED

    def test_what_is_hidden_is_neither_told_nor_taken(
        self, orc: Orchestrator, service: MemoryService
    ) -> None:
        seen = said(orc, "The gate opens at 9.", FORUM)
        closed = {"sensitivity": Sensitivity.RESTRICTED}
        owner = service.orchestrator("orc-1", viewer=Viewer(clearance=Sensitivity.RESTRICTED))
        hidden = said(owner, "The code is 1234.", FORUM, **closed)
        above = said(owner, "Codes are short.", MANUAL, derived_from=[hidden], **closed)
        done = orc.sources.retract(conversation_id="forum", reason="x", dry_run=False)
        assert [each.memory_id for each in done.retracted_items] == [seen]
        assert {status(owner, one) for one in (hidden, above)} == {MemoryStatus.ACTIVE}
        said(owner, "Alone.", {"workflow_run_id": "secret"}, **closed)
        with pytest.raises(NotFound):
            orc.sources.retract(workflow_run_id="secret", reason="x")
        with pytest.raises(NotFound):
            orc.sources.get("run", "secret")
        assert [each.name for each in orc.sources.list().items] == ["forum"]

    def test_exactly_one_source_is_named(self, orc: Orchestrator) -> None:
        given: tuple[dict[str, Any], ...] = ({}, {"path": "a", "conversation_id": "b"})
        for fields in given:
            with pytest.raises(InvalidInput):
                orc.sources.retract(reason="x", **fields)
        with pytest.raises(InvalidInput):
            orc.sources.retract(content_sha256="ABC", reason="x")


class TestRestoringASource:
    def test_everything_is_as_it_was(self, orc: Orchestrator, service: MemoryService) -> None:
        old, first, second = (
            said(orc, f"The gate opens at {hour}.", source)
            for hour, source in ((9, MANUAL), (8, FORUM), (7, FORUM))
        )
        orc.relate(first, "Updates", old)
        orc.relate(second, "Updates", first)
        drawn = orc.remember("Be early.", derived_from=[second])
        shared = said(orc, "The roof leaks.", MANUAL, confidence=0.6)
        own = said(orc, "The gate is red.", FORUM)
        for one, source in ((shared, FORUM), (own, {"conversation_id": "desk"})):
            repeats(service, one, source)
        ids = [old, first, second, drawn, shared, own]

        def state() -> list[tuple[MemoryStatus, float, int | None, int]]:
            return [
                (each.status, each.confidence, each.valid_until, trace.independent_sources)
                for each, trace in ((orc.get(one), orc.trace(one)) for one in ids)
            ]

        before = state()
        orc.sources.retract(conversation_id="forum", reason="poisoned", dry_run=False)
        between = state()
        assert [each[0].value for each in between] == [
            "active",
            *("retracted",) * 3,
            *("active",) * 2,
        ]
        dry = orc.sources.restore(conversation_id="forum", reason="genuine")
        assert state() == between
        done = orc.sources.restore(conversation_id="forum", reason="genuine", dry_run=False)
        assert done == dry.model_copy(update={"dry_run": False})
        assert [(each.memory_id, each.status.value) for each in done.restored_items] == [
            (first, "superseded"),
            (second, "active"),
            (drawn, "active"),
        ]
        assert [each.memory_id for each in done.replaced_items] == [old]
        assert {each.memory_id for each in done.counted_items} == {shared, own}
        after = state()
        assert [each[1] for each in after] == pytest.approx([each[1] for each in before])
        assert [(each[0], each[3]) for each in after] == [(each[0], each[3]) for each in before]
        assert orc.verify().ok
        # And as often as one likes.
        orc.sources.retract(conversation_id="forum", reason="poisoned", dry_run=False)
        assert state() == between
        again = orc.sources.restore(conversation_id="forum", reason="genuine", dry_run=False)
        assert again == done
        assert state() == after

    @pytest.mark.parametrize("taken", [FORUM, MANUAL])
    def test_that_it_did_not_count_for_a_while_is_seen_in_the_past(
        self, orc: Orchestrator, service: MemoryService, clock: FixedClock, taken: dict[str, Any]
    ) -> None:
        one = said(orc, "The roof leaks.", MANUAL, confidence=0.6)
        repeats(service, one, FORUM)

        def told(as_of: int | None) -> tuple[int, int]:
            found = orc.trace(one, as_of=None if as_of is None else iso(as_of))
            return found.independent_sources, len(found.supports)

        times = []
        for change in (orc.sources.retract, orc.sources.restore) * 2:
            times.append(clock.now_ms())
            clock.advance(ms=1_000)
            change(**taken, reason="x", dry_run=False)
        both, less = (2, 1), (1, 0) if taken is FORUM else (1, 1)
        assert [told(each) for each in (*times, None)] == [both, less, both, less, both]

    @pytest.mark.parametrize("gone", [(FORUM, MANUAL), (MANUAL, FORUM)])
    @pytest.mark.parametrize("genuine", [FORUM, MANUAL])
    def test_of_two_that_say_it_either_brings_it_back(
        self,
        orc: Orchestrator,
        service: MemoryService,
        gone: tuple[dict[str, Any], ...],
        genuine: dict[str, Any],
    ) -> None:
        one = said(orc, "The roof leaks.", MANUAL, confidence=0.6)
        repeats(service, one, FORUM)

        def state() -> tuple[MemoryStatus, float, int]:
            memory = orc.get(one)
            return memory.status, round(memory.confidence, 4), orc.trace(one).independent_sources

        whole = state()
        poisoned: dict[str, Any] = MANUAL if genuine is FORUM else FORUM
        orc.sources.retract(**poisoned, reason="x", dry_run=False)
        alone = state()
        assert (alone[0], alone[2]) == (MemoryStatus.ACTIVE, 1)
        orc.sources.restore(**poisoned, reason="x", dry_run=False)
        assert state() == whole
        for source in gone:
            orc.sources.retract(**source, reason="x", dry_run=False)
        assert state()[0] is MemoryStatus.RETRACTED
        dry = orc.sources.restore(**genuine, reason="x")
        assert [each.memory_id for each in dry.restored_items] == [one]
        assert dry.counted == 0
        orc.sources.restore(**genuine, reason="x", dry_run=False)
        assert state() == alone
        orc.sources.restore(**poisoned, reason="x", dry_run=False)
        assert state() == whole
        assert orc.verify().ok

    def test_but_not_what_was_taken_back_by_itself(
        self, orc: Orchestrator, service: MemoryService
    ) -> None:
        one = said(orc, "The roof leaks.", MANUAL)
        repeats(service, one, FORUM)
        orc.sources.retract(conversation_id="forum", reason="x", dry_run=False)
        orc.retract(one, reason="it does not")
        done = orc.sources.restore(conversation_id="forum", reason="x", dry_run=False)
        assert (done.restored, done.counted) == (0, 1)
        assert status(orc, one) is MemoryStatus.RETRACTED

    @pytest.mark.parametrize("way", ["from", "to"])
    def test_what_stays_open_is_told(self, orc: Orchestrator, way: str) -> None:
        lost, won = said(orc, "The gate is blue.", MANUAL), said(orc, "It is red.", FORUM)
        ends = (won, lost) if way == "from" else (lost, won)
        case = orc.relate(ends[0], "Contradicts", ends[1])
        undecided = orc.relate(won, "Contradicts", said(orc, "It is green.", MANUAL))
        beside = said(orc, "It is grey.", FORUM), said(orc, "It is white.", FORUM)
        kept = orc.relate(*(beside[0], "Contradicts", beside[1]))
        for edge, winner in ((case, won), (kept, beside[0])):
            orc.contradictions.resolve(edge, winner=winner, reason="x")
        dry = orc.sources.retract(conversation_id="forum", reason="x")
        assert [each.edge_id for each in dry.reopened_items] == [case]
        orc.sources.retract(conversation_id="forum", reason="x", dry_run=False)
        assert orc.contradictions.get(kept).state == "resolved"
        dry = orc.sources.restore(conversation_id="forum", reason="x")
        done = orc.sources.restore(conversation_id="forum", reason="x", dry_run=False)
        assert done == dry.model_copy(update={"dry_run": False})
        assert (done.left_open, done.cut) == (1, False)
        [told] = done.left_open_items
        assert told.edge_id == case
        assert (told.from_id, told.to_id) == (
            orc.contradictions.get(case).edge.from_id,
            orc.contradictions.get(case).edge.to_id,
        )
        assert orc.contradictions.get(undecided).state == "open"

    def test_what_is_moot_or_hidden_is_not_told_as_open(
        self, orc: Orchestrator, service: MemoryService
    ) -> None:
        owner = service.orchestrator("orc-1", viewer=Viewer(clearance=Sensitivity.RESTRICTED))
        won, lost = said(orc, "It is red.", FORUM), said(orc, "The gate is blue.", MANUAL)
        closed = said(owner, "It is dark.", MANUAL, sensitivity=Sensitivity.RESTRICTED)
        cases = [owner.relate(won, "Contradicts", one) for one in (lost, closed)]
        for edge in cases:
            owner.contradictions.resolve(edge, winner=won, reason="x")
        [told] = orc.sources.retract(conversation_id="forum", reason="x").reopened_items
        assert told.edge_id == cases[0]
        owner.sources.retract(conversation_id="forum", reason="x", dry_run=False)
        orc.retract(lost, reason="painted over")
        assert orc.sources.restore(conversation_id="forum", reason="x").left_open == 0
        [seen] = owner.sources.restore(conversation_id="forum", reason="x").left_open_items
        assert seen.edge_id == cases[1]

    def test_a_decided_contradiction_is_open_again(self, orc: Orchestrator) -> None:
        lost, won = said(orc, "The gate is blue.", MANUAL), said(orc, "It is red.", FORUM)
        case = orc.relate(won, "Contradicts", lost)
        orc.contradictions.resolve(case, winner=won, reason="x")
        orc.sources.retract(conversation_id="forum", reason="x", dry_run=False)
        orc.sources.restore(conversation_id="forum", reason="x", dry_run=False)
        assert orc.contradictions.get(case).state == "open"
        assert {status(orc, one) for one in (lost, won)} == {MemoryStatus.ACTIVE}

    def test_what_was_decided_since_stays(self, orc: Orchestrator) -> None:
        one, two, three = (said(orc, f"The gate has {n} bars.", FORUM) for n in (1, 2, 3))
        with pytest.raises(NotFound):
            orc.sources.restore(conversation_id="forum", reason="x")
        orc.retract(three, reason="wrong by itself")
        orc.sources.retract(conversation_id="forum", reason="x", dry_run=False)
        orc.restore(one, reason="it is so")
        orc.restore(two, reason="it is so")
        orc.retract(two, reason="it is not")
        with pytest.raises(NotFound):
            orc.sources.restore(conversation_id="forum", reason="x", dry_run=False)
        assert [status(orc, each).value for each in (one, two, three)] == [
            "active",
            "retracted",
            "retracted",
        ]

    def test_another_source_s_are_left(self, orc: Orchestrator) -> None:
        ours, theirs = said(orc, "One.", FORUM), said(orc, "Two.", MANUAL)
        for talk in ("forum", "manual"):
            orc.sources.retract(conversation_id=talk, reason="x", dry_run=False)
        orc.sources.restore(conversation_id="forum", reason="x", dry_run=False)
        assert status(orc, ours) is MemoryStatus.ACTIVE
        assert status(orc, theirs) is MemoryStatus.RETRACTED

    def test_what_is_hidden_is_neither_told_nor_brought_back(
        self, orc: Orchestrator, service: MemoryService
    ) -> None:
        owner = service.orchestrator("orc-1", viewer=Viewer(clearance=Sensitivity.RESTRICTED))
        hidden = said(owner, "The code is 1234.", FORUM, sensitivity=Sensitivity.RESTRICTED)
        owner.sources.retract(conversation_id="forum", reason="x", dry_run=False)
        with pytest.raises(NotFound):
            orc.sources.restore(conversation_id="forum", reason="x", dry_run=False)
        assert status(owner, hidden) is MemoryStatus.RETRACTED
        assert owner.sources.restore(conversation_id="forum", reason="x").restored == 1


class TestListing:
    def test_sources_are_counted_by_kind_and_name(self, orc: Orchestrator) -> None:
        orc.save_episode("Hello.", session_id="c1", source_role="user")
        first = said(orc, "One.", FORUM)
        said(orc, "Two.", FORUM)
        said(orc, "Three.", {"workflow_run_id": "r1"})
        orc.retract(first, reason="x")
        orc.sources.trust("conversation", "forum", "low", max_memories=5, reason="x")
        found = orc.sources.list().items
        assert [(each.kind.value, each.name) for each in found] == [
            ("conversation", "c1"),
            ("conversation", "forum"),
            ("run", "r1"),
        ]
        forum = found[1]
        assert (forum.memories, forum.active, forum.retracted) == (2, 1, 1)
        assert (forum.tier, forum.told, forum.limit) == (TrustTier.LOW, True, 5)
        assert found[2].tier is TrustTier.STANDARD
        assert not found[2].told
        assert orc.sources.get("conversation", "forum") == forum

    @pytest.mark.parametrize("limit", [1, 2, 3, 7])
    def test_pages_hold_each_once(self, orc: Orchestrator, limit: int) -> None:
        for n in range(3):
            said(orc, f"C {n}.", {"conversation_id": f"c{n}", "workflow_run_id": f"r{n}"})
        names, after = list[str](), None
        while True:
            page = orc.sources.list(limit=limit, after=after)
            names += [each.name for each in page.items]
            after = page.next_after
            if after is None:
                break
        assert names == ["c0", "c1", "c2", "r0", "r1", "r2"]

    @pytest.mark.parametrize("after", ["", "x", "run", "run:", "host:x"])
    def test_a_cursor_of_nothing_is_refused(self, orc: Orchestrator, after: str) -> None:
        with pytest.raises(InvalidInput):
            orc.sources.list(after=after)


Grounds = list[tuple[bool, list[int]]]


@given(
    st.lists(
        st.tuples(st.booleans(), st.lists(st.integers(0, 100), max_size=3)), min_size=1, max_size=9
    )
)
@settings(max_examples=25)
def test_what_goes_is_the_least_that_stands_on_the_source_alone(
    tmp_path_factory: pytest.TempPathFactory, drawn: Grounds
) -> None:
    """Against a plain reckoning over the whole, for any graph of grounds."""
    root = tmp_path_factory.mktemp("sources")
    with MemoryService(root, ids=CountingIds(), environ={}, background=False) as service:
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
        back = orc.sources.restore(conversation_id="forum", reason="y", dry_run=False)
        assert {each.memory_id for each in back.restored_items} == gone
        assert {status(orc, one) for one in ids} == {MemoryStatus.ACTIVE}


def test_the_code_of_a_case_is_told(orc: Orchestrator) -> None:
    orc.sources.trust("conversation", "forum", "low", reason="x")
    source = MANUAL | {"captured_by": "extractor"}
    old = said(orc, "At 9.", source, confidence=0.5)
    new = said(orc, "At 8.", FORUM)
    outcome = orc.agents.propose_relation(new, "Updates", old)
    assert (outcome.outcome, outcome.code) == ("stored", LESS_TRUSTED)
