"""Every setting: its key, type, range, default and meaning. Nothing is read here.

The description of a field is its row in docs/configuration.md; a test compares them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, PrivateAttr

from memgraph.config.fields import (
    GLOBAL_ONLY,
    Cron,
    Factor,
    FastProviderNames,
    Folders,
    ModelGroup,
    Nicknames,
    Placement,
    ProviderNames,
    ServerUrl,
    SettingsGroup,
    TimeZone,
    embedding_provider,
    model_provider,
    no_crossing,
)
from memgraph.config.server import ServerSettings


class ContextSettings(SettingsGroup):
    budget_tokens: int = Field(
        default=2_000, ge=0, le=10_000_000, description="Default token budget of a context."
    )
    head_tail: int = Field(
        default=2,
        ge=0,
        le=1_000,
        description="Number of a task's first and of its last items that take precedence.",
    )
    format: Literal["fenced", "list", "sections"] = Field(
        default="fenced", description="How memories are written into a prompt."
    )
    block_tokens: int = Field(
        default=1_200,
        ge=0,
        le=10_000_000,
        description="Token budget of the block that `orc.context()` puts before a message.",
    )


class ReceiptSettings(SettingsGroup):
    query_text: bool = Field(
        default=False,
        description="Whether a receipt keeps the text of the query; if not, only its SHA-256.",
    )
    keep_days: float = Field(
        default=366.0, ge=0.0, le=100_000.0, description="Age at which receipts are removed, days."
    )


class LanguageModelSettings(ModelGroup):
    provider: Annotated[str, AfterValidator(model_provider)] = Field(
        default="none",
        description="`none` (rules and the local model) or `litellm/<model>`: the model for"
        " consolidation, entities and reflection.",
    )
    timeout_s: float = Field(
        default=60.0,
        gt=0.0,
        le=3_600.0,
        description="Time limit of one call, seconds; also of the extractor's.",
    )
    max_sensitivity: Literal["Public", "Internal", "Confidential", "Restricted"] = Field(
        default="Internal",
        description="More sensitive memories are not sent; rules and the local model process them.",
    )
    monthly_tokens: int = Field(
        default=0,
        ge=0,
        le=1_000_000_000_000,
        description="Tokens that an orchestrator's models may read and write in a calendar month"
        " (UTC); above that they are not called. 0: no limit.",
    )


class EntitySettings(SettingsGroup):
    fast: FastProviderNames = Field(
        default=("regex",),
        description="Providers of the `fast` strategy, on every write: `regex`, `spacy`.",
    )
    accurate: ProviderNames = Field(
        default=("regex", "spacy", "llm"),
        description="Providers of the `accurate` strategy, in the nightly enrichment; unavailable"
        " ones are skipped.",
    )
    spacy_model: str = Field(
        default="",
        max_length=1_000,
        description="Name or folder of an installed spaCy pipeline; empty: none.",
    )
    nicknames: Nicknames = Field(
        default=(), description="Other names of entities, each as `nickname=full name`."
    )


class ScheduleSettings(SettingsGroup):
    timezone: TimeZone = Field(
        default="UTC",
        description="Time zone of the expressions below, and of the dates in blocks and bulletins,"
        " by its IANA name; on the command line the machine's is the default for blocks.",
    )
    enrichment: Cron = Field(
        default="0 2 * * *", description="When entities are enriched: cron expression or empty."
    )
    consolidation: Cron = Field(
        default="0 3 * * *", description="When all sessions that ended are consolidated."
    )
    decay: Cron = Field(default="0 4 * * *", description="When unused inferred facts are retired.")
    reflection: Cron = Field(default="0 3 * * 0", description="When the weekly reflection runs.")
    verification: Cron = Field(
        default="30 4 * * *", description="When the database is verified: cron expression or empty."
    )


class DecaySettings(SettingsGroup):
    rate: float = Field(
        default=0.1,
        ge=0.0,
        le=1_000.0,
        description="Decay rate per day of an inferred fact. What a person, a file or a record says"
        " has the rate 0.",
    )
    exponent: float = Field(
        default=1.0, gt=0.0, le=3.0, description="Power of the days in the decay."
    )
    threshold: Factor = Field(
        default=0.05, description="A decaying fact whose effective confidence is lower is retired."
    )


class BulletinSettings(SettingsGroup):
    max_chars: int = Field(
        default=4_000,
        ge=500,
        le=200_000,
        description="Hard limit of the bulletin, characters.",
    )


class RetrievalSettings(SettingsGroup):
    top_n: int = Field(default=20, ge=1, le=1_000, description="Number of memories in a bundle.")
    rrf_k: int = Field(default=60, ge=1, le=10_000, description="k of reciprocal rank fusion.")
    top_k_vector: int = Field(
        default=50, ge=1, le=4_096, description="Candidates of the vector leg."
    )
    top_k_text: int = Field(
        default=50, ge=1, le=4_096, description="Candidates of the full-text leg."
    )


class EmbeddingSettings(ModelGroup):
    provider: Annotated[str, AfterValidator(embedding_provider)] = Field(
        default="local",
        description="`local`, `litellm/<model>`, `none` (text search only) or `fake` (tests).",
    )
    dimensions: int = Field(default=256, ge=1, le=8_192, description="Length of a vector.")


class ExtractorSettings(ModelGroup):
    provider: Annotated[str, AfterValidator(model_provider)] = Field(
        default="none", description="`none` (rules and the local model) or `litellm/<model>`."
    )


class ComparisonSettings(SettingsGroup):
    reader: Literal["local", "none"] = Field(
        default="local",
        description="The reader of pairs that marks what a new memory changes: `local` or `none`.",
    )


class IngestSettings(SettingsGroup):
    enabled: bool = Field(default=True, description="Whether files are ingested.")
    max_file_size_mb: int = Field(
        default=10,
        ge=1,
        le=1_024,
        description="Maximum size of a file, units of 1,000,000 bytes; larger ones are rejected.",
    )
    allowed_roots: Folders = Field(
        default=(),
        description="Absolute paths of folders, besides the drop zone, whose files may be sources.",
    )


class ScopeSettings(SettingsGroup):
    cross_orchestrator: Annotated[bool, AfterValidator(no_crossing)] = Field(
        default=False,
        description="Must be `false`: one orchestrator never recalls another's memories.",
    )


class StorageSettings(SettingsGroup):
    url: ServerUrl = Field(
        default="",
        description="URL of the PostgreSQL database that stores the orchestrator, as"
        " `postgresql+psycopg://user@host/database`, without a password; empty: an SQLite file.",
    )
    placement: Placement = Field(
        default=(),
        description="Storage of orchestrators whose own file does not set `url`: entries"
        " `pattern=url`, such as `team-*=postgresql+psycopg://db2/memories` or `local-*=` for"
        " SQLite files. The first matching entry takes precedence over `url`. Set it in a file, not"
        " in a variable.",
        json_schema_extra=GLOBAL_ONLY,
    )
    synchronous: Literal["FULL", "NORMAL"] = Field(
        default="FULL", description="`NORMAL` is faster and may lose the last writes on power loss."
    )
    busy_timeout_ms: int = Field(
        default=5_000,
        ge=0,
        le=600_000,
        description="Maximum wait of a write for other writers, milliseconds; jobs and erasures"
        " wait six times as long.",
    )
    vector_cache_mb: int = Field(
        default=512,
        ge=0,
        le=100_000,
        description="Vectors that one process caches between recalls, units of 1,000,000 bytes;"
        " 0: none.",
        json_schema_extra=GLOBAL_ONLY,
    )

    @property
    def urls(self) -> list[str]:
        """The URLs of the servers that may store an orchestrator, sorted."""
        placed = {entry.partition("=")[2] for entry in self.placement}
        return sorted({self.url, *placed} - {""})


class AuditSettings(SettingsGroup):
    anchor_path: str = Field(
        default="",
        max_length=4_096,
        description="Folder of the journals' anchors, one file for each orchestrator; empty: next"
        " to its database. Choose one that users who can write to the databases cannot write to.",
        json_schema_extra=GLOBAL_ONLY,
    )
    key_file: str = Field(
        default="",
        max_length=4_096,
        description="File with the key, 32 bytes or more, that seals the journals (HMAC-SHA256);"
        " empty: none. It must be outside of the root, and only its owner may have access.",
        json_schema_extra=GLOBAL_ONLY,
    )


class LogSettings(SettingsGroup):
    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Lowest level written to `logs/memory.log`."
    )


class MemorySettings(SettingsGroup):
    enabled: bool = Field(default=True, description="Whether memory is enabled.")
    bulletin_mode: Literal["every_message"] = Field(
        default="every_message", description="When a bulletin is made."
    )
    bulletin: BulletinSettings = Field(default_factory=BulletinSettings)
    retrieval: RetrievalSettings = Field(default_factory=RetrievalSettings)
    embedding: EmbeddingSettings = Field(default_factory=EmbeddingSettings)
    extractor: ExtractorSettings = Field(default_factory=ExtractorSettings)
    llm: LanguageModelSettings = Field(default_factory=LanguageModelSettings)
    entities: EntitySettings = Field(default_factory=EntitySettings)
    comparison: ComparisonSettings = Field(default_factory=ComparisonSettings)
    schedule: ScheduleSettings = Field(default_factory=ScheduleSettings)
    ingest: IngestSettings = Field(default_factory=IngestSettings)
    scope: ScopeSettings = Field(default_factory=ScopeSettings)
    storage: StorageSettings = Field(default_factory=StorageSettings)
    decay: DecaySettings = Field(default_factory=DecaySettings)
    context: ContextSettings = Field(default_factory=ContextSettings)
    receipts: ReceiptSettings = Field(default_factory=ReceiptSettings)
    audit: AuditSettings = Field(default_factory=AuditSettings)
    log: LogSettings = Field(default_factory=LogSettings)
    server: ServerSettings = Field(default_factory=ServerSettings, json_schema_extra=GLOBAL_ONLY)


class Settings(SettingsGroup):
    """All settings of one orchestrator, or of the process, and where each came from."""

    memory: MemorySettings = Field(default_factory=MemorySettings)
    _origins: dict[str, str] = PrivateAttr(default_factory=dict)
