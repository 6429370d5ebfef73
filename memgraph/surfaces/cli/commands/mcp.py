"""Serving an agent on the same machine: mcp."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memgraph.model.enums import Scope
from memgraph.surfaces.cli.builder import choice, make_command, value
from memgraph.surfaces.cli.invocation import CommandResult, Invocation, invocation
from memgraph.surfaces.cli.mcp_clients import (
    ConfigChange,
    McpClient,
    config_path,
    program,
    with_server,
)

if TYPE_CHECKING:
    from memgraph.surfaces.cli.screen import Screen


def mcp(
    context: typer.Context,
    orchestrator: Annotated[
        str, typer.Option("--orchestrator", metavar="ORC", help="The orchestrator's name.")
    ],
    scope: Annotated[
        Scope | None,
        choice(Scope, "--scope", text="Where facts are kept, when several places are open."),
    ] = None,
    install: Annotated[
        McpClient | None,
        choice(McpClient, "--install", text="Add this server to a client's configuration instead."),
    ] = None,
    config: Annotated[
        Path | None, value("FILE", "The configuration to change. [the client's usual one]")
    ] = None,
    name: Annotated[str, value("NAME", "With --install: the server's name in the client.")] = (
        "memory"
    ),
    yes: Annotated[
        bool, typer.Option("--yes", help="With --install: change the file without asking.")
    ] = False,
) -> CommandResult:
    """Serve one agent over standard input and output by the Model Context Protocol.

    --clearance, --project and --session limit what the agent sees; the journal names --actor for
    what it writes. Ends with its input.

    With --install the client is set up to start this server with the same options: the change is
    shown, a copy of the file is kept, and the journal names the client unless --actor is given.
    """
    from memgraph.service.memory_service import MemoryService
    from memgraph.surfaces.mcp.stdio import run

    given = invocation(context)
    if install is not None:
        with given.orchestrator(orchestrator):
            pass  # there is one
        arguments = _arguments(given, orchestrator, scope, install)
        path = config or config_path(install, os.environ, sys.platform)
        change = with_server(install, path, name, program(), arguments)
        return _installed(given, install, change, yes=yes)
    with MemoryService(given.root) as service:
        handle = given.handle(service, orchestrator)
        # Standard output belongs to the protocol, also when all is over.
        given.as_json = False
        run(handle, service.root, scope=scope)
    return CommandResult({}, lambda _screen: None)


def _arguments(
    call: Invocation, orchestrator: str, scope: Scope | None, client: McpClient
) -> list[str]:
    """Return the arguments with which the client starts the server as it was called here."""
    made = ["mcp", "--orchestrator", orchestrator, "--actor", call.actor or client.value]
    root = call.root or os.environ.get("MEMGRAPH_ROOT")
    made += ["--root", str(Path(root).absolute())] if root else []
    made += ["--clearance", call.clearance.value] if call.clearance else []
    made += [part for item in call.project for part in ("--project", item)]
    made += [part for item in call.session for part in ("--session", item)]
    return made + (["--scope", scope.value] if scope else [])


def _installed(
    call: Invocation, client: McpClient, change: ConfigChange, *, yes: bool
) -> CommandResult:
    diff = change.diff
    if diff and not yes:
        if call.as_json:
            raise typer.BadParameter("--json asks nothing: give --yes, or leave --json out")
        call.screen().raw_lines(diff)
        typer.confirm(f"Change {change.path}?", abort=True)
    backup = change.write() if diff else None
    data = {
        "client": client.value,
        "path": str(change.path),
        "changed": bool(diff),
        "backup": None if backup is None else str(backup),
        "diff": diff,
    }

    def show(screen: Screen) -> None:
        if not diff:
            screen.line(f"nothing to do: {change.path} has this server")
            return
        if yes:
            screen.raw_lines(diff)
        screen.line(f"changed {change.path}" + (f"; it was kept as {backup}" if backup else ""))
        screen.line(f"restart {client.value}, and ask it what it remembers")

    return CommandResult(data, show)


COMMANDS: dict[str, Any] = {"mcp": make_command(mcp, "mcp")}
