"""Find the memories that an erasure covers and every row that repeats their texts, and change them.

No memory is hidden from an erasure, because only operators erase. Rows that something refers to
stay, without their texts. ``secure_delete`` makes SQLite overwrite freed space, and makes FTS5
remove words instead of marking them as removed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import chain, groupby
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from memgraph.ids import short_id
from memgraph.model.enums import EntityType, MemoryStatus, Scope
from memgraph.model.erasure import ErasureTargetKind
from memgraph.rules.erasure import (
    DIGESTS,
    ERASED,
    FREE_TEXT,
    MARK,
    NOTES,
    redacted_details,
    redacted_words,
    scrubbed,
    without_note,
)
from memgraph.rules.search_terms import SearchTerms
from memgraph.store import embeddings, metadata, tables, text_index
from memgraph.store.memories import set_statuses
from memgraph.store.snapshot import JournalledTransaction, Snapshot, Transaction
from memgraph.store.statements import (
    Column,
    CompiledStatement,
    among,
    each,
    greatest,
    member,
    place_of,
    prepared,
    value,
)

ACTION: Final = "erase"
"""The action of the entries of an erasure: one for each memory, and one for each transaction."""
REPORT: Final = "erasure"
"""The action of the entry with the report."""
UNFINISHED_KEY: Final = "erasing"
"""The row of an erasure that is not finished."""
ERASED_KEY: Final = "erased_through"
"""The head of the journal at the last erasure. Texts built from an earlier head are invalid."""
_PAGE: Final = 2_000


# -- the memories that go ------------------------------------------------------------------------


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
def _texts(columns: tuple[str, ...]) -> sa.Select[Any]:
    m = tables.memories
    texts = sa.select(m.c.pk, *(m.c[name] for name in columns))
    return texts.where(m.c.content != "").order_by(m.c.pk)


def saying(snapshot: Snapshot, terms: SearchTerms, *columns: str) -> set[int]:
    """Return the keys of the memories that contain one of the terms in these columns."""
    pks = set[int]()
    cursor = _texts(columns).cursor(snapshot)
    while page := cursor.fetchmany(_PAGE):
        texts = ["\n\n".join(text for text in row[1:] if text) for row in page]
        pks.update(page[place][0] for place, _ in terms.among(texts))
    return pks


def linked(snapshot: Snapshot, entity_pks: Sequence[int]) -> set[int]:
    """Return the keys of the memories that are linked to entities, without erased ones."""
    pks = _linked().column(snapshot, pks=entity_pks)
    return set(unerased_among(snapshot, pks))


@prepared
def _entity_names() -> sa.CompoundSelect[Any]:
    e, a = tables.entities, tables.aliases
    names = sa.select(a.c.entity_pk, a.c.alias)
    return sa.union(sa.select(e.c.pk, e.c.canonical_name.label("name")), names)


def entities_called(snapshot: Snapshot, terms: SearchTerms) -> EntityForms:
    """Return the entities whose name or alias contains one of the terms, combined."""
    rows = _entity_names().rows(snapshot)
    places = {place for place, _ in terms.among([name for _, name in rows])}
    pks = {rows[place][0] for place in places}
    names = sorted({name for pk, name in rows if pk in pks})
    return EntityForms("", tuple(sorted(pks)), tuple(names))


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
def _erasures() -> sa.Select[Any]:
    log = tables.audit_log
    erasure_id = member(log.c.details, "erasure_id").label("erasure")
    query = sa.select(erasure_id).where(log.c.action == ACTION, log.c.subject.in_(given_ids()))
    return query.group_by(erasure_id).order_by(sa.func.max(log.c.seq).desc())


def erased_before(snapshot: Snapshot, kind: ErasureTargetKind, name: str) -> tuple[str, ...] | None:
    """Return the ids of erasures of the named memories, latest first; None without memories."""
    pks = _memories_named(kind).column(snapshot, name=name)
    return tuple(_erasures().column(snapshot, pks=pks)) if pks else None


# -- texts that stay -----------------------------------------------------------------------------


# (table, key column, id column, text columns)
_STANDING: Final = (
    ("memories", "pk", "memory_id", "content summary item_id source_role"),
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
) -> Iterator[list[tuple[str, str]]]:
    """Yield pages of (memory id or "", text) of what stays and may contain the same words.

    Args:
        pks, entities: the keys of the memories and entities to erase.
    """
    for table, key, *names in _STANDING:
        erased = sorted(pks if table == "memories" else entities)
        cursor = _remaining(table, key, *names).cursor(snapshot, gone=erased)
        while page := cursor.fetchmany(_PAGE):
            yield [(memory_id, text) for memory_id, *texts in page for text in texts if text]


def identifiers(snapshot: Snapshot) -> list[str]:
    """Return the names of sources, sessions, scopes and actors, which stay."""
    rows = (row for place in _PLACES for row in _places(*place).cursor(snapshot))
    return [text for row in rows for text in row if text]


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


# -- the rows of erased memories -----------------------------------------------------------------


def joins_given() -> Column:
    """Return the SQL condition that an edge joins a memory whose key is in ``pks``."""
    e = tables.edges
    return e.c.from_memory_id.in_(given_ids()) | e.c.to_memory_id.in_(given_ids())


@prepared
def _edges_of() -> sa.Select[Any]:
    return sa.select(tables.edges.c.edge_id).where(joins_given())


def edges_of(snapshot: Snapshot, pks: Sequence[int]) -> list[str]:
    """Return the ids of the edges of memories."""
    return _edges_of().column(snapshot, pks=pks)


@prepared
def _unretracted() -> sa.Select[Any]:
    m = tables.memories
    due = among(m.c.pk, "pks") & (m.c.status != MemoryStatus.RETRACTED)
    return sa.select(m.c.memory_id).where(due)


def retract(transaction: JournalledTransaction, pks: Sequence[int]) -> None:
    """Retract memories that are not retracted yet, with the reason ``erased``."""
    ids = _unretracted().column(transaction, pks=pks)
    if ids:
        set_statuses(transaction, ids, MemoryStatus.RETRACTED, reason="erased")


@prepared
def _blank() -> sa.Update:
    m = tables.memories
    nothing = dict.fromkeys(("search_terms", "item_id", "source_role"))
    empty = {"content": "", "summary": "", "tags": "[]", "attributes": "{}", "token_cost": 0}
    changes = {
        "content_hash": "erased:" + m.c.memory_id,
        "updated_at": greatest(m.c.updated_at, value("at")),
    }
    return sa.update(m).where(among(m.c.pk, "pks")).values(nothing | empty | changes)


@cache
def _blanked() -> dict[str, CompiledStatement]:
    """Return the statements that blank or delete the rows of erased memories, by table."""
    e, h, n = tables.edges, tables.statuses, tables.entities
    c, k, w = tables.comparisons, tables.document_keys, tables.pending_links
    link = tables.links
    mentioned = sa.select(link.c.entity_pk).where(among(link.c.memory_pk, "pks"))
    changes: list[sa.Update | sa.Delete] = [
        sa.update(e).where(e.c.reason.is_not(None), joins_given()).values(reason=MARK),
        sa.update(h).where(h.c.memory_id.in_(given_ids())).values(reason="erased"),
        sa.delete(c).where(among(c.c.memory_pk, "pks")),
        sa.delete(w).where(w.c.memory_id.in_(given_ids())),
        sa.delete(k).where(k.c.memory_id.in_(given_ids())),
        sa.update(n).where(n.c.summary.is_not(None), n.c.pk.in_(mentioned)).values(summary=None),
    ]
    return {str(statement.table): CompiledStatement(statement) for statement in changes}


def blank(transaction: JournalledTransaction, pks: Sequence[int]) -> dict[str, int]:
    """Remove every text from retracted memories and from the rows that belong to them.

    Returns:
        The number of changed rows by table, without zeros.
    """
    counts = {}
    embeddings.forget(transaction, pks)
    counts["memories"] = _blank().write(transaction, pks=pks, at=transaction.at)
    transaction.engine.texts.remove(transaction, pks)
    counts["memory_embeddings"] = len(pks)
    counts["memory_edges"] = _resolutions(transaction, pks)
    for table, statement in _blanked().items():
        counts[table] = counts.get(table, 0) + statement.write(transaction, pks=pks)
    counts["memory_entities"] = _unlink(transaction, pks)
    return {table: count for table, count in counts.items() if count}


def _unlink(transaction: Transaction, pks: Sequence[int]) -> int:
    """Unlink memories from their entities; return the number of entities that lost mentions."""
    touched = text_index.unlink(transaction, pks)
    text_index.recount(transaction, touched, ())
    return len(touched)


@prepared
def _decided() -> sa.Select[Any]:
    """Select the keys and resolutions of contradictions with the memories."""
    e = tables.edges
    query = sa.select(e.c.edge_id, e.c.resolution)
    return query.where(e.c.resolution.is_not(None), joins_given())


@prepared
def _redecide() -> sa.Update:
    e = tables.edges
    return sa.update(e).where(e.c.edge_id == value("key")).values(resolution=value("how"))


def _resolutions(transaction: Transaction, pks: Sequence[int]) -> int:
    rows = _decided().rows(transaction, pks=pks)
    for key, resolution in rows:
        _redecide().write(transaction, key=key, how=redacted_words(resolution))
    return len(rows)


@cache
def _removed() -> list[CompiledStatement]:
    """Return the statements that delete links, names and entities, in this order."""
    keys = (tables.links.c.entity_pk, tables.aliases.c.entity_pk, tables.entities.c.pk)
    return [CompiledStatement(sa.delete(key.table).where(among(key, "pks"))) for key in keys]


def remove_entities(transaction: Transaction, pks: Collection[int]) -> int:
    """Remove entities with their names; return the number of removed entities."""
    *_, count = [statement.write(transaction, pks=sorted(pks)) for statement in _removed()]
    return count


def note_head(transaction: Transaction, seq: int) -> None:
    """Store the head of the journal; texts built from an earlier head must not be used."""
    metadata.put(transaction, ERASED_KEY, str(seq))


def erased_through(snapshot: Snapshot) -> int:
    """Return the head of the journal at the last erasure, or 0 without an erasure."""
    return int(metadata.get(snapshot, ERASED_KEY) or 0)


@prepared
def _erased_among() -> sa.Select[Any]:
    log = tables.audit_log
    return sa.select(log.c.subject).where(log.c.action == ACTION, among(log.c.subject, "ids"))


def erased_among(snapshot: Snapshot, memory_ids: Collection[str]) -> set[str]:
    """Return the ids that an erasure covers."""
    return set(_erased_among().column(snapshot, ids=sorted(memory_ids)))


@prepared
def _reports() -> sa.Select[Any]:
    log = tables.audit_log
    query = sa.select(log.c.details).where(log.c.action == REPORT)
    return query.order_by(log.c.seq.desc()).limit(value("limit"))


def reports(snapshot: Snapshot, limit: int) -> list[dict[str, Any]]:
    """Return the reports of the latest erasures, the newest first."""
    texts = _reports().column(snapshot, limit=limit)
    # A later erasure may have redacted the reason.
    return [{k: v for k, v in json.loads(text).items() if k != ERASED} for text in texts]


@prepared
def _note_redacted() -> sa.Update:
    f = tables.files
    now = sa.func.json_object("sha256", value("redacted"), "at", value("at"))
    noted = sa.func.json_set(f.c.manifest, "$.redacted", now)
    return sa.update(f).where(f.c.sha256 == value("file")).values(manifest=noted)


def note_redacted(transaction: Transaction, sha256: str, redacted_sha256: str, at: int) -> None:
    """Record the new digest of a file with redacted lines in ``manifest["redacted"]``.

    It identifies the redacted file as the same file.
    """
    _note_redacted().write(transaction, file=sha256, redacted=redacted_sha256, at=at)


@prepared
def _empty_manifest() -> sa.Update:
    f, json_of = tables.files, sa.func.json
    items = json_of(sa.func.coalesce(member(f.c.manifest, "items"), "{}"))
    remainder = sa.func.json_object("erased", json_of("true"), "at", value("at"), "items", items)
    return sa.update(f).where(f.c.sha256 == value("file")).values(manifest=remainder)


def empty_manifest(transaction: Transaction, sha256: str, at: int) -> None:
    """Reduce the manifest of a removed file to its items and the time of removal."""
    _empty_manifest().write(transaction, file=sha256, at=at)


# -- other rows that contain an erased text, and their redacted values ----------------------------


JOURNAL: Final = "audit_log"
MEMORIES: Final = "memories"
_PLACE: Final = "place of the row"


# The columns that may repeat an erased text: (table, key columns, text columns).
_SWEPT: Final = (
    (MEMORIES, ("pk",), ("tags", "attributes")),
    ("memory_edges", (_PLACE,), ("reason", "resolution")),
    ("memory_status", ("status_id",), ("reason",)),
    ("entities", ("pk",), ("summary",)),
    ("recalls", (_PLACE,), ("query", "request", "viewer", "left_out", "purpose", "actor")),
    ("recall_items", ("recall_id", "rank"), ("explanation",)),
    ("bulletins", (_PLACE,), ("body",)),
    ("job_runs", (_PLACE,), ("counts", "rejected", "reason")),
    ("ingest_files", (_PLACE,), ("manifest",)),
    ("ingest_parts", (_PLACE,), ("outcomes",)),
    ("ingest_pending_links", ("link_id",), ("reason",)),
    ("memory_metadata", (_PLACE,), ("value",)),
)
# Rows that are deleted, because a pending link to an erased file has no target.
_REMOVED: Final = (("ingest_pending_links", ("link_id",), ("target",)),)


SEARCHED_TABLES: Final = len({table for table, *_ in (*_SWEPT, *_REMOVED)} | {JOURNAL})


class ErasedRow(NamedTuple):
    """A row that contains an erased text.

    Attributes:
        keys, key: the key columns and their values.
        columns, before: the text columns and their values when they were read.
        after: the redacted values; None: the row is deleted.
    """

    table: str
    keys: tuple[str, ...]
    key: tuple[Any, ...]
    columns: tuple[str, ...]
    before: tuple[str | None, ...]
    after: tuple[str | None, ...] | None


class Gone(NamedTuple):
    """The ids of what is erased."""

    memories: frozenset[str]
    entities: frozenset[str]
    edges: frozenset[str]


@prepared
def _citing_bulletins() -> sa.Select[Any]:
    b = tables.bulletins
    return sa.select(b.c.bulletin_id, b.c.body, b.c.memory_ids).where(_lists_one(b))


def _lists_one(table: sa.Table) -> Column:
    """Return the SQL condition that a row's ``memory_ids`` contain one of ``ids``."""
    i = each(table.c.memory_ids, "i")
    return sa.exists().select_from(i).where(among(i.c.value, "ids")).correlate(table)


