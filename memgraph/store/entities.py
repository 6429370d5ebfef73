"""Entities, their aliases, and which memories name them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from memgraph.model.columns import unreadable
from memgraph.model.conversation import SPEAKER_NAME, TOLD_AS
from memgraph.model.entities import EntitySummary
from memgraph.model.enums import EntityType, MemoryKind, Scope, Sensitivity
from memgraph.model.values import Memory
from memgraph.store import tables
from memgraph.store.memories import existing_ids
from memgraph.store.rows import memory_from_row
from memgraph.store.snapshot import InsertRows, Snapshot, Transaction
from memgraph.store.statements import (
    BuiltStatement,
    Column,
    among,
    bound,
    listed,
    member,
    ordered,
    place_of,
    prepared,
    value,
)
from memgraph.store.text_index import matching, saying
from memgraph.store.visibility import ACTIVE, View, happened_at

NAMED_TYPES: Final = (
    EntityType.PERSON,
    EntityType.PROJECT,
    EntityType.ORGANIZATION,
    EntityType.LOCATION,
    EntityType.OTHER,
)
"""Types with proper names; addresses and dates are recognised by their form."""

_insert = InsertRows(
    "entities",
    (
        *("pk", "entity_id", "canonical_name", "name_key", "last_name", "type", "created_at"),
        *("type_provider", "type_confidence"),
    ),
)


def _is_meant(e: sa.FromClause) -> tuple[sa.FromClause, Column, Column]:
    """Return the merge target, the condition that joins it, and the key of the resulting entity."""
    m = tables.entities.alias("m")
    return m, m.c.entity_id == e.c.merged_into, sa.func.coalesce(m.c.pk, e.c.pk)


@prepared
def _by_name() -> sa.Select[Any]:
    e = tables.entities.alias("e")
    m, is_merged, meant = _is_meant(e)
    names = (e.c.canonical_name, e.c.type_provider)
    query = sa.select(e.c.name_key, e.c.type, e.c.pk, meant, *names)
    return query.select_from(e.outerjoin(m, is_merged)).where(among(e.c.name_key, "keys"))


@prepared
def _by_alias() -> sa.Select[Any]:
    """Return the entity of each alias; the oldest comes last and so takes precedence.

    Other spellings of an entity's own name are left out: they identify it only with its type.
    """
    a, e = tables.aliases.alias("a"), tables.entities.alias("e")
    m, is_merged, meant = _is_meant(e)
    joined = a.join(e, e.c.pk == a.c.entity_pk).outerjoin(m, is_merged)
    query = sa.select(a.c.alias_key, meant).select_from(joined)
    query = query.where(among(a.c.alias_key, "keys"), a.c.alias_key != e.c.name_key)
    return query.order_by(a.c.entity_pk.desc())


def _is_full_name(e: sa.FromClause, first: Column) -> Column:
    """Return the condition that an entity's name begins with a word and has further words."""
    return (e.c.name_key > first.concat(" ")) & (e.c.name_key < first.concat("!"))


@prepared
def _by_first_name() -> sa.Select[Any]:
    f, e = listed("keys", "f"), tables.entities.alias("e")
    m, is_merged, meant = _is_meant(e)
    joined = ordered(f, (e, _is_full_name(e, f.c.value))).outerjoin(m, is_merged)
    return sa.select(f.c.value, meant).select_from(joined).where(e.c.type == EntityType.PERSON)


def last_name(key: str, kind: EntityType) -> str | None:
    """Return the last name in the key of a person's full name; None if there is none."""
    return key.rpartition(" ")[2] if kind is EntityType.PERSON and " " in key else None


@prepared
def _by_last_name() -> sa.Select[Any]:
    e = tables.entities.alias("e")
    m, is_merged, meant = _is_meant(e)
    query = sa.select(e.c.last_name, meant).select_from(e.outerjoin(m, is_merged))
    return query.where(among(e.c.last_name, "keys"))


@prepared
def _new_names() -> sa.CompoundSelect[Any]:
    a, e = tables.aliases.alias("a"), tables.entities.alias("e")
    names = sa.select(e.c.name_key, e.c.canonical_name, e.c.type)
    names = names.where(e.c.pk > value("entity"), e.c.type.in_(NAMED_TYPES))
    others = sa.select(a.c.alias_key, a.c.alias, e.c.type)
    others = others.select_from(a.join(e, e.c.pk == a.c.entity_pk))
    others = others.where(place_of(a) > value("alias"), a.c.alias_key != e.c.name_key)
    return names.union_all(others)


