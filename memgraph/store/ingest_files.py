"""Records of ingested files: their contents, their link names, and pending links."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert

from memgraph.model.enums import EdgeType, IngestStatus, MemoryStatus
from memgraph.store import tables
from memgraph.store.rows import json_text, unreadable
from memgraph.store.snapshot import JournalledTransaction, Snapshot, Transaction
from memgraph.store.statements import member, prepared, replacing, value


def _files() -> sa.Select[Any]:
    # Built on demand: the tables take a second to load, and recall does not need them.
    columns = tables.files.c
    return sa.select(columns.sha256, columns.status, columns.manifest, columns.recorded_at)


def status_of(snapshot: Snapshot, sha256: str) -> tuple[IngestStatus, dict[str, Any]] | None:
    """Return the status and the manifest of a content; None if it was never ingested."""
    statement = sa.select(tables.files.c.status, tables.files.c.manifest).where(
        tables.files.c.sha256 == sha256
    )
    row = snapshot.execute(statement).first()
    return (row.status, json.loads(row.manifest)) if row else None


@dataclass(frozen=True, slots=True)
class FileRow:
    """The record of a content that was ingested or rejected.

    Attributes:
        recorded_at: milliseconds.
    """

    sha256: str
    status: IngestStatus
    manifest: dict[str, Any]
    recorded_at: int

    @property
    def place(self) -> tuple[int, str]:
        return self.recorded_at, self.sha256


def row_of(snapshot: Snapshot, sha256: str) -> FileRow | None:
    """Return the record of a content; None if it was never ingested."""
    row = snapshot.execute(_files().where(tables.files.c.sha256 == sha256)).first()
    return None if row is None else _file(row)


def before(snapshot: Snapshot, place: tuple[int, str] | None, limit: int) -> list[FileRow]:
    """Return the records before a place, latest first; with None, from the latest."""
    order = sa.tuple_(tables.files.c.recorded_at, tables.files.c.sha256)
    statement = _files().limit(limit)
    statement = statement.order_by(tables.files.c.recorded_at.desc(), tables.files.c.sha256.desc())
    if place is not None:
        statement = statement.where(order < place)
    return [_file(row) for row in snapshot.execute(statement)]


@prepared
def _record() -> sa.Insert:
    return replacing(tables.files)


def record(
    transaction: JournalledTransaction,
    sha256: str,
    *,
    path: str,
    status: IngestStatus,
    manifest: str,
) -> None:
    """Record the outcome of a content, replacing an earlier one.

    The caller must not replace an ingested content by a rejected one.

    Args:
        manifest: JSON; since it may be large, serialise it before the transaction.
    """
    _record().write(
        transaction,
        sha256=sha256,
        path=path,
        status=status.value,
        manifest=manifest,
        recorded_at=transaction.at,
    )


class StoredPart(NamedTuple):
    """A stored part of a file. ``done``: the number of finished steps of its ``plan``."""

    part: int
    plan: str
    done: int
    outcomes: dict[str, Any]


def last_part(snapshot: Snapshot, sha256: str) -> tuple[str, int] | None:
    """Return the plan and the number of a content's last stored part; None without parts."""
    columns = tables.file_parts.c
    statement = sa.select(columns.plan, columns.part).where(columns.sha256 == sha256)
    row = snapshot.execute(statement.order_by(columns.part.desc()).limit(1)).first()
    return (row.plan, row.part) if row else None


def parts(snapshot: Snapshot, sha256: str) -> list[StoredPart]:
    """Return the stored parts of an incompletely stored content, in order."""
    columns = tables.file_parts.c
    statement = sa.select(columns.part, columns.plan, columns.done, columns.outcomes)
    rows = snapshot.execute(statement.where(columns.sha256 == sha256).order_by(columns.part))
    return [StoredPart(row.part, row.plan, row.done, json.loads(row.outcomes)) for row in rows]


def add_part(transaction: Transaction, sha256: str, part: StoredPart) -> None:
    """Record that a part of a content is stored."""
    row = {**part._asdict(), "sha256": sha256, "outcomes": json_text(part.outcomes)}
    transaction.execute(sa.insert(tables.file_parts), row)


def forget_parts(transaction: Transaction, sha256: str) -> None:
    """Remove the part records of a content that is completely stored or abandoned."""
    transaction.execute(sa.delete(tables.file_parts).where(tables.file_parts.c.sha256 == sha256))


