"""Several processes with several threads each on one orchestrator, one of them killed on the way;
and very many orchestrators through one service."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from processes import PATIENCE_S
from service_workers import NAME, Process

from memgraph import MemoryService, MemoryStatus
from memgraph.providers.fake import FakeEmbedding
from memgraph.service import pool

PROCESSES = 3
STEPS = 8
MANY = 20


def column(service: MemoryService, name: str, statement: str) -> list[Any]:
    with service.opened(name) as opened, opened.database.read() as connection:
        return list(connection.exec_driver_sql(statement).scalars())


def work_until(processes: list[Process], steps: int) -> None:
    """Wait until every process was told of so much."""
    deadline = time.monotonic() + PATIENCE_S
    while any(len(each.acknowledged) < steps for each in processes):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_processes_and_threads_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with MemoryService(root, environ={}, embedding=FakeEmbedding(16)) as service:
        service.create(NAME)
    with ExitStack() as stack:
        processes = [
            stack.enter_context(Process(root, tmp_path / f"told-{number}"))
            for number in range(PROCESSES)
        ]
        work_until(processes, STEPS)
        processes[0].kill()
        work_until(processes[1:], 2 * STEPS)
        codes = [each.finish() for each in processes[1:]]
    assert codes == [0] * (PROCESSES - 1)
    told = [one for each in processes for one in each.acknowledged]

    with MemoryService(root, environ={}, embedding=FakeEmbedding(16), background=False) as service:
        orc = service.orchestrator(NAME)
        assert orc.verify().findings == []
        # Nothing was stored twice under one id, nothing that a caller was told of is missing.
        memories = set(column(service, NAME, "SELECT memory_id FROM memories"))
        assert {one for what, one in told if what == "memory"} <= memories
        edges = set(column(service, NAME, "SELECT edge_id FROM memory_edges"))
        assert {one for what, one in told if what == "edge"} <= edges
        decided = set(
            column(service, NAME, "SELECT edge_id FROM memory_edges WHERE resolved_at IS NOT NULL")
        )
        assert {one for what, one in told if what == "resolved"} <= decided
        # One conversation that all of them spoke in has one order without gaps.
        places = column(
            service, NAME, "SELECT sequence FROM memories WHERE kind = 'episode' ORDER BY 1"
        )
        assert places == list(range(len(places)))
        shared = orc.memories.list(statuses=(MemoryStatus.ACTIVE,), limit=1_000)
        texts = Counter(each.content for each in shared if each.kind == "fact")
        assert max(texts.values()) == 1
        orc.settle()
        assert orc.maintenance.embeddings_status().states["pending"] == 0
        assert orc.verify().ok


def test_many_orchestrators_share_a_few_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "MAX_OPEN", 8)
    names = [f"orc-{number:03d}" for number in range(MANY)]
    config = {"memory.storage.synchronous": "NORMAL"}

    def visit(name: str) -> tuple[str, ...]:
        orc = service.orchestrator(name, create=True)
        orc.remember(f"The lamp of {name} is lit.")
        return tuple(item.memory.content for item in orc.recall("lamp").items)

    with (
        MemoryService(tmp_path, environ={}, embedding=FakeEmbedding(16), config=config) as service,
        ThreadPoolExecutor(4) as threads,
    ):
        for _ in range(2):
            # The second round finds each closed again, and its memory there already.
            answers = list(threads.map(visit, names))
            assert answers == [(f"The lamp of {name} is lit.",) for name in names]
        assert len(list(tmp_path.glob("*/memory/memory.db-wal"))) <= 8 + 4
    assert not list(tmp_path.glob("*/memory/memory.db-wal"))
