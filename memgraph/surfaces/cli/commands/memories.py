"""Commands that read what is stored: list, show, stats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from memgraph.errors import AccessDenied
from memgraph.model.enums import MemoryKind, MemoryStatus, MemoryType
from memgraph.surfaces.cli.builder import OrchestratorName, choice, make_command, value
from memgraph.surfaces.cli.formats import MEMORY_COLUMNS, as_json, memory_rows, show_memory
from memgraph.surfaces.cli.invocation import CommandResult, invocation
from memgraph.surfaces.cli.screen import Screen

if TYPE_CHECKING:
    from memgraph.operations.orchestrator import Orchestrator
    from memgraph.surfaces.cli.invocation import Invocation


def list_memories(
    context: typer.Context,
    orchestrator: OrchestratorName,
    types: Annotated[
        list[MemoryType] | None, choice(MemoryType, "--type", text="Repeatable.")
    ] = None,
    kinds: Annotated[
        list[MemoryKind] | None, choice(MemoryKind, "--kind", text="Repeatable.")
    ] = None,
    statuses: Annotated[
        list[MemoryStatus] | None,
        choice(MemoryStatus, "--status", text="Repeatable. [active]"),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Of every status.")] = False,
    tags: Annotated[
        list[str] | None,
        value("TAG", "Having all of these; repeatable.", "--tag"),
    ] = None,
    session_id: Annotated[str | None, value("ID", "Said in this session.")] = None,
    before: Annotated[
        str | None, value("ID", "Go on after the last id of the page before.")
    ] = None,
    limit: Annotated[int, typer.Option(help="1 to 1000.")] = 50,
    as_of: Annotated[str | None, value("TIME", "As they were then, ISO 8601.")] = None,
) -> CommandResult:
    """List memories, newest first, by page."""
    statuses_wanted = [] if everything else statuses or [MemoryStatus.ACTIVE]
    with invocation(context).orchestrator(orchestrator) as handle:
        results = handle.memories.list(
            types=types or (),
            kinds=kinds or (),
            statuses=statuses_wanted,
            tags=tags or (),
            session_id=session_id,
            before=before,
            limit=limit,
            as_of=as_of,
        )
    following = results[-1].memory_id if len(results) == limit else None

    def show(screen: Screen) -> None:
        if results:
            screen.table(MEMORY_COLUMNS, memory_rows(results))
        else:
            screen.line("no memory matches")
            screen.line(f'to store one: memgraph remember {orchestrator} "what to remember"')
        if following is not None:
            screen.line(f"more: --before {following}")

    return CommandResult(
        {"memories": [as_json(item) for item in results], "next_before": following}, show
    )


def show_memories(
    context: typer.Context,
    orchestrator: OrchestratorName,
    memory_ids: Annotated[list[str], typer.Argument(metavar="ID", help="Ids of memories.")],
    as_of: Annotated[str | None, value("TIME", "As they were then, ISO 8601.")] = None,
) -> CommandResult:
    """Show memories with all their fields. `memgraph trace` shows their sources."""
    with invocation(context).orchestrator(orchestrator) as handle:
        results = [handle.get(memory_id, as_of=as_of) for memory_id in memory_ids]

    def show(screen: Screen) -> None:
        for index, item in enumerate(results):
            if index:
                screen.line()
            show_memory(screen, item)

    return CommandResult({"memories": [as_json(item) for item in results]}, show)


def stats(
    context: typer.Context,
    orchestrator: OrchestratorName,
    visible: Annotated[
        bool,
        typer.Option("--visible", help="Count what may be seen: memories by kind, type, status."),
    ] = False,
) -> CommandResult:
    """Count what is stored, by type, status, edge and embedding, with the sizes on disk.

    That counts hidden memories, too: on a server it requires the permission admin, --visible only
    read.
    """
    call = invocation(context)
    with call.orchestrator(orchestrator) as handle:
        result = handle.memories.counts() if visible else _stored(call, handle)
    return CommandResult(result, lambda screen: screen.fields(list(_flat(result, ""))))


def _stored(call: Invocation, handle: Orchestrator) -> dict[str, Any]:
    try:
        return handle.maintenance.stats()
    except AccessDenied as error:
        if call.server_url is None:
            raise
        hint = f"{error.message}; --visible counts what the key sees"
        raise AccessDenied(hint, **error.details) from None


def _flat(value: dict[str, Any], prefix: str) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for name, item in value.items():
        path = f"{prefix}{name}"
        if isinstance(item, dict):
            rows.extend(_flat(item, f"{path}."))
        else:
            rows.append((path, str(item)))
    return rows


COMMANDS = {
    "list": make_command(list_memories, "list"),
    "show": make_command(show_memories, "show"),
    "stats": make_command(stats, "stats"),
}
