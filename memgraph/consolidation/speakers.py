"""Who speaks in a conversation, and how they are written of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_AGENTS: Final = frozenset(("assistant", "agent", "ai", "bot", "model", "chatbot"))
_PEOPLE: Final = frozenset(("user", "human", "customer", "client", "caller", "person", "owner"))
# Instructions and outputs: nobody's word about the world.
_SILENT: Final = frozenset(("system", "tool", "function", "developer", ""))
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


def speaker_of(role: str) -> Speaker | None:
    """Who a turn's role names; None for roles whose words are not heard."""
    given = " ".join(role.split())[:_MAX_NAME_CHARS]
    lower = given.lower()
    if lower in _SILENT or not any(each.isalnum() for each in given):
        return None
    if lower in _AGENTS or lower in _PEOPLE:
        return Speaker(role, f"the {'AI' if lower == 'ai' else lower}", lower in _AGENTS)
    name = given.capitalize() if given.isalpha() and given.islower() else given
    return Speaker(role, name, agent=False)


def other_of(speaker: Speaker, roles: Iterable[str]) -> Speaker | None:
    """The one other speaker, when exactly two take part."""
    others = {
        each.role: each
        for role in roles
        if (each := speaker_of(role)) is not None and each.role != speaker.role
    }
    return next(iter(others.values())) if len(others) == 1 else None
