"""Commands that read memories: list, show, stats, recall, ask, bulletin."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memgraph.errors import AccessDenied
from memgraph.model.enums import MemoryKind, MemoryStatus, MemoryType, SourceType
from memgraph.operations.everyday import Everyday
from memgraph.surfaces.cli.builder import OrchestratorName, choice, make_command, value
from memgraph.surfaces.cli.formats import (
    MEMORY_COLUMNS,
    as_json,
    below_drop_zone,
    day,
    edge_line,
    memory_rows,
    short,
    show_memory,
)
from memgraph.surfaces.cli.invocation import CommandResult, invocation
from memgraph.surfaces.cli.operations import command_of
from memgraph.surfaces.cli.screen import Screen, note

if TYPE_CHECKING:
    from memgraph.model.context import Answer
    from memgraph.model.recall import Bundle, RecallItem
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
    everything: Annotated[bool, typer.Option("--all", help="Memories of every status.")] = False,
    tags: Annotated[
        list[str] | None,
        value("TAG", "With all of these; repeatable.", "--tag"),
    ] = None,
    session_id: Annotated[str | None, value("ID", "Said in this session.")] = None,
    before: Annotated[
        str | None, value("ID", "Continue after the last id of the previous page.")
    ] = None,
    limit: Annotated[int, typer.Option(help="1 to 1000.")] = 50,
    as_of: Annotated[str | None, value("TIME", "As of this time, ISO 8601.")] = None,
) -> CommandResult:
    """List memories page by page, newest first."""
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
    as_of: Annotated[str | None, value("TIME", "As of this time, ISO 8601.")] = None,
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
        typer.Option("--visible", help="Count visible memories only: by kind, type and status."),
    ] = False,
) -> CommandResult:
    """Count the stored data by type, status, edge and embedding, with the sizes on disk.

    This includes hidden memories, so on a server it requires the permission admin; with --visible
    it requires read.
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
        hint = f"{error.message}; use --visible to count only what the key may see"
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


MAX_STDIN_CHARS = 2_000_001
TEXT_CHARS = 400
MORE = {
    "max_edges": "there are more edges; see them with memgraph subgraph",
    "token_budget": "more memories match; raise --token-budget",
    "top_n": "more memories match; raise --top-n",
}
"""The remedy for each of ``Bundle.cut_reasons``."""


def recall(
    context: typer.Context,
    orchestrator: OrchestratorName,
    query: Annotated[
        str,
        typer.Argument(
            metavar="QUERY",
            help="A question or words; - reads standard input. Optional if there are filters.",
            show_default=False,
        ),
    ] = "",
    top_n: Annotated[
        int | None, typer.Option("--top-n", "-n", help="1 to 1000. [memory.retrieval.top_n]")
    ] = None,
    types: Annotated[
        list[MemoryType] | None, choice(MemoryType, "--type", text="Any of these; repeatable.")
    ] = None,
    kinds: Annotated[
        list[MemoryKind] | None, choice(MemoryKind, "--kind", text="Any of these; repeatable.")
    ] = None,
    tags: Annotated[
        list[str] | None,
        value("TAG", "With all of these; repeatable.", "--tag"),
    ] = None,
    agent_id: Annotated[str | None, value("ID", "Of this agent or of no agent.")] = None,
    source_types: Annotated[
        list[SourceType] | None,
        choice(SourceType, "--source-type", text="Any of these; repeatable."),
    ] = None,
    source_path: Annotated[
        str | None,
        value("PATH", "From this file, or from this folder (with a trailing /)."),
    ] = None,
    conversation_id: Annotated[str | None, value("ID", "From this conversation.")] = None,
    session_id: Annotated[str | None, value("ID", "Said in this session.")] = None,
    exclude_session_id: Annotated[str | None, value("ID", "Not said in this session.")] = None,
    after: Annotated[str | None, value("TIME", "At this time or later, ISO 8601.")] = None,
    before: Annotated[str | None, value("TIME", "Before this time, ISO 8601.")] = None,
    as_of: Annotated[str | None, value("TIME", "As of this time, ISO 8601.")] = None,
    valid_at: Annotated[str | None, value("TIME", "True at this time, as known now.")] = None,
    include_superseded: Annotated[
        bool, typer.Option("--include-superseded", help="Include superseded memories.")
    ] = False,
    token_budget: Annotated[
        int | None, typer.Option(help="Maximum tokens of all texts together.")
    ] = None,
    for_conversation_id: Annotated[
        str | None, value("ID", "For this conversation (in the receipt).", "--for-conversation")
    ] = None,
    for_run_id: Annotated[
        str | None, value("ID", "For this workflow run (in the receipt).", "--for-run")
    ] = None,
    for_step_id: Annotated[str | None, value("ID", "For this workflow step.", "--for-step")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the rank in each leg and every modifier.")
    ] = False,
) -> CommandResult:
    """Recall the memories that match a question, best first, with their sources."""
    fields = {
        "query": sys.stdin.read(MAX_STDIN_CHARS) if query == "-" else query,
        "top_n": top_n,
        "types": types or (),
        "kinds": kinds or (),
        "tags": tags or (),
        "agent_id": agent_id,
        "source_types": source_types or (),
        "source_path": source_path,
        "conversation_id": conversation_id,
        "session_id": session_id,
        "exclude_session_id": exclude_session_id,
        "event_after": after,
        "event_before": before,
        "as_of": as_of,
        "valid_at": valid_at,
        "include_superseded": include_superseded,
        "token_budget": token_budget,
        "for_conversation_id": for_conversation_id,
        "for_workflow_run_id": for_run_id,
        "for_step_id": for_step_id,
    }
    from memgraph.model.recall import RecallRequest
    from memgraph.model.values import validated

    request = validated(RecallRequest, fields)
    with invocation(context).orchestrator(orchestrator) as handle:
        bundle = handle.recall(request)

    def show(screen: Screen) -> None:
        _show_bundle(screen, bundle, explain=explain)

    return CommandResult(as_json(bundle), show)