@prepared
def _newest() -> sa.Select[Any]:
    e, a = tables.entities.alias("e"), tables.aliases.alias("a")
    read = (
        sa.select(e.c.entity_id).where(e.c.pk == value("entity")),
        sa.select(a.c.alias_key).where(place_of(a) == value("alias")),
        sa.select(sa.func.max(e.c.pk)),
        sa.select(sa.func.max(place_of(a))),
    )
    return sa.select(*(query.scalar_subquery() for query in read))


_spelling = InsertRows("entity_aliases", ("alias_key", "entity_pk", "alias"), or_ignore=True)
_add_links = InsertRows("memory_entities", ("entity_pk", "memory_pk", "names"))

Link = tuple[int, int]
"""A link as (entity key, memory key)."""


PROVIDERS: Final = ("regex", "spacy", "llm", "told")
"""Who determined an entity's type, from the least to the most trusted."""
TOLD: Final = PROVIDERS[-1]
LISTED: Final = 0.9
"""A type of at least this confidence is not replaced by another provider's."""


@dataclass(frozen=True, slots=True)
class EntityName:
    """A name found in a text: ``key`` is its canonical form for look-ups.

    Attributes:
        confidence: of the type, 0..1.
        provider: who determined the type: ``regex``, ``spacy``, ``llm`` or ``told``.
    """

    key: str
    name: str
    type: EntityType
    confidence: float = field(default=1.0, compare=False)
    provider: str = field(default=TOLD, compare=False)


class NameSnapshot(NamedTuple):
    """The names of a text that belong to stored entities.

    Attributes:
        keys: the primary key of the entity that each name refers to.
        spellings: (canonical name, key, spelling) for each new spelling of an entity.
        surer: names whose provider is more trusted than the stored type's, by entity key.
    """

    keys: dict[EntityName, int]
    spellings: list[tuple[str, int, str]]
    surer: dict[int, EntityName]


def find(snapshot: Snapshot, names: Sequence[EntityName]) -> NameSnapshot:
    """Return the stored entities of some names, by canonical name and type or else by alias.

    The name of a merged entity refers to its merge target. A name of uncertain type refers to the
    one entity of that name whose type a better provider determined. A first or last name refers to
    the one person whose full name begins or ends with it.
    """
    rows = _by_name().rows(snapshot, keys=_keys(names))
    by_name = {row[:2]: row for row in rows}
    result = NameSnapshot({}, [], {})
    others = []
    for name in names:
        match = by_name.get((name.key, name.type)) or _of_another_type(name, rows)
        if match is None:
            others.append(name)
            continue
        _, kind, pk, meant, canonical_name, provider = match
        if kind == name.type and _rank(name.provider) > _rank(provider):
            result.surer[pk] = name
        if meant == pk and kind == name.type and name.name != canonical_name:
            result.spellings.append((name.key, pk, name.name))
        result.keys[name] = meant
    # Most names match by name and type, so aliases are read only for the others.
    if others:
        by_alias = dict(_by_alias().rows(snapshot, keys=_keys(others)))
        people = [name for name in others if name.type is EntityType.PERSON]
        meant_by = by_one_name(snapshot, {name.key for name in people}) | by_alias
        result.keys.update((name, meant_by[name.key]) for name in others if name.key in meant_by)
    return result


def _of_another_type(
    name: EntityName, rows: Sequence[tuple[str, str, int, int, str, str | None]]
) -> tuple[str, str, int, int, str, str | None] | None:
    """Return the entity of that name with a more certain type than ``name`` has."""
    if name.confidence >= LISTED or name.type not in NAMED_TYPES:
        return None
    # Without a confidence the type of a name is a guess: any stored type is better.
    rank = PROVIDERS.index(name.provider) if name.confidence else -1
    better = [
        row for row in rows if row[0] == name.key and row[1] in NAMED_TYPES and _rank(row[5]) > rank
    ]
    return better[0] if len({row[3] for row in better}) == 1 else None


