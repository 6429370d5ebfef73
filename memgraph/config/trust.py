"""The settings of trust: the tier of a source without an assignment."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from memgraph.config.fields import Group

TierName = Literal["low", "standard", "high"]
Quota = Annotated[int, Field(ge=0, le=1_000_000_000)]


class CaptorTiers(Group):
    user: TierName = Field(default="standard", description="Tier of what a user stores.")
    extractor: TierName = Field(
        default="standard", description="Tier of what is extracted from files and conversations."
    )
    system: TierName = Field(default="standard", description="Tier of what a program notes.")


class SourceTypeTiers(Group):
    workflow_output: TierName = Field(
        default="standard", description="Tier of what a workflow gives out."
    )
    channel_transcript: TierName = Field(
        default="standard", description="Tier of what is said in conversations."
    )
    ingest_file: TierName = Field(default="standard", description="Tier of dropped files.")
    diagnostics: TierName = Field(default="standard", description="Tier of diagnostics.")
    manual: TierName = Field(default="standard", description="Tier of what is stored by hand.")


class QuotaSettings(Group):
    low: Quota = Field(
        default=10_000, description="Memories that one source of low trust may hold; 0: no limit."
    )
    standard: Quota = Field(default=0, description="The same, of standard trust.")
    high: Quota = Field(default=0, description="The same, of high trust.")


class TrustSettings(Group):
    """A source has the lower of its two tiers, until an operator assigns one."""

    captured_by: CaptorTiers = Field(default_factory=CaptorTiers)
    source_type: SourceTypeTiers = Field(default_factory=SourceTypeTiers)
    max_memories: QuotaSettings = Field(default_factory=QuotaSettings)
