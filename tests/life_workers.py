"""Worker processes for tests."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

from processes import Process, wait_until

from memgraph import MemoryService
from memgraph.model.jobs import JobReport
from memgraph.service import job_runs
from memgraph.store import jobs

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