@prepared
def _citing_queries() -> sa.Select[Any]:
    r, i = tables.recalls, tables.recall_items
    receipt = sa.func.coalesce(r.c.same_as, r.c.recall_id)
    citing = sa.select(i.c.recall_id).where(among(i.c.memory_id, "ids"))
    query = sa.select(r.c.recall_id, r.c.query)
    return query.where(r.c.query != "", receipt.in_(citing))


@prepared
def _reasons_beside() -> sa.Select[Any]:
    h, e = tables.statuses, tables.edges
    neighbours = sa.union(
        sa.select(e.c.from_memory_id).where(among(e.c.to_memory_id, "ids")),
        sa.select(e.c.to_memory_id).where(among(e.c.from_memory_id, "ids")),
    )
    query = sa.select(h.c.status_id, h.c.reason)
    return query.where(h.c.reason.is_not(None), h.c.memory_id.in_(neighbours))


def changes(snapshot: Snapshot, gone: Gone, terms: SearchTerms) -> list[ErasedRow]:
    """Return the rows, beside those of the erased memories, that have to change."""
    entries, notes = _entries_changed(snapshot, gone, terms)
    rows = chain(_rows_citing(snapshot, gone, notes), _rows_saying(snapshot, terms), entries)
    return [row for row in rows if row.after != row.before]


