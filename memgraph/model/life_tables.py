"""The tables of sessions, events, leases, jobs, supports and delivered lines.

Times are milliseconds since 1970, UTC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import sqlalchemy as sa
from sqlalchemy.ext.hybrid import hybrid_property
from sqlmodel import SQLModel

from memgraph.model.columns import choice, column, json_column, json_value, memory_ref, related_row
from memgraph.model.enums import JobState

if TYPE_CHECKING:
    from memgraph.model.tables import SourceRow


class SessionRow(SQLModel, table=True):
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
    # When the conversation was told to be over, and when its last turn became knowledge; a turn
    # that comes later opens it again.
    completed_at: int | None = column(sa.Integer)
    consolidated_at: int | None = column(sa.Integer)
    # The turn up to which it was consolidated, in the order of storing.
    consolidated_through: str | None = column(sa.Text)


class EventRow(SQLModel, table=True):
    """The outbox of events, written in the transaction of the change."""

    __tablename__ = "events"
    __table_args__ = (
        sa.CheckConstraint("json_valid(payload)", name="payload"),
        # A number is never given twice: cursors stand on them, also after old ones were removed.
        {"sqlite_autoincrement": True},
    )

    seq: int = column(sa.Integer, primary_key=True)
    at: int = column(sa.Integer, nullable=False)
    topic: str = column(sa.Text, nullable=False)
    payload_json: str = json_column("payload", nullable=False)
    payload: ClassVar[hybrid_property[dict[str, Any]]] = json_value("payload_json")


class EventCursorRow(SQLModel, table=True):
    """The position of a named subscriber; ``attempts`` are those at the event after it."""

    __tablename__ = "event_cursors"

    subscriber: str = column(sa.Text, primary_key=True)
    delivered_seq: int = column(sa.Integer, nullable=False)
    attempts: int = column(sa.Integer, nullable=False, server_default="0")
    next_attempt_at: int = column(sa.Integer, nullable=False, server_default="0")


class EventFailureRow(SQLModel, table=True):
    """An event that a subscriber did not take after all attempts; it is not tried again."""

    __tablename__ = "event_failures"

    subscriber: str = column(sa.Text, primary_key=True)
    seq: int = column(sa.Integer, primary_key=True)
    topic: str = column(sa.Text, nullable=False)
    payload_json: str = json_column("payload", nullable=False)
    payload: ClassVar[hybrid_property[dict[str, Any]]] = json_value("payload_json")
    at: int = column(sa.Integer, nullable=False)
    error_code: str = column(sa.Text, nullable=False)


class LeaseRow(SQLModel, table=True):
    """A lease: its holder alone may do something until it expires."""

    __tablename__ = "leases"

    name: str = column(sa.Text, primary_key=True)
    holder: str = column(sa.Text, nullable=False)
    acquired_at: int = column(sa.Integer, nullable=False)
    expires_at: int = column(sa.Integer, nullable=False)


class JobRunRow(SQLModel, table=True):
    """One run of a job. ``due_at``: the moment of the schedule that it stands for."""

    __tablename__ = "job_runs"
    __table_args__ = (
        sa.CheckConstraint("json_valid(counts) AND json_valid(rejected)", name="json"),
        sa.CheckConstraint("(state = 'running') = (ended_at IS NULL)", name="ended"),
        sa.Index("ix_job_runs_job_started_at", "job", "started_at"),
    )

    run_id: str = column(sa.Text, primary_key=True)
    job: str = column(sa.Text, nullable=False)
    trigger: str = column(sa.Text, nullable=False)
    due_at: int | None = column(sa.Integer)
    started_at: int = column(sa.Integer, nullable=False)
    ended_at: int | None = column(sa.Integer)
    state: JobState = column(choice(JobState, "state"), nullable=False)
    holder: str = column(sa.Text, nullable=False)
    counts_json: str = json_column("counts", nullable=False, server_default="{}")
    counts: ClassVar[hybrid_property[dict[str, int]]] = json_value("counts_json")
    rejected_json: str = json_column("rejected", nullable=False, server_default="[]")
    rejected: ClassVar[hybrid_property[list[dict[str, Any]]]] = json_value("rejected_json")
    error_code: str | None = column(sa.Text)
    reason: str | None = column(sa.Text)


class SupportRow(SQLModel, table=True):
    """A further source of a memory; its own is in ``memories.source_id``.

    One that was taken back has an ``ended_at``; so has a row for the memory's own source then.
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

    source: SourceRow = related_row("memgraph.model.tables.SourceRow")


class EchoLineRow(SQLModel, table=True):
    """A delivered line, by the hash of its normal form (64 bits), with its times."""

    __tablename__ = "echo_lines"

    line_hash: int = column(sa.Integer, primary_key=True)
    first_at: int = column(sa.Integer, nullable=False)
    last_at: int = column(sa.Integer, nullable=False)


class EchoPendingRow(SQLModel, table=True):
    """A delivered recall or text whose lines are not in ``echo_lines`` yet.

    An id is never given out again: what was worked off is removed up to one.
    """

    __tablename__ = "echo_pending"
    __table_args__ = (
        sa.CheckConstraint("(recall_id IS NULL) <> (text IS NULL)", name="one_kind"),
        sa.Index("ix_echo_pending_texts", "pending_id", sqlite_where=sa.text("text IS NOT NULL")),
        {"sqlite_autoincrement": True},
    )

    pending_id: int = column(sa.Integer, primary_key=True)
    at: int = column(sa.Integer, nullable=False)
    recall_id: str | None = column(sa.Text)
    text: str | None = column(sa.Text)
