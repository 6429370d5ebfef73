"""Export of an orchestrator as JSON Lines, and import: export, import."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, BinaryIO

import typer

from memgraph.operations.exchange.formats import write_as
from memgraph.surfaces.cli.builder import OrchestratorName, make_command
from memgraph.surfaces.cli.invocation import CommandResult, Invocation, invocation
from memgraph.surfaces.cli.screen import Screen, progress


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
        typer.Option("--output", "-o", metavar="FILE", help="Where to. [standard output]"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    with_vectors: Annotated[
        bool, typer.Option("--with-vectors", help="Embeddings too; else an import makes them.")
    ] = False,
    form: Annotated[
        ExportFormat,
        typer.Option("--format", help="jsonl can be imported; the others hold memories and edges."),
    ] = ExportFormat.JSONL,
) -> CommandResult:
    """Write all data of an orchestrator, whatever its sensitivity.

    As JSON Lines, which an import takes, as a vault of Markdown notes (a folder), as CSV or as
    GraphML.
    """
    call = invocation(context)
    if form is not ExportFormat.JSONL:
        if output is None or with_vectors:
            raise typer.BadParameter(f"--format {form.value} takes --output and no --with-vectors")
        return _written_as(call, orchestrator, form, output, force=force)
    if output is None and (call.as_json or sys.stdout.isatty()):
        raise typer.BadParameter("name a file with --output, or redirect standard output")
    with call.orchestrator(orchestrator) as handle:
        if output is None:
            for line in handle.exchange.export_lines(with_vectors=with_vectors):
                sys.stdout.buffer.write(line)
            return CommandResult({}, _nothing_more)
        with _counted("exporting") as told:
            done = handle.exchange.export(
                output, force=force, with_vectors=with_vectors, progress=told
            )
    line_of_text = f"wrote {_counts(done.records)} to {done.path}"
    return CommandResult(done.as_dict(), lambda screen: screen.line(line_of_text))


def _written_as(
    call: Invocation, orchestrator: str, form: ExportFormat, output: Path, *, force: bool
) -> CommandResult:
    with call.orchestrator(orchestrator) as handle, TemporaryDirectory() as folder:
        with _counted("exporting") as told:
            lines = handle.exchange.export(Path(folder) / "lines", progress=told).path
        with lines.open("rb") as source:
            count = write_as(form.value, source, output, force=force)
    data = {"orchestrator": orchestrator, "path": str(output), "memories": count}
    return CommandResult(data, lambda screen: screen.line(f"wrote {count} memories to {output}"))


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
        with _counted("importing") as told:
            done = service.import_lines(
                orchestrator, source, actor=call.actor or "user", progress=told
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
def _counted(title: str) -> Iterator[Callable[[int], None]]:
    """Yield a progress callback that takes totals."""
    done = 0
    with progress(title, None) as advance:

        def told(lines: int) -> None:
            nonlocal done
            advance(lines - done)
            done = lines

        yield told


def _counts(records: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in records.items()) or "nothing"


def _nothing_more(_screen: Screen) -> None:
    """Print nothing: the lines themselves were the answer."""


COMMANDS = {
    "export": make_command(export, "export"),
    "import": make_command(import_, "import"),
}
