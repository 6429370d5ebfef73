"""The outbox of events, and how far each subscriber has come.

An event is written in the transaction of the change it tells of. Writers follow one another, so a
number that is seen has none before it that is still to come.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from memgraph.model.events import Event, EventFailure, SessionCompleted
from memgraph.rules.events import KEEP_TAKEN_MS, KEEP_WAITING_MS, removable_through
from memgraph.store.rows import compact_json
from memgraph.store.snapshot import Insert, Snapshot, Transaction, driver
from memgraph.store.visibility import View

_append = Insert("events", ("at", "topic", "payload"))
_LAST = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0)"
_CURSOR = "SELECT delivered_seq, attempts, next_attempt_at FROM event_cursors WHERE subscriber = ?"
_AFTER = (
    "SELECT seq, at, topic, payload FROM events WHERE seq > ?"
    " AND topic IN (SELECT value FROM json_each(?)) ORDER BY seq LIMIT ?"
)
_REGISTER = "INSERT OR IGNORE INTO event_cursors (subscriber, delivered_seq) VALUES (?, ?)"
# Whoever changes the row first has the claim: the others no longer find what they have read.
_CLAIM = (
    "UPDATE event_cursors SET next_attempt_at = ?, attempts = attempts + 1"
    " WHERE subscriber = ? AND delivered_seq = ? AND attempts = ? AND next_attempt_at = ?"
)
_MOVE = (
    "UPDATE event_cursors SET delivered_seq = ?, attempts = ?, next_attempt_at = ?"
    " WHERE subscriber = ? AND next_attempt_at = ?"
)
_PARK = (
    "INSERT OR REPLACE INTO event_failures (subscriber, seq, topic, payload, at, error_code)"
    " VALUES (?, ?, ?, ?, ?, ?)"
)


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a subscriber has come.

    Attributes:
        delivered_seq: the last event that it need not get any more.
        attempts: how often the event after that was begun.
        next_attempt_at: until then somebody has a claim on it, or it is put off.
    """

    delivered_seq: int
    attempts: int
    next_attempt_at: int


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """A row of the outbox; ``payload`` is the event's JSON."""

    seq: int
    at: int
    topic: str
    payload: str


def append(transaction: Transaction, at: int, given: Sequence[Event]) -> None:
    """Add events at the end, inside the transaction of the change that they tell of."""
    _append(transaction, [(at, each.topic, compact_json(each.model_dump())) for each in given])


def last_seq(snapshot: Snapshot) -> int:
    """The number of the newest event there ever was; 0: there was none."""
    [(seq,)] = driver(snapshot).execute(_LAST)
    return int(seq)


def after(snapshot: Snapshot, seq: int, topics: Sequence[str], limit: int) -> list[StoredEvent]:
    """The next events of these topics, in order."""
    found = driver(snapshot).execute(_AFTER, (seq, json.dumps(list(topics)), limit))
    return [StoredEvent(*row) for row in found]


def cursor(snapshot: Snapshot, subscriber: str) -> Cursor | None:
    """How far a subscriber has come; None: nobody of that name has subscribed."""
    row = driver(snapshot).execute(_CURSOR, (subscriber,)).fetchone()
    return None if row is None else Cursor(*row)


def register(transaction: Transaction, subscriber: str, *, from_start: bool) -> None:
    """Begin a subscriber's cursor, at the first event that is kept or after the last one."""
    begin = 0 if from_start else last_seq(transaction)
    driver(transaction).execute(_REGISTER, (subscriber, begin))


def claim(transaction: Transaction, subscriber: str, seen: Cursor, until: int) -> bool:
    """Take the events after ``seen`` for oneself until a moment; False: somebody else has."""
    values = (until, subscriber, seen.delivered_seq, seen.attempts, seen.next_attempt_at)
    return bool(driver(transaction).execute(_CLAIM, values).rowcount)


def move(transaction: Transaction, subscriber: str, claimed: int, to: Cursor) -> bool:
    """Change the cursor under a claim; False: the claim ran out and another has it."""
    values = (to.delivered_seq, to.attempts, to.next_attempt_at, subscriber, claimed)
    return bool(driver(transaction).execute(_MOVE, values).rowcount)


def park(transaction: Transaction, subscriber: str, event: StoredEvent, error_code: str) -> None:
    """Keep an event aside that a subscriber does not take."""
    values = (subscriber, event.seq, event.topic, event.payload, event.at, error_code)
    driver(transaction).execute(_PARK, values)


def parked(snapshot: Snapshot, subscriber: str, limit: int) -> list[StoredEvent]:
    """What a subscriber did not take, oldest first."""
    found = driver(snapshot).execute(
        "SELECT seq, at, topic, payload FROM event_failures WHERE subscriber = ?"
        " ORDER BY seq LIMIT ?",
        (subscriber, limit),
    )
    return [StoredEvent(*row) for row in found]


def unpark(transaction: Transaction, subscriber: str, seq: int) -> None:
    """A parked event was taken after all."""
    driver(transaction).execute(
        "DELETE FROM event_failures WHERE subscriber = ? AND seq = ?", (subscriber, seq)
    )


def waits(snapshot: Snapshot, session_id: str) -> bool:
    """Whether a session waits for its consolidation."""
    [(found,)] = driver(snapshot).execute(
        "SELECT EXISTS (SELECT 1 FROM sessions WHERE session_id = ? AND consolidated_at IS NULL)",
        (session_id,),
    )
    return bool(found)


