"""What changed between two times, and what stands on a ground that no longer holds."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from memgraph.clock import MS_PER_DAY, iso, parse_time
from memgraph.model.access import Permission
from memgraph.surfaces.web.visiting import MAX_TIME_CHARS, Page, Visit

PER_PAGE: Final = 25
MOST: Final = 100
"""Changes of each kind on one page."""
DEFAULT_DAYS: Final = 7


def diff(visit: Visit) -> Response:
    """What was learnt, replaced, taken back, found and decided; of a week, if not told."""
    orc = visit.enter()
    end = _moment(visit.query("until"), visit.console.now_ms())
    begin = _moment(visit.query("since"), end - DEFAULT_DAYS * MS_PER_DAY)
    found = orc.diff(begin, end, limit=MOST)
    return visit.show("diff.html", diff=found, since=iso(begin), until=iso(end))


def stale(visit: Visit) -> Response:
    """Memories that stand on a ground that was replaced or taken back, and the way to it."""
    orc = visit.enter(Permission.AUDIT)
    after = visit.query("after") or None
    page = orc.stale(limit=PER_PAGE, after=after, as_of=visit.as_of)
    return visit.show("stale.html", page=page)


def _moment(text: str, default: int) -> int:
    return parse_time(text[:MAX_TIME_CHARS]) if text else default


PAGES: Final = (
    Page("/{orchestrator}/diff", diff),
    Page("/{orchestrator}/stale", stale, timed=True),
)
