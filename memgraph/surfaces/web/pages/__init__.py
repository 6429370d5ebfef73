"""The pages of the console, one module for what belongs together."""

from __future__ import annotations

from typing import Final

from memgraph.surfaces.web.pages import overview

_MODULES: Final = (overview,)

PAGES: Final = tuple(page for module in _MODULES for page in module.PAGES)
"""Every page behind the sign-in."""
