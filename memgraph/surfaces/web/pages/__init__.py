"""The pages of the console, one module for each topic."""

from __future__ import annotations

from typing import Final

from memgraph.surfaces.web.pages import (
    answers,
    bulletins,
    changes,
    contradictions,
    health,
    jobs,
    memories,
    overview,
    receipts,
    search,
    trends,
)
from memgraph.surfaces.web.pages import graph as exploring
from memgraph.surfaces.web.pages import ingestion as ingesting
from memgraph.surfaces.web.pages import recall as recalling

_MODULES: Final = (
    overview,
    contradictions,
    memories,
    receipts,
    changes,
    health,
    exploring,
    recalling,
    bulletins,
    ingesting,
    jobs,
    search,
    answers,
    trends,
)

PAGES: Final = tuple(page for module in _MODULES for page in module.PAGES)
"""Every page behind the sign-in."""
ARRIVALS: Final = (ingesting.ARRIVAL,)
"""The addresses to which scripts send bodies that are no forms."""
