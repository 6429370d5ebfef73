"""The command that writes a case into a file: export-case."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memgraph.errors import AccessDenied, ExtraMissing
from memgraph.surfaces.cli.builder import OrchestratorName, make_command, value
from memgraph.surfaces.cli.files import write_whole
from memgraph.surfaces.cli.invocation import CommandResult, invocation

if TYPE_CHECKING:
    from memgraph.model.graph import Case
    from memgraph.model.influence import SourceLines


AsOf = Annotated[str | None, value("TIME", "As of this time, ISO 8601.")]


def export_case(
    context: typer.Context,
    orchestrator: OrchestratorName,
    edge_id: Annotated[str, typer.Argument(metavar="EDGE", help="The Contradicts edge's id.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write.")
    ],
    as_of: AsOf = None,
) -> CommandResult:
    """Write a contradiction as a self-contained HTML file, to keep or to print."""
    with invocation(context).orchestrator(orchestrator) as handle:
        result = handle.contradictions.get(edge_id, as_of=as_of)
        text = _document(result, handle.name, _lines(handle, result))
    write_whole(output, text)
    data = {"edge_id": edge_id, "state": result.state, "path": str(output)}
    return CommandResult(
        data, lambda screen: screen.line(f"wrote the case of {edge_id} to {output}")
    )


def _lines(handle: Any, case: Case) -> dict[str, SourceLines]:
    """Return the source lines of both sides by memory id; empty if the key may not audit."""
    try:
        return {
            side.memory.memory_id: handle.sources.lines(side.memory.memory_id)
            for side in case.sides
        }
    except AccessDenied:
        return {}


def _document(case: Case, orchestrator: str, lines: dict[str, SourceLines]) -> str:
    try:
        from memgraph.surfaces.web.export import case_document
    except ModuleNotFoundError as error:
        raise ExtraMissing.of("export-case needs the extra server", extra="server") from error
    return case_document(case, orchestrator=orchestrator, lines=lines)


COMMANDS: dict[str, Any] = {
    "export-case": make_command(export_case, "export-case"),
}
