"""The tables as classes that a person reads with: relationships, enums and values of JSON."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from sqlmodel import Session, col, select

from memgraph import (
    EdgeType,
    MemoryKind,
    MemoryService,
    MemoryStatus,
    MemoryType,
    Orchestrator,
    Scope,
    Sensitivity,
    SourceType,
)
from memgraph.clock import FixedClock, iso
from memgraph.model.enums import CapturedBy
from memgraph.model.tables import (
    AuditRow,
    EntityRow,
    MemoryRow,
)


@pytest.fixture
def session(service: MemoryService, orc: Orchestrator) -> Iterator[Session]:
    with service.session(orc.name) as opened:
        yield opened


def memory(session: Session, memory_id: str) -> MemoryRow:
    return session.exec(select(MemoryRow).where(MemoryRow.memory_id == memory_id)).one()


def test_edges_lead_from_a_memory_to_both_its_neighbours(
    session: Session, orc: Orchestrator
) -> None:
    ground = orc.remember("The lease ends in May.")
    middle = orc.remember("We look for another office.")
    result = orc.remember("The office moves to Dublin.")
    orc.relate(middle, EdgeType.CAUSED_BY, ground)
    orc.relate(result, EdgeType.PART_OF, middle, weight=0.4)

    row = memory(session, middle)
    (out,), (into,) = row.edges_out, row.edges_in
    assert (out.edge_type, out.from_memory, out.to_memory.memory_id) == (
        EdgeType.CAUSED_BY,
        row,
        ground,
    )
    assert (into.edge_type, into.from_memory.memory_id, into.to_memory) == (
        EdgeType.PART_OF,
        result,
        row,
    )
    assert into.weight == 0.4
    assert memory(session, ground).edges_out == []


def test_a_memory_leads_to_its_source_and_a_source_to_its_memories(
    session: Session, orc: Orchestrator
) -> None:
    source_fields = {
        "source_type": "workflow_output",
        "captured_by": "system",
        "workflow_run_id": "run-7",
    }
    both = [
        orc.remember("The build takes nine minutes.", source=source_fields),
        orc.remember("The cache is cold on Mondays.", source=source_fields),
    ]
    orc.remember("Ana typed this.")

    source = memory(session, both[0]).source
    assert (source.source_type, source.captured_by) == (
        SourceType.WORKFLOW_OUTPUT,
        CapturedBy.SYSTEM,
    )
    assert source.workflow_run_id == "run-7"
    assert [each.memory_id for each in source.memories] == both


def test_further_sources_of_a_memory(session: Session, orc: Orchestrator) -> None:
    for talk in ("s-1", "s-2"):
        orc.save_episode("TODO: call the tool shop.", session_id=talk, source_role="user")
        orc.jobs.consolidate(talk)
    [fact] = orc.memories.list(kinds=["fact"])
    first = fact.memory_id

    (support,) = memory(session, first).supports
    assert support.source.conversation_id == "s-2"
    assert support.ended_at is None


def test_history_grounds_and_what_was_derived(
    session: Session, orc: Orchestrator, clock: FixedClock
) -> None:
    poster = orc.remember("The gate closes at nine.")
    website = orc.remember("Deliveries end at eight.")
    plan = orc.remember("Vans come at seven.", derived_from=[poster, website])
    before = clock.now_ms()
    clock.advance(days=2)
    orc.retract(poster, reason="it was never up")

    row = memory(session, poster)
    assert [(each.status, each.since, each.until) for each in row.history] == [
        (MemoryStatus.ACTIVE, before, clock.now_ms()),
        (MemoryStatus.RETRACTED, clock.now_ms(), None),
    ]
    assert row.history[-1].reason == "it was never up"
    assert row.history[-1].memory is row
    assert [each.memory_id for each in memory(session, plan).grounds] == [poster, website]
    assert [each.memory_id for each in row.derived] == [plan]
    assert (row.grounds, memory(session, plan).derived) == ([], [])


def test_entities_lead_to_their_memories_and_other_names(
    session: Session, orc: Orchestrator
) -> None:
    names = [
        orc.remember("Ada Lovelace likes Berlin."),
        orc.remember("We met Ada Lovelace in Berlin."),
        orc.remember("Ada Byron moved to Berlin."),
    ]
    orc.remember("The pipes are from Acme Corp.")
    orc.remember("ACME Corp sent the bill.")
    orc.entities.merge("Ada Lovelace", "Ada Byron", reason="she married")

    statement = select(EntityRow).where(EntityRow.canonical_name == "Ada Lovelace")
    ada = session.exec(statement).one()
    assert [aliase.memory_id for aliase in ada.memories] == names
    (byron,) = ada.merged
    assert (byron.canonical_name, byron.memories, byron.merged) == ("Ada Byron", [], [])
    assert ada in memory(session, names[2]).entities
    acme = session.exec(select(EntityRow).where(EntityRow.name_key == "acme corp")).one()
    assert [aliase.alias for aliase in acme.aliases] == ["ACME Corp"]


def test_enums_times_and_json_come_back_as_values(
    session: Session, orc: Orchestrator, clock: FixedClock
) -> None:
    item = orc.remember(
        "Ship the release.",
        type="Todo",
        tags=["ops", "café"],
        attributes={"done": True, "who": {"name": "Ana"}},
        event_time="2025-12-24T18:00:00Z",
    )
    other = orc.remember("Hold the release.", type="Todo")
    orc.contradictions.resolve(
        orc.relate(item, EdgeType.CONTRADICTS, other), winner=item, reason="shipped"
    )

    row = memory(session, item)
    assert (row.kind, row.type, row.scope) == (
        MemoryKind.FACT,
        MemoryType.TODO,
        Scope.GLOBAL,
    )
    assert type(row.sensitivity) is Sensitivity
    assert row.tags == ["ops", "café"]
    assert row.attributes["who"] == {"name": "Ana"}
    assert row.event_time is not None
    assert iso(row.event_time) == "2025-12-24T18:00:00.000Z"
    assert row.created_at == clock.now_ms()
    (edge,) = row.edges_out
    assert type(edge.edge_type) is EdgeType
    assert edge.resolution is not None
    assert edge.resolution["reason"] == "shipped"
    last = session.exec(select(AuditRow).order_by(col(AuditRow.seq).desc())).first()
    assert last is not None
    assert last.details["winner_id"] == item


def test_json_is_asked_for_by_its_paths(session: Session, orc: Orchestrator) -> None:
    done = orc.remember("Ship the release.", attributes={"done": True, "who": {"name": "Ana"}})
    orc.remember("Paint the fence.", attributes={"done": False, "who": {"name": "Ben"}})

    attributes = MemoryRow.attributes
    for condition in (
        attributes["done"].as_boolean(),
        attributes[("who", "name")].as_string() == "Ana",
    ):
        assert session.exec(select(MemoryRow.memory_id).where(condition)).all() == [done]
    assert session.exec(select(MemoryRow.attributes).where(MemoryRow.memory_id == done)).one() == {
        "done": True,
        "who": {"name": "Ana"},
    }


def test_classes_of_the_same_names_do_not_disturb() -> None:
    """A program may have an ``EdgeRow`` of its own: SQLModel knows all classes of a process."""
    script = """
from sqlmodel import Field, SQLModel
from sqlalchemy.orm import configure_mappers
from memgraph.model.tables import MemoryRow as ours

class MemoryRow(SQLModel, table=True):
    __tablename__ = "mine"
    pk: int = Field(primary_key=True)

class EdgeRow(SQLModel, table=True):
    __tablename__ = "mine_too"
    pk: int = Field(primary_key=True)

class SourceRow(SQLModel, table=True):
    __tablename__ = "mine_as_well"
    pk: int = Field(primary_key=True)

configure_mappers()
print(ours.edges_out.property.mapper.class_.__module__)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.returncode) == ("memgraph.model.tables", 0), done.stderr
