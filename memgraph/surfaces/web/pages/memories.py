"""Memories: lists, searches, and the page of each."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from memgraph.errors import InvalidInput
from memgraph.model.access import Permission
from memgraph.model.enums import MemoryKind, MemoryStatus, MemoryType
from memgraph.surfaces.web.graphs import lines_of, ribbon, step_chart
from memgraph.surfaces.web.requests import ConsolePage, Visit

PER_PAGE: Final = 25
FOUND: Final = 50
HAND_OUTS: Final = 50
ANY: Final = "any"
FILTERS: Final = ("type", "kind", "status", "tag", "session")


def listing(visit: Visit) -> Response:
    """Show one page of memories, newest first, filtered."""
    orc = visit.enter()
    # Without a status, the page shows active memories.
    status = visit.query("status", MemoryStatus.ACTIVE.value)
    found = orc.list_memories(
        types=_chosen(MemoryType, visit.query("type")),
        kinds=_chosen(MemoryKind, visit.query("kind")),
        statuses=_chosen(MemoryStatus, status),
        tags=[visit.query("tag")] if visit.query("tag") else [],
        session_id=visit.query("session") or None,
        before=visit.query("before") or None,
        limit=PER_PAGE + 1,
        as_of=visit.as_of,
    )
    shown = found[:PER_PAGE]
    following = shown[-1].memory_id if len(found) > PER_PAGE else None
    return _list_page(visit, shown, following=following, state=status)


def search(visit: Visit) -> Response:
    """Show the answers to a question, without counting as an access: an auditor reads.

    The question is sent in a form, so that it is in no address and in no history.
    """
    orc = visit.enter()
    query = visit.required("query")
    moment = visit.console.now_ms() if visit.as_of is None else visit.as_of
    bundle = orc.recall(query, top_n=FOUND, as_of=moment, include_superseded=True)
    found = [item.memory for item in bundle.items]
    return _list_page(visit, found, following=None, state=ANY, query=query)


def _list_page(
    visit: Visit, found: Any, *, following: str | None, state: str, query: str = ""
) -> Response:
    return visit.show(
        "memories.html",
        found=found,
        following=following,
        query=query,
        state=state,
        filtered=any(visit.query(name) for name in FILTERS),
        types=[each.value for each in MemoryType],
        kinds=[each.value for each in MemoryKind],
        statuses=[each.value for each in MemoryStatus],
    )


def memory(visit: Visit) -> Response:
    """Show all that is known of one memory."""
    orc = visit.enter()
    memory_id = visit.path("memory_id")
    trace = orc.trace(memory_id, as_of=visit.as_of)
    now = visit.console.now_ms() if visit.as_of is None else visit.as_of
    held = [(each.since, each.confidence) for each in orc.history(memory_id).values]
    impact = None
    if visit.may(Permission.AUDIT):
        auditor = visit.enter(Permission.AUDIT)
        impact = auditor.impact(memory_id, max_nodes=HAND_OUTS, as_of=visit.as_of)
    return visit.show(
        "memory.html",
        trace=trace,
        memory=trace.memory,
        lines=lines_of(visit, memory_id),
        periods=ribbon(trace.status_history, now),
        confidence=step_chart([each for each in held if each[0] <= now] or held[:1], now),
        impact=impact,
    )


def _chosen(enum: Any, value: str) -> list[Any]:
    """Return the chosen value; empty means all."""
    if value in ("", ANY):
        return []
    try:
        return [enum(value)]
    except ValueError:
        raise InvalidInput(f"there is no such {enum.__name__}", field=enum.__name__) from None


PAGES: Final = (
    ConsolePage("/{orchestrator}/memories", listing, timed=True),
    ConsolePage("/{orchestrator}/memories", search, "POST", timed=True),
    ConsolePage("/{orchestrator}/memories/{memory_id}", memory, timed=True),
)
