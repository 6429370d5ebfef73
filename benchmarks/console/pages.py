"""Time to the first byte of each page of the console, to the drawn graph, and between its frames.

    python -m benchmarks.console.pages [--size 100000] [--rounds 15] [--folder build/bench]

Serves a store with a year behind it (``benchmarks.audit.stores``) with `memgraph serve`, and asks
for every page of the console over loopback. In Chromium, without a graphics card, the first view of
the graph is timed, and frames while thousands of memories are moved. Without a browser, only the
pages are timed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

import httpx

from benchmarks.audit.stores import NAME, Store, copied, kept

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from browsing import WIDE, chromium, find_chromium

if TYPE_CHECKING:
    from playwright.sync_api import Page

SERVE = "import sys; from memgraph.surfaces.cli import main; sys.exit(main())"
MENU = (
    "",
    "memories",
    "memories?status=any",
    "contradictions",
    "contradictions?state=changes",
    "graph",
    "graph/data",
    "entities",
    "answers",
    "activity",
    "seal",
)
PATIENCE_S = 120.0
MOVED = 2_000
"""Memories that are drawn and moved, the most there may be."""
WATCHING = """() => {
    const times = [];
    let last = performance.now();
    window.watching = true;
    window.watched = new Promise((resolve) => {
        const frame = () => {
            const now = performance.now();
            times.push(now - last);
            last = now;
            if (window.watching) requestAnimationFrame(frame);
            else resolve(times);
        };
        requestAnimationFrame(frame);
    });
}"""
"""Begins to note the time from frame to frame."""
WATCHED = "() => { window.watching = false; return window.watched; }"
STEPS = 90
FRAME_MS = 16


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


@dataclass(frozen=True)
class PageRequest:
    """What a browser asks for.

    Attributes:
        label: in the table.
    """

    label: str
    path: str


def first_bytes(
    home: str, client: httpx.Client, pages: Sequence[PageRequest], rounds: int
) -> dict[str, list[float]]:
    """Milliseconds to the head of each answer, one round of all pages after the other."""
    taken: dict[str, list[float]] = {page.label: [] for page in pages}
    for number in range(rounds + 1):
        for page in pages:
            began = time.perf_counter()
            with client.stream("GET", f"{home}/{page.path}") as answer:
                took = (time.perf_counter() - began) * 1_000
                answer.raise_for_status()
                answer.read()
            if number:  # the first round fills caches
                taken[page.label].append(took)
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
                "[Number(document.documentElement.dataset.drawn),"
                " memgraphGraph.nodes('[!document]').length]"
            )
            found.append((took, count))
            page.close()
    return found


def moved(home: str) -> tuple[dict[str, list[float]], int]:
    """Milliseconds from frame to frame while the largest drawing is moved as a person moves it,
    by way of moving, and its size.
    """
    executable = find_chromium()
    if executable is None:
        return {}, 0
    with chromium(executable) as browser:
        page = browser.new_page(viewport={"width": WIDE[0], "height": WIDE[1]})
        page.goto(f"{home}/graph?max_nodes={MOVED}")
        page.wait_for_selector("html[data-drawn]", timeout=PATIENCE_S * 1_000)
        found = {}
        for name, way in (("dragged", _drag), ("zoomed", _zoom)):
            page.evaluate(WATCHING)
            way(page)
            found[name] = page.evaluate(WATCHED)
        count: int = page.evaluate("memgraphGraph.nodes('[!document]').length")
        return found, count


def _drag(page: Page) -> None:
    left, top = _corner(page)
    page.mouse.move(left, top)
    page.mouse.down()
    for step in range(STEPS):
        page.mouse.move(left + 4 * step, top + step % 10 * 6)
    page.mouse.up()


def _zoom(page: Page) -> None:
    left, top = _corner(page)
    page.mouse.move(left + 300, top + 200)
    for step in range(STEPS):
        page.mouse.wheel(0, -60 if step % 20 < 10 else 60)
        page.wait_for_timeout(FRAME_MS)


def _corner(page: Page) -> tuple[float, float]:
    """A place of the drawing where no memory is."""
    box = page.locator("#graph").bounding_box()
    assert box is not None
    return box["x"] + 5, box["y"] + 5


def requests_of(home: str, client: httpx.Client, store: Store) -> list[PageRequest]:
    """Every page, and one of each kind that shows one thing."""

    def page(path: str) -> str:
        return client.get(f"{home}/{path}").raise_for_status().text

    def first(pattern: str, path: str) -> str:
        match = re.search(pattern, page(path))
        assert match is not None, path
        return match[1]

    dispute = store.disputes[-1]
    receipt = first(r"/(answers/rcl_\w+)", "answers")
    entity = first(r"/(entities/ent_\w+)", "entities")
    quoted = first(r'/memories/fact_\w+"><bdi>([^<]+)', "memories")
    searched = {"a rare word": max(quoted.split(), key=len), "a question": quoted[:60]}
    return [
        *(PageRequest(path, path) for path in MENU),
        *(
            PageRequest(f"memories?q=…, {name}", f"memories?q={quote_plus(text)}")
            for name, text in searched.items()
        ),
        PageRequest("memories/ID, most edges", f"memories/{store.hub}"),
        PageRequest("contradictions/ID", f"contradictions/{dispute}"),
        PageRequest("contradictions/ID/export", f"contradictions/{dispute}/export"),
        PageRequest("entities/ID", entity),
        PageRequest("answers/ID", receipt),
    ]


def main() -> None:
    """Print a table."""
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--size", type=int, default=100_000)
    asked.add_argument("--rounds", type=int, default=15)
    asked.add_argument("--folder", type=Path, default=Path("build/bench"))
    asked.add_argument("--pages-only", action="store_true", help="no browser")
    chosen = asked.parse_args()
    store = kept(chosen.folder, chosen.size, lambda *_told: None)
    # A search leaves a receipt: the store is kept for others as it is.
    with (
        TemporaryDirectory(dir=chosen.folder) as folder,
        served(copied(store, Path(folder) / "store")) as home,
    ):
        with httpx.Client(trust_env=False, timeout=PATIENCE_S) as client:
            pages = requests_of(home, client, store)
            taken = first_bytes(home, client, pages, chosen.rounds)
        views = [] if chosen.pages_only else drawn(home, min(chosen.rounds, 7))
        ways, count = ({}, 0) if chosen.pages_only else moved(home)
    print(f"| page ({chosen.size:,} memories) | p50 ms | worst ms |\n|---|---|---|")
    for path, each in taken.items():
        print(f"| `/{path}` | {statistics.median(each):.0f} | {max(each):.0f} |")
    for took, size in sorted(views)[len(views) // 2 :][:1]:
        print(f"\nFirst view of {size} memories drawn: {took:.0f} ms (median of {len(views)})")
    for way, frames in ways.items():
        frames.sort()
        middle, late = frames[len(frames) // 2], frames[len(frames) * 95 // 100]
        print(f"Frames while {count} memories are {way}: p50 {middle:.0f} ms, p95 {late:.0f} ms")


if __name__ == "__main__":
    main()
