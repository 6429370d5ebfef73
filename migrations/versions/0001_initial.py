"""The tables, indexes and triggers of an orchestrator in a file.

In PostgreSQL ``store/postgres/schema.py`` creates them from the models.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

revision = "0001_dd02dbd6"
down_revision = None
branch_labels = None
depends_on = None

TEXT_COLUMNS = "content, source_role, tags, search_terms"
REMOVE_TEXT = f"""
    INSERT INTO memory_fts (memory_fts, rowid, {TEXT_COLUMNS})
    VALUES ('delete', old.pk, old.content, old.source_role, old.tags, old.search_terms);
"""
ADD_TEXT = f"""
    INSERT INTO memory_fts (rowid, {TEXT_COLUMNS})
    VALUES (new.pk, new.content, new.source_role, new.tags, new.search_terms);
"""
INDEXED = ("content", "source_role", "tags", "search_terms", "scope", "scope_id", "sensitivity")
# The index has no text of its own: triggers change it with the table, in every transaction. A row
# that changes in an indexed column is read again until the segment that has its key is rewritten.
TEXT_INDEX = (
    f"""
    CREATE VIRTUAL TABLE memory_fts USING fts5(
        {TEXT_COLUMNS}, content='memories', content_rowid='pk',
        tokenize='porter unicode61 remove_diacritics 2'
    )
    """,
    f"CREATE TRIGGER memory_fts_insert AFTER INSERT ON memories BEGIN {ADD_TEXT} END",
    f"CREATE TRIGGER memory_fts_delete AFTER DELETE ON memories BEGIN {REMOVE_TEXT} END",
    f"""
    CREATE TRIGGER memory_fts_update AFTER UPDATE OF {TEXT_COLUMNS} ON memories
    BEGIN {REMOVE_TEXT} {ADD_TEXT} END
    """,
    f"""
    CREATE TRIGGER text_changes_update AFTER UPDATE OF {", ".join(INDEXED)} ON memories
    WHEN {" OR ".join(f"old.{column} IS NOT new.{column}" for column in INDEXED)}
    BEGIN INSERT OR REPLACE INTO text_changes (pk) VALUES (new.pk); END
    """,
    """
    CREATE TRIGGER text_changes_delete AFTER DELETE ON memories
    BEGIN INSERT OR REPLACE INTO text_changes (pk) VALUES (old.pk); END
    """,
)

# What the design documents call these tables; views cannot be written.
VIEWS = {
    "memory_items": """
        SELECT m.memory_id AS memory_item_id, m.agent_id,
            CASE m.kind WHEN 'episode' THEN 'EpisodicMemory' ELSE 'SemanticMemory' END AS tier,
            CASE m.scope WHEN 'session' THEN 'SessionScope' WHEN 'project' THEN 'ProjectScope'
                ELSE 'GlobalScope' END AS scope,
            CASE s.captured_by WHEN 'user' THEN 'UserSource' WHEN 'system' THEN 'SystemSource'
                ELSE 'AgentSource' END AS source,
            m.content, json_extract(m.attributes, '$.metadata_json') AS metadata_json,
            m.turn_id AS generated_by_turn_id, m.session_id, m.sensitivity, m.created_at,
            m.updated_at
        FROM memories AS m JOIN memory_sources AS s ON s.source_id = m.source_id
        WHERE m.agent_id IS NOT NULL AND m.status = 'active'
    """,
    "vec_memories": """
        SELECT m.memory_id, e.vector AS embedding
        FROM memory_embeddings AS e JOIN memories AS m ON m.pk = e.memory_pk
        WHERE e.state = 'ready'
    """,
    "sessions_consolidations": ("SELECT session_id, first_seen_at, consolidated_at FROM sessions"),
}


def choice(name: str, values: str) -> sa.Enum:
    return sa.Enum(*values.split(), name=name, native_enum=False, create_constraint=True)


def upgrade() -> None:
    op.create_table(
        "audit_log",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text()),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("state", sa.Text()),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_audit_log")),
    )
    op.create_index("ix_audit_log_at", "audit_log", ["at", "action"])
    op.create_index("ix_audit_log_subject", "audit_log", ["subject"])
    op.create_table(
        "bulletins",
        sa.Column("bulletin_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Integer(), nullable=False),
        sa.Column("change_seq", sa.Integer(), nullable=False),
        sa.Column("view_key", sa.Text(), nullable=False),
        sa.Column("viewer", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("memory_ids", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("bulletin_id", name=op.f("pk_bulletins")),
    )
    op.create_index("ix_bulletins_view_key", "bulletins", ["view_key", "created_at", "bulletin_id"])
    op.create_table(
        "entities",
        sa.Column("pk", sa.Integer(), nullable=False),
        sa.Column("entity_id", sa.Text(), nullable=False),
        sa.Column("canonical_name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column("last_name", sa.Text()),
        sa.Column(
            "type",
            choice(
                "type", "person project organization location email url date hashtag mention other"
            ),
            nullable=False,
        ),
        sa.Column("summary", sa.Text()),
        sa.Column("mention_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("protected", sa.Boolean(), server_default="0", nullable=False),
        sa.Column("created_at", sa.Integer(), nullable=False),
        sa.Column("merged_into", sa.Text()),
        sa.Column("type_provider", sa.Text()),
        sa.Column("type_confidence", sa.Float()),
        sa.CheckConstraint("mention_count >= 0", name=op.f("ck_entities_mention_count")),
        sa.PrimaryKeyConstraint("pk", name=op.f("pk_entities")),
        sa.UniqueConstraint("entity_id", name=op.f("uq_entities_entity_id")),
        sa.UniqueConstraint("name_key", "type", name=op.f("uq_entities_name_key_type")),
    )
    op.create_index(
        "ix_entities_last_name",
        "entities",
        ["last_name"],
        sqlite_where=sa.text("last_name IS NOT NULL"),
    )
    op.create_index(
        "ix_entities_merged_into",
        "entities",
        ["merged_into"],
        sqlite_where=sa.text("merged_into IS NOT NULL"),
    )
    op.create_table(
        "ingest_files",
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("status", choice("status", "processed rejected"), nullable=False),
        sa.Column("manifest", sa.Text(), nullable=False),
        sa.Column("recorded_at", sa.Integer(), nullable=False),
        sa.CheckConstraint("json_valid(manifest)", name=op.f("ck_ingest_files_manifest")),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_ingest_files")),
    )
    op.create_index(
        "ix_ingest_files_rejected",
        "ingest_files",
        ["recorded_at"],
        sqlite_where=sa.text("status = 'rejected'"),
    )
    op.create_table(
        "ingest_parts",
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("outcomes", sa.Text(), nullable=False),
        sa.Column("stored_at", sa.Integer(), nullable=False),
        sa.CheckConstraint("json_valid(outcomes)", name=op.f("ck_ingest_parts_outcomes")),
        sa.PrimaryKeyConstraint("sha256", "part", name=op.f("pk_ingest_parts")),
    )
    op.create_table(
        "job_runs",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text()),
        sa.Column("trigger", sa.Text(), nullable=False),
        sa.Column("due_at", sa.Integer()),
        sa.Column("started_at", sa.Integer(), nullable=False),
        sa.Column("ended_at", sa.Integer()),
        sa.Column(
            "state", choice("state", "running done skipped failed abandoned"), nullable=False
        ),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("renewed_at", sa.Integer()),
        sa.Column("counts", sa.Text(), server_default="{}", nullable=False),
        sa.Column("rejected", sa.Text(), server_default="[]", nullable=False),
        sa.Column("error_code", sa.Text()),
        sa.Column("reason", sa.Text()),
        sa.CheckConstraint(
            "(state = 'running') = (ended_at IS NULL)", name=op.f("ck_job_runs_ended")
        ),
        sa.CheckConstraint(
            "json_valid(counts) AND json_valid(rejected)", name=op.f("ck_job_runs_json")
        ),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_job_runs")),
    )
    op.create_index("ix_job_runs_job_started_at", "job_runs", ["job", "started_at"])
    op.create_table(
        "memory_metadata",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_memory_metadata")),
    )
    op.create_table(
        "memory_sources",
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column(
            "source_type",
            choice(
                "source_type", "workflow_output channel_transcript ingest_file diagnostics manual"
            ),
            nullable=False,
        ),
        sa.Column("source_path", sa.Text()),
        sa.Column("conversation_id", sa.Text()),
        sa.Column("workflow_run_id", sa.Text()),
        sa.Column("step_id", sa.Text()),
        sa.Column("captured_by", choice("captured_by", "extractor user system"), nullable=False),
        sa.Column("locator", sa.Text()),
        sa.Column("content_sha256", sa.Text()),
        sa.PrimaryKeyConstraint("source_id", name=op.f("pk_memory_sources")),
    )
    op.create_index("ix_memory_sources_content_sha256", "memory_sources", ["content_sha256"])
    op.create_index(
        "ix_memory_sources_conversation_id",
        "memory_sources",
        ["conversation_id"],
        sqlite_where=sa.text("conversation_id IS NOT NULL"),
    )
    op.create_index(
        "ix_memory_sources_source_path",
        "memory_sources",
        ["source_path"],
        sqlite_where=sa.text("source_path IS NOT NULL"),
    )
    op.create_index(
        "ix_memory_sources_workflow_run_id",
        "memory_sources",
        ["workflow_run_id"],
        sqlite_where=sa.text("workflow_run_id IS NOT NULL"),
    )
    op.create_table(
        "memory_vector_changes",
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("first_pk", sa.Integer(), nullable=False),
        sa.Column("last_pk", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("version", name=op.f("pk_memory_vector_changes")),
    )
    op.create_table(
        "recalls",
        sa.Column("recall_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Integer(), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("purpose", sa.Text()),
        sa.Column("actor", sa.Text()),
        sa.Column("conversation_id", sa.Text()),
        sa.Column("workflow_run_id", sa.Text()),
        sa.Column("step_id", sa.Text()),
        sa.Column("query_sha256", sa.Text()),
        sa.Column("change_seq", sa.Integer()),
        sa.Column("viewer", sa.Text()),
        sa.Column("left_out", sa.Text()),
        sa.Column("sha256", sa.Text()),
        sa.Column("same_as", sa.Text()),
        sa.Column("bulletin_id", sa.Text()),
        sa.Column("answer", sa.Text()),
        sa.PrimaryKeyConstraint("recall_id", name=op.f("pk_recalls")),
    )
    op.create_index(
        "ix_recalls_bulletin_id",
        "recalls",
        ["bulletin_id"],
        sqlite_where=sa.text("bulletin_id IS NOT NULL"),
    )
    op.create_index(
        "ix_recalls_conversation_id",
        "recalls",
        ["conversation_id", "created_at"],
        sqlite_where=sa.text("conversation_id IS NOT NULL"),
    )
    op.create_index("ix_recalls_created_at", "recalls", ["created_at", "recall_id"])
    op.create_index(
        "ix_recalls_same_as",
        "recalls",
        ["same_as", "created_at"],
        sqlite_where=sa.text("same_as IS NOT NULL"),
    )
    op.create_index(
        "ix_recalls_workflow_run_id",
        "recalls",
        ["workflow_run_id", "created_at"],
        sqlite_where=sa.text("workflow_run_id IS NOT NULL"),
    )
    op.create_table(
        "sessions",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("first_seen_at", sa.Integer(), nullable=False),
        sa.Column("last_seen_at", sa.Integer(), nullable=False),
        sa.Column("next_sequence", sa.Integer(), server_default="0", nullable=False),
        sa.Column("completed_at", sa.Integer()),
        sa.Column("consolidated_at", sa.Integer()),
        sa.Column("consolidated_through", sa.Text()),
        sa.Column("labelled_after", sa.Text()),
        sa.PrimaryKeyConstraint("session_id", name=op.f("pk_sessions")),
    )
    op.create_index("ix_sessions_last_seen_at", "sessions", ["last_seen_at", "session_id"])
    op.create_index(
        "ix_sessions_open",
        "sessions",
        ["first_seen_at", "session_id"],
        sqlite_where=sa.text("completed_at IS NULL AND consolidated_at IS NULL"),
    )
    op.create_index(
        "ix_sessions_pending",
        "sessions",
        ["last_seen_at", "session_id"],
        sqlite_where=sa.text("consolidated_at IS NULL"),
    )
    op.create_table(
        "table_digests",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_table_digests")),
    )
    op.create_table(
        "entity_aliases",
        sa.Column("alias_key", sa.Text(), nullable=False),
        sa.Column("entity_pk", sa.Integer(), nullable=False),
        sa.Column("alias", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["entity_pk"], ["entities.pk"], name=op.f("fk_entity_aliases_entity_pk")
        ),
        sa.PrimaryKeyConstraint("alias_key", "entity_pk", name=op.f("pk_entity_aliases")),
    )
    op.create_table(
        "memories",
        sa.Column("pk", sa.Integer(), nullable=False),
        sa.Column("memory_id", sa.Text(), nullable=False),
        sa.Column("orchestrator_id", sa.Text(), nullable=False),
        sa.Column("kind", choice("kind", "episode fact reflection"), nullable=False),
        sa.Column(
            "type",
            choice("type", "Fact Preference Decision Identity Event Observation Goal Todo"),
            nullable=False,
        ),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("importance", sa.Integer(), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column(
            "status",
            sa.Enum(
                "active", "superseded", "retracted", "erased", name="status", native_enum=False
            ),
            nullable=False,
        ),
        sa.Column(
            "sensitivity",
            choice("sensitivity", "Public Internal Confidential Restricted"),
            nullable=False,
        ),
        sa.Column("scope", choice("scope", "session project global"), nullable=False),
        sa.Column("scope_id", sa.Text()),
        sa.Column("agent_id", sa.Text()),
        sa.Column("session_id", sa.Text()),
        sa.Column("sequence", sa.Integer()),
        sa.Column("turn_id", sa.Text()),
        sa.Column("item_id", sa.Text()),
        sa.Column("source_role", sa.Text()),
        sa.Column("event_time", sa.Integer()),
        sa.Column("created_at", sa.Integer(), nullable=False),
        sa.Column("updated_at", sa.Integer(), nullable=False),
        sa.Column("valid_until", sa.Integer()),
        sa.Column("access_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("last_accessed_at", sa.Integer()),
        sa.Column("decay_rate", sa.Float(), nullable=False),
        sa.Column("tags", sa.Text(), server_default="[]", nullable=False),
        sa.Column("attributes", sa.Text(), server_default="{}", nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("token_cost", sa.Integer(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("search_terms", sa.Text()),
        sa.CheckConstraint(
            "(scope = 'global') = (scope_id IS NULL)", name=op.f("ck_memories_scope_id")
        ),
        sa.CheckConstraint(
            "length(content) > 0 OR status = 'retracted'", name=op.f("ck_memories_content")
        ),
        sa.CheckConstraint(
            "status IN ('active', 'superseded', 'retracted')", name=op.f("ck_memories_status")
        ),
        sa.CheckConstraint("access_count >= 0", name=op.f("ck_memories_access_count")),
        sa.CheckConstraint("confidence BETWEEN 0 AND 1", name=op.f("ck_memories_confidence")),
        sa.CheckConstraint("decay_rate >= 0", name=op.f("ck_memories_decay_rate")),
        sa.CheckConstraint("importance BETWEEN 0 AND 100", name=op.f("ck_memories_importance")),
        sa.CheckConstraint(
            "json_valid(tags) AND json_valid(attributes)", name=op.f("ck_memories_json")
        ),
        sa.CheckConstraint("token_cost >= 0", name=op.f("ck_memories_token_cost")),
        sa.ForeignKeyConstraint(
            ["source_id"], ["memory_sources.source_id"], name=op.f("fk_memories_source_id")
        ),
        sa.PrimaryKeyConstraint("pk", name=op.f("pk_memories")),
        sa.UniqueConstraint("memory_id", name=op.f("uq_memories_memory_id")),
    )
    op.create_index(
        "ix_memories_agent_id",
        "memories",
        ["agent_id", "status", "pk"],
        sqlite_where=sa.text("agent_id IS NOT NULL"),
    )
    op.create_index(
        "ix_memories_content_hash",
        "memories",
        ["content_hash"],
        sqlite_where=sa.text("kind <> 'episode'"),
    )
    op.create_index(
        "ix_memories_decisions",
        "memories",
        ["event_time", "created_at", "pk", "sensitivity", "scope", "scope_id", "agent_id"],
        sqlite_where=sa.text("status = 'active' AND type = 'Decision'"),
    )
    op.create_index(
        "ix_memories_item_id", "memories", ["item_id"], sqlite_where=sa.text("item_id IS NOT NULL")
    )
    op.create_index(
        "ix_memories_knowledge",
        "memories",
        ["importance", "created_at", "pk", "sensitivity", "scope", "scope_id", "agent_id"],
        sqlite_where=sa.text(
            "status = 'active' AND kind <> 'episode'"
            " AND type IN ('Fact', 'Identity', 'Observation', 'Event')"
        ),
    )
    op.create_index(
        "ix_memories_open_todos",
        "memories",
        ["importance", "created_at", "pk", "sensitivity", "scope", "scope_id", "agent_id"],
        sqlite_where=sa.text(
            "status = 'active' AND type = 'Todo' AND instr(tags, '\"done\"') = 0"
            " AND json_extract(attributes, '$.done') IS NOT 1"
        ),
    )
    op.create_index(
        "ix_memories_scope",
        "memories",
        [
            "scope",
            "scope_id",
            "status",
            "importance",
            "created_at",
            "pk",
            "type",
            "sensitivity",
            "agent_id",
        ],
        sqlite_where=sa.text("scope <> 'global' AND kind <> 'episode'"),
    )
    op.create_index("ix_memories_session_id_sequence", "memories", ["session_id", "sequence"])
    op.create_index("ix_memories_source_id", "memories", ["source_id"])
    op.create_index(
        "ix_memories_turn_id",
        "memories",
        ["session_id", "turn_id"],
        sqlite_where=sa.text("turn_id IS NOT NULL AND kind = 'episode'"),
    )
    op.create_index(
        "ix_memories_type_status",
        "memories",
        [
            "type",
            "status",
            "importance",
            "created_at",
            "pk",
            "sensitivity",
            "scope",
            "scope_id",
            "agent_id",
        ],
    )
    op.create_index(
        "ix_memories_uncertain",
        "memories",
        ["confidence", "created_at", "pk", "sensitivity", "scope", "scope_id", "agent_id"],
        sqlite_where=sa.text("status = 'active' AND kind <> 'episode' AND confidence < 0.5"),
    )
    op.create_table(
        "ingest_document_keys",
        sa.Column("document_key", sa.Text(), nullable=False),
        sa.Column("memory_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["memory_id"], ["memories.memory_id"], name=op.f("fk_ingest_document_keys_memory_id")
        ),
        sa.PrimaryKeyConstraint("document_key", "memory_id", name=op.f("pk_ingest_document_keys")),
    )
    op.create_table(
        "ingest_pending_links",
        sa.Column("link_id", sa.Integer(), nullable=False),
        sa.Column("memory_id", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column(
            "edge_type",
            choice("edge_type", "RelatedTo Updates Contradicts CausedBy PartOf"),
            nullable=False,
        ),
        sa.Column("outgoing", sa.Boolean(), nullable=False),
        sa.Column("weight", sa.Float(), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("partial", sa.Boolean(), server_default="0", nullable=False),
        sa.CheckConstraint("weight BETWEEN 0 AND 1", name=op.f("ck_ingest_pending_links_weight")),
        sa.ForeignKeyConstraint(
            ["memory_id"], ["memories.memory_id"], name=op.f("fk_ingest_pending_links_memory_id")
        ),
        sa.PrimaryKeyConstraint("link_id", name=op.f("pk_ingest_pending_links")),
        sa.UniqueConstraint(
            "memory_id",
            "target",
            "edge_type",
            "outgoing",
            name=op.f("uq_ingest_pending_links_memory_id_target_edge_type_outgoing"),
        ),
    )
    op.create_index("ix_ingest_pending_links_target", "ingest_pending_links", ["target"])
    op.create_table(
        "memory_comparisons",
        sa.Column("memory_pk", sa.Integer(), nullable=False),
        sa.Column("stage", choice("stage", "reader model"), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("next_attempt_at", sa.Integer(), server_default="0", nullable=False),
        sa.Column("error_code", sa.Text()),
        sa.Column("known", sa.Text()),
        sa.CheckConstraint("attempts >= 0", name=op.f("ck_memory_comparisons_attempts")),
        sa.ForeignKeyConstraint(
            ["memory_pk"], ["memories.pk"], name=op.f("fk_memory_comparisons_memory_pk")
        ),
        sa.PrimaryKeyConstraint("memory_pk", name=op.f("pk_memory_comparisons")),
    )
    op.create_table(
        "memory_derivations",
        sa.Column("memory_id", sa.Text(), nullable=False),
        sa.Column("derived_from_id", sa.Text(), nullable=False),
        sa.Column("added_at", sa.Integer()),
        sa.CheckConstraint(
            "memory_id <> derived_from_id", name=op.f("ck_memory_derivations_not_from_itself")
        ),
        sa.ForeignKeyConstraint(
            ["derived_from_id"],
            ["memories.memory_id"],
            name=op.f("fk_memory_derivations_derived_from_id"),
        ),
        sa.ForeignKeyConstraint(
            ["memory_id"], ["memories.memory_id"], name=op.f("fk_memory_derivations_memory_id")
        ),
        sa.PrimaryKeyConstraint("memory_id", "derived_from_id", name=op.f("pk_memory_derivations")),
    )
    op.create_index(
        "ix_memory_derivations_derived_from_id", "memory_derivations", ["derived_from_id"]
    )
    op.create_table(
        "memory_edges",
        sa.Column("edge_id", sa.Text(), nullable=False),
        sa.Column("from_memory_id", sa.Text(), nullable=False),
        sa.Column("to_memory_id", sa.Text(), nullable=False),
        sa.Column(
            "edge_type",
            choice("edge_type", "RelatedTo Updates Contradicts CausedBy PartOf"),
            nullable=False,
        ),
        sa.Column("weight", sa.Float(), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("partial", sa.Boolean(), server_default="0", nullable=False),
        sa.Column("created_at", sa.Integer(), nullable=False),
        sa.Column("resolved_at", sa.Integer()),
        sa.Column("resolution", sa.Text()),
        sa.Column("changed_at", sa.Integer()),
        sa.CheckConstraint(
            "(resolved_at IS NULL) = (resolution IS NULL)",
            name=op.f("ck_memory_edges_resolved_with_resolution"),
        ),
        sa.CheckConstraint(
            "from_memory_id <> to_memory_id", name=op.f("ck_memory_edges_no_self_edge")
        ),
        sa.CheckConstraint("weight BETWEEN 0 AND 1", name=op.f("ck_memory_edges_weight")),
        sa.ForeignKeyConstraint(
            ["from_memory_id"], ["memories.memory_id"], name=op.f("fk_memory_edges_from_memory_id")
        ),
        sa.ForeignKeyConstraint(
            ["to_memory_id"], ["memories.memory_id"], name=op.f("fk_memory_edges_to_memory_id")
        ),
        sa.PrimaryKeyConstraint("edge_id", name=op.f("pk_memory_edges")),
        sa.UniqueConstraint(
            "edge_type",
            "from_memory_id",
            "to_memory_id",
            name=op.f("uq_memory_edges_edge_type_from_memory_id_to_memory_id"),
        ),
    )
    op.create_index(
        "ix_memory_edges_contradictions",
        "memory_edges",
        ["resolved_at", "created_at", "edge_id"],
        sqlite_where=sa.text(
            "edge_type = 'Contradicts' OR (edge_type = 'Updates'"
            " AND (weight < 1.0 OR resolved_at IS NOT NULL))"
        ),
    )
    op.create_index(
        "ix_memory_edges_from_strongest",
        "memory_edges",
        ["from_memory_id", "weight", "created_at", "edge_id"],
    )
    op.create_index(
        "ix_memory_edges_grounds",
        "memory_edges",
        ["from_memory_id", "to_memory_id", "edge_type", "edge_id", "created_at"],
        sqlite_where=sa.text("edge_type IN ('CausedBy', 'PartOf')"),
    )
    op.create_index(
        "ix_memory_edges_successor",
        "memory_edges",
        ["to_memory_id"],
        unique=True,
        sqlite_where=sa.text("edge_type = 'Updates' AND weight >= 1.0 AND NOT partial"),
    )
    op.create_index("ix_memory_edges_to_memory_id", "memory_edges", ["to_memory_id", "edge_type"])
    op.create_index(
        "ix_memory_edges_to_strongest",
        "memory_edges",
        ["to_memory_id", "weight", "created_at", "edge_id"],
    )
    op.create_table(
        "memory_edge_states",
        sa.Column("edge_id", sa.Text(), nullable=False),
        sa.Column("since", sa.Integer(), nullable=False),
        sa.Column("until", sa.Integer(), nullable=False),
        sa.Column("weight", sa.Float(), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("partial", sa.Boolean(), nullable=False),
        sa.Column("resolved_at", sa.Integer()),
        sa.Column("resolution", sa.Text()),
        sa.CheckConstraint("until > since", name=op.f("ck_memory_edge_states_until")),
        sa.CheckConstraint(
            "(resolved_at IS NULL) = (resolution IS NULL)",
            name=op.f("ck_memory_edge_states_resolved_with_resolution"),
        ),
        sa.ForeignKeyConstraint(
            ["edge_id"], ["memory_edges.edge_id"], name=op.f("fk_memory_edge_states_edge_id")
        ),
        sa.PrimaryKeyConstraint("edge_id", "since", name=op.f("pk_memory_edge_states")),
    )
    op.create_table(
        "memory_embeddings",
        sa.Column("memory_pk", sa.Integer(), nullable=False),
        sa.Column("vector", sa.LargeBinary()),
        sa.Column("model", sa.Text()),
        sa.Column("dimensions", sa.Integer()),
        sa.Column("state", choice("state", "pending ready failed"), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("next_attempt_at", sa.Integer(), server_default="0", nullable=False),
        sa.Column("error_code", sa.Text()),
        sa.Column("visibility", sa.Integer(), server_default="-1", nullable=False),
        sa.CheckConstraint(
            "(state = 'ready') = (vector IS NOT NULL)",
            name=op.f("ck_memory_embeddings_ready_has_vector"),
        ),
        sa.CheckConstraint("attempts >= 0", name=op.f("ck_memory_embeddings_attempts")),
        sa.ForeignKeyConstraint(
            ["memory_pk"], ["memories.pk"], name=op.f("fk_memory_embeddings_memory_pk")
        ),
        sa.PrimaryKeyConstraint("memory_pk", name=op.f("pk_memory_embeddings")),
    )
    op.create_index(
        "ix_memory_embeddings_outbox",
        "memory_embeddings",
        ["state", "next_attempt_at"],
        sqlite_where=sa.text("state <> 'ready'"),
    )
    op.create_table(
        "memory_entities",
        sa.Column("entity_pk", sa.Integer(), nullable=False),
        sa.Column("memory_pk", sa.Integer(), nullable=False),
        sa.Column("names", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["entity_pk"], ["entities.pk"], name=op.f("fk_memory_entities_entity_pk")
        ),
        sa.ForeignKeyConstraint(
            ["memory_pk"], ["memories.pk"], name=op.f("fk_memory_entities_memory_pk")
        ),
        sa.PrimaryKeyConstraint("entity_pk", "memory_pk", name=op.f("pk_memory_entities")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_memory_entities_memory_pk", "memory_entities", ["memory_pk"])
    op.create_table(
        "memory_status",
        sa.Column("status_id", sa.Integer(), nullable=False),
        sa.Column("memory_id", sa.Text(), nullable=False),
        sa.Column(
            "status",
            sa.Enum(
                "active", "superseded", "retracted", "erased", name="status", native_enum=False
            ),
            nullable=False,
        ),
        sa.Column("since", sa.Integer(), nullable=False),
        sa.Column("until", sa.Integer()),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.CheckConstraint(
            "status IN ('active', 'superseded', 'retracted')", name=op.f("ck_memory_status_status")
        ),
        sa.CheckConstraint("until IS NULL OR until >= since", name=op.f("ck_memory_status_until")),
        sa.ForeignKeyConstraint(
            ["memory_id"], ["memories.memory_id"], name=op.f("fk_memory_status_memory_id")
        ),
        sa.PrimaryKeyConstraint("status_id", name=op.f("pk_memory_status")),
    )
    op.create_index("ix_memory_status_memory_id", "memory_status", ["memory_id", "since"])
    op.create_index(
        "ix_memory_status_not_active",
        "memory_status",
        ["memory_id", "since", "until"],
        sqlite_where=sa.text("status <> 'active'"),
    )
    op.create_index("ix_memory_status_since", "memory_status", ["since", "status", "memory_id"])
    op.create_table(
        "memory_supports",
        sa.Column("memory_id", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("added_at", sa.Integer(), nullable=False),
        sa.Column("ended_at", sa.Integer()),
        sa.ForeignKeyConstraint(
            ["memory_id"], ["memories.memory_id"], name=op.f("fk_memory_supports_memory_id")
        ),
        sa.ForeignKeyConstraint(
            ["source_id"], ["memory_sources.source_id"], name=op.f("fk_memory_supports_source_id")
        ),
        sa.PrimaryKeyConstraint("memory_id", "source_id", name=op.f("pk_memory_supports")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_memory_supports_source_id", "memory_supports", ["source_id"])
    op.create_table(
        "recall_items",
        sa.Column("recall_id", sa.Text(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("memory_id", sa.Text(), nullable=False),
        sa.Column("score", sa.Float(), nullable=False),
        sa.Column("explanation", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["memory_id"], ["memories.memory_id"], name=op.f("fk_recall_items_memory_id")
        ),
        sa.ForeignKeyConstraint(
            ["recall_id"], ["recalls.recall_id"], name=op.f("fk_recall_items_recall_id")
        ),
        sa.PrimaryKeyConstraint("recall_id", "rank", name=op.f("pk_recall_items")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_recall_items_memory_id", "recall_items", ["memory_id"])
    op.create_table(
        "text_segments",
        sa.Column("segment", sa.Integer(), nullable=False),
        sa.Column("stamp", sa.Integer(), nullable=False),
        sa.Column("first_pk", sa.Integer(), nullable=False),
        sa.Column("documents", sa.Integer(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("lengths", sa.LargeBinary(), nullable=False),
        sa.Column("marks", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("segment", name=op.f("pk_text_segments")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "text_postings",
        sa.Column("segment", sa.Integer(), nullable=False),
        sa.Column("term", sa.Text(), nullable=False),
        sa.Column("postings", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("segment", "term", name=op.f("pk_text_postings")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "text_changes",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("pk", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_text_changes")),
        sa.UniqueConstraint("pk", name=op.f("uq_text_changes_pk")),
        sqlite_autoincrement=True,
    )
    for statement in TEXT_INDEX:
        op.execute(statement)
    for name, query in VIEWS.items():
        op.execute(f"CREATE VIEW {name} AS {query}")


def downgrade() -> None:
    raise CommandError("nothing is before the first schema: to drop every memory, delete the file")
