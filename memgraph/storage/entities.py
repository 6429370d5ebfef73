"""Entities, their aliases, and which memories name them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from memgraph.model.enums import EntityType
from memgraph.storage import tables
from memgraph.storage.statements import Insert, driver

_insert = Insert(
    "entities", ("pk", "entity_id", "canonical_name", "name_key", "type", "created_at")
)
_BY_NAME = (
    "SELECT pk, name_key, type FROM entities WHERE name_key IN (SELECT value FROM json_each(?))"
)
# Of two entities with one alias the older is meant.
_BY_ALIAS = (
    "SELECT alias_key, entity_pk FROM entity_aliases"
    " WHERE alias_key IN (SELECT value FROM json_each(?)) ORDER BY entity_pk DESC"
)
_link = Insert("memory_entities", ("entity_pk", "memory_pk"), or_ignore=True)
_MENTION = "UPDATE entities SET mention_count = mention_count + ? WHERE pk = ?"


@dataclass(frozen=True, slots=True)
class EntityName:
    """A name found in a text: ``key`` is its canonical form for look-ups."""

    key: str
    name: str
    type: EntityType


def find(connection: sa.Connection, names: Sequence[EntityName]) -> dict[EntityName, int]:
    """Keys of the entities that are known by canonical name and type, or else by an alias."""
    wanted = (json.dumps(sorted({each.key for each in names})),)
    execute = driver(connection).execute
    by_name = {(key, kind): pk for pk, key, kind in execute(_BY_NAME, wanted)}
    by_alias = dict(execute(_BY_ALIAS, wanted))
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
    [(last,)] = driver(connection).execute("SELECT max(pk) FROM entities")
    keys = {name: (last or 0) + 1 + position for position, name in enumerate(names)}
    _insert(
        connection,
        [
            (keys[name], entity_id, name.name, name.key, str(name.type), created_at)
            for name, entity_id in names.items()
        ],
    )
    return keys


def link(connection: sa.Connection, pairs: Sequence[tuple[int, int]]) -> None:
    """Pairs of (entity key, memory key), each once; counts the mentions."""
    if not pairs:
        return
    _link(connection, pairs)
    mentions: dict[int, int] = {}
    for entity, _ in pairs:
        mentions[entity] = mentions.get(entity, 0) + 1
    driver(connection).executemany(
        _MENTION, [(count, entity) for entity, count in mentions.items()]
    )


def count(connection: sa.Connection) -> int:
    return int(
        connection.execute(sa.select(sa.func.count()).select_from(tables.entities)).scalar_one()
    )
