"""Entities, their aliases, and which memories name them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert

from memgraph.model.enums import EntityType, MemoryKind, Sensitivity
from memgraph.model.values import Memory
from memgraph.store import tables
from memgraph.store.rows import memory_from_row
from memgraph.store.snapshot import InsertRows, Snapshot, Transaction
from memgraph.store.statements import (
    Column,
    among,
    listed,
    member,
    ordered,
    place_of,
    prepared,
    value,
)
from memgraph.store.text_index import matching, saying
from memgraph.store.visibility import View

NAMED_TYPES: Final = (
    EntityType.PERSON,
    EntityType.PROJECT,
    EntityType.ORGANIZATION,
    EntityType.LOCATION,
    EntityType.OTHER,
)
"""What has a name of its own; addresses and dates are found by their form."""

_insert = InsertRows(
    "entities",
    (
        *("pk", "entity_id", "canonical_name", "name_key", "type", "created_at"),
        *("type_provider", "type_confidence"),
    ),
)


def _is_meant(e: sa.FromClause) -> tuple[sa.FromClause, Column, Column]:
    """Return what an entity was merged into, the condition on that, and the key that is meant."""
    m = tables.entities.alias("m")
    return m, m.c.entity_id == e.c.merged_into, sa.func.coalesce(m.c.pk, e.c.pk)


@prepared
def _by_name() -> sa.Select[Any]:
    e = tables.entities.alias("e")
    m, is_merged, meant = _is_meant(e)
    names = (e.c.canonical_name, e.c.type_provider)
    found = sa.select(e.c.name_key, e.c.type, e.c.pk, meant, *names)
    return found.select_from(e.outerjoin(m, is_merged)).where(among(e.c.name_key, "keys"))


@prepared
def _by_alias() -> sa.Select[Any]:
    """Of two entities with one alias the older is meant.

    Another spelling of an entity's own name says nothing of an entity of another type.
    """
    a, e = tables.aliases.alias("a"), tables.entities.alias("e")
    m, is_merged, meant = _is_meant(e)
    joined = a.join(e, e.c.pk == a.c.entity_pk).outerjoin(m, is_merged)
    found = sa.select(a.c.alias_key, meant).select_from(joined)
    found = found.where(among(a.c.alias_key, "keys"), a.c.alias_key != e.c.name_key)
    return found.order_by(a.c.entity_pk.desc())


def _is_full_name(e: sa.FromClause, first: Column) -> Column:
    """Return whether the name of an entity begins with a word, and goes on."""
    return (e.c.name_key > first.concat(" ")) & (e.c.name_key < first.concat("!"))


@prepared
def _by_first_name() -> sa.Select[Any]:
    f, e = listed("keys", "f"), tables.entities.alias("e")
    m, is_merged, meant = _is_meant(e)
    joined = ordered(f, (e, _is_full_name(e, f.c.value))).outerjoin(m, is_merged)
    return sa.select(f.c.value, meant).select_from(joined).where(e.c.type == EntityType.PERSON)


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
    return sa.select(*(one.scalar_subquery() for one in read))


_spelling = InsertRows("entity_aliases", ("alias_key", "entity_pk", "alias"), or_ignore=True)
_link = InsertRows("memory_entities", ("entity_pk", "memory_pk"), or_ignore=True)


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


class NameSnapshot(NamedTuple):
    """Names that are known.

    Attributes:
        keys: of the entity that each name means.
        spellings: (canonical name, key, spelling) where an entity is written in a new way.
        surer: entities whose type a better provider confirms, by key.
    """

    keys: dict[EntityName, int]
    spellings: list[tuple[str, int, str]]
    surer: dict[int, EntityName]


def find(snapshot: Snapshot, names: Sequence[EntityName]) -> NameSnapshot:
    """Return entities that are known by canonical name and type, or else by an alias.

    A name that was merged into another entity means that one. A name whose type is not sure means
    the one entity of that name that a better provider gave its type, and a first name the one
    person whose full name begins with it.
    """
    rows = _by_name().rows(snapshot, keys=_keys(names))
    by_name = {row[:2]: row for row in rows}
    known = NameSnapshot({}, [], {})
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
        by_alias = dict(_by_alias().rows(snapshot, keys=_keys(others)))
        people = [each for each in others if each.type is EntityType.PERSON]
        meant_by = by_first_name(snapshot, {each.key for each in people}) | by_alias
        known.keys.update((each, meant_by[each.key]) for each in others if each.key in meant_by)
    return known


def _of_another_type(
    name: EntityName, rows: Sequence[tuple[str, str, int, int, str, str | None]]
) -> tuple[str, str, int, int, str, str | None] | None:
    """Return the entity of that name whose type is better known than that of ``name``."""
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
    """Return for first names the one person whose full name begins so; several are none."""
    single = [key for key in keys if " " not in key]
    if not single:
        return {}
    found: dict[str, set[int]] = {}
    for key, pk in _by_first_name().rows(snapshot, keys=json.dumps(sorted(single))):
        found.setdefault(key, set()).add(pk)
    return {key: next(iter(pks)) for key, pks in found.items() if len(pks) == 1}


def known_by(snapshot: Snapshot, keys: Collection[str]) -> dict[str, int]:
    """Return the one entity that each key means, as a name, an alias or a first name."""
    if not keys:
        return {}
    wanted = json.dumps(sorted(keys))
    meant: dict[str, set[int]] = {}
    for key, kind, _, pk, _, _ in _by_name().rows(snapshot, keys=wanted):
        if kind in NAMED_TYPES:
            meant.setdefault(key, set()).add(pk)
    for key, pk in _by_alias().rows(snapshot, keys=wanted):
        meant.setdefault(key, {pk})
    first = by_first_name(snapshot, [key for key in keys if key not in meant])
    return {key: next(iter(pks)) for key, pks in meant.items() if len(pks) == 1} | first


class TypedEntity(NamedTuple):
    """An entity and who gave it its type."""

    pk: int
    entity_id: str
    type: EntityType
    provider: str | None


@prepared
def _typed_otherwise() -> sa.Select[Any]:
    n, e = tables.links.alias("n"), tables.entities.alias("e")
    found = sa.select(e.c.pk, e.c.entity_id, e.c.type, e.c.type_provider, e.c.type_confidence)
    found = found.select_from(n.join(e, e.c.pk == n.c.entity_pk))
    named = (n.c.memory_pk == value("memory_pk"), e.c.name_key == value("key"))
    return found.where(*named, e.c.type != value("type")).order_by(e.c.pk)


def typed_worse(snapshot: Snapshot, memory_pk: int, name: EntityName) -> list[TypedEntity]:
    """Return entities of that name that a memory names, of a type that a worse provider gave."""
    if name.type not in NAMED_TYPES:
        return []
    found = _typed_otherwise().rows(
        snapshot, memory_pk=memory_pk, key=name.key, type=name.type.value
    )
    return [
        TypedEntity(pk, entity_id, EntityType(kind), provider)
        for pk, entity_id, kind, provider, confidence in found
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
    snapshot: Snapshot, seen: NameCursor
) -> tuple[list[tuple[str, str, EntityType]], NameCursor, bool]:
    """Return names and aliases that came since ``seen``, each (key, as written, type).

    The last value says whether what was read before is void: a transaction was rolled back, or
    entities were removed, and then all names are given.
    """
    entity_id, alias_key, entity, alias = _newest().row(
        snapshot, entity=seen.entity, alias=seen.alias
    )
    void = (entity_id, alias_key) != (seen.entity_id, seen.alias_key)
    if not void and (entity or 0, alias or 0) == (seen.entity, seen.alias):
        return [], seen, False
    entity, alias, after = entity or 0, alias or 0, NameCursor() if void else seen
    found = _new_names().rows(snapshot, entity=after.entity, alias=after.alias)
    rows = [(key, name, EntityType(kind)) for key, name, kind in found]
    entity_id, alias_key, _, _ = _newest().row(snapshot, entity=entity, alias=alias)
    return rows, NameCursor(entity, entity_id, alias, alias_key), void


class MentionContext(NamedTuple):
    """The context of a memory that tells whom it is about, beside the names that rules find in it.

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


