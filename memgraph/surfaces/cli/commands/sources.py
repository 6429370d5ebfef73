"""Sources of memories: source list, show, trusted, trust, distrust; retract --source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from memgraph.errors import InvalidInput, NotFound
from memgraph.model.enums import SourceName, TrustTier
from memgraph.surfaces.cli.builder import OrchestratorName, choice, make_group, value
from memgraph.surfaces.cli.formats import as_json, moment, short
from memgraph.surfaces.cli.invocation import CommandResult, invocation
from memgraph.surfaces.cli.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memgraph.model.sources import (
        DisputedPair,
        SourceInfo,
        SourceRestoration,
        SourceRetraction,
        TrustedSource,
    )

FIELDS: Final = {
    SourceName.PATH: "path",
    SourceName.CONVERSATION: "conversation_id",
    SourceName.RUN: "workflow_run_id",
    SourceName.CONTENT: "content_sha256",
}
"""The parameter of a handle for each kind of source."""
SHOWN: Final = 20
"""Maximum entries of each list on the screen."""

SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="conversation:ID, run:ID, content:SHA256, or the path of a file or folder.",
        show_default=False,
    ),
]
Why = Annotated[str, typer.Option(metavar="TEXT", help="Why, for the history.", show_default=False)]


def named(text: str) -> tuple[SourceName, str]:
    """Return a source from a command's argument: ``KIND:NAME``, or else a path.

    Raises:
        InvalidInput: it names nothing.
    """
    kind, colon, name = text.partition(":")
    if colon and kind in set(SourceName):
        text, found = name, SourceName(kind)
    else:
        found = SourceName.PATH
    if not text.strip():
        raise InvalidInput("name a source: conversation:ID, run:ID, content:SHA256 or a path")
    return found, text


def list_sources(
    context: typer.Context,
    orchestrator: OrchestratorName,
    kind: Annotated[SourceName | None, choice(SourceName, text="Only of this kind.")] = None,
    limit: Annotated[int, typer.Option(help="1 to 500.")] = 50,
    after: Annotated[str | None, value("CURSOR", "next_after of the page before.")] = None,
) -> CommandResult:
    """List sources with their memories and their trust."""
    with invocation(context).orchestrator(orchestrator) as handle:
        page = handle.sources.list(kind=kind, limit=limit, after=after)

    def show(screen: Screen) -> None:
        if not page.items:
            screen.line("no memory names a source")
            return
        screen.table(_COLUMNS, [_row(each) for each in page.items])
        if page.next_after is not None:
            screen.line(f"more: --after {page.next_after}")

    return CommandResult(as_json(page), show)


def show_source(
    context: typer.Context, orchestrator: OrchestratorName, source: SourceArgument
) -> CommandResult:
    """Show the memories of one source and its trust."""
    with invocation(context).orchestrator(orchestrator) as handle:
        found = handle.sources.get(*named(source))
    return CommandResult(as_json(found), lambda screen: screen.table(_COLUMNS, [_row(found)]))


def list_trusted(context: typer.Context, orchestrator: OrchestratorName) -> CommandResult:
    """List the trust assigned with `memgraph source trust`."""
    with invocation(context).orchestrator(orchestrator) as handle:
        told = handle.sources.trusted()

    def show(screen: Screen) -> None:
        if told:
            screen.table(_SAID, [_said(each) for each in told])
        else:
            screen.line("nothing was said of any source: memory.trust decides")

    return CommandResult({"items": [as_json(each) for each in told]}, show)


def trust(
    context: typer.Context,
    orchestrator: OrchestratorName,
    source: SourceArgument,
    tier: Annotated[TrustTier, choice(TrustTier, text="How far.")],
    reason: Why,
    max_memories: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="How many it may hold; 0: nothing more.", show_default=False
        ),
    ] = None,
) -> CommandResult:
    """Assign a trust tier to a source.

    A lower one replaces nothing that a higher one stated: what would replace it becomes a
    contradiction, which a person decides. It applies from now on.
    """
    with invocation(context).orchestrator(orchestrator) as handle:
        kind, name = named(source)
        told = handle.sources.trust(kind, name, tier, max_memories=max_memories, reason=reason)
        known = _is_known(handle, kind, name)

    def show(screen: Screen) -> None:
        screen.table(_SAID, [_said(told)])
        if not known:
            screen.line("no memory came from it yet, as far as you see: it holds for what will")

    return CommandResult({**as_json(told), "known": known}, show)


def _is_known(handle: Any, kind: SourceName, name: str) -> bool:
    """Return True when the source has memories."""
    try:
        handle.sources.get(kind, name)
    except NotFound:
        return False
    return True


def distrust(
    context: typer.Context, orchestrator: OrchestratorName, source: SourceArgument, reason: Why
) -> CommandResult:
    """Remove the trust assigned to a source: the settings apply again."""
    with invocation(context).orchestrator(orchestrator) as handle:
        kind, name = named(source)
        handle.sources.distrust(kind, name, reason=reason)
    told = f"nothing is said of {kind.value} {name} any more"
    return CommandResult({"kind": kind.value, "name": name}, lambda screen: screen.line(told))


def retracted(handle: Any, source: str, *, reason: str, really: bool) -> CommandResult:
    """Retract a source through a handle, or preview it."""
    kind, name = named(source)
    chosen = {FIELDS[kind]: name}
    found: SourceRetraction = handle.sources.retract(reason=reason, dry_run=not really, **chosen)
    return CommandResult(as_json(found), lambda screen: _show_retraction(screen, found))


def of_sender(
    handle: Any, sender: str, *, reason: str, really: bool, restore: bool
) -> CommandResult:
    """Retract or restore all conversations of a sender, or preview it.

    Each conversation is one transaction.

    Raises:
        NotFound: nobody of this name said or stored anything.
    """
    conversations: list[str] = []
    after = None
    while True:
        page = handle.sources.list(
            kind=SourceName.CONVERSATION, sender=sender, limit=500, after=after
        )
        conversations += [each.name for each in page.items]
        if (after := page.next_after) is None:
            break
    if not conversations:
        raise NotFound(f"no conversation of {sender[:80]}", name=sender[:80])
    change = handle.sources.restore if restore else handle.sources.retract
    found = [
        change(conversation_id=each, reason=reason, dry_run=not really) for each in conversations
    ]
    data = {"sender": sender, "dry_run": not really, "sources": [as_json(each) for each in found]}

    def show(screen: Screen) -> None:
        verbs = ("come back", "back") if restore else ("go", "gone")
        verb = verbs[1] if really else f"would {verbs[0]}"
        screen.line(f"{sender}: {len(found)} conversations")
        numbers = (each.restored if restore else each.retracted for each in found)
        kept = ("" if restore else str(each.kept) for each in found)
        rows = zip(conversations, map(str, numbers), kept, strict=True)
        screen.table(("conversation", verb, "stay"), list(rows))
        if not really:
            screen.line("nothing was changed: say --yes to do it")

    return CommandResult(data, show)


def restored(handle: Any, source: str, *, reason: str, really: bool) -> CommandResult:
    """Restore what was retracted with a source, or preview it."""
    kind, name = named(source)
    chosen = {FIELDS[kind]: name}
    found: SourceRestoration = handle.sources.restore(reason=reason, dry_run=not really, **chosen)
    return CommandResult(as_json(found), lambda screen: _show_restoration(screen, found))


def _show_restoration(screen: Screen, found: SourceRestoration) -> None:
    verb = "would be" if found.dry_run else "are"
    screen.line(f"{verb} back: {found.restored}")
    if found.restored_items:
        rows = [
            (each.memory_id, each.status.value, short(each.summary))
            for each in found.restored_items
        ]
        screen.table(("memory", "status", ""), rows[:SHOWN])
    for number, what, items in (
        (found.replaced, "replaced by those again", found.replaced_items),
        (found.counted, "said by the source as well again", found.counted_items),
    ):
        if items:
            screen.heading(f"{verb} {what}: {number}")
            told = [(each.memory_id, short(each.summary)) for each in items]
            screen.table(("memory", ""), told[:SHOWN])
    if found.left_open_items:
        screen.heading(f"these contradictions stay open, decide them again: {found.left_open}")
        _show_disputed(screen, found.left_open_items)
    if found.dry_run:
        screen.line("nothing was changed: say --yes to do it")


def _show_disputed(screen: Screen, items: Sequence[DisputedPair]) -> None:
    rows = [(each.edge_id, each.from_id, each.to_id) for each in items]
    screen.table(("edge", "of", "and"), rows[:SHOWN])


def _show_retraction(screen: Screen, found: SourceRetraction) -> None:
    verb = "would go" if found.dry_run else "were taken back"
    screen.line(
        f"{found.retracted} memories {verb}: {found.given} from the source,"
        f" {found.derived} derived from those alone"
    )
    if found.retracted_items:
        rows = [
            (each.memory_id, each.because, short(each.summary)) for each in found.retracted_items
        ]
        screen.table(("memory", "because", ""), rows[:SHOWN])
    if found.kept_items:
        screen.heading(f"{found.kept} stay: they are said elsewhere, or have other grounds")
        kept = [(each.memory_id, each.because, short(each.summary)) for each in found.kept_items]
        screen.table(("memory", "because", ""), kept[:SHOWN])
    if found.weakened_items:
        screen.heading(f"{found.weakened} stay, and the source counts no longer for them")
        less = [
            (each.memory_id, f"{each.confidence_before:.2f}", f"{each.confidence_after:.2f}")
            for each in found.weakened_items
        ]
        screen.table(("memory", "confidence", "then"), less[:SHOWN])
    if found.reinstated_items:
        again = "would have" if found.dry_run else "have"
        told = f"{again} their place back, which nothing else replaces: {found.reinstated}"
        screen.heading(told)
        back = [(each.memory_id, short(each.summary)) for each in found.reinstated_items]
        screen.table(("memory", ""), back[:SHOWN])
    if found.reopened_items:
        verb = "would be" if found.dry_run else "are"
        screen.heading(f"contradictions that {verb} open again: {found.reopened}")
        _show_disputed(screen, found.reopened_items)
    if found.dry_run and (found.retracted or found.weakened):
        screen.line("nothing was changed: say --yes to do it")


def _row(each: SourceInfo) -> tuple[str, ...]:
    limit = "" if each.limit is None else str(each.limit)
    tier = each.tier.value if each.told else f"({each.tier.value})"
    if each.inherited:
        tier, limit = f"{tier} (inherited)", f"{limit} (inherited)" if limit else ""
    counts = (str(each.memories), str(each.active), str(each.retracted))
    return (each.kind.value, each.name, *counts, tier, limit, moment(each.last_at))


def _said(each: TrustedSource) -> tuple[str, ...]:
    limit = "" if each.max_memories is None else str(each.max_memories)
    who = (moment(each.set_at), each.actor, each.reason)
    return (each.kind.value, each.name, each.tier.value, limit, *who)


_COLUMNS: Final = ("kind", "name", "memories", "active", "retracted", "tier", "limit", "last")
_SAID: Final = ("kind", "name", "tier", "limit", "since", "who", "why")
COMMANDS = {
    "source": make_group(
        "source",
        "Tell where memories come from, and how far that is trusted.",
        {
            "list": list_sources,
            "show": show_source,
            "trust": trust,
            "distrust": distrust,
            "trusted": list_trusted,
        },
    )
}
