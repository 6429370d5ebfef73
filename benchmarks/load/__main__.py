"""``python -m benchmarks.load one|many``: figures of a server under load, as a table.

The clients run in this process and the server in one of its own, on the same machine: their time
is taken from the server's. The server is killed (SIGKILL) while writes are under way, and what it
had acknowledged is looked for.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.latency_load import NAME
from benchmarks.load import stores
from benchmarks.load.clients import Asked, Load, Outcome, run, run_until_killed
from benchmarks.load.server import Server
from benchmarks.timing import NO_READER, percentiles
from memgraph.errors import NotFound
from memgraph.service.memory_service import MemoryService

KILL_S = 6.0
WARM_UP_S = 3.0
HEAD = (
    "load, requests/s",
    "done/s",
    "errors",
    "recall p50 / p95 / p99, ms",
    "write p50 / p95 / p99, ms",
    "bulletin p50 / p95 / p99, ms",
    "peak memory, MB",
    "open files",
    "threads",
    "processor, s/s",
)


def main() -> int:
    """Measure what the command line asks for; 1: something failed or was lost."""
    chosen = _arguments()
    with tempfile.TemporaryDirectory(prefix="memgraph-load-") as temporary:
        folder = chosen.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if chosen.what == "one":
            names, root = [NAME], stores.one(folder, chosen.size or 100_000, _tell)
        else:
            names = [f"orc-{number}" for number in range(chosen.count)]
            root = stores.many(folder, chosen.count, chosen.size or 1_000, _tell)
        return _measure(chosen, names, root)


def _measure(chosen: argparse.Namespace, names: list[str], root: Path) -> int:
    size = chosen.size or (100_000 if chosen.what == "one" else 1_000)
    bulletins = stores.BULLETINS if chosen.what == "many" and chosen.bulletins else 0.0
    key = stores.made_key(root)
    outcomes: list[Outcome] = []

    def asking(seed: int, writes: float = chosen.writes) -> Callable[[], Asked]:
        shown = 0.0 if writes == 1.0 else bulletins
        return stores.requests(names, size, seed=seed, writes=writes, bulletins=shown)

    _row(HEAD)
    _row(["---"] * len(HEAD))
    with Server(root, *chosen.serve) as server:
        run(server, key, Load(4, WARM_UP_S, None), asking(1))
        for place, rate in enumerate(chosen.rates):
            load = Load(chosen.clients, chosen.seconds, rate)
            outcomes.append(run(server, key, load, asking(place + 2)))
            _told(load, outcomes[-1])
        last = Load(chosen.clients, KILL_S, None)
        killed = run_until_killed(server, key, last, asking(99, 1.0))
    acknowledged = [each for one in (*outcomes, killed) for each in one.acknowledged]
    lost = _lost(root, acknowledged)
    print(f"\nacknowledged writes after SIGKILL: {len(acknowledged)}, lost: {lost}")
    return 1 if lost or any(each.errors for each in outcomes) else 0


def _lost(root: Path, acknowledged: Sequence[tuple[str, str]]) -> int:
    lost = 0
    with MemoryService(root, config=NO_READER, environ={}, background=False) as service:
        for path, memory_id in acknowledged:
            try:
                service.orchestrator(path.split("/")[3]).get(memory_id)
            except NotFound:
                lost += 1
    return lost


def _told(load: Load, outcome: Outcome) -> None:
    done = sum(map(len, outcome.taken.values()))
    errors = ", ".join(f"{code} {times}" for code, times in outcome.errors.most_common())
    machine = outcome.machine
    _row(
        [
            f"{load.clients} without pauses" if load.rate is None else f"{load.rate:g}",
            f"{done / outcome.seconds:.1f}",
            errors or "0",
            *(_times(outcome, kind) for kind in ("recall", "write", "bulletin")),
            f"{machine.memory_mb:.0f}",
            str(machine.files),
            str(machine.threads),
            f"{outcome.cpu_s / outcome.seconds:.2f}",
        ]
    )


def _times(outcome: Outcome, kind: str) -> str:
    taken = outcome.taken.get(kind)
    if not taken:
        return "-"
    return " / ".join(f"{each:.1f}" for each in percentiles(taken).values())


def _row(cells: Sequence[str]) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def _tell(stage: str, done: int, total: int) -> None:
    if done * 10 % max(total, 1) < 10:
        print(f"{stage} {done:,} of {total:,}", file=sys.stderr)


def _rate(text: str) -> float | None:
    return None if text == "all" else float(text)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("what", choices=["one", "many"], help="orchestrator(s)")
    parser.add_argument("--size", type=int, help="memories of each: 100,000 of one, 1,000 of many")
    parser.add_argument("--count", type=int, default=1_000, help="orchestrators of many")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each load")
    parser.add_argument("--writes", type=float, default=stores.WRITES, help="share of writes")
    parser.add_argument("--bulletins", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument(
        "--rates",
        type=lambda text: [_rate(each) for each in text.split(",")],
        default=[8.0, 16.0, 32.0, None],
        help="requests a second of all clients together; all: as many as are answered",
    )
    parser.add_argument("--keep", type=Path, help="where what was filled stays for the next run")
    parser.epilog = "What follows -- is for memgraph serve."
    given = sys.argv[1:]
    at = given.index("--") if "--" in given else len(given)
    chosen = parser.parse_args(given[:at])
    chosen.serve = given[at + 1 :]
    return chosen


if __name__ == "__main__":
    sys.exit(main())
