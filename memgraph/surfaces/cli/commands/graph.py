"""Commands for the graph: subgraph, contradictions, trace."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memgraph.model.enums import EdgeType
from memgraph.surfaces.cli.builder import OrchestratorName, choice, make_command
from memgraph.surfaces.cli.files import counted, write_whole
from memgraph.surfaces.cli.formats import (
    as_json,
    citation,
    edge_line,
    memory_line,
    moment,
    outcome_of,
    short,
    standing_of,
    status_of,
    summary_of,
)
from memgraph.surfaces.cli.invocation import CommandResult, invocation
from memgraph.surfaces.cli.screen import Branch, Screen

if TYPE_CHECKING:
    from memgraph.model.graph import Contradiction, Link, Subgraph, Trace


class GraphFormat(StrEnum):
    """The formats of a subgraph."""

    JSON = "json"
    GRAPHML = "graphml"
    DOT = "dot"
    MERMAID = "mermaid"


EdgeTypes = Annotated[
    list[EdgeType] | None,
    choice(EdgeType, "--edge-type", text="Follow only these types; repeatable."),
]
AsOf = Annotated[str | None, typer.Option(metavar="TIME", help="As of this time, ISO 8601.")]


def subgraph(
    context: typer.Context,
    orchestrator: OrchestratorName,
    memory_ids: Annotated[list[str], typer.Argument(metavar="ID", help="Where to start.")],
    hops: Annotated[int, typer.Option(help="1 to 4.")] = 1,
    max_nodes: Annotated[int, typer.Option(help="1 to 2000.")] = 200,
    edge_types: EdgeTypes = None,
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
    message = f"{nodes} and {counted(len(result.edges), 'edge')}"
    line = f"wrote {message} to {output}"
    return CommandResult({**counts, "path": str(output)}, lambda screen: screen.line(line))


def contradictions(
    context: typer.Context,
    orchestrator: OrchestratorName,
    resolved: Annotated[
        bool, typer.Option("--resolved", help="List resolved contradictions instead.")
    ] = False,
    limit: Annotated[int, typer.Option(help="1 to 500.")] = 50,
    after: Annotated[
        str | None, typer.Option(metavar="PLACE", help="Continue after the previous page.")
    ] = None,
    as_of: Annotated[
        str | None, typer.Option(metavar="TIME", help="As of this time, ISO 8601.")
    ] = None,
    text: Annotated[
        str | None, typer.Option(metavar="WORDS", help="Only those with all words on one side.")
    ] = None,
    memory_id: Annotated[
        str | None, typer.Option("--memory", metavar="ID", help="Only those with this memory.")
    ] = None,
    dismissed: Annotated[
        bool | None,
        typer.Option(
            "--dismissed/--not-dismissed", help="Only resolved ones that were, or were not."
        ),
    ] = None,
    oldest_first: Annotated[
        bool, typer.Option("--oldest-first", help="List the oldest first.")
    ] = False,
) -> CommandResult:
    """List open contradictions, newest first, with both sides and their sources."""
    with invocation(context).orchestrator(orchestrator) as handle:
        page = handle.contradictions.list(
            resolved=resolved,
            limit=limit,
            after=after,
            as_of=as_of,
            text=text,
            memory_id=memory_id,
            dismissed=dismissed,
            oldest_first=oldest_first,
        )

    def show(screen: Screen) -> None:
        if not page.items:
            suffix = " matches" if text or memory_id or dismissed is not None else ""
            screen.line(f"no {'decided' if resolved else 'open'} contradiction{suffix}")
        for item in page.items:
            screen.tree(_contradiction_tree(item))
        if page.items:
            screen.line(f"the evidence for each side: memgraph case show {orchestrator} EDGE")
        if page.next_after is not None:
            screen.line(f"more: --after {page.next_after}")

    return CommandResult(as_json(page), show)


def trace(
    context: typer.Context,
    orchestrator: OrchestratorName,
    memory_id: Annotated[str, typer.Argument(metavar="ID", help="A memory's id.")],
    as_of: Annotated[
        str | None, typer.Option(metavar="TIME", help="As known at this time, ISO 8601.")
    ] = None,
) -> CommandResult:
    """Show a memory's sources, its history, and the memories that depend on it."""
    with invocation(context).orchestrator(orchestrator) as handle:
        result = handle.trace(memory_id, as_of=as_of)
    return CommandResult(as_json(result), lambda screen: screen.tree(_trace_tree(result)))


def _show_subgraph(screen: Screen, subgraph: Subgraph) -> None:
    rows = [
        (
            node.memory_id,
            str(subgraph.distances[node.memory_id]),
            node.type.value,
            status_of(node),
            short(summary_of(node)),
        )
        for node in subgraph.nodes
    ]
    screen.table(("id", "hops", "type", "status", "summary"), rows)
    for edge in subgraph.edges:
        screen.line(f"  {edge_line(edge)}")
    if subgraph.missing:
        screen.line(f"not found: {', '.join(subgraph.missing)}", style="yellow")
    if subgraph.cut:
        screen.line(f"cut: {', '.join(subgraph.cut_reasons)}", style="yellow")


