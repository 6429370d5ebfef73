"""Serving others: serve."""

from __future__ import annotations

from typing import Any

import typer

from memgraph.surfaces.cli.building import make_command
from memgraph.surfaces.cli.invocation import Report, invocation


def serve(context: typer.Context) -> Report:
    """Serve the HTTP API until SIGTERM or Ctrl-C."""
    from memgraph.service.memory_service import MemoryService
    from memgraph.surfaces.serving import serve

    with MemoryService(invocation(context).root) as service:
        serve(service)
    return Report({}, lambda screen: screen.line("ended"))


COMMANDS: dict[str, Any] = {"serve": make_command(serve, "serve")}
