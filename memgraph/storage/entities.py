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
    "SELECT e.name_key, e.type, e.pk, m.pk, e.canonical_name FROM entities e"
    " LEFT JOIN entities m ON m.entity_id = e.merged_into"
    " WHERE e.name_key IN (SELECT value FROM json_each(?))"
)
# Of two entities with one alias the older is meant. Another spelling of an entity's own name says
# nothing of an entity of another type.
_BY_ALIAS = (
    "SELECT a.alias_key, coalesce(m.pk, e.pk) FROM entity_aliases a"
    " JOIN entities e ON e.pk = a.entity_pk LEFT JOIN entities m ON m.entity_id = e.merged_into"
    " WHERE a.alias_key IN (SELECT value FROM json_each(?)) AND a.alias_key <> e.name_key"
    " ORDER BY a.entity_pk DESC"
)
_spelling = Insert("entity_aliases", ("alias_key", "entity_pk", "alias"), or_ignore=True)
_link = Insert("memory_entities", ("entity_pk", "memory_pk"), or_ignore=True)
_MENTION = "UPDATE entities SET mention_count = mention_count + ? WHERE pk = ?"


@dataclass(frozen=True, slots=True)
class EntityName:
    """A name found in a text: ``key`` is its canonical form for look-ups."""

    key: str
    name: str
    type: EntityType


@dataclass(frozen=True, slots=True)
class Known:
    """Names that are known.

    Attributes:
        keys: of the entity that each name means.
        spellings: (canonical name, key, spelling) where an entity is written in a new way.
    """

    keys: dict[EntityName, int]
    spellings: list[tuple[str, int, str]]


def find(connection: sa.Connection, names: Sequence[EntityName]) -> Known:
    """Entities that are known by canonical name and type, or else by an alias.

    A name that was merged into another entity means that one.
    """
    wanted = (json.dumps(sorted({each.key for each in names})),)
    execute = driver(connection).execute
    by_name = {(key, kind): found for key, kind, *found in execute(_BY_NAME, wanted)}
    by_alias = dict(execute(_BY_ALIAS, wanted))
    known = Known({}, [])
    for each in names:
        found = by_name.get((each.key, each.type))
        if found is not None:
            pk, merged_into, canonical_name = found
            known.keys[each] = pk if merged_into is None else merged_into
            if each.name != canonical_name and merged_into is None:
                known.spellings.append((each.key, pk, each.name))
        elif each.key in by_alias:
            known.keys[each] = by_alias[each.key]
    return known


def add_spellings(connection: sa.Connection, spellings: Sequence[tuple[str, int, str]]) -> None:
    """Keep how an entity is written, too: the first spelling that differs from its name."""
    _spelling(connection, spellings)


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