def _contradiction_tree(contradiction: Contradiction) -> Branch:
    root = Branch(
        f"{contradiction.edge.edge_id}  {standing_of(contradiction.edge, moot=contradiction.moot)}",
        style="bold",
    )
    if contradiction.edge.reason:
        root.add(f"reason: {contradiction.edge.reason}")
    for memory, source in zip(
        (contradiction.first, contradiction.second), contradiction.sources, strict=True
    ):
        side = root.add(memory_line(memory))
        side.add(f"from {citation(source)}", style="dim")
    outcome = outcome_of(contradiction.edge)
    if outcome is not None:
        root.add(outcome, style="green")
    return root


def _trace_tree(trace: Trace) -> Branch:
    root = Branch(memory_line(trace.memory), style="bold")
    root.add(f"from {citation(trace.source)}", style="dim")
    for support in trace.supports:
        root.add(f"repeated in {citation(support.source)}, {moment(support.added_at)}", style="dim")
    if trace.supports:
        root.add(counted(trace.independent_sources, "independent source"))
    history = root.add("status")
    for period in trace.status_history:
        until = moment(period.until) or "now"
        reason = f": {period.reason}" if period.reason else ""
        history.add(
            f"{period.status.value} from {moment(period.since)} to {until}, {period.actor}{reason}"
        )
    for title, links in (
        ("superseded by", trace.replaced_by),
        ("supersedes", trace.replaced),
        ("evidence", trace.grounds),
        ("dependents", trace.dependents),
    ):
        _add_links(root, title, links, trace)
    _add_edges(root, trace)
    stale_branch = (
        root.add("active dependents with superseded or retracted evidence")
        if (trace.stale_dependents)
        else None
    )
    for stale_dependent in trace.stale_dependents:
        if stale_branch is not None:
            stale_branch.add(_line_of(trace, stale_dependent), style="yellow")
    journal = root.add("journal")
    for entry in trace.journal:
        message = ", ".join(f"{name} {detail}" for name, detail in entry.details.items() if detail)
        when = moment(entry.at)
        journal.add(short(f"#{entry.seq} {when} {entry.action} by {entry.actor}: {message}", 160))
    deliveries = trace.handed_out
    last = f", last {moment(deliveries.last_at)}" if deliveries.count else ""
    root.add(f"handed out {counted(deliveries.count, 'time')}{last}")
    if trace.cut:
        root.add(f"cut: {', '.join(trace.cut_reasons)}", style="yellow")
    return root


def _add_links(root: Branch, title: str, links: Iterable[Link], trace: Trace) -> None:
    """Add links below the memory from which they were reached."""
    branch: Branch | None = None
    by_id: dict[str, Branch] = {}
    for link in links:
        branch = branch or root.add(title)
        relation = "derived" if link.edge_type is None else link.edge_type.value
        parent = by_id.get(link.via_id, branch)
        stale = link.memory_id in trace.stale_grounds and title == "evidence"
        by_id[link.memory_id] = parent.add(
            f"{relation}: {_line_of(trace, link.memory_id)}", style="yellow" if stale else ""
        )


def _add_edges(root: Branch, trace: Trace) -> None:
    if trace.open_contradictions:
        branch = root.add("open contradictions", style="red")
        for edge in trace.open_contradictions:
            other = edge.to_id if edge.from_id == trace.memory.memory_id else edge.from_id
            side = branch.add(f"{edge.edge_id}: {_line_of(trace, other)}")
            sources = {source.source_id: source for source in trace.sources}
            memory = trace.memory_by_id.get(other)
            if memory is not None and memory.source_id in sources:
                side.add(f"from {citation(sources[memory.source_id])}", style="dim")
    if trace.probable_changes:
        branch = root.add("probable changes", style="yellow")
        for edge in trace.probable_changes:
            is_later = edge.from_id == trace.memory.memory_id
            what = "changes" if is_later else "changed by"
            other = _line_of(trace, edge.to_id if is_later else edge.from_id)
            branch.add(f"{edge.edge_id}: probably {what} {other}")
    for title, edges in (("edges out", trace.edges_out), ("edges in", trace.edges_in)):
        branch = root.add(title) if edges else root
        for edge in edges:
            branch.add(edge_line(edge))


def _line_of(trace: Trace, memory_id: str) -> str:
    memory = trace.memory_by_id.get(memory_id)
    return memory_id if memory is None else memory_line(memory)


COMMANDS: dict[str, Any] = {
    "subgraph": make_command(subgraph, "subgraph"),
    "contradictions": make_command(contradictions, "contradictions"),
    "trace": make_command(trace, "trace"),
}