def bulletin(
    context: typer.Context,
    orchestrator: OrchestratorName,
    as_of: Annotated[str | None, value("TIME", "As of this time, ISO 8601.")] = None,
) -> CommandResult:
    """Print the bulletin: what an orchestrator should know before each message."""
    with invocation(context).orchestrator(orchestrator) as handle:
        issued = handle.bulletin(as_of=as_of)

    def show(screen: Screen) -> None:
        screen.raw_lines(issued.bulletin.text)
        if issued.warning is not None:
            note(f"warning[{issued.warning}]: {issued.cause}")

    return CommandResult(
        {
            "text": issued.bulletin.text,
            "sections": as_json(issued.bulletin)["sections"],
            "memory_ids": list(issued.bulletin.memory_ids),
            "left_out": issued.bulletin.left_out,
            "change_seq": issued.bulletin.change_seq,
            "warning": issued.warning,
            "cause": issued.cause,
        },
        show,
    )


def _show_bundle(screen: Screen, bundle: Bundle, *, explain: bool) -> None:
    if not bundle.items:
        screen.line("no memory matches")
    for place, item in enumerate(bundle.items, start=1):
        _show_item(screen, place, item)
    if bundle.edges:
        screen.heading("edges")
        places = {value.memory.memory_id: f"{n}." for n, value in enumerate(bundle.items, start=1)}
        for edge in bundle.edges:
            screen.block(edge_line(edge, places), indent=2)
    if explain:
        _show_explanation(screen, bundle)
    for degradation in bundle.degraded:
        note(f"degraded[{degradation.code}]: {degradation.text}")
    if bundle.cut:
        note("; ".join(MORE[cut_reason] for cut_reason in bundle.cut_reasons))


def _show_item(screen: Screen, place: int, item: RecallItem) -> None:
    memory = item.memory
    when = day(memory.event_time if memory.event_time is not None else memory.created_at)
    status = "" if memory.status.value == "active" else f", {memory.status.value}"
    speaker = "" if memory.source_role is None else f", {memory.source_role}"
    screen.heading(f"{place}. {memory.memory_id}  {memory.type.value}{status}, {when}{speaker}")
    # The texts of records and documents begin with a title on its own line.
    title, _, text = memory.content.strip().partition("\n")
    for part in (title, text) if text else (memory.content,):
        screen.block(short(part, TEXT_CHARS), indent=3)
    screen.line(f"   from {below_drop_zone(item.citation)}", style="dim")
    if item.mark:
        screen.line(f"   {item.mark}", style="yellow")
    if item.brought_by is not None:
        screen.line(f"   shown because of {item.brought_by}", style="dim")


def _show_explanation(screen: Screen, bundle: Bundle) -> None:
    """Show the rank in every leg (empty if it did not find the memory), and every modifier."""
    legs = sorted({leg for item in bundle.items for leg in item.legs})
    modifiers = list(dict.fromkeys(name for item in bundle.items for name in item.modifiers))
    places = list(enumerate(bundle.items, start=1))
    screen.line()
    screen.heading("rank in each leg")
    screen.table(
        ("#", "score", *legs),
        [
            (str(place), f"{item.score:.5f}", *(str(item.legs.get(leg, "")) for leg in legs))
            for place, item in places
        ],
    )
    screen.line()
    screen.heading("factor of each modifier")
    screen.table(
        ("#", *(name.replace("_", " ") for name in modifiers), "effective confidence"),
        [
            (
                str(place),
                *(f"{item.modifiers.get(name, 1.0):.3f}" for name in modifiers),
                f"{item.effective_confidence:.3f}",
            )
            for place, item in places
        ],
    )
    screen.line(f"receipt {bundle.receipt_id}, about {bundle.token_cost} tokens")


def _show_answer(screen: Screen, answer: Answer, _arguments: Mapping[str, Any]) -> None:
    screen.block(answer.text)
    if answer.citations:
        screen.line()
    for line in dict.fromkeys(citation.line for citation in answer.citations):
        screen.block(line)
    for degradation in answer.degraded:
        note(f"degraded[{degradation.code}]: {degradation.text}")


COMMANDS: dict[str, Any] = {
    "ask": make_command(
        command_of(
            Everyday.ask,
            _show_answer,
            options={
                "question": typer.Argument(metavar="QUESTION", help="A question."),
            },
            text="Answer a question from memory, with the lines that it cites.\n\nThe language"
            " model of memory.llm reads the context of the question.",
        ),
        "ask",
    ),
    "list": make_command(list_memories, "list"),
    "show": make_command(show_memories, "show"),
    "stats": make_command(stats, "stats"),
    "recall": make_command(recall, "recall"),
    "bulletin": make_command(bulletin, "bulletin"),
}