@prepared
def _sayings() -> sa.Select[Any]:
    f = listed("pks", "f", numbers=True)
    m, t = tables.memories.alias("m"), tables.memories.alias("t")
    d = tables.derivations.alias("d")
    speaker = sa.func.json_array(t.c.source_role, member(t.c.attributes, "told_as"))
    # Whoever may read the fact may read the turn, or its speaker stays unnamed.
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
    told = (member(m.c.attributes, "told_as"), member(m.c.attributes, ENTITY_NAMES))
    of_fact = sa.case((m.c.kind == MemoryKind.FACT, speakers))
    found = sa.select(m.c.pk, m.c.content, m.c.kind, m.c.source_role, *told, of_fact)
    return found.select_from(ordered(f, (m, m.c.pk == f.c.value)))


def sayings(snapshot: Snapshot, pks: Sequence[int]) -> list[MentionContext]:
    """Return what some memories say, and who says it, in the order of ``pks``."""
    found = []
    rows = _sayings().rows(snapshot, pks=json.dumps(list(pks)))
    for pk, content, kind, role, told_as, given, sources in rows:
        speakers = [(role, told_as)] if role is not None and kind == "episode" else []
        if sources is not None:
            speakers.extend((who, told) for who, told in json.loads(sources))
        found.append(MentionContext(pk, content, list(dict.fromkeys(speakers)), given))
    return found


