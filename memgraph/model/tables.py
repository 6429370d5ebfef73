"""The database schema of an orchestrator as SQLModel classes, from which migrations are made.

Times are milliseconds since 1970, UTC. ``pk`` is an internal integer key that never leaves the
database; ``memory_id`` is the public id. These classes do not validate (``MemoryInput`` and the
CHECK constraints do).
"""

from __future__ import annotations

from typing import Any, ClassVar

import sqlalchemy as sa
from sqlalchemy.ext.hybrid import hybrid_property

from memgraph.model.columns import (
    Row,
    choice,
    column,
    json_column,
    json_value,
    memory_ref,
    metadata as metadata,
)
from memgraph.model.enums import (
    STORED_STATUSES,
    CapturedBy,
    ComparisonStage,
    EdgeType,
    EmbeddingState,
    EntityType,
    MemoryKind,
    MemoryStatus,
    MemoryType,
    Scope,
    Sensitivity,
    SourceType,
)
from memgraph.model.record_tables import (
    AuditRow as AuditRow,
    BulletinRow as BulletinRow,
    DocumentKeyRow as DocumentKeyRow,
    IngestFileRow as IngestFileRow,
    JobRunRow as JobRunRow,
    MetadataRow as MetadataRow,
    PendingLinkRow as PendingLinkRow,
    RecallItemRow as RecallItemRow,
    RecallRow as RecallRow,
    SessionRow as SessionRow,
    SupportRow as SupportRow,
)

_STATUS_CHECK = f"status IN ({', '.join(repr(status.value) for status in STORED_STATUSES)})"

# Tables of entities.


class EntityRow(Row, table=True):
    __tablename__ = "entities"
    __table_args__ = (
        sa.UniqueConstraint("name_key", "type"),
        sa.CheckConstraint("mention_count >= 0", name="mention_count"),
        sa.Index(
            "ix_entities_merged_into",
            "merged_into",
            sqlite_where=sa.text("merged_into IS NOT NULL"),
        ),
        sa.Index(
            "ix_entities_last_name", "last_name", sqlite_where=sa.text("last_name IS NOT NULL")
        ),
    )

    pk: int = column(sa.Integer, primary_key=True)
    entity_id: str = column(sa.Text, nullable=False, unique=True)
    canonical_name: str = column(sa.Text, nullable=False)
    name_key: str = column(sa.Text, nullable=False)
    # The last word of the key of a person's full name.
    last_name: str | None = column(sa.Text)
    type: EntityType = column(choice(EntityType, "type"), nullable=False)
    summary: str | None = column(sa.Text)
    mention_count: int = column(sa.Integer, nullable=False, server_default="0")
    protected: bool = column(sa.Boolean, nullable=False, server_default="0")
    created_at: int = column(sa.Integer, nullable=False)
    # The id of the entity into which this one was merged; then no memory is linked to this one.
    merged_into: str | None = column(sa.Text)
    # The provider of the type and its confidence, 0..1; None: not recorded.
    type_provider: str | None = column(sa.Text)
    type_confidence: float | None = column(sa.Float)


class EntityAliasRow(Row, table=True):
    __tablename__ = "entity_aliases"

    alias_key: str = column(sa.Text, primary_key=True)
    entity_pk: int = column(sa.Integer, sa.ForeignKey("entities.pk"), primary_key=True)
    alias: str = column(sa.Text, nullable=False)


class MemoryEntityRow(Row, table=True):
    __tablename__ = "memory_entities"
    __table_args__ = (
        sa.Index("ix_memory_entities_memory_pk", "memory_pk"),
        {"sqlite_with_rowid": False},
    )

    entity_pk: int = column(sa.Integer, sa.ForeignKey("entities.pk"), primary_key=True)
    memory_pk: int = column(sa.Integer, sa.ForeignKey("memories.pk"), primary_key=True)
    # The keys of the entity's names that the memory says, one a line.
    names: str = column(sa.Text, nullable=False)


# Appended to an index, so that hidden rows are skipped without reading the table.
_VISIBILITY = ("sensitivity", "scope", "scope_id", "agent_id")


