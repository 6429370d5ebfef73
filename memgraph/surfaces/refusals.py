"""The steps before an error is answered, on every surface of the server."""

from __future__ import annotations

import time

import anyio
from anyio.to_thread import run_sync

from memgraph.errors import AccessDenied, MemgraphError, NotFound
from memgraph.service.access.gate import Gate
from memgraph.surfaces.host_checks import Scope
from memgraph.surfaces.scopes import BEGAN, ENTERED


async def settle(gate: Gate, scope: Scope, error: MemgraphError) -> None:
    """Journal a refusal before it is answered, and delay the answer so that its time reveals
    nothing.
    """
    entered = scope.get(ENTERED)
    refused = isinstance(error, AccessDenied | NotFound) and not error.journalled
    if entered is not None and refused:
        principal, orchestrator = entered
        await run_sync(gate.miss, principal, orchestrator, error)
    now = time.monotonic()
    pause_s = gate.pause_s(error, now - scope.get(BEGAN, now))
    if pause_s > 0:
        await anyio.sleep(pause_s)