def _keys(names: Sequence[EntityName]) -> str:
    return json.dumps(sorted({each.key for each in names}))


def add_spellings(transaction: Transaction, spellings: Sequence[tuple[str, int, str]]) -> None:
    """Keep how an entity is written, too: the first spelling that differs from its name."""
    _spelling(transaction, spellings)


@prepared
def _set_provider() -> sa.Update:
    e = tables.entities
    given = {"type_provider": value("provider"), "type_confidence": value("confidence")}
    return sa.update(e).where(e.c.pk == value("entity")).values(given)


def confirm_types(transaction: Transaction, surer: Mapping[int, EntityName]) -> None:
    """Record who is now known to give entities their types, by key."""
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
    """Store new entities, from name to the id each shall have; return their keys."""
    if not names:
        return {}
    last = _last_pk().scalar(transaction) or 0
    keys = {name: last + 1 + position for position, name in enumerate(names)}
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


@prepared
def _add_mentions() -> sa.Update:
    e = tables.entities
    more = {"mention_count": e.c.mention_count + value("number")}
    return sa.update(e).where(e.c.pk == value("entity")).values(more)


def link(transaction: Transaction, pairs: Sequence[tuple[int, int]]) -> None:
    """Store pairs of (entity key, memory key), each once, and count the mentions."""
    if not pairs:
        return
    _link(transaction, pairs)
    mentions: dict[int, int] = {}
    for entity, _ in pairs:
        mentions[entity] = mentions.get(entity, 0) + 1
    rows = ({"number": number, "entity": entity} for entity, number in mentions.items())
    _add_mentions().write_all(transaction, rows)


@prepared
def _count() -> sa.Select[Any]:
    return sa.select(sa.func.count()).select_from(tables.entities)


def count(snapshot: Snapshot) -> int:
    """Return how many entities there are, those that were merged among them."""
    return int(_count().scalar(snapshot))


# Reading entities: by id, by name, by how often they are named, as far as a view shows it.


_LAST_CHARACTER = "\U0010ffff"


class EntityRecord(NamedTuple):
    """``mention_count`` counts all memories, whoever may see them."""

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


def _when(m: sa.FromClause) -> Column:
    return sa.func.coalesce(m.c.event_time, m.c.created_at)


