"""Find memories with few entities that the nightly enrichment has not processed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import sqlalchemy as sa
from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from memgraph.model.enums import MemoryKind, MemoryStatus
from memgraph.model.tables import MemoryEntityRow, MemoryRow
from memgraph.store import tables
from memgraph.store.rows import fetch
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import member

# Attributes of a memory: when it was enriched, and the names that only the model found in it.
ENRICHED_AT: Final = "enriched_at"
ENRICHED_NAMES: Final = "enriched_names"


def _open() -> SelectOfScalar[MemoryRow]:
    """Select active memories that are not enriched yet, by key."""
    m = MemoryRow
    is_active = (m.status == MemoryStatus.ACTIVE, m.content != "")
    is_open = member(tables.memories.c.attributes, ENRICHED_AT).is_(None)
    kinds = col(m.kind).in_([MemoryKind.EPISODE, MemoryKind.FACT])
    return select(m).where(kinds, is_open, *is_active).order_by(col(m.pk))


def candidates(
    snapshot: Snapshot, after: int, through: int, max_entities: int, limit: int
) -> list[MemoryRow]:
    """Return active episodes and facts to enrich with keys in (``after``, ``through``], by key.

    Memories that mention more than ``max_entities`` entities are left out.
    """
    pk = col(MemoryRow.pk)
    mentions = select(sa.func.count()).where(MemoryEntityRow.memory_pk == pk).scalar_subquery()
    window = _open().where(pk > after, pk <= through, mentions <= max_entities)
    return fetch(snapshot, window.limit(limit))


def still_open(snapshot: Snapshot, pks: Collection[int]) -> list[MemoryRow]:
    """Return the current rows of the memories among ``pks`` that are still to be enriched."""
    return fetch(snapshot, _open().where(col(MemoryRow.pk).in_(pks)))