class MemoryRow(Row, table=True):
    __tablename__ = "memories"
    __table_args__ = (
        sa.CheckConstraint("importance BETWEEN 0 AND 100", name="importance"),
        sa.CheckConstraint("confidence BETWEEN 0 AND 1", name="confidence"),
        sa.CheckConstraint("decay_rate >= 0", name="decay_rate"),
        sa.CheckConstraint("access_count >= 0", name="access_count"),
        sa.CheckConstraint("token_cost >= 0", name="token_cost"),
        sa.CheckConstraint("length(content) > 0 OR status = 'retracted'", name="content"),
        sa.CheckConstraint("(scope = 'global') = (scope_id IS NULL)", name="scope_id"),
        sa.CheckConstraint(_STATUS_CHECK, name="status"),
        sa.CheckConstraint("json_valid(tags) AND json_valid(attributes)", name="json"),
        # Turns repeat each other and are never looked up by content.
        sa.Index(
            "ix_memories_content_hash", "content_hash", sqlite_where=sa.text("kind <> 'episode'")
        ),
        sa.Index("ix_memories_session_id_sequence", "session_id", "sequence"),
        # A turn that is submitted twice is stored once.
        sa.Index(
            "ix_memories_turn_id",
            "session_id",
            "turn_id",
            sqlite_where=sa.text("turn_id IS NOT NULL AND kind = 'episode'"),
        ),
        sa.Index(
            "ix_memories_type_status",
            *("type", "status", "importance", "created_at", "pk", *_VISIBILITY),
        ),
        sa.Index("ix_memories_source_id", "source_id"),
        # The memories of a project or a task, least important and oldest first.
        sa.Index(
            "ix_memories_scope",
            *("scope", "scope_id", "status", "importance", "created_at", "pk"),
            *("type", "sensitivity", "agent_id"),
            sqlite_where=sa.text("scope <> 'global' AND kind <> 'episode'"),
        ),
        sa.Index("ix_memories_item_id", "item_id", sqlite_where=sa.text("item_id IS NOT NULL")),
        sa.Index(
            "ix_memories_agent_id",
            "agent_id",
            "status",
            "pk",
            sqlite_where=sa.text("agent_id IS NOT NULL"),
        ),
        # The four indexes below serve the bulletin, whose queries repeat these conditions verbatim.
        # pk breaks ties without a sort. They end with the columns of the visibility check, so
        # that hidden rows are skipped in the index.
        sa.Index(
            "ix_memories_knowledge",
            *("importance", "created_at", "pk", *_VISIBILITY),
            sqlite_where=sa.text(
                "status = 'active' AND kind <> 'episode'"
                " AND type IN ('Fact', 'Identity', 'Observation', 'Event')"
            ),
        ),
        sa.Index(
            "ix_memories_open_todos",
            *("importance", "created_at", "pk", *_VISIBILITY),
            sqlite_where=sa.text(
                "status = 'active' AND type = 'Todo' AND instr(tags, '\"done\"') = 0"
                " AND json_extract(attributes, '$.done') IS NOT 1"
            ),
        ),
        sa.Index(
            "ix_memories_decisions",
            *("event_time", "created_at", "pk", *_VISIBILITY),
            sqlite_where=sa.text("status = 'active' AND type = 'Decision'"),
        ),
        sa.Index(
            "ix_memories_uncertain",
            *("confidence", "created_at", "pk", *_VISIBILITY),
            sqlite_where=sa.text("status = 'active' AND kind <> 'episode' AND confidence < 0.5"),
        ),
    )

    pk: int = column(sa.Integer, primary_key=True)
    memory_id: str = column(sa.Text, nullable=False, unique=True)
    orchestrator_id: str = column(sa.Text, nullable=False)
    kind: MemoryKind = column(choice(MemoryKind, "kind"), nullable=False)
    type: MemoryType = column(choice(MemoryType, "type"), nullable=False)
    content: str = column(sa.Text, nullable=False)
    summary: str = column(sa.Text, nullable=False)
    importance: int = column(sa.Integer, nullable=False)
    confidence: float = column(sa.Float, nullable=False)
    status: MemoryStatus = column(choice(MemoryStatus, "status", checked=False), nullable=False)
    sensitivity: Sensitivity = column(choice(Sensitivity, "sensitivity"), nullable=False)
    scope: Scope = column(choice(Scope, "scope"), nullable=False)
    scope_id: str | None = column(sa.Text)
    agent_id: str | None = column(sa.Text)
    session_id: str | None = column(sa.Text)
    sequence: int | None = column(sa.Integer)
    turn_id: str | None = column(sa.Text)
    # The caller's own name for it; see ``MemoryInput.item_id``.
    item_id: str | None = column(sa.Text)
    source_role: str | None = column(sa.Text)
    event_time: int | None = column(sa.Integer)
    created_at: int = column(sa.Integer, nullable=False)
    updated_at: int = column(sa.Integer, nullable=False)
    valid_until: int | None = column(sa.Integer)
    access_count: int = column(sa.Integer, nullable=False, server_default="0")
    last_accessed_at: int | None = column(sa.Integer)
    decay_rate: float = column(sa.Float, nullable=False)
    tags_json: str = json_column("tags", nullable=False, server_default="[]")
    tags: ClassVar[hybrid_property[list[str]]] = json_value("tags_json")
    attributes_json: str = json_column("attributes", nullable=False, server_default="{}")
    attributes: ClassVar[hybrid_property[dict[str, Any]]] = json_value("attributes_json")
    content_hash: str = column(sa.Text, nullable=False)
    token_cost: int = column(sa.Integer, nullable=False)
    source_id: str = column(sa.Text, sa.ForeignKey("memory_sources.source_id"), nullable=False)
    # Two-character terms of CJK text, which FTS5's tokenizers cannot cut, and the metadata of an
    # agent's item; NULL without them.
    search_terms: str | None = column(sa.Text)


