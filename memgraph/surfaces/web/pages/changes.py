"""Changes between two times, and memories with retracted evidence."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from memgraph.clock import MS_PER_DAY, iso, parse_time
from memgraph.model.access import Permission
from memgraph.surfaces.web.requests import MAX_TIME_CHARS, ConsolePage, Visit

PER_PAGE: Final = 25
MOST: Final = 100
"""Changes of each kind on one page."""
DEFAULT_DAYS: Final = 7


def diff(visit: Visit) -> Response:
    """Show what was learnt, replaced, retracted, found and decided; by default in the last week."""
    orc = visit.enter()
    end = _moment(visit.query("until"), visit.console.now_ms())
    begin = _moment(visit.query("since"), end - DEFAULT_DAYS * MS_PER_DAY)
    found = orc.history.diff(begin, end, limit=MOST)
    return visit.show("diff.html", diff=found, since=iso(begin), until=iso(end))


def stale(visit: Visit) -> Response:
    """Show memories that depend on superseded or retracted evidence, with the path to it."""
    orc = visit.enter(Permission.AUDIT)
    after = visit.query("after") or None
    page = orc.graph.stale(limit=PER_PAGE, after=after, as_of=visit.as_of)
    return visit.show("stale.html", page=page)


def _moment(text: str, default: int) -> int:
    return parse_time(text[:MAX_TIME_CHARS]) if text else default


PAGES: Final = (
    ConsolePage("/{orchestrator}/diff", diff),
    ConsolePage("/{orchestrator}/stale", stale, timed=True),
)
