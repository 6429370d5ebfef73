"""Conversations: turns, transcripts, and the roles of speakers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Final, Literal

from memgraph.errors import InvalidInput
from memgraph.model.events import AgentResponse, Event, UserMessage
from memgraph.model.values import EpisodeInput, Millis, Name, Value

SILENT_ROLE: Final = "tool"
"""The role of a transcript's entries in which nobody speaks: calls of tools and their outputs."""
ENTRY_PREFIX: Final = "entry_"
"""How the item's id of such an entry begins."""


class UserTurn(EpisodeInput):
    """A person's message, whatever the person is called."""

    told_as: ClassVar[DeclaredRole] = "person"

    source_role: Name = "user"


class AgentTurn(EpisodeInput):
    """An agent's answer; ``source_role`` is the agent's name."""

    told_as: ClassVar[DeclaredRole] = "agent"

    source_role: Name = "assistant"


class SessionPlace(Value):
    """The position of a conversation in the list, the last active one first.

    It stays this place when the conversation goes on: pages after it repeat nothing.
    """

    session_id: str
    last_seen_at: Millis

    @property
    def cursor(self) -> str:
        """Return the place as text; ``at`` reads it."""
        return f"{self.last_seen_at}.{self.session_id}"

    @classmethod
    def at(cls, cursor: str) -> SessionPlace:
        """Return the place of a ``cursor``. Raises InvalidInput: it is not a cursor."""
        time, _, session_id = cursor.partition(".")
        # So many digits are beyond any time, and within what a database takes.
        if not (time.isascii() and time.isdigit() and len(time) <= 16 and session_id):
            raise InvalidInput(
                "not a cursor; use the next_cursor of the page before", field="cursor"
            )
        return cls.model_construct(session_id=session_id, last_seen_at=int(time))


class SessionInfo(SessionPlace):
    """One conversation.

    Attributes:
        first_seen_at, last_seen_at: of the turns that the reader may see.
        turns: how many of its active turns the reader may see.
        pending: how many of those came after the last one that was consolidated.
        completed_at: when it was told to be over; None: it is open, its last turn is one that the
            reader may not see, or the reader is not told what others did (``Viewer.sees_use``).
        consolidated_at: when its last turn had become knowledge, or, for such a reader, when the
            last turn that it sees was stored; None: it waits for that.
    """

    first_seen_at: Millis
    turns: int
    pending: int
    completed_at: Millis | None
    consolidated_at: Millis | None


def turn_event(turn: EpisodeInput, memory_id: str) -> Event:
    """Return the event of a stored turn.

    A ``UserTurn`` or ``AgentTurn`` says itself what it is. Of any other turn the role decides:
    ``user`` and ``human`` are persons, every other role is the name of an agent.
    """
    role = turn.source_role
    told_as = turn.told_as if isinstance(turn, UserTurn | AgentTurn) else None
    kind = UserMessage if voice_of(role, told_as) is SpeakerRole.PERSON else AgentResponse
    return kind(session_id=turn.session_id, memory_id=memory_id, source_role=role)


@dataclass(frozen=True, slots=True)
class ConversationEntry:
    """One entry of a conversation.

    Attributes:
        record: any JSON value; comes back equal, with keys in their order.
        text: what was said in it, comes back exactly; "": nothing was said.
        speaker: who said it; needed with a text, and not told when it comes back.
        label: a line for people where nothing was said.
    """

    record: Any
    text: str = ""
    speaker: DeclaredRole | None = None
    label: str = "entry"


DeclaredRole = Literal["person", "agent"]
"""What a ``UserTurn`` or ``AgentTurn`` says of its speaker."""

TOLD_AS: Final = "told_as"
"""The attribute of an episode that keeps it, where the role alone says something else."""

PERSONS: Final = frozenset(("user", "human"))
AGENTS: Final = frozenset(("assistant", "agent", "ai", "bot", "chatbot", "model"))
# Instructions and outputs: nobody's word about the world.
SILENT: Final = frozenset(("system", "tool", "function", "developer"))


class SpeakerRole(StrEnum):
    """The role of a speaker, which decides what may be derived from its turns.

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
        """Return 2 for a person, 1 for a name, else 0; the lower never wins against the higher."""
        return {SpeakerRole.PERSON: 2, SpeakerRole.NAMED: 1}.get(self, 0)


def voice_of(role: str | None, told_as: str | None = None) -> SpeakerRole:
    """Return the speaker role for the role of a turn; a declared role takes precedence.

    ``told_as``: ``person`` or ``agent``; anything else says nothing. A tool stays silent when it
    is told to be an agent.
    """
    lower = " ".join((role or "").split()).casefold()
    if told_as == "person":
        return SpeakerRole.PERSON
    if lower in SILENT or not any(character.isalnum() for character in lower):
        return SpeakerRole.SILENT
    if told_as == "agent" or lower in AGENTS:
        return SpeakerRole.AGENT
    return SpeakerRole.PERSON if lower in PERSONS else SpeakerRole.NAMED
