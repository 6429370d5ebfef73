"""Entities, their aliases, and which memories name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from memgraph.model.enums import EntityType
from memgraph.model.tables import EntityAliasRow, EntityRow, MemoryEntityRow

entities: sa.Table = EntityRow.__table__  # type: ignore[attr-defined]  # SQLModel sets it
aliases: sa.Table = EntityAliasRow.__table__  # type: ignore[attr-defined]
links: sa.Table = MemoryEntityRow.__table__  # type: ignore[attr-defined]


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
            sa.select(entities.c.pk, entities.c.name_key, entities.c.type).where(
                entities.c.name_key.in_(chunk)
            )
        ):
            by_name[row.name_key, row.type] = row.pk
        for alias in connection.execute(
            sa.select(aliases.c.alias_key, aliases.c.entity_pk)
            .where(aliases.c.alias_key.in_(chunk))
            .order_by(aliases.c.entity_pk.desc())
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
    last = int(connection.execute(sa.select(sa.func.max(entities.c.pk))).scalar() or 0)
    keys = {name: last + 1 + position for position, name in enumerate(names)}
    connection.execute(
        sa.insert(entities),
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
        sa.insert(links).prefix_with("OR IGNORE"),
        [{"entity_pk": entity, "memory_pk": memory} for entity, memory in pairs],
    )
    mentions: dict[int, int] = {}
    for entity, _ in pairs:
        mentions[entity] = mentions.get(entity, 0) + 1
    connection.execute(
        sa.update(entities)
        .where(entities.c.pk == sa.bindparam("entity"))
        .values(mention_count=entities.c.mention_count + sa.bindparam("more")),
        [{"entity": entity, "more": count} for entity, count in mentions.items()],
    )


def count(connection: sa.Connection) -> int:
    return int(connection.execute(sa.select(sa.func.count()).select_from(entities)).scalar_one())
