"""Reading the graph: subgraph, contradictions, trace."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memgraph.model.enums import EdgeType
from memgraph.surfaces.cli.builder import OrchestratorName, choice, make_command
from memgraph.surfaces.cli.files import write_whole
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
from memgraph.surfaces.cli.text import counted

if TYPE_CHECKING:
    from memgraph.model.graph import Contradiction, Link, Subgraph, Trace


class GraphFormat(StrEnum):
    """The formats of a subgraph."""

    JSON = "json"
    GRAPHML = "graphml"
    DOT = "dot"
    MERMAID = "mermaid"


def subgraph(
    context: typer.Context,
    orchestrator: OrchestratorName,
    memory_ids: Annotated[list[str], typer.Argument(metavar="ID", help="Where to start.")],
    hops: Annotated[int, typer.Option(help="1 to 4.")] = 1,
    max_nodes: Annotated[int, typer.Option(help="1 to 2000.")] = 200,
    edge_types: Annotated[
        list[EdgeType] | None,
        choice(EdgeType, "--edge-type", text="Follow only these; repeatable."),
    ] = None,
    as_of: Annotated[
        str | None, typer.Option(metavar="TIME", help="As the graph was then, ISO 8601.")
    ] = None,
    retracted: Annotated[
        bool, typer.Option("--retracted", help="With memories that were taken back.")
    ] = False,
    form: Annotated[
        GraphFormat | None,
        choice(GraphFormat, "--format", text="Write the graph instead of listing it."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write it.")
    ] = None,
) -> CommandResult:
    """Show the memories around some memories and the edges between them, bounded."""
    with invocation(context).orchestrator(orchestrator) as handle:
        found = handle.graph.subgraph(
            memory_ids,
            hops=hops,
            max_nodes=max_nodes,
            edge_types=edge_types,
            as_of=as_of,
            retracted=retracted,
        )
    chosen = form or (GraphFormat.JSON if output is not None else None)
    if chosen is None:
        return CommandResult(as_json(found), lambda screen: _show_subgraph(screen, found))
    from memgraph.graph.export import export

    text = export(found, chosen.value)
    counts = {"format": chosen.value, "nodes": len(found.nodes), "edges": len(found.edges)}
    if output is None:
        return CommandResult({**counts, "text": text}, lambda screen: screen.raw_lines(text))
    write_whole(output, text)
    told = (
        f"{counted(len(found.nodes), 'memory', 'memories')} and {counted(len(found.edges), 'edge')}"
    )
    line = f"wrote {told} to {output}"
    return CommandResult({**counts, "path": str(output)}, lambda screen: screen.line(line))


def contradictions(
    context: typer.Context,
    orchestrator: OrchestratorName,
    resolved: Annotated[
        bool, typer.Option("--resolved", help="Those that were decided instead.")
    ] = False,
    limit: Annotated[int, typer.Option(help="1 to 500.")] = 50,
    after: Annotated[
        str | None, typer.Option(metavar="PLACE", help="Go on after the page before.")
    ] = None,
    as_of: Annotated[
        str | None, typer.Option(metavar="TIME", help="As it was then, ISO 8601.")
    ] = None,
    text: Annotated[
        str | None, typer.Option(metavar="WORDS", help="Only those with each of them on one side.")
    ] = None,
    memory_id: Annotated[
        str | None, typer.Option("--memory", metavar="ID", help="Only those with this memory.")
    ] = None,
    dismissed: Annotated[
        bool | None,
        typer.Option(
            "--dismissed/--not-dismissed", help="Of the decided: those that were, or were not."
        ),
    ] = None,
    oldest_first: Annotated[
        bool, typer.Option("--oldest-first", help="The other way round.")
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
            sought = " of these" if text or memory_id or dismissed is not None else ""
            screen.line(f"no {'decided' if resolved else 'open'} contradiction{sought}")
        for each in page.items:
            screen.tree(_contradiction_tree(each))
        if page.items:
            screen.line(f"what speaks for each side: memgraph case show {orchestrator} EDGE")
        if page.next_after is not None:
            screen.line(f"more: --after {page.next_after}")

    return CommandResult(as_json(page), show)


def trace(
    context: typer.Context,
    orchestrator: OrchestratorName,
    memory_id: Annotated[str, typer.Argument(metavar="ID", help="A memory's id.")],
    as_of: Annotated[
        str | None, typer.Option(metavar="TIME", help="As it was known then, ISO 8601.")
    ] = None,
) -> CommandResult:
    """Show a memory's sources, what became of it, and what depends on it."""
    with invocation(context).orchestrator(orchestrator) as handle:
        found = handle.trace(memory_id, as_of=as_of)
    return CommandResult(as_json(found), lambda screen: screen.tree(_trace_tree(found)))


