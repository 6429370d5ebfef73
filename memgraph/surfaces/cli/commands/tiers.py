"""Tiers from the command line: promote, tier."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memgraph.errors import ConfirmationMissing, InvalidInput
from memgraph.surfaces.cli.building import OrchestratorName, choice, make_command, value
from memgraph.surfaces.cli.commands.shaping import as_json, short
from memgraph.surfaces.cli.invocation import Invocation, Report, invocation
from memgraph.surfaces.cli.screen import Screen

if TYPE_CHECKING:
    from memgraph.context.backend import MemoryBackend
    from memgraph.model.context import ContextItem
    from memgraph.service.orchestrator import Orchestrator

ITEM_COLUMNS = ("id", "kind", "importance", "date", "text")


class Wider(StrEnum):
    """Where a memory may be promoted to."""

    PROJECT = "project"
    GLOBAL = "global"


def promote(
    context: typer.Context,
    orchestrator: OrchestratorName,
    memory_id: Annotated[
        str, typer.Argument(metavar="ID", help="A memory's id.", show_default=False)
    ],
    to: Annotated[Wider, choice(Wider, "--to", text="A step up from where it is.")],
    project_id: Annotated[
        str | None, value("ID", "The project that it goes to, or comes from.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="You consent to what would be asked.")] = False,
    reason: Annotated[str, value("TEXT", "Why, for the journal.")] = "",
) -> Report:
    """Make a task's memory its project's, or a project's everybody's.

    Name the task with --session. To make a preference or an identity global takes --yes.
    """
    given = invocation(context)
    if project_id is not None:
        given.project.append(project_id)
    target = project_id if to is Wider.PROJECT else None
    with given.orchestrator(orchestrator) as handle:
        new_id = _promoted(handle, memory_id, to, target, yes=yes, reason=reason)
        embedding = given.after_writing(handle)
    data = {"memory_id": new_id, "promoted": memory_id, "to": to.value, "embedding": embedding}
    return Report(data, lambda screen: screen.line(f"promoted {memory_id} to {to.value}: {new_id}"))


def tier(
    context: typer.Context,
    orchestrator: OrchestratorName,
    task: Annotated[str | None, value("ID", "What a task holds.")] = None,
    everywhere: Annotated[
        bool, typer.Option("--global", help="What holds in every project.")
    ] = False,
    limit: Annotated[int, typer.Option(help="1 to 1000000.")] = 50,
) -> Report:
    """List what a task (--task), a project (--project) or everybody (--global) holds.

    The newest items first.
    """
    given = invocation(context)
    if task is not None:
        given.session.append(task)
    with given.orchestrator(orchestrator) as handle:
        name, scope_id, backend = _backend(given, handle, task, everywhere=everywhere)
        found = backend.query({}, limit=limit)
        count = backend.count()
    items = [as_json(each) for each in found]
    data = {"tier": name, "scope_id": scope_id, "count": count, "items": items}

    def show(screen: Screen) -> None:
        screen.heading(f"{name} {scope_id or ''}".strip() + f": {count} items")
        screen.table(ITEM_COLUMNS, [_row(each) for each in found])

    return Report(data, show)


def _promoted(
    handle: Orchestrator,
    memory_id: str,
    to: Wider,
    target: str | None,
    *,
    yes: bool,
    reason: str,
) -> str | None:
    asked: list[str] = []

    def consent(question: str) -> bool:
        asked.append(question)
        if not yes:
            raise ConfirmationMissing("nobody consented")
        return True

    try:
        return handle.promote(
            memory_id, to.value, target, confirmation_callback=consent, reason=reason
        )
    except ConfirmationMissing:
        raise ConfirmationMissing(f"{asked[0]} If so, say --yes.", memory_id=memory_id) from None


def _backend(
    given: Invocation, handle: Orchestrator, task: str | None, *, everywhere: bool
) -> tuple[str, str | None, MemoryBackend]:
    """The tier that the options name, the id of its task or project, and its items."""
    named = [each for each in (task, *given.project, everywhere or None) if each is not None]
    if len(named) != 1:
        raise InvalidInput("name one tier: --task ID, --project ID or --global", field="tier")
    if task is not None:
        return "task", task, handle.task(task).backend
    if everywhere:
        return "global", None, handle.everywhere().backend
    return "project", given.project[0], handle.project(given.project[0]).backend


def _row(item: ContextItem) -> tuple[str, ...]:
    importance = "" if item.importance is None else f"{item.importance:g}"
    text = next((each for each in item.payload.values() if isinstance(each, str)), "")
    date = item.timestamp[:10]
    return (item.context_item_id, item.kind, importance, date, short(text or str(item.payload)))


COMMANDS: dict[str, Any] = {
    "promote": make_command(promote, "promote"),
    "tier": make_command(tier, "tier"),
}
