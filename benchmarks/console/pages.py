"""Time to the first byte of each page of the console, to the drawn graph, and between its frames.

    python -m benchmarks.console.pages [--size 100000] [--rounds 15] [--folder build/bench]

Serves a store with a year behind it (``benchmarks.audit.stores``) with `memgraph serve`, and asks
for every page of the menu and one page of each kind over loopback. In Chromium, without a graphics
card, the first view of the graph is timed, and frames while thousands of memories are moved.
Without a browser, only the pages are timed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from benchmarks.audit.stores import NAME, Store, copied, kept

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from browsing import WIDE, chromium, find_chromium

SERVE = "import sys; from memgraph.surfaces.cli import main; sys.exit(main())"
MENU = (
    "",
    "contradictions",
    "memories",
    "memories?status=any",
    "graph",
    "graph/data",
    "recall",
    "bulletin",
    "diff",
    "stale",
    "receipts",
    "health",
    "ingest",
    "jobs",
)
PATIENCE_S = 120.0
MOVED = 2_000
"""Memories that are drawn and moved, the most there may be."""
MOVING = """async () => {
    const times = [];
    for (let frame = 0; frame < 90; frame += 1) {
        const began = performance.now();
        memgraphGraph.panBy({ x: frame % 20 < 10 ? 7 : -7, y: 3 });
        await new Promise(requestAnimationFrame);
        times.push(performance.now() - began);
    }
    return [times, memgraphGraph.nodes().length];
}"""


@contextmanager
def served(store: Store) -> Iterator[str]:
    """The address of the store's console, in a server process of its own."""
    environ = {name: each for name, each in os.environ.items() if not name.startswith("MEMGRAPH_")}
    command = [sys.executable, "-c", SERVE, "serve", "--json", "--port", "0", "--no-worker"]
    process = subprocess.Popen(
        [*command, "--allow-without-key"],
        env={**environ, "MEMGRAPH_ROOT": store.root},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["data"]["url"]
        yield f"{url}/console/{NAME}"
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def first_bytes(home: str, paths: Sequence[str], rounds: int) -> dict[str, list[float]]:
    """Milliseconds to the head of each page's answer, one round of all pages after the other."""
    taken: dict[str, list[float]] = {path: [] for path in paths}
    with httpx.Client(trust_env=False, timeout=PATIENCE_S) as client:
        for path in paths:
            client.get(f"{home}/{path}").raise_for_status()
        for _ in range(rounds):
            for path in paths:
                began = time.perf_counter()
                with client.stream("GET", f"{home}/{path}") as answer:
                    taken[path].append((time.perf_counter() - began) * 1_000)
                    answer.raise_for_status()
                    answer.read()
    return taken


def drawn(home: str, rounds: int) -> list[tuple[float, int]]:
    """Milliseconds from asking for the explorer until its first view is drawn, and its size."""
    executable = find_chromium()
    if executable is None:
        return []
    found = []
    with chromium(executable) as browser:
        for _ in range(rounds):
            page = browser.new_page(viewport={"width": WIDE[0], "height": WIDE[1]})
            page.goto(f"{home}/graph")
            page.wait_for_selector("html[data-drawn]")
            took, count = page.evaluate(
                "[Number(document.documentElement.dataset.drawn), memgraphGraph.nodes().length]"
            )
            found.append((took, count))
            page.close()
    return found


def moved(home: str) -> tuple[list[float], int]:
    """Milliseconds of each frame while the largest drawing is moved, and its size."""
    executable = find_chromium()
    if executable is None:
        return [], 0
    with chromium(executable) as browser:
        page = browser.new_page(viewport={"width": WIDE[0], "height": WIDE[1]})
        page.goto(f"{home}/graph?max_nodes={MOVED}")
        page.wait_for_selector("html[data-drawn]")
        frames, count = page.evaluate(MOVING)
        return frames, count


def details(store: Store) -> list[str]:
    """One page of each kind that is of one thing."""
    return [f"memories/{store.hub}", f"contradictions/{store.disputes[-1]}"]


def main() -> None:
    """Print a table."""
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--size", type=int, default=100_000)
    asked.add_argument("--rounds", type=int, default=15)
    asked.add_argument("--folder", type=Path, default=Path("build/bench"))
    chosen = asked.parse_args()
    store = kept(chosen.folder, chosen.size, lambda *_told: None)
    # A page of the bulletin leaves a receipt: the store is kept for others as it is.
    with (
        TemporaryDirectory(dir=chosen.folder) as folder,
        served(copied(store, Path(folder) / "store")) as home,
    ):
        taken = first_bytes(home, [*MENU, *details(store)], chosen.rounds)
        views = drawn(home, min(chosen.rounds, 7))
        frames, count = moved(home)
    print(f"| page ({chosen.size:,} memories) | p50 ms | worst ms |\n|---|---|---|")
    for path, each in taken.items():
        print(f"| `/{path}` | {statistics.median(each):.0f} | {max(each):.0f} |")
    for took, size in sorted(views)[len(views) // 2 :][:1]:
        print(f"\nFirst view of {size} memories drawn: {took:.0f} ms (median of {len(views)})")
    if frames:
        frames.sort()
        middle, late = frames[len(frames) // 2], frames[len(frames) * 95 // 100]
        print(f"Frames while {count} memories are moved: p50 {middle:.0f} ms, p95 {late:.0f} ms")


if __name__ == "__main__":
    main()
