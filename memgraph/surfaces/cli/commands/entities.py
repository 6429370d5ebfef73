"""Commands for entities: entities and its sub-commands, entity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from memgraph.operations.entities import EntitiesHandle
from memgraph.surfaces.cli.builder import make_command, make_group
from memgraph.surfaces.cli.formats import MEMORY_COLUMNS, day, memory_rows
from memgraph.surfaces.cli.operations import command_of
from memgraph.surfaces.cli.screen import Screen

if TYPE_CHECKING:
    from memgraph.model.entities import EntityInfo, EntityProfile, EntityProposal

ENTITY_COLUMNS = ("id", "type", "mentions", "name")
_NAME = typer.Argument(metavar="NAME", help="A name, a nickname or an id.", show_default=False)


def _show_list(screen: Screen, found: Sequence[EntityInfo], _: Mapping[str, Any]) -> None:
    if found:
        screen.table(ENTITY_COLUMNS, [_row(each) for each in found])
    else:
        screen.line("no entity")


def _show_merged(screen: Screen, found: EntityInfo, given: Mapping[str, Any]) -> None:
    screen.line(
        f"{given['other']} is {found.canonical_name} ({found.entity_id}), {_mentions(found)}"
    )


def _show_split(screen: Screen, found: EntityInfo, _: Mapping[str, Any]) -> None:
    screen.line(f"{found.canonical_name} is {found.entity_id}, {_mentions(found)}")


def _show_protected(screen: Screen, found: EntityInfo, given: Mapping[str, Any]) -> None:
    screen.line(f"{found.canonical_name} is {'' if given['protected'] else 'no longer '}protected")


def _show_proposals(screen: Screen, found: Sequence[EntityProposal], _: Mapping[str, Any]) -> None:
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
    screen.table(("id", "name", "means", "confidence"), rows)


def _show_decided(screen: Screen, found: EntityInfo, given: Mapping[str, Any]) -> None:
    decision = "accepted" if given["accept"] else "rejected"
    screen.line(f"{decision}: {found.canonical_name}, {_mentions(found)}")


def _row(found: EntityInfo) -> tuple[str, str, str, str]:
    return (found.entity_id, found.type.value, str(found.mention_count), found.canonical_name)


def _mentions(found: EntityInfo) -> str:
    return "1 mention" if found.mention_count == 1 else f"{found.mention_count} mentions"


def _show(screen: Screen, found: EntityProfile, _: Mapping[str, Any]) -> None:
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
            "list": command_of(
                EntitiesHandle.entities,
                _show_list,
                key="entities",
                text="List entities, most mentioned first.",
            ),
            "merge": command_of(
                EntitiesHandle.entities.merge,
                _show_merged,
                key="entity",
                text="Merge two entities: OTHER becomes a name of INTO.",
            ),
            "split": command_of(
                EntitiesHandle.entities.split,
                _show_split,
                key="entity",
                options={
                    "names": typer.Option(
                        "--name",
                        metavar="TEXT",
                        help="A name to take away; repeatable, the first leads.",
                    )
                },
                text="Move names of an entity to another entity.",
            ),
            "protect": command_of(
                EntitiesHandle.entities.protect,
                _show_protected,
                key="entity",
                options={
                    "name_or_id": _NAME,
                    "protected": typer.Option(
                        "--on/--off", help="Protect them, or let time retire them again."
                    ),
                },
                text="Protect the facts about an entity from decay.",
            ),
            "proposals": command_of(
                EntitiesHandle.entities.proposals,
                _show_proposals,
                key="proposals",
                text="List the names that a model proposed as names of a known entity.",
            ),
            "decide": command_of(
                EntitiesHandle.entities.decide,
                _show_decided,
                key="entity",
                options={
                    "proposal_id": typer.Argument(
                        metavar="ID", help="Of a proposal.", show_default=False
                    ),
                    "accept": typer.Option("--accept/--reject", help="Merge the two, or never."),
                },
                text="Accept or reject a proposal that two entities are one.",
            ),
        },
        default="list",
    ),
    "entity": make_command(
        command_of(
            EntitiesHandle.entities.get,
            _show,
            options={"name_or_id": _NAME},
            text="Show one entity: names, mentions, memories, and entities named beside it.",
        ),
        "entity",
    ),
}