def _fields(*more: Column) -> sa.Select[Any]:
    # An order of a union is by names.
    return sa.select(*(_row().c[name].label(name) for name in _FIELDS), *more)


def _meant(e: sa.FromClause, found: Any) -> sa.Select[Any]:
    """Return the rows of found entities: of a merged one that of what it was merged into."""
    own = _row().c.entity_id == sa.func.coalesce(e.c.merged_into, e.c.entity_id)
    return _fields().select_from(found.join(_row(), own))


def _first(found: sa.Select[Any] | sa.CompoundSelect[Any]) -> Any:
    """Return entities in order: the most mentioned first, then the oldest."""
    return found.order_by(sa.desc("mention_count"), "pk")


def _called(is_it: Callable[[Column], Column], view: View | None = None) -> Any:
    """Return the entities with a name or an alias, the most mentioned first.

    Args:
        is_it: the condition on the key of the name.
        view: one of its memories names them; None: whether or not any does.
    """
    e, a = tables.entities.alias("e"), tables.aliases.alias("a")
    seen = () if view is None else (_is_named(view),)
    by_name = _meant(e, e).distinct().where(is_it(e.c.name_key), *seen)
    by_alias = _meant(e, a.join(e, e.c.pk == a.c.entity_pk)).where(is_it(a.c.alias_key), *seen)
    return _first(by_name.union(by_alias))


def _is_named(view: View) -> Column:
    n, m = tables.links.alias("n"), tables.memories.alias("m")
    naming = sa.exists().select_from(ordered(n, (m, m.c.pk == n.c.memory_pk)))
    return naming.where(n.c.entity_pk == _row().c.pk, view.where(m)).correlate(_row())


def _rows(found: Iterable[tuple[Any, ...]]) -> Iterator[EntityRecord]:
    for pk, entity_id, name, key, kind, mentions in found:
        yield EntityRecord(pk, entity_id, name, key, EntityType(kind), mentions)


@prepared
def _by_id() -> sa.Select[Any]:
    e = tables.entities.alias("e")
    return _meant(e, e).where(e.c.entity_id == value("entity_id"))


def by_id(snapshot: Snapshot, entity_id: str) -> EntityRecord | None:
    """Return an entity, of a merged one what it was merged into; None: there is none."""
    return next(_rows(_by_id().rows(snapshot, entity_id=entity_id)), None)


@prepared
def _by_keys() -> Any:
    return _called(lambda key: among(key, "keys"))


def by_keys(snapshot: Snapshot, keys: Collection[str]) -> list[EntityRecord]:
    """Return entities that have one of these names or aliases, the most mentioned first."""
    return list(_rows(_by_keys().rows(snapshot, keys=json.dumps(sorted(keys)))))


@prepared
def _by_prefix(view: View) -> Any:
    return _called(lambda key: (key >= value("begin")) & (key < value("end")), view)


def by_prefix(snapshot: Snapshot, prefix: str, view: View) -> Iterator[EntityRecord]:
    """Return entities of the view with a name or an alias that begins so, as they are asked for.

    The most mentioned come first.
    """
    ends = {"begin": prefix, "end": prefix + _LAST_CHARACTER}
    return _rows(_by_prefix(view.shape).cursor(snapshot, view.params, **ends))


@prepared
def _most_mentioned(view: View) -> Any:
    return _first(_fields().where(_row().c.mention_count > 0, _is_named(view)))


def most_mentioned(snapshot: Snapshot, view: View) -> Iterator[EntityRecord]:
    """Return all that is named by a memory of the view, as it is asked for.

    What is mentioned most by all memories comes first.
    """
    return _rows(_most_mentioned(view.shape).cursor(snapshot, view.params))


@prepared
def _is_protected() -> sa.Select[Any]:
    return sa.select(tables.entities.c.protected).where(tables.entities.c.pk == value("pk"))


def is_protected(snapshot: Snapshot, pk: int) -> bool:
    """Return whether time may not retire the facts about an entity."""
    return bool(_is_protected().scalar(snapshot, pk=pk))


