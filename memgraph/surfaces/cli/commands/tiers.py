"""Tiers from the command line: promote, tier."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memgraph.errors import ConfirmationMissing, NotFound
from memgraph.surfaces.cli.builder import OrchestratorName, choice, make_command, value
from memgraph.surfaces.cli.files import counted
from memgraph.surfaces.cli.formats import as_json, short
from memgraph.surfaces.cli.invocation import CommandResult, Invocation, invocation
from memgraph.surfaces.cli.screen import Screen

if TYPE_CHECKING:
    from memgraph.model.context import ContextItem, Tier
    from memgraph.operations.orchestrator import Orchestrator

ITEM_COLUMNS = ("id", "item", "kind", "importance", "date", "text")


class PromotionTier(StrEnum):
    """The targets of a promotion."""

    PROJECT = "project"
    GLOBAL = "global"


def promote(
    context: typer.Context,
    orchestrator: OrchestratorName,
    memory_id: Annotated[
        str, typer.Argument(metavar="ID", help="A memory's id.", show_default=False)
    ],
    to: Annotated[PromotionTier, choice(PromotionTier, "--to", text="A step up from where it is.")],
    task_id: Annotated[str | None, value("ID", "The task that it is of.", "--task")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="You consent to what would be asked.")] = False,
    reason: Annotated[str, value("TEXT", "Why, for the journal.")] = "",
) -> CommandResult:
    """Promote a task's memory to its project, or a project's to global.

    ID is a memory's, as `memgraph tier` lists it. Name its place with --task or --project; with
    --to project, --project is the target. Making a preference or an identity global requires --yes.
    """
    given = invocation(context)
    target = None
    if to is PromotionTier.PROJECT:
        if len(given.project) != 1:
            raise typer.BadParameter("--to project takes one --project ID: where it goes")
        target = given.project[0]
    if task_id is not None:
        given.session.append(task_id)
    with given.orchestrator(orchestrator) as handle:
        new_id = _promoted(handle, memory_id, to, target, yes=yes, reason=reason)
        embedding = given.after_writing(handle)
    data = {"memory_id": new_id, "promoted": memory_id, "to": to.value, "embedding": embedding}
    return CommandResult(
        data, lambda screen: screen.line(f"promoted {memory_id} to {to.value}: {new_id}")
    )


def tier(
    context: typer.Context,
    orchestrator: OrchestratorName,
    task_id: Annotated[str | None, value("ID", "What a task holds.", "--task")] = None,
    everywhere: Annotated[
        bool, typer.Option("--global", help="What holds in every project.")
    ] = False,
    limit: Annotated[int, typer.Option(help="1 to 1000000.")] = 50,
) -> CommandResult:
    """List the items of a task (--task), a project (--project) or the global tier (--global).

    Newest items first. Name one of the three: --project ID is here the project that is listed. The
    id is the memory's, which promote, show and trace take; item is its owner's name for it.
    """
    given = invocation(context)
    which, scope_id = _named(given, task_id, everywhere=everywhere)
    if task_id is not None:
        given.session.append(task_id)
    with given.orchestrator(orchestrator) as handle:
        count, results = _held(given, handle, which, scope_id, limit)
    items = [{**as_json(item), "memory_id": memory_id} for memory_id, item in results]
    data = {"tier": which.value, "scope_id": scope_id, "count": count, "items": items}

    def show(screen: Screen) -> None:
        screen.heading(f"{which.value} {scope_id or ''}".strip() + f": {counted(count, 'item')}")
        screen.table(ITEM_COLUMNS, [_row(*element) for element in results])

    return CommandResult(data, show)


def _held(
    call: Invocation, handle: Orchestrator, which: Tier, scope_id: str | None, limit: int
) -> tuple[int, list[tuple[str, ContextItem]]]:
    """Return how many items there are, and the newest of them with their memories."""
    if call.server_url is not None:
        page = handle.contexts.tier(which, scope_id, limit=limit)
        return page.count, [(item.memory_id, item) for item in page.items]
    from memgraph.operations.context.database_backend import DatabaseBackend

    backend = DatabaseBackend(handle, which, scope_id)
    items_held = backend.query_held({}, limit=limit)
    return backend.count(), [(memory.memory_id, memory.item) for memory in items_held]


def _promoted(
    handle: Orchestrator,
    memory_id: str,
    to: PromotionTier,
    target: str | None,
    *,
    yes: bool,
    reason: str,
) -> str | None:
    asked: list[str] = []

    def consent(question: str) -> bool:
        asked.append(question)
        if not yes:
            raise ConfirmationMissing("not confirmed")
        return True

    try:
        return handle.contexts.promote(
            memory_id, to.value, target, confirmation_callback=consent, reason=reason
        )
    except ConfirmationMissing:
        raise ConfirmationMissing(f"{asked[0]} If so, say --yes.", memory_id=memory_id) from None
    except NotFound as error:
        # The same whether there is one or not.
        hint = f"{error.message}; say which task or project it is of with --task or --project"
        raise NotFound(hint, **error.details) from None


def _named(call: Invocation, task_id: str | None, *, everywhere: bool) -> tuple[Tier, str | None]:
    """Return the tier that the options name, and the id of its task or project."""
    from memgraph.model.context import Tier

    named = [(Tier.PROJECT, item) for item in call.project]
    named += [] if task_id is None else [(Tier.TASK, task_id)]
    if len(named) + everywhere != 1:
        raise typer.BadParameter("name one tier: --task ID, --project ID or --global")
    return (Tier.GLOBAL, None) if everywhere else named[0]


def _row(memory_id: str, item: ContextItem) -> tuple[str, ...]:
    name = "" if item.context_item_id == memory_id else item.context_item_id
    importance = "" if item.importance is None else f"{item.importance:g}"
    text = next((element for element in item.payload.values() if isinstance(element, str)), "")
    date = item.timestamp[:10]
    return (memory_id, name, item.kind, importance, date, short(text or str(item.payload)))


COMMANDS: dict[str, Any] = {
    "promote": make_command(promote, "promote"),
    "tier": make_command(tier, "tier"),
}