def _rows_citing(snapshot: Snapshot, gone: Gone, notes: Collection[str]) -> Iterator[ErasedRow]:
    """Yield rows that were made of erased memories, whatever their text.

    These are lines of bulletins, queries, and the reasons of decisions about them.
    """
    ids = sorted(gone.memories)
    for bulletin_id, body, cited in _citing_bulletins().cursor(snapshot, ids=ids):
        erased_ids = [short_id(item) for item in json.loads(cited) if item in gone.memories]
        lines = [
            MARK if any(memory_id in line for memory_id in erased_ids) else line
            for line in body.split("\n")
        ]
        yield _changed("bulletins", "bulletin_id", bulletin_id, "body", body, "\n".join(lines))
    for recall_id, query in _citing_queries().cursor(snapshot, ids=ids):
        yield _changed("recalls", "recall_id", recall_id, "query", query, "")
    for status_id, reason in _reasons_beside().cursor(snapshot, ids=ids):
        kept = without_note(reason, gone.memories, notes)
        yield _changed("memory_status", "status_id", status_id, "reason", reason, kept)


def _changed(table: str, key: str, its: Any, column: str, before: str, after: str) -> ErasedRow:
    return ErasedRow(table, (key,), (its,), (column,), (before,), (after,))


def _named(table: str, *names: str) -> list[Column]:
    """Return the columns of a table with these names."""
    columns_of = tables.memories.metadata.tables[table]
    return [place_of(columns_of) if name == _PLACE else columns_of.c[name] for name in names]


