"""Find memories with few entities that the nightly enrichment has not processed."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from memgraph.model.enums import EntityType, MemoryKind, MemoryStatus, Sensitivity
from memgraph.store import tables
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import Column, among, member, prepared, value

# Attributes of a memory: when it was enriched, and the names that only the model found in it.
ENRICHED_AT: Final = "enriched_at"
ENRICHED_NAMES: Final = "enriched_names"


class EnrichmentCandidate(NamedTuple):
    """A memory that may be enriched."""

    pk: int
    memory_id: str
    content: str
    content_hash: str
    sensitivity: str
    attributes: dict[str, Any]


def _open(m: sa.FromClause) -> sa.Select[Any]:
    """Select active memories that are not enriched yet, by key."""
    return (
        sa.select(*(m.c[name] for name in EnrichmentCandidate._fields))
        .where(
            m.c.status == MemoryStatus.ACTIVE,
            m.c.kind.in_([MemoryKind.EPISODE, MemoryKind.FACT]),
            m.c.content != "",
            member(m.c.attributes, ENRICHED_AT).is_(None),
        )
        .order_by(m.c.pk)
    )


@prepared
def _candidates() -> sa.Select[Any]:
    m, n = tables.memories.alias("m"), tables.links.alias("n")
    mentions = sa.select(sa.func.count()).select_from(n).where(n.c.memory_pk == m.c.pk).correlate(m)
    # Scan the table in key order: no index is cheaper for a range of keys.
    query = _open(m).with_hint(m, "NOT INDEXED", "sqlite")
    query = query.where(m.c.pk > value("after"), m.c.pk <= value("through"))
    return query.where(mentions.scalar_subquery() <= value("most")).limit(value("limit"))


def candidates(
    snapshot: Snapshot, after: int, through: int, max_entities: int, limit: int
) -> list[EnrichmentCandidate]:
    """Return active episodes and facts to enrich with keys in (``after``, ``through``], by key.

    Memories that mention more than ``max_entities`` entities are left out.
    """
    window = {"after": after, "through": through}
    return _read(_candidates().rows(snapshot, window, most=max_entities, limit=limit))


@prepared
def _still_open() -> sa.Select[Any]:
    m = tables.memories.alias("m")
    return _open(m).where(among(m.c.pk, "pks"))


def still_open(snapshot: Snapshot, pks: Collection[int]) -> list[EnrichmentCandidate]:
    """Return the current rows of the memories among ``pks`` that are still to be enriched."""
    return _read(_still_open().rows(snapshot, pks=pks))


def _read(rows: list[tuple[Any, ...]]) -> list[EnrichmentCandidate]:
    return [EnrichmentCandidate._make((*row[:-1], json.loads(row[-1]))) for row in rows]


@prepared
def _links_of() -> sa.Select[Any]:
    n = tables.links
    return sa.select(n.c.entity_pk, n.c.memory_pk).where(among(n.c.memory_pk, "pks"))


def links_of(snapshot: Snapshot, pks: Collection[int]) -> set[tuple[int, int]]:
    """Return the links of memories as pairs of (entity key, memory key)."""
    return set(_links_of().rows(snapshot, pks=pks))


# Entities that may be other names of known entities; a model decides.


_MOST: Final = 200
_NAMED: Final = (
    EntityType.PERSON,
    EntityType.PROJECT,
    EntityType.ORGANIZATION,
    EntityType.OTHER,
)


def _readable() -> tuple[sa.FromClause, sa.FromClause, Any, Column]:
    """Return the aliases of links and memories, their join, and a condition on the memories.

    The condition selects active memories, except reflections, of a readable sensitivity.
    """
    n, m = tables.links.alias("n"), tables.memories.alias("m")
    condition = sa.and_(
        m.c.status == MemoryStatus.ACTIVE,
        m.c.kind != MemoryKind.REFLECTION,
        among(m.c.sensitivity, "readable"),
    )
    return n, m, n.join(m, m.c.pk == n.c.memory_pk), condition


def _read_of(e: sa.FromClause) -> tuple[Column, ...]:
    """Return the conditions on an unmerged entity that readable memories mention."""
    n, _, naming, condition = _readable()
    is_mentioned = (
        sa.exists().select_from(naming).where(n.c.entity_pk == e.c.pk, condition).correlate(e)
    )
    return e.c.type.in_(_NAMED), e.c.merged_into.is_(None), is_mentioned


@prepared
def _unsure() -> sa.Select[Any]:
    """Select entities whose type is uncertain or whose name is a single word."""
    e = tables.entities.alias("e")
    confidence = sa.func.coalesce(e.c.type_confidence, 1.0)
    is_unsure = (confidence < value("unsure")) | (sa.func.instr(e.c.name_key, " ") == 0)
    query = sa.select(e.c.pk, e.c.entity_id, e.c.canonical_name, e.c.name_key, e.c.type)
    query = query.where(*_read_of(e), is_unsure)
    return query.order_by(e.c.mention_count.desc(), e.c.pk).limit(_MOST)


@prepared
def _alike() -> sa.Select[Any]:
    """Select entities of the same type whose name begins alike or contains the other name."""
    e, key = tables.entities.alias("e"), value("key")

    def holds(name: Column, words: Column) -> Column:
        padded = (sa.literal(" ").concat(text).concat(" ") for text in (name, words))
        return sa.func.instr(*padded) > 0

    begins_alike = sa.func.substr(e.c.name_key, 1, 3) == sa.func.substr(key, 1, 3)
    alike = begins_alike | holds(e.c.name_key, key) | holds(key, e.c.name_key)
    query = sa.select(e.c.entity_id, e.c.canonical_name)
    query = query.where(*_read_of(e), e.c.pk != value("pk"), e.c.type == value("type"), alike)
    return query.order_by(e.c.mention_count.desc(), e.c.pk).limit(value("limit"))


@prepared
def _texts() -> sa.Select[Any]:
    n, m, naming, condition = _readable()
    query = sa.select(m.c.content).select_from(naming)
    query = query.where(n.c.entity_pk == value("pk"), condition)
    return query.order_by(m.c.pk.desc()).limit(value("limit"))


class UncertainName(NamedTuple):
    """An uncertain name, texts that mention it, and other possible entities as (id, name)."""

    entity_id: str
    name: str
    texts: list[str]
    candidates: list[tuple[str, str]]


def unsure(
    snapshot: Snapshot,
    confidence: float,
    readable: Collection[Sensitivity],
    *,
    texts: int,
    candidates: int,
) -> list[UncertainName]:
    """Return uncertain names that may mean another entity, most mentioned first.

    Args:
        confidence: a type with a lower confidence is uncertain, 0 to 1.
        readable: the sensitivities of memories that may be read.
        texts: the maximum number of texts per name.
        candidates: the maximum number of other entities per name.
    """
    values = {"readable": readable}
    names = []
    rows = _unsure().rows(snapshot, values, unsure=confidence)
    for pk, entity_id, name, key, kind in rows:
        alike = _alike().rows(snapshot, values, pk=pk, type=kind, key=key, limit=candidates)
        if not alike:
            continue
        contents = _texts().column(snapshot, values, pk=pk, limit=texts)
        names.append(UncertainName(entity_id, name, contents, alike))
    return names
