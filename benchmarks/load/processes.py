"""``python -m benchmarks.load.processes URL``: recalls of several servers on one database.

The clients run in this process, PostgreSQL on the same machine: on two cores all share them. How
busy the machine was is told beside the figures.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.load import stores
from benchmarks.load.clients import Load, run_each
from benchmarks.load.server import Server
from benchmarks.synthetic import corpus
from benchmarks.timing import percentiles
from memgraph.service.memory_service import MemoryService

NAME = "bench-processes"
WARM_UP_S = 8.0
STEP = 5_000


def measure(url: str, size: int, counts: list[int], clients: int, seconds: float) -> None:
    """Print a row for each number of processes."""
    with tempfile.TemporaryDirectory(prefix="memgraph-load-") as temporary:
        folder = Path(temporary)
        config = {"memory.storage.url": url}
        with MemoryService(folder / "filling", config=config, environ={}) as service:
            if NAME not in service.orchestrators():
                orc = service.orchestrator(NAME, create=True)
                for start in range(0, size, STEP):
                    orc.remember_many(corpus().turns(start, min(STEP, size - start)))
                orc.settle()
        key = stores.made_key(folder, url)
        print(
            "processes | recalls/s | p50 / p95, ms | errors | servers, clients, s/s | machine busy"
        )
        for count in counts:
            with ExitStack() as stack:
                environ = {"MEMGRAPH_MEMORY__STORAGE__URL": url}
                servers = [
                    stack.enter_context(Server(folder / f"{count}-{number}", environ=environ))
                    for number in range(count)
                ]
                ask = stores.requests([NAME], size, seed=count, writes=0.0)
                run_each(servers, key, Load(clients // count, WARM_UP_S, None), ask)
                before, own = _processor(), time.process_time()
                outcomes = run_each(servers, key, Load(clients // count, seconds, None), ask)
                own = time.process_time() - own
                busy, passed = (now - then for now, then in zip(_processor(), before, strict=True))
            taken = [took for outcome in outcomes for took in outcome.taken.get("recall", [])]
            lasted = max(outcome.seconds for outcome in outcomes)
            errors = sum(sum(outcome.errors.values()) for outcome in outcomes)
            cpu = sum(outcome.cpu_s for outcome in outcomes) / lasted
            times = percentiles(taken)
            print(
                f"{count} | {len(taken) / lasted:.1f} | {times['p50']:.0f} / {times['p95']:.0f}"
                f" | {errors} | {cpu:.2f}, {own / lasted:.2f}"
                f" | {busy / passed:.0%} of {os.cpu_count()}",
                flush=True,
            )


def _processor() -> tuple[float, float]:
    """Return what the machine's cores have worked, and could have, since it started."""
    fields: list[Any] = Path("/proc/stat").read_text("ascii").splitlines()[0].split()[1:9]
    numbers = [int(field) for field in fields]
    return sum(numbers) - numbers[3] - numbers[4], sum(numbers)


def main() -> int:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="PostgreSQL, as memory.storage.url.")
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=30.0)
    chosen = parser.parse_args()
    measure(chosen.url, chosen.size, chosen.processes, chosen.clients, chosen.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
