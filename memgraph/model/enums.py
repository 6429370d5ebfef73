"""The closed vocabularies of the memory graph. Values are stored and printed as written here."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class MemoryKind(StrEnum):
    """The kind of a memory: a raw turn, a fact, or a reflection on facts."""

    EPISODE = "episode"
    FACT = "fact"
    REFLECTION = "reflection"

    @property
    def id_prefix(self) -> str:
        """Return the prefix of ids of this kind."""
        return {"episode": "ep_", "fact": "fact_", "reflection": "ref_"}[self.value]


class KindFilter(StrEnum):
    """A kind to search for; ``preference`` means the facts of the type Preference."""

    EPISODE = "episode"
    FACT = "fact"
    REFLECTION = "reflection"
    PREFERENCE = "preference"


class MemoryType(StrEnum):
    FACT = "Fact"
    PREFERENCE = "Preference"
    DECISION = "Decision"
    IDENTITY = "Identity"
    EVENT = "Event"
    OBSERVATION = "Observation"
    GOAL = "Goal"
    TODO = "Todo"


class EdgeType(StrEnum):
    """The type of an edge between two memories.

    ``from`` Updates ``to``: ``from`` is the newer memory. ``from`` CausedBy ``to``: ``to`` is the
    cause. ``from`` PartOf ``to``: ``to`` is the whole. Contradicts and RelatedTo have no direction.
    """

    RELATED_TO = "RelatedTo"
    UPDATES = "Updates"
    CONTRADICTS = "Contradicts"
    CAUSED_BY = "CausedBy"
    PART_OF = "PartOf"


class MarkKind(StrEnum):
    """What an edge says about a memory and another one.

    ``changed_by`` and ``changes``: probably, nobody decided it. ``replaced_by`` and ``replaces``:
    in force. ``contradicts``: unresolved.
    """

    CONTRADICTS = "contradicts"
    CHANGED_BY = "changed_by"
    CHANGES = "changes"
    REPLACED_BY = "replaced_by"
    REPLACES = "replaces"


class MemoryStatus(StrEnum):
    """The status of a memory.

    ERASED is only shown, listed and counted. It is never stored: an erased memory is stored as
    retracted, without its text.
    """

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    RETRACTED = "retracted"
    ERASED = "erased"


STORED_STATUSES: Final = (MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED, MemoryStatus.RETRACTED)


class Sensitivity(StrEnum):
    """The sensitivity of a memory, lowest first; a reader sees memories up to its clearance."""

    PUBLIC = "Public"
    INTERNAL = "Internal"
    CONFIDENTIAL = "Confidential"
    RESTRICTED = "Restricted"

    @property
    def level(self) -> int:
        """0 (Public) to 3 (Restricted)."""
        return list(Sensitivity).index(self)


class Scope(StrEnum):
    """The scope of a memory."""

    SESSION = "session"
    PROJECT = "project"
    GLOBAL = "global"

    @property
    def tier(self) -> str:
        """Its name as a tier of a context, where a session is a ``task``."""
        return "task" if self is Scope.SESSION else self.value


class SourceType(StrEnum):
    WORKFLOW_OUTPUT = "workflow_output"
    CHANNEL_TRANSCRIPT = "channel_transcript"
    INGEST_FILE = "ingest_file"
    DIAGNOSTICS = "diagnostics"
    MANUAL = "manual"


class CapturedBy(StrEnum):
    EXTRACTOR = "extractor"
    USER = "user"
    SYSTEM = "system"


class ComparisonStage(StrEnum):
    """The stage of a pending comparison: who makes it next, the reader of pairs or a model."""

    READER = "reader"
    MODEL = "model"


class EmbeddingState(StrEnum):
    PENDING = "pending"
    READY = "ready"
    FAILED = "failed"


class EntityType(StrEnum):
    PERSON = "person"
    PROJECT = "project"
    ORGANIZATION = "organization"
    LOCATION = "location"
    EMAIL = "email"
    URL = "url"
    DATE = "date"
    HASHTAG = "hashtag"
    MENTION = "mention"
    OTHER = "other"


NAMED_TYPES: Final = (
    EntityType.PERSON,
    EntityType.PROJECT,
    EntityType.ORGANIZATION,
    EntityType.LOCATION,
    EntityType.OTHER,
)
"""Types with proper names; addresses, handles and dates are recognised by their form."""


class Relation(StrEnum):
    """The relation of a later memory to an earlier one, as determined by a comparison."""

    CONTRADICTS = "contradicts"
    UPDATES = "updates"
    DUPLICATE = "duplicate"


class IngestStatus(StrEnum):
    PROCESSED = "processed"
    REJECTED = "rejected"


class JobName(StrEnum):
    """A maintenance job, each on a schedule of its own."""

    ENRICHMENT = "enrichment"
    CONSOLIDATION = "consolidation"
    DECAY = "decay"
    REFLECTION = "reflection"
    VERIFICATION = "verification"


class JobState(StrEnum):
    """The state of a job's run.

    SKIPPED: there was nothing to do, or a requirement is missing, which ``reason`` names.
    ABANDONED: its process ended without recording a result.
    """

    RUNNING = "running"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    ABANDONED = "abandoned"


class ModelUse(StrEnum):
    """What a language model is called for; its usage is counted under it."""

    CONSOLIDATION = "consolidation"
    COMPARISON = "comparison"
    ASK = "ask"
    PROFILES = "profiles"
    REFLECTION = "reflection"
    ENRICHMENT = "enrichment"
    INGEST = "ingest"


class IndexPart(StrEnum):
    """What a rebuild can make anew. ``indexes``: the engine's own indexes of its tables."""

    INDEXES = "indexes"
    FTS = "fts"
    VECTORS = "vectors"
    ENTITIES = "entities"


class SourceName(StrEnum):
    """The kind of a source's name: a path, a conversation, a run, or a digest of the content."""

    PATH = "path"
    CONVERSATION = "conversation"
    RUN = "run"
    CONTENT = "content"


class ToolChoice(StrEnum):
    """Which tools are offered: the six that every agent needs, or all."""

    DEFAULT = "default"
    ALL = "all"
