"""Every setting: its key, type, range, default and meaning. Nothing is read here.

The description of a field is its row in docs/configuration.md; a test compares them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, PrivateAttr

from memgraph.config.context import ContextSettings, ReceiptSettings, TrustSettings
from memgraph.config.fields import (
    GLOBAL_ONLY,
    ApiBase,
    Factor,
    Folders,
    LegWeight,
    ModelGroup,
    Placement,
    ServerUrl,
    SettingsGroup,
    VariableName,
    embedding_provider,
    model_provider,
    no_crossing,
)
from memgraph.config.life import (
    ConsolidationSettings,
    DecaySettings,
    EntitySettings,
    LanguageModelSettings,
    ReflectionSettings,
    ScheduleSettings,
)
from memgraph.config.server import ServerSettings, WebhookSettings


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


class EmbeddingSettings(SettingsGroup):
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
    api_base: ApiBase = Field(
        default="", description="Address of the provider; empty: the provider's own."
    )
    api_key_env: VariableName = Field(
        default="", description="Variable that holds the key; empty: the provider's usual one."
    )
    api_key_file: str = Field(
        default="",
        max_length=4_096,
        description="File that holds the key, read at every call; it wins over the variable.",
    )
    timeout_s: float = Field(
        default=20.0, gt=0.0, le=600.0, description="Limit of one call, seconds."
    )
    retries: int = Field(
        default=2, ge=0, le=20, description="Further attempts after one that failed."
    )
    batch_size: int = Field(default=64, ge=1, le=2_048, description="Texts in one call.")


class ExtractorSettings(ModelGroup):
    provider: Annotated[str, AfterValidator(model_provider)] = Field(
        default="none", description="`none` (rules and the local model) or `litellm/<model>`."
    )
    max_chars: int = Field(
        default=12_000, ge=100, le=1_000_000, description="Text sent in one call, characters."
    )


class RerankerSettings(SettingsGroup):
    provider: Annotated[str, AfterValidator(model_provider)] = Field(
        default="none", description="`none` or `litellm/<model>`: what orders an answer once more."
    )
    mode: Literal["rerank", "chat"] = Field(
        default="rerank", description="A model with a rerank interface, or a language model."
    )
    api_base: ApiBase = Field(
        default="", description="Address of the provider; empty: the provider's own."
    )
    api_key_env: VariableName = Field(
        default="", description="Variable that holds the key; empty: the provider's usual one."
    )
    api_key_file: str = Field(
        default="",
        max_length=4_096,
        description="File that holds the key, read at every call; it wins over the variable.",
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
