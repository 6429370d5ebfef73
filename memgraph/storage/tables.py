"""The tables as SQLAlchemy Core sees them.

They are made when one is first used: building SQLModel's classes takes 0.3 s, which a process that
only recalls need not pay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlalchemy as sa

    aliases: sa.Table
    audit_log: sa.Table
    comparisons: sa.Table
    derivations: sa.Table
    document_keys: sa.Table
    echo_lines: sa.Table
    echo_pending: sa.Table
    edge_revisions: sa.Table
    edges: sa.Table
    embeddings: sa.Table
    entities: sa.Table
    event_cursors: sa.Table
    event_failures: sa.Table
    events: sa.Table
    files: sa.Table
    idempotency_keys: sa.Table
    job_runs: sa.Table
    leases: sa.Table
    links: sa.Table
    memories: sa.Table
    metadata: sa.Table
    pending_links: sa.Table
    revisions: sa.Table
    sessions: sa.Table
    source_trust: sa.Table
    sources: sa.Table
    statuses: sa.Table
    supports: sa.Table

_NAMES = {
    "aliases": "entity_aliases",
    "audit_log": "audit_log",
    "comparisons": "memory_comparisons",
    "derivations": "memory_derivations",
    "document_keys": "ingest_document_keys",
    "echo_lines": "echo_lines",
    "echo_pending": "echo_pending",
    "edge_revisions": "memory_edge_revisions",
    "edges": "memory_edges",
    "embeddings": "memory_embeddings",
    "entities": "entities",
    "event_cursors": "event_cursors",
    "event_failures": "event_failures",
    "events": "events",
    "files": "ingest_files",
    "file_parts": "ingest_parts",
    "idempotency_keys": "idempotency_keys",
    "job_runs": "job_runs",
    "leases": "leases",
    "links": "memory_entities",
    "memories": "memories",
    "metadata": "memory_metadata",
    "pending_links": "ingest_pending_links",
    "revisions": "memory_revisions",
    "sessions": "sessions",
    "source_trust": "source_trust",
    "sources": "memory_sources",
    "statuses": "memory_status",
    "supports": "memory_supports",
}


def __getattr__(name: str) -> sa.Table:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from memgraph.model.tables import metadata as schema

    table = schema.tables[_NAMES[name]]
    globals()[name] = table
    return table
