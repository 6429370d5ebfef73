"""A store is all or nothing, also for a process that is killed amid it."""

from __future__ import annotations

import os
import random
import re
import time
from collections import Counter
from functools import partial
from pathlib import Path

from processes import Process, wait_until

from memgraph import MemoryEntity, MemoryService
from memgraph.model.enums import MemoryStatus

ORC, AGENT = "orc-1", "ana"
ITEMS = 60
SETTINGS = {"memory.storage.synchronous": "NORMAL", "memory.embedding.provider": "none"}


def texts(who: str, batch: int) -> list[str]:
    return [f"Item {number} of batch {batch} by {who}." for number in range(ITEMS)]


def _store(root: Path, told: Path, who: str) -> None:
    out = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    known = {"tier": "SemanticMemory", "scope": "GlobalScope", "source": "UserSource"}
    with MemoryService(root, config=SETTINGS, environ={}, background=False) as service:
        ana = MemoryEntity(service, ORC, AGENT)
        for batch in range(100_000):
            os.write(out, f"begun {who} {batch}\n".encode())
            ana.store([{**known, "content": each} for each in texts(who, batch)])
            os.write(out, f"stored {who} {batch}\n".encode())


ROUNDS = 3


def batches(told: Path, word: str) -> set[tuple[str, int]]:
    """What processes told; a line that was cut short was not told."""
    whole = told.read_text().rpartition("\n")[0].splitlines() if told.exists() else []
    lines = (line.split() for line in whole)
    return {(who, int(batch)) for said, who, batch in lines if said == word}


def _grew(told: Path, before: int) -> bool:
    return len(batches(told, "stored")) > before


def test_a_killed_store_leaves_all_of_a_batch_or_nothing(tmp_path: Path) -> None:
    root, told = tmp_path / "root", tmp_path / "told"
    with MemoryService(root, config=SETTINGS, environ={}, background=False) as service:
        service.orchestrator(ORC, create=True)
    chance = random.Random(7)
    for number in range(ROUNDS):
        process = Process(_store, root, told, f"p{number}")
        before = len(batches(told, "stored"))
        assert wait_until(partial(_grew, told, before))
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
