"""Commands for whole databases: backup, restore, migrate-store, export, upgrade."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from memgraph.audit.journal import read_key
from memgraph.errors import MemgraphError
from memgraph.operations.exchange.formats import write_as
from memgraph.surfaces.cli.builder import OrchestratorName, on_server
from memgraph.surfaces.cli.invocation import CommandResult, Invocation, invocation, value
from memgraph.surfaces.cli.screen import note, progress, stages

AcceptFindings = Annotated[
    bool,
    typer.Option("--accept-findings", help="Accept findings of the audit, except damage."),
]


@on_server
def backup(
    context: typer.Context,
    orchestrator: OrchestratorName,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")],
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    accept_findings: AcceptFindings = False,
) -> CommandResult:
    """Copy a database into one file, even while it is in use, and audit the copy."""
    with invocation(context).orchestrator(orchestrator) as handle, stages("copying") as advance:
        copy = handle.exchange.backup(
            file,
            force=force,
            accept_findings=accept_findings,
            progress=lambda done, total: advance("pages", done, total),
        )
    return CommandResult(copy.as_dict())


def restore(
    context: typer.Context,
    orchestrator: OrchestratorName,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file made by backup.")],
    reason: Annotated[str, value("TEXT", "Why, for the journal.")] = "restored a backup",
    new_name: Annotated[
        str | None,
        value("NAME", "Restore as a new orchestrator with this name; ORC is unchanged.", "--as"),
    ] = None,
    accept_findings: AcceptFindings = False,
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


class ExportFormat(StrEnum):
    """The format of an export."""

    JSONL = "jsonl"
    VAULT = "vault"
    CSV = "csv"
    GRAPHML = "graphml"


@on_server
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
    form: Annotated[
        ExportFormat,
        typer.Option("--format", help="jsonl contains everything, the others memories and edges."),
    ] = ExportFormat.JSONL,
) -> CommandResult:
    """Write all data of an orchestrator, regardless of sensitivity.

    The format is JSON Lines, a vault of Markdown notes (a folder), CSV or GraphML. To copy an
    orchestrator, use backup and restore.
    """
    call = invocation(context)
    if form is not ExportFormat.JSONL:
        if output is None or with_vectors:
            raise typer.BadParameter(f"--format {form.value} requires --output, not --with-vectors")
        return _export_as(call, orchestrator, form, output, force=force)
    if output is None and (call.as_json or sys.stdout.isatty()):
        raise typer.BadParameter("name a file with --output, or redirect standard output")
    with call.orchestrator(orchestrator) as handle:
        if output is None:
            for line in handle.exchange.export_lines(with_vectors=with_vectors):
                sys.stdout.buffer.write(line)
            return CommandResult({}, lambda _screen: None)
        with _total_progress("exporting") as advance:
            done = handle.exchange.export(
                output, force=force, with_vectors=with_vectors, progress=advance
            )
    return CommandResult(done.as_dict())


def _export_as(
    call: Invocation, orchestrator: str, form: ExportFormat, output: Path, *, force: bool
) -> CommandResult:
    with call.orchestrator(orchestrator) as handle, TemporaryDirectory() as folder:
        with _total_progress("exporting") as advance:
            lines = handle.exchange.export(Path(folder) / "lines", progress=advance).path
        with lines.open("rb") as source:
            count = write_as(form.value, source, output, force=force)
    return CommandResult({"orchestrator": orchestrator, "path": str(output), "memories": count})


@contextmanager
def _total_progress(title: str) -> Iterator[Callable[[int], None]]:
    """Yield a callback that reports progress, and takes the total so far."""
    with stages(title) as advance:
        yield lambda lines: advance("lines", lines, lines)


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
