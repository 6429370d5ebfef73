"""What the parts of the server tell each other about a request, in its ASGI scope."""

from __future__ import annotations

from typing import Final

BEGAN: Final = "memgraph.began"
"""When it was there: seconds of ``time.monotonic``."""
REQUEST_ID: Final = "memgraph.request_id"
AUTHENTICATED: Final = "memgraph.authenticated"
"""True once the key that came with it was found to be one."""
ENTERED: Final = "memgraph.entered"
"""Who asks, and the name of the orchestrator that was entered for them."""
CODE: Final = "memgraph.code"
"""Of the error that was answered, where the answer is a page."""
UNTIMED: Final = "memgraph.untimed"
"""Call it, and the answer may take as long as it takes: of a route that an operator waits for."""
WANTED: Final = "memgraph.wanted"
"""Call it: whether somebody still waits for the answer."""
TURN: Final = "memgraph.turn"
"""Of a request with an Idempotency-Key; see ``Once``."""