def drop_settled(transaction: Transaction, subscriber: str) -> int:
    """Drop parked ends of sessions that wait for nothing any more; gives how many."""
    done = driver(transaction).execute(
        "DELETE FROM event_failures WHERE subscriber = ? AND topic = ?"
        " AND json_extract(payload, '$.session_id') NOT IN"
        " (SELECT session_id FROM sessions WHERE consolidated_at IS NULL)",
        (subscriber, SessionCompleted.topic),
    )
    return int(done.rowcount)


def failures(snapshot: Snapshot, limit: int, view: View | None = None) -> list[EventFailure]:
    """Parked events of all subscribers, newest first, but those about what a view hides."""
    terms = "1" if view is None else _may_see(view)
    found = driver(snapshot).execute(
        "SELECT f.subscriber, f.seq, f.topic, f.at, f.error_code FROM event_failures f"
        f" WHERE {terms} ORDER BY f.seq DESC, f.subscriber LIMIT :limit",
        {**({} if view is None else view.params), "limit": limit},
    )
    return [
        EventFailure(subscriber=name, seq=seq, topic=topic, at=at, error_code=code)
        for name, seq, topic, at, code in found
    ]


def _may_see(view: View) -> str:
    """That an event of ``f`` is about nothing that is hidden."""
    field = "json_extract(f.payload, '$.{}')".format
    seen = f"SELECT 1 FROM memories m WHERE {view.text.where('m')}"
    session = field("session_id")
    terms = [
        f"({session} IS NULL OR"
        f" EXISTS ({seen} AND m.kind = 'episode' AND m.session_id = {session}))"
    ]
    terms += [
        f"({one} IS NULL OR EXISTS ({seen} AND m.memory_id = {one}))"
        for one in map(field, ("memory_id", "from_id", "to_id"))
    ]
    return " AND ".join(terms)


def failing(snapshot: Snapshot) -> bool:
    """Whether events are parked, or one was begun more than once."""
    [(found,)] = driver(snapshot).execute(
        "SELECT EXISTS (SELECT 1 FROM event_failures)"
        " OR EXISTS (SELECT 1 FROM event_cursors WHERE attempts > 1)"
    )
    return bool(found)


def forget(transaction: Transaction, subscriber: str) -> None:
    """A subscriber that will not come back: its cursor, and what it did not take."""
    execute = driver(transaction).execute
    execute("DELETE FROM event_cursors WHERE subscriber = ?", (subscriber,))
    execute("DELETE FROM event_failures WHERE subscriber = ?", (subscriber,))


def removable(snapshot: Snapshot, now_ms: int) -> int:
    """The number up to which stored events may go; 0: none of them."""
    execute = driver(snapshot).execute
    [(oldest, last)] = execute("SELECT min(seq), max(seq) FROM events")
    if oldest is None:
        return 0
    [(behind,)] = execute("SELECT min(delivered_seq) FROM event_cursors")
    through = removable_through(
        last=last,
        taken=last if behind is None else behind,
        aged=_before(snapshot, now_ms - KEEP_TAKEN_MS, last),
        expired=_before(snapshot, now_ms - KEEP_WAITING_MS, last),
    )
    return through if through >= oldest else 0


def remove(transaction: Transaction, through: int, limit: int) -> int:
    """Remove events up to a number, ``limit`` at most, oldest first; gives how many."""
    done = driver(transaction).execute(
        "DELETE FROM events WHERE seq IN"
        " (SELECT seq FROM events WHERE seq <= ? ORDER BY seq LIMIT ?)",
        (through, limit),
    )
    return int(done.rowcount)


def behind(snapshot: Snapshot, through: int) -> dict[str, int]:
    """Who has not had all events up to a number, and how far each has come."""
    found = driver(snapshot).execute(
        "SELECT subscriber, delivered_seq FROM event_cursors WHERE delivered_seq < ?"
        " ORDER BY subscriber",
        (through,),
    )
    return dict(found.fetchall())


def some_between(snapshot: Snapshot, seq: int, through: int, topics: Sequence[str]) -> bool:
    """Whether there are events of these topics after a number, up to another."""
    found = after(snapshot, seq, topics, 1)
    return bool(found) and found[0].seq <= through


def prune_failures(transaction: Transaction, *, before: int, keep: int) -> int:
    """Drop parked events from before a time, and the oldest over a number; gives how many."""
    done = driver(transaction).execute(
        "DELETE FROM event_failures WHERE at < ? OR seq <="
        " (SELECT seq FROM event_failures ORDER BY seq DESC LIMIT 1 OFFSET ?)",
        (before, keep),
    )
    return int(done.rowcount)


def skip(transaction: Transaction, through: int) -> None:
    """Move on those who have not had events that are to go."""
    driver(transaction).execute(
        "UPDATE event_cursors SET delivered_seq = ?, attempts = 0, next_attempt_at = 0"
        " WHERE delivered_seq < ?",
        (through, through),
    )


def _before(snapshot: Snapshot, at: int, last: int) -> int:
    """The number of the last event before a time, the events being in the order of time."""
    [(first,)] = driver(snapshot).execute(
        "SELECT min(seq) FROM (SELECT seq FROM events WHERE at >= ? ORDER BY seq LIMIT 1)", (at,)
    )
    return last if first is None else int(first) - 1
