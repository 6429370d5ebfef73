"""The tables of ``memgraph.model.tables`` for use in statements, loaded at the first access."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlalchemy as sa

aliases: sa.Table
audit_log: sa.Table
bulletins: sa.Table
comparisons: sa.Table
derivations: sa.Table
document_keys: sa.Table
edges: sa.Table
embeddings: sa.Table
entities: sa.Table
file_parts: sa.Table
files: sa.Table
job_runs: sa.Table
leases: sa.Table
links: sa.Table
memories: sa.Table
metadata: sa.Table
pending_links: sa.Table
recall_items: sa.Table
recalls: sa.Table
sessions: sa.Table
sources: sa.Table
statuses: sa.Table
supports: sa.Table
table_digests: sa.Table
vector_changes: sa.Table

# The tables whose names in the database differ from those here.
_NAMES = {
    "aliases": "entity_aliases",
    "comparisons": "memory_comparisons",
    "derivations": "memory_derivations",
    "document_keys": "ingest_document_keys",
    "edges": "memory_edges",
    "embeddings": "memory_embeddings",
    "file_parts": "ingest_parts",
    "files": "ingest_files",
    "links": "memory_entities",
    "metadata": "memory_metadata",
    "pending_links": "ingest_pending_links",
    "sources": "memory_sources",
    "statuses": "memory_status",
    "supports": "memory_supports",
    "vector_changes": "memory_vector_changes",
}


def __getattr__(name: str) -> sa.Table:
    if name not in __annotations__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from memgraph.model.tables import metadata as schema

    table = schema.tables[_NAMES.get(name, name)]
    globals()[name] = table
    return table
