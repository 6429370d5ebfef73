"""Find the memories that an erasure covers, the memories derived from them, and all their texts.

No memory is hidden from an erasure, because only operators erase.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from memgraph.model.enums import EntityType, Scope
from memgraph.model.erasure import ErasureTargetKind
from memgraph.rules.erasure import free_texts
from memgraph.store import tables
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import Column, among, member, prepared, value
from memgraph.store.text_index import matching, saying


class EntityForms(NamedTuple):
    """An entity with the entities merged into it, and all its names.

    ``dates``: the names, if the entity is only a date.
    """

    entity_id: str
    pks: tuple[int, ...]
    names: tuple[str, ...]
    dates: tuple[str, ...] = ()


class MemoryToErase(NamedTuple):
    """A memory to erase, with its texts and its source."""

    pk: int
    memory_id: str
    content: str
    summary: str
    status: str
    item_id: str | None
    tags: str
    attributes: str
    source_id: str
    source_path: str | None
    locator: str | None
    content_sha256: str | None


# A source is unrelated to an erased source if it shares none of these values with it:
# (column of the source, table and column of the erased value).
_ORIGINS: Final = (
    ("source_id", "sources", "source_id"),
    ("source_path", "sources", "source_path"),
    ("conversation_id", "sources", "conversation_id"),
    ("conversation_id", "memories", "session_id"),
    ("workflow_run_id", "sources", "workflow_run_id"),
    ("content_sha256", "sources", "content_sha256"),
)
# Texts and names that stay: (table, key column, id column, text columns).
_STANDING: Final = (
    ("memories", "pk", "memory_id", "content summary item_id"),
    ("memories", "pk", None, "source_role"),
    ("entities", "pk", None, "canonical_name"),
    ("aliases", "entity_pk", None, "alias"),
)
# Identifiers of places and actors, which stay: (table, columns).
_PLACES: Final = (
    ("sources", "source_path conversation_id workflow_run_id step_id locator captured_by"),
    ("memories", "agent_id session_id scope_id"),
    ("audit_log", "actor"),
)


@prepared
def _memories_named(kind: ErasureTargetKind) -> sa.Select[Any] | sa.CompoundSelect[Any]:
    m, s, name = tables.memories, tables.sources.alias("s"), value("name")

    def from_source(condition: Column) -> sa.Select[Any]:
        return sa.select(m.c.pk).where(m.c.source_id.in_(sa.select(s.c.source_id).where(condition)))

    if kind is ErasureTargetKind.MEMORY:
        return sa.select(m.c.pk).where(m.c.memory_id == name)
    if kind is ErasureTargetKind.PATH:
        # A folder includes everything below it.
        below = sa.func.substr(s.c.source_path, 1, sa.func.length(name) + 1) == name.concat("/")
        return from_source((s.c.source_path == name) | below)
    if kind is ErasureTargetKind.RUN:
        return from_source(s.c.workflow_run_id == name)
    if kind is ErasureTargetKind.CONTENT:
        return from_source(s.c.content_sha256 == name)
    # A conversation may also be a session in which turns were stored, as in the list of sources.
    queries = [sa.select(m.c.pk).where(m.c.session_id == name)]
    if kind is ErasureTargetKind.SESSION:
        # Also memories in the session's own scope.
        queries.append(sa.select(m.c.pk).where(m.c.scope == Scope.SESSION, m.c.scope_id == name))
    return sa.union(*queries, from_source(s.c.conversation_id == name))


def memories_named(snapshot: Snapshot, kind: ErasureTargetKind, name: str) -> list[int]:
    """Return the keys of the named memories, without erased ones."""
    return unerased_among(snapshot, _memories_named(kind).column(snapshot, name=name))


@prepared
def _unerased_among() -> sa.Select[Any]:
    m = tables.memories
    return sa.select(m.c.pk).where(among(m.c.pk, "pks"), m.c.content != "").order_by(m.c.pk)


def unerased_among(snapshot: Snapshot, pks: Sequence[int]) -> list[int]:
    """Return the keys of the memories that are not erased, ascending."""
    return _unerased_among().column(snapshot, pks=pks)


@prepared
def _entity_ids_of_name() -> sa.Select[Any]:
    e, a, id_or_name = tables.entities.alias("e"), tables.aliases.alias("a"), value("named")
    in_any_case = id_or_name.collate("NOCASE")
    entity_id = sa.func.coalesce(e.c.merged_into, e.c.entity_id).label("id")
    return (
        sa.select(entity_id)
        .distinct()
        .select_from(e.outerjoin(a, a.c.entity_pk == e.c.pk))
        .where(
            (e.c.entity_id == id_or_name)
            | (e.c.canonical_name == in_any_case)
            | (a.c.alias == in_any_case)
        )
        .order_by(entity_id)
    )


def entity(snapshot: Snapshot, id_or_name: str) -> list[EntityForms]:
    """Return the entities with this id, or with this name or alias, ignoring case."""
    ids = _entity_ids_of_name().column(snapshot, named=id_or_name)
    return [_entity(snapshot, entity_id) for entity_id in ids]


@prepared
def _with_merged() -> sa.Select[Any]:
    e, entity_id = tables.entities, value("id")
    query = sa.select(e.c.pk, e.c.canonical_name, e.c.type)
    return query.where((e.c.entity_id == entity_id) | (e.c.merged_into == entity_id))


@prepared
def _aliases() -> sa.Select[Any]:
    a = tables.aliases
    return sa.select(a.c.alias).where(among(a.c.entity_pk, "pks"))


def _entity(snapshot: Snapshot, entity_id: str) -> EntityForms:
    rows = _with_merged().rows(snapshot, id=entity_id)
    pks = tuple(pk for pk, *_ in rows)
    aliases = _aliases().column(snapshot, pks=pks)
    names = sorted({*aliases, *(name for _, name, _ in rows)})
    dated = all(kind == EntityType.DATE for *_, kind in rows)
    return EntityForms(entity_id, pks, tuple(names), tuple(names) if dated else ())


@prepared
def _linked() -> sa.Select[Any]:
    link = tables.links
    return sa.select(link.c.memory_pk).where(among(link.c.entity_pk, "pks"))


@prepared
def _saying() -> sa.Select[Any]:
    return matching("words")


def naming(snapshot: Snapshot, forms: EntityForms) -> list[int]:
    """Return memories that are linked to an entity or contain one of its names."""
    pks = {*_linked().column(snapshot, pks=forms.pks), *containing(snapshot, forms.names)}
    return unerased_among(snapshot, sorted(pks))


def containing(snapshot: Snapshot, names: Iterable[str]) -> list[int]:
    """Return the keys of memories that contain one of some names as a phrase, in order."""
    pks = set[int]()
    for name in names:
        if any(character.isalnum() for character in name):
            expression = snapshot.engine.phrases.expression(saying([name]))
            pks.update(_saying().column(snapshot, words=expression))
    return sorted(pks)


@prepared
def _named_only_by() -> sa.Select[Any]:
    e, link = tables.entities.alias("e"), tables.links.alias("l")
    mentioned = sa.exists().where(link.c.entity_pk == e.c.pk).correlate(e)
    by_these = among(link.c.memory_pk, "pks")
    alone = sa.select(e.c.entity_id).where(mentioned.where(by_these), ~mentioned.where(~by_these))
    return alone.order_by(e.c.pk)


def named_only_by(snapshot: Snapshot, pks: Sequence[int]) -> EntityForms:
    """Return the entities that only these memories mention, combined, with all their names."""
    ids = _named_only_by().column(snapshot, pks=pks)
    entities = [_entity(snapshot, entity_id) for entity_id in ids]
    return EntityForms(
        "",
        tuple(pk for entity in entities for pk in entity.pks),
        tuple(name for entity in entities for name in entity.names),
        tuple(name for entity in entities for name in entity.dates),
    )


@prepared
def _derived() -> sa.Select[Any]:
    d, m = tables.derivations.alias("d"), tables.memories.alias("m")
    return (
        sa.select(m.c.pk, m.c.memory_id)
        .distinct()
        .select_from(d.join(m, m.c.memory_id == d.c.memory_id))
        .where(d.c.derived_from_id.in_(given_ids()), m.c.content != "")
        .order_by(m.c.pk)
    )


@prepared
def _grounds() -> sa.Select[Any]:
    d, g = tables.derivations.alias("d"), tables.memories.alias("g")
    grounds = sa.select(g.c.pk).select_from(d.join(g, g.c.memory_id == d.c.derived_from_id))
    return grounds.where(d.c.memory_id == value("memory_id"), g.c.content != "")


def given_ids() -> sa.Select[Any]:
    """Select the ids of the memories whose keys are the parameter ``pks``."""
    m = tables.memories.alias("x")
    return sa.select(m.c.memory_id).where(among(m.c.pk, "pks"))


def derived_from(snapshot: Snapshot, pks: Sequence[int]) -> list[tuple[int, str, set[int]]]:
    """Return the memories derived from some: (key, id, keys of their evidence not erased yet)."""
    return [
        (pk, memory_id, set(_grounds().column(snapshot, memory_id=memory_id)))
        for pk, memory_id in _derived().rows(snapshot, pks=pks)
    ]


@prepared
def _has_other_source() -> sa.Select[Any]:
    m, p, o = tables.memories.alias("m"), tables.supports.alias("p"), tables.sources.alias("o")
    g, s = tables.memories.alias("g"), tables.sources.alias("s")

    def is_other(column: Column, erased: Column) -> Column:
        # The subquery is uncorrelated, so the erased values of a column are read only once.
        erased_values = sa.select(erased).select_from(g.join(s, s.c.source_id == g.c.source_id))
        erased_values = erased_values.where(among(g.c.pk, "erased"), erased.is_not(None))
        return sa.func.coalesce(column.not_in(erased_values), sa.true())

    of_erased = {"memories": g, "sources": s}
    conditions = (is_other(o.c[name], of_erased[table].c[its]) for name, table, its in _ORIGINS)
    has_other_source = (
        sa.exists()
        .select_from(p.join(o, o.c.source_id == p.c.source_id))
        .where(p.c.memory_id == m.c.memory_id, p.c.ended_at.is_(None), *conditions)
        .correlate(m)
    )
    return sa.select(m.c.pk).where(among(m.c.pk, "pks"), has_other_source)


def said_elsewhere(snapshot: Snapshot, pks: Sequence[int], erased: Sequence[int]) -> set[int]:
    """Return the memories that also have a source unrelated to the erased ones."""
    if not pks:
        return set()
    return set(_has_other_source().column(snapshot, pks=pks, erased=erased))


@prepared
def _memories_to_erase() -> sa.Select[Any]:
    m, s = tables.memories.alias("m"), tables.sources.alias("s")
    columns = (m.c[name] if name in m.c else s.c[name] for name in MemoryToErase._fields)
    query = sa.select(*columns).select_from(m.join(s, s.c.source_id == m.c.source_id))
    return query.where(among(m.c.pk, "pks")).order_by(m.c.pk)


def memories_to_erase(snapshot: Snapshot, pks: Sequence[int]) -> list[MemoryToErase]:
    """Return the memories with these keys, with all their texts."""
    return _memories_to_erase().mapped(MemoryToErase._make, snapshot, pks=pks)


@prepared
def _remaining(table: str, key: str, its_id: str | None, texts: str) -> sa.Select[Any]:
    t = getattr(tables, table)
    memory_id = sa.literal("") if its_id is None else t.c[its_id]
    return sa.select(memory_id, *(t.c[name] for name in texts.split())).where(
        ~among(t.c[key], "gone")
    )


@prepared
def _places(table: str, names: str) -> sa.Select[Any]:
    t = getattr(tables, table)
    return sa.select(*(t.c[name] for name in names.split())).distinct()


def remaining_texts(
    snapshot: Snapshot, pks: Collection[int], entities: Collection[int]
) -> Iterator[tuple[str, str]]:
    """Yield (memory id or "", text) of everything that stays and may contain the same words.

    Args:
        pks, entities: the keys of the memories and entities to erase.
    """
    for table, *names in _STANDING:
        erased = sorted(pks if table == "memories" else entities)
        for memory_id, *texts in _remaining(table, *names).cursor(snapshot, gone=erased):
            yield from ((memory_id, text) for text in texts if text)
    for place in _PLACES:
        for row in _places(*place).cursor(snapshot):
            yield from (("", text) for text in row if text)


@prepared
def _remaining_fields() -> sa.CompoundSelect[Any]:
    m = tables.memories
    stays = ~among(m.c.pk, "pks")
    return sa.union(
        sa.select(m.c.tags).where(stays, m.c.tags != "[]"),
        sa.select(m.c.attributes).where(stays, m.c.attributes != "{}"),
    )


def remaining_fields(snapshot: Snapshot, pks: Sequence[int]) -> list[str]:
    """Return the tags and attributes of all memories but these, as JSON, each once."""
    return _remaining_fields().column(snapshot, pks=pks)


@prepared
def _entity_ids() -> sa.Select[Any]:
    e = tables.entities
    return sa.select(e.c.entity_id).where(among(e.c.pk, "pks")).order_by(e.c.entity_id)


def entity_ids(snapshot: Snapshot, pks: Sequence[int]) -> list[str]:
    """Return the ids of entities, sorted."""
    return _entity_ids().column(snapshot, pks=pks)


# -- texts about memories ------------------------------------------------------------------------


def joins_given() -> Column:
    """Return the SQL condition that an edge joins a memory whose key is in ``pks``."""
    e = tables.edges
    return e.c.from_memory_id.in_(given_ids()) | e.c.to_memory_id.in_(given_ids())


@prepared
def _written_about() -> sa.CompoundSelect[Any]:
    """Select the reasons of changes and decisions about the memories."""
    e, r, h = tables.edges, tables.edge_revisions, tables.statuses
    edges = sa.select(e.c.edge_id).where(joins_given())
    return sa.union(
        sa.select(e.c.reason).where(joins_given()),
        sa.select(member(e.c.resolution, "reason")).where(joins_given()),
        sa.select(member(r.c.resolution, "reason")).where(r.c.edge_id.in_(edges)),
        sa.select(h.c.reason).where(h.c.memory_id.in_(given_ids())),
    )


@prepared
def _written_elsewhere() -> sa.CompoundSelect[Any]:
    """Select the reasons of changes and decisions about other memories."""
    e, h = tables.edges, tables.statuses
    ends = (sa.select(end).where(joins_given()) for end in (e.c.from_memory_id, e.c.to_memory_id))
    return sa.union(
        sa.select(e.c.reason).where(~joins_given()),
        sa.select(member(e.c.resolution, "reason")).where(~joins_given()),
        sa.select(h.c.reason).where(
            h.c.memory_id.not_in(given_ids()), h.c.memory_id.not_in(sa.union(*ends))
        ),
    )


@prepared
def _entries_about() -> sa.CompoundSelect[Any]:
    e, log = tables.edges, tables.audit_log
    edges = sa.select(e.c.edge_id).where(joins_given())
    return sa.union_all(
        sa.select(log.c.details).where(log.c.subject.in_(given_ids())),
        sa.select(log.c.details).where(
            log.c.action.in_(["relate", "resolve", "reopen", "dismiss"]),
            member(log.c.details, "edge_id").in_(edges),
        ),
        sa.select(log.c.details).where(among(log.c.subject, "entities")),
    )


def written_about(snapshot: Snapshot, pks: Sequence[int], entities: Sequence[str]) -> list[str]:
    """Return the distinct free texts about memories and entities, sorted.

    They are the texts in edges, decisions, statuses and journal entries. A text that is also
    recorded in full about unrelated memories is left out.

    Args:
        pks: the keys of the memories.
        entities: the ids of the entities.
    """
    texts = {text for text in _written_about().column(snapshot, pks=pks) if text}
    entries = _entries_about().cursor(snapshot, pks=pks, entities=entities)
    for (details,) in entries:
        texts.update(free_texts(details))
    return sorted(texts.difference(_written_elsewhere().column(snapshot, pks=pks)))


@prepared
def _vectors_of() -> sa.Select[Any]:
    e = tables.embeddings
    return sa.select(e.c.vector).where(among(e.c.memory_pk, "pks"), e.c.vector.is_not(None))


def vectors_of(snapshot: Snapshot, pks: Sequence[int]) -> list[bytes]:
    """Return the stored vectors of memories, as bytes."""
    return [bytes(vector) for vector in _vectors_of().column(snapshot, pks=pks)]


@prepared
def _source_paths() -> sa.Select[Any]:
    s = tables.sources
    paths = sa.select(s.c.source_path).distinct().order_by(s.c.source_path)
    return paths.where(s.c.content_sha256 == value("sha256"), s.c.source_path.is_not(None))


def source_paths(snapshot: Snapshot, sha256: str) -> list[str]:
    """Return the source paths of a file's content, sorted."""
    return _source_paths().column(snapshot, sha256=sha256)


