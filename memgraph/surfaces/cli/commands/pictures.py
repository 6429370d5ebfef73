"""Graphs and timelines as HTML pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from memgraph.errors import NotFound
from memgraph.model.enums import EdgeType, MemoryKind
from memgraph.surfaces.cli.builder import OrchestratorName, choice, make_command
from memgraph.surfaces.cli.files import counted, write_whole
from memgraph.surfaces.cli.formats import short, summary_of
from memgraph.surfaces.cli.invocation import CommandResult, invocation

NEWEST = 30
MAX_BULLETINS = 60
MAX_RECEIPTS = 10_000

Output = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="FILE", help="Ends with .html.", show_default=False),
]


def graph(
    context: typer.Context,
    orchestrator: OrchestratorName,
    output: Output,
    memory_ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID]", help="Where to start; the newest, if none is named."),
    ] = None,
    hops: Annotated[int, typer.Option(help="1 to 4.")] = 1,
    max_nodes: Annotated[int, typer.Option(help="1 to 400.")] = 120,
    edge_types: Annotated[
        list[EdgeType] | None,
        choice(EdgeType, "--edge-type", text="Follow only these; repeatable."),
    ] = None,
    as_of: Annotated[
        str | None, typer.Option(metavar="TIME", help="As the graph was then, ISO 8601.")
    ] = None,
) -> CommandResult:
    """Draw the memories around some memories, and the edges between them, into an HTML page.

    Without an ID it begins with the newest 30 facts, and prints how many memories there are. The
    page is self-contained, opens offline, and lists the same memories and edges as tables.
    `memgraph subgraph --format` writes graphs for other programs.
    """
    from memgraph.surfaces.pictures import MAX_DRAWN, graph_page, require_html

    require_html(output)
    with invocation(context).orchestrator(orchestrator) as handle:
        seeds = list(memory_ids or ())
        if not seeds:
            newest = handle.memories.list(kinds=[MemoryKind.FACT], limit=NEWEST)
            seeds = [memory.memory_id for memory in newest]
        result = handle.graph.subgraph(
            seeds,
            hops=hops,
            max_nodes=min(max_nodes, MAX_DRAWN),
            edge_types=edge_types,
            as_of=as_of,
        )
        # There are no counts for past times.
        stored = None if memory_ids or as_of else _stored(handle)
    if memory_ids and not result.nodes:
        message = ", ".join(result.missing)[:80]
        raise NotFound(f"no memory {message!r}", memory_id=message)
    write_whole(output, graph_page(result, title=f"Memories of {orchestrator}"))
    edges = len(result.edges) + len(result.derivations)
    data = {"path": str(output), "nodes": len(result.nodes), "edges": edges, "cut": result.cut}
    message = f"{counted(len(result.nodes), 'memory', 'memories')} and {counted(edges, 'edge')}"
    cut = f" (cut: {', '.join(result.cut_reasons)})" if result.cut else ""
    left_out = max((stored or 0) - len(result.nodes), 0)
    more = f"; {left_out:,} more were left out: name IDs, or give --hops and --max-nodes"
    message = f"drew {message} to {output}{cut}{more if left_out else ''}"
    return _drawn({**data, "left_out": None if stored is None else left_out}, message)


def _stored(handle: Any) -> int:
    """Return how many memories could be drawn: retracted ones are in no picture."""
    by_status: dict[str, int] = handle.memories.counts()["status"]
    return by_status.get("active", 0) + by_status.get("superseded", 0)


def timeline(
    context: typer.Context,
    orchestrator: OrchestratorName,
    output: Output,
    memory_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A memory's id; the bulletins, if none is.")
    ] = None,
    limit: Annotated[
        int, typer.Option(help="Of bulletins, the newest; 1 to 1000.")
    ] = MAX_BULLETINS,
) -> CommandResult:
    """Draw a memory's confidence over time, or how the bulletins changed, into an HTML page.

    Decay counts from the last access of which a receipt is kept.
    """
    from memgraph.surfaces.pictures import require_html

    require_html(output)
    with invocation(context).orchestrator(orchestrator) as handle:
        if memory_id is None:
            return _bulletins(handle, output, limit)
        return _confidence(handle, output, memory_id)


def _bulletins(handle: Any, output: Path, limit: int) -> CommandResult:
    from memgraph.surfaces.pictures import DrawnBulletin, bulletin_page

    bulletins = [
        DrawnBulletin(
            at=bulletin.created_at,
            receipts=bulletin.receipts,
            memory_ids=frozenset(handle.receipts.bulletin(bulletin.bulletin_id).memory_ids),
        )
        for bulletin in reversed(handle.receipts.bulletins(limit=limit).bulletins)
    ]
    write_whole(output, bulletin_page(bulletins, title=f"Bulletins of {handle.name}"))
    message = f"drew {counted(len(bulletins), 'bulletin')} to {output}"
    return _drawn({"path": str(output), "bulletins": len(bulletins)}, message)


def _confidence(handle: Any, output: Path, memory_id: str) -> CommandResult:
    from memgraph.surfaces.pictures import accesses_of, confidence_page, confidence_periods

    history = handle.history.get(memory_id)
    accesses = accesses_of(handle.graph.impact(memory_id, max_nodes=MAX_RECEIPTS))
    page = confidence_page(
        confidence_periods(history, accesses),
        history.periods,
        title=short(f"{history.memory.type.value}: {summary_of(history.memory)}"),
        now_ms=history.at,
        exponent=history.decay_exponent,
    )
    write_whole(output, page)
    message = f"drew {counted(len(history.values), 'value')} of {memory_id} to {output}"
    return _drawn({"path": str(output), "values": len(history.values)}, message)


def _drawn(data: dict[str, Any], text: str) -> CommandResult:
    return CommandResult(data, lambda screen: screen.line(text))


COMMANDS = {
    function.__name__: make_command(function, function.__name__) for function in (graph, timeline)
}