def _rank(provider: str | None) -> int:
    return PROVIDERS.index(provider) if provider in PROVIDERS else 0


def by_one_name(snapshot: Snapshot, keys: Collection[str]) -> dict[str, int]:
    """Return the person whose full name begins or ends with each word, if there is only one."""
    people = people_of(snapshot, keys)
    return {key: next(iter(pks)) for key, pks in people.items() if len(pks) == 1}


def people_of(snapshot: Snapshot, keys: Collection[str]) -> dict[str, set[int]]:
    """Return the persons whose full name begins or ends with each word."""
    single = sorted(key for key in keys if " " not in key)
    if not single:
        return {}
    people: dict[str, set[int]] = {}
    for query in (_by_first_name(), _by_last_name()):
        for key, pk in query.rows(snapshot, keys=single):
            people.setdefault(key, set()).add(pk)
    return people


def meant_by(snapshot: Snapshot, keys: Collection[str]) -> dict[str, int]:
    """Return the entity that each key refers to: a name, an alias, a first or a last name."""
    if not keys:
        return {}
    key_list = sorted(keys)
    meant: dict[str, set[int]] = {}
    for key, kind, _, pk, _, _ in _by_name().rows(snapshot, keys=key_list):
        if kind in NAMED_TYPES:
            meant.setdefault(key, set()).add(pk)
    for key, pk in _by_alias().rows(snapshot, keys=key_list):
        meant.setdefault(key, {pk})
    single = by_one_name(snapshot, [key for key in keys if key not in meant])
    return {key: next(iter(pks)) for key, pks in meant.items() if len(pks) == 1} | single


class TypedEntity(NamedTuple):
    """An entity, its type and the provider of the type."""

    pk: int
    entity_id: str
    type: EntityType
    provider: str | None


def less_surely_typed(snapshot: Snapshot, memory_pk: int, name: EntityName) -> list[TypedEntity]:
    """Return a memory's entities of that name whose type a less trusted provider determined."""
    if name.type not in NAMED_TYPES:
        return []
    n, e = tables.links.alias("n"), tables.entities.alias("e")
    query = sa.select(e.c.pk, e.c.entity_id, e.c.type, e.c.type_provider, e.c.type_confidence)
    query = query.select_from(n.join(e, e.c.pk == n.c.entity_pk))
    is_mention = (n.c.memory_pk == bound(memory_pk), e.c.name_key == bound(name.key))
    query = query.where(*is_mention, e.c.type != bound(name.type.value)).order_by(e.c.pk)
    return [
        TypedEntity(pk, entity_id, EntityType(kind), provider)
        for pk, entity_id, kind, provider, confidence in snapshot.rows(query)
        if kind in NAMED_TYPES
        and _rank(provider) < _rank(name.provider)
        and (confidence or 0.0) < LISTED
    ]


class NameCursor(NamedTuple):
    """The last entity and the last alias that were read."""

    entity: int = 0
    entity_id: str | None = None
    alias: int = 0
    alias_key: str | None = None


def new_names(
    snapshot: Snapshot, cursor: NameCursor
) -> tuple[list[tuple[str, str, EntityType]], NameCursor, bool]:
    """Return names and aliases added since ``cursor``, each as (key, as written, type).

    The last value is True when names read earlier are void, because a transaction was rolled back
    or entities were removed; then all names are returned.
    """
    entity_id, alias_key, entity, alias = _newest().row(
        snapshot, entity=cursor.entity, alias=cursor.alias
    )
    void = (entity_id, alias_key) != (cursor.entity_id, cursor.alias_key)
    if not void and (entity or 0, alias or 0) == (cursor.entity, cursor.alias):
        return [], cursor, False
    entity, alias, after = entity or 0, alias or 0, NameCursor() if void else cursor
    name_rows = _new_names().rows(snapshot, entity=after.entity, alias=after.alias)
    rows = [(key, name, EntityType(kind)) for key, name, kind in name_rows]
    entity_id, alias_key, _, _ = _newest().row(snapshot, entity=entity, alias=alias)
    return rows, NameCursor(entity, entity_id, alias, alias_key), void


