"""Tables of ingested files, receipts, bulletins, the journal, sessions and jobs."""

from __future__ import annotations

from typing import Any, ClassVar

import sqlalchemy as sa
from sqlalchemy.ext.hybrid import hybrid_property

from memgraph.model.columns import Row, choice, column, json_column, json_value, memory_ref
from memgraph.model.enums import EdgeType, IngestStatus, JobState


class IngestFileRow(Row, table=True):
    """A row for every content that was ever ingested or rejected; never removed."""

    __tablename__ = "ingest_files"
    __table_args__ = (
        sa.CheckConstraint("json_valid(manifest)", name="manifest"),
        sa.Index(
            "ix_ingest_files_rejected", "recorded_at", sqlite_where=sa.text("status = 'rejected'")
        ),
    )

    sha256: str = column(sa.Text, primary_key=True)
    path: str = column(sa.Text, nullable=False)
    status: IngestStatus = column(choice(IngestStatus, "status"), nullable=False)
    manifest_json: str = json_column("manifest", nullable=False)
    manifest: ClassVar[hybrid_property[dict[str, Any]]] = json_value("manifest_json")
    recorded_at: int = column(sa.Integer, nullable=False)


class IngestPartRow(Row, table=True):
    """A stored part of a file that takes several transactions; removed after the last one.

    ``plan`` is ``<claim>:<parsed document>``, ``done`` is the number of its stored steps.
    """

    __tablename__ = "ingest_parts"
    __table_args__ = (sa.CheckConstraint("json_valid(outcomes)", name="outcomes"),)

    sha256: str = column(sa.Text, primary_key=True)
    part: int = column(sa.Integer, primary_key=True)
    plan: str = column(sa.Text, nullable=False)
    done: int = column(sa.Integer, nullable=False)
    outcomes_json: str = json_column("outcomes", nullable=False)
    outcomes: ClassVar[hybrid_property[dict[str, Any]]] = json_value("outcomes_json")
    stored_at: int = column(sa.Integer, nullable=False)


class PendingLinkRow(Row, table=True):
    """An edge between an ingested file and a file that has not arrived yet."""

    __tablename__ = "ingest_pending_links"
    __table_args__ = (
        sa.UniqueConstraint("memory_id", "target", "edge_type", "outgoing"),
        sa.CheckConstraint("weight BETWEEN 0 AND 1", name="weight"),
        sa.Index("ix_ingest_pending_links_target", "target"),
    )

    link_id: int = column(sa.Integer, primary_key=True)
    memory_id: str = memory_ref(nullable=False)
    target: str = column(sa.Text, nullable=False)
    edge_type: EdgeType = column(choice(EdgeType, "edge_type"), nullable=False)
    outgoing: bool = column(sa.Boolean, nullable=False)
    weight: float = column(sa.Float, nullable=False)
    reason: str | None = column(sa.Text)
    partial: bool = column(sa.Boolean, nullable=False, server_default="0")


class DocumentKeyRow(Row, table=True):
    """A name (path, record number) by which other files may link to an ingested file."""

    __tablename__ = "ingest_document_keys"

    document_key: str = column(sa.Text, primary_key=True)
    memory_id: str = memory_ref(primary_key=True)


