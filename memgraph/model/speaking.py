"""Who speaks in a turn: a person, an agent, a name that nobody declared, or nobody.

Events, anti-echo, the extractors and the counting of sources all ask here.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal

ToldAs = Literal["person", "agent"]
"""What a ``UserTurn`` or ``AgentTurn`` says of its speaker."""

TOLD_AS: Final = "told_as"
"""The attribute of an episode that keeps it, where the role alone says something else."""

PERSONS: Final = frozenset(("user", "human"))
AGENTS: Final = frozenset(("assistant", "agent", "ai", "bot", "chatbot", "model"))
# Instructions and outputs: nobody's word about the world.
SILENT: Final = frozenset(("system", "tool", "function", "developer"))


class Voice(StrEnum):
    """Who speaks, and what may be made of it.

    PERSON: the own words are facts, and said again they strengthen. NAMED: a name alone; the own
    words are facts, but it may be an agent's that says what it was told, so it strengthens nothing.
    AGENT: little is believed. SILENT: no word about the world.
    """

    PERSON = "person"
    NAMED = "named"
    AGENT = "agent"
    SILENT = "silent"

    @property
    def weight(self) -> int:
        """2 a person, 1 a name, 0 anything else: the less never wins against the more."""
        return {Voice.PERSON: 2, Voice.NAMED: 1}.get(self, 0)


def voice_of(role: str | None, told_as: str | None = None) -> Voice:
    """Whose voice a turn of this role is; what it was told to be goes before the role.

    ``told_as``: ``person`` or ``agent``; anything else says nothing. A tool stays silent when it
    is told to be an agent.
    """
    lower = " ".join((role or "").split()).casefold()
    if told_as == "person":
        return Voice.PERSON
    if lower in SILENT or not any(each.isalnum() for each in lower):
        return Voice.SILENT
    if told_as == "agent" or lower in AGENTS:
        return Voice.AGENT
    return Voice.PERSON if lower in PERSONS else Voice.NAMED
