"""Commands for entities: entities and its sub-commands, entity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from memgraph.operations.entities import Entities
from memgraph.surfaces.cli.builder import make_command, make_group
from memgraph.surfaces.cli.formats import MEMORY_COLUMNS, day, memory_rows
from memgraph.surfaces.cli.operations import command_of
from memgraph.surfaces.cli.screen import Screen

if TYPE_CHECKING:
    from memgraph.model.entities import EntityInfo, EntityProfile

ENTITY_COLUMNS = ("id", "type", "mentions", "name")
_NAME = typer.Argument(metavar="NAME", help="A name, a nickname or an id.", show_default=False)


def _show_list(screen: Screen, infos: Sequence[EntityInfo], _: Mapping[str, Any]) -> None:
    if infos:
        screen.table(ENTITY_COLUMNS, [_row(item) for item in infos])
    else:
        screen.line("no entity")


def _show_merged(screen: Screen, info: EntityInfo, call: Mapping[str, Any]) -> None:
    screen.line(f"{call['other']} is {info.canonical_name} ({info.entity_id}), {_mentions(info)}")


def _show_without_alias(screen: Screen, info: EntityInfo, call: Mapping[str, Any]) -> None:
    screen.line(f"{call['alias']} is no longer {info.entity_id}, {_mentions(info)}")


def _show_protected(screen: Screen, info: EntityInfo, call: Mapping[str, Any]) -> None:
    screen.line(f"{info.canonical_name} is {'' if call['protected'] else 'no longer '}protected")


def _row(info: EntityInfo) -> tuple[str, str, str, str]:
    return (info.entity_id, info.type.value, str(info.mention_count), info.canonical_name)


def _mentions(info: EntityInfo) -> str:
    return "1 mention" if info.mention_count == 1 else f"{info.mention_count} mentions"


def _show(screen: Screen, profile: EntityProfile, _: Mapping[str, Any]) -> None:
    screen.heading(f"{profile.canonical_name}  {profile.type.value}")
    fields = [
        ("id", profile.entity_id),
        ("mentions", str(profile.mention_count)),
        ("seen", f"{day(profile.first_seen)} to {day(profile.last_seen)}"),
    ]
    if profile.protected:
        fields.append(("protected", "facts about it do not decay"))
    if profile.aliases:
        fields.append(("also called", ", ".join(profile.aliases)))
    if profile.related:
        neighbours = (f"{item.canonical_name} ({item.together})" for item in profile.related)
        fields.append(("mentioned with", ", ".join(neighbours)))
    screen.fields(fields)
    if profile.memories:
        screen.line()
        screen.table(MEMORY_COLUMNS, memory_rows(profile.memories))
    if profile.candidates:
        screen.line()
        screen.line("other entities with this name:", style="yellow")
        screen.table(ENTITY_COLUMNS, [_row(candidate) for candidate in profile.candidates])


COMMANDS: dict[str, Any] = {
    "entities": make_group(
        "entities",
        "List entities; merge them, take aliases away, and protect them.",
        {
            "list": command_of(
                Entities.list,
                _show_list,
                key="entities",
                text="List entities, most mentioned first.",
            ),
            "merge": command_of(
                Entities.merge,
                _show_merged,
                key="entity",
                text="Merge two entities: OTHER becomes a name of INTO.",
            ),
            "remove-alias": command_of(
                Entities.remove_alias,
                _show_without_alias,
                key="entity",
                text="Take a name away from an entity; a merged one is an entity of its own again.",
            ),
            "protect": command_of(
                Entities.protect,
                _show_protected,
                key="entity",
                options={
                    "name_or_id": _NAME,
                    "protected": typer.Option(
                        "--on/--off", help="Protect the facts, or let them decay again."
                    ),
                },
                text="Protect the facts about an entity from decay.",
            ),
        },
        default="list",
    ),
    "entity": make_command(
        command_of(
            Entities.get,
            _show,
            options={"name_or_id": _NAME},
            text="Show one entity: its names, mentions, memories and related entities.",
        ),
        "entity",
    ),
}
