"""Serve MCP over standard input and output, for an agent on the same machine."""

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
from memgraph.model.enums import Scope, ToolChoice
from memgraph.surfaces.mcp.server import Context, HandleAccess, make_server, silence_sdk

if TYPE_CHECKING:
    from memgraph.operations.orchestrator import Orchestrator

THREADS: Final = 4


def run(
    handle: Orchestrator,
    root: Path,
    *,
    scope: Scope | None = None,
    tools: ToolChoice = ToolChoice.DEFAULT,
) -> None:
    """Serve one client until its input ends, or until it stops reading.

    Standard output carries only the protocol; anything else that is printed meanwhile goes to
    standard error.

    Args:
        handle: determines what the client may see; the journal records its actor.
        root: the root of the service; its path is removed from error messages.
        scope: the scope in which new facts are stored; None: the only visible one, else global.
        tools: the tools to offer.
    """
    silence_sdk()
    access = HandleAccess(lambda _permission: handle, root, scope=scope, tools=tools)

    def failed(_context: Context, error: Exception) -> None:
        handle.ingestion.log_event("mcp.bug", **bug_fields(error))

    try:
        with _interruptible():
            anyio.run(_serve, make_server(lambda _context: access, failed, threads=THREADS))
    except* BrokenPipeError:
        # The client has exited; treat it like the end of its input.
        pass


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C end the process at once; the thread that reads input cannot be interrupted."""
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
