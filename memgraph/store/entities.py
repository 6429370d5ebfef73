"""Entities, their aliases, and which memories name them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from memgraph.model.enums import EntityType
from memgraph.model.values import Memory
from memgraph.store import tables
from memgraph.store.rows import memory_from_row
from memgraph.store.snapshot import Insert, Snapshot, Transaction, driver
from memgraph.store.text_index import saying
from memgraph.store.visibility import View

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


def find(snapshot: Snapshot, names: Sequence[EntityName]) -> Known:
    """Entities that are known by canonical name and type, or else by an alias.

    A name that was merged into another entity means that one. A name whose type is not sure means
    the one entity of that name that a better provider gave its type, and a first name the one
    person whose full name begins with it.
    """
    execute = driver(snapshot).execute
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
        meant_by = by_first_name(snapshot, {each.key for each in people}) | by_alias
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


def by_first_name(snapshot: Snapshot, keys: Collection[str]) -> dict[str, int]:
    """For first names the one person whose full name begins so; several persons are none."""
    single = [key for key in keys if " " not in key]
    if not single:
        return {}
    found: dict[str, set[int]] = {}
    for key, pk in driver(snapshot).execute(_BY_FIRST_NAME, (json.dumps(sorted(single)),)):
        found.setdefault(key, set()).add(pk)
    return {key: next(iter(pks)) for key, pks in found.items() if len(pks) == 1}


def known_by(snapshot: Snapshot, keys: Collection[str]) -> dict[str, int]:
    """The one entity that each key means, as a name, an alias or a first name."""
    if not keys:
        return {}
    execute = driver(snapshot).execute
    listed = (json.dumps(sorted(keys)),)
    meant: dict[str, set[int]] = {}
    for key, kind, _, pk, _, _ in execute(_BY_NAME, listed):
        if kind in NAMED_TYPES:
            meant.setdefault(key, set()).add(pk)
    for key, pk in execute(_BY_ALIAS, listed):
        meant.setdefault(key, {pk})
    first = by_first_name(snapshot, [key for key in keys if key not in meant])
    return {key: next(iter(pks)) for key, pks in meant.items() if len(pks) == 1} | first


class Typed(NamedTuple):
    """An entity and who gave it its type."""

    pk: int
    entity_id: str
    type: EntityType
    provider: str | None


def typed_worse(snapshot: Snapshot, memory_pk: int, name: EntityName) -> list[Typed]:
    """Entities of that name that the memory is linked to, of a type that a worse provider gave."""
    if name.type not in NAMED_TYPES:
        return []
    found = driver(snapshot).execute(
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
    snapshot: Snapshot, seen: NamesSeen
) -> tuple[list[tuple[str, str, EntityType]], NamesSeen, bool]:
    """Names and aliases that came since ``seen``, each (key, as written, type).

    The last value says whether what was read before is void: a transaction was rolled back, or
    entities were removed, and then all names are given.
    """
    execute = driver(snapshot).execute
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


def sayings(snapshot: Snapshot, pks: Sequence[int]) -> list[Saying]:
    """What some memories say, and who says it, in the order of ``pks``."""
    found = []
    for pk, content, kind, role, told_as, given, sources in driver(snapshot).execute(
        _SAYINGS, (json.dumps(list(pks)),)
    ):
        speakers = [(role, told_as)] if role is not None and kind == "episode" else []
        if sources is not None:
            speakers.extend((who, told) for who, told in json.loads(sources))
        found.append(Saying(pk, content, list(dict.fromkeys(speakers)), given))
    return found


def _keys(names: Sequence[EntityName]) -> tuple[str]:
    return (json.dumps(sorted({each.key for each in names})),)


def add_spellings(transaction: Transaction, spellings: Sequence[tuple[str, int, str]]) -> None:
    """Keep how an entity is written, too: the first spelling that differs from its name."""
    _spelling(transaction, spellings)


def confirm_types(transaction: Transaction, surer: Mapping[int, EntityName]) -> None:
    """Record who is now known to give entities their types, by key."""
    driver(transaction).executemany(
        "UPDATE entities SET type_provider = ?, type_confidence = ? WHERE pk = ?",
        [(name.provider, name.confidence, pk) for pk, name in surer.items()],
    )


def create(
    transaction: Transaction, names: Mapping[EntityName, str], created_at: int
) -> dict[EntityName, int]:
    """New entities, from name to the id each shall have; gives their keys."""
    if not names:
        return {}
    [(last,)] = driver(transaction).execute("SELECT max(pk) FROM entities")
    keys = {name: (last or 0) + 1 + position for position, name in enumerate(names)}
    _insert(
        transaction,
        [
            (
                *(keys[name], entity_id, name.name, name.key, str(name.type), created_at),
                *(name.provider, name.confidence),
            )
            for name, entity_id in names.items()
        ],
    )
    return keys


def link(transaction: Transaction, pairs: Sequence[tuple[int, int]]) -> None:
    """Pairs of (entity key, memory key), each once; counts the mentions."""
    if not pairs:
        return
    _link(transaction, pairs)
    mentions: dict[int, int] = {}
    for entity, _ in pairs:
        mentions[entity] = mentions.get(entity, 0) + 1
    driver(transaction).executemany(
        _MENTION, [(count, entity) for entity, count in mentions.items()]
    )


def count(snapshot: Snapshot) -> int:
    return int(
        snapshot.execute(sa.select(sa.func.count()).select_from(tables.entities)).scalar_one()
    )


# Reading entities: by id, by name, by how often they are named, as far as a view shows it.


_FIELDS = "r.pk, r.entity_id, r.canonical_name, r.name_key, r.type, r.mention_count"
# Of an entity its own row, of a merged one the row of what it was merged into.
_MEANT = "JOIN entities r ON r.entity_id = coalesce(e.merged_into, e.entity_id)"
_WHEN = "coalesce(m.event_time, m.created_at)"
_LAST_CHARACTER = "\U0010ffff"


class EntityRow(NamedTuple):
    """``mention_count`` counts all memories, whoever may see them."""

    pk: int
    entity_id: str
    canonical_name: str
    name_key: str
    type: EntityType
    mention_count: int


class Seen(NamedTuple):
    """How many visible memories name an entity, and when the first and the last was."""

    mentions: int
    first: int
    last: int


def by_id(snapshot: Snapshot, entity_id: str) -> EntityRow | None:
    found = _rows(
        snapshot, f"SELECT {_FIELDS} FROM entities e {_MEANT} WHERE e.entity_id = ?", (entity_id,)
    )
    return found[0] if found else None


def by_keys(snapshot: Snapshot, keys: Collection[str]) -> list[EntityRow]:
    """Entities that have one of these names or aliases, the most mentioned first."""
    return _rows(
        snapshot,
        f"SELECT DISTINCT {_FIELDS} FROM entities e {_MEANT}"
        " WHERE e.name_key IN (SELECT value FROM json_each(?1))"
        f" UNION SELECT {_FIELDS} FROM entity_aliases a JOIN entities e ON e.pk = a.entity_pk"
        f" {_MEANT} WHERE a.alias_key IN (SELECT value FROM json_each(?1)) ORDER BY 6 DESC, 1",
        (json.dumps(sorted(keys)),),
    )


def by_prefix(snapshot: Snapshot, prefix: str, view: View) -> Iterator[EntityRow]:
    """Entities of the view with a name or an alias that begins so, the most mentioned first."""
    seen = _is_named(view)
    cursor = driver(snapshot).execute(
        f"SELECT DISTINCT {_FIELDS} FROM entities e {_MEANT}"
        f" WHERE e.name_key >= :begin AND e.name_key < :end AND {seen}"
        f" UNION SELECT {_FIELDS} FROM entity_aliases a JOIN entities e ON e.pk = a.entity_pk"
        f" {_MEANT} WHERE a.alias_key >= :begin AND a.alias_key < :end AND {seen}"
        " ORDER BY 6 DESC, 1",
        {**view.params, "begin": prefix, "end": prefix + _LAST_CHARACTER},
    )
    return (_row(each) for each in cursor)


def most_mentioned(snapshot: Snapshot, view: View) -> Iterator[EntityRow]:
    """All that is named by a memory of the view, the most mentioned by all memories first."""
    cursor = driver(snapshot).execute(
        f"SELECT {_FIELDS} FROM entities r WHERE r.mention_count > 0 AND {_is_named(view)}"
        " ORDER BY r.mention_count DESC, r.pk",
        view.params,
    )
    return (_row(each) for each in cursor)


def is_protected(snapshot: Snapshot, pk: int) -> bool:
    [(protected,)] = driver(snapshot).execute("SELECT protected FROM entities WHERE pk = ?", (pk,))
    return bool(protected)


def merged_names(snapshot: Snapshot, entity_id: str) -> list[EntityRow]:
    """The entities that were merged into this one, as they were."""
    return _rows(
        snapshot,
        f"SELECT {_FIELDS} FROM entities r WHERE r.merged_into = ? ORDER BY r.pk",
        (entity_id,),
    )


def aliases(snapshot: Snapshot, pks: Collection[int]) -> list[tuple[int, str, str]]:
    """(entity key, alias key, alias) of these entities."""
    found = driver(snapshot).execute(
        "SELECT entity_pk, alias_key, alias FROM entity_aliases"
        " WHERE entity_pk IN (SELECT value FROM json_each(?)) ORDER BY entity_pk, alias_key",
        (json.dumps(sorted(pks)),),
    )
    return [(int(pk), str(key), str(alias)) for pk, key, alias in found]


def seen(snapshot: Snapshot, pk: int, view: View) -> Seen | None:
    """None: no memory of the view names it, so that it is not there."""
    [(count, first, last)] = driver(snapshot).execute(
        f"SELECT count(*), min({_WHEN}), max({_WHEN}) {_memories_of(view)}", _values(view, pk)
    )
    return Seen(int(count), int(first), int(last)) if count else None


def of_first_names(snapshot: Snapshot, keys: Collection[str]) -> list[EntityRow]:
    """People whose full name begins with one of these names, the most mentioned first."""
    return _rows(
        snapshot,
        f"SELECT DISTINCT {_FIELDS} FROM json_each(?) f CROSS JOIN entities e"
        f" ON e.name_key > f.value || ' ' AND e.name_key < f.value || '!' {_MEANT}"
        " WHERE e.type = 'person' ORDER BY 6 DESC, 1",
        (json.dumps(sorted(keys)),),
    )


def contents(snapshot: Snapshot, pk: int, view: View) -> Iterator[str]:
    """The texts that name an entity, newest first, as they are asked for.

    With the speaker of a turn before its text, and behind a text the names that it was given.
    """
    found = driver(snapshot).execute(
        "SELECT coalesce(m.source_role || ': ', '') || m.content"
        f" || coalesce(' ' || json_extract(m.attributes, '$.{ENTITY_NAMES}'), '')"
        f" {_memories_of(view)} ORDER BY l.memory_pk DESC",
        _values(view, pk),
    )
    return (str(content) for (content,) in found)


def contents_saying(
    snapshot: Snapshot, pk: int, view: View, names: Collection[str]
) -> Iterator[str]:
    """Those of the texts that name an entity in which the full-text index finds one of the names,
    as they are asked for: what it finds may be written otherwise."""
    found = driver(snapshot).execute(
        "SELECT m.content FROM memory_fts f CROSS JOIN memories m ON m.pk = f.rowid"
        f" WHERE f.memory_fts MATCH :match AND {view.text.where('m')} AND EXISTS (SELECT 1"
        " FROM memory_entities l WHERE l.entity_pk = :entity_pk AND l.memory_pk = m.pk)",
        {**_values(view, pk), "match": saying(names)},
    )
    return (str(content) for (content,) in found)


def top_memories(snapshot: Snapshot, pk: int, view: View, limit: int) -> list[Memory]:
    """Facts that name an entity, then turns: the most important first, then the newest."""
    found = driver(snapshot).execute(
        f"SELECT {view.text.memory_columns('m')} {_memories_of(view)} AND m.kind <> 'reflection'"
        f" ORDER BY m.kind = 'episode', m.importance DESC, {_WHEN} DESC, m.pk DESC LIMIT :limit",
        {**_values(view, pk), "limit": limit},
    )
    return [memory_from_row(row) for row in found]


def together(snapshot: Snapshot, pk: int, view: View, limit: int) -> list[tuple[EntityRow, int]]:
    """Entities named in the same memories, each with their number, the most frequent first."""
    found = driver(snapshot).execute(
        f"SELECT {_FIELDS}, count(*) AS shared {_memories_of(view, 'JOIN memory_entities o')}"
        " AND o.entity_pk <> l.entity_pk GROUP BY r.pk ORDER BY shared DESC, r.pk LIMIT :limit",
        {**_values(view, pk), "limit": limit},
    )
    return [(_row(row[:-1]), int(row[-1])) for row in found]


def _is_named(view: View) -> str:
    return (
        "EXISTS (SELECT 1 FROM memory_entities l CROSS JOIN memories m ON m.pk = l.memory_pk"
        f" WHERE l.entity_pk = r.pk AND {view.text.where('m')})"
    )


def _memories_of(view: View, beside: str = "") -> str:
    more = (
        f" {beside} ON o.memory_pk = m.pk JOIN entities r ON r.pk = o.entity_pk" if beside else ""
    )
    return (
        "FROM memory_entities l CROSS JOIN memories m ON m.pk = l.memory_pk"
        f"{more} WHERE l.entity_pk = :entity_pk AND {view.text.where('m')}"
    )


def _values(view: View, pk: int) -> dict[str, Any]:
    return {**view.params, "entity_pk": pk}


def _rows(snapshot: Snapshot, statement: str, values: tuple[Any, ...]) -> list[EntityRow]:
    return [_row(row) for row in driver(snapshot).execute(statement, values)]


def _row(row: tuple[Any, ...]) -> EntityRow:
    pk, entity_id, name, key, kind, mentions = row
    return EntityRow(pk, entity_id, name, key, EntityType(kind), mentions)


# Merging entities and splitting them again. The caller holds the transaction.


def merge(transaction: Transaction, into: tuple[int, str], other: tuple[int, str]) -> int:
    """Everything that names ``other`` names ``into``; both as (key, id). Gives the moved links.

    The row of ``other`` stays as a name of ``into``, its aliases with it, and so do those of what
    had been merged into it.
    """
    execute = driver(transaction).execute
    moved = execute(
        "UPDATE OR IGNORE memory_entities SET entity_pk = ? WHERE entity_pk = ?",
        (into[0], other[0]),
    ).rowcount
    execute("DELETE FROM memory_entities WHERE entity_pk = ?", (other[0],))
    execute("UPDATE entities SET merged_into = ? WHERE merged_into = ?", (into[1], other[1]))
    execute(
        "UPDATE entities SET protected = 1 WHERE pk = ? AND (SELECT protected FROM entities"
        " WHERE pk = ?)",
        (into[0], other[0]),
    )
    execute("UPDATE entities SET merged_into = ? WHERE pk = ?", (into[1], other[0]))
    recount(transaction, [into[0], other[0]])
    return int(moved)


def retype(transaction: Transaction, one: Typed, name: EntityName) -> None:
    """Give an entity the type that a better provider told, or join it to the one that has it."""
    execute = driver(transaction).execute
    found = execute(
        "SELECT e.pk, e.entity_id FROM entities o"
        " JOIN entities e ON e.entity_id = coalesce(o.merged_into, o.entity_id)"
        " WHERE o.name_key = ? AND o.type = ?",
        (name.key, name.type.value),
    ).fetchone()
    if found is not None:
        merge(transaction, found, (one.pk, one.entity_id))
        return
    execute(
        "UPDATE entities SET type = ?, type_provider = ?, type_confidence = ? WHERE pk = ?",
        (name.type.value, name.provider, name.confidence, one.pk),
    )


def protect(transaction: Transaction, pk: int, *, protected: bool) -> None:
    """Whether time may retire the facts about an entity."""
    driver(transaction).execute(
        "UPDATE entities SET protected = ? WHERE pk = ?", (int(protected), pk)
    )


def make_own(transaction: Transaction, pk: int) -> None:
    """A merged name is an entity of its own again."""
    driver(transaction).execute("UPDATE entities SET merged_into = NULL WHERE pk = ?", (pk,))


def make_name_of(transaction: Transaction, pks: Collection[int], entity_id: str) -> None:
    """These merged names become names of another entity."""
    driver(transaction).execute(
        "UPDATE entities SET merged_into = ? WHERE pk IN (SELECT value FROM json_each(?))",
        (entity_id, json.dumps(list(pks))),
    )


def move_aliases(
    transaction: Transaction, aliases: Sequence[tuple[int, str]], entity_pk: int
) -> None:
    """Aliases, as (entity key, alias key), become those of another entity."""
    execute = driver(transaction).execute
    for pk, key in aliases:
        execute(
            "UPDATE OR REPLACE entity_aliases SET entity_pk = ?"
            " WHERE entity_pk = ? AND alias_key = ?",
            (entity_pk, pk, key),
        )


def linked_memories(snapshot: Snapshot, entity_pk: int) -> list[int]:
    """Keys of the memories that name an entity, ascending."""
    found = driver(snapshot).execute(
        "SELECT memory_pk FROM memory_entities WHERE entity_pk = ? ORDER BY memory_pk",
        (entity_pk,),
    )
    return [int(pk) for (pk,) in found]


def relink(
    transaction: Transaction,
    *,
    add: Sequence[tuple[int, int]],
    remove: Sequence[tuple[int, int]],
) -> None:
    """Pairs of (entity key, memory key) to add and to remove; the caller recounts."""
    _link(transaction, add)
    driver(transaction).executemany(
        "DELETE FROM memory_entities WHERE entity_pk = ? AND memory_pk = ?", remove
    )


def recount(transaction: Transaction, pks: Collection[int]) -> None:
    """Count the mentions of these entities anew."""
    driver(transaction).execute(
        "UPDATE entities SET mention_count ="
        " (SELECT count(*) FROM memory_entities l WHERE l.entity_pk = entities.pk)"
        " WHERE pk IN (SELECT value FROM json_each(?))",
        (json.dumps(list(pks)),),
    )