class MentionContext(NamedTuple):
    """The text of a memory and what else shows whom it is about.

    Attributes:
        speakers: (role, ``told_as``) of the turn, or of the turns that a fact was extracted from.
        given: ``attributes.entity_names`` as JSON, or None.
    """

    pk: int
    content: str
    speakers: list[tuple[str, str | None]]
    given: str | None


ENTITY_NAMES: Final = "entity_names"
"""The attribute of a memory that lists the names of its subjects."""


def _speaker(m: sa.FromClause) -> tuple[Column, Column]:
    """Return the role of a turn and ``told_as``; a speaker with a known name goes by that name."""
    name = sa.cast(member(m.c.attributes, SPEAKER_NAME), sa.Text)
    told_as = sa.case((name.is_not(None), "person"), else_=member(m.c.attributes, TOLD_AS))
    return sa.func.coalesce(name, m.c.source_role), told_as


@prepared
def _mention_contexts() -> sa.Select[Any]:
    f = listed("pks", "f", numbers=True)
    m, t = tables.memories.alias("m"), tables.memories.alias("t")
    d = tables.derivations.alias("d")
    speaker = sa.func.json_array(*_speaker(t))
    # A speaker is named only if everybody who may read the fact may also read the turn.
    speakers = (
        sa.select(sa.func.json_group_array(speaker))
        .select_from(d.join(t, t.c.memory_id == d.c.derived_from_id))
        .where(
            d.c.memory_id == m.c.memory_id,
            t.c.kind == MemoryKind.EPISODE,
            t.c.source_role.is_not(None),
            t.c.scope == m.c.scope,
            t.c.scope_id.is_not_distinct_from(m.c.scope_id),
            t.c.sensitivity.in_([m.c.sensitivity, sa.literal(Sensitivity.PUBLIC.value)]),
        )
        .correlate(m)
        .scalar_subquery()
    )
    of_fact = sa.case((m.c.kind == MemoryKind.FACT, speakers))
    query = sa.select(
        *(m.c.pk, m.c.content, m.c.kind, *_speaker(m)),
        *(member(m.c.attributes, ENTITY_NAMES), of_fact),
    )
    return query.select_from(ordered(f, (m, m.c.pk == f.c.value)))


def mention_contexts(snapshot: Snapshot, pks: Sequence[int]) -> list[MentionContext]:
    """Return the contents and speakers of memories, in the order of ``pks``."""
    contexts = []
    rows = _mention_contexts().rows(snapshot, pks=pks)
    for pk, content, kind, role, told_as, entity_names, sources in rows:
        speakers = [(role, told_as)] if role is not None and kind == "episode" else []
        if sources is not None:
            speakers.extend(
                (speaker_role, declared_role) for speaker_role, declared_role in json.loads(sources)
            )
        contexts.append(MentionContext(pk, content, list(dict.fromkeys(speakers)), entity_names))
    return contexts


def _keys(names: Sequence[EntityName]) -> list[str]:
    return sorted({name.key for name in names})


def add_spellings(transaction: Transaction, spellings: Sequence[tuple[str, int, str]]) -> None:
    """Store further spellings of entities as aliases; the first one per entity and key is kept."""
    _spelling(transaction, spellings)


@prepared
def _set_provider() -> sa.Update:
    e = tables.entities
    new_type = {"type_provider": value("provider"), "type_confidence": value("confidence")}
    return sa.update(e).where(e.c.pk == value("entity")).values(new_type)


def confirm_types(transaction: Transaction, surer: Mapping[int, EntityName]) -> None:
    """Record a more trusted provider for the types of entities, by key."""
    rows = (
        {"provider": name.provider, "confidence": name.confidence, "entity": pk}
        for pk, name in surer.items()
    )
    _set_provider().write_all(transaction, rows)


@prepared
def _last_pk() -> sa.Select[Any]:
    return sa.select(sa.func.max(tables.entities.c.pk))


def create(
    transaction: Transaction, names: Mapping[EntityName, str], created_at: int
) -> dict[EntityName, int]:
    """Store new entities with the given ids; return their primary keys."""
    if not names:
        return {}
    last = _last_pk().scalar(transaction) or 0
    keys = {name: last + 1 + position for position, name in enumerate(names)}
    _insert(
        transaction,
        [
            (
                *(keys[name], entity_id, name.name, name.key, last_name(name.key, name.type)),
                *(str(name.type), created_at, name.provider, name.confidence),
            )
            for name, entity_id in names.items()
        ],
    )
    return keys