@prepared
def _is_any_refused_for() -> sa.Select[Any]:
    file = tables.files.c
    refused = sa.select(file.sha256).where(file.status == IngestStatus.REJECTED)
    return refused.where(member(file.manifest, "reason") == value("reason")).limit(1)


def is_any_refused_for(snapshot: Snapshot, reason: str) -> bool:
    """Return True if any content was rejected for this reason."""
    return _is_any_refused_for().row(snapshot, reason=reason) is not None


def add_keys(transaction: Transaction, memory_id: str, keys: Sequence[str]) -> None:
    """Store names by which other files may link to a memory."""
    if keys:
        transaction.execute(
            insert(tables.document_keys).on_conflict_do_nothing(),
            [{"document_key": key, "memory_id": memory_id} for key in keys],
        )


def memories_known_as(snapshot: Snapshot, key: str) -> list[str]:
    """Return the ids of memories with a link name, sorted."""
    statement = sa.select(tables.document_keys.c.memory_id).where(
        tables.document_keys.c.document_key == key
    )
    return list(snapshot.execute(statement.order_by(tables.document_keys.c.memory_id)).scalars())


def add_pending_link(transaction: Transaction, row: Mapping[str, Any]) -> None:
    """Store a link until a file with the name of its target is ingested."""
    transaction.execute(insert(tables.pending_links).on_conflict_do_nothing(), row)


def pending_links(
    snapshot: Snapshot, keys: Sequence[str], *, after: int, limit: int
) -> list[sa.Row[Any]]:
    """Return pending links to any of these names, by id, after the link id ``after``."""
    columns = tables.pending_links.c
    statement = sa.select(tables.pending_links).where(
        columns.target.in_(keys), columns.link_id > after
    )
    return list(snapshot.execute(statement.order_by(columns.link_id).limit(limit)))


def remove_pending_links(transaction: Transaction, link_ids: Sequence[int]) -> None:
    """Remove pending links by id."""
    if link_ids:
        columns = tables.pending_links.c
        transaction.execute(sa.delete(tables.pending_links).where(columns.link_id.in_(link_ids)))


@prepared
def _parts_left() -> sa.Select[Any]:
    e, o = tables.edges.alias("e"), tables.edges.alias("o")
    m, w = tables.memories.alias("m"), tables.memories.alias("w")
    elsewhere = (
        sa.exists()
        .select_from(o.join(w, w.c.memory_id == o.c.to_memory_id))
        .where(o.c.from_memory_id == m.c.memory_id, o.c.edge_type == EdgeType.PART_OF)
        .where(w.c.status == MemoryStatus.ACTIVE)
        .correlate(m)
    )
    return (
        sa.select(m.c.memory_id)
        .select_from(e.join(m, m.c.memory_id == e.c.from_memory_id))
        .where(e.c.to_memory_id == value("whole_id"), e.c.edge_type == EdgeType.PART_OF)
        .where(m.c.status == MemoryStatus.ACTIVE, ~elsewhere)
        .where(member(m.c.attributes, "role") == value("role"))
        .order_by(m.c.memory_id)
    )


def parts_left(snapshot: Snapshot, whole_id: str, role: str) -> list[str]:
    """Return a memory's active parts with a role that belong to no active memory, sorted by id."""
    return _parts_left().column(snapshot, whole_id=whole_id, role=role)


def counts(snapshot: Snapshot) -> dict[str, int]:
    """Return the number of contents by status, and of pending links as ``links_waiting``."""
    statement = sa.select(tables.files.c.status, sa.func.count()).group_by(tables.files.c.status)
    counts_by_status = {status.value: count for status, count in snapshot.execute(statement)}
    waiting = snapshot.execute(sa.select(sa.func.count()).select_from(tables.pending_links))
    return {**dict(sorted(counts_by_status.items())), "links_waiting": int(waiting.scalar_one())}


def _file(row: sa.Row[Any, Any, Any, Any]) -> FileRow:
    try:
        status, manifest = IngestStatus(row.status), json.loads(row.manifest)
    except (ValueError, TypeError) as error:
        raise unreadable("ingest_files", row.sha256) from error
    return FileRow(row.sha256, status, manifest, row.recorded_at)
