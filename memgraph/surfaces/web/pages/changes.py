"""Changes between two times, and memories with retracted evidence."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from memgraph.clock import MS_PER_DAY, iso
from memgraph.model.access import Permission
from memgraph.model.graph import Diff
from memgraph.surfaces.web.requests import ConsolePage, Visit

PER_PAGE: Final = 25
MOST: Final = 100
"""Changes of each kind on one page."""
DEFAULT_DAYS: Final = 7
PRESETS: Final = (
    ("Today", "today"),
    ("Since yesterday", "yesterday"),
    ("Since last week", "last week"),
    ("Since last month", "last month"),
    ("Since last year", "last year"),
)
"""The texts of links, and the times since when they compare."""


def diff(visit: Visit) -> Response:
    """Show what was learnt, replaced, retracted, found and decided; by default in the last week."""
    orc = visit.enter()
    now = visit.console.now_ms()
    until, since = visit.moment("until", ends=True), visit.moment("since")
    end = now if until is None else until
    begin = end - DEFAULT_DAYS * MS_PER_DAY if since is None else since
    result = orc.history.diff(begin, end, limit=visit.size(MOST))
    return visit.listing(
        "diff.html",
        lambda: _rows(result),
        following=None,
        diff=result,
        since=iso(begin),
        until=iso(end),
        presets=PRESETS,
    )


def _rows(diff: Diff) -> list[dict[str, Any]]:
    message = diff.model_dump(mode="json", exclude={"counts", "since", "until", "cut"})
    return [{"change": change, **event} for change, events in message.items() for event in events]


def stale(visit: Visit) -> Response:
    """Show memories that depend on superseded or retracted evidence, with the path to it."""
    orc = visit.enter(Permission.AUDIT)
    after = visit.query("after") or None
    page = orc.graph.stale(limit=visit.size(PER_PAGE), after=after, as_of=visit.as_of)
    return visit.listing(
        "stale.html",
        lambda: [
            {
                "memory_id": item.memory.memory_id,
                "content": item.memory.content,
                "ground_id": item.premise.ground.memory_id,
                "ground": item.premise.ground.content,
                "ended": item.premise.ended,
                "ended_at": iso(item.premise.ended_at),
            }
            for item in page.items
        ],
        following=visit.here(after=page.next_after) if page.next_after else None,
        page=page,
    )


PAGES: Final = (
    ConsolePage("/{orchestrator}/diff", diff),
    ConsolePage("/{orchestrator}/stale", stale, timed=True),
)