@prepared
def _add_mentions() -> sa.Update:
    e = tables.entities
    more = {"mention_count": e.c.mention_count + value("number")}
    return sa.update(e).where(e.c.pk == value("entity")).values(more)


@prepared
def _links_of() -> sa.Select[Any]:
    n = tables.links
    return sa.select(n.c.entity_pk, n.c.memory_pk, n.c.names).where(among(n.c.memory_pk, "pks"))


def links_of(snapshot: Snapshot, pks: Collection[int]) -> dict[Link, list[str]]:
    """Return the links of memories, each with the keys of the names that it rests on."""
    rows = _links_of().rows(snapshot, pks=pks)
    return {(entity, memory): names.split("\n") for entity, memory, names in rows}


@prepared
def _set_names() -> sa.Update:
    n = tables.links
    its = (n.c.entity_pk == value("entity"), n.c.memory_pk == value("memory"))
    return sa.update(n).where(*its).values(names=value("keys"))


def set_names(transaction: Transaction, names: Mapping[Link, Collection[str]]) -> None:
    """Replace the names by which memories are linked."""
    rows = (
        {"entity": entity, "memory": memory, "keys": _joined(keys)}
        for (entity, memory), keys in names.items()
    )
    _set_names().write_all(transaction, rows)


def _joined(keys: Collection[str]) -> str:
    return "\n".join(sorted(keys))


def link(
    transaction: Transaction,
    names: Mapping[Link, Collection[str]],
    linked: Mapping[Link, Collection[str]],
) -> int:
    """Link memories by names, add names to existing links, and count the mentions.

    Args:
        names: the keys of names for each link.
        linked: the names of existing links.

    Returns:
        The number of new links.
    """
    new = [
        (*pair, next(iter(keys)) if len(keys) == 1 else _joined(keys))
        for pair, keys in names.items()
        if pair not in linked
    ]
    _add_links(transaction, new)
    mentions: dict[int, int] = {}
    for entity, _, _ in new:
        mentions[entity] = mentions.get(entity, 0) + 1
    rows = ({"number": number, "entity": entity} for entity, number in mentions.items())
    _add_mentions().write_all(transaction, rows)
    if linked:
        more = {pair: {*keys, *linked[pair]} for pair, keys in names.items() if pair in linked}
        set_names(transaction, {p: k for p, k in more.items() if k != set(linked[p])})
    return len(new)


# Queries for entities: by id, by name, by number of mentions, within a view.


_LAST_CHARACTER = "\U0010ffff"


class EntityRecord(NamedTuple):
    """An entity as stored; ``mention_count`` counts all memories, visible or not."""

    pk: int
    entity_id: str
    canonical_name: str
    name_key: str
    type: EntityType
    mention_count: int


class MentionCounts(NamedTuple):
    """The number of visible memories of an entity, and the first and last times."""

    mentions: int
    first: int
    last: int


_FIELDS: Final = EntityRecord._fields


@cache
def _row() -> sa.FromClause:
    return tables.entities.alias("r")


def _fields(*more: Column) -> sa.Select[Any]:
    # Labelled, because a union can only be ordered by column names.
    return sa.select(*(_row().c[name].label(name) for name in _FIELDS), *more)


def _merge_targets(e: sa.FromClause, joined: Any) -> sa.Select[Any]:
    """Select entities; a merged entity is replaced by its merge target."""
    own = _row().c.entity_id == sa.func.coalesce(e.c.merged_into, e.c.entity_id)
    return _fields().select_from(joined.join(_row(), own))


def _most_mentioned_first(query: sa.Select[Any] | sa.CompoundSelect[Any]) -> Any:
    """Order entities by mentions, most first, then by age, oldest first."""
    return query.order_by(sa.desc("mention_count"), "pk")


def _by_names(is_it: Callable[[Column], Column], view: View | None = None) -> Any:
    """Return the entities with a name or an alias, the most mentioned first.

    Args:
        is_it: the condition on the key of the name.
        view: only entities that one of its memories names; None: all.
    """
    e, a = tables.entities.alias("e"), tables.aliases.alias("a")
    visible = () if view is None else (_is_named(view),)
    by_name = _merge_targets(e, e).distinct().where(is_it(e.c.name_key), *visible)
    by_alias = _merge_targets(e, a.join(e, e.c.pk == a.c.entity_pk)).where(
        is_it(a.c.alias_key), *visible
    )
    return _most_mentioned_first(by_name.union(by_alias))


