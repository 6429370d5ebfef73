"""Every request recorded, once it is answered: in the server's log, in figures, in a trace.

Told are the route's template and ids that the service knows: never an address as it was sent, in
which anything may stand, nor a header.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from memgraph.ids import IdSource
from memgraph.log import EventLog
from memgraph.surfaces.guarding import ASGIApp, Message, Receive, Scope, Send, header

NO_ROUTE: Final = "(none)"
QUIET: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""Asked every few seconds by machines; logged where they fail."""
REQUEST_PREFIX: Final = "req_"
HEADER: Final = b"x-request-id"


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
    """Records what an application answers, and gives each answer an ``X-Request-Id``."""

    def __init__(self, app: ASGIApp, *, log: EventLog, requests: Requests, ids: IdSource) -> None:
        self._app = app
        self._log = log
        self._requests = requests
        self._ids = ids

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        request_id = self._ids.new(REQUEST_PREFIX)
        traceparent = header(scope, b"traceparent")
        with self._requests.request(scope["method"], traceparent) as answered:

            async def sent(message: Message) -> None:
                if message["type"] == "http.response.start":
                    answered.status = message["status"]
                    own = (HEADER, request_id.encode())
                    message["headers"] = [*message.get("headers", ()), own]
                await send(message)

            try:
                await self._app(scope, receive, sent)
            finally:
                answered.route = _route(scope)
                self._tell(scope, answered, request_id, time.perf_counter() - began)

    def _tell(self, scope: Scope, answered: Answered, request_id: str, took_s: float) -> None:
        if answered.route in QUIET and answered.status == 200:
            return
        known = scope.get("state", {})
        tell = self._log.error if answered.status >= 500 else self._log.info
        tell(
            "request",
            request_id=request_id,
            method=scope["method"] if answered.route != NO_ROUTE else None,
            route=answered.route,
            status=answered.status,
            ms=round(took_s * 1_000, 1),
            actor=known.get("actor"),
            orchestrator=known.get("orchestrator"),
        )


def _route(scope: Scope) -> str:
    """The template of the route that answered, such as ``/v1/orchestrators/{orchestrator}``."""
    template = getattr(scope.get("route"), "path", None)
    if isinstance(template, str):
        return template
    # What is mounted has routes of its own, or none: its place is known once it was found.
    return scope.get("root_path") or NO_ROUTE
