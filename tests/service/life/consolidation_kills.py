"""Run by test_consolidation_killed.py in a process of its own: runs that are killed and resumed.

Everything is imported and loaded before the first fork, so that a run begins at once. Nothing is
opened before it: an open database must not cross a fork.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path

from memgraph import MemoryService
from memgraph.service.life.consolidating import consolidate_pending

NAME = "orc-1"
CONFIG = {
    "memory.consolidation.page_episodes": 4,
    "memory.consolidation.idle_minutes": 0,
    "memory.storage.synchronous": "NORMAL",
}
DEADLINE_SECONDS = 100


def consolidate(root: Path) -> None:
    with (
        MemoryService(root, environ={}, background=False, config=CONFIG) as service,
        service.opened(NAME) as opened,
    ):
        consolidate_pending(opened)


def start(root: Path) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            consolidate(root)
            code = 0
        finally:
            if code:
                traceback.print_exc()
            os._exit(code)
    return pid


def wait(pid: int, seconds: float) -> bool:
    """Whether the run came to its end in time; one that failed ends everything."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            if status:
                sys.exit("a run failed by itself")
            return True
        time.sleep(0.001)
    return False


def main(seed: Path, folder: Path, kills: int) -> None:
    chance = random.Random()
    ends = time.monotonic() + DEADLINE_SECONDS
    plain = folder / "undisturbed"
    shutil.copytree(seed, plain)
    begun = time.monotonic()
    wait(start(plain), DEADLINE_SECONDS)
    usual = time.monotonic() - begun
    number = killed = 0
    while killed < kills:
        root = folder / f"killed-{number}"
        shutil.copytree(seed, root)
        number += 1
        while True:
            if time.monotonic() > ends:
                sys.exit("too slow")
            pid = start(root)
            # Somewhere in the first pages of what is left, or while the database is opened.
            if killed < kills and not wait(pid, chance.random() * usual / 2):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                killed += 1
                continue
            if killed >= kills:
                wait(pid, DEADLINE_SECONDS)
            break
    sys.stdout.write(f"{killed} {number}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
