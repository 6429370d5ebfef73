"""A store is all or nothing, also for a process that is killed amid it."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from pathlib import Path

from entity_workers import AGENT, ITEMS, ORC, SETTINGS, start, texts

from memgraph import MemoryEntity, MemoryService
from memgraph.model.enums import MemoryStatus

ROUNDS = 3
PATIENCE_S = 60.0


def batches(told: Path, word: str) -> set[tuple[str, int]]:
    """What processes told; a line that was cut short was not told."""
    whole = told.read_text().rpartition("\n")[0].splitlines() if told.exists() else []
    lines = (line.split() for line in whole)
    return {(who, int(batch)) for said, who, batch in lines if said == word}


def test_a_killed_store_leaves_all_of_a_batch_or_nothing(tmp_path: Path) -> None:
    root, told = tmp_path / "root", tmp_path / "told"
    with MemoryService(root, config=SETTINGS, environ={}, background=False) as service:
        service.orchestrator(ORC, create=True)
    chance = random.Random(7)
    for number in range(ROUNDS):
        process = start(root, told, f"p{number}")
        before = len(batches(told, "stored"))
        until = time.monotonic() + PATIENCE_S
        while len(batches(told, "stored")) == before and time.monotonic() < until:
            time.sleep(0.005)
        time.sleep(chance.uniform(0.0, 0.1))
        assert process.kill() == -9
    begun, stored = batches(told, "begun"), batches(told, "stored")
    assert {who for who, _ in stored} == {f"p{number}" for number in range(ROUNDS)}
    # At least one was killed between its first word and its last.
    assert begun - stored

    with MemoryService(root, config=SETTINGS, environ={}, background=False) as service:
        orc = service.orchestrator(ORC)
        found: Counter[tuple[str, int]] = Counter()
        page = orc.memories.list(limit=1_000)
        while page:
            for each in page:
                assert each.status is MemoryStatus.ACTIVE
                match = re.fullmatch(r"Item \d+ of batch (\d+) by (p\d)\.", each.content)
                assert match is not None
                found[match[2], int(match[1])] += 1
            page = orc.memories.list(limit=1_000, before=page[-1].memory_id)
        assert set(found.values()) == {ITEMS}
        assert stored <= set(found) <= begun
        assert orc.verify().ok
        # Who asks again for what was not acknowledged gets all of it, and none of it twice.
        ana = MemoryEntity(service, ORC, AGENT)
        known = {"tier": "SemanticMemory", "scope": "GlobalScope", "source": "UserSource"}
        for who, batch in sorted(begun - stored):
            ids = ana.store([{**known, "content": each} for each in texts(who, batch)]).stored_ids
            assert len(set(ids)) == ITEMS
        assert len(ana.list_items(limit=1_000)) == min(len(begun) * ITEMS, 1_000)
        assert orc.maintenance.stats()["memories"]["status"] == {"active": len(begun) * ITEMS}
