"""Worker processes for tests, started by themselves as programs are."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from service_workers import Process

from memgraph import MemoryService
from memgraph.model.jobs import JobReport
from memgraph.service.life import jobs

LEASE_S = 1.0
SETTINGS = {
    "memory.storage.synchronous": "NORMAL",
    "memory.schedule.lease_s": LEASE_S,
    "memory.embedding.provider": "none",
}
PATIENCE_S = 60.0
START = (sys.executable, "-c", "import life_workers as w; w.main()")
QUICK, ENDLESS = "quick", "endless"


class WorkerProcess(Process):
    """A worker over a root until its input ends; a file has a line for every job it began.

    Args:
        manner: ``quick``: jobs end at once; ``endless``: they never do.
    """

    def __init__(self, root: Path, began: Path, manner: str) -> None:
        self._process = subprocess.Popen(
            [*START, str(root), str(began), manner],
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
            stdin=subprocess.PIPE,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def finish(self) -> int:
        """Let it come to its end; gives its exit code."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        return self._process.wait(timeout=PATIENCE_S)


def wait_until(holds: Callable[[], bool]) -> bool:
    """Whether it came to hold before a time in which it surely should."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.02)
    return False


def main() -> None:
    """Runs in the process."""
    root, began, manner = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]

    def work(opened: Any, asked: Any, _progress: Any, stop: Callable[[], bool]) -> JobReport:
        with began.open("a") as file:
            file.write(f"{opened.paths.name} {asked.job} {asked.due_at} {os.getpid()}\n")
        while manner == ENDLESS and not stop():
            time.sleep(0.01)
        return JobReport.done({"done": 1})

    with (
        patch.object(jobs, "_work", work),
        MemoryService(root, environ={}, config=SETTINGS, background=False) as service,
        service.worker(),
    ):
        sys.stdin.read()
