"""The pages of the console, one module for each section."""

from __future__ import annotations

from typing import Final

from memgraph.surfaces.web.pages import activity, contradictions, graph, memories, overview

_MODULES: Final = (overview, memories, contradictions, graph, activity)

PAGES: Final = tuple(page for module in _MODULES for page in module.PAGES)
"""All pages that require a sign-in."""