@prepared
def _remaining_locators() -> sa.Select[Any]:
    m, s = tables.memories.alias("m"), tables.sources.alias("s")
    return (
        sa.select(s.c.locator)
        .distinct()
        .select_from(m.join(s, s.c.source_id == m.c.source_id))
        .where(s.c.source_path == value("path"), s.c.locator.is_not(None))
        .where(m.c.content != "", ~among(m.c.pk, "pks"))
    )


def remaining_locators(snapshot: Snapshot, path: str, pks: Sequence[int]) -> list[str]:
    """Return the locators of the memories from a file that are not to be erased."""
    return _remaining_locators().column(snapshot, path=path, pks=pks)


@prepared
def _erasures() -> sa.Select[Any]:
    log = tables.audit_log
    erasure_id = member(log.c.details, "erasure_id").label("erasure")
    query = sa.select(erasure_id).where(log.c.action == "erase", log.c.subject.in_(given_ids()))
    return query.group_by(erasure_id).order_by(sa.func.max(log.c.seq).desc())


def erased_before(snapshot: Snapshot, kind: ErasureTargetKind, name: str) -> tuple[str, ...] | None:
    """Return the ids of erasures of the named memories, latest first; None without memories."""
    pks = _memories_named(kind).column(snapshot, name=name)
    return tuple(_erasures().column(snapshot, pks=pks)) if pks else None


@prepared
def _entity_names() -> sa.CompoundSelect[Any]:
    e, a = tables.entities, tables.aliases
    return sa.union(sa.select(e.c.canonical_name.label("name")), sa.select(a.c.alias)).order_by(
        "name"
    )


def entity_names(snapshot: Snapshot) -> list[str]:
    """Return the distinct names and aliases of all entities, sorted."""
    return _entity_names().column(snapshot)