@prepared
def _merged_names() -> sa.Select[Any]:
    return _fields().where(_row().c.merged_into == value("entity_id")).order_by(_row().c.pk)


def merged_names(snapshot: Snapshot, entity_id: str) -> list[EntityRecord]:
    """Return the entities that were merged into this one, as they were."""
    return list(_rows(_merged_names().rows(snapshot, entity_id=entity_id)))


@prepared
def _aliases() -> sa.Select[Any]:
    a = tables.aliases
    found = sa.select(a.c.entity_pk, a.c.alias_key, a.c.alias)
    return found.where(among(a.c.entity_pk, "pks")).order_by(a.c.entity_pk, a.c.alias_key)


def aliases(snapshot: Snapshot, pks: Collection[int]) -> list[tuple[int, str, str]]:
    """Return (entity key, alias key, alias) of these entities."""
    return _aliases().rows(snapshot, pks=json.dumps(sorted(pks)))


@prepared
def _of_first_names() -> Any:
    f, e = listed("keys", "f"), tables.entities.alias("e")
    found = _meant(e, ordered(f, (e, _is_full_name(e, f.c.value)))).distinct()
    return _first(found.where(e.c.type == EntityType.PERSON))


def of_first_names(snapshot: Snapshot, keys: Collection[str]) -> list[EntityRecord]:
    """Return people whose full name begins with one of these names, the most mentioned first."""
    return list(_rows(_of_first_names().rows(snapshot, keys=json.dumps(sorted(keys)))))


# What the memories say that name an entity.


def _naming() -> tuple[sa.FromClause, sa.FromClause, Any, Column]:
    """Return links, the memories at their ends, their join, and the condition on the links."""
    n, m = tables.links.alias("n"), tables.memories.alias("m")
    return n, m, ordered(n, (m, m.c.pk == n.c.memory_pk)), n.c.entity_pk == value("entity_pk")


@prepared
def _seen(view: View) -> sa.Select[Any]:
    _, m, naming, its = _naming()
    when = _when(m)
    found: sa.Select[Any] = sa.select(sa.func.count(), sa.func.min(when), sa.func.max(when))
    return found.select_from(naming).where(its, view.where(m))


def seen(snapshot: Snapshot, pk: int, view: View) -> MentionCounts | None:
    """Return how often an entity is named by memories of the view; None: it is not there."""
    row = _seen(view.shape).row(snapshot, view.params, entity_pk=pk)
    return MentionCounts(*row) if row[0] else None


@prepared
def _contents(view: View) -> sa.Select[Any]:
    n, m, naming, its = _naming()
    speaker = sa.func.coalesce(m.c.source_role.concat(": "), "", type_=sa.Text)
    given = sa.func.coalesce(sa.literal(" ").concat(member(m.c.attributes, ENTITY_NAMES)), "")
    found = sa.select(speaker.concat(m.c.content).concat(given)).select_from(naming)
    return found.where(its, view.where(m)).order_by(n.c.memory_pk.desc())


def contents(snapshot: Snapshot, pk: int, view: View) -> Iterator[str]:
    """Return the texts that name an entity, newest first, as they are asked for.

    With the speaker of a turn before its text, and behind a text the names that it was given.
    """
    found = _contents(view.shape).cursor(snapshot, view.params, entity_pk=pk)
    return (str(content) for (content,) in found)


@prepared
def _contents_saying(view: View) -> sa.Select[Any]:
    n, m = tables.links.alias("n"), tables.memories.alias("m")
    f = matching("match").subquery("f")
    its = (n.c.entity_pk == value("entity_pk"), n.c.memory_pk == m.c.pk)
    found = sa.select(m.c.content).select_from(ordered(f, (m, m.c.pk == f.c.pk)))
    return found.where(view.where(m), sa.exists().where(*its).correlate(m))


