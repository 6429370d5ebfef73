"""The graph explorer: its page, and the memories and edges that its script requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.responses import JSONResponse, Response

from memgraph.errors import InvalidInput
from memgraph.model.access import Permission
from memgraph.model.enums import MemoryStatus, MemoryType
from memgraph.model.graph import StaleMemory
from memgraph.operations.orchestrator import Orchestrator
from memgraph.surfaces.web.graphs import EDGES, drawing, staleness
from memgraph.surfaces.web.requests import ConsolePage, Visit

MAX_SEEDS: Final = 200
NODES: Final = 300
"""Nodes of the first view."""
MOST_NODES: Final = 2_000
"""Nodes of any view; the reading functions refuse more."""
DISPUTED: Final = 25
"""Open contradictions in a first view that names no memory."""
SCATTERED: Final = 100
"""A first view of fewer joined memories is filled up to this with the newest ones."""
STALE: Final = 200
"""The number of marked memories, those whose evidence ended last."""
STALE_FIRST: Final = 10
"""The number of them in such a first view, with the paths to their evidence."""


def explorer(visit: Visit) -> Response:
    """Show the page; its script requests the data."""
    visit.enter()
    return visit.show(
        "graph.html",
        types=[item.value for item in MemoryType],
        statuses=[MemoryStatu.value for MemoryStatu in MemoryStatus],
        edges=EDGES,
        marks_stale=visit.may(Permission.AUDIT),
        now_ms=visit.console.now_ms(),
        data_address=_data_address(visit),
    )


def _data_address(visit: Visit) -> str:
    """Return the address of the first data, which the browser requests before the script runs."""
    query = visit.request.url.query
    return f"{visit.request.url.path}/data" + (f"?{query}" if query else "")


def data(visit: Visit) -> Response:
    """Return the neighbourhood of the named memories, else of disputed, stale or connected ones."""
    orc = visit.enter()
    labels = visit.request.query_params.getlist("seed")
    if len(labels) > MAX_SEEDS:
        raise InvalidInput(f"seed: {MAX_SEEDS} at most", field="seed")
    fallen = _fallen(visit, orc)
    limit = _bound(visit, "max_nodes", NODES)
    result = orc.graph.subgraph(
        labels or _seeds(orc, fallen, visit.as_of, limit),
        hops=_bound(visit, "hops", 1),
        max_nodes=limit,
        as_of=visit.as_of,
        retracted=True,
    )
    return JSONResponse(drawing(result, staleness(fallen), as_of=visit.as_of))


def between(visit: Visit) -> Response:
    """Return the edges between drawn memories, which came in several answers.

    Their ids are sent in a form: there are more of them than an address holds.
    """
    orc = visit.enter()
    ids = visit.required("ids").split()
    if len(ids) > MOST_NODES:
        raise InvalidInput(f"ids: {MOST_NODES:,} at most", field="ids")
    result = orc.graph.subgraph(ids, hops=1, max_nodes=len(ids), as_of=visit.as_of, retracted=True)
    drawn = drawing(result, staleness(_fallen(visit, orc)), as_of=visit.as_of)
    return JSONResponse({"edges": drawn["edges"]})


def _fallen(visit: Visit, orc: Orchestrator) -> Sequence[StaleMemory]:
    """Return memories with retracted evidence; none for callers who may not audit."""
    if not visit.may(Permission.AUDIT):
        return ()
    return orc.graph.stale(limit=STALE, as_of=visit.as_of).items


def _seeds(
    orc: Orchestrator, fallen: Sequence[StaleMemory], as_of: int | None, limit: int
) -> list[str]:
    """Return the sides of open contradictions, paths to retracted evidence, then the memories
    with the most neighbours; where few are joined to any, the newest, too.

    Superseded and retracted ones are included. More than ``limit`` when there are more, so that the
    drawing is marked as cut.
    """
    statuses_wanted = min(limit, MOST_NODES) + 1
    open_ones = orc.contradictions.list(limit=DISPUTED, as_of=as_of).items
    sides = [
        memory.memory_id
        for contradiction in open_ones
        for memory in (contradiction.first, contradiction.second)
    ]
    steps = [step for item in fallen[:STALE_FIRST] for step in item.premise.path]
    ways = [item for step in steps for item in (step.memory_id, step.ground_id)]
    chosen = dict.fromkeys(
        (*sides, *ways, *orc.graph.connected(limit=statuses_wanted, as_of=as_of))
    )
    room = min(SCATTERED - len(chosen), statuses_wanted)
    if room > 0:
        newest = orc.memories.list(statuses=(), limit=room, as_of=as_of)
        chosen.update(dict.fromkeys(memory.memory_id for memory in newest))
    return list(chosen)


def _bound(visit: Visit, name: str, default: int) -> int:
    call = visit.query(name)
    if call and not (call.isascii() and call.isdecimal() and len(call) <= 6):
        raise InvalidInput(f"{name} is a whole number", field=name)
    return int(call or default)


PAGES: Final = (
    ConsolePage("/{orchestrator}/graph", explorer, timed=True),
    ConsolePage("/{orchestrator}/graph/data", data, timed=True),
    ConsolePage("/{orchestrator}/graph/edges", between, "POST", timed=True),
)
