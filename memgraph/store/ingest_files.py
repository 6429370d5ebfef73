"""Files that were dropped: their contents, the names to link to, and links that wait."""

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
    # Made when asked for: the tables cost a second, and who only recalls does without.
    columns = tables.files.c
    return sa.select(columns.sha256, columns.status, columns.manifest, columns.recorded_at)


def status_of(snapshot: Snapshot, sha256: str) -> tuple[IngestStatus, dict[str, Any]] | None:
    """Return the status and the manifest of a content that was seen before."""
    statement = sa.select(tables.files.c.status, tables.files.c.manifest).where(
        tables.files.c.sha256 == sha256
    )
    row = snapshot.execute(statement).first()
    return (row.status, json.loads(row.manifest)) if row else None


@dataclass(frozen=True, slots=True)
class FileRow:
    """A content that was taken or refused, and its place among all, by when that was."""

    sha256: str
    status: IngestStatus
    manifest: dict[str, Any]
    recorded_at: int

    @property
    def place(self) -> tuple[int, str]:
        return self.recorded_at, self.sha256


def row_of(snapshot: Snapshot, sha256: str) -> FileRow | None:
    """Return the record of a content; None: it was never dropped."""
    row = snapshot.execute(_files().where(tables.files.c.sha256 == sha256)).first()
    return None if row is None else _file(row)


def before(snapshot: Snapshot, place: tuple[int, str] | None, limit: int) -> list[FileRow]:
    """Return contents before a place, the latest first; None: from the latest on."""
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
    """Record the outcome of a content; a rejected one may be taken later, never the reverse.

    Args:
        manifest: as JSON; it may be large, and is better written before the transaction.
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
    """A stored part of a file. ``done``: steps of its ``plan`` so far."""

    part: int
    plan: str
    done: int
    outcomes: dict[str, Any]


def last_part(snapshot: Snapshot, sha256: str) -> tuple[str, int] | None:
    """Return plan and number of the last stored part of a content; None: none is stored."""
    columns = tables.file_parts.c
    statement = sa.select(columns.plan, columns.part).where(columns.sha256 == sha256)
    row = snapshot.execute(statement.order_by(columns.part.desc()).limit(1)).first()
    return (row.plan, row.part) if row else None


def parts(snapshot: Snapshot, sha256: str) -> list[StoredPart]:
    """Return the parts of a content that are stored while others are not, in order."""
    columns = tables.file_parts.c
    statement = sa.select(columns.part, columns.plan, columns.done, columns.outcomes)
    rows = snapshot.execute(statement.where(columns.sha256 == sha256).order_by(columns.part))
    return [StoredPart(row.part, row.plan, row.done, json.loads(row.outcomes)) for row in rows]


def add_part(transaction: Transaction, sha256: str, part: StoredPart) -> None:
    """Note that a part of a content is stored."""
    row = {**part._asdict(), "sha256": sha256, "outcomes": json_text(part.outcomes)}
    transaction.execute(sa.insert(tables.file_parts), row)


def forget_parts(transaction: Transaction, sha256: str) -> None:
    """Remove the parts of a content that is stored completely or given up."""
    transaction.execute(sa.delete(tables.file_parts).where(tables.file_parts.c.sha256 == sha256))


@prepared
def _is_any_refused_for() -> sa.Select[Any]:
    file = tables.files.c
    refused = sa.select(file.sha256).where(file.status == IngestStatus.REJECTED)
    return refused.where(member(file.manifest, "reason") == value("reason")).limit(1)


def is_any_refused_for(snapshot: Snapshot, reason: str) -> bool:
    """Return whether a content is rejected for a reason."""
    return _is_any_refused_for().row(snapshot, reason=reason) is not None


def add_keys(transaction: Transaction, memory_id: str, keys: Sequence[str]) -> None:
    """Store names under which other files may link to this memory."""
    if keys:
        transaction.execute(
            insert(tables.document_keys).on_conflict_do_nothing(),
            [{"document_key": key, "memory_id": memory_id} for key in keys],
        )


def memories_known_as(snapshot: Snapshot, key: str) -> list[str]:
    """Return memories that answer to a name, in the order of their ids."""
    statement = sa.select(tables.document_keys.c.memory_id).where(
        tables.document_keys.c.document_key == key
    )
    return list(snapshot.execute(statement.order_by(tables.document_keys.c.memory_id)).scalars())


def add_pending_link(transaction: Transaction, row: Mapping[str, Any]) -> None:
    """Keep a link until a file arrives that answers to its target."""
    transaction.execute(insert(tables.pending_links).on_conflict_do_nothing(), row)


def pending_links(
    snapshot: Snapshot, keys: Sequence[str], *, after: int, limit: int
) -> list[sa.Row[Any]]:
    """Return links that wait for one of these names, in the order of their ids."""
    columns = tables.pending_links.c
    statement = sa.select(tables.pending_links).where(
        columns.target.in_(keys), columns.link_id > after
    )
    return list(snapshot.execute(statement.order_by(columns.link_id).limit(limit)))


def remove_pending_links(transaction: Transaction, link_ids: Sequence[int]) -> None:
    """Remove links that waited."""
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
    """Return active parts of a memory, with a role, that are part of nothing that is active."""
    return _parts_left().column(snapshot, whole_id=whole_id, role=role)


def counts(snapshot: Snapshot) -> dict[str, int]:
    """Return how many contents ended in each status, and how many links wait."""
    statement = sa.select(tables.files.c.status, sa.func.count()).group_by(tables.files.c.status)
    counts_by_status = {status.value: count for status, count in snapshot.execute(statement)}
    waiting = snapshot.execute(sa.select(sa.func.count()).select_from(tables.pending_links))
    return {**dict(sorted(counts_by_status.items())), "links_waiting": int(waiting.scalar_one())}


def _file(row: sa.Row[Any, Any, Any, Any]) -> FileRow:
    try:
        status, manifest = IngestStatus(row.status), json.loads(row.manifest)
    except (ValueError, TypeError) as error:
        raise unreadable("ingest file", row.sha256) from error
    return FileRow(row.sha256, status, manifest, row.recorded_at)
