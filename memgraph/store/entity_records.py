"""Entities by id, name and number of mentions, within a view; their summaries and memories."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from memgraph.model.columns import unreadable
from memgraph.model.entities import EntitySummary
from memgraph.model.enums import EntityType, MemoryKind, Scope, Sensitivity
from memgraph.model.values import Memory
from memgraph.store import tables
from memgraph.store.entities import ENTITY_NAMES, TOLD, people_of
from memgraph.store.memories import existing_ids
from memgraph.store.rows import memory_from_row
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.statements import Column, among, bound, member, ordered, prepared, value
from memgraph.store.text_index import matching, saying
from memgraph.store.visibility import ACTIVE, View, happened_at

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
    return by_pks(snapshot, [pk])[0]


def by_pks(snapshot: Snapshot, pks: Collection[int]) -> list[EntityRecord]:
    """Return the entities with these keys, the most mentioned first."""
    return list(_rows(_by_pks().rows(snapshot, pks=sorted(pks)))) if pks else []


@prepared
def _by_pks() -> Any:
    return _most_mentioned_first(_fields().where(among(_row().c.pk, "pks")))


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
    return _rows(snapshot.cursor(query, view.params))


def most_mentioned(snapshot: Snapshot, view: View) -> Iterator[EntityRecord]:
    """Yield the entities that a memory of the view names.

    They are ordered by their mentions in all memories, most first.
    """
    named = _fields().where(_row().c.mention_count > 0, _is_named(view))
    return _rows(snapshot.cursor(_most_mentioned_first(named), view.params))


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


def called(snapshot: Snapshot, keys: Collection[str]) -> list[EntityRecord]:
    """Return people whose full name begins or ends with one of these, most mentioned first."""
    return by_pks(snapshot, set().union(*people_of(snapshot, keys).values()))


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
