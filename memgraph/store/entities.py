"""Names of entities and which memories name them, as they are stored."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlmodel import col, select

from memgraph.model.conversation import SPEAKER_NAME, TOLD_AS
from memgraph.model.enums import NAMED_TYPES, EntityType, MemoryKind, Sensitivity
from memgraph.model.tables import EntityRow, MemoryEntityRow
from memgraph.store import tables
from memgraph.store.rows import fetch
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
from memgraph.store.visibility import View

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


def is_full_name(e: sa.FromClause, first: Column) -> Column:
    """Return the condition that an entity's name begins with a word and has further words."""
    return (e.c.name_key > first.concat(" ")) & (e.c.name_key < first.concat("!"))


@prepared
def _by_first_name() -> sa.Select[Any]:
    f, e = listed("keys", "f"), tables.entities.alias("e")
    m, is_merged, meant = _is_meant(e)
    joined = ordered(f, (e, is_full_name(e, f.c.value))).outerjoin(m, is_merged)
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


add_spellings = InsertRows("entity_aliases", ("alias_key", "entity_pk", "alias"), or_ignore=True)
"""Store further spellings of entities as aliases; the first one per entity and key is kept."""
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


MOST_LINKS: Final = 1_000
"""So many of the newest memories of an entity tell by which names a reader knows it."""


@prepared
def _known_by(view: View) -> sa.Select[Any]:
    """Return the entities of names that a memory of the view says: (key, whole name, entity)."""
    f, w, a = listed("keys", "f"), listed("words", "w"), tables.aliases.alias("a")
    e, n, r = tables.entities.alias("e"), tables.links.alias("n"), tables.memories.alias("r")
    m, is_merged, meant = _is_meant(e)
    is_first = is_full_name(e, w.c.value) & (e.c.type == EntityType.PERSON)
    ways = (
        (f, True, ordered(f, (e, e.c.name_key == f.c.value))),
        (f, True, ordered(f, (a, a.c.alias_key == f.c.value), (e, e.c.pk == a.c.entity_pk))),
        (w, False, ordered(w, (e, is_first))),
        (w, False, ordered(w, (e, e.c.last_name == w.c.value))),
    )
    named = sa.union(
        *(
            sa.select(
                keys.c.value.label("key"),
                sa.literal(is_whole).label("is_whole"),
                meant.label("pk"),
                e.c.name_key.label("name"),
            ).select_from(way.outerjoin(m, is_merged))
            for keys, is_whole, way in ways
        )
    ).subquery("k")

    links = sa.select(n.c.memory_pk, n.c.names).where(n.c.entity_pk == named.c.pk)
    newest = links.order_by(n.c.memory_pk.desc()).limit(MOST_LINKS).correlate(named).subquery("n")

    def is_linked_by(key: Column) -> Column:
        line = sa.literal("\n")
        return sa.func.instr(line + newest.c.names + line, line + key + line) > 0

    said = is_linked_by(named.c.key) | (~named.c.is_whole & is_linked_by(named.c.name))
    known = sa.exists().select_from(ordered(newest, (r, r.c.pk == newest.c.memory_pk)))
    known = known.where(said, view.where(r)).correlate(named)
    query = sa.select(named.c.key, named.c.is_whole, named.c.pk).distinct()
    return query.where(known).order_by(named.c.key, named.c.pk)


def known_by(snapshot: Snapshot, keys: Collection[str], view: View) -> list[int]:
    """Return the entities that a reader knows by one of these names or aliases.

    A word that names no entity means the persons whose first or last name it is. A name within a
    longer one that is known, too, is left out.
    """
    words = sorted(key for key in keys if " " not in key)
    rows = _known_by(view.shape).rows(snapshot, view.params, keys=sorted(keys), words=words)
    whole = {key for key, is_whole, _ in rows if is_whole}
    known = {key for key, _, _ in rows}
    parts = {one for one in known for other in known - {one} if f" {one} " in f" {other} "}
    return list(
        dict.fromkeys(
            pk for key, is_whole, pk in rows if key not in parts and (is_whole or key not in whole)
        )
    )


def less_surely_typed(snapshot: Snapshot, memory_pk: int, name: EntityName) -> list[EntityRow]:
    """Return a memory's entities of that name whose type a less trusted provider determined."""
    if name.type not in NAMED_TYPES:
        return []
    e, linked = EntityRow, select(MemoryEntityRow.entity_pk)
    linked = linked.where(MemoryEntityRow.memory_pk == memory_pk)
    rows = select(e).where(col(e.pk).in_(linked), e.name_key == name.key, e.type != name.type)
    return [
        row
        for row in fetch(snapshot, rows.order_by(col(e.pk)))
        if row.type in NAMED_TYPES
        and _rank(row.type_provider) < _rank(name.provider)
        and (row.type_confidence or 0.0) < LISTED
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


def unlink_memories(transaction: Transaction, pks: Sequence[int]) -> list[int]:
    """Remove the entity links of memories, and return the keys of the entities."""
    link = tables.links
    query = sa.select(link.c.entity_pk).distinct().where(among(link.c.memory_pk, pks))
    touched: list[int] = transaction.column(query)
    transaction.write(sa.delete(tables.links).where(among(tables.links.c.memory_pk, pks)))
    return touched


def recount(
    transaction: Transaction, entities: Sequence[int] | None = None, memories: Sequence[int] = ()
) -> None:
    """Recount the mentions of entities and of those that memories name; by default of all."""
    e, link = tables.entities, tables.links.alias("l")
    mentions = sa.select(sa.func.count()).where(link.c.entity_pk == e.c.pk).correlate(e)
    update = sa.update(e).values(mention_count=mentions.scalar_subquery())
    if entities is not None:
        mentioned = sa.select(tables.links.c.entity_pk)
        mentioned = mentioned.where(among(tables.links.c.memory_pk, memories))
        update = update.where(among(e.c.pk, entities) | e.c.pk.in_(mentioned))
    transaction.write(update)


def _is_unnamed(e: sa.FromClause) -> Column:
    """Return the condition that no memory names an entity and no decision concerns it."""
    o, a = tables.entities.alias("o"), tables.aliases.alias("a")
    is_merge_target = sa.exists().where(o.c.merged_into == e.c.entity_id).correlate(e)
    has_names = sa.exists().where(a.c.entity_pk == e.c.pk, a.c.alias_key != e.c.name_key)
    return sa.and_(
        e.c.mention_count == 0,
        e.c.protected == sa.false(),
        e.c.summary.is_(None),
        e.c.merged_into.is_(None),
        ~is_merge_target,
        ~has_names.correlate(e),
    )


def remove_unnamed(transaction: Transaction) -> int:
    """Remove entities without mentions and decisions, and return their number."""
    e, a = tables.entities.alias("e"), tables.aliases
    statement = sa.delete(a).where(
        sa.exists().where(e.c.pk == a.c.entity_pk, _is_unnamed(e)).correlate(a)
    )
    # An alias with the key of the entity's own name is not a decision; remove it first.
    transaction.write(statement)
    return transaction.write(sa.delete(tables.entities).where(_is_unnamed(tables.entities)))
