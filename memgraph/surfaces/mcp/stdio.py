"""The protocol over standard input and output, for an agent on the same machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIG_DFL, SIGINT, signal
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from memgraph.log import bug_fields
from memgraph.surfaces.mcp.doors import OpenDoor
from memgraph.surfaces.mcp.server import Context, make_server, silence_sdk

if TYPE_CHECKING:
    from memgraph.model.enums import Scope
    from memgraph.service.orchestrator import Orchestrator

THREADS: Final = 4


def run(handle: Orchestrator, root: Path, *, scope: Scope | None = None) -> None:
    """Serve one client until its end of input, or until it reads no more.

    Standard output carries the protocol alone: while it runs, whatever else is printed goes to
    standard error.

    Args:
        handle: what its viewer may see is all that the client reaches; its actor is whom the
            journal names.
        root: of its service; where it lies is nothing for a client.
        scope: where facts are kept; None: in the one place that is open.
    """
    silence_sdk()
    door = OpenDoor(handle, root, scope=scope)

    def failed(_context: Context, error: Exception) -> None:
        handle.log_event("mcp.bug", **bug_fields(error))

    try:
        with _interruptible():
            anyio.run(_serve, make_server(lambda _context: door, failed, threads=THREADS))
    except* BrokenPipeError:
        # The client is gone, as with the end of its input.
        pass


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C end the process at once: the thread that waits for input hears of nothing."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal(SIGINT, SIG_DFL)
    try:
        yield
    finally:
        signal(SIGINT, before)


async def _serve(server: Server[Any]) -> None:
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
