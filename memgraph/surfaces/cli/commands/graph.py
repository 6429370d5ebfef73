"""Commands that write graphs and cases into files: subgraph, export-case."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memgraph.errors import AccessDenied, ExtraMissing
from memgraph.model.enums import EdgeType
from memgraph.surfaces.cli.builder import OrchestratorName, choice, make_command, value
from memgraph.surfaces.cli.files import counted, write_whole
from memgraph.surfaces.cli.formats import as_json, edge_line
from memgraph.surfaces.cli.invocation import CommandResult, invocation
from memgraph.surfaces.cli.render import COLUMNS, show_table
from memgraph.surfaces.cli.screen import Screen

if TYPE_CHECKING:
    from memgraph.model.graph import Case, Subgraph
    from memgraph.model.influence import SourceLines


class GraphFormat(StrEnum):
    """The formats of a subgraph."""

    JSON = "json"
    GRAPHML = "graphml"
    DOT = "dot"
    MERMAID = "mermaid"


AsOf = Annotated[str | None, value("TIME", "As of this time, ISO 8601.")]


def subgraph(
    context: typer.Context,
    orchestrator: OrchestratorName,
    memory_ids: Annotated[list[str], typer.Argument(metavar="ID", help="Where to start.")],
    hops: Annotated[int, typer.Option(help="1 to 4.")] = 1,
    max_nodes: Annotated[int, typer.Option(help="1 to 2000.")] = 200,
    edge_types: Annotated[
        list[EdgeType] | None,
        choice(EdgeType, "--edge-type", text="Follow only these types; repeatable."),
    ] = None,
    as_of: AsOf = None,
    retracted: Annotated[
        bool, typer.Option("--retracted", help="Include retracted memories.")
    ] = False,
    form: Annotated[
        GraphFormat | None,
        choice(GraphFormat, "--format", text="Write the graph instead of listing it."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The file to write.")
    ] = None,
) -> CommandResult:
    """Show the memories around the named ones, and the edges between them, up to the limits."""
    with invocation(context).orchestrator(orchestrator) as handle:
        result = handle.graph.subgraph(
            memory_ids,
            hops=hops,
            max_nodes=max_nodes,
            edge_types=edge_types,
            as_of=as_of,
            retracted=retracted,
        )
    chosen = form or (GraphFormat.JSON if output is not None else None)
    if chosen is None:
        return CommandResult(as_json(result), lambda screen: _show_subgraph(screen, result))
    from memgraph.graph.export import export

    text = export(result, chosen.value)
    counts = {"format": chosen.value, "nodes": len(result.nodes), "edges": len(result.edges)}
    if output is None:
        return CommandResult({**counts, "text": text}, lambda screen: screen.raw_lines(text))
    write_whole(output, text)
    nodes = counted(len(result.nodes), "memory", "memories")
    line = f"wrote {nodes} and {counted(len(result.edges), 'edge')} to {output}"
    return CommandResult({**counts, "path": str(output)}, lambda screen: screen.line(line))


def _show_subgraph(screen: Screen, subgraph: Subgraph) -> None:
    hops = {"hops": lambda memory: subgraph.distances[memory.memory_id]}
    if subgraph.nodes:
        show_table(screen, subgraph.nodes, {**COLUMNS["Memory"], **hops})
    for edge in subgraph.edges:
        screen.line(f"  {edge_line(edge)}")
    if subgraph.missing:
        screen.line(f"not found: {', '.join(subgraph.missing)}", style="yellow")
    if subgraph.cut:
        screen.line(f"cut: {', '.join(subgraph.cut_reasons)}", style="yellow")


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
    "subgraph": make_command(subgraph, "subgraph"),
    "export-case": make_command(export_case, "export-case"),
}
