"""Events of a memory: small typed values without texts, each with its topic.

An event says which session or memory it is about; whoever needs the text asks for the memory, and
sees what it may see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from memgraph.errors import InvalidInput
from memgraph.model.values import Millis, Name, Value, validated


class Event(Value):
    """The base of all events. ``topic`` is the name under which subscribers ask for it."""

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
    """All turns of a session became knowledge; so many memories were added."""

    topic = "memory.session_consolidated"

    session_id: Name
    facts: int = 0


class ReflectionSaved(Event):
    """A reflection was stored; cached older ones are out of date."""

    topic = "memory.reflection_saved"

    memory_id: Name


class ContradictionFound(Event):
    """Two memories contradict each other, undecided."""

    topic = "memory.contradiction_found"

    edge_id: Name
    from_id: Name
    to_id: Name


class FileRejected(Event):
    """A dropped file was rejected or is held; ``reason`` is the code in its manifest."""

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
    """An event as a subscriber gets it.

    Attributes:
        seq: its number in this database; the same event has the same one when it comes again.
        at: when it happened, milliseconds since 1970.
    """

    seq: int
    at: int
    event: Event


Handler = Callable[[DeliveredEvent], object]
"""Takes one event at a time, in order. What it raises makes the event come again later."""


class EventFailure(Value):
    """An event that a subscriber did not take after all attempts."""

    subscriber: str
    seq: int
    topic: str
    at: Millis
    error_code: str


def event_of(topic: str, payload: Mapping[str, object]) -> Event:
    """Return the event of a row of the outbox.

    Raises:
        InvalidInput: no such topic, or not its fields: another version wrote it.
    """
    kind = EVENTS.get(topic)
    if kind is None:
        raise InvalidInput(f"no event has the topic {topic[:80]!r}", topic=topic[:80])
    return validated(kind, dict(payload))
