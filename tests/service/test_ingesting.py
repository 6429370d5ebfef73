"""A dropped file is stored as a whole, once, and joined with what it names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memgraph import (
    EdgeInput,
    EdgeType,
    MemoryInput,
    MemoryService,
    MemoryStatus,
    Orchestrator,
    Viewer,
)
from memgraph.clock import FixedClock
from memgraph.errors import DatabaseFull
from memgraph.model.enums import CapturedBy, Sensitivity, SourceType
from memgraph.model.sources import Document, FileLink
from memgraph.model.values import Source
from memgraph.operations.ingestion import ingest
from tests.pair_readers import CHANGES, ScriptedReader, reading


@pytest.fixture
def service(tmp_path: Path, clock: FixedClock, storage_url: str) -> Iterator[MemoryService]:
    """A service whose reader of pairs says of all pairs that the later changes the earlier."""
    reader = ScriptedReader(otherwise=CHANGES)
    with reading(tmp_path / "root", reader, url=storage_url, clock=clock) as made:
        yield made


def document(mark: str, *texts: str, **fields: Any) -> Document:
    source = source_of(mark)
    given = tuple(
        MemoryInput(key=f"m{n}", content=text, source=source) for n, text in enumerate(texts)
    )
    return Document(sha256=mark * 64, path=f"/drop/{mark}.md", memories=given, main="#m0", **fields)


def source_of(mark: str, path: str | None = None) -> Source:
    return Source(
        source_type=SourceType.INGEST_FILE,
        captured_by=CapturedBy.EXTRACTOR,
        source_path=path or f"/drop/{mark}.md",
        content_sha256=mark * 64,
    )


def test_a_content_is_taken_once_for_ever(orc: Orchestrator) -> None:
    orc.ingestion.reject("a" * 64, path="/drop/a.md", manifest={"reason": "too_large"})
    told = orc.ingestion.get("a" * 64)
    assert (told.status, told.manifest) == ("rejected", {"reason": "too_large"})
    assert orc.ingestion.stored("a" * 64) is None
    first = orc.ingestion.store(document("a", "The roof leaks.", "The cellar is dry."))
    again = orc.ingestion.store(document("a", "The roof leaks.", "The cellar is dry."))
    assert [each.outcome for each in first.memories] == ["stored", "stored"]
    assert (again.outcome, again.memories) == ("duplicate", ())
    assert again.manifest == first.manifest
    orc.ingestion.reject("a" * 64, path="/drop/a.md", manifest={"reason": "late"})
    assert orc.ingestion.get("a" * 64).status == "processed"
    assert orc.maintenance.stats()["memories"]["status"] == {"active": 2}


def test_edges_within_the_file_follow_its_keys(orc: Orchestrator) -> None:
    edge = EdgeInput(from_id="#m1", to_id="#m0", edge_type=EdgeType.PART_OF)
    lost = EdgeInput(from_id="#m1", to_id="#m9", edge_type=EdgeType.PART_OF)
    outcome = orc.ingestion.store(document("a", "A house.", "Its roof.", edges=(edge, lost)))
    assert [each.outcome for each in outcome.edges] == ["stored", "rejected"]
    whole, part = (str(each.memory_id) for each in outcome.memories)
    assert [(e.from_id, e.to_id) for e in orc.graph.subgraph([whole]).edges] == [(part, whole)]


@pytest.mark.parametrize("newer_first", [True, False])
def test_a_link_waits_for_the_file_it_names(orc: Orchestrator, newer_first: bool) -> None:
    older = document("a", "We bake at night.", document_keys=("adr:1",))
    link = FileLink(local="#m0", target="adr:1", edge_type=EdgeType.UPDATES, reason="Supersedes 1")
    newer = document("b", "We bake in the morning.", document_keys=("adr:2",), links=(link,))
    outcomes = [orc.ingestion.store(d) for d in ((newer, older) if newer_first else (older, newer))]
    old = str(outcomes[1 if newer_first else 0].memories[0].memory_id)
    new = str(outcomes[0 if newer_first else 1].memories[0].memory_id)
    assert orc.get(old).status is MemoryStatus.SUPERSEDED
    assert orc.get(new).status is MemoryStatus.ACTIVE
    assert [each.manifest["links_waiting"] for each in outcomes] == (
        [1, 0] if newer_first else [0, 0]
    )
    assert sum(each.manifest["links_made"] for each in outcomes) == 1


def test_a_loose_key_counts_only_if_one_file_has_it(orc: Orchestrator) -> None:
    for mark, text in (("a", "One."), ("b", "Two.")):
        orc.ingestion.store(document(mark, text, document_keys=(f"file:{mark}", "name:readme")))
    link = FileLink(
        local="#m0", target="file:gone", edge_type=EdgeType.RELATED_TO, fallbacks=("name:readme",)
    )
    stored = orc.ingestion.store(document("c", "Three.", links=(link,)))
    assert stored.manifest["links_made"] == 0


def test_a_failure_on_the_way_leaves_nothing(
    orc: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise DatabaseFull("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(ingest, "replace", full)
        with pytest.raises(DatabaseFull):
            orc.ingestion.store(document("a", "The roof leaks."))
    assert orc.maintenance.stats()["memories"] == {"kind": {}, "type": {}, "status": {}}
    assert orc.maintenance.stats()["journal_entries"] == 0
    assert orc.ingestion.store(document("a", "The roof leaks.")).outcome == "stored"


def ledger(mark: str, *days: int, path: str | None = None, **fields: Any) -> Document:
    """A file that says for how long the backups of the ledger are kept."""
    source = source_of(mark, path)
    memories = tuple(
        MemoryInput(
            key=f"m{each}",
            content=f"Backups of the ledger are kept for {each} days.",
            confidence=0.9,
            source=source,
            **fields,
        )
        for each in days
    )
    return Document(sha256=mark * 64, path=path or f"/drop/{mark}.md", memories=memories)


def test_what_another_file_says_contradicts_and_what_a_later_version_says_changes(
    orc: Orchestrator, clock: FixedClock
) -> None:
    old = orc.ingestion.store(ledger("a", 14)).memories[0].memory_id
    clock.advance(ms=60_000)
    outcome = orc.ingestion.store(ledger("b", 60))
    assert outcome.manifest["to_compare"] == 1
    orc.settle()
    [case] = orc.contradictions.list().items
    assert case.state == "open"
    assert {case.first.status, case.second.status} == {MemoryStatus.ACTIVE}
    assert case.edge.from_id == outcome.memories[0].memory_id
    # The later one's edge quotes the earlier.
    assert "14 days" in (case.edge.reason or "")
    clock.advance(ms=60_000)
    orc.ingestion.store(ledger("c", 90, path="/drop/a.md"))
    marks = {(mark.edge_type, mark.to_id) for mark in orc.settle().compared.marks}
    assert (EdgeType.UPDATES, old) in marks
    assert orc.get(str(old)).status is MemoryStatus.ACTIVE


def test_a_link_that_cannot_be_is_told(orc: Orchestrator) -> None:
    def updates(target: str) -> FileLink:
        return FileLink(local="#m0", target=target, edge_type=EdgeType.UPDATES)

    orc.ingestion.store(document("a", "One.", document_keys=("k:1",), links=(updates("k:2"),)))
    outcome = orc.ingestion.store(
        document("b", "Two.", document_keys=("k:2",), links=(updates("k:1"),))
    )
    assert outcome.manifest["links_made"] == 1
    assert outcome.manifest["links_rejected"] == ["memory.conflict"]


@pytest.fixture
def bound(service: MemoryService, orc: Orchestrator) -> Orchestrator:
    """A handle that stores and joins only what it sees: no more than Internal."""
    return service.orchestrator(orc.name, viewer=Viewer(confined=True))


def hidden(document: Document) -> Document:
    fields = {"sensitivity": Sensitivity.RESTRICTED}
    kept = tuple(each.model_copy(update=fields) for each in document.memories)
    return document.model_copy(update={"memories": kept})


def test_a_link_to_a_hidden_file_is_as_one_to_a_file_that_has_not_come(
    orc: Orchestrator, bound: Orchestrator
) -> None:
    orc.ingestion.store(hidden(document("a", "Secret.", document_keys=("k:hidden",))))
    outcomes = [
        bound.ingestion.store(
            document(
                mark,
                text,
                links=(FileLink(local="#m0", target=key, edge_type=EdgeType.RELATED_TO),),
            )
        )
        for mark, text, key in (("b", "One.", "k:hidden"), ("c", "Two.", "k:absent"))
    ]
    names = ("links_made", "links_waiting", "links_rejected")
    assert [[each.manifest[name] for name in names] for each in outcomes] == [[0, 1, []]] * 2


def test_a_hidden_file_does_not_stand_before_one_of_the_same_name(
    orc: Orchestrator, bound: Orchestrator
) -> None:
    named = {"document_keys": ("k:1", "name:readme")}
    orc.ingestion.store(hidden(document("a", "Secret.", **named)))
    orc.ingestion.store(document("b", "Open.", **named))
    for mark, target, fallbacks in (("c", "k:1", ()), ("d", "k:2", ("name:readme",))):
        link = FileLink(local="#m0", target=target, edge_type=EdgeType.PART_OF, fallbacks=fallbacks)
        found = bound.ingestion.store(document(mark, f"Linked by {mark}.", links=(link,)))
        assert (found.manifest["links_made"], found.manifest["links_waiting"]) == (1, 0)


def test_hidden_statements_are_neither_compared_nor_in_the_way(
    orc: Orchestrator, bound: Orchestrator, clock: FixedClock
) -> None:
    orc.ingestion.store(ledger("a", *range(200, 240), sensitivity=Sensitivity.RESTRICTED))
    stored = orc.ingestion.store(ledger("b", 14))
    clock.advance(ms=60_000)
    bound.ingestion.store(ledger("c", 60))
    assert len(bound.settle().compared.marks) == 1
    [case] = orc.contradictions.list().items
    assert case.first.memory_id == stored.memories[0].memory_id


def test_a_replaced_decision_takes_no_hidden_part_with_it(
    orc: Orchestrator, service: MemoryService, bound: Orchestrator
) -> None:
    source = source_of("a")
    detail = {"attributes": {"role": "decision_detail"}, "source": source}
    parts = (
        MemoryInput(key="m0", content="We bake at night.", source=source),
        MemoryInput(key="m1", content="The oven is free then.", **detail),
        MemoryInput(key="m2", content="Otto is ill.", sensitivity=Sensitivity.RESTRICTED, **detail),
    )
    edges = tuple(
        EdgeInput(from_id=f"#m{n}", to_id="#m0", edge_type=EdgeType.PART_OF) for n in (1, 2)
    )
    older = document("a", document_keys=("adr:1",), edges=edges)
    stored = orc.ingestion.store(older.model_copy(update={"memories": parts}))
    link = FileLink(local="#m0", target="adr:1", edge_type=EdgeType.UPDATES)
    bound.ingestion.store(document("b", "We bake in the morning.", links=(link,)))
    host = service.orchestrator(orc.name, viewer=Viewer(clearance=Sensitivity.RESTRICTED))
    assert [host.get(str(each.memory_id)).status for each in stored.memories] == [
        MemoryStatus.SUPERSEDED,
        MemoryStatus.SUPERSEDED,
        MemoryStatus.ACTIVE,
    ]
