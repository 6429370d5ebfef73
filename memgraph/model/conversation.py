"""Conversations: a turn as a host's own bus hands it over, and what is known of a session."""

from __future__ import annotations

from typing import ClassVar

from memgraph.errors import InvalidInput
from memgraph.model.events import AgentResponse, Event, UserMessage
from memgraph.model.speaking import ToldAs, Voice, voice_of
from memgraph.model.values import EpisodeInput, Millis, Name, Value


class UserTurn(EpisodeInput):
    """A person's message, whatever the person is called."""

    told_as: ClassVar[ToldAs] = "person"

    source_role: Name = "user"


class AgentTurn(EpisodeInput):
    """An agent's answer; ``source_role`` is the agent's name."""

    told_as: ClassVar[ToldAs] = "agent"

    source_role: Name = "assistant"


class SessionPlace(Value):
    """Where a conversation stands among all, the last one talked in first.

    It stays this place when the conversation goes on: pages after it repeat nothing.
    """

    session_id: str
    last_seen_at: Millis

    @property
    def cursor(self) -> str:
        """As text; ``at`` reads it."""
        return f"{self.last_seen_at}.{self.session_id}"

    @classmethod
    def at(cls, cursor: str) -> SessionPlace:
        """The place of a ``cursor``. Raises InvalidInput: it is none."""
        told, _, session_id = cursor.partition(".")
        # So many digits are beyond any time, and within what a database takes.
        if not (told.isascii() and told.isdigit() and len(told) <= 16 and session_id):
            raise InvalidInput("this is no next_cursor of a page", field="cursor")
        return cls.model_construct(session_id=session_id, last_seen_at=int(told))


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


def turn_event(given: EpisodeInput, memory_id: str) -> Event:
    """What is told of a stored turn.

    A ``UserTurn`` or ``AgentTurn`` says itself what it is. Of any other turn the role decides:
    ``user`` and ``human`` are persons, every other role is the name of an agent.
    """
    role = given.source_role
    told_as = given.told_as if isinstance(given, UserTurn | AgentTurn) else None
    kind = UserMessage if voice_of(role, told_as) is Voice.PERSON else AgentResponse
    return kind(session_id=given.session_id, memory_id=memory_id, source_role=role)
