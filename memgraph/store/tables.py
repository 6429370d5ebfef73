"""The tables of ``memgraph.model.tables``, under short names, for use in statements."""

from __future__ import annotations

from memgraph.model.tables import metadata as _schema

aliases = _schema.tables["entity_aliases"]
audit_log = _schema.tables["audit_log"]
bulletins = _schema.tables["bulletins"]
comparisons = _schema.tables["memory_comparisons"]
derivations = _schema.tables["memory_derivations"]
document_keys = _schema.tables["ingest_document_keys"]
edges = _schema.tables["memory_edges"]
embeddings = _schema.tables["memory_embeddings"]
entities = _schema.tables["entities"]
files = _schema.tables["ingest_files"]
job_runs = _schema.tables["job_runs"]
links = _schema.tables["memory_entities"]
memories = _schema.tables["memories"]
metadata = _schema.tables["memory_metadata"]
pending_links = _schema.tables["ingest_pending_links"]
recall_items = _schema.tables["recall_items"]
recalls = _schema.tables["recalls"]
sessions = _schema.tables["sessions"]
sources = _schema.tables["memory_sources"]
statuses = _schema.tables["memory_status"]
supports = _schema.tables["memory_supports"]
table_digests = _schema.tables["table_digests"]
vector_changes = _schema.tables["memory_vector_changes"]
