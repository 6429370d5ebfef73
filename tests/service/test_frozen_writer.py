"""A process that is stopped in the middle of a write does not hold up the others for long."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import Process, wait_until

from memgraph import MemoryService
from memgraph.errors import DatabaseBusy, MemgraphError
from memgraph.model.enums import JobName
from memgraph.service.job_runs import patiently
from memgraph.store import metadata

NAME = "orc-1"


def service_of(root: Path, url: str, busy_timeout_ms: int | None = None) -> MemoryService:
    config: dict[str, object] = {"memory.embedding.provider": "none"}
    if url:
        config["memory.storage.url"] = url
    if busy_timeout_ms is not None:
        config["memory.storage.busy_timeout_ms"] = busy_timeout_ms
    return MemoryService(root, environ=dict(os.environ), config=config, background=False)


def write_and_wait(root: Path, url: str, begun: Path, committed: Path) -> None:
    """Runs in the process: it is stopped between the two files."""
    with service_of(root, url) as service, service.opened(NAME) as opened:
        try:
            with opened.database.write() as transaction:
                metadata.put(transaction, "frozen", "1")
                begun.touch()
                time.sleep(1.0)
        except MemgraphError as error:
            committed.write_text(error.code)
        else:
            committed.write_text("committed")


@pytest.fixture
def frozen(tmp_path: Path, storage_url: str) -> Iterator[tuple[Path, str, Process, Path]]:
    root, begun, committed = tmp_path / "root", tmp_path / "begun", tmp_path / "committed"
    with service_of(root, storage_url) as service:
        service.orchestrator(NAME, create=True).remember("The gate closes at nine.")
    with Process(write_and_wait, root, storage_url, begun, committed) as process:
        assert wait_until(begun.exists)
        os.kill(process.pid, signal.SIGSTOP)
        yield root, storage_url, process, committed


@pytest.mark.engines
def test_a_write_gives_up_within_seconds_and_names_the_process(
    frozen: tuple[Path, str, Process, Path],
) -> None:
    root, url, process, committed = frozen
    with service_of(root, url) as service:
        orc = service.orchestrator(NAME)
        began = time.monotonic()
        assert orc.recall("When does the gate close?").items
        with pytest.raises(DatabaseBusy, match=rf"process {process.pid} on \S+ holds") as caught:
            orc.remember("The gate opens at eight.")
        assert 1.5 < time.monotonic() - began < 30
        assert caught.value.details["pid"] == str(process.pid)
        if url:
            # The server ends the frozen transaction.
            assert wait_until(lambda: _is_stored(service))
        os.kill(process.pid, signal.SIGCONT)
        assert process.wait() == 0
        assert _is_stored(service)
        ended = ("storage.busy", "storage.unreachable") if url else ("committed",)
        assert committed.read_text() in ended
        with service.opened(NAME) as opened, opened.database.read() as snapshot:
            assert metadata.get(snapshot, "frozen") == (None if url else "1")
        assert orc.verify().ok


def _is_stored(service: MemoryService) -> bool:
    try:
        return bool(service.orchestrator(NAME).remember("The gate opens at eight."))
    except DatabaseBusy:
        return False


def test_jobs_wait_longer_and_threads_no_longer_than_others(
    frozen: tuple[Path, str, Process, Path],
) -> None:
    root, url, _, _ = frozen
    with service_of(root, url, 200) as service, service.opened(NAME) as opened:
        began = time.monotonic()
        with pytest.raises(DatabaseBusy):
            service.orchestrator(NAME).jobs.run(JobName.DECAY)
        assert time.monotonic() - began > 1.0
        with patiently(), pytest.raises(DatabaseBusy), opened.database.write():
            pass
