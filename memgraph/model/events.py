"""Events: small typed values without texts, each with its topic.

An event names the session or memory that it is about. A subscriber that needs the text reads the
memory, subject to its own permissions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from memgraph.errors import InvalidInput
from memgraph.model.values import Millis, Name, Value, validated


class Event(Value):
    """The base class of all events. Subscribers choose events by ``topic``."""

    topic: ClassVar[str]


class UserMessage(Event):
    """A person's turn was stored."""

    topic = "user_message"

    session_id: Name
    memory_id: Name
    source_role: Name


class AgentResponse(Event):
    """An agent's turn was stored."""

    topic = "agent_response"

    session_id: Name
    memory_id: Name
    source_role: Name


class SessionCompleted(Event):
    """A conversation has ended; its turns may be consolidated."""

    topic = "memory.session_completed"

    session_id: Name


class SessionConsolidated(Event):
    """All turns of a session were consolidated. ``facts``: the number of added memories."""

    topic = "memory.session_consolidated"

    session_id: Name
    facts: int = 0


class ReflectionSaved(Event):
    """A reflection was stored; cached older ones are out of date."""

    topic = "memory.reflection_saved"

    memory_id: Name


class ContradictionFound(Event):
    """An open contradiction between two memories was found."""

    topic = "memory.contradiction_found"

    edge_id: Name
    from_id: Name
    to_id: Name


class FileRejected(Event):
    """An ingested file was rejected or is on hold; ``reason`` is the code in its manifest."""

    topic = "ingest.file_rejected"

    sha256: Name
    reason: Name


class RunFailed(Event):
    """A run of a job failed."""

    topic = "job.failed"

    run_id: Name
    job: Name
    error_code: Name | None = None


EVENTS: Final[Mapping[str, type[Event]]] = {
    kind.topic: kind
    for kind in (
        UserMessage,
        AgentResponse,
        SessionCompleted,
        SessionConsolidated,
        ReflectionSaved,
        ContradictionFound,
        FileRejected,
        RunFailed,
    )
}
"""The kinds of events by topic."""


@dataclass(frozen=True, slots=True)
class DeliveredEvent:
    """An event as a subscriber receives it.

    Attributes:
        seq: its number in this database, which is the same if the event is delivered again.
        at: the time of the event, in milliseconds since 1970.
    """

    seq: int
    at: int
    event: Event


Handler = Callable[[DeliveredEvent], object]
"""Handles one event at a time, in order. If it raises, the event is delivered again later."""


class EventFailure(Value):
    """An event that a subscriber failed to handle in all attempts."""

    subscriber: str
    seq: int
    topic: str
    at: Millis
    error_code: str


def event_of(topic: str, payload: Mapping[str, object]) -> Event:
    """Return the event of a row of the outbox.

    Raises:
        InvalidInput: the topic is unknown or the fields do not match, because another version wrote
            the row.
    """
    kind = EVENTS.get(topic)
    if kind is None:
        raise InvalidInput(f"unknown event topic {topic[:80]!r}", topic=topic[:80])
    return validated(kind, dict(payload))
