"""Keys of the ASGI scope by which the parts of the server share data on a request."""

from __future__ import annotations

from typing import Final

BEGAN: Final = "memgraph.began"
"""When the request arrived: seconds of ``time.monotonic``."""
REQUEST_ID: Final = "memgraph.request_id"
AUTHENTICATED: Final = "memgraph.authenticated"
"""True once the request's key was accepted."""
ENTERED: Final = "memgraph.entered"
"""The principal, and the name of the orchestrator that it entered."""
CODE: Final = "memgraph.code"
"""The code of the error that was answered, when the answer is a page."""
UNTIMED: Final = "memgraph.untimed"
"""A function that removes the time limit of the answer, for routes that an operator waits for."""
WANTED: Final = "memgraph.wanted"
"""A function that returns True while somebody waits for the answer."""
TURN: Final = "memgraph.turn"
"""The turn of a request with an Idempotency-Key; see ``Once``."""
