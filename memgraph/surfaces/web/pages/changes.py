"""What stands on a ground that no longer holds."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from memgraph.model.access import Permission
from memgraph.surfaces.web.visiting import Page, Visit

PER_PAGE: Final = 25


def stale(visit: Visit) -> Response:
    """Memories that stand on a ground that was replaced or taken back, and the way to it."""
    orc = visit.enter(Permission.AUDIT)
    after = visit.query("after") or None
    page = orc.stale(limit=PER_PAGE, after=after, as_of=visit.as_of)
    return visit.show("stale.html", page=page)


PAGES: Final = (Page("/{orchestrator}/stale", stale, timed=True),)
