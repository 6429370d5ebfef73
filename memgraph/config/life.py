"""The settings of the life of a memory: entities, consolidation, decay, reflection, schedule."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from memgraph.config.fields import (
    Cron,
    Factor,
    FastProviderNames,
    ModelGroup,
    Nicknames,
    ProviderNames,
    SettingsGroup,
    TimeZone,
    model_provider,
)


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
