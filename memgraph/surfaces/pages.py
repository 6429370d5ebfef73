"""What a server that shows pages to people tells its bounds of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from memgraph.errors import MemgraphError
from memgraph.surfaces.guarding import ASGIApp, Scope


@dataclass(frozen=True, slots=True)
class Pages:
    """Pages that are mounted beside the API.

    Attributes:
        place: where: this address and what lies below it are theirs.
        app: answers there.
        visitor: whom a request counts for by the session that it belongs to; None: by none. Asked
            for every request, in the event loop: it reads no file.
        refusal: the page that tells of an error, with a status, where ``app`` is not asked.
    """

    place: str
    app: ASGIApp
    visitor: Callable[[Scope], str | None]
    refusal: Callable[[Scope, MemgraphError, int], ASGIApp]

    def has(self, scope: Scope) -> bool:
        """Whether a request is for one of them."""
        return f"{scope['path']}/".startswith(f"{self.place}/")
