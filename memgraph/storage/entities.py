"""Entities, their aliases, and which memories name them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import sqlalchemy as sa

from memgraph.model.enums import EntityType
from memgraph.storage import tables
from memgraph.storage.statements import Insert, driver

_insert = Insert(
    "entities", ("pk", "entity_id", "canonical_name", "name_key", "type", "created_at")
)
_BY_NAME = (
    "SELECT name_key, type, pk, merged_into, canonical_name FROM entities"
    " WHERE name_key IN (SELECT value FROM json_each(?))"
)
_MEANT = "SELECT pk FROM entities WHERE entity_id = ?"
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


class Known(NamedTuple):
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
    execute = driver(connection).execute
    by_name = {row[:2]: row for row in execute(_BY_NAME, _keys(names))}
    known = Known({}, [])
    others = []
    for each in names:
        found = by_name.get((each.key, each.type))
        if found is None:
            others.append(each)
            continue
        _, _, pk, merged_into, canonical_name = found
        if merged_into is not None:
            meant = execute(_MEANT, (merged_into,)).fetchone()
            pk = pk if meant is None else meant[0]
        elif each.name != canonical_name:
            known.spellings.append((each.key, pk, each.name))
        known.keys[each] = pk
    # Most names are known as such: then there is no need to look for aliases.
    by_alias = dict(execute(_BY_ALIAS, _keys(others))) if others else {}
    known.keys.update((each, by_alias[each.key]) for each in others if each.key in by_alias)
    return known


def _keys(names: Sequence[EntityName]) -> tuple[str]:
    return (json.dumps(sorted({each.key for each in names})),)


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
