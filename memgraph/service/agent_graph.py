"""Tools for a language model: graph queries, cut to fit a prompt, and edges it proposes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from memgraph.clock import iso
from memgraph.graph.contradictions import place_after
from memgraph.retrieval.citation import short_citation
from memgraph.service.agent_work import MAX_LIST_CHARS, cut, fitting, remembered, said_at, within

if TYPE_CHECKING:
    from memgraph.model.enums import EdgeType
    from memgraph.model.graph import Contradiction, Link, Trace
    from memgraph.model.values import Memory, StoredSource
    from memgraph.service.orchestrator import Orchestrator

MAX_HISTORY: Final = 20
MAX_LINKS: Final = 20


def relate_memories(
    handle: Orchestrator,
    from_id: str,
    edge_type: EdgeType | str,
    to_id: str,
    reason: str | None = None,
) -> dict[str, Any]:
    """Join two memories: ``{"outcome": "stored" | "duplicate", "edge_id": …}``."""
    done = handle.propose_relation(from_id, edge_type, to_id, reason=reason)
    return {"outcome": done.outcome, "edge_id": done.edge_id}


def list_contradictions(
    handle: Orchestrator, resolved: bool = False, limit: int = 10, after: str | None = None
) -> dict[str, Any]:
    """Contradictions with both sides, the newest first; ``next_after`` asks for the next page."""
    page = handle.contradictions(resolved=resolved, limit=limit, after=after)
    items = [_contradiction(each) for each in page.items]
    told = fitting({"next_after": page.next_after}, "contradictions", items)
    if told["left_out"]:
        # The next page begins with the first that had no room.
        last = page.items[len(told["contradictions"]) - 1]
        told["next_after"] = place_after(last, "resolved" if resolved else "open")
    _note(handle, [side for each in told["contradictions"] for side in each["sides"]])
    return told


def trace_memory(handle: Orchestrator, memory_id: str) -> dict[str, Any]:
    """Return a memory's sources, what became of it, and what it depends on."""
    found = handle.trace(memory_id)
    head = {
        "memory": _sourced(found.memory, found.source) | {"status": found.memory.status.value},
        "independent_sources": found.independent_sources,
        "also_said_in": within(
            MAX_LIST_CHARS,
            [_place(found.memory, each.source) for each in found.supports[:MAX_LINKS]],
        ),
        "history": [
            {"status": each.status.value, "since": iso(each.since)}
            for each in found.status_history[-MAX_HISTORY:]
        ],
        "contradicted_by": _opponents(found),
        "stale_grounds": list(found.stale_grounds[:MAX_LINKS]),
        "cut": found.cut,
    }
    told = fitting(head, "linked", _linked(found))
    _note(handle, [told["memory"], *told["linked"]])
    return told


def _contradiction(found: Contradiction) -> dict[str, Any]:
    sides = sorted(
        zip((found.first, found.second), found.sources, strict=True),
        key=lambda side: (said_at(side[0]), side[0].memory_id),
        reverse=True,
    )
    return {
        "edge_id": found.edge.edge_id,
        "since": iso(found.since),
        "resolved": found.resolved,
        "moot": found.moot,
        "sides": [_sourced(memory, source) for memory, source in sides],
    }


def _linked(found: Trace) -> list[dict[str, Any]]:
    """Return each memory that a trace reaches, once, with its relation to the traced one."""
    by_role: dict[str, tuple[Link, ...]] = {
        "replaced_by": found.replaced_by,
        "replaced": found.replaced,
        "ground": found.grounds,
        "dependent": found.dependents,
    }
    told: dict[str, dict[str, Any]] = {}
    for role, links in by_role.items():
        for link in links:
            memory = found.memory_by_id[link.memory_id]
            told.setdefault(
                link.memory_id,
                {"role": role, "distance": link.distance, **remembered(memory)},
            )
    return list(told.values())


def _opponents(found: Trace) -> list[str]:
    ends = [end for each in found.open_contradictions for end in (each.from_id, each.to_id)]
    return [each for each in dict.fromkeys(ends) if each != found.memory.memory_id][:MAX_LINKS]


def _sourced(memory: Memory, source: StoredSource) -> dict[str, Any]:
    return {**remembered(memory), "source": _place(memory, source)}


def _place(memory: Memory, source: StoredSource) -> str:
    return cut(short_citation(memory, source))


def _note(handle: Orchestrator, told: list[dict[str, Any]]) -> None:
    handle.note_handed_out([each["text"] for each in told])