def contents_saying(
    snapshot: Snapshot, pk: int, view: View, names: Collection[str]
) -> Iterator[str]:
    """Return those texts that name an entity in which the text index finds one of some names.

    As they are asked for: what it finds may be written otherwise.
    """
    statement = _contents_saying(view.shape)
    asked = snapshot.engine.phrases.expression(saying(names))
    found = statement.cursor(snapshot, view.params, entity_pk=pk, match=asked)
    return (str(content) for (content,) in found)


@prepared
def _top_memories(view: View) -> sa.Select[Any]:
    _, m, naming, its = _naming()
    found = sa.select(*view.memory_columns(m)).select_from(naming)
    found = found.where(its, view.where(m), m.c.kind != MemoryKind.REFLECTION)
    newest = (_when(m).desc(), m.c.pk.desc())
    order = (m.c.kind == MemoryKind.EPISODE, m.c.importance.desc(), *newest)
    return found.order_by(*order).limit(value("limit"))


def top_memories(snapshot: Snapshot, pk: int, view: View, limit: int) -> list[Memory]:
    """Return facts that name an entity, then turns: the most important first, then the newest."""
    rows = _top_memories(view.shape).rows(snapshot, view.params, entity_pk=pk, limit=limit)
    return [memory_from_row(row) for row in rows]


@prepared
def _together(view: View) -> sa.Select[Any]:
    n, m, naming, its = _naming()
    o, shared = tables.links.alias("o"), sa.func.count().label("shared")
    joined = naming.join(o, o.c.memory_pk == m.c.pk).join(_row(), _row().c.pk == o.c.entity_pk)
    found = _fields(shared).select_from(joined)
    found = found.where(its, view.where(m), o.c.entity_pk != n.c.entity_pk).group_by(_row().c.pk)
    return found.order_by(shared.desc(), _row().c.pk).limit(value("limit"))


def together(snapshot: Snapshot, pk: int, view: View, limit: int) -> list[tuple[EntityRecord, int]]:
    """Return entities named in the same memories, each with their number, most frequent first."""
    rows = _together(view.shape).rows(snapshot, view.params, entity_pk=pk, limit=limit)
    return list(zip(_rows(row[:-1] for row in rows), (row[-1] for row in rows), strict=True))


# Merging entities and splitting them again. The caller holds the transaction.


@prepared
def _copy_links() -> sa.Insert:
    n = tables.links
    moved = sa.select(value("into"), n.c.memory_pk).where(n.c.entity_pk == value("other"))
    copied = insert(n).from_select(["entity_pk", "memory_pk"], moved)
    return copied.on_conflict_do_nothing()


@prepared
def _unlink(one: bool) -> sa.Delete:
    n = tables.links
    which = (n.c.memory_pk == value("memory"),) if one else ()
    return sa.delete(n).where(n.c.entity_pk == value("entity"), *which)


@prepared
def _set_merged(by: str) -> sa.Update:
    e = tables.entities
    return sa.update(e).where(e.c[by] == value("which")).values(merged_into=value("into"))


@prepared
def _inherit_protection() -> sa.Update:
    e, o = tables.entities, tables.entities.alias("o")
    other = sa.exists().where(o.c.pk == value("other"), o.c.protected == sa.true())
    return sa.update(e).where(e.c.pk == value("into"), other).values(protected=sa.true())


def merge(transaction: Transaction, into: tuple[int, str], other: tuple[int, str]) -> int:
    """Let everything that names ``other`` name ``into``; both as (key, id).

    The row of ``other`` stays as a name of ``into``, its aliases with it, and so do those of what
    had been merged into it.

    Returns:
        How many links moved.
    """
    pks = {"into": into[0], "other": other[0]}
    moved = _copy_links().write(transaction, pks)
    _unlink(False).write(transaction, entity=other[0])
    _set_merged("merged_into").write(transaction, which=other[1], into=into[1])
    _inherit_protection().write(transaction, pks)
    _set_merged("pk").write(transaction, which=other[0], into=into[1])
    recount(transaction, list(pks.values()))
    return moved


