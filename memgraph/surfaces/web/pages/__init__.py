"""The pages of the console, one module for what belongs together."""

from __future__ import annotations

from typing import Final

from memgraph.surfaces.web.pages import (
    bulletins,
    changes,
    contradictions,
    exploring,
    health,
    ingesting,
    jobs,
    memories,
    overview,
    recalling,
    receipts,
)

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
)

PAGES: Final = tuple(page for module in _MODULES for page in module.PAGES)
"""Every page behind the sign-in."""
ARRIVALS: Final = (ingesting.ARRIVAL,)
"""Where scripts send what is no form."""
