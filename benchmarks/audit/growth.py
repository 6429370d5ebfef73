"""``python -m benchmarks.audit.growth --base FOLDER``: how much slower recall is than it was there.

The folder is another checkout. It and this one answer the same questions in turn, each in a process
of its own and from its own copy of one store, so that a slow minute of the machine hits both.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.audit.stores import NAME, Store, copied, kept
from benchmarks.synthetic import corpus
from memgraph.paths import OrchestratorPaths

HERE: Final = Path(__file__).resolve().parents[2]
TARGET: Final = 1.05
WARM_UP: Final = 8
QUERY_CHARS: Final = 80
# The earlier one may be of before the schema was told there.
_SCHEMA = """
try:
    from memgraph.store.metadata import SCHEMA_HEAD
except ImportError:
    from memgraph.store.metadata import SCHEMA_HEAD
print(SCHEMA_HEAD)
"""
# Runs in either checkout: a question on each line in, the milliseconds it took out.
_ANSWERING = """
import sys, time
from memgraph.clock import FixedClock
from memgraph.service.memory_service import MemoryService
root, name, now = sys.argv[1:]
with MemoryService(root, clock=FixedClock(int(now)), environ={}) as service:
    memory = service.orchestrator(name)
    for line in sys.stdin:
        start = time.perf_counter()
        memory.recall(line.strip())
        print((time.perf_counter() - start) * 1_000, flush=True)
"""


def main() -> int:
    """Measure; 1: recall takes longer than the target lets it."""
    chosen = _arguments()
    with tempfile.TemporaryDirectory(prefix="memgraph-growth-") as temporary, ExitStack() as open_:
        folder = Path(temporary)
        store = kept(chosen.keep or folder, chosen.size, lambda _part, _done, _total: None)
        asked = {
            name: open_.enter_context(_answering(checkout, copied(store, folder / name)))
            for name, checkout in (("base", chosen.base.resolve()), ("here", HERE))
        }
        taken = _in_turn(asked, _questions(store, chosen.rounds))
    before, after = (median(taken[name]) for name in ("base", "here"))
    print(f"{chosen.size:,} memories, {chosen.rounds} questions, recall p50 in ms")
    print(f"base {before:.1f}, here {after:.1f}: {after / before:.3f} times, target {TARGET}")
    return 1 if after > TARGET * before else 0


@contextmanager
def _answering(checkout: Path, store: Store) -> Iterator[subprocess.Popen[str]]:
    """A process that answers with the code of a checkout, until the block is left."""
    environ = os.environ | {"PYTHONPATH": str(checkout)}
    schema = subprocess.run(
        [sys.executable, "-c", _SCHEMA],
        env=environ,
        cwd=checkout,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    database = OrchestratorPaths(Path(store.root), NAME).database
    alembic = [sys.executable, "-m", "alembic", "-x", f"database={database}", "downgrade", schema]
    subprocess.run(alembic, cwd=HERE, check=True)
    command = [sys.executable, "-c", _ANSWERING, store.root, NAME, str(store.last_at)]
    with subprocess.Popen(
        command,
        env=environ,
        cwd=checkout,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        yield process


def _in_turn(
    asked: dict[str, subprocess.Popen[str]], questions: list[str]
) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {name: [] for name in asked}
    for place, question in enumerate(questions):
        # Whoever goes second finds the disk's pages warm, and that shall not always be the same.
        for name in sorted(asked, reverse=bool(place % 2)):
            process = asked[name]
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(question + "\n")
            process.stdin.flush()
            taken[name].append(float(process.stdout.readline()))
    return {name: times[WARM_UP:] for name, times in taken.items()}


def _questions(store: Store, rounds: int) -> list[str]:
    """The beginnings of texts that are stored, each on one line."""
    text, chance = corpus(), random.Random("growth")
    found = [text.text(chance.randrange(store.size)) for _ in range(rounds + WARM_UP)]
    return [" ".join(each.split())[:QUERY_CHARS] for each in found]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit.growth", description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="another checkout")
    parser.add_argument("--size", type=int, default=100_000, help="memories")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--keep", type=Path, help="where what was filled stays for the next run")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