class RecallRow(Row, table=True):
    """A receipt of a delivery.

    ``query`` is the query, if the settings allow storing it; its digest is always stored.
    ``change_seq`` is the journal's head at the time, ``sha256`` the digest of the delivered bytes.
    If the same bytes were delivered before, ``same_as`` is the receipt that has the items.
    ``answer`` is a model's answer to the query, with the block that it read.
    """

    __tablename__ = "recalls"
    __table_args__ = (
        sa.Index("ix_recalls_created_at", "created_at", "recall_id"),
        sa.Index(
            "ix_recalls_conversation_id",
            "conversation_id",
            "created_at",
            sqlite_where=sa.text("conversation_id IS NOT NULL"),
        ),
        sa.Index(
            "ix_recalls_workflow_run_id",
            "workflow_run_id",
            "created_at",
            sqlite_where=sa.text("workflow_run_id IS NOT NULL"),
        ),
        sa.Index(
            "ix_recalls_bulletin_id",
            "bulletin_id",
            sqlite_where=sa.text("bulletin_id IS NOT NULL"),
        ),
        sa.Index(
            "ix_recalls_same_as",
            "same_as",
            "created_at",
            sqlite_where=sa.text("same_as IS NOT NULL"),
        ),
    )

    recall_id: str = column(sa.Text, primary_key=True)
    created_at: int = column(sa.Integer, nullable=False)
    query: str = column(sa.Text, nullable=False)
    request_json: str = json_column("request", nullable=False)
    request: ClassVar[hybrid_property[dict[str, Any]]] = json_value("request_json")
    purpose: str | None = column(sa.Text)
    actor: str | None = column(sa.Text)
    conversation_id: str | None = column(sa.Text)
    workflow_run_id: str | None = column(sa.Text)
    step_id: str | None = column(sa.Text)
    query_sha256: str | None = column(sa.Text)
    change_seq: int | None = column(sa.Integer)
    # JSON: what the caller was allowed to see.
    viewer_json: str | None = json_column("viewer")
    viewer: ClassVar[hybrid_property[dict[str, Any] | None]] = json_value("viewer_json")
    # JSON: the number of memories left out, by reason.
    left_out_json: str | None = json_column("left_out")
    left_out: ClassVar[hybrid_property[dict[str, Any] | None]] = json_value("left_out_json")
    sha256: str | None = column(sa.Text)
    same_as: str | None = column(sa.Text)
    bulletin_id: str | None = column(sa.Text)
    answer_json: str | None = json_column("answer")
    answer: ClassVar[hybrid_property[dict[str, Any] | None]] = json_value("answer_json")


class RecallItemRow(Row, table=True):
    __tablename__ = "recall_items"
    __table_args__ = (
        sa.Index("ix_recall_items_memory_id", "memory_id"),
        {"sqlite_with_rowid": False},
    )

    recall_id: str = column(sa.Text, sa.ForeignKey("recalls.recall_id"), primary_key=True)
    rank: int = column(sa.Integer, primary_key=True)
    memory_id: str = memory_ref(nullable=False)
    score: float = column(sa.Float, nullable=False)
    explanation_json: str = json_column("explanation", nullable=False)
    explanation: ClassVar[hybrid_property[dict[str, Any]]] = json_value("explanation_json")


class BulletinRow(Row, table=True):
    """A delivered bulletin, stored once for all receipts with the same bytes.

    ``change_seq`` is the journal's head when it was built. Equal head, view and settings give
    equal bytes.
    """

    __tablename__ = "bulletins"
    __table_args__ = (sa.Index("ix_bulletins_view_key", "view_key", "created_at", "bulletin_id"),)

    bulletin_id: str = column(sa.Text, primary_key=True)
    created_at: int = column(sa.Integer, nullable=False)
    change_seq: int = column(sa.Integer, nullable=False)
    view_key: str = column(sa.Text, nullable=False)
    # JSON: what the reader was allowed to see.
    viewer_json: str = json_column("viewer", nullable=False)
    viewer: ClassVar[hybrid_property[dict[str, Any]]] = json_value("viewer_json")
    sha256: str = column(sa.Text, nullable=False)
    # JSON: the cited ids, in the order of the text.
    memory_ids_json: str = json_column("memory_ids", nullable=False)
    memory_ids: ClassVar[hybrid_property[list[str]]] = json_value("memory_ids_json")
    body: str = column(sa.Text, nullable=False)


class AuditRow(Row, table=True):
    __tablename__ = "audit_log"
    __table_args__ = (
        sa.Index("ix_audit_log_subject", "subject"),
        # For the journal as of a time, and for entries between two times.
        sa.Index("ix_audit_log_at", "at", "action"),
    )

    seq: int = column(sa.Integer, primary_key=True)
    at: int = column(sa.Integer, nullable=False)
    actor: str = column(sa.Text, nullable=False)
    action: str = column(sa.Text, nullable=False)
    subject: str | None = column(sa.Text)
    details_json: str = json_column("details", nullable=False)
    details: ClassVar[hybrid_property[dict[str, Any]]] = json_value("details_json")
    hash: str = column(sa.Text, nullable=False)
    # The combined digest of the sealed tables; NULL if the entry changed none of them.
    state: str | None = column(sa.Text)


