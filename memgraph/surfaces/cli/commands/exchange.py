"""Commands that copy all data: backup, restore, migrate-store, export, import."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, BinaryIO

import typer

from memgraph.operations.exchange.formats import write_as
from memgraph.surfaces.cli.builder import OrchestratorName, make_command, value
from memgraph.surfaces.cli.files import counted
from memgraph.surfaces.cli.invocation import CommandResult, Invocation, invocation
from memgraph.surfaces.cli.screen import Screen, progress, stages

AcceptFindings = Annotated[
    bool,
    typer.Option("--accept-findings", help="Accept findings of the audit, except damage."),
]


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
    data = copy.as_dict()
    # A server audits the copy itself, and does not report the number of memories.
    many = f"{counted(data['memories'], 'memory', 'memories')}, " if "memories" in data else ""
    line = f"wrote {many}{copy.bytes} bytes to {copy.path}"
    return CommandResult(data, lambda screen: screen.line(line))


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

    def show(screen: Screen) -> None:
        many = counted(done.memories, "memory", "memories")
        screen.line(f"restored {many} of {done.orchestrator} from {done.backup}")
        if done.replaced is not None:
            screen.line(f"the old files: {done.replaced}")

    return CommandResult(done.as_dict(), show)


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

    def show(screen: Screen) -> None:
        many = counted(done.memories, "memory", "memories")
        screen.line(f"moved {many} of {done.orchestrator} to {done.target or 'a file'}, verified")
        screen.line(f"writers waited for {done.paused_ms / 1000:.1f} s")
        if done.left is not None:
            screen.line(f"the old store: {done.left}")
        if done.left is not None and done.source:
            screen.line("erasures do not cover it: drop that schema when you no longer need it")

    return CommandResult(done.as_dict(), show)


class ExportFormat(StrEnum):
    """The format of an export."""

    JSONL = "jsonl"
    VAULT = "vault"
    CSV = "csv"
    GRAPHML = "graphml"


def export(
    context: typer.Context,
    orchestrator: OrchestratorName,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The file to write. [standard output]"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    with_vectors: Annotated[
        bool, typer.Option("--with-vectors", help="Include embeddings; an import can make them.")
    ] = False,
    form: Annotated[
        ExportFormat,
        typer.Option("--format", help="jsonl can be imported; others contain memories and edges."),
    ] = ExportFormat.JSONL,
) -> CommandResult:
    """Write all data of an orchestrator, regardless of sensitivity.

    The format is JSON Lines, which can be imported, a vault of Markdown notes (a folder), CSV or
    GraphML.
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
            return CommandResult({}, _show_nothing)
        with _total_progress("exporting") as advance:
            done = handle.exchange.export(
                output, force=force, with_vectors=with_vectors, progress=advance
            )
    line_of_text = f"wrote {_counts(done.records)} to {done.path}"
    return CommandResult(done.as_dict(), lambda screen: screen.line(line_of_text))


def _export_as(
    call: Invocation, orchestrator: str, form: ExportFormat, output: Path, *, force: bool
) -> CommandResult:
    with call.orchestrator(orchestrator) as handle, TemporaryDirectory() as folder:
        with _total_progress("exporting") as advance:
            lines = handle.exchange.export(Path(folder) / "lines", progress=advance).path
        with lines.open("rb") as source:
            count = write_as(form.value, source, output, force=force)
    data = {"orchestrator": orchestrator, "path": str(output), "memories": count}
    return CommandResult(
        data,
        lambda screen: screen.line(f"wrote {counted(count, 'memory', 'memories')} to {output}"),
    )


def import_(
    context: typer.Context,
    orchestrator: OrchestratorName,
    file: Annotated[str, typer.Argument(metavar="FILE", help="An export; - reads standard input.")],
) -> CommandResult:
    """Import an export: ids, times, history and journal are restored.

    The orchestrator must be new or empty. A damaged or truncated export is rejected as a whole.
    """
    call = invocation(context)
    with call.service() as service, _source(file) as source:
        with _total_progress("importing") as advance:
            done = service.import_lines(
                orchestrator, source, actor=call.actor or "user", progress=advance
            )
        embedding = call.after_writing(call.handle(service, orchestrator))
    return CommandResult(
        {**done.as_dict(), "embedding": embedding},
        lambda screen: screen.line(f"imported {_counts(done.records)} into {orchestrator}"),
    )


@contextmanager
def _source(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    with Path(file).open("rb") as opened:
        yield opened


@contextmanager
def _total_progress(title: str) -> Iterator[Callable[[int], None]]:
    """Yield a callback that reports progress, and takes the total so far."""
    done = 0
    with progress(title, None) as advance:

        def told(lines: int) -> None:
            nonlocal done
            advance(lines - done)
            done = lines

        yield told


def _counts(records: dict[str, int]) -> str:
    named = (
        counted(count, *_NOUNS.get(name, (name.replace("_", " "),)))
        for name, count in records.items()
    )
    return ", ".join(named) or "nothing"


_NOUNS = {
    "memory": ("memory", "memories"),
    "entity": ("entity", "entities"),
    "status": ("status period",),
    "journal": ("journal entry", "journal entries"),
}


def _show_nothing(_screen: Screen) -> None:
    """Print nothing, because the exported lines are the output."""


COMMANDS: dict[str, Any] = {
    "backup": make_command(backup, "backup"),
    "restore": make_command(restore, "restore"),
    "migrate-store": make_command(migrate_store, "migrate-store"),
    "export": make_command(export, "export"),
    "import": make_command(import_, "import"),
}
