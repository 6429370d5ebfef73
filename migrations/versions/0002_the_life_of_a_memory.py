"""The life of a memory"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "echo_lines",
        sa.Column("line_hash", sa.Integer(), nullable=False),
        sa.Column("first_at", sa.Integer(), nullable=False),
        sa.Column("last_at", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("line_hash", name=op.f("pk_echo_lines")),
    )
    op.create_table(
        "echo_pending",
        sa.Column("pending_id", sa.Integer(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.Column("recall_id", sa.Text(), nullable=True),
        sa.Column("text", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "(recall_id IS NULL) <> (text IS NULL)", name=op.f("ck_echo_pending_one_kind")
        ),
        sa.PrimaryKeyConstraint("pending_id", name=op.f("pk_echo_pending")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_echo_pending_texts",
        "echo_pending",
        ["pending_id"],
        sqlite_where=sa.text("text IS NOT NULL"),
    )
    op.create_table(
        "event_cursors",
        sa.Column("subscriber", sa.Text(), nullable=False),
        sa.Column("delivered_seq", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("next_attempt_at", sa.Integer(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("subscriber", name=op.f("pk_event_cursors")),
    )
    op.create_table(
        "event_failures",
        sa.Column("subscriber", sa.Text(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.Column("error_code", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("subscriber", "seq", name=op.f("pk_event_failures")),
    )
    op.create_table(
        "events",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.CheckConstraint("json_valid(payload)", name=op.f("ck_events_payload")),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_events")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "job_runs",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("trigger", sa.Text(), nullable=False),
        sa.Column("due_at", sa.Integer(), nullable=True),
        sa.Column("started_at", sa.Integer(), nullable=False),
        sa.Column("ended_at", sa.Integer(), nullable=True),
        sa.Column(
            "state",
            sa.Enum(
                "running",
                "done",
                "skipped",
                "failed",
                "abandoned",
                name="state",
                native_enum=False,
                create_constraint=True,
            ),
            nullable=False,
        ),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("counts", sa.Text(), server_default="{}", nullable=False),
        sa.Column("rejected", sa.Text(), server_default="[]", nullable=False),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "(state = 'running') = (ended_at IS NULL)", name=op.f("ck_job_runs_ended")
        ),
        sa.CheckConstraint(
            "json_valid(counts) AND json_valid(rejected)", name=op.f("ck_job_runs_json")
        ),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_job_runs")),
    )
    op.create_index("ix_job_runs_job_started_at", "job_runs", ["job", "started_at"], unique=False)
    op.create_table(
        "leases",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("acquired_at", sa.Integer(), nullable=False),
        sa.Column("expires_at", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_leases")),
    )
    op.create_table(
        "memory_supports",
        sa.Column("memory_id", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("added_at", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["memory_id"], ["memories.memory_id"], name=op.f("fk_memory_supports_memory_id")
        ),
        sa.ForeignKeyConstraint(
            ["source_id"], ["memory_sources.source_id"], name=op.f("fk_memory_supports_source_id")
        ),
        sa.PrimaryKeyConstraint("memory_id", "source_id", name=op.f("pk_memory_supports")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_memory_supports_source_id", "memory_supports", ["source_id"], unique=False)
    op.add_column("entities", sa.Column("merged_into", sa.Text(), nullable=True))
    op.create_index(
        "ix_entities_merged_into",
        "entities",
        ["merged_into"],
        unique=False,
        sqlite_where=sa.text("merged_into IS NOT NULL"),
    )
    op.add_column("sessions", sa.Column("completed_at", sa.Integer(), nullable=True))
    op.add_column("sessions", sa.Column("consolidated_through", sa.Text(), nullable=True))
    op.create_index(
        "ix_sessions_pending",
        "sessions",
        ["last_seen_at", "session_id"],
        unique=False,
        sqlite_where=sa.text("consolidated_at IS NULL"),
    )
    op.create_index(
        "ix_sessions_last_seen_at", "sessions", ["last_seen_at", "session_id"], unique=False
    )
    op.create_index(
        "ix_sessions_open",
        "sessions",
        ["first_seen_at", "session_id"],
        unique=False,
        sqlite_where=sa.text("completed_at IS NULL AND consolidated_at IS NULL"),
    )
    op.create_index(
        "ix_memories_turn_id",
        "memories",
        ["session_id", "turn_id"],
        unique=False,
        sqlite_where=sa.text("turn_id IS NOT NULL AND kind = 'episode'"),
    )
    # A message does not wait until parts of the text index are merged: that is done beside it.
    op.execute("INSERT INTO memory_fts (memory_fts, rank) VALUES ('automerge', 0)")
    # What was talked about before waits for its consolidation; a further turn opens it again.
    op.execute("UPDATE sessions SET completed_at = last_seen_at WHERE consolidated_at IS NULL")


def downgrade() -> None:
    op.execute("INSERT INTO memory_fts (memory_fts, rank) VALUES ('automerge', 4)")
    op.drop_index(
        "ix_memories_turn_id",
        table_name="memories",
        sqlite_where=sa.text("turn_id IS NOT NULL AND kind = 'episode'"),
    )
    op.drop_index("ix_sessions_last_seen_at", table_name="sessions")
    op.drop_index(
        "ix_sessions_open",
        table_name="sessions",
        sqlite_where=sa.text("completed_at IS NULL AND consolidated_at IS NULL"),
    )
    op.drop_index(
        "ix_sessions_pending",
        table_name="sessions",
        sqlite_where=sa.text("consolidated_at IS NULL"),
    )
    op.drop_column("sessions", "consolidated_through")
    op.drop_column("sessions", "completed_at")
    op.drop_index(
        "ix_entities_merged_into",
        table_name="entities",
        sqlite_where=sa.text("merged_into IS NOT NULL"),
    )
    op.drop_column("entities", "merged_into")
    op.drop_index("ix_memory_supports_source_id", table_name="memory_supports")
    op.drop_table("memory_supports")
    op.drop_table("leases")
    op.drop_index("ix_job_runs_job_started_at", table_name="job_runs")
    op.drop_table("job_runs")
    op.drop_table("events")
    op.drop_table("event_failures")
    op.drop_table("event_cursors")
    op.drop_table("echo_pending")
    op.drop_table("echo_lines")