class TableDigestRow(Row, table=True):
    """The digest of a table's rows at the last write; see ``store.whole_tables``."""

    __tablename__ = "table_digests"

    name: str = column(sa.Text, primary_key=True)
    rows: int = column(sa.Integer, nullable=False)
    digest: str = column(sa.Text, nullable=False)


class MetadataRow(Row, table=True):
    __tablename__ = "memory_metadata"

    key: str = column(sa.Text, primary_key=True)
    value: str = column(sa.Text, nullable=False)


class SessionRow(Row, table=True):
    __tablename__ = "sessions"
    __table_args__ = (
        sa.Index(
            "ix_sessions_pending",
            "last_seen_at",
            "session_id",
            sqlite_where=sa.text("consolidated_at IS NULL"),
        ),
        sa.Index("ix_sessions_last_seen_at", "last_seen_at", "session_id"),
        sa.Index(
            "ix_sessions_open",
            "first_seen_at",
            "session_id",
            sqlite_where=sa.text("completed_at IS NULL AND consolidated_at IS NULL"),
        ),
    )

    session_id: str = column(sa.Text, primary_key=True)
    first_seen_at: int = column(sa.Integer, nullable=False)
    last_seen_at: int = column(sa.Integer, nullable=False)
    next_sequence: int = column(sa.Integer, nullable=False, server_default="0")
    # When the session was marked as completed, and when its last turn was consolidated; a later
    # turn reopens it.
    completed_at: int | None = column(sa.Integer)
    consolidated_at: int | None = column(sa.Integer)
    # The last consolidated turn, in the order of storing.
    consolidated_through: str | None = column(sa.Text)
    # The last turn before those that were read without a language model, empty if it was the first;
    # NULL if there are none.
    labelled_after: str | None = column(sa.Text)


class JobRunRow(Row, table=True):
    """A run of a job, and while it is running the lease of its holder: only it may run the job.

    ``session_id``: the only session that it consolidates. ``due_at``: the scheduled time that it
    covers. ``renewed_at``: when its holder last renewed the
    lease, by the clock of the system; NULL once it ended.
    """

    __tablename__ = "job_runs"
    __table_args__ = (
        sa.CheckConstraint("json_valid(counts) AND json_valid(rejected)", name="json"),
        sa.CheckConstraint("(state = 'running') = (ended_at IS NULL)", name="ended"),
        sa.Index("ix_job_runs_job_started_at", "job", "started_at"),
    )

    run_id: str = column(sa.Text, primary_key=True)
    job: str = column(sa.Text, nullable=False)
    session_id: str | None = column(sa.Text)
    trigger: str = column(sa.Text, nullable=False)
    due_at: int | None = column(sa.Integer)
    started_at: int = column(sa.Integer, nullable=False)
    ended_at: int | None = column(sa.Integer)
    state: JobState = column(choice(JobState, "state"), nullable=False)
    holder: str = column(sa.Text, nullable=False)
    renewed_at: int | None = column(sa.Integer)
    counts_json: str = json_column("counts", nullable=False, server_default="{}")
    counts: ClassVar[hybrid_property[dict[str, int]]] = json_value("counts_json")
    rejected_json: str = json_column("rejected", nullable=False, server_default="[]")
    rejected: ClassVar[hybrid_property[list[dict[str, Any]]]] = json_value("rejected_json")
    error_code: str | None = column(sa.Text)
    reason: str | None = column(sa.Text)


class SupportRow(Row, table=True):
    """A further source of a memory; its own is in ``memories.source_id``.

    A retracted source has an ``ended_at``. If the memory's own source is retracted, it gets a row
    as well.
    """

    __tablename__ = "memory_supports"
    __table_args__ = (
        sa.Index("ix_memory_supports_source_id", "source_id"),
        {"sqlite_with_rowid": False},
    )

    memory_id: str = memory_ref(primary_key=True)
    source_id: str = column(sa.Text, sa.ForeignKey("memory_sources.source_id"), primary_key=True)
    added_at: int = column(sa.Integer, nullable=False)
    ended_at: int | None = column(sa.Integer)
