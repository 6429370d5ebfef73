"""Every request measured, once it is answered: for figures and for traces.

Told is the route's template: never an address as it was sent, in which anything may stand.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from starlette.routing import Match

from memgraph.surfaces.guarding import ASGIApp, Message, Receive, Scope, Send, header

NO_ROUTE: Final = "(none)"
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@dataclass(slots=True)
class Answered:
    """What is known of a request at its end. ``status`` 0: its asker went away before."""

    route: str = NO_ROUTE
    status: int = 0


class Requests(Protocol):
    """Takes the time of requests."""

    def request(
        self, method: str, traceparent: str | None = None
    ) -> AbstractContextManager[Answered]:
        """The time of the block is a request's; the block fills in how it was answered.

        Args:
            traceparent: the asker's own trace, as it was sent.
        """
        ...


class Recorded:
    """Measures what an application answers."""

    def __init__(self, app: ASGIApp, requests: Requests) -> None:
        self._app = app
        self._requests = requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        traceparent = header(scope, b"traceparent")
        with self._requests.request(scope["method"], traceparent) as answered:

            async def sent(message: Message) -> None:
                if message["type"] == "http.response.start":
                    answered.status = message["status"]
                await send(message)

            try:
                await self._app(scope, receive, sent)
            finally:
                answered.route = route_of(scope)


def known_method(method: str) -> str:
    """A request's method; ``other`` for one that HTTP does not know, which may be any word."""
    return method if method in METHODS else "other"


def route_of(scope: Scope) -> str:
    """The template of the route that answered, such as ``/v1/orchestrators/{orchestrator}``.

    Of what was refused before it came to its route: that route. Of what is mounted: its place, with
    the template of its own route if it has one.
    """
    place = scope.get("root_path", "")
    template = getattr(scope.get("route"), "path", None)
    if isinstance(template, str):
        return f"{place}{template}"
    return place or _meant(scope)


def _meant(scope: Scope) -> str:
    """The framework notes no route for what is refused early, and none of its own documents."""
    for each in getattr(scope.get("app"), "routes", ()):
        if each.matches(scope)[0] is Match.FULL:
            template: str = each.path
            return template
    return NO_ROUTE
