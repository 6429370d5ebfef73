"""Draws docs/images/graph.svg and confidence.svg, as `memgraph graph` and `timeline` do.

Run it from the project's root::

    .venv/bin/python docs/images/draw_pictures.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from memgraph.surfaces.pictures.histories import accesses_of, held_of

from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.ids import CountingIds
from memgraph.surfaces.pictures.graphs import picture
from memgraph.surfaces.pictures.timelines import confidence_picture

FOLDER = Path(__file__).parent


def main() -> None:
    clock = FixedClock()
    with (
        tempfile.TemporaryDirectory() as root,
        MemoryService(
            root, clock=clock, ids=CountingIds(), environ={}, background=False
        ) as service,
    ):
        bakery = service.orchestrator("bakery", create=True)
        hours, seeds = _filled(bakery, clock)
        graph = bakery.graph.subgraph(seeds, hops=2)
        drawn = picture(graph, "svg", title="Memories of bakery")
        (FOLDER / "graph.svg").write_bytes(drawn)
        (FOLDER / "confidence.svg").write_bytes(_confidence(bakery, hours))


def _filled(bakery: Orchestrator, clock: FixedClock) -> tuple[str, list[str]]:
    """A shop that changed its hours; gives the memory of these and where the graph begins."""
    old = bakery.remember("The shop closes at six.", type="Decision", confidence=0.9)
    reason = bakery.remember("The evening bus leaves at half past five.")
    early = bakery.remember("Dough for the evening is made by four.", type="Todo")
    guests = bakery.remember("Guests asked for bread after work.", type="Observation")
    rumour = bakery.remember("The evening bus was cancelled.", type="Event", confidence=0.6)
    bakery.relate(old, "CausedBy", reason)
    bakery.relate(early, "CausedBy", old)
    bakery.relate(rumour, "Contradicts", reason)
    for _ in range(3):
        clock.advance(days=9)
        bakery.recall("When does the shop close?")
    clock.advance(days=12)
    hours = bakery.correct(old, "The shop closes at eight.", reason="decided in the meeting")
    bakery.relate(hours, "CausedBy", guests)
    clock.advance(days=20)
    return old, [hours, reason]


def _confidence(bakery: Orchestrator, memory_id: str) -> bytes:
    found = bakery.history.get(memory_id)
    return confidence_picture(
        held_of(found, accesses_of(bakery.graph.impact(memory_id))),
        found.periods,
        "svg",
        title=f"{found.memory.type.value}: {found.memory.content}",
        now_ms=found.at,
        exponent=found.decay_exponent,
    )


if __name__ == "__main__":
    main()
