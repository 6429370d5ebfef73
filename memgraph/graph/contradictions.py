"""Contradictions, open and resolved, with their sources and evidence.

A pair is shown only when the reader may see both sides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Literal

from memgraph.clock import MS_PER_DAY
from memgraph.errors import InvalidInput, NotFound
from memgraph.model.enums import MemoryStatus
from memgraph.model.graph import Contradiction, ContradictionPage
from memgraph.model.values import Edge, Memory, StoredSource
from memgraph.rules.lifecycle import is_dismissed
from memgraph.rules.scope import DEFAULT_VIEWER, Viewer
from memgraph.store import edges as edges_rows
from memgraph.store import graph
from memgraph.store.edges import ContradictionFilter
from memgraph.store.engine import Database
from memgraph.store.items import is_id
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View

State = Literal["open", "resolved"]

MAX_PAGE = 500
MAX_SOUGHT_CHARS: Final = 200
"""Maximum characters of a search text."""
_PLACE: Final = re.compile(r"([0-9]{1,15})\.([!-~]{1,200})")


def list_contradictions(
    database: Database,
    *,
    now_ms: int,
    state: State = "open",
    viewer: Viewer = DEFAULT_VIEWER,
    limit: int = 50,
    after: str | None = None,
    as_of: int | None = None,
    text: str | None = None,
    memory_id: str | None = None,
    dismissed: bool | None = None,
    oldest_first: bool = False,
) -> ContradictionPage:
    """Return one page, newest first: open ones by when they were found, resolved ones by when they
    were resolved.

    Args:
        now_ms: milliseconds; for ages alone.
        limit: 1 to 500.
        after: ``next_after`` of the page before, which continues whatever became of its last edge
            since; or the id of an edge of this state.
        as_of: milliseconds; which were open or resolved then, with the statuses of then.
        text: only those with each of these words on one side, up to 200 characters.
        memory_id: only those with this memory; none when it does not exist.
        dismissed: of the resolved ones only those that were dismissed, or those that were not.
        oldest_first: the other way round; ``after`` continues in the same order.

    Raises:
        InvalidInput: ``limit`` or ``state`` is not one of the above; ``text`` or
            ``memory_id`` is over 200 characters or no text, ``dismissed`` with open ones.
        NotFound: ``after`` is an id of no contradiction of this state that the viewer sees.
        StorageError: the database cannot be read.
    """
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidInput(f"limit must be between 1 and {MAX_PAGE}", field="limit", value=limit)
    if state not in ("open", "resolved"):
        raise InvalidInput("state must be open or resolved", field="state")
    if dismissed is not None and state == "open":
        raise InvalidInput(
            "an open contradiction is not dismissed: leave dismissed out, or ask for resolved ones",
            field="dismissed",
        )
    sought = _sought(text, memory_id, dismissed, oldest_first)
    view = View(viewer, as_of)
    with database.read() as snapshot:
        place = None if after is None else _place(snapshot, view, state, after)
        edges = edges_rows.contradictions(
            snapshot,
            view,
            resolved=state == "resolved",
            limit=limit + 1,
            after=place,
            criteria=sought,
        )
        page = edges[:limit]
        ends = {end for edge in page for end in (edge.from_id, edge.to_id)}
        memories = graph.visible_memories(snapshot, ends, view)
        sources = graph.sources_of(snapshot, memories.values())
    items = _described(page, memories, sources, now_ms if as_of is None else as_of)
    return ContradictionPage(
        items=tuple(items), next_after=place_after(items[-1], state) if len(edges) > limit else None
    )


def place_after(item: Contradiction, state: State) -> str:
    """Return the ``after`` that continues behind an item of a page; pure."""
    time = item.edge.resolved_at if state == "resolved" else item.edge.created_at
    return f"{time}.{item.edge.edge_id}"


def _place(snapshot: Snapshot, view: View, state: State, after: str) -> tuple[int, str]:
    """Return the time and edge id after which a page begins.

    One with a time is not looked up, so that it does not disclose whether there is such an edge.
    """
    if match := _PLACE.fullmatch(after):
        return int(match[1]), match[2]
    times = edges_rows.contradiction_times(snapshot, after, view)
    time = None if times is None else times[1 if state == "resolved" else 0]
    if time is None:
        raise NotFound(f"no {state} contradiction {after[:80]!r}", edge_id=after[:80])
    return time, after


def _sought(
    text: str | None, memory_id: str | None, dismissed: bool | None, oldest_first: bool
) -> ContradictionFilter:
    """Return the search text. Raises InvalidInput: it is too long, or cannot be stored."""
    for field, value in (("text", text), ("memory_id", memory_id)):
        if value is None:
            continue
        if len(value) > MAX_SOUGHT_CHARS or "\0" in value or not is_id(value):
            message = f"{field} has at most {MAX_SOUGHT_CHARS} characters, such as can be stored"
            raise InvalidInput(message, field=field)
    words = () if text is None else tuple(text.split())
    return ContradictionFilter(words, memory_id, dismissed, oldest_first)


def _described(
    edges: Iterable[Edge],
    memories: dict[str, Memory],
    sources: Iterable[StoredSource],
    now_ms: int,
) -> list[Contradiction]:
    by_id = {source.source_id: source for source in sources}
    return [
        describe(edge, memories[edge.from_id], memories[edge.to_id], by_id, now_ms)
        for edge in edges
    ]


def describe(
    edge: Edge, left: Memory, right: Memory, sources: dict[str, StoredSource], now_ms: int
) -> Contradiction:
    """Return a Contradicts edge and its two memories as one value; pure."""
    first, second = sorted((left, right), key=lambda memory: (memory.created_at, memory.memory_id))
    ended = now_ms if edge.resolved_at is None else edge.resolved_at
    statuses = {first.status, second.status}
    return Contradiction(
        edge=edge,
        first=first,
        second=second,
        sources=(sources[first.source_id], sources[second.source_id]),
        since=edge.created_at,
        open_days=_days(ended - edge.created_at),
        ages_days=(_days(now_ms - first.created_at), _days(now_ms - second.created_at)),
        resolved=edge.resolved_at is not None,
        dismissed=is_dismissed(edge.resolution),
        moot=edge.resolved_at is None and statuses != {MemoryStatus.ACTIVE},
    )


def _days(ms: int) -> float:
    return max(ms, 0) / MS_PER_DAY