@prepared
def _of_type() -> sa.Select[Any]:
    e, o = tables.entities.alias("e"), tables.entities.alias("o")
    meant = e.c.entity_id == sa.func.coalesce(o.c.merged_into, o.c.entity_id)
    found = sa.select(e.c.pk, e.c.entity_id).select_from(o.join(e, meant))
    return found.where(o.c.name_key == value("key"), o.c.type == value("type"))


@prepared
def _set_type() -> sa.Update:
    e = tables.entities
    given = {"type_provider": value("provider"), "type_confidence": value("confidence")}
    return sa.update(e).where(e.c.pk == value("entity")).values(type=value("kind"), **given)


def retype(transaction: Transaction, one: TypedEntity, name: EntityName) -> None:
    """Give an entity the type that a better provider told, or join it to the one that has it."""
    found = _of_type().row(transaction, key=name.key, type=name.type.value)
    if found is not None:
        merge(transaction, found, (one.pk, one.entity_id))
        return
    given = {"provider": name.provider, "confidence": name.confidence}
    _set_type().write(transaction, given, kind=name.type.value, entity=one.pk)


@prepared
def _protect() -> sa.Update:
    e = tables.entities
    return sa.update(e).where(e.c.pk == value("entity")).values(protected=value("is_protected"))


def protect(transaction: Transaction, pk: int, *, protected: bool) -> None:
    """Set whether time may retire the facts about an entity."""
    _protect().write(transaction, entity=pk, is_protected=protected)


def make_own(transaction: Transaction, pk: int) -> None:
    """Make a merged name an entity of its own again."""
    _set_merged("pk").write(transaction, which=pk, into=None)


@prepared
def _make_name_of() -> sa.Update:
    e = tables.entities
    return sa.update(e).where(among(e.c.pk, "pks")).values(merged_into=value("into"))


def make_name_of(transaction: Transaction, pks: Collection[int], entity_id: str) -> None:
    """Make merged names the names of another entity."""
    _make_name_of().write(transaction, pks=json.dumps(list(pks)), into=entity_id)


@prepared
def _move_alias() -> sa.Update:
    a = tables.aliases
    moved = sa.update(a).prefix_with("OR REPLACE", dialect="sqlite")
    its = (a.c.entity_pk == value("entity"), a.c.alias_key == value("key"))
    return moved.where(*its).values(entity_pk=value("into"))


def move_aliases(
    transaction: Transaction, aliases: Sequence[tuple[int, str]], entity_pk: int
) -> None:
    """Make aliases, as (entity key, alias key), those of another entity."""
    rows = ({"entity": pk, "key": key, "into": entity_pk} for pk, key in aliases)
    _move_alias().write_all(transaction, rows)


@prepared
def _linked_memories() -> sa.Select[Any]:
    n = tables.links
    found = sa.select(n.c.memory_pk).where(n.c.entity_pk == value("entity"))
    return found.order_by(n.c.memory_pk)


def linked_memories(snapshot: Snapshot, entity_pk: int) -> list[int]:
    """Return the keys of the memories that name an entity, ascending."""
    return _linked_memories().column(snapshot, entity=entity_pk)


def relink(
    transaction: Transaction,
    *,
    add: Sequence[tuple[int, int]],
    remove: Sequence[tuple[int, int]],
) -> None:
    """Add and remove pairs of (entity key, memory key); the caller recounts."""
    _link(transaction, add)
    rows = ({"entity": entity, "memory": memory} for entity, memory in remove)
    _unlink(True).write_all(transaction, rows)


@prepared
def _recount() -> sa.Update:
    e, n = tables.entities, tables.links.alias("n")
    number = sa.select(sa.func.count()).select_from(n).where(n.c.entity_pk == e.c.pk)
    counted = {"mention_count": number.correlate(e).scalar_subquery()}
    return sa.update(e).where(among(e.c.pk, "pks")).values(counted)


def recount(transaction: Transaction, pks: Collection[int]) -> None:
    """Count the mentions of these entities anew."""
    _recount().write(transaction, pks=json.dumps(list(pks)))
