"""The tables as classes that a person reads with: enums and values of JSON."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlmodel import Session, col, select

from memgraph import (
    EdgeType,
    MemoryKind,
    MemoryService,
    MemoryType,
    Orchestrator,
    Scope,
    Sensitivity,
)
from memgraph.clock import FixedClock, iso
from memgraph.model.tables import AuditRow, EdgeRow, MemoryRow


@pytest.fixture
def session(service: MemoryService, orc: Orchestrator) -> Iterator[Session]:
    with service.session(orc.name) as opened:
        yield opened


def memory(session: Session, memory_id: str) -> MemoryRow:
    return session.exec(select(MemoryRow).where(MemoryRow.memory_id == memory_id)).one()


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
    edge = session.exec(select(EdgeRow)).one()
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