def _is_named(view: View) -> Column:
    n, m = tables.links.alias("n"), tables.memories.alias("m")
    naming = sa.exists().select_from(ordered(n, (m, m.c.pk == n.c.memory_pk)))
    return naming.where(n.c.entity_pk == _row().c.pk, view.where(m)).correlate(_row())


def _rows(rows: Iterable[tuple[Any, ...]]) -> Iterator[EntityRecord]:
    for pk, entity_id, name, key, kind, mentions in rows:
        yield EntityRecord(pk, entity_id, name, key, EntityType(kind), mentions)


def by_id(snapshot: Snapshot, entity_id: str) -> EntityRecord | None:
    """Return an entity, or its merge target if it was merged; None if there is none."""
    e = tables.entities.alias("e")
    query = _merge_targets(e, e).where(e.c.entity_id == bound(entity_id))
    return next(_rows(snapshot.rows(query)), None)


def by_pk(snapshot: Snapshot, pk: int) -> EntityRecord:
    """Return the entity with this key."""
    return next(_rows(snapshot.rows(_fields().where(_row().c.pk == bound(pk)))))


@prepared
def _by_keys() -> Any:
    return _by_names(lambda key: among(key, "keys"))


def by_keys(snapshot: Snapshot, keys: Collection[str]) -> list[EntityRecord]:
    """Return entities that have one of these names or aliases, the most mentioned first."""
    return list(_rows(_by_keys().rows(snapshot, keys=sorted(keys))))


def by_prefix(snapshot: Snapshot, prefix: str, view: View) -> Iterator[EntityRecord]:
    """Yield the view's entities with a name or an alias of this prefix, most mentioned first."""
    first, end = bound(prefix), bound(prefix + _LAST_CHARACTER)
    query = _by_names(lambda key: (key >= first) & (key < end), view)
    return _rows(BuiltStatement(query).cursor(snapshot, view.params))


def most_mentioned(snapshot: Snapshot, view: View) -> Iterator[EntityRecord]:
    """Yield the entities that a memory of the view names.

    They are ordered by their mentions in all memories, most first.
    """
    named = _fields().where(_row().c.mention_count > 0, _is_named(view))
    return _rows(BuiltStatement(_most_mentioned_first(named)).cursor(snapshot, view.params))


def is_protected(snapshot: Snapshot, pk: int) -> bool:
    """Return True if the facts about an entity are protected from decay."""
    e = tables.entities
    return bool(snapshot.scalar(sa.select(e.c.protected).where(e.c.pk == bound(pk))))


def of_memory(snapshot: Snapshot, memory_id: str) -> dict[int, bool]:
    """Return the keys of the entities that a memory names, each True if it is protected."""
    n, e, m = tables.links, tables.entities, tables.memories
    joined = n.join(m, m.c.pk == n.c.memory_pk).join(e, e.c.pk == n.c.entity_pk)
    query = sa.select(e.c.pk, e.c.protected).select_from(joined)
    rows = snapshot.rows(query.where(m.c.memory_id == bound(memory_id)))
    return {pk: bool(protected) for pk, protected in rows}


def merged_names(snapshot: Snapshot, entity_id: str) -> list[EntityRecord]:
    """Return the entities that were merged into this one, with their own names."""
    query = _fields().where(_row().c.merged_into == bound(entity_id)).order_by(_row().c.pk)
    return list(_rows(snapshot.rows(query)))


def aliases(snapshot: Snapshot, pks: Collection[int]) -> list[tuple[int, str, str]]:
    """Return (entity key, alias key, alias) of these entities."""
    a = tables.aliases
    query = sa.select(a.c.entity_pk, a.c.alias_key, a.c.alias)
    query = query.where(among(a.c.entity_pk, sorted(pks)))
    return snapshot.rows(query.order_by(a.c.entity_pk, a.c.alias_key))


