"""What was, and why: receipts with their grounds, values that were, trust in sources"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

RECEIPT_COLUMNS = (
    ("purpose", sa.Text),
    ("actor", sa.Text),
    ("conversation_id", sa.Text),
    ("workflow_run_id", sa.Text),
    ("step_id", sa.Text),
    ("query_sha256", sa.Text),
    ("change_seq", sa.Integer),
    ("viewer", sa.Text),
    ("settings_sha256", sa.Text),
    ("left_out", sa.Text),
    ("sha256", sa.Text),
    ("same_as", sa.Text),
    ("bulletin_id", sa.Text),
)
# What older receipts say in their requests alone. The conversation that a plain recall names is a
# filter, not who asks.
SAID = """
    UPDATE recalls SET
        purpose = coalesce(json_extract(request, '$.purpose'), 'recall'),
        workflow_run_id = json_extract(request, '$.workflow_run_id'),
        step_id = json_extract(request, '$.step_id'),
        query_sha256 = json_extract(request, '$.query_sha256'),
        sha256 = json_extract(request, '$.sha256'),
        conversation_id = CASE WHEN json_extract(request, '$.purpose') IS NOT NULL THEN coalesce(
            json_extract(request, '$.conversation_id'),
            json_extract(request, '$.exclude_session_id')) END
"""
# Indexes over rows that have the column at all.
PARTIAL = (
    ("ix_recalls_conversation_id", "recalls", ["conversation_id", "created_at"]),
    ("ix_recalls_workflow_run_id", "recalls", ["workflow_run_id", "created_at"]),
    ("ix_recalls_bulletin_id", "recalls", ["bulletin_id"]),
    ("ix_recalls_same_as", "recalls", ["same_as", "created_at"]),
    ("ix_memory_sources_source_path", "memory_sources", ["source_path"]),
    ("ix_memory_sources_conversation_id", "memory_sources", ["conversation_id"]),
    ("ix_memory_sources_workflow_run_id", "memory_sources", ["workflow_run_id"]),
)
# Endings that were no housekeeping: see memgraph.rules.lifecycle.
REFUTING = (
    "status <> 'active'"
    " AND coalesce(reason, '') NOT IN ('cleared', 'decayed', 'evicted', 'task_closed')"
)
# Counting an access changes none of these columns and leaves no revision. Neither does an end that
# reading put off, which sets no updated_at, nor the stamp that a memory was enriched.
KEEP_REVISION = """
    CREATE TRIGGER memory_revisions_keep
    AFTER UPDATE OF importance, confidence, decay_rate, valid_until, tags, attributes ON memories
    WHEN old.importance IS NOT new.importance OR old.confidence IS NOT new.confidence
        OR old.decay_rate IS NOT new.decay_rate OR old.tags IS NOT new.tags
        OR (old.valid_until IS NOT new.valid_until AND NOT (old.updated_at = new.updated_at
            AND coalesce(old.valid_until < new.valid_until, 0)))
        OR (old.attributes IS NOT new.attributes
            AND json_remove(old.attributes, '$.enriched_at', '$.enriched_names')
            IS NOT json_remove(new.attributes, '$.enriched_at', '$.enriched_names'))
    BEGIN
        INSERT INTO memory_revisions
            (memory_id, until, importance, confidence, decay_rate, valid_until, tags, attributes)
        VALUES (old.memory_id, new.updated_at, old.importance, old.confidence, old.decay_rate,
            old.valid_until, old.tags, old.attributes);
    END
"""
# What an older schema still tells of values that were: the confidence of a memory before it lost a
# contradiction, and that nothing said when a memory would end before it did.
KEEP_WHAT_WAS_LOST = """
    INSERT INTO memory_revisions
        (memory_id, until, importance, confidence, decay_rate, valid_until, tags, attributes)
    SELECT m.memory_id, lost.at, m.importance, lost.confidence, m.decay_rate,
        nullif(m.valid_until, lost.at), m.tags, m.attributes
    FROM (SELECT json_extract(resolution, '$.loser_id') AS loser_id, min(resolved_at) AS at,
            json_extract(resolution, '$.loser_prior_confidence') AS confidence
        FROM memory_edges WHERE edge_type = 'Contradicts' AND resolved_at IS NOT NULL
        GROUP BY 1) lost
    JOIN memories m ON m.memory_id = lost.loser_id
    WHERE lost.confidence IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM memory_revisions r WHERE r.memory_id = m.memory_id)
"""
KEEP_WHAT_WAS_OPEN = """
    INSERT INTO memory_revisions
        (memory_id, until, importance, confidence, decay_rate, valid_until, tags, attributes)
    SELECT m.memory_id, h.since, m.importance, m.confidence, m.decay_rate, NULL, m.tags,
        m.attributes
    FROM memory_status h JOIN memories m ON m.memory_id = h.memory_id
    WHERE h.until IS NULL AND h.status <> 'active' AND m.valid_until = h.since
        AND h.since > m.created_at
        AND NOT EXISTS (SELECT 1 FROM memory_revisions r WHERE r.memory_id = m.memory_id)
"""
# Which grounds came along when a memory was said again, and when.
DATE_GROUNDS = """
    UPDATE memory_derivations SET added_at = later.at FROM (
        SELECT a.subject, t.value AS ground, min(a.at) AS at
        FROM audit_log a, json_each(a.details, '$.turns') t
        WHERE a.action = 'strengthen' AND a.subject IS NOT NULL
            AND json_type(a.details, '$.turns') = 'array' GROUP BY 1, 2
    ) later WHERE memory_id = later.subject AND derived_from_id = later.ground
