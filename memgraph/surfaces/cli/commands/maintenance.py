"""The command that upgrades schemas: upgrade."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from memgraph.audit.journal import read_key
from memgraph.errors import MemgraphError
from memgraph.surfaces.cli.builder import make_command
from memgraph.surfaces.cli.invocation import CommandResult, invocation
from memgraph.surfaces.cli.screen import progress


def upgrade(
    context: typer.Context,
    orchestrator: Annotated[
        str | None, typer.Argument(metavar="ORC", help="One orchestrator.", show_default=False)
    ] = None,
    everyone: Annotated[bool, typer.Option("--all", help="All under the root.")] = False,
) -> CommandResult:
    """Upgrade the schema of a database to this version, after a backup next to it.

    With --all, the others are upgraded even if one fails; the command then exits with 1.
    """
    from memgraph.operations.maintenance import maintenance

    if (orchestrator is None) != everyone:
        raise typer.BadParameter("name an orchestrator, or --all")
    call = invocation(context)
    done: list[dict[str, Any]] = []
    failed: list[MemgraphError] = []
    with call.service() as service:
        names = service.orchestrators() if orchestrator is None else [orchestrator]
        with progress("upgrading", len(names)) as advance:
            for name in names:
                service.orchestrator(name)
                try:
                    outcome = maintenance.upgrade(
                        service.paths(name),
                        service.clock,
                        key=read_key(service.settings(name).memory.audit.key_file, service.root),
                        url=service.settings(name).memory.storage.url,
                    ).as_dict()
                except MemgraphError as error:
                    if not everyone:
                        raise
                    failed.append(error)
                    outcome = {"orchestrator": name, "error": error.as_dict()}
                done.append(outcome)
                advance(1)
    refusal = None
    if failed:
        refusal = type(failed[0])(f"{len(failed)} of {len(names)} failed: {failed[0].message}")

    return CommandResult({"upgraded": done}, error=refusal)


COMMANDS: dict[str, Any] = {
    "upgrade": make_command(upgrade, "upgrade"),
}
