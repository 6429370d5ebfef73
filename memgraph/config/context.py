"""Settings of contexts, receipts and trust."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from memgraph.config.fields import Factor, SettingsGroup


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
