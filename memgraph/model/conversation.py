"""Conversations: turns, transcripts, and the roles of speakers."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import ClassVar, Final, Literal

from memgraph.errors import InvalidInput
from memgraph.model.values import EpisodeInput, Millis, Name, Value


class UserTurn(EpisodeInput):
    """A message of a person; ``source_role`` may be any name."""

    told_as: ClassVar[DeclaredRole] = "person"

    source_role: Name = "user"


class AgentTurn(EpisodeInput):
    """An agent's answer; ``source_role`` is the agent's name."""

    told_as: ClassVar[DeclaredRole] = "agent"

    source_role: Name = "assistant"


class SessionPlace(Value):
    """The position of a conversation in the list, most recently active first.

    It does not change when the conversation continues, so later pages repeat nothing.
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
        time, _, session_id = cursor.partition(".") if isinstance(cursor, str) else ("", "", "")
        # 16 digits exceed any valid time and still fit a database integer.
        if not (time.isascii() and time.isdigit() and len(time) <= 16 and session_id):
            raise InvalidInput(
                "not a cursor; use the next_cursor of the page before", field="cursor"
            )
        return cls.model_construct(session_id=session_id, last_seen_at=int(time))


class SessionInfo(SessionPlace):
    """One conversation.

    Attributes:
        first_seen_at, last_seen_at: when the turns that the reader may see were stored.
        turns: the number of active turns that the reader may see.
        pending: the number of these that are not consolidated yet.
        completed_at: when it was marked as completed; None if it is open, or if the reader may not
            see its last turn or other readers' activity (``Viewer.sees_use``).
        consolidated_at: when its last turn was consolidated, or, for such a reader, when the last
            visible turn was stored; None while it is pending.
        first_said_at, last_said_at: when these turns were said; None if no turn has a date.
    """

    first_seen_at: Millis
    turns: int
    pending: int
    completed_at: Millis | None
    consolidated_at: Millis | None
    first_said_at: Millis | None
    last_said_at: Millis | None


DeclaredRole = Literal["person", "agent"]
"""The kind of speaker that a ``UserTurn`` or ``AgentTurn`` declares."""

TOLD_AS: Final = "told_as"
"""The attribute of an episode that stores it if the role alone would imply another kind."""

SPEAKER_NAME: Final = "speaker_name"
"""The attribute of an episode that stores the name of the person behind a role such as ``user``."""

HAPPENED: Final = "happened"
"""The attribute with the year or the month of ``event_time``, if no day is known."""

BESIDE: Final = "dated_beside"
"""The attribute of an undated turn with the time of the turn next to it, in milliseconds."""

PERSONS: Final = frozenset(("user", "human"))
AGENTS: Final = frozenset(("assistant", "agent", "ai", "bot", "chatbot", "model"))
# Instructions and tool outputs are not statements about the world.
SILENT: Final = frozenset(("system", "tool", "function", "developer"))


class SpeakerRole(StrEnum):
    """The role of a speaker, which decides what may be derived from its turns.

    PERSON: statements become facts, and repeating one strengthens it. NAMED: only a name is known;
    statements become facts, but a repetition strengthens nothing, as an agent may only repeat what
    it was told. AGENT: few statements become facts. SILENT: no statements about the world.
    """

    PERSON = "person"
    NAMED = "named"
    AGENT = "agent"
    SILENT = "silent"

    @property
    def weight(self) -> int:
        """Return 2 for a person, 1 for a name, else 0; a lower weight never overrides a higher."""
        return {SpeakerRole.PERSON: 2, SpeakerRole.NAMED: 1}.get(self, 0)


def voice_of(role: str | None, told_as: str | None = None) -> SpeakerRole:
    """Return the speaker role for the role of a turn; a declared role takes precedence.

    ``told_as`` is ``person`` or ``agent``; other values are ignored. A tool stays silent whatever
    it is declared to be.
    """
    lower = " ".join((role or "").split()).casefold()
    if lower in SILENT:
        return SpeakerRole.SILENT
    if told_as == "person":
        return SpeakerRole.PERSON
    if not any(character.isalnum() for character in lower):
        return SpeakerRole.SILENT
    if told_as == "agent" or lower in AGENTS:
        return SpeakerRole.AGENT
    return SpeakerRole.PERSON if lower in PERSONS else SpeakerRole.NAMED


class SessionCompleted(Value):
    """A conversation has ended; its turns may be consolidated."""

    topic: ClassVar = "memory.session_completed"

    session_id: Name


SessionCallback = Callable[[SessionCompleted], object]