"""


def upgrade() -> None:
    _receipts()
    _revisions()
    _trust()
    # NULL: it still says so. As a further source a memory's own one was taken back.
    op.add_column("memory_supports", sa.Column("ended_at", sa.Integer(), nullable=True))


def _receipts() -> None:
    for name, type_ in RECEIPT_COLUMNS:
        op.add_column("recalls", sa.Column(name, type_(), nullable=True))
    _index("ix_recalls_created_at", "recalls", "created_at", "recall_id")
    for name, table, columns in PARTIAL:
        where = sa.text(f"{columns[0]} IS NOT NULL")
        op.create_index(name, table, columns, sqlite_where=where)
    op.execute(SAID)
    # Nothing was ever written to it.
    op.drop_table("bulletins")
    op.create_table(
        "bulletins",
        sa.Column("bulletin_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Integer(), nullable=False),
        sa.Column("change_seq", sa.Integer(), nullable=False),
        sa.Column("view_key", sa.Text(), nullable=False),
        sa.Column("viewer", sa.Text(), nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("memory_ids", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("bulletin_id", name=op.f("pk_bulletins")),
    )
    _index("ix_bulletins_view_key", "bulletins", "view_key", "created_at", "bulletin_id")


def _revisions() -> None:
    op.create_table(
        "memory_revisions",
        sa.Column("revision_id", sa.Integer(), nullable=False),
        sa.Column("memory_id", sa.Text(), nullable=False),
        sa.Column("until", sa.Integer(), nullable=False),
        sa.Column("importance", sa.Integer(), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("decay_rate", sa.Float(), nullable=False),
        sa.Column("valid_until", sa.Integer(), nullable=True),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("attributes", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["memory_id"], ["memories.memory_id"], name=op.f("fk_memory_revisions_memory_id")
        ),
        sa.PrimaryKeyConstraint("revision_id", name=op.f("pk_memory_revisions")),
    )
    _index("ix_memory_revisions_memory_id", "memory_revisions", "memory_id", "until", "revision_id")
    _index("ix_memory_revisions_until", "memory_revisions", "until", "memory_id")
    op.execute(KEEP_REVISION)
    op.execute(KEEP_WHAT_WAS_LOST)
    op.execute(KEEP_WHAT_WAS_OPEN)
    op.create_table(
        "memory_edge_revisions",
        sa.Column("revision_id", sa.Integer(), nullable=False),
        sa.Column("edge_id", sa.Text(), nullable=False),
        sa.Column("until", sa.Integer(), nullable=False),
        sa.Column("partial", sa.Boolean(), nullable=False),
        sa.Column("resolved_at", sa.Integer(), nullable=True),
        sa.Column("resolution", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["edge_id"], ["memory_edges.edge_id"], name=op.f("fk_memory_edge_revisions_edge_id")
        ),
        sa.PrimaryKeyConstraint("revision_id", name=op.f("pk_memory_edge_revisions")),
    )
    _index(
        "ix_memory_edge_revisions_edge_id",
        "memory_edge_revisions",
        "edge_id",
        "until",
        "revision_id",
    )
    _index("ix_memory_edge_revisions_until", "memory_edge_revisions", "until", "edge_id")
    # NULL: with the memory itself.
    op.add_column("memory_derivations", sa.Column("added_at", sa.Integer(), nullable=True))
    op.execute(DATE_GROUNDS)
    _index("ix_audit_log_at", "audit_log", "at", "action")
    _index("ix_memory_status_since", "memory_status", "since", "status", "memory_id")
    op.create_index(
        "ix_memory_status_ended",
        "memory_status",
        ["since", "memory_id"],
        sqlite_where=sa.text(REFUTING),
    )
    op.create_index(
        "ix_memory_status_not_active",
        "memory_status",
        ["memory_id", "since", "until"],
        sqlite_where=sa.text("status <> 'active'"),
    )


def _trust() -> None:
    kinds = ("path", "conversation", "run", "content")
    tiers = ("low", "standard", "high")
    op.create_table(
        "source_trust",
        sa.Column(
            "kind",
            sa.Enum(*kinds, name="kind", native_enum=False, create_constraint=True),
            nullable=False,
        ),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column(
            "tier",
            sa.Enum(*tiers, name="tier", native_enum=False, create_constraint=True),
            nullable=False,
        ),
        sa.Column("max_memories", sa.Integer(), nullable=True),
        sa.Column("set_at", sa.Integer(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.CheckConstraint("max_memories >= 0", name=op.f("ck_source_trust_max_memories")),
        sa.PrimaryKeyConstraint("kind", "name", name=op.f("pk_source_trust")),
    )


def _index(name: str, table: str, *columns: str) -> None:
    op.create_index(name, table, list(columns))


def downgrade() -> None:
    op.drop_column("memory_supports", "ended_at")
    op.drop_table("source_trust")
    op.drop_index("ix_memory_status_not_active", table_name="memory_status")
    op.drop_index("ix_memory_status_ended", table_name="memory_status")
    op.drop_index("ix_memory_status_since", table_name="memory_status")
    op.drop_index("ix_audit_log_at", table_name="audit_log")
    op.drop_column("memory_derivations", "added_at")
    op.drop_table("memory_edge_revisions")
    op.execute("DROP TRIGGER memory_revisions_keep")
    op.drop_table("memory_revisions")
    op.drop_table("bulletins")
    op.create_table(
        "bulletins",
        sa.Column("bulletin_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Integer(), nullable=False),
        sa.Column("change_seq", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("bulletin_id", name=op.f("pk_bulletins")),
    )
    for name, table, _ in PARTIAL:
        op.drop_index(name, table_name=table)
    op.drop_index("ix_recalls_created_at", table_name="recalls")
    for name, _ in reversed(RECEIPT_COLUMNS):
        op.drop_column("recalls", name)
