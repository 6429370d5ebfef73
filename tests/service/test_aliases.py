"""Protection of entities; types that a model mends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from model_server import KEY, ModelServer
from page_models import settings

from memgraph import MemoryService
from memgraph.clock import MS_PER_DAY, FixedClock
from memgraph.ids import CountingIds
from memgraph.model.enums import MemoryStatus
from memgraph.model.values import Source

pytestmark = pytest.mark.usefixtures("asks_once")

WHY = {"reason": "she signs so"}


@pytest.fixture
def asked(tmp_path: Path, server: ModelServer) -> Iterator[MemoryService]:
    with MemoryService(
        tmp_path / "root",
        clock=FixedClock(),
        ids=CountingIds(),
        environ={"KEY": KEY},
        background=False,
        config=settings(server, **{"memory.entities.accurate": ["regex", "llm"]}),
    ) as service:
        yield service


def test_a_model_mends_the_type_that_rules_gave(asked: MemoryService, server: ModelServer) -> None:
    orc = asked.orchestrator("orc-1", create=True)
    orc.remember("A new song by the Velmar Ocean came out.")
    assert orc.entities.get("Velmar Ocean").type == "location"
    entity_id = orc.entities.get("Velmar Ocean").entity_id
    found = {"entities": [{"name": "Velmar Ocean", "type": "person"}]}
    server.behave(server.writes(json.dumps(found)))
    orc.jobs.run("enrichment")
    mended = orc.entities.get("Velmar Ocean")
    assert (mended.type, mended.entity_id, mended.candidates) == ("person", entity_id, ())
    orc.remember("A new song by the Velmar Ocean is long.")
    assert orc.entities.get("Velmar Ocean").mention_count == 2
    orc.maintenance.rebuild(["entities"])
    again = orc.entities.get("Velmar Ocean")
    assert (again.type, again.mention_count, again.candidates) == ("person", 2, ())
    assert orc.verify().findings == []


def test_facts_about_a_protected_entity_stay(service: MemoryService) -> None:
    orc = service.orchestrator("orc-1", create=True)
    inferred = {"source": Source(captured_by="extractor"), "decay_rate": 0.1}
    kept = orc.remember("Mrs. Vitalia Borges likes tea.", **inferred)
    gone = orc.remember("Mrs. Osane Ruiz likes tea.", **inferred)
    orc.entities.protect("Vitalia Borges", **WHY)
    assert orc.entities.get("Vitalia Borges").protected
    service.clock.advance(ms=400 * MS_PER_DAY)  # type: ignore[attr-defined]  # a FixedClock
    orc.jobs.run("decay")
    assert orc.get(kept).status is MemoryStatus.ACTIVE
    assert orc.get(gone).status is MemoryStatus.RETRACTED
    orc.entities.protect("Vitalia Borges", protected=False, **WHY)
    orc.jobs.run("decay")
    assert orc.get(kept).status is MemoryStatus.RETRACTED
    assert orc.verify().findings == []