class EdgeRow(Row, table=True):
    __tablename__ = "memory_edges"
    __table_args__ = (
        # The type comes first, so that one lookup finds any edge of a type, overall or at a node.
        sa.UniqueConstraint("edge_type", "from_memory_id", "to_memory_id"),
        sa.CheckConstraint("weight BETWEEN 0 AND 1", name="weight"),
        sa.CheckConstraint("from_memory_id <> to_memory_id", name="no_self_edge"),
        sa.CheckConstraint(
            "(resolved_at IS NULL) = (resolution IS NULL)", name="resolved_with_resolution"
        ),
        sa.Index("ix_memory_edges_to_memory_id", "to_memory_id", "edge_type"),
        # One memory at most replaces another; marks and partial edges are free.
        sa.Index(
            "ix_memory_edges_successor",
            "to_memory_id",
            unique=True,
            sqlite_where=sa.text("edge_type = 'Updates' AND weight >= 1.0 AND NOT partial"),
        ),
        # The strongest edges of a node first, without sorting those of a hub.
        sa.Index(
            "ix_memory_edges_from_strongest", "from_memory_id", "weight", "created_at", "edge_id"
        ),
        sa.Index("ix_memory_edges_to_strongest", "to_memory_id", "weight", "created_at", "edge_id"),
        sa.Index(
            "ix_memory_edges_contradictions",
            "resolved_at",
            "created_at",
            "edge_id",
            sqlite_where=sa.text(
                "edge_type = 'Contradicts' OR (edge_type = 'Updates'"
                " AND (weight < 1.0 OR resolved_at IS NOT NULL))"
            ),
        ),
        # The evidence of a memory; every recall follows it a few steps from each candidate.
        sa.Index(
            "ix_memory_edges_grounds",
            *("from_memory_id", "to_memory_id", "edge_type", "edge_id", "created_at"),
            sqlite_where=sa.text("edge_type IN ('CausedBy', 'PartOf')"),
        ),
    )

    edge_id: str = column(sa.Text, primary_key=True)
    from_memory_id: str = memory_ref(nullable=False)
    to_memory_id: str = memory_ref(nullable=False)
    edge_type: EdgeType = column(choice(EdgeType, "edge_type"), nullable=False)
    weight: float = column(sa.Float, nullable=False)
    reason: str | None = column(sa.Text)
    partial: bool = column(sa.Boolean, nullable=False, server_default="0")
    created_at: int = column(sa.Integer, nullable=False)
    resolved_at: int | None = column(sa.Integer)
    resolution_json: str | None = json_column("resolution")
    resolution: ClassVar[hybrid_property[dict[str, Any] | None]] = json_value("resolution_json")
    # None: never; see ``EdgeStateRow``.
    changed_at: int | None = column(sa.Integer)


class EdgeStateRow(Row, table=True):
    """What an edge was from ``since`` until it changed; its present state is in ``EdgeRow``."""

    __tablename__ = "memory_edge_states"
    __table_args__ = (
        sa.CheckConstraint("until > since", name="until"),
        sa.CheckConstraint(
            "(resolved_at IS NULL) = (resolution IS NULL)", name="resolved_with_resolution"
        ),
    )

    edge_id: str = column(sa.Text, sa.ForeignKey("memory_edges.edge_id"), primary_key=True)
    since: int = column(sa.Integer, primary_key=True)
    until: int = column(sa.Integer, nullable=False)
    weight: float = column(sa.Float, nullable=False)
    reason: str | None = column(sa.Text)
    partial: bool = column(sa.Boolean, nullable=False)
    resolved_at: int | None = column(sa.Integer)
    resolution_json: str | None = json_column("resolution")


