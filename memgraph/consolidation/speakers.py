"""Who speaks in a conversation, and how they are written of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from memgraph.model.speaking import AGENTS, Voice, voice_of

# Roles that are words, not names.
_WORDS: Final = AGENTS | {"user", "human", "customer", "client", "caller", "person", "owner"}
_MAX_NAME_CHARS: Final = 80


@dataclass(frozen=True, slots=True)
class Speaker:
    """Whose turn it is.

    ``name`` as written inside a sentence: ``Ana``, ``the user``. ``agent``: no person speaks.
    """

    role: str
    name: str
    agent: bool

    @property
    def head(self) -> str:
        """The name at the head of a sentence."""
        return self.name[:1].upper() + self.name[1:]

    @property
    def owner(self) -> str:
        """``Ana's``; James has a house of ``James's``."""
        return f"{self.name}'s"


def speaker_of(role: str, told_as: str | None = None) -> Speaker | None:
    """Who a turn's role names; None for roles whose words are not heard.

    A name that nobody declared is heard as a person's (``memgraph.model.speaking``).
    """
    voice = voice_of(role, told_as)
    given = " ".join(role.split())[:_MAX_NAME_CHARS]
    lower = given.lower()
    if voice is Voice.SILENT or not any(each.isalnum() for each in given):
        return None
    agent = voice is Voice.AGENT
    if lower in _WORDS:
        return Speaker(role, f"the {'AI' if lower == 'ai' else lower}", agent)
    name = given.capitalize() if given.isalpha() and given.islower() else given
    return Speaker(role, name, agent)


def other_of(speaker: Speaker, roles: Iterable[str]) -> Speaker | None:
    """The one other speaker, when exactly two take part."""
    others = {
        each.role: each
        for role in roles
        if (each := speaker_of(role)) is not None and each.role != speaker.role
    }
    return next(iter(others.values())) if len(others) == 1 else None
