"""Serving an agent on the same machine: mcp."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from memgraph.model.enums import Scope
from memgraph.surfaces.cli.building import choice, make_command
from memgraph.surfaces.cli.invocation import Report, invocation


def mcp(
    context: typer.Context,
    orchestrator: Annotated[
        str, typer.Option("--orchestrator", metavar="ORC", help="The orchestrator's name.")
    ],
    scope: Annotated[
        Scope | None,
        choice(Scope, "--scope", text="Where facts are kept, when several places are open."),
    ] = None,
) -> Report:
    """Serve one agent over standard input and output by the Model Context Protocol.

    --clearance, --project and --session limit what the agent sees; the journal names --actor for
    what it writes. Ends with its input.
    """
    from memgraph.service.memory_service import MemoryService
    from memgraph.surfaces.mcp.stdio import run

    given = invocation(context)
    with MemoryService(given.root) as service:
        handle = given.handle(service, orchestrator)
        # Standard output belongs to the protocol, also when all is over.
        given.as_json = False
        run(handle, service.root, scope=scope)
    return Report({}, lambda _screen: None)


COMMANDS: dict[str, Any] = {"mcp": make_command(mcp, "mcp")}
