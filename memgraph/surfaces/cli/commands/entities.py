"""Commands for entities: entities and its sub-commands, entity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from memgraph.surfaces.cli.building import OrchestratorName, make_command, make_group, value
from memgraph.surfaces.cli.commands.shaping import MEMORY_COLUMNS, as_json, day, memory_rows
from memgraph.surfaces.cli.invocation import Report, invocation
from memgraph.surfaces.cli.screen import Screen

if TYPE_CHECKING:
    from memgraph.model.entities import EntityInfo, EntityProfile

ENTITY_COLUMNS = ("id", "type", "mentions", "name")

EntityName = Annotated[
    str, typer.Argument(metavar="NAME", help="A name, a nickname or an id.", show_default=False)
]
Why = Annotated[str, typer.Option(metavar="TEXT", help="Why, for the journal.", show_default=False)]


def list_entities(
    context: typer.Context,
    orchestrator: OrchestratorName,
    prefix: Annotated[str, value("TEXT", "How a name begins, in any case.")] = "",
    limit: Annotated[int, typer.Option(help="1 to 1000.")] = 50,
) -> Report:
    """List entities, most mentioned first."""
    with invocation(context).orchestrator(orchestrator) as handle:
        found = handle.entities(prefix=prefix, limit=limit)

    def show(screen: Screen) -> None:
        if not found:
            screen.line("no entity")
            return
        screen.table(ENTITY_COLUMNS, [_row(each) for each in found])

    return Report({"entities": [as_json(each) for each in found]}, show)


def entity(
    context: typer.Context,
    orchestrator: OrchestratorName,
    name: EntityName,
    limit: Annotated[int, typer.Option(help="Memories at most, 0 to 100.")] = 10,
) -> Report:
    """Show one entity: names, mentions, memories, and entities named beside it."""
    with invocation(context).orchestrator(orchestrator) as handle:
        found = handle.get_entity_info(name, limit=limit)
    return Report(as_json(found), lambda screen: _show(screen, found))


def merge(
    context: typer.Context,
    orchestrator: OrchestratorName,
    into: Annotated[
        str, typer.Argument(metavar="INTO", help="The entity that stays: a name or an id.")
    ],
    other: Annotated[
        str, typer.Argument(metavar="OTHER", help="The one that becomes a name of it.")
    ],
    reason: Why,
) -> Report:
    """Merge two entities into one."""
    with invocation(context).orchestrator(orchestrator) as handle:
        found = handle.merge_entities(into, other, reason=reason)
    told = f"{other} is {found.canonical_name} ({found.entity_id}), {_times(found)}"
    return Report({"entity": as_json(found)}, lambda screen: screen.line(told))


def split(
    context: typer.Context,
    orchestrator: OrchestratorName,
    name: EntityName,
    names: Annotated[
        list[str],
        typer.Option(
            "--name", metavar="TEXT", help="A name to take away; repeatable, the first leads."
        ),
    ],
    reason: Why,
) -> Report:
    """Move names of an entity to another entity."""
    with invocation(context).orchestrator(orchestrator) as handle:
        found = handle.split_entity(name, names=names, reason=reason)
    told = f"{found.canonical_name} is {found.entity_id}, {_times(found)}"
    return Report({"entity": as_json(found)}, lambda screen: screen.line(told))


def protect(
    context: typer.Context,
    orchestrator: OrchestratorName,
    name: EntityName,
    reason: Why,
    off: Annotated[bool, typer.Option("--off", help="Let time retire them again.")] = False,
) -> Report:
    """Protect the facts about an entity from decay."""
    with invocation(context).orchestrator(orchestrator) as handle:
        found = handle.protect_entity(name, protected=not off, reason=reason)
    told = f"{found.canonical_name} is {'no longer ' if off else ''}protected"
    return Report({"entity": as_json(found)}, lambda screen: screen.line(told))


def proposals(context: typer.Context, orchestrator: OrchestratorName) -> Report:
    """List the names that a model proposed as names of a known entity."""
    with invocation(context).orchestrator(orchestrator) as handle:
        found = handle.entity_proposals()

    def show(screen: Screen) -> None:
        if not found:
            screen.line("no proposal")
            return
        rows = [
            (
                *(each.proposal_id, each.entity.canonical_name, each.into.canonical_name),
                f"{each.confidence:.2f}",
            )
            for each in found
        ]
        screen.table(("id", "name", "means", "sure"), rows)

    return Report({"proposals": [as_json(each) for each in found]}, show)


def decide(
    context: typer.Context,
    orchestrator: OrchestratorName,
    proposal_id: Annotated[
        str, typer.Argument(metavar="ID", help="Of a proposal.", show_default=False)
    ],
    reason: Why,
    accept: Annotated[bool, typer.Option("--accept/--reject", help="Merge the two, or never.")],
) -> Report:
    """Accept or reject a proposal that two entities are one."""
    with invocation(context).orchestrator(orchestrator) as handle:
        found = handle.decide_entity_proposal(proposal_id, accept=accept, reason=reason)
    told = f"{'accepted' if accept else 'rejected'}: {found.canonical_name}, {_times(found)}"
    return Report({"entity": as_json(found)}, lambda screen: screen.line(told))


def _row(found: EntityInfo) -> tuple[str, str, str, str]:
    return (found.entity_id, found.type.value, str(found.mention_count), found.canonical_name)


def _times(found: EntityInfo) -> str:
    return "1 mention" if found.mention_count == 1 else f"{found.mention_count} mentions"


def _show(screen: Screen, found: EntityProfile) -> None:
    screen.heading(f"{found.canonical_name}  {found.type.value}")
    fields = [
        ("id", found.entity_id),
        ("mentions", str(found.mention_count)),
        ("seen", f"{day(found.first_seen)} to {day(found.last_seen)}"),
    ]
    if found.protected:
        fields.append(("protected", "time retires no fact about it"))
    if found.aliases:
        fields.append(("also called", ", ".join(found.aliases)))
    if found.related:
        beside = (f"{each.canonical_name} ({each.together})" for each in found.related)
        fields.append(("named beside", ", ".join(beside)))
    screen.fields(fields)
    if found.memories:
        screen.line()
        screen.table(MEMORY_COLUMNS, memory_rows(found.memories))
    if found.candidates:
        screen.line()
        screen.line("also called so:", style="yellow")
        screen.table(ENTITY_COLUMNS, [_row(each) for each in found.candidates])


COMMANDS = {
    "entities": make_group(
        "entities",
        "List entities; merge, split and protect them.",
        {
            "list": list_entities,
            "merge": merge,
            "split": split,
            "protect": protect,
            "proposals": proposals,
            "decide": decide,
        },
        default="list",
    ),
    "entity": make_command(entity, "entity"),
}
