"""Measures every request when it is answered, for figures and traces.

It records the route's template: never an address as it was sent, which may contain anything.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from starlette.routing import Match

from memgraph.surfaces.host_checks import ASGIApp, Message, Receive, Scope, Send, header

NO_ROUTE: Final = "(none)"
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@dataclass(slots=True)
class RequestOutcome:
    """The result of a request. ``status`` 0: the client went away before the answer."""

    route: str = NO_ROUTE
    status: int = 0


class RequestMeter(Protocol):
    """Measures requests."""

    def request(
        self, method: str, traceparent: str | None = None
    ) -> AbstractContextManager[RequestOutcome]:
        """Measure the block as a request; the block fills in the answer.

        Args:
            traceparent: the client's own trace, as it was sent.
        """
        ...


class MeteredApp:
    """Measures the requests of an application."""

    def __init__(self, app: ASGIApp, requests: RequestMeter) -> None:
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
    """Return a request's method; ``other`` for one that HTTP does not know, which may be any
    text.
    """
    return method if method in METHODS else "other"


def route_of(scope: Scope) -> str:
    """Return the template of the route that answered, such as ``/v1/orchestrators/{orchestrator}``.

    For a request refused before its route: that route. For a mounted application: its path, with
    the template of its own route if it has one.
    """
    place = scope.get("root_path", "")
    template = getattr(scope.get("route"), "path", None)
    if isinstance(template, str):
        return f"{place}{template}"
    return place or _meant(scope)


def _meant(scope: Scope) -> str:
    """Return the route of an early refusal or of a framework's document, which the framework does
    not record.
    """
    for each in getattr(scope.get("app"), "routes", ()):
        if each.matches(scope)[0] is Match.FULL:
            template: str = each.path
            return template
    return NO_ROUTE