@prepared
def _by_one_name() -> Any:
    f, e = listed("keys", "f"), tables.entities.alias("e")
    first = _merge_targets(e, ordered(f, (e, _is_full_name(e, f.c.value)))).distinct()
    last = _merge_targets(e, e).distinct().where(among(e.c.last_name, "keys"))
    return _most_mentioned_first(first.where(e.c.type == EntityType.PERSON).union(last))


def called(snapshot: Snapshot, keys: Collection[str]) -> list[EntityRecord]:
    """Return people whose full name begins or ends with one of these, most mentioned first."""
    return list(_rows(_by_one_name().rows(snapshot, keys=sorted(keys))))


@prepared
def _of_one_word() -> sa.Select[Any]:
    r = _row()
    is_open = (r.c.merged_into.is_(None), r.c.type_provider.is_distinct_from(TOLD))
    query = _fields().where(among(r.c.name_key, "keys"), r.c.type == EntityType.PERSON, *is_open)
    return query.order_by(r.c.pk)


def of_one_word(snapshot: Snapshot, words: Collection[str]) -> list[EntityRecord]:
    """Return the persons whose whole name is one of these words.

    Left out are merged ones and those whose type was told: who speaks under one word, and a name
    that was taken away from another person.
    """
    return list(_rows(_of_one_word().rows(snapshot, keys=sorted(words))))


def seen_no_wider(snapshot: Snapshot, pk: int, other: int) -> bool:
    """Return whether everybody who may read a memory of ``pk`` may read one of ``other``, too."""
    n, m, o, y = tables.links, tables.memories, tables.links.alias(), tables.memories.alias()
    levels = {level.value: level.level for level in Sensitivity}
    same_place = (y.c.scope == m.c.scope) & y.c.scope_id.is_not_distinct_from(m.c.scope_id)
    known = sa.exists().where(
        o.c.entity_pk == bound(other),
        y.c.pk == o.c.memory_pk,
        sa.case(levels, value=y.c.sensitivity) <= sa.case(levels, value=m.c.sensitivity),
        (y.c.scope == Scope.GLOBAL) | same_place,
        y.c.agent_id.is_not_distinct_from(m.c.agent_id),
    )
    hidden = sa.select(m.c.pk).select_from(n.join(m, m.c.pk == n.c.memory_pk))
    hidden = hidden.where(n.c.entity_pk == bound(pk), ~known.correlate(m)).limit(1)
    return snapshot.scalar(hidden) is None


# The summaries that a model wrote.


@prepared
def _summaries() -> sa.Select[Any]:
    e = tables.entities
    query = sa.select(e.c.pk, e.c.summary).where(among(e.c.pk, "pks"), e.c.summary.is_not(None))
    return query.order_by(e.c.mention_count.desc(), e.c.pk)


def summaries(snapshot: Snapshot, pks: Collection[int]) -> dict[int, EntitySummary]:
    """Return the stored summaries of entities by their keys, the most mentioned first.

    Raises:
        DatabaseCorrupt: one of them is damaged.
    """
    rows = _summaries().rows(snapshot, pks=sorted(pks))
    try:
        return {pk: EntitySummary.model_validate_json(text) for pk, text in rows}
    except ValueError as error:
        raise unreadable("entities", "summary") from error


def summaries_shown(
    snapshot: Snapshot, pks: Collection[int], view: View
) -> dict[int, EntitySummary]:
    """Return the summaries that a reader may see, and whose cited memories are all active."""
    stored = {pk: one for pk, one in summaries(snapshot, pks).items() if one.text}
    read = {memory_id for summary in stored.values() for memory_id in summary.read}
    visible = existing_ids(snapshot, read, replace(view, statuses=None))
    active = existing_ids(snapshot, read, replace(view, statuses=ACTIVE))
    return {
        pk: summary
        for pk, summary in stored.items()
        if visible.issuperset(summary.read) and active.issuperset(summary.cited)
    }


def set_summary(transaction: Transaction, pk: int, summary: EntitySummary | None) -> None:
    """Replace the summary of an entity."""
    text = None if summary is None else summary.model_dump_json()
    e = tables.entities
    transaction.write(sa.update(e).where(e.c.pk == bound(pk)).values(summary=bound(text)))


# Queries for the memories that name an entity.