class SourceRow(Row, table=True):
    """A source. ``source_id`` is derived from the other columns, so equal sources share a row."""

    __tablename__ = "memory_sources"
    __table_args__ = (
        sa.Index("ix_memory_sources_content_sha256", "content_sha256"),
        sa.Index(
            "ix_memory_sources_source_path",
            "source_path",
            sqlite_where=sa.text("source_path IS NOT NULL"),
        ),
        sa.Index(
            "ix_memory_sources_conversation_id",
            "conversation_id",
            sqlite_where=sa.text("conversation_id IS NOT NULL"),
        ),
        sa.Index(
            "ix_memory_sources_workflow_run_id",
            "workflow_run_id",
            sqlite_where=sa.text("workflow_run_id IS NOT NULL"),
        ),
    )

    source_id: str = column(sa.Text, primary_key=True)
    source_type: SourceType = column(choice(SourceType, "source_type"), nullable=False)
    source_path: str | None = column(sa.Text)
    conversation_id: str | None = column(sa.Text)
    workflow_run_id: str | None = column(sa.Text)
    step_id: str | None = column(sa.Text)
    captured_by: CapturedBy = column(choice(CapturedBy, "captured_by"), nullable=False)
    locator: str | None = column(sa.Text)
    content_sha256: str | None = column(sa.Text)


class DerivationRow(Row, table=True):
    __tablename__ = "memory_derivations"
    __table_args__ = (
        sa.CheckConstraint("memory_id <> derived_from_id", name="not_from_itself"),
        sa.Index("ix_memory_derivations_derived_from_id", "derived_from_id"),
    )

    memory_id: str = memory_ref(primary_key=True)
    derived_from_id: str = memory_ref(primary_key=True)
    # None: added together with the memory.
    added_at: int | None = column(sa.Integer)


class StatusRow(Row, table=True):
    __tablename__ = "memory_status"
    __table_args__ = (
        sa.CheckConstraint("until IS NULL OR until >= since", name="until"),
        sa.CheckConstraint(_STATUS_CHECK, name="status"),
        sa.Index("ix_memory_status_memory_id", "memory_id", "since"),
        # For changes between two times.
        sa.Index("ix_memory_status_since", "since", "status", "memory_id"),
        # For the few memories that are no longer active.
        sa.Index(
            "ix_memory_status_not_active",
            "memory_id",
            "since",
            "until",
            sqlite_where=sa.text("status <> 'active'"),
        ),
    )

    status_id: int = column(sa.Integer, primary_key=True)
    memory_id: str = memory_ref(nullable=False)
    status: MemoryStatus = column(choice(MemoryStatus, "status", checked=False), nullable=False)
    since: int = column(sa.Integer, nullable=False)
    until: int | None = column(sa.Integer)
    actor: str = column(sa.Text, nullable=False)
    reason: str | None = column(sa.Text)


class ComparisonRow(Row, table=True):
    """A fact or turn that waits to be compared with those stored before it."""

    __tablename__ = "memory_comparisons"
    __table_args__ = (sa.CheckConstraint("attempts >= 0", name="attempts"),)

    memory_pk: int = column(sa.Integer, sa.ForeignKey("memories.pk"), primary_key=True)
    stage: ComparisonStage = column(choice(ComparisonStage, "stage"), nullable=False)
    attempts: int = column(sa.Integer, nullable=False, server_default="0")
    next_attempt_at: int = column(sa.Integer, nullable=False, server_default="0")
    error_code: str | None = column(sa.Text)
    # A JSON array of the ids of memories that the model of its page saw; NULL: no model's page.
    known: str | None = column(sa.Text)


class EmbeddingRow(Row, table=True):
    """The vector of a memory as int8 values (-127..127); only its direction matters.

    NULL until ``state`` is ready. ``visibility`` is the key of its visibility class, see
    ``store.embeddings``; -1: visible to nobody.
    """

    __tablename__ = "memory_embeddings"
    __table_args__ = (
        sa.CheckConstraint("(state = 'ready') = (vector IS NOT NULL)", name="ready_has_vector"),
        sa.CheckConstraint("attempts >= 0", name="attempts"),
        sa.Index(
            "ix_memory_embeddings_outbox",
            "state",
            "next_attempt_at",
            sqlite_where=sa.text("state <> 'ready'"),
        ),
    )

    memory_pk: int = column(sa.Integer, sa.ForeignKey("memories.pk"), primary_key=True)
    vector: bytes | None = column(sa.LargeBinary)
    model: str | None = column(sa.Text)
    dimensions: int | None = column(sa.Integer)
    state: EmbeddingState = column(choice(EmbeddingState, "state"), nullable=False)
    attempts: int = column(sa.Integer, nullable=False, server_default="0")
    next_attempt_at: int = column(sa.Integer, nullable=False, server_default="0")
    error_code: str | None = column(sa.Text)
    visibility: int = column(sa.Integer, nullable=False, server_default="-1")


class VectorChangeRow(Row, table=True):
    """A range of keys whose vectors or visibility changed; the oldest rows are removed."""

    __tablename__ = "memory_vector_changes"

    version: int = column(sa.Integer, primary_key=True)
    first_pk: int = column(sa.Integer, nullable=False)
    last_pk: int = column(sa.Integer, nullable=False)
