"""The interface between a server's bounds and its pages for people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from memgraph.errors import MemgraphError
from memgraph.surfaces.host_checks import ASGIApp, Scope


@dataclass(frozen=True, slots=True)
class Pages:
    """Pages that are mounted beside the API.

    Attributes:
        place: their address; all paths below it are theirs.
        app: answers there.
        visitor: the unit that a request counts for by its session; None: none. Called for every
            request, in the event loop: it reads no file.
        refusal: returns the page for an error, with a status, when ``app`` is not called.
    """

    place: str
    app: ASGIApp
    visitor: Callable[[Scope], str | None]
    refusal: Callable[[Scope, MemgraphError, int], ASGIApp]

    def has(self, scope: Scope) -> bool:
        """Return True when a request is for one of them."""
        return f"{scope['path']}/".startswith(f"{self.place}/")
