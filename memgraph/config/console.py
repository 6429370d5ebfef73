"""The settings of the console, the pages that `memgraph serve` shows to people."""

from __future__ import annotations

from pydantic import Field

from memgraph.config.fields import Group


class ConsoleSettings(Group):
    enabled: bool = Field(default=True, description="Whether the console is served, at `/console`.")
    idle_minutes: int = Field(
        default=30,
        ge=1,
        le=1_440,
        description="A session of the console that was not used for so long ends, minutes.",
    )
    sign_ins_per_minute: int = Field(
        default=10,
        ge=1,
        le=10_000,
        description="How often one address may try to sign in; then it waits.",
    )
