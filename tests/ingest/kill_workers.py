"""Run by test_pipeline_killed.py in a process of its own: workers that are killed and replaced.

Everything is imported before the first fork, so that a worker starts at once. Nothing is opened
before it: an open database must not cross a fork.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import sys
import time
import traceback
from pathlib import Path

from ingest.pipeline import IngestPipeline
from memgraph import MemoryService

DEADLINE_SECONDS = 120


def work(root: str, parent: int) -> None:
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1")
        while os.getppid() == parent:
            IngestPipeline(orc).run()
            time.sleep(0.01)


def start(root: str) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            work(root, parent)
        finally:
            # A worker has no business to end: what ended it is for the test to see.
            traceback.print_exc()
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
    ends = time.monotonic() + DEADLINE_SECONDS
    for _ in range(kills):
        # Anywhere in the work on a file: a few milliseconds after some other file was finished.
        while len(list(processed.iterdir())) // 2 < min(done + 2, files):
            if time.monotonic() > ends or any(os.waitpid(pid, os.WNOHANG)[0] for pid in workers):
                sys.exit("a worker ended by itself, or none gets on")
            time.sleep(0.001)
        done = len(list(processed.iterdir())) // 2
        time.sleep(chance.random() * 0.03)
        kill(workers.pop(0))
        workers.append(start(root))
    for pid in workers:
        kill(pid)


def kill_in_parts(root: str, kills: int) -> None:
    """Kill the workers of one file whenever some more parts of it are stored."""
    chance = random.Random()
    workers = [start(root) for _ in range(2)]
    database = sqlite3.connect(Path(root, "orc-1", "memory", "memory.db"))
    parts = 0
    ends = time.monotonic() + DEADLINE_SECONDS
    for _ in range(kills):
        wanted = parts + chance.randint(1, 3)
        while parts < wanted:
            if time.monotonic() > ends or any(os.waitpid(pid, os.WNOHANG)[0] for pid in workers):
                sys.exit("a worker ended by itself, or none gets on")
            time.sleep(0.001)
            (parts,) = database.execute(
                "SELECT coalesce(max(part), 0) FROM ingest_parts"
            ).fetchone()
        time.sleep(chance.random() * 0.02)
        kill(workers.pop(0))
        workers.append(start(root))
    for pid in workers:
        kill(pid)


if __name__ == "__main__":
    if sys.argv[2] == "parts":
        kill_in_parts(sys.argv[1], int(sys.argv[3]))
    else:
        main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
