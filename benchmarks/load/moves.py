"""``python -m benchmarks.load.moves URL``: moves to a server and back, while a process writes.

Prints, for each size and direction, the seconds of the whole move and those that writers waited.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.synthetic import corpus
from memgraph.operations.maintenance.move import move
from memgraph.service.memory_service import MemoryService

NAME = "bench-moves"
STEP = 5_000
WRITER = """
import contextlib, sys, time
from memgraph import MemoryService
from memgraph.errors import StorageError
with MemoryService(sys.argv[1], environ={}) as service:
    number = 0
    while True:
        number += 1
        # The first write after a move meets the old store; the next one finds the new one.
        with contextlib.suppress(StorageError):
            service.orchestrator(sys.argv[2]).remember(f"The writer stores note {number}.")
        time.sleep(0.03)
"""


def measure(url: str, size: int) -> None:
    """Print a row for the move to the server and one for the move back."""
    with tempfile.TemporaryDirectory(prefix="memgraph-moves-") as folder:
        with MemoryService(Path(folder), environ={}) as service:
            orc = service.orchestrator(NAME, create=True)
            for start in range(0, size, STEP):
                orc.remember_many(corpus().turns(start, min(STEP, size - start)))
            orc.settle()
        with _writer(folder):
            for target in (url, ""):
                with MemoryService(Path(folder), environ={}, background=False) as service:
                    paths, clock = service.paths(NAME), service.clock
                    source = service.settings(NAME).memory.storage.url
                began = time.perf_counter()
                report = move(paths, target, source=source, clock=clock)
                seconds = time.perf_counter() - began
                direction = "to the server" if target else "to a file"
                print(f"{size} | {direction} | {seconds:.1f} s | {report.paused_ms / 1000:.2f} s")


@contextmanager
def _writer(folder: str) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", WRITER, folder, NAME])
    try:
        yield
        if process.poll() is not None:
            raise RuntimeError(f"the writer ended with {process.returncode}")
    finally:
        process.kill()
        process.wait()


def main() -> int:
    """Measure the sizes that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="PostgreSQL, as memory.storage.url; a schema is made in it.")
    parser.add_argument("--sizes", type=int, nargs="+", default=[20_000, 100_000])
    chosen = parser.parse_args()
    print("memories | direction | whole | writers waited", flush=True)
    for size in chosen.sizes:
        measure(chosen.url, size)
    return 0


if __name__ == "__main__":
    sys.exit(main())
