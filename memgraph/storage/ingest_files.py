"""What was ever dropped: contents taken and refused, names to link to, and links that wait."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from memgraph.model.enums import IngestStatus
from memgraph.storage import tables
from memgraph.storage.encoding import json_text
from memgraph.storage.rows import unreadable


def _files() -> sa.Select[Any]:
    # Made when asked for: the tables cost a second, and who only recalls does without.
    columns = tables.files.c
    return sa.select(columns.sha256, columns.status, columns.manifest, columns.recorded_at)


def status_of(connection: sa.Connection, sha256: str) -> tuple[IngestStatus, dict[str, Any]] | None:
    """The status and the manifest of a content that was seen before."""
    statement = sa.select(tables.files.c.status, tables.files.c.manifest).where(
        tables.files.c.sha256 == sha256
    )
    row = connection.execute(statement).first()
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


def row_of(connection: sa.Connection, sha256: str) -> FileRow | None:
    """What became of one content; None: it was never dropped."""
    found = connection.execute(_files().where(tables.files.c.sha256 == sha256)).first()
    return None if found is None else _file(found)


def before(connection: sa.Connection, place: tuple[int, str] | None, limit: int) -> list[FileRow]:
    """Contents before a place, the latest first; None: from the latest on."""
    order = sa.tuple_(tables.files.c.recorded_at, tables.files.c.sha256)
    statement = _files().limit(limit)
    statement = statement.order_by(tables.files.c.recorded_at.desc(), tables.files.c.sha256.desc())
    if place is not None:
        statement = statement.where(order < place)
    return [_file(row) for row in connection.execute(statement)]


def record(
    connection: sa.Connection,
    sha256: str,
    *,
    path: str,
    status: IngestStatus,
    manifest: Mapping[str, Any],
    at: int,
) -> None:
    """Note what became of a content; a refused one may be taken later, never the reverse."""
    statement = sa.insert(tables.files).prefix_with("OR REPLACE")
    told = json_text(dict(manifest))
    connection.execute(
        statement,
        {"sha256": sha256, "path": path, "status": status, "manifest": told, "recorded_at": at},
    )


def add_keys(connection: sa.Connection, memory_id: str, keys: Sequence[str]) -> None:
    """Names under which other files may link to this memory."""
    if keys:
        connection.execute(
            sa.insert(tables.document_keys).prefix_with("OR IGNORE"),
            [{"document_key": key, "memory_id": memory_id} for key in keys],
        )


def known_as(connection: sa.Connection, key: str) -> list[str]:
    """Memories that answer to a name, in the order of their ids."""
    statement = sa.select(tables.document_keys.c.memory_id).where(
        tables.document_keys.c.document_key == key
    )
    return list(connection.execute(statement.order_by(tables.document_keys.c.memory_id)).scalars())


def wait_for(connection: sa.Connection, row: Mapping[str, Any]) -> None:
    """Keep a link until a file arrives that answers to its target."""
    connection.execute(sa.insert(tables.pending_links).prefix_with("OR IGNORE"), row)


def take_waiting(connection: sa.Connection, keys: Sequence[str]) -> list[sa.Row[Any]]:
    """The links that waited for one of these names; they wait no longer."""
    chosen = tables.pending_links.c.target.in_(keys)
    rows = list(
        connection.execute(
            sa.select(tables.pending_links).where(chosen).order_by(tables.pending_links.c.link_id)
        )
    )
    if rows:
        connection.execute(
            sa.delete(tables.pending_links).where(
                tables.pending_links.c.link_id.in_([row.link_id for row in rows])
            )
        )
    return rows


def parts_left(connection: sa.Connection, whole_id: str, role: str) -> list[str]:
    """Active parts of a memory, with a role, that are part of nothing that is active."""
    statement = """
        SELECT m.memory_id FROM memory_edges e JOIN memories m ON m.memory_id = e.from_memory_id
        WHERE e.to_memory_id = ?1 AND e.edge_type = 'PartOf' AND m.status = 'active'
        AND json_extract(m.attributes, '$.role') = ?2 AND NOT EXISTS (
            SELECT 1 FROM memory_edges o JOIN memories w ON w.memory_id = o.to_memory_id
            WHERE o.from_memory_id = m.memory_id AND o.edge_type = 'PartOf' AND w.status = 'active'
        ) ORDER BY m.memory_id"""
    return [row[0] for row in connection.exec_driver_sql(statement, (whole_id, role))]


def counts(connection: sa.Connection) -> dict[str, int]:
    """How many contents ended in each status, and how many links wait."""
    statement = sa.select(tables.files.c.status, sa.func.count()).group_by(tables.files.c.status)
    found = {status.value: count for status, count in connection.execute(statement)}
    waiting = connection.execute(sa.select(sa.func.count()).select_from(tables.pending_links))
    return {**dict(sorted(found.items())), "links_waiting": int(waiting.scalar_one())}


def _file(row: sa.Row[Any, Any, Any, Any]) -> FileRow:
    try:
        status, manifest = IngestStatus(row.status), json.loads(row.manifest)
    except (ValueError, TypeError) as error:
        raise unreadable("ingest file", row.sha256) from error
    return FileRow(row.sha256, status, manifest, row.recorded_at)
