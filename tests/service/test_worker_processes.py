"""Several workers on one root: each job has one runner, and what a dead one left is taken over."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from processes import PATIENCE_S, Process, wait_until
from programs import Program

from memgraph import MemoryService
from memgraph.errors import Conflict
from memgraph.model.enums import JobName, JobState
from memgraph.model.jobs import LEASE_LOST, JobReport, JobRun
from memgraph.service import job_runs
from memgraph.store import jobs
from memgraph.store.files import is_dead, process_name

LEASE_MS = 3_600_000
SETTINGS = {
    "memory.storage.synchronous": "NORMAL",
    "memory.embedding.provider": "none",
}
QUICK, ENDLESS = "quick", "endless"


class WorkerProcess(Process):
    """A worker over a root until it is to finish; a file has a line for every job it began.

    Args:
        manner: ``quick``: jobs end at once; ``endless``: they never do.
    """

    def __init__(self, root: Path, began: Path, manner: str) -> None:
        self._stop = began.with_name(f"stop-{secrets.token_hex(4)}")
        super().__init__(_work, root, began, manner, self._stop)

    def finish(self) -> int:
        """Let it come to its end; gives its exit code."""
        self._stop.touch()
        return self.wait()


def _work(root: Path, began: Path, manner: str, end: Path) -> None:
    """Runs in the process."""

    def work(opened: Any, run: Any, how: Mapping[str, Any]) -> JobReport:
        with began.open("a") as file:
            file.write(f"{opened.paths.name} {run.job} {run.due_at} {os.getpid()}\n")
        while manner == ENDLESS and not how["stop"]():
            time.sleep(0.01)
        return JobReport.done({"done": 1})

    with (
        patch.object(job_runs, "_work", work),
        patch.object(jobs, "LEASE_MS", LEASE_MS),
        MemoryService(root, environ={}, config=SETTINGS, background=False) as service,
        service.worker(),
    ):
        wait_until(end.exists)


ORCHESTRATORS = 5


@pytest.fixture
def service(tmp_path: Path) -> Iterator[MemoryService]:
    with MemoryService(tmp_path / "root", environ={}, config=SETTINGS, background=False) as made:
        yield made


def overdue(service: MemoryService, name: str) -> None:
    """An orchestrator that seems to have been there for ever, and owes a run of every job."""
    service.create(name)
    with service.opened(name) as opened, opened.database.write() as connection:
        connection.exec_driver_sql(
            "UPDATE memory_metadata SET value = '1' WHERE key = 'created_at'"
        )


def runs(service: MemoryService, name: str) -> Sequence[JobRun]:
    return service.orchestrator(name).jobs.list()


def test_each_due_job_runs_once_though_two_workers_see_it(
    service: MemoryService, tmp_path: Path
) -> None:
    names = [f"orc-{number}" for number in range(ORCHESTRATORS)]
    for name in names:
        overdue(service, name)
    began = tmp_path / "began"

    def all_done() -> bool:
        return all(
            sum(each.state is JobState.DONE for each in runs(service, name)) >= len(JobName)
            for name in names
        )

    with (
        WorkerProcess(service.root, began, QUICK) as first,
        WorkerProcess(service.root, began, QUICK) as second,
    ):
        assert wait_until(all_done)
        assert (first.finish(), second.finish()) == (0, 0)
    lines = Counter(tuple(line.split()[:3]) for line in began.read_text().splitlines())
    assert len(lines) == ORCHESTRATORS * len(JobName)
    assert set(lines.values()) == {1}
    for name in names:
        assert Counter(each.job for each in runs(service, name)) == dict.fromkeys(JobName, 1)
        assert not any(each.failed for each in runs(service, name))


def test_a_killed_worker_loses_its_job_to_another_at_once(
    service: MemoryService, tmp_path: Path
) -> None:
    """Although the lease of the killed process has an hour to go."""
    overdue(service, "orc-1")
    began = tmp_path / "began"
    with WorkerProcess(service.root, began, ENDLESS) as first:
        assert wait_until(began.exists)
        [running] = runs(service, "orc-1")
        os.kill(first.pid, signal.SIGSTOP)  # It is slow, not dead.
        with WorkerProcess(service.root, began, QUICK) as second:
            # It looks at other jobs only after this one.
            assert wait_until(lambda: len(runs(service, "orc-1")) > 1)
            with pytest.raises(Conflict, match="already running"):
                service.orchestrator("orc-1").jobs.run(running.job)
            first.kill()
            # It looks again when something changes, or after a minute.
            service.orchestrator("orc-1").remember("The lamp is green.")

            def tries() -> list[JobRun]:
                return [each for each in runs(service, "orc-1") if each.job is running.job]

            assert wait_until(lambda: tries()[0].state is JobState.DONE)
            assert second.finish() == 0
    again, abandoned = tries()
    assert (abandoned.state, abandoned.error_code) == (JobState.ABANDONED, LEASE_LOST)
    assert (again.state, again.due_at) == (JobState.DONE, running.due_at)
    assert f":{first.pid}:" in abandoned.holder
    assert f":{second.pid}:" in again.holder


def test_another_process_with_the_pid_of_a_dead_one_is_no_holder() -> None:
    name = process_name()
    assert not is_dead(name)
    assert is_dead(f"{name}0")  # It started at another time.
    with subprocess.Popen(["sleep", "60"]) as process:
        other = name.replace(f":{os.getpid()}:", f":{process.pid}:")
        assert is_dead(other)
        process.kill()
    # Of other boots, machines and containers nothing is known.
    host, pid, mark = other.split(":")
    assert not is_dead(f"{host}:{pid}:{'0' * 12}.{mark.partition('.')[2]}")
    assert not is_dead(f"{host}:{pid}")


def test_a_signal_ends_the_command_after_what_is_in_hand(service: MemoryService) -> None:
    overdue(service, "orc-1")
    (service.root / "memgraph.toml").write_text('[memory.embedding]\nprovider = "none"\n')
    start = "import sys; from memgraph.surfaces.cli import main; sys.exit(main())"
    command = ["-c", start, "worker", "--json", "--root", str(service.root)]
    with Program(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        assert first["command"] == "worker"
        assert first["data"]["orchestrator"] == "orc-1"
        assert first["data"]["trigger"] == "schedule"
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    last = json.loads(rest.splitlines()[-1])
    assert last["ok"] is True
    assert last["data"]["runs"] == len(rest.splitlines())
