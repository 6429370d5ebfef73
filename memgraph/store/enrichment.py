"""Find memories with few entities that the nightly enrichment has not processed."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from memgraph.model.enums import MemoryKind, MemoryStatus
from memgraph.store import tables
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import among, bound, member, value

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


def candidates(
    snapshot: Snapshot, after: int, through: int, max_entities: int, limit: int
) -> list[EnrichmentCandidate]:
    """Return active episodes and facts to enrich with keys in (``after``, ``through``], by key.

    Memories that mention more than ``max_entities`` entities are left out.
    """
    window = {"after": after, "through": through}
    m, n = tables.memories.alias("m"), tables.links.alias("n")
    mentions = sa.select(sa.func.count()).select_from(n).where(n.c.memory_pk == m.c.pk).correlate(m)
    # Scan the table in key order: no index is cheaper for a range of keys.
    query = _open(m).with_hint(m, "NOT INDEXED", "sqlite")
    query = query.where(m.c.pk > value("after"), m.c.pk <= value("through"))
    selected = query.where(mentions.scalar_subquery() <= bound(max_entities)).limit(bound(limit))
    return _read(snapshot.rows(selected, window))


def still_open(snapshot: Snapshot, pks: Collection[int]) -> list[EnrichmentCandidate]:
    """Return the current rows of the memories among ``pks`` that are still to be enriched."""
    m = tables.memories.alias("m")
    return _read(snapshot.rows(_open(m).where(among(m.c.pk, pks))))


def _read(rows: list[tuple[Any, ...]]) -> list[EnrichmentCandidate]:
    return [EnrichmentCandidate._make((*row[:-1], json.loads(row[-1]))) for row in rows]
