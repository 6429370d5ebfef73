"""Run by test_pipeline_killed.py in a process of its own: workers that are killed and replaced.

Everything is imported before the first fork, so that a worker starts at once. Nothing is opened
before it: an open database must not cross a fork.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

from ingest.pipeline import IngestPipeline
from memgraph import MemoryService


def work(root: str) -> None:
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1")
        while True:
            IngestPipeline(orc).run()
            time.sleep(0.01)


def start(root: str) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            work(root)
        finally:
            os._exit(1)
    return pid


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def main(root: str, files: int, kills: int) -> None:
    chance = random.Random()
    processed = Path(root, "orc-1", "memory", "ingest", "processed")
    workers = [start(root) for _ in range(3)]
    done = 0
    for _ in range(kills):
        # Anywhere in the work on a file: a few milliseconds after some other file was finished.
        while len(list(processed.iterdir())) // 2 < min(done + 2, files):
            time.sleep(0.001)
        done = len(list(processed.iterdir())) // 2
        time.sleep(chance.random() * 0.03)
        kill(workers.pop(0))
        workers.append(start(root))
    for pid in workers:
        kill(pid)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
