"""What a memory's status and numbers are is what the journal says of them, whatever was done."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from working import NAME, SEES_ALL, fill, put, tampering, working

from memgraph import MemoryService, Orchestrator
from memgraph.audit.journal import differing, reasons
from memgraph.audit.verify import verify
from memgraph.clock import FixedClock
from memgraph.model.values import Source
from memgraph.operations.write.changes import strengthen
from memgraph.store import memories

FORUM, MANUAL = {"conversation_id": "forum"}, {"conversation_id": "manual"}


def _repeat(service: MemoryService, memory_id: str, source: dict[str, Any]) -> None:
    """A further source says it, as consolidation notes it."""
    noted = Source(**source)
    with service.opened(NAME) as opened, opened.transaction("test") as transaction:
        memories.insert_sources(transaction, {memories.source_id(noted): noted})
        source_id = memories.source_id(noted)
        transaction.record(strengthen(transaction, memory_id, source_id=source_id))


def _contradiction(orc: Orchestrator, text: str, clock: FixedClock) -> tuple[str, str, str]:
    item = put(orc, f"{text} is open.", confidence=0.7)
    other = put(orc, f"{text} is shut.", confidence=0.8)
    clock.advance(ms=1_000)
    return item, other, orc.relate(item, "Contradicts", other, reason="both")


def live(service: MemoryService, clock: FixedClock) -> dict[str, str]:
    """Every kind of change to a status or a confidence; gives ids by what was done last."""
    ids = fill(service.orchestrator(NAME, create=True))
    orc = service.orchestrator(NAME, viewer=SEES_ALL, actor="auditor")
    ids["stored"] = orc.remember("The bell rings.", confidence=0.4, importance=30, decay_rate=0.05)
    text = {"shared": MANUAL, "gone": FORUM, "returned": FORUM}
    for name, source in text.items():
        ids[name] = put(orc, f"It says {name} there.", source=source, confidence=0.6)
    for name, source in (("shared", FORUM), ("strengthened", MANUAL)):
        ids.setdefault(name, orc.remember("The roof leaks.", confidence=0.5, source=FORUM))
        clock.advance(ms=1_000)
        _repeat(service, ids[name], source)
    clock.advance(ms=1_000)
    orc.sources.retract(conversation_id="forum", reason="it is weakened", dry_run=False)
    clock.advance(ms=1_000)
    orc.restore(ids["returned"], reason="it is back")
    for name in ("lost", "reopened", "dismissed", "lost quietly", "returned quietly"):
        item, other, edge = _contradiction(orc, f"The {name} gate", clock)
        ids[name] = other
        if name == "dismissed":
            orc.contradictions.dismiss(edge, reason="no matter")
        else:
            if "quietly" in name:
                orc.retract(other, reason="evicted")
            clock.advance(ms=1_000)
            orc.contradictions.resolve(edge, winner=item, reason="seen")
        clock.advance(ms=1_000)
        if name in ("reopened", "dismissed", "returned quietly"):
            orc.contradictions.reopen(edge, reason="seen wrong")
    ids["replaced"] = orc.remember("The lamp is red.")
    clock.advance(ms=1_000)
    orc.correct(ids["replaced"], "The lamp is green.", reason="painted")
    ids["erased"] = orc.remember("A secret that nobody keeps for long.", confidence=0.3)
    orc.retract(ids["erased"], reason="A secret that nobody keeps for long.")
    orc.restore(ids["erased"], reason="back")
    clock.advance(ms=1_000)
    orc.erasure.erase(memory_id=ids["erased"], reason="asked", dry_run=False)
    clock.advance(ms=1_000)
    orc.sources.retract(conversation_id="forum", reason="after all", dry_run=False)
    return ids


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def service(tmp_path: Path, clock: FixedClock) -> Iterator[MemoryService]:
    with working(tmp_path, clock=clock) as opened:
        yield opened


def _codes(service: MemoryService) -> dict[str, int]:
    """What is compared with entries: digests of the tables know of every edit."""
    with service.opened(NAME) as opened:
        result = verify(opened.database, opened.anchor_file).totals
    return {code: count for code, count in result.items() if code != "table.edited"}


def _change(service: MemoryService, statement: str, *values: Any) -> None:
    with service.opened(NAME) as opened, tampering(opened.paths.database) as connection:
        connection.execute(statement, values)
        assert connection.execute("SELECT changes()").fetchone()[0] > 0


def test_every_value_and_reason_of_a_life_is_checked(
    service: MemoryService, clock: FixedClock
) -> None:
    ids = live(service, clock)
    assert _codes(service) == {}
    orc = service.orchestrator(NAME, viewer=SEES_ALL)
    with service.opened(NAME) as opened, opened.database.read() as connection:
        rows = connection.exec_driver_sql(
            "SELECT s.status_id, s.memory_id, s.reason, s.actor FROM memory_status s"
        ).fetchall()
        details = connection.exec_driver_sql("SELECT memory_id FROM memories").scalars().all()
    for field in ("confidence", "decay_rate", "importance"):
        for memory_id in details:
            before = getattr(orc.get(memory_id), field)
            statement = f"UPDATE memories SET {field} = ? WHERE memory_id = ?"
            _change(service, statement, 0 if before else 1, memory_id)
            assert _codes(service) == {"memory.edited": 1}, (field, memory_id)
            _change(service, statement, before, memory_id)
    for status_id, memory_id, *words in rows:
        for field, before in zip(("reason", "actor"), words, strict=True):
            if field == "actor" and memory_id == ids["erased"]:
                continue
            statement = f"UPDATE memory_status SET {field} = ? WHERE status_id = ?"
            _change(service, statement, "forged", status_id)
            assert _codes(service) == {"status.edited": 1}, (field, before)
            _change(service, statement, before, status_id)
    assert _codes(service) == {}


def test_a_clock_that_is_set_back_forges_no_reason(
    service: MemoryService, clock: FixedClock
) -> None:
    orc = service.orchestrator(NAME, create=True)
    stored = orc.remember("The mill turns.")
    clock.advance(ms=5_000)
    orc.retract(stored, reason="broken")
    clock.advance(ms=-3_000)
    orc.restore(stored, reason="mended")
    orc.retract(stored, reason="broken again")
    assert _codes(service) == {}
    _change(service, "UPDATE memory_status SET reason = 'forged' WHERE reason = 'mended'")
    assert _codes(service) == {"status.edited": 1}


@pytest.mark.parametrize(
    ("action", "details", "expected"),
    [
        ("retract", {"reason": "old"}, {"old"}),
        ("retract", {"reason": "old", "source": "path"}, {"its source was retracted: old"}),
        ("restore", {"reason": "old", "source": "path"}, {"its source was restored: old"}),
        ("resolve", {"reason": "seen"}, {"lost to fact_a: seen"}),
        (
            "supersede",
            {"by": "fact_b", "with": "fact_c"},
            {"replaced by fact_b, with fact_c of which it is a part"},
        ),
        ("retract", {"reason": "[erased]", "erased": True}, None),
        ("retract", {}, None),
        ("supersede", {}, None),
    ],
)
def test_an_entry_says_how_a_period_began_or_leaves_it_open(
    action: str, details: dict[str, Any], expected: set[str] | None
) -> None:
    assert reasons(action, "fact_a", details) == expected


def test_a_number_that_is_told_as_anything_else_differs() -> None:
    stored = {"confidence": 0.3, "decay_rate": 0.0, "importance": 50}
    assert differing(stored, {"confidence": 0.3 + 1e-12, "decay_rate": 0}) == []
    assert differing(stored, {"confidence": "0.3", "importance": 51}) == [
        "confidence",
        "importance",
    ]
