"""Makes docs/images/graph.png and confidence.png: `python docs/images/shoot_pictures.py`.

Writes the pages of `memgraph graph` and `timeline`, and opens them in the Chromium of the system.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from browsing import chromium, find_chromium

from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.ids import CountingIds
from memgraph.model.enums import CapturedBy
from memgraph.model.values import Source
from memgraph.surfaces.pictures import (
    accesses_of,
    confidence_page,
    confidence_periods,
    graph_page,
)

FOLDER = Path(__file__).resolve().parent
SIZE = {"width": 1100, "height": 760}


def main() -> None:
    """Write the pictures beside this file."""
    executable = find_chromium()
    if executable is None:
        raise SystemExit("needs a Chromium: make browser")
    with tempfile.TemporaryDirectory() as folder:
        pages = _pages(Path(folder))
        with chromium(executable) as browser:
            for name, html in pages.items():
                path = Path(folder) / f"{name}.html"
                path.write_text(html, encoding="utf-8")
                page = browser.new_page(viewport=SIZE, color_scheme="light")
                page.goto(path.as_uri())
                page.wait_for_selector("html[data-drawn]")
                page.locator("#picture").screenshot(path=FOLDER / f"{name}.png")


def _pages(root: Path) -> dict[str, str]:
    clock = FixedClock()
    with MemoryService(
        root, clock=clock, ids=CountingIds(), environ={}, background=False
    ) as service:
        bakery = service.orchestrator("bakery", create=True)
        guests, seeds = _filled(bakery, clock)
        graph = graph_page(bakery.graph.subgraph(seeds, hops=2), title="Memories of bakery")
        bakery.correct(guests, "Guests ask for bread until eight.", reason="counted")
        clock.advance(days=20)
        return {"graph": graph, "confidence": _confidence(bakery, guests)}


def _filled(bakery: Orchestrator, clock: FixedClock) -> tuple[str, list[str]]:
    """Store a shop that changed its hours; return an observation, and where the graph begins."""
    old = bakery.remember("The shop closes at six.", type="Decision", confidence=0.9)
    reason = bakery.remember("The evening bus leaves at half past five.")
    early = bakery.remember("Dough for the evening is made by four.", type="Todo")
    # Only what a machine inferred decays.
    inferred = Source(captured_by=CapturedBy.EXTRACTOR, conversation_id="counter")
    guests = bakery.remember(
        "Guests asked for bread after work.", type="Observation", confidence=0.9, source=inferred
    )
    rumour = bakery.remember("The evening bus was cancelled.", type="Event", confidence=0.6)
    bakery.relate(old, "CausedBy", reason)
    bakery.relate(early, "CausedBy", old)
    bakery.relate(rumour, "Contradicts", reason)
    for _ in range(3):
        clock.advance(days=9)
        bakery.recall("What did guests ask for?")
    clock.advance(days=12)
    hours = bakery.correct(old, "The shop closes at eight.", reason="decided in the meeting")
    bakery.relate(hours, "CausedBy", guests)
    return guests, [hours, reason]


def _confidence(bakery: Orchestrator, memory_id: str) -> str:
    history = bakery.history.get(memory_id)
    return confidence_page(
        confidence_periods(history, accesses_of(bakery.graph.impact(memory_id))),
        history.periods,
        title=f"{history.memory.type.value}: {history.memory.content}",
        now_ms=history.at,
        exponent=history.decay_exponent,
    )


if __name__ == "__main__":
    main()