@prepared
def _swept(table: str, keys: tuple[str, ...], columns: tuple[str, ...]) -> sa.Select[Any]:
    texts = _named(table, *columns)
    query = sa.select(*_named(table, *keys), *texts)
    query = query.where(sa.or_(*(text.is_not(None) for text in texts)))
    own = tables.metadata.c.key != UNFINISHED_KEY
    return query.where(own) if table == tables.metadata.name else query


def _rows_saying(snapshot: Snapshot, terms: SearchTerms) -> Iterator[ErasedRow]:
    """Yield all rows with an erased text, except those of the journal."""
    for table, keys, columns in (*_SWEPT, *_REMOVED):
        cursor = _swept(table, keys, columns).cursor(snapshot)
        while page := cursor.fetchmany(_PAGE):
            texts = ["\n".join(text for text in row[len(keys) :] if text) for row in page]
            for place in sorted({place for place, _ in terms.among(texts)}):
                before = page[place][len(keys) :]
                after = tuple(text and scrubbed(text, terms.scrub) for text in before)
                goes = after != before and (table, keys, columns) in _REMOVED
                key = page[place][: len(keys)]
                yield ErasedRow(table, keys, key, columns, before, None if goes else after)


def _entries_changed(
    snapshot: Snapshot, gone: Gone, terms: SearchTerms
) -> tuple[list[ErasedRow], set[str]]:
    """Return the entries with an erased text or about what is erased, and the comments in them."""
    rows, notes = list[ErasedRow](), set[str]()
    of_sources = set(_notes_on_sources().column(snapshot, ids=sorted(gone.memories)))
    cursor = _entries().cursor(snapshot)
    while page := cursor.fetchmany(_PAGE):
        saying = {place for place, _ in terms.among([details for *_, details in page])}
        for place, (seq, action, subject, details) in enumerate(page):
            fields = _fields_about(gone, of_sources, action, subject, details)
            if fields or place in saying:
                redacted = redacted_details(details, terms.scrub, fields)
                rows.append(_changed(JOURNAL, "seq", seq, "details", details, redacted))
                notes.update(str(json.loads(details).get(name)) for name in fields & NOTES)
    return rows, notes


