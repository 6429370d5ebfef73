"""``python -m benchmarks.audit``: how long impact, grounds and the past take, as a table."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from benchmarks.audit import travel
from benchmarks.audit.stores import NAME, RECEIPTS, RUNS, Store, kept
from benchmarks.timing import percentiles
from memgraph.operations.orchestrator import Orchestrator

TARGET_MS = 50.0
WARM_UP = 5
POPULAR = 200


def main() -> int:
    """Measure what the command line asks for; 1: a target was missed."""
    chosen = _arguments()
    with tempfile.TemporaryDirectory(prefix="memgraph-audit-") as temporary:
        folder = chosen.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        store = kept(folder, chosen.size, _tell)
        with store.service() as service:
            memory = service.orchestrator(NAME)
            rows = [
                *_measured(memory, store, chosen.rounds),
                *travel.measured(memory, store, chosen.rounds),
            ]
    print(f"{chosen.size:,} memories, {RECEIPTS:,} receipts, {chosen.rounds} of each\n")
    print("| what | p50 / p95 / p99, ms | target of p50, ms |")
    print("| --- | --- | --- |")
    missed = False
    for name, taken, target in rows:
        told = percentiles(taken)
        missed = missed or (target is not None and told["p50"] > target)
        times = " / ".join(f"{told[each]:.1f}" for each in ("p50", "p95", "p99"))
        print(f"| {name} | {times} | {'' if target is None else f'{target:.0f}'} |")
    return 1 if missed else 0


def _measured(
    memory: Orchestrator, store: Store, rounds: int
) -> Iterable[tuple[str, list[float], float | None]]:
    """What was measured, each time in seconds, and its target; None: it has none."""
    chance = random.Random("audit")
    facts = chance.choices(store.facts, k=rounds)
    summaries = chance.choices(store.summaries, k=rounds)
    popular = chance.choices(store.facts[:POPULAR], k=rounds)
    runs = [f"run-{chance.randrange(RUNS)}" for _ in range(rounds)]
    yield "impact of a fact", _times(memory.graph.impact, facts), TARGET_MS
    yield "impact of a fact handed out often", _times(memory.graph.impact, popular), None
    yield (
        "impact of the one that most rests on",
        _times(memory.graph.impact, [store.hub] * rounds),
        None,
    )
    yield "grounds of a fact", _times(memory.graph.grounds, facts), TARGET_MS
    yield "grounds of a summary", _times(memory.graph.grounds, summaries), TARGET_MS
    yield (
        "grounds of a run",
        _times(lambda run: memory.graph.grounds(workflow_run_id=run), runs),
        TARGET_MS,
    )


def _times(ask: Callable[[str], object], names: Sequence[str]) -> list[float]:
    for name in names[:WARM_UP]:
        ask(name)
    taken = []
    for name in names:
        start = time.perf_counter()
        ask(name)
        taken.append(time.perf_counter() - start)
    return taken


def _tell(stage: str, done: int, total: int) -> None:
    if done % max(total // 10, 1) == 0:
        print(f"{stage} {done:,} of {total:,}", file=sys.stderr)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit", description=__doc__)
    parser.add_argument("--size", type=int, default=100_000, help="memories")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--keep", type=Path, help="where what was filled stays for the next run")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
