"""Several processes create, open and upgrade one orchestrator at once; one of them is killed."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import pytest
from processes import Process, often

from memgraph import MemoryService
from memgraph.clock import FixedClock
from memgraph.operations.maintenance import maintenance
from memgraph.paths import OrchestratorPaths
from memgraph.store import metadata, migrations
from memgraph.store.stores import store_of

pytestmark = pytest.mark.engines
NAME = "orc-1"
PROCESSES = 6
NEXT = """
from alembic import op
revision, down_revision, branch_labels, depends_on = "next", {head!r}, None, None
def upgrade():
    op.execute("INSERT INTO memory_metadata (key, value) VALUES ('step', 'next')")
"""


def service_of(root: Path, url: str) -> MemoryService:
    return MemoryService(root, config={"memory.storage.url": url}, environ={}, background=False)


def open_at(root: Path, url: str, at: float, told: Path) -> None:
    """Runs in a process: create the orchestrator or open it, and store a memory."""
    time.sleep(max(0.0, at - time.time()))
    with service_of(root, url) as service:
        text = f"Written by {told.name}."
        service.orchestrator(NAME, create=True).remember(text)
    told.write_text(text)


@pytest.mark.parametrize("kills", [False, True])
def test_processes_that_open_first_all_store(tmp_path: Path, storage_url: str, kills: bool) -> None:
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
        if kills:
            time.sleep(max(0.0, at - time.time()) + random.uniform(0.0, 0.6))
            started.pop().kill()
        assert [process.wait() for process in started] == [0] * len(started)
        with service_of(root, storage_url) as service:
            orc = service.orchestrator(NAME)
            stored = {memory.content for memory in orc.memories.list()}
            assert {file.read_text() for file in told.iterdir()} <= stored
            assert len(stored) >= len(started)
            assert orc.verify().findings == []
            with service.opened(NAME) as opened, opened.database.read() as snapshot:
                assert metadata.revision(snapshot) == metadata.SCHEMA_HEAD


def add_next(folder: Path) -> None:
    """Give this process a version of memgraph with one more migration."""
    migrations.migrations_folder = lambda: folder
    metadata.UPGRADABLE, metadata.SCHEMA_HEAD = (metadata.SCHEMA_HEAD,), "next"


def upgrade_at(root: Path, url: str, at: float, folder: Path) -> None:
    """Runs in a process: upgrade the orchestrator."""
    add_next(folder)
    time.sleep(max(0.0, at - time.time()))
    maintenance.upgrade(_paths(root, url), FixedClock(), url=url)


def _paths(root: Path, url: str) -> OrchestratorPaths:
    with service_of(root, url) as service:
        return service.paths(NAME)


def steps(root: Path, url: str) -> list[str]:
    with store_of(_paths(root, url), url).inspect() as snapshot:
        query = "SELECT value FROM memory_metadata WHERE key = 'step'"
        return [value for (value,) in snapshot.driver.execute(query)]


@pytest.mark.parametrize("kills", [False, True])
def test_processes_that_upgrade_at_once_upgrade_once(
    tmp_path: Path, storage_url: str, kills: bool
) -> None:
    root, folder = tmp_path / "root", tmp_path / "migrations"
    with service_of(root, storage_url) as service:
        service.orchestrator(NAME, create=True).remember("The gate closes at nine.")
    shutil.copytree(migrations.migrations_folder(), folder)
    (folder / "versions" / "next.py").write_text(NEXT.format(head=metadata.SCHEMA_HEAD))
    at = time.time() + 0.3
    started = [Process(upgrade_at, root, storage_url, at, folder) for _ in range(PROCESSES)]
    if kills:
        time.sleep(max(0.0, at - time.time()) + random.uniform(0.0, 0.6))
        started.pop().kill()
    assert [process.wait() for process in started] == [0] * len(started)
    assert steps(root, storage_url) == ["next"]
