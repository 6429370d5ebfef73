"""Commands for whole databases: restore, migrate-store, export."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from memgraph.surfaces.cli.builder import OrchestratorName
from memgraph.surfaces.cli.invocation import CommandResult, Invocation, invocation, value
from memgraph.surfaces.cli.screen import note, stages

if TYPE_CHECKING:
    from memgraph.operations.orchestrator import Orchestrator


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

    The old files are moved to memory/replaced/ and never deleted.
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
            accept_findings=accept_findings,
            url=chosen.storage.url,
        )

    return CommandResult(done.as_dict())


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
    return CommandResult(done.as_dict())


def export(
    context: typer.Context,
    orchestrator: OrchestratorName,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The file to write. [standard output]"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    with_vectors: Annotated[
        bool, typer.Option("--with-vectors", help="Include embeddings.")
    ] = False,
) -> CommandResult:
    """Write all data of an orchestrator as JSON Lines, regardless of sensitivity.

    To copy an orchestrator, use backup and restore.
    """
    call = invocation(context)
    if output is None and (call.as_json or sys.stdout.isatty()):
        raise typer.BadParameter("name a file with --output, or redirect standard output")
    with call.orchestrator(orchestrator) as handle:
        if output is None:
            for line in _lines(call, handle, with_vectors=with_vectors):
                sys.stdout.buffer.write(line)
            return CommandResult({}, lambda _screen: None)
        with stages("exporting") as advance:
            done = handle.exchange.export(
                output,
                force=force,
                with_vectors=with_vectors,
                progress=lambda lines: advance("lines", lines, lines),
            )
    return CommandResult(done.as_dict())


def _lines(call: Invocation, handle: Orchestrator, *, with_vectors: bool) -> Iterator[bytes]:
    """Yield the lines of an export; those of a server after all of them have arrived."""
    if call.server_url is None:
        yield from handle.exchange.export_lines(with_vectors=with_vectors)
        return
    with TemporaryDirectory(prefix="memgraph-") as folder:
        handle.exchange.export(Path(folder) / "lines", with_vectors=with_vectors)
        with (Path(folder) / "lines").open("rb") as lines:
            yield from lines
