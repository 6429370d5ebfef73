"""Every setting: its key, type, range, default and meaning. Nothing is read here.

The description of a field is its row in docs/configuration.md; a test compares them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, PrivateAttr, model_validator

from memgraph.config.fields import (
    GLOBAL_ONLY,
    Cron,
    Factor,
    FastProviderNames,
    Folders,
    LegWeight,
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
from memgraph.config.server import ServerSettings, WebhookSettings


class ContextSettings(SettingsGroup):
    budget_tokens: int = Field(
        default=2_000, ge=0, le=10_000_000, description="Tokens of a context, where none are named."
    )
    task_share: Factor = Field(default=0.4, description="Share of the task, 0 to 1.")
    project_share: Factor = Field(default=0.4, description="Share of the project, 0 to 1.")
    global_share: Factor = Field(
        default=0.2, description="Share of what belongs to neither, 0 to 1."
    )
    head_tail: int = Field(
        default=2,
        ge=0,
        le=1_000,
        description="So many of a task's first and of its last items are kept before others.",
    )
    format: Literal["fenced", "list", "sections"] = Field(
        default="fenced", description="How memories are written into a prompt."
    )
    facts: int = Field(
        default=5,
        ge=1,
        le=1_000,
        description="Memories that `orc.context()` puts before a message.",
    )
    min_relevance: Factor = Field(
        default=0.25,
        description="What has less to do with the message is not put before it, 0 to 1; 0: all is.",
    )
    max_project_items: int = Field(
        default=1_000,
        ge=1,
        le=1_000_000,
        description="A project that holds more gives up a tenth, the least important first.",
    )
    deadline_ms: int = Field(
        default=250,
        ge=1,
        le=600_000,
        description="How long a turn waits for its memory, milliseconds.",
    )

    @model_validator(mode="after")
    def _shares_something(self) -> ContextSettings:
        if self.task_share + self.project_share + self.global_share <= 0:
            raise ValueError("task_share, project_share, global_share: one of them is above 0")
        return self


class ReceiptSettings(SettingsGroup):
    query_text: bool = Field(
        default=False,
        description="Whether a receipt keeps what was asked; else only its SHA-256.",
    )
    keep: int = Field(
        default=50_000, ge=0, le=10_000_000, description="Receipts kept, the newest ones."
    )
    keep_days: float = Field(
        default=366.0, ge=0.0, le=100_000.0, description="Older receipts are removed, days."
    )


TierName = Literal["low", "standard", "high"]
Quota = Annotated[int, Field(ge=0, le=1_000_000_000)]


class CaptorTiers(SettingsGroup):
    user: TierName = Field(default="standard", description="Tier of what a user stores.")
    extractor: TierName = Field(
        default="standard", description="Tier of what is extracted from files and conversations."
    )
    system: TierName = Field(default="standard", description="Tier of what a program notes.")


class SourceTypeTiers(SettingsGroup):
    workflow_output: TierName = Field(
        default="standard", description="Tier of what a workflow gives out."
    )
    channel_transcript: TierName = Field(
        default="standard", description="Tier of what is said in conversations."
    )
    ingest_file: TierName = Field(default="standard", description="Tier of dropped files.")
    diagnostics: TierName = Field(default="standard", description="Tier of diagnostics.")
    manual: TierName = Field(default="standard", description="Tier of what is stored by hand.")


class QuotaSettings(SettingsGroup):
    low: Quota = Field(
        default=10_000, description="Memories that one source of low trust may hold; 0: no limit."
    )
    standard: Quota = Field(default=0, description="The same, of standard trust.")
    high: Quota = Field(default=0, description="The same, of high trust.")


class TrustSettings(SettingsGroup):
    """A source has the lower of its two tiers, until an operator assigns one."""

    captured_by: CaptorTiers = Field(default_factory=CaptorTiers)
    source_type: SourceTypeTiers = Field(default_factory=SourceTypeTiers)
    max_memories: QuotaSettings = Field(default_factory=QuotaSettings)


class LanguageModelSettings(ModelGroup):
    provider: Annotated[str, AfterValidator(model_provider)] = Field(
        default="none",
        description="`none` (rules and the local model) or `litellm/<model>`: what consolidates,"
        " names entities and reflects.",
    )
    max_sensitivity: Literal["Public", "Internal", "Confidential", "Restricted"] = Field(
        default="Internal",
        description="More sensitive memories are not sent; rules and the local model take them.",
    )


class EntitySettings(SettingsGroup):
    fast: FastProviderNames = Field(
        default=("regex",),
        description="Providers of the `fast` strategy, on every write: `regex`, `spacy`.",
    )
    accurate: ProviderNames = Field(
        default=("regex", "spacy", "llm"),
        description="Providers of the `accurate` strategy, in the nightly enrichment; those that"
        " are not there are left out.",
    )
    spacy_model: str = Field(
        default="",
        max_length=1_000,
        description="Name or folder of an installed spaCy pipeline; empty: none.",
    )
    nicknames: Nicknames = Field(
        default=(), description="Other names of entities, each as `nickname=full name`."
    )
    enrichment_limit: int = Field(
        default=50, ge=1, le=100_000, description="Memories enriched in one run."
    )
    enrichment_max_entities: int = Field(
        default=2, ge=0, le=1_000, description="A memory that names more is not enriched."
    )


class ConsolidationSettings(SettingsGroup):
    page_episodes: int = Field(
        default=30, ge=1, le=500, description="Turns read, and written back, at once."
    )
    max_facts_per_page: int = Field(
        default=12, ge=1, le=200, description="Facts taken from one page of turns, the best ones."
    )
    idle_minutes: float = Field(
        default=30.0,
        ge=0.0,
        le=1e6,
        description="The nightly run leaves a session alone whose last turn is younger.",
    )
    max_calls: int = Field(
        default=200, ge=1, le=1_000_000, description="Calls of a language model in one run."
    )
    max_tokens: int = Field(
        default=500_000,
        ge=1,
        le=1_000_000_000,
        description="Tokens that the language model may read and write in one run.",
    )


class ReflectionSettings(SettingsGroup):
    days: int = Field(default=7, ge=1, le=366, description="Days that a reflection looks back.")
    min_facts: int = Field(
        default=3, ge=1, le=1_000, description="Fewer new facts are not reflected on."
    )
    min_days_between: float = Field(
        default=6.0, ge=0.0, le=366.0, description="Days between two reflections, at least."
    )
    limit: int = Field(
        default=200, ge=1, le=5_000, description="Memories that a reflection looks at, the latest."
    )


class ScheduleSettings(SettingsGroup):
    timezone: TimeZone = Field(
        default="UTC", description="Time zone of the expressions below, by its IANA name."
    )
    enrichment: Cron = Field(
        default="0 2 * * *", description="When entities are enriched: cron expression or empty."
    )
    consolidation: Cron = Field(
        default="0 3 * * *", description="When all sessions that ended are consolidated."
    )
    decay: Cron = Field(
        default="0 4 * * *", description="When inferred facts that nobody used are retired."
    )
    reflection: Cron = Field(default="0 3 * * 0", description="When the week is reflected on.")
    verification: Cron = Field(
        default="30 4 * * *", description="When the database is verified: cron expression or empty."
    )
    lease_s: float = Field(
        default=60.0,
        ge=1.0,
        le=86_400.0,
        description="A worker that was silent for so long loses its job to another, seconds.",
    )
    keep_runs: int = Field(
        default=1_000, ge=1, le=1_000_000, description="Ended runs kept in `memgraph jobs`."
    )


class DecaySettings(SettingsGroup):
    rate: float = Field(
        default=0.1,
        ge=0.0,
        le=1_000.0,
        description="Per day, for a fact that a machine inferred. What a person, a file or a record"
        " said has 0.",
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
        description="Hard limit of the bulletin's Markdown, characters.",
    )
    max_line_chars: int = Field(
        default=240,
        ge=20,
        le=10_000,
        description="A longer memory is cut in the bulletin, characters.",
    )
    min_confidence: Factor = Field(
        default=0.5,
        description="Goals, todos, decisions and preferences of less confidence are named as"
        " doubts alone.",
    )
    keep_snapshots: int = Field(
        default=20,
        ge=1,
        le=10_000,
        description="Snapshots kept in `bulletins/`; older ones are removed.",
    )


class WeightSettings(SettingsGroup):
    text: LegWeight = Field(
        default=0.5, description="Weight of the full-text leg in the rank fusion."
    )
    vector: LegWeight = Field(default=0.25, description="Weight of the vector leg.")
    entity: LegWeight = Field(default=0.25, description="Weight of the entity leg.")
    graph: LegWeight = Field(
        default=0.5, description="Weight of the graph leg: what edges join to good candidates."
    )
    succession: LegWeight = Field(
        default=2.0, description="Weight of what replaced a superseded memory that was found."
    )
    context: LegWeight = Field(
        default=20.0,
        description="Weight of the context leg, which ranks what all other legs found.",
    )


class ModifierGroup(SettingsGroup):
    importance_weight: Factor = Field(
        default=0.02, description="Importance 0 to 100 multiplies by 1 - weight to 1 + weight."
    )
    recency_floor: Factor = Field(default=0.98, description="What an infinitely old memory keeps.")
    recency_half_life_days: float = Field(
        default=180.0,
        gt=0.0,
        le=1e6,
        description="Age at which half of the way to the floor is gone.",
    )
    confidence_floor: Factor = Field(
        default=0.95, description="What a memory of effective confidence 0 keeps."
    )
    contradiction_factor: Factor = Field(
        default=0.98, description="Factor while a contradiction is unresolved."
    )
    stale_basis_factor: Factor = Field(
        default=0.95, description="Factor when the ground of a memory was superseded or retracted."
    )
    superseded_factor: Factor = Field(
        default=0.5, description="Factor of a superseded memory, where one is shown."
    )
    retracted_factor: Factor = Field(
        default=0.25, description="Factor of a retracted memory, where one is shown."
    )


class RetrievalSettings(SettingsGroup):
    top_n: int = Field(default=20, ge=1, le=1_000, description="Memories in a bundle.")
    source_share: float = Field(
        default=0.33,
        gt=0.0,
        le=1.0,
        description="Share of an answer's places that one source holds while others are as"
        " relevant; turns of a talk where it floods the search. 1: no bound.",
    )
    rrf_k: int = Field(default=60, ge=1, le=10_000, description="k of reciprocal rank fusion.")
    top_k_vector: int = Field(
        default=50, ge=1, le=4_096, description="Candidates of the vector leg."
    )
    top_k_text: int = Field(
        default=50, ge=1, le=4_096, description="Candidates of the full-text leg."
    )
    deadline_ms: int = Field(
        default=1_000,
        ge=10,
        le=600_000,
        description="A leg that takes longer is given up, milliseconds.",
    )
    weights: WeightSettings = Field(default_factory=WeightSettings)
    modifiers: ModifierGroup = Field(default_factory=ModifierGroup)


class EmbeddingSettings(ModelGroup):
    provider: Annotated[str, AfterValidator(embedding_provider)] = Field(
        default="local",
        description="`local`, `onnx`, `litellm/<model>`, `none` (text alone) or `fake` (tests).",
    )
    dimensions: int = Field(default=256, ge=1, le=8_192, description="Length of a vector.")
    model_folder: str = Field(
        default="",
        max_length=4_096,
        description="Folder of the model of `onnx`, an absolute path; of a named one the cache.",
        json_schema_extra=GLOBAL_ONLY,
    )
    model: str = Field(
        default="",
        max_length=200,
        description="Name of the model of `onnx` as fastembed knows it; empty: `model_folder`.",
        json_schema_extra=GLOBAL_ONLY,
    )
    timeout_s: float = Field(
        default=20.0, gt=0.0, le=600.0, description="Limit of one call, seconds."
    )
    batch_size: int = Field(default=64, ge=1, le=2_048, description="Texts in one call.")


class ExtractorSettings(ModelGroup):
    provider: Annotated[str, AfterValidator(model_provider)] = Field(
        default="none", description="`none` (rules and the local model) or `litellm/<model>`."
    )
    max_chars: int = Field(
        default=12_000, ge=100, le=1_000_000, description="Text sent in one call, characters."
    )


class RerankerSettings(ModelGroup):
    provider: Annotated[str, AfterValidator(model_provider)] = Field(
        default="none", description="`none` or `litellm/<model>`: what orders an answer once more."
    )
    mode: Literal["rerank", "chat"] = Field(
        default="rerank", description="A model with a rerank interface, or a language model."
    )
    timeout_s: float = Field(
        default=5.0,
        gt=0.0,
        le=600.0,
        description="Limit of one reranking with all its attempts, seconds.",
    )
    retries: int = Field(
        default=1, ge=0, le=20, description="Further attempts after one that failed."
    )
    candidates: int = Field(
        default=50, ge=2, le=500, description="Memories that are sent, the best ones."
    )
    max_chars: int = Field(
        default=2_000,
        ge=50,
        le=100_000,
        description="Text sent of the query and of each memory, characters.",
    )
    max_sensitivity: Literal["Public", "Internal", "Confidential", "Restricted"] = Field(
        default="Internal", description="More sensitive memories are not sent and keep their place."
    )
    weight: LegWeight = Field(default=20.0, description="Weight of the order in the rank fusion.")


class IngestSettings(SettingsGroup):
    enabled: bool = Field(default=True, description="Whether the drop zone is worked off.")
    max_file_size_mb: int = Field(
        default=10,
        ge=1,
        le=1_024,
        description="A larger file is rejected, units of 1,000,000 bytes.",
    )
    max_memories_per_file: int = Field(
        default=100_000,
        ge=1,
        le=100_000,
        description="A file with more statements, turns or items is rejected.",
    )
    allowed_roots: Folders = Field(
        default=(),
        description="Absolute folders, besides the drop zone, whose files may be a source.",
    )


class ScopeSettings(SettingsGroup):
    cross_orchestrator: Annotated[bool, AfterValidator(no_crossing)] = Field(
        default=False,
        description="Must be `false`: one orchestrator never recalls another's memories.",
    )


class StorageSettings(SettingsGroup):
    url: ServerUrl = Field(
        default="",
        description="PostgreSQL server that keeps the orchestrator, as"
        " `postgresql+psycopg://user@host/database`, without a password; empty: a file of SQLite."
        " Also `MEMGRAPH_STORAGE_URL`.",
    )
    placement: Placement = Field(
        default=(),
        description="Where orchestrators lie whose own file does not say it: each entry"
        " `pattern=url`, such as `team-*=postgresql+psycopg://db2/memories` or `local-*=` for"
        " files; the first whose pattern fits counts before `url`. In a file, not a variable.",
        json_schema_extra=GLOBAL_ONLY,
    )
    synchronous: Literal["FULL", "NORMAL"] = Field(
        default="FULL", description="`NORMAL` is faster and may lose the last writes on power loss."
    )
    busy_timeout_ms: int = Field(
        default=30_000, ge=0, le=600_000, description="Wait for another writer, milliseconds."
    )
    max_open_orchestrators: int = Field(
        default=64,
        ge=1,
        le=10_000,
        description="Databases one process keeps open.",
        json_schema_extra=GLOBAL_ONLY,
    )
    vector_cache_mb: int = Field(
        default=512,
        ge=0,
        le=100_000,
        description="Vectors one process keeps between recalls, units of 1,000,000 bytes; 0: none.",
        json_schema_extra=GLOBAL_ONLY,
    )

    @property
    def urls(self) -> list[str]:
        """The servers that may keep an orchestrator, sorted."""
        placed = {entry.partition("=")[2] for entry in self.placement}
        return sorted({self.url, *placed} - {""})


class AuditSettings(SettingsGroup):
    anchor_path: str = Field(
        default="",
        max_length=4_096,
        description="Folder of the journals' anchors, one file for each orchestrator; empty: beside"
        " its database. Take one that whoever can write the databases cannot.",
        json_schema_extra=GLOBAL_ONLY,
    )
    key_file: str = Field(
        default="",
        max_length=4_096,
        description="File with the key, 32 bytes or more, that seals the journals (HMAC-SHA256);"
        " empty: none. Outside of the root; for its owner alone.",
        json_schema_extra=GLOBAL_ONLY,
    )


class LogSettings(SettingsGroup):
    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Lowest level written to `logs/memory.log`."
    )
    max_bytes: int = Field(
        default=5_000_000,
        ge=10_000,
        le=1_000_000_000,
        description="Size at which the log is rotated.",
    )
    keep_files: int = Field(default=3, ge=0, le=100, description="Rotated logs kept.")


class MemorySettings(SettingsGroup):
    enabled: bool = Field(default=True, description="Whether memory is on at all.")
    bulletin_mode: Literal["every_message"] = Field(
        default="every_message", description="When a bulletin is made."
    )
    bulletin: BulletinSettings = Field(default_factory=BulletinSettings)
    retrieval: RetrievalSettings = Field(default_factory=RetrievalSettings)
    embedding: EmbeddingSettings = Field(default_factory=EmbeddingSettings)
    extractor: ExtractorSettings = Field(default_factory=ExtractorSettings)
    reranker: RerankerSettings = Field(default_factory=RerankerSettings)
    llm: LanguageModelSettings = Field(default_factory=LanguageModelSettings)
    entities: EntitySettings = Field(default_factory=EntitySettings)
    consolidation: ConsolidationSettings = Field(default_factory=ConsolidationSettings)
    reflection: ReflectionSettings = Field(default_factory=ReflectionSettings)
    schedule: ScheduleSettings = Field(default_factory=ScheduleSettings)
    ingest: IngestSettings = Field(default_factory=IngestSettings)
    scope: ScopeSettings = Field(default_factory=ScopeSettings)
    storage: StorageSettings = Field(default_factory=StorageSettings)
    decay: DecaySettings = Field(default_factory=DecaySettings)
    context: ContextSettings = Field(default_factory=ContextSettings)
    receipts: ReceiptSettings = Field(default_factory=ReceiptSettings)
    trust: TrustSettings = Field(default_factory=TrustSettings)
    audit: AuditSettings = Field(default_factory=AuditSettings)
    log: LogSettings = Field(default_factory=LogSettings)
    webhook: WebhookSettings = Field(default_factory=WebhookSettings)
    server: ServerSettings = Field(default_factory=ServerSettings, json_schema_extra=GLOBAL_ONLY)


class Settings(SettingsGroup):
    """All settings of one orchestrator, or of the process, and where each came from."""

    memory: MemorySettings = Field(default_factory=MemorySettings)
    _origins: dict[str, str] = PrivateAttr(default_factory=dict)
