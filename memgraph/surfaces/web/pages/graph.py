"""The graph explorer: its page, and the JSON that its script requests."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from memgraph.clock import iso
from memgraph.errors import InvalidInput
from memgraph.model.enums import EdgeType
from memgraph.model.graph import Subgraph
from memgraph.model.values import Edge
from memgraph.operations.orchestrator import Orchestrator
from memgraph.rules.lifecycle import is_change_mark
from memgraph.surfaces.web.render import short
from memgraph.surfaces.web.requests import ConsolePage, Visit

MAX_SEEDS: Final = 200
NODES: Final = 300
"""The default number of nodes in a view."""
MOST_NODES: Final = 2_000
"""The maximum number of nodes in a view; the graph functions refuse more."""
DISPUTED: Final = 25
"""The number of open contradictions and marks in a view without given memories."""
SCATTERED: Final = 100
"""Such a view is filled with the newest memories up to this number."""


def explorer(visit: Visit) -> Response:
    """Show the page; its script requests the data."""
    visit.enter()
    return visit.show(
        "graph.html",
        edges=EDGES,
        now_ms=visit.console.now_ms(),
    )


def data(visit: Visit) -> Response:
    """Return the neighbourhood of the given memories, or of disputed or connected ones.

    The neighbours of the memories in ``expand`` are added to it.
    """
    orc = visit.enter()
    asked = visit.request.query_params
    seeds, expanded = asked.getlist("seed"), asked.getlist("expand")
    if len(seeds) > MAX_SEEDS or len(expanded) > MAX_SEEDS:
        raise InvalidInput(f"seed, expand: at most {MAX_SEEDS}", field="seed")
    limit, hops = _bound(visit, "max_nodes", NODES), _bound(visit, "hops", 1)

    def around(ids: Sequence[str], hops: int, limit: int) -> Subgraph:
        return orc.graph.subgraph(
            ids, hops=hops, max_nodes=limit, as_of=visit.as_of, retracted=True
        )

    result = around(seeds or _seeds(orc, visit.as_of, limit), hops, limit)
    if expanded:
        more = around(expanded, 1, limit)
        known = dict.fromkeys(node.memory_id for node in (*result.nodes, *more.nodes))
        reasons = dict.fromkeys((*result.cut_reasons, *more.cut_reasons))
        # With the edges between the two.
        ids = [*known][:MOST_NODES]
        joined = around(ids, 1, len(ids)) if ids else more
        result = joined.model_copy(update={"cut_reasons": tuple(reasons)})
    return JSONResponse(drawing(result, as_of=visit.as_of))


def _seeds(orc: Orchestrator, as_of: int | None, limit: int) -> list[str]:
    """Return the memories of a view without given ones.

    First come the sides of open contradictions and probable changes, then the memories with the
    most neighbours; if these are few, also the newest.
    Superseded and retracted memories are included. One more than ``limit`` is returned, so that the
    view is marked as cut.
    """
    wanted = min(limit, MOST_NODES) + 1
    open_ones = orc.contradictions.list(limit=DISPUTED, as_of=as_of).items
    sides = [
        memory.memory_id
        for contradiction in open_ones
        for memory in (contradiction.first, contradiction.second)
    ]
    chosen = dict.fromkeys((*sides, *orc.graph.connected(limit=wanted, as_of=as_of)))
    room = min(SCATTERED - len(chosen), wanted)
    if room > 0:
        newest = orc.memories.list(statuses=(), limit=room, as_of=as_of)
        chosen.update(dict.fromkeys(memory.memory_id for memory in newest))
    return list(chosen)


def _bound(visit: Visit, name: str, default: int) -> int:
    text = visit.query(name)
    if text and not (text.isascii() and text.isdecimal() and len(text) <= 6):
        raise InvalidInput(f"{name} must be a whole number", field=name)
    return int(text or default)


# The drawing as JSON.

DERIVED: Final = "DerivedFrom"
"""The explorer's name for the relation from a memory to its evidence; not a stored edge."""
EDGES: Final = (*(each.value for each in EdgeType), DERIVED)


def drawing(subgraph: Subgraph, *, as_of: int | None) -> dict[str, Any]:
    """Return a neighbourhood as plain JSON; the script inserts the texts as text, not as HTML.

    Two or more memories of the same document or conversation form one of ``groups``.
    """
    places = _places(subgraph)
    return {
        "nodes": [
            {
                "id": node.memory_id,
                "summary": node.summary,
                "type": node.type.value,
                "kind": node.kind.value,
                "status": node.shown_status.value,
                "importance": node.importance,
                "confidence": node.confidence,
                "created_at": iso(node.created_at),
                "label": short(node.summary, LABEL_CHARS),
                "group": _group(places.get(node.memory_id)),
            }
            for node in subgraph.nodes
        ],
        "edges": [*map(_edge, subgraph.edges), *_derivations(subgraph)],
        "groups": [
            {"id": _group(place), "label": PurePosixPath(place).name or place}
            for place in sorted(set(places.values()))
        ],
        "missing": list(subgraph.missing),
        "cut_reasons": list(subgraph.cut_reasons),
        "as_of": None if as_of is None else iso(as_of),
    }


def _places(subgraph: Subgraph) -> dict[str, str]:
    """Return the document or conversation of each memory, if another memory shares it."""
    sources = {item.source_id: item for item in subgraph.sources}
    places = {}
    for memory in subgraph.nodes:
        source = sources.get(memory.source_id)
        path = None if source is None else source.source_path
        if place := path or memory.session_id or (source and source.conversation_id):
            places[memory.memory_id] = place
    count = Counter(places.values())
    return {memory_id: place for memory_id, place in places.items() if count[place] > 1}


def _group(place: str | None) -> str | None:
    """Return an id for a place that does not disclose its path."""
    return None if place is None else hashlib.sha256(place.encode()).hexdigest()[:16]


LABEL_CHARS: Final = 40


def _edge(edge: Edge) -> dict[str, Any]:
    is_pair = edge.edge_type is EdgeType.CONTRADICTS or is_change_mark(edge)
    return {
        "id": edge.edge_id,
        "source": edge.from_id,
        "target": edge.to_id,
        "type": edge.edge_type.value,
        "open": is_pair and edge.resolved_at is None,
    }


def _derivations(subgraph: Subgraph) -> Iterable[dict[str, Any]]:
    """Yield the derivations between drawn memories, which are not stored as edges."""
    drawn = {node.memory_id for node in subgraph.nodes}
    for derivation in subgraph.derivations:
        memory_id, ground = derivation.memory_id, derivation.derived_from_id
        if memory_id in drawn and ground in drawn:
            yield {
                "id": f"derived:{memory_id}:{ground}",
                "source": memory_id,
                "target": ground,
                "type": DERIVED,
                "open": False,
            }


PAGES: Final = (
    ConsolePage("/{orchestrator}/graph", explorer, timed=True),
    ConsolePage("/{orchestrator}/graph/data", data, timed=True),
)