@prepared
def _notes_on_sources() -> sa.Select[Any]:
    """Select the reasons of changes of sources that changed no other memory."""
    h, other = tables.statuses, tables.statuses.alias("other")
    note = sa.func.substr(h.c.reason, sa.func.instr(h.c.reason, ": ") + 2)
    elsewhere = sa.exists().where(other.c.reason == h.c.reason, ~among(other.c.memory_id, "ids"))
    its = among(h.c.memory_id, "ids") & h.c.reason.startswith("its source was ")
    return sa.select(note).where(its, ~elsewhere)


def _fields_about(
    gone: Gone, of_sources: Collection[str], action: str, subject: str | None, details: str
) -> frozenset[str]:
    """Return the fields of a journal entry whose text is about something erased."""
    if action in (ACTION, REPORT):
        return frozenset()
    if subject in gone.memories or subject in gone.entities:
        return FREE_TEXT | DIGESTS
    named = {value for value in json.loads(details).values() if isinstance(value, str)}
    about = any(named & ids for ids in gone) or (subject is None and named & {*of_sources})
    return NOTES if about else frozenset()


@prepared
def _entries() -> sa.Select[Any]:
    log = tables.audit_log
    return sa.select(log.c.seq, log.c.action, log.c.subject, log.c.details).order_by(log.c.seq)


