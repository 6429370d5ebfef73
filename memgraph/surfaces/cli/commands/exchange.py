"""Commands for whole databases: restore, migrate-store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memgraph.surfaces.cli.builder import OrchestratorName
from memgraph.surfaces.cli.invocation import CommandResult, invocation, value
from memgraph.surfaces.cli.render import show_result
from memgraph.surfaces.cli.screen import note


def restore(
    context: typer.Context,
    orchestrator: OrchestratorName,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file made by backup.")],
    reason: Annotated[str, value("TEXT", "Why, for the journal.")] = "restored a backup",
    new_name: Annotated[
        str | None,
        value("NAME", "Restore as a new orchestrator with this name; ORC is unchanged.", "--as"),
    ] = None,
    accept_findings: Annotated[
        bool, typer.Option("--accept-findings", help="Accept findings of the audit, except damage.")
    ] = False,
) -> CommandResult:
    """Restore a database from a backup; a damaged backup is refused.

    The old files are moved to memory/replaced/; only an erasure removes them.
    """
    from memgraph.operations.maintenance.maintenance import restore as put_back

    call = invocation(context)
    name = orchestrator if new_name is None else new_name
    with call.service() as service:
        # The settings that will open it; the other orchestrator's config.toml does not apply.
        chosen = service.settings(name).memory
        done = put_back(
            service.paths(name),
            file,
            clock=service.clock,
            actor=call.actor or "user",
            reason=reason,
            origin=None if new_name is None else orchestrator,
            origin_url=service.settings(orchestrator).memory.storage.url,
            accept_findings=accept_findings,
            url=chosen.storage.url,
        )

    return CommandResult(done.model_dump(mode="json"), lambda screen: show_result(screen, done))


def migrate_store(
    context: typer.Context,
    orchestrator: OrchestratorName,
    to: Annotated[str, typer.Option(metavar="URL|file", help="A server's URL, or `file`.")],
) -> CommandResult:
    """Move an orchestrator into a file or to a server, and verify it there.

    Reads continue; writes and erasures wait until it has ended. The setting is written to the
    orchestrator's config.toml. The old store is kept. If the move is interrupted, the old store
    stays in use: run the command again.
    """
    from memgraph.operations.maintenance.move import move

    call = invocation(context)
    with call.service() as service:
        service.orchestrator(orchestrator)
        chosen = service.settings(orchestrator).memory
        done = move(
            service.paths(orchestrator),
            "" if to == "file" else to,
            source=chosen.storage.url,
            clock=service.clock,
        )

    if done.left is not None and done.source and not call.as_json:
        note("erasures do not cover the old schema: drop it when you no longer need it")
    return CommandResult(done.model_dump(mode="json"), lambda screen: show_result(screen, done))
