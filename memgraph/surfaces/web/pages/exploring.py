"""The graph explorer: its page, and the memories and edges that its script asks for."""

from __future__ import annotations

from typing import Final

from starlette.responses import JSONResponse, Response

from memgraph.errors import InvalidInput
from memgraph.model.access import Permission
from memgraph.model.enums import MemoryStatus, MemoryType
from memgraph.service.orchestrator import Orchestrator
from memgraph.surfaces.web.drawing import EDGES, Staleness, drawing, staleness
from memgraph.surfaces.web.visiting import Page, Visit

MAX_SEEDS: Final = 200
NODES: Final = 500
"""Of the first view."""
DISPUTED: Final = 25
"""So many open contradictions are in a first view that names no memory."""
NEWEST: Final = 450
STALE: Final = 200
"""So many memories are marked, those whose ground ended last."""


def explorer(visit: Visit) -> Response:
    """The page; its script asks for what is drawn."""
    visit.enter()
    return visit.show(
        "graph.html",
        types=[each.value for each in MemoryType],
        statuses=[MemoryStatus.ACTIVE.value, MemoryStatus.SUPERSEDED.value],
        edges=EDGES,
        marks_stale=visit.may(Permission.AUDIT),
        now_ms=visit.console.now_ms(),
        data_address=_data_address(visit),
    )


def _data_address(visit: Visit) -> str:
    """Where what is drawn first is to be had: the browser asks before the script has run."""
    query = visit.request.url.query
    return f"{visit.request.url.path}/data" + (f"?{query}" if query else "")


def data(visit: Visit) -> Response:
    """The neighbourhood of the memories that are named, else of what is in dispute or new."""
    orc = visit.enter()
    seeds = visit.request.query_params.getlist("seed")[:MAX_SEEDS]
    found = orc.subgraph(
        seeds or _seeds(orc, visit.as_of),
        hops=_bound(visit, "hops", 1 if seeds else 2),
        max_nodes=_bound(visit, "max_nodes", NODES),
        as_of=visit.as_of,
    )
    return JSONResponse(drawing(found, _stale(visit, orc), as_of=visit.as_of))


def _stale(visit: Visit, orc: Orchestrator) -> Staleness:
    """What is marked as standing on a refuted ground; nothing for who may not audit."""
    if not visit.may(Permission.AUDIT):
        return Staleness()
    return staleness(orc.stale(limit=STALE, as_of=visit.as_of).items)


def _seeds(orc: Orchestrator, as_of: int | None) -> list[str]:
    """The sides of open contradictions, then the newest memories."""
    open_ones = orc.contradictions(limit=DISPUTED, as_of=as_of).items
    sides = [one.memory_id for each in open_ones for one in (each.first, each.second)]
    newest = [each.memory_id for each in orc.list_memories(limit=NEWEST, as_of=as_of)]
    return list(dict.fromkeys((*sides, *newest)))


def _bound(visit: Visit, name: str, default: int) -> int:
    given = visit.query(name)
    if given and not (given.isascii() and given.isdecimal() and len(given) <= 6):
        raise InvalidInput(f"{name} is a whole number", field=name)
    return int(given or default)


PAGES: Final = (
    Page("/{orchestrator}/graph", explorer, timed=True),
    Page("/{orchestrator}/graph/data", data, timed=True),
)