@prepared
def _apply(
    table: str, keys: tuple[str, ...], columns: tuple[str, ...], goes: bool
) -> sa.Update | sa.Delete:
    changed = tables.memories.metadata.tables[table]
    same = (
        column.is_not_distinct_from(value(f"was_{place}"))
        for place, column in enumerate(_named(table, *keys, *columns))
    )
    if goes:
        return sa.delete(changed).where(*same)
    after = {name: value(f"after_{place}") for place, name in enumerate(columns)}
    return sa.update(changed).where(*same).values(after)


def apply(transaction: Transaction, changes: Sequence[ErasedRow]) -> list[ErasedRow]:
    """Apply the changes to rows that have not changed since they were read; return them."""
    applied: list[ErasedRow] = []
    for kind, some in groupby(changes, _kind):
        statement = _apply(*kind)
        for change in some:
            was, after = (*change.key, *change.before), change.after or ()
            values = {f"was_{place}": text for place, text in enumerate(was)}
            values |= {f"after_{place}": text for place, text in enumerate(after)}
            if statement.write(transaction, values):
                applied.append(change)
    # Tags are indexed, attributes are not: postings of a row that did not change are not read anew.
    retagged = [row.key[0] for row in applied if row.table == MEMORIES and _retagged(row)]
    transaction.engine.texts.remove(transaction, retagged)
    return applied


def _retagged(change: ErasedRow) -> bool:
    place = change.columns.index("tags")
    return change.after is not None and change.after[place] != change.before[place]


def _kind(change: ErasedRow) -> tuple[str, tuple[str, ...], tuple[str, ...], bool]:
    return change.table, change.keys, change.columns, change.after is None


@prepared
def _sealed() -> sa.Select[Any]:
    log = tables.audit_log
    return sa.select(log.c.seq, log.c.hash).where(among(log.c.seq, "seqs")).order_by(log.c.seq)


def redacted(snapshot: Snapshot, changes: Sequence[ErasedRow]) -> list[tuple[int, str, str]]:
    """Return the number, the seal and the new details of the redacted entries among changes."""
    details = {
        change.key[0]: change.after[0] or ""
        for change in changes
        if change.table == JOURNAL and change.after is not None
    }
    sealed = _sealed().rows(snapshot, seqs=sorted(details))
    return [(seq, seal, details[seq]) for seq, seal in sealed]
