"""What every answer of the console tells the browser: whatever a page holds, it loads and runs
nothing that is not the console's own.
"""

from __future__ import annotations

from typing import Final

from memgraph.surfaces.guarding import ASGIApp, Headers, Message, Receive, Scope, Send

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)

HEADERS: Final[Headers] = [
    (b"content-security-policy", POLICY.encode()),
    # With no-referrer a browser would send its forms with the Origin null.
    (b"referrer-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), usb=()"),
]


class SecurityHeaders:
    """Adds ``HEADERS`` to every answer of an application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        await self._app(scope, receive, guarded)
