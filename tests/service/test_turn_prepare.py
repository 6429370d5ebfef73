"""A host that starts lets the memory load before the first message comes."""

from __future__ import annotations

from pathlib import Path

import pytest

from memgraph import MemoryHooks, MemoryService
from memgraph.clock import FixedClock
from memgraph.errors import InvalidInput
from memgraph.ids import CountingIds
from memgraph.providers.fake import FakeEmbedding

PATIENT_MS = 60_000


def test_it_asks_the_model_once_and_counts_as_no_access(tmp_path: Path) -> None:
    embedding = FakeEmbedding()
    with MemoryService(
        tmp_path,
        clock=FixedClock(),
        ids=CountingIds(),
        embedding=embedding,
        environ={},
        background=False,
    ) as service:
        orc = service.orchestrator("o", create=True)
        told = orc.remember("Get the harbour ready.")
        orc.maintenance.embed_pending()
        asked_before = len(embedding.calls)
        with MemoryHooks(service, "o", deadline_ms=PATIENT_MS) as hooks:
            assert hooks.prepare(PATIENT_MS) == ()
            assert embedding.calls[asked_before:] == [1]
            with service.opened("o") as opened:
                opened.receipts.flush()
            assert orc.get(told).access_count == 0
            assert hooks.on_message("Is the harbour ready?", conversation_id="c").codes == ()


def test_it_tells_what_turns_will_do_without(service: MemoryService) -> None:
    with MemoryHooks(service, "nobody") as hooks:
        codes = {each.code for each in hooks.prepare(PATIENT_MS)}
        assert "orchestrator.missing" in codes
        with pytest.raises(InvalidInput):
            hooks.prepare(0)
