"""The tables, for use in statements: those of ``memgraph.model.tables``, and the postings."""

from __future__ import annotations

import sqlalchemy as sa

from memgraph.model.tables import metadata as _schema

aliases = _schema.tables["entity_aliases"]
audit_log = _schema.tables["audit_log"]
bulletins = _schema.tables["bulletins"]
comparisons = _schema.tables["memory_comparisons"]
derivations = _schema.tables["memory_derivations"]
document_keys = _schema.tables["ingest_document_keys"]
edge_states = _schema.tables["memory_edge_states"]
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

# The tables of the postings (see ``postings``): no class reads them as objects.
postings_schema = sa.MetaData()

text_segments = sa.Table(
    "text_segments",
    postings_schema,
    sa.Column("segment", sa.Integer, primary_key=True),
    sa.Column("stamp", sa.Integer, nullable=False),
    sa.Column("first_pk", sa.Integer, nullable=False),
    sa.Column("documents", sa.Integer, nullable=False),
    sa.Column("tokens", sa.Integer, nullable=False),
    sa.Column("lengths", sa.LargeBinary, nullable=False),
    sa.Column("marks", sa.LargeBinary, nullable=False),
)
text_postings = sa.Table(
    "text_postings",
    postings_schema,
    sa.Column("segment", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("term", sa.Text, primary_key=True),
    sa.Column("postings", sa.LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
text_changes = sa.Table(
    "text_changes",
    postings_schema,
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("pk", sa.Integer, nullable=False, unique=True),
)
