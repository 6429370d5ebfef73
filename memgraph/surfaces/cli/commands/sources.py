"""Commands for sources: source list, source show, retract --source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from memgraph.errors import InvalidInput, NotFound
from memgraph.model.enums import SourceName
from memgraph.surfaces.cli.builder import OrchestratorName, choice, make_group, value
from memgraph.surfaces.cli.formats import as_json, moment, short
from memgraph.surfaces.cli.invocation import CommandResult, invocation
from memgraph.surfaces.cli.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memgraph.model.sources import DisputedPair, SourceInfo, SourceRetraction

FIELDS: Final = {
    SourceName.PATH: "path",
    SourceName.CONVERSATION: "conversation_id",
    SourceName.RUN: "workflow_run_id",
    SourceName.CONTENT: "content_sha256",
}
"""The keyword argument of the source operations for each kind of source."""
SHOWN: Final = 20
"""The maximum number of entries per list on the screen."""

SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="conversation:ID, run:ID, content:SHA256, or the path of a file or folder.",
        show_default=False,
    ),
]


def named(text: str) -> tuple[SourceName, str]:
    """Parse the argument for a source: ``KIND:NAME``, or else a path.

    Raises:
        InvalidInput: the name is empty.
    """
    kind, colon, name = text.partition(":")
    if colon and kind in set(SourceName):
        text, result = name, SourceName(kind)
    else:
        result = SourceName.PATH
    if not text.strip():
        raise InvalidInput("name a source: conversation:ID, run:ID, content:SHA256 or a path")
    return result, text


def list_sources(
    context: typer.Context,
    orchestrator: OrchestratorName,
    kind: Annotated[SourceName | None, choice(SourceName, text="Only of this kind.")] = None,
    limit: Annotated[int, typer.Option(help="1 to 500.")] = 50,
    after: Annotated[str | None, value("CURSOR", "next_after of the previous page.")] = None,
) -> CommandResult:
    """List sources with their numbers of memories."""
    with invocation(context).orchestrator(orchestrator) as handle:
        page = handle.sources.list(kind=kind, limit=limit, after=after)

    def show(screen: Screen) -> None:
        if not page.items:
            screen.line("no sources")
            return
        screen.table(_COLUMNS, [_row(item) for item in page.items])
        if page.next_after is not None:
            screen.line(f"more: --after {page.next_after}")

    return CommandResult(as_json(page), show)


def show_source(
    context: typer.Context, orchestrator: OrchestratorName, source: SourceArgument
) -> CommandResult:
    """Show the number of memories of one source."""
    with invocation(context).orchestrator(orchestrator) as handle:
        result = handle.sources.get(*named(source))
    return CommandResult(as_json(result), lambda screen: screen.table(_COLUMNS, [_row(result)]))


def retracted(handle: Any, source: str, *, reason: str, really: bool) -> CommandResult:
    """Retract the memories of a source, or preview this if not ``really``."""
    kind, name = named(source)
    chosen = {FIELDS[kind]: name}
    result: SourceRetraction = handle.sources.retract(reason=reason, dry_run=not really, **chosen)
    return CommandResult(as_json(result), lambda screen: _show_retraction(screen, result))


def of_sender(handle: Any, sender: str, *, reason: str, really: bool) -> CommandResult:
    """Retract all conversations of a sender, or preview this if not ``really``.

    Each conversation is one transaction.

    Raises:
        NotFound: no conversation has memories from this sender.
    """
    conversations: list[str] = []
    after = None
    while True:
        page = handle.sources.list(
            kind=SourceName.CONVERSATION, sender=sender, limit=500, after=after
        )
        conversations += [item.name for item in page.items]
        if (after := page.next_after) is None:
            break
    if not conversations:
        raise NotFound(f"no conversation of {sender[:80]}", name=sender[:80])
    results = [
        handle.sources.retract(conversation_id=conversation, reason=reason, dry_run=not really)
        for conversation in conversations
    ]
    data = {"sender": sender, "dry_run": not really, "sources": [as_json(item) for item in results]}

    def show(screen: Screen) -> None:
        verb = "retracted" if really else "would be retracted"
        screen.line(f"{sender}: {len(results)} conversations")
        numbers = ((str(item.retracted), str(item.kept)) for item in results)
        rows = ((name, *counts) for name, counts in zip(conversations, numbers, strict=True))
        screen.table(("conversation", verb, "stay"), list(rows))
        if not really:
            screen.line("nothing was changed: use --yes to do it")

    return CommandResult(data, show)


def _show_disputed(screen: Screen, items: Sequence[DisputedPair]) -> None:
    rows = [(item.edge_id, item.from_id, item.to_id) for item in items]
    screen.table(("edge", "of", "and"), rows[:SHOWN])


def _show_retraction(screen: Screen, retraction: SourceRetraction) -> None:
    verb = "would be retracted" if retraction.dry_run else "were retracted"
    screen.line(
        f"{retraction.retracted} memories {verb}: {retraction.given} from the source,"
        f" {retraction.derived} derived only from those"
    )
    if retraction.retracted_items:
        rows = [
            (retracted_item.memory_id, retracted_item.because, short(retracted_item.summary))
            for retracted_item in retraction.retracted_items
        ]
        screen.table(("memory", "because", ""), rows[:SHOWN])
    if retraction.kept_items:
        screen.heading(f"{retraction.kept} stay: other sources or other evidence support them")
        kept_rows = [
            (kept_item.memory_id, kept_item.because, short(kept_item.summary))
            for kept_item in retraction.kept_items
        ]
        screen.table(("memory", "because", ""), kept_rows[:SHOWN])
    if retraction.weakened_items:
        screen.heading(f"{retraction.weakened} stay, but the source no longer counts for them")
        weakened_rows = [
            (
                weakened_item.memory_id,
                f"{weakened_item.confidence_before:.2f}",
                f"{weakened_item.confidence_after:.2f}",
            )
            for weakened_item in retraction.weakened_items
        ]
        screen.table(("memory", "confidence", "then"), weakened_rows[:SHOWN])
    if retraction.reinstated_items:
        auxiliary = "would be" if retraction.dry_run else "are"
        message = (
            f"{auxiliary} active again, because nothing else replaces them: {retraction.reinstated}"
        )
        screen.heading(message)
        reinstated_rows = [
            (reinstated_item.memory_id, short(reinstated_item.summary))
            for reinstated_item in retraction.reinstated_items
        ]
        screen.table(("memory", ""), reinstated_rows[:SHOWN])
    if retraction.reopened_items:
        verb = "would be" if retraction.dry_run else "are"
        screen.heading(f"contradictions that {verb} open again: {retraction.reopened}")
        _show_disputed(screen, retraction.reopened_items)
    if retraction.dry_run and (retraction.retracted or retraction.weakened):
        screen.line("nothing was changed: use --yes to do it")


def _row(info: SourceInfo) -> tuple[str, ...]:
    counts = (str(info.memories), str(info.active), str(info.retracted))
    return (info.kind.value, info.name, *counts, moment(info.last_at))


_COLUMNS: Final = ("kind", "name", "memories", "active", "retracted", "last")


COMMANDS: dict[str, Any] = {
    "source": make_group(
        "source",
        "List the sources of memories.",
        {
            "list": list_sources,
            "show": show_source,
        },
    ),
}