def _show_subgraph(screen: Screen, found: Subgraph) -> None:
    rows = [
        (
            each.memory_id,
            str(found.distances[each.memory_id]),
            each.type.value,
            status_of(each),
            short(summary_of(each)),
        )
        for each in found.nodes
    ]
    screen.table(("id", "hops", "type", "status", "summary"), rows)
    for edge in found.edges:
        screen.line(f"  {edge_line(edge)}")
    if found.missing:
        screen.line(f"not there: {', '.join(found.missing)}", style="yellow")
    if found.cut:
        screen.line(f"cut: {', '.join(found.cut_reasons)}", style="yellow")


def _contradiction_tree(found: Contradiction) -> Branch:
    root = Branch(f"{found.edge.edge_id}  {standing_of(found.edge, moot=found.moot)}", style="bold")
    if found.edge.reason:
        root.add(f"reason: {found.edge.reason}")
    for memory, source in zip((found.first, found.second), found.sources, strict=True):
        side = root.add(memory_line(memory))
        side.add(f"from {citation(source)}", style="dim")
    outcome = outcome_of(found.edge)
    if outcome is not None:
        root.add(outcome, style="green")
    return root


def _trace_tree(found: Trace) -> Branch:
    root = Branch(memory_line(found.memory), style="bold")
    root.add(f"from {citation(found.source)}", style="dim")
    for each in found.supports:
        root.add(f"said again in {citation(each.source)}, {moment(each.added_at)}", style="dim")
    if found.supports:
        root.add(counted(found.independent_sources, "independent source"))
    history = root.add("status")
    for period in found.status_history:
        until = moment(period.until) or "now"
        why = f": {period.reason}" if period.reason else ""
        history.add(
            f"{period.status.value} from {moment(period.since)} to {until}, {period.actor}{why}"
        )
    for title, links in (
        ("replaced by", found.replaced_by),
        ("replaces", found.replaced),
        ("stands on", found.grounds),
        ("what stands on it", found.dependents),
    ):
        _add_links(root, title, links, found)
    _add_edges(root, found)
    shaken = (
        root.add("active, but on a ground that no longer holds")
        if (found.stale_dependents)
        else None
    )
    for one in found.stale_dependents:
        if shaken is not None:
            shaken.add(_named(found, one), style="yellow")
    journal = root.add("journal")
    for entry in found.journal:
        told = ", ".join(f"{name} {each}" for name, each in entry.details.items() if each)
        when = moment(entry.at)
        journal.add(short(f"#{entry.seq} {when} {entry.action} by {entry.actor}: {told}", 160))
    handed = found.handed_out
    last = f", last {moment(handed.last_at)}" if handed.count else ""
    root.add(f"handed out {counted(handed.count, 'time')}{last}")
    if found.cut:
        root.add(f"cut: {', '.join(found.cut_reasons)}", style="yellow")
    return root


def _add_links(root: Branch, title: str, links: Iterable[Link], found: Trace) -> None:
    """Add links below the memory from which they were reached."""
    branch: Branch | None = None
    by_id: dict[str, Branch] = {}
    for link in links:
        branch = branch or root.add(title)
        how = "derived" if link.edge_type is None else link.edge_type.value
        parent = by_id.get(link.via_id, branch)
        stale = link.memory_id in found.stale_grounds and title == "stands on"
        by_id[link.memory_id] = parent.add(
            f"{how}: {_named(found, link.memory_id)}", style="yellow" if stale else ""
        )


def _add_edges(root: Branch, found: Trace) -> None:
    if found.open_contradictions:
        branch = root.add("contradicted, unresolved", style="red")
        for edge in found.open_contradictions:
            other = edge.to_id if edge.from_id == found.memory.memory_id else edge.from_id
            side = branch.add(f"{edge.edge_id}: {_named(found, other)}")
            sources = {each.source_id: each for each in found.sources}
            memory = found.memory_by_id.get(other)
            if memory is not None and memory.source_id in sources:
                side.add(f"from {citation(sources[memory.source_id])}", style="dim")
    for title, edges in (("edges out", found.edges_out), ("edges in", found.edges_in)):
        branch = root.add(title) if edges else root
        for edge in edges:
            branch.add(edge_line(edge))


def _named(found: Trace, memory_id: str) -> str:
    memory = found.memory_by_id.get(memory_id)
    return memory_id if memory is None else memory_line(memory)


COMMANDS = {
    function.__name__: make_command(function, function.__name__)
    for function in (subgraph, contradictions, trace)
}
