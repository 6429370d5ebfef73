"""The pages of the console, one module for each topic."""

from __future__ import annotations

from typing import Final

from memgraph.surfaces.web.pages import (
    contradictions,
    graph,
    handed_out,
    ingestion,
    memories,
    overview,
)

_MODULES: Final = (overview, contradictions, memories, handed_out, graph, ingestion)

PAGES: Final = tuple(page for module in _MODULES for page in module.PAGES)
"""All pages that require a sign-in."""
ARRIVALS: Final = (ingestion.ARRIVAL,)
"""The addresses to which scripts upload files."""
