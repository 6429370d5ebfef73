"""Several processes create and open one orchestrator at once; one of them is killed."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from processes import Process
from sampling import often

from memgraph import MemoryService
from memgraph.store import metadata

pytestmark = pytest.mark.engines
NAME = "orc-1"
PROCESSES = 6


def service_of(root: Path, url: str) -> MemoryService:
    return MemoryService(root, config={"memory.storage.url": url}, environ={}, background=False)


def open_at(root: Path, url: str, at: float, told: Path) -> None:
    """Runs in a process: create the orchestrator or open it, and store a memory."""
    time.sleep(max(0.0, at - time.time()))
    with service_of(root, url) as service:
        text = f"Written by {told.name}."
        service.orchestrator(NAME, create=True).remember(text)
    told.write_text(text)


def test_processes_that_open_first_all_store_though_one_is_killed(
    tmp_path: Path, storage_url: str
) -> None:
    for turn in range(often(8)):
        # Each turn has a folder; on a server the schema of the turn before goes.
        root, told = tmp_path / f"root-{turn}", tmp_path / f"told-{turn}"
        told.mkdir()
        if storage_url and turn:
            from tests.postgres_servers import drop_schemas

            drop_schemas(storage_url)
        at = time.time() + 0.3
        started = [
            Process(open_at, root, storage_url, at, told / str(number))
            for number in range(PROCESSES)
        ]
        time.sleep(max(0.0, at - time.time()) + random.uniform(0.0, 0.6))
        started.pop().kill()
        assert [process.wait() for process in started] == [0] * len(started)
        with service_of(root, storage_url) as service:
            orc = service.orchestrator(NAME)
            stored = {memory.content for memory in orc.memories.list()}
            # A process that was killed between making its file and writing it has told nothing.
            assert {text for file in told.iterdir() if (text := file.read_text())} <= stored
            assert len(stored) >= len(started)
            assert orc.verify().findings == []
            with service.opened(NAME) as opened, opened.database.read() as snapshot:
                assert metadata.revision(snapshot) == metadata.SCHEMA_HEAD
