"""Records of ingested files: their contents, their link names, and pending links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert
from sqlmodel import col, select

from memgraph.model.enums import EdgeType, IngestStatus, MemoryStatus
from memgraph.model.record_tables import IngestPartRow
from memgraph.model.tables import DocumentKeyRow, IngestFileRow, PendingLinkRow
from memgraph.store import tables
from memgraph.store.rows import fetch, first, json_text, save
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.statements import bound, member, row_count

HELD: Final = "held"
"""The rejection reason of a content that waits for an operator."""
REDACTED: Final = "redacted"
"""The field of a file's manifest with its digest after lines were redacted."""


def get(snapshot: Snapshot, sha256: str) -> IngestFileRow | None:
    """Return the record of a content; None if it was never ingested."""
    return first(snapshot, select(IngestFileRow).where(IngestFileRow.sha256 == sha256))


def before(snapshot: Snapshot, place: tuple[int, str] | None, limit: int) -> list[IngestFileRow]:
    """Return the records before a place, latest first; with None, from the latest.

    Args:
        place: ``recorded_at`` and ``sha256`` of a record.
    """
    recorded_at, sha256 = col(IngestFileRow.recorded_at), col(IngestFileRow.sha256)
    files = select(IngestFileRow).order_by(recorded_at.desc(), sha256.desc()).limit(limit)
    if place is not None:
        files = files.where(sa.tuple_(recorded_at, sha256) < place)
    return fetch(snapshot, files)


def note_redaction(transaction: Transaction, sha256: str, now: str | None) -> None:
    """Note the digest of a file with redacted lines, which identifies it as the same file.

    Args:
        sha256: its digest before.
        now: its digest now; None: it was removed, and only the outcomes stay in its manifest.
    """
    is_it = member(tables.files.c.manifest, REDACTED) == sha256
    for row in fetch(
        transaction, select(IngestFileRow).where(is_it | (col(IngestFileRow.sha256) == sha256))
    ):
        outcomes = {"items": row.manifest.get("items", {})}
        row.manifest_json = json_text(outcomes if now is None else row.manifest | {REDACTED: now})
        save(transaction, row)


def last_part(snapshot: Snapshot, sha256: str) -> IngestPartRow | None:
    """Return the last stored part of a content; None without parts."""
    of_file = select(IngestPartRow).where(IngestPartRow.sha256 == sha256)
    return first(snapshot, of_file.order_by(col(IngestPartRow.part).desc()))


def parts(snapshot: Snapshot, sha256: str) -> list[IngestPartRow]:
    """Return the stored parts of an incompletely stored content, in order."""
    of_file = select(IngestPartRow).where(IngestPartRow.sha256 == sha256)
    return fetch(snapshot, of_file.order_by(col(IngestPartRow.part)))


def forget_parts(transaction: Transaction, sha256: str) -> None:
    """Remove the part records of a content that is completely stored or abandoned."""
    transaction.execute(sa.delete(IngestPartRow).where(col(IngestPartRow.sha256) == sha256))


def is_any_held(snapshot: Snapshot) -> bool:
    """Return True if any content waits for an operator."""
    # A literal, which the index on rejected files needs.
    rejected = sa.literal(IngestStatus.REJECTED.value, literal_execute=True)
    is_rejected = sa.type_coerce(IngestFileRow.status, sa.Text) == rejected
    is_for = member(tables.files.c.manifest, "reason") == HELD
    return first(snapshot, select(IngestFileRow.sha256).where(is_rejected, is_for)) is not None


def add_keys(transaction: Transaction, memory_id: str, keys: Sequence[str]) -> None:
    """Store names by which other files may link to a memory."""
    if keys:
        rows = [{"document_key": key, "memory_id": memory_id} for key in keys]
        transaction.execute(insert(DocumentKeyRow).on_conflict_do_nothing(), rows)


def memories_known_as(snapshot: Snapshot, key: str) -> list[str]:
    """Return the ids of memories with a link name, sorted."""
    memory_id = col(DocumentKeyRow.memory_id)
    return fetch(
        snapshot, select(memory_id).where(DocumentKeyRow.document_key == key).order_by(memory_id)
    )


def add_pending_link(transaction: Transaction, row: Mapping[str, Any]) -> None:
    """Store a link until a file with the name of its target is ingested."""
    transaction.execute(insert(PendingLinkRow).on_conflict_do_nothing(), row)


def pending_links(
    snapshot: Snapshot, keys: Sequence[str], *, after: int, limit: int
) -> list[PendingLinkRow]:
    """Return pending links to any of these names, by id, after the link id ``after``."""
    link_id = col(PendingLinkRow.link_id)
    links = select(PendingLinkRow).where(col(PendingLinkRow.target).in_(keys), link_id > after)
    return fetch(snapshot, links.order_by(link_id).limit(limit))


def remove_pending_links(transaction: Transaction, links: Sequence[PendingLinkRow]) -> None:
    """Remove pending links."""
    link_ids = [link.link_id for link in links]
    transaction.execute(sa.delete(PendingLinkRow).where(col(PendingLinkRow.link_id).in_(link_ids)))


def parts_left(snapshot: Snapshot, whole_id: str, role: str) -> list[str]:
    """Return a memory's active parts with a role that belong to no active memory, sorted by id."""
    e, o = tables.edges.alias("e"), tables.edges.alias("o")
    m, w = tables.memories.alias("m"), tables.memories.alias("w")
    elsewhere = (
        sa.exists()
        .select_from(o.join(w, w.c.memory_id == o.c.to_memory_id))
        .where(o.c.from_memory_id == m.c.memory_id, o.c.edge_type == EdgeType.PART_OF)
        .where(w.c.status == MemoryStatus.ACTIVE)
        .correlate(m)
    )
    query = (
        sa.select(m.c.memory_id)
        .select_from(e.join(m, m.c.memory_id == e.c.from_memory_id))
        .where(e.c.to_memory_id == bound(whole_id), e.c.edge_type == EdgeType.PART_OF)
        .where(m.c.status == MemoryStatus.ACTIVE, ~elsewhere)
        .where(member(m.c.attributes, "role") == bound(role))
        .order_by(m.c.memory_id)
    )
    return snapshot.column(query)


def counts(snapshot: Snapshot) -> dict[str, int]:
    """Return the number of contents by status, and of pending links as ``links_waiting``."""
    status = col(IngestFileRow.status)
    rows = snapshot.execute(sa.select(status, sa.func.count()).group_by(status))
    by_status = sorted((status.value, number) for status, number in rows)
    return {**dict(by_status), "links_waiting": row_count(snapshot, "ingest_pending_links")}