def _naming() -> tuple[sa.FromClause, sa.FromClause, Any, Column]:
    """Return the links table, the memories table, their join, and the condition on the entity."""
    n, m = tables.links.alias("n"), tables.memories.alias("m")
    return n, m, ordered(n, (m, m.c.pk == n.c.memory_pk)), n.c.entity_pk == value("entity_pk")


@prepared
def _mention_counts(view: View) -> sa.Select[Any]:
    _, m, naming, its = _naming()
    when = happened_at(m)
    query: sa.Select[Any] = sa.select(sa.func.count(), sa.func.min(when), sa.func.max(when))
    return query.select_from(naming).where(its, view.where(m))


def mention_counts(snapshot: Snapshot, pk: int, view: View) -> MentionCounts | None:
    """Return how often memories of the view name an entity; None if none does."""
    row = _mention_counts(view.shape).row(snapshot, view.params, entity_pk=pk)
    return MentionCounts(*row) if row[0] else None


@prepared
def _contents(view: View) -> sa.Select[Any]:
    n, m, naming, its = _naming()
    speaker = sa.func.coalesce(m.c.source_role.concat(": "), "", type_=sa.Text)
    names = sa.func.coalesce(sa.literal(" ").concat(member(m.c.attributes, ENTITY_NAMES)), "")
    query = sa.select(speaker.concat(m.c.content).concat(names)).select_from(naming)
    return query.where(its, view.where(m)).order_by(n.c.memory_pk.desc())


def contents(snapshot: Snapshot, pk: int, view: View) -> Iterator[str]:
    """Yield the texts that name an entity, newest first.

    The speaker of a turn precedes its text; the names in ``entity_names`` follow it.
    """
    cursor = _contents(view.shape).cursor(snapshot, view.params, entity_pk=pk)
    return (str(content) for (content,) in cursor)


@prepared
def _contents_saying(view: View) -> sa.Select[Any]:
    n, m = tables.links.alias("n"), tables.memories.alias("m")
    f = matching("match").subquery("f")
    its = (n.c.entity_pk == value("entity_pk"), n.c.memory_pk == m.c.pk)
    query = sa.select(m.c.content).select_from(ordered(f, (m, m.c.pk == f.c.pk)))
    return query.where(view.where(m), sa.exists().where(*its).correlate(m))


def contents_saying(
    snapshot: Snapshot, pk: int, view: View, names: Collection[str]
) -> Iterator[str]:
    """Yield the texts that mention an entity and match one of some names in the text index.

    The index ignores case, accents and inflection, so a text may spell the name differently.
    """
    statement = _contents_saying(view.shape)
    expression = snapshot.engine.phrases.expression(saying(names))
    cursor = statement.cursor(snapshot, view.params, entity_pk=pk, match=expression)
    return (str(content) for (content,) in cursor)


def top_memories(snapshot: Snapshot, pk: int, view: View, limit: int) -> list[Memory]:
    """Return the facts, then the turns that name an entity, most important first, then newest."""
    _, m, naming, its = _naming()
    query = sa.select(*view.memory_columns(m)).select_from(naming)
    query = query.where(its, view.where(m), m.c.kind != MemoryKind.REFLECTION)
    newest = (happened_at(m).desc(), m.c.pk.desc())
    order = (m.c.kind == MemoryKind.EPISODE, m.c.importance.desc(), *newest)
    query = query.order_by(*order).limit(bound(limit))
    return snapshot.mapped(memory_from_row, query, view.params, entity_pk=pk)


def mentioned_together(
    snapshot: Snapshot, pk: int, view: View, limit: int
) -> list[tuple[EntityRecord, int]]:
    """Return the entities named in the same memories, with the number of these, most first."""
    n, m, naming, its = _naming()
    o, shared = tables.links.alias("o"), sa.func.count().label("shared")
    joined = naming.join(o, o.c.memory_pk == m.c.pk).join(_row(), _row().c.pk == o.c.entity_pk)
    query = _fields(shared).select_from(joined)
    query = query.where(its, view.where(m), o.c.entity_pk != n.c.entity_pk).group_by(_row().c.pk)
    query = query.order_by(shared.desc(), _row().c.pk).limit(bound(limit))
    rows = snapshot.rows(query, view.params, entity_pk=pk)
    return list(zip(_rows(row[:-1] for row in rows), (row[-1] for row in rows), strict=True))
