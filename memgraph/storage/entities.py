"""Entities, their aliases, and which memories name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from memgraph.model.enums import EntityType
from memgraph.storage import tables


@dataclass(frozen=True, slots=True)
class EntityName:
    """A name found in a text: ``key`` is its canonical form for look-ups."""

    key: str
    name: str
    type: EntityType


def find(connection: sa.Connection, names: Sequence[EntityName]) -> dict[EntityName, int]:
    """Keys of the entities that are known by canonical name and type, or else by an alias."""
    wanted = sorted({each.key for each in names})
    by_name: dict[tuple[str, EntityType], int] = {}
    by_alias: dict[str, int] = {}
    for start in range(0, len(wanted), 5_000):
        chunk = wanted[start : start + 5_000]
        for row in connection.execute(
            sa.select(
                tables.entities.c.pk, tables.entities.c.name_key, tables.entities.c.type
            ).where(tables.entities.c.name_key.in_(chunk))
        ):
            by_name[row.name_key, row.type] = row.pk
        for alias in connection.execute(
            sa.select(tables.aliases.c.alias_key, tables.aliases.c.entity_pk)
            .where(tables.aliases.c.alias_key.in_(chunk))
            .order_by(tables.aliases.c.entity_pk.desc())
        ):
            by_alias[alias.alias_key] = alias.entity_pk
    found = {}
    for each in names:
        pk = by_name.get((each.key, each.type), by_alias.get(each.key))
        if pk is not None:
            found[each] = pk
    return found


def create(
    connection: sa.Connection, names: Mapping[EntityName, str], created_at: int
) -> dict[EntityName, int]:
    """New entities, from name to the id each shall have; gives their keys."""
    if not names:
        return {}
    last = int(connection.execute(sa.select(sa.func.max(tables.entities.c.pk))).scalar() or 0)
    keys = {name: last + 1 + position for position, name in enumerate(names)}
    connection.execute(
        sa.insert(tables.entities),
        [
            {
                "pk": keys[name],
                "entity_id": entity_id,
                "canonical_name": name.name,
                "name_key": name.key,
                "type": name.type,
                "created_at": created_at,
            }
            for name, entity_id in names.items()
        ],
    )
    return keys


def link(connection: sa.Connection, pairs: Sequence[tuple[int, int]]) -> None:
    """Pairs of (entity key, memory key), each once; counts the mentions."""
    if not pairs:
        return
    connection.execute(
        sa.insert(tables.links).prefix_with("OR IGNORE"),
        [{"entity_pk": entity, "memory_pk": memory} for entity, memory in pairs],
    )
    mentions: dict[int, int] = {}
    for entity, _ in pairs:
        mentions[entity] = mentions.get(entity, 0) + 1
    connection.execute(
        sa.update(tables.entities)
        .where(tables.entities.c.pk == sa.bindparam("entity"))
        .values(mention_count=tables.entities.c.mention_count + sa.bindparam("more")),
        [{"entity": entity, "more": count} for entity, count in mentions.items()],
    )


def count(connection: sa.Connection) -> int:
    return int(
        connection.execute(sa.select(sa.func.count()).select_from(tables.entities)).scalar_one()
    )
