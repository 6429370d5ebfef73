"""Console pages for entities: the list, and the profile of one."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from memgraph.model.values import MAX_NAME_CHARS
from memgraph.surfaces.web.requests import ConsolePage, Visit

LISTED: Final = 200
MEMORIES: Final = 50


def listing(visit: Visit) -> Response:
    """Show the entities that visible memories name, most mentioned first."""
    orc = visit.enter()
    prefix = visit.query("prefix")[:MAX_NAME_CHARS]
    entities = orc.entities.list(prefix=prefix, limit=LISTED + 1)
    return visit.show(
        "entities.html", entities=entities[:LISTED], prefix=prefix, cut=len(entities) > LISTED
    )


def entity(visit: Visit) -> Response:
    """Show an entity with its names, the memories that name it, and related entities."""
    orc = visit.enter()
    return visit.show(
        "entity.html", entity=orc.entities.get(visit.path("entity_id"), limit=MEMORIES)
    )


PAGES: Final = (
    ConsolePage("/{orchestrator}/entities", listing),
    ConsolePage("/{orchestrator}/entities/{entity_id}", entity),
)
