"""Entities, their aliases, and which memories name them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import sqlalchemy as sa

from memgraph.model.enums import EntityType
from memgraph.storage import tables
from memgraph.storage.statements import Insert, driver

NAMED_TYPES: Final = (
    EntityType.PERSON,
    EntityType.PROJECT,
    EntityType.ORGANIZATION,
    EntityType.LOCATION,
    EntityType.OTHER,
)
"""What has a name of its own; addresses and dates are found by their form."""

_insert = Insert(
    "entities",
    (
        *("pk", "entity_id", "canonical_name", "name_key", "type", "created_at"),
        *("type_provider", "type_confidence"),
    ),
)
_BY_NAME = (
    "SELECT e.name_key, e.type, e.pk, coalesce(m.pk, e.pk), e.canonical_name, e.type_provider"
    " FROM entities e LEFT JOIN entities m ON m.entity_id = e.merged_into"
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
# A person whose full name begins with a name of one word.
_BY_FIRST_NAME = (
    "SELECT f.value, coalesce(m.pk, e.pk) FROM json_each(?) f"
    " CROSS JOIN entities e ON e.name_key > f.value || ' ' AND e.name_key < f.value || '!'"
    " LEFT JOIN entities m ON m.entity_id = e.merged_into WHERE e.type = 'person'"
)
_NEW_NAMES = (
    "SELECT e.name_key, e.canonical_name, e.type FROM entities e WHERE e.pk > ?"
    f" AND e.type IN ({', '.join(repr(each.value) for each in NAMED_TYPES)})"
    " UNION ALL SELECT a.alias_key, a.alias, e.type FROM entity_aliases a"
    " JOIN entities e ON e.pk = a.entity_pk WHERE a.rowid > ? AND a.alias_key <> e.name_key"
)
_NEWEST = (
    "SELECT (SELECT entity_id FROM entities WHERE pk = ?),"
    " (SELECT alias_key FROM entity_aliases WHERE rowid = ?),"
    " (SELECT max(pk) FROM entities), (SELECT max(rowid) FROM entity_aliases)"
)
_spelling = Insert("entity_aliases", ("alias_key", "entity_pk", "alias"), or_ignore=True)
_link = Insert("memory_entities", ("entity_pk", "memory_pk"), or_ignore=True)
_MENTION = "UPDATE entities SET mention_count = mention_count + ? WHERE pk = ?"


PROVIDERS: Final = ("regex", "spacy", "llm", "told")
"""Who says of what type an entity is; a later one replaces what an earlier one said."""
TOLD: Final = PROVIDERS[-1]
LISTED: Final = 0.9
"""From this confidence on a type is as good as that of any provider."""


@dataclass(frozen=True, slots=True)
class EntityName:
    """A name found in a text: ``key`` is its canonical form for look-ups.

    Attributes:
        confidence: 0..1, of the type.
        provider: who said of what type it is: ``regex``, ``spacy``, ``llm`` or ``told``.
    """

    key: str
    name: str
    type: EntityType
    confidence: float = field(default=1.0, compare=False)
    provider: str = field(default=TOLD, compare=False)


class Known(NamedTuple):
    """Names that are known.

    Attributes:
        keys: of the entity that each name means.
        spellings: (canonical name, key, spelling) where an entity is written in a new way.
        surer: entities whose type a better provider confirms, by key.
    """

    keys: dict[EntityName, int]
    spellings: list[tuple[str, int, str]]
    surer: dict[int, EntityName]


def find(connection: sa.Connection, names: Sequence[EntityName]) -> Known:
    """Entities that are known by canonical name and type, or else by an alias.

    A name that was merged into another entity means that one. A name whose type is not sure means
    the one entity of that name that a better provider gave its type, and a first name the one
    person whose full name begins with it.
    """
    execute = driver(connection).execute
    rows = execute(_BY_NAME, _keys(names)).fetchall()
    by_name = {row[:2]: row for row in rows}
    known = Known({}, [], {})
    others = []
    for each in names:
        found = by_name.get((each.key, each.type)) or _of_another_type(each, rows)
        if found is None:
            others.append(each)
            continue
        _, kind, pk, meant, canonical_name, provider = found
        if kind == each.type and _rank(each.provider) > _rank(provider):
            known.surer[pk] = each
        if meant == pk and kind == each.type and each.name != canonical_name:
            known.spellings.append((each.key, pk, each.name))
        known.keys[each] = meant
    # Most names are known as such: then there is no need to look for aliases.
    if others:
        by_alias = dict(execute(_BY_ALIAS, _keys(others)))
        people = [each for each in others if each.type is EntityType.PERSON]
        meant_by = by_first_name(connection, {each.key for each in people}) | by_alias
        known.keys.update((each, meant_by[each.key]) for each in others if each.key in meant_by)
    return known


def _of_another_type(
    name: EntityName, rows: Sequence[tuple[str, str, int, int, str, str | None]]
) -> tuple[str, str, int, int, str, str | None] | None:
    """The entity of that name whose type is better known than that of ``name``."""
    if name.confidence >= LISTED or name.type not in NAMED_TYPES:
        return None
    # Whoever gave a name alone says nothing of its type: it is the one that is known.
    rank = PROVIDERS.index(name.provider) if name.confidence else -1
    better = [
        row for row in rows if row[0] == name.key and row[1] in NAMED_TYPES and _rank(row[5]) > rank
    ]
    return better[0] if len({row[3] for row in better}) == 1 else None


def _rank(provider: str | None) -> int:
    return PROVIDERS.index(provider) if provider in PROVIDERS else 0


def by_first_name(connection: sa.Connection, keys: Collection[str]) -> dict[str, int]:
    """For first names the one person whose full name begins so; several persons are none."""
    single = [key for key in keys if " " not in key]
    if not single:
        return {}
    found: dict[str, set[int]] = {}
    for key, pk in driver(connection).execute(_BY_FIRST_NAME, (json.dumps(sorted(single)),)):
        found.setdefault(key, set()).add(pk)
    return {key: next(iter(pks)) for key, pks in found.items() if len(pks) == 1}


def known_by(connection: sa.Connection, keys: Collection[str]) -> dict[str, int]:
    """The one entity that each key means, as a name, an alias or a first name."""
    if not keys:
        return {}
    execute = driver(connection).execute
    listed = (json.dumps(sorted(keys)),)
    meant: dict[str, set[int]] = {}
    for key, kind, _, pk, _, _ in execute(_BY_NAME, listed):
        if kind in NAMED_TYPES:
            meant.setdefault(key, set()).add(pk)
    for key, pk in execute(_BY_ALIAS, listed):
        meant.setdefault(key, {pk})
    first = by_first_name(connection, [key for key in keys if key not in meant])
    return {key: next(iter(pks)) for key, pks in meant.items() if len(pks) == 1} | first


class Typed(NamedTuple):
    """An entity and who gave it its type."""

    pk: int
    entity_id: str
    type: EntityType
    provider: str | None


def typed_worse(connection: sa.Connection, memory_pk: int, name: EntityName) -> list[Typed]:
    """Entities of that name that the memory is linked to, of a type that a worse provider gave."""
    if name.type not in NAMED_TYPES:
        return []
    found = driver(connection).execute(
        "SELECT e.pk, e.entity_id, e.type, e.type_provider, e.type_confidence"
        " FROM memory_entities l JOIN entities e ON e.pk = l.entity_pk"
        " WHERE l.memory_pk = ? AND e.name_key = ? AND e.type <> ? ORDER BY e.pk",
        (memory_pk, name.key, name.type.value),
    )
    return [
        Typed(pk, entity_id, EntityType(kind), provider)
        for pk, entity_id, kind, provider, confidence in found
        if kind in NAMED_TYPES
        and _rank(provider) < _rank(name.provider)
        and (confidence or 0.0) < LISTED
    ]


class NamesSeen(NamedTuple):
    """How far the names of a database were read: the last entity and the last alias."""

    entity: int = 0
    entity_id: str | None = None
    alias: int = 0
    alias_key: str | None = None


def new_names(
    connection: sa.Connection, seen: NamesSeen
) -> tuple[list[tuple[str, str, EntityType]], NamesSeen, bool]:
    """Names and aliases that came since ``seen``, each (key, as written, type).

    The last value says whether what was read before is void: a transaction was rolled back, or
    entities were removed, and then all names are given.
    """
    execute = driver(connection).execute
    [(entity_id, alias_key, entity, alias)] = execute(_NEWEST, (seen.entity, seen.alias))
    void = (entity_id, alias_key) != (seen.entity_id, seen.alias_key)
    if not void and (entity or 0, alias or 0) == (seen.entity, seen.alias):
        return [], seen, False
    after = (0, 0) if void else (seen.entity, seen.alias)
    rows = [(key, name, EntityType(kind)) for key, name, kind in execute(_NEW_NAMES, after)]
    [(entity_id, alias_key, _, _)] = execute(_NEWEST, (entity or 0, alias or 0))
    return rows, NamesSeen(entity or 0, entity_id, alias or 0, alias_key), void


class Saying(NamedTuple):
    """What of a memory tells whom it is about, beside the names that rules find in it.

    Attributes:
        speakers: (role, ``told_as``) of the turn, or of the turns that a fact was taken from.
        given: ``attributes.entity_names`` as JSON; None: there is none.
    """

    pk: int
    content: str
    speakers: list[tuple[str, str | None]]
    given: str | None


ENTITY_NAMES: Final = "entity_names"
"""The attribute of a memory that keeps the names of whom and what it is about, as a list."""

_SAYINGS = (
    "SELECT m.pk, m.content, m.kind, m.source_role, json_extract(m.attributes, '$.told_as'),"
    f" json_extract(m.attributes, '$.{ENTITY_NAMES}'),"
    # Whoever may read the fact may read the turn, or its speaker stays unnamed.
    " CASE m.kind WHEN 'fact' THEN (SELECT json_group_array(json_array(t.source_role,"
    " json_extract(t.attributes, '$.told_as'))) FROM memory_derivations d"
    " JOIN memories t ON t.memory_id = d.derived_from_id WHERE d.memory_id = m.memory_id"
    " AND t.kind = 'episode' AND t.source_role IS NOT NULL AND t.scope = m.scope"
    " AND t.scope_id IS m.scope_id AND t.sensitivity IN (m.sensitivity, 'Public')) END"
    " FROM json_each(?) f CROSS JOIN memories m ON m.pk = f.value"
)


def sayings(connection: sa.Connection, pks: Sequence[int]) -> list[Saying]:
    """What some memories say, and who says it, in the order of ``pks``."""
    found = []
    for pk, content, kind, role, told_as, given, sources in driver(connection).execute(
        _SAYINGS, (json.dumps(list(pks)),)
    ):
        speakers = [(role, told_as)] if role is not None and kind == "episode" else []
        if sources is not None:
            speakers.extend((who, told) for who, told in json.loads(sources))
        found.append(Saying(pk, content, list(dict.fromkeys(speakers)), given))
    return found


def _keys(names: Sequence[EntityName]) -> tuple[str]:
    return (json.dumps(sorted({each.key for each in names})),)


def add_spellings(connection: sa.Connection, spellings: Sequence[tuple[str, int, str]]) -> None:
    """Keep how an entity is written, too: the first spelling that differs from its name."""
    _spelling(connection, spellings)


def confirm_types(connection: sa.Connection, surer: Mapping[int, EntityName]) -> None:
    """Record who is now known to give entities their types, by key."""
    driver(connection).executemany(
        "UPDATE entities SET type_provider = ?, type_confidence = ? WHERE pk = ?",
        [(name.provider, name.confidence, pk) for pk, name in surer.items()],
    )


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
            (
                *(keys[name], entity_id, name.name, name.key, str(name.type), created_at),
                *(name.provider, name.confidence),
            )
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
