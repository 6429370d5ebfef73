"""The outbox of events, and how far each subscriber has come.

An event is written in the transaction of the change it tells of. Writers follow one another, so a
number that is seen has none before it that is still to come.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert

from memgraph.model.enums import MemoryKind
from memgraph.model.events import Event, EventFailure, SessionCompleted
from memgraph.rules.conversations import KEEP_TAKEN_MS, KEEP_WAITING_MS, removable_through
from memgraph.store import tables
from memgraph.store.rows import compact_json
from memgraph.store.snapshot import InsertRows, Snapshot, Transaction
from memgraph.store.statements import (
    Column,
    among,
    last_number,
    member,
    prepared,
    replacing,
    value,
)
from memgraph.store.visibility import View

_append = InsertRows("events", ("at", "topic", "payload"))


@dataclass(frozen=True, slots=True)
class EventCursor:
    """The position of a subscriber.

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


@prepared
def _last_seq() -> sa.Select[Any]:
    return last_number(tables.events)


def last_seq(snapshot: Snapshot) -> int:
    """Return the number of the newest event there ever was; 0: there was none."""
    return int(_last_seq().scalar(snapshot) or 0)


def _stored(e: sa.FromClause) -> sa.Select[Any]:
    return sa.select(e.c.seq, e.c.at, e.c.topic, e.c.payload).order_by(e.c.seq)


@prepared
def _after() -> sa.Select[Any]:
    e = tables.events
    topics = among(e.c.topic, "topics")
    return _stored(e).where(e.c.seq > value("seq"), topics).limit(value("limit"))


def after(snapshot: Snapshot, seq: int, topics: Sequence[str], limit: int) -> list[StoredEvent]:
    """Return the next events of these topics, in order."""
    found = _after().rows(snapshot, seq=seq, topics=json.dumps(list(topics)), limit=limit)
    return [StoredEvent(*row) for row in found]


@prepared
def _cursor() -> sa.Select[Any]:
    c = tables.event_cursors
    place = sa.select(c.c.delivered_seq, c.c.attempts, c.c.next_attempt_at)
    return place.where(c.c.subscriber == value("subscriber"))


def cursor(snapshot: Snapshot, subscriber: str) -> EventCursor | None:
    """Return how far a subscriber has come; None: nobody of that name has subscribed."""
    row = _cursor().row(snapshot, subscriber=subscriber)
    return None if row is None else EventCursor(*row)


@prepared
def _register() -> sa.Insert:
    row = {"subscriber": value("subscriber"), "delivered_seq": value("begin")}
    return insert(tables.event_cursors).values(row).on_conflict_do_nothing()


def register(transaction: Transaction, subscriber: str, *, from_start: bool) -> None:
    """Begin a subscriber's cursor, at the first event that is kept or after the last one."""
    begin = 0 if from_start else last_seq(transaction)
    _register().write(transaction, subscriber=subscriber, begin=begin)


@prepared
def _claim() -> sa.Update:
    c = tables.event_cursors
    # Whoever changes the row first has the claim: the others no longer find what they have read.
    seen = (
        c.c.delivered_seq == value("seen_seq"),
        c.c.attempts == value("seen_attempts"),
        c.c.next_attempt_at == value("seen_next"),
    )
    claimed = {"next_attempt_at": value("until"), "attempts": c.c.attempts + 1}
    return sa.update(c).where(c.c.subscriber == value("name"), *seen).values(claimed)


def claim(transaction: Transaction, subscriber: str, seen: EventCursor, until: int) -> bool:
    """Take the events after ``seen`` for oneself until a moment; False: somebody else has."""
    claimed = _claim().write(
        transaction,
        name=subscriber,
        seen_seq=seen.delivered_seq,
        seen_attempts=seen.attempts,
        seen_next=seen.next_attempt_at,
        until=until,
    )
    return bool(claimed)


@prepared
def _move() -> sa.Update:
    c = tables.event_cursors
    claimed = (c.c.subscriber == value("name"), c.c.next_attempt_at == value("claimed"))
    to = {name: value(f"to_{name}") for name in ("delivered_seq", "attempts", "next_attempt_at")}
    return sa.update(c).where(*claimed).values(to)


def move(transaction: Transaction, subscriber: str, claimed: int, to: EventCursor) -> bool:
    """Change the cursor under a claim; False: the claim ran out and another has it."""
    moved = _move().write(
        transaction,
        name=subscriber,
        claimed=claimed,
        to_delivered_seq=to.delivered_seq,
        to_attempts=to.attempts,
        to_next_attempt_at=to.next_attempt_at,
    )
    return bool(moved)


@prepared
def _park() -> sa.Insert:
    return replacing(tables.event_failures)


def park(transaction: Transaction, subscriber: str, event: StoredEvent, error_code: str) -> None:
    """Keep an event aside that a subscriber does not take."""
    _park().write(transaction, asdict(event), subscriber=subscriber, error_code=error_code)


@prepared
def _parked() -> sa.Select[Any]:
    f = tables.event_failures
    return _stored(f).where(f.c.subscriber == value("subscriber")).limit(value("limit"))


def parked(snapshot: Snapshot, subscriber: str, limit: int) -> list[StoredEvent]:
    """Return what a subscriber did not take, oldest first."""
    found = _parked().rows(snapshot, subscriber=subscriber, limit=limit)
    return [StoredEvent(*row) for row in found]


@prepared
def _unpark() -> sa.Delete:
    f = tables.event_failures
    return sa.delete(f).where(f.c.subscriber == value("subscriber"), f.c.seq == value("seq"))


def unpark(transaction: Transaction, subscriber: str, seq: int) -> None:
    """Drop a parked event: it was taken after all."""
    _unpark().write(transaction, subscriber=subscriber, seq=seq)


@prepared
def _waits() -> sa.Select[Any]:
    s = tables.sessions
    waits = (s.c.session_id == value("session_id"), s.c.consolidated_at.is_(None))
    return sa.select(s.c.session_id).where(*waits)


def waits(snapshot: Snapshot, session_id: str) -> bool:
    """Return whether a session waits for its consolidation."""
    return _waits().row(snapshot, session_id=session_id) is not None


@prepared
def _drop_settled() -> sa.Delete:
    f, s = tables.event_failures, tables.sessions
    waiting = sa.select(s.c.session_id).where(s.c.consolidated_at.is_(None))
    return sa.delete(f).where(
        f.c.subscriber == value("subscriber"),
        f.c.topic == SessionCompleted.topic,
        member(f.c.payload, "session_id").not_in(waiting),
    )


def drop_settled(transaction: Transaction, subscriber: str) -> int:
    """Drop parked ends of sessions that wait for nothing any more; gives how many."""
    return _drop_settled().write(transaction, subscriber=subscriber)


@prepared
def _failures(view: View | None) -> sa.Select[Any]:
    f = tables.event_failures.alias("f")
    parked = sa.select(f.c.subscriber, f.c.seq, f.c.topic, f.c.at, f.c.error_code)
    seen = () if view is None else _may_see(view, f)
    newest = parked.where(*seen).order_by(f.c.seq.desc(), f.c.subscriber)
    return newest.limit(value("limit"))


def failures(snapshot: Snapshot, limit: int, view: View | None = None) -> list[EventFailure]:
    """Return parked events of all subscribers, newest first, but those about what a view hides."""
    statement = _failures(None if view is None else view.shape)
    found = statement.rows(snapshot, {} if view is None else view.params, limit=limit)
    return [
        EventFailure(subscriber=name, seq=seq, topic=topic, at=at, error_code=code)
        for name, seq, topic, at, code in found
    ]


def _may_see(view: View, f: sa.FromClause) -> Iterator[Column]:
    """Yield the conditions that a parked event is about nothing that is hidden."""
    m = tables.memories.alias("m")
    seen = sa.exists().where(view.where(m)).correlate(f)
    session = member(f.c.payload, "session_id")
    yield session.is_(None) | seen.where(m.c.kind == MemoryKind.EPISODE, m.c.session_id == session)
    for name in ("memory_id", "from_id", "to_id"):
        one = member(f.c.payload, name)
        yield one.is_(None) | seen.where(m.c.memory_id == one)


@prepared
def _failing() -> sa.Select[Any]:
    f, c = tables.event_failures, tables.event_cursors
    return sa.select(sa.exists(sa.select(f.c.seq)) | sa.exists().where(c.c.attempts > 1))


def failing(snapshot: Snapshot) -> bool:
    """Return whether events are parked, or one was begun more than once."""
    return bool(_failing().scalar(snapshot))


@prepared
def _forget(parked: bool) -> sa.Delete:
    table = tables.event_failures if parked else tables.event_cursors
    return sa.delete(table).where(table.c.subscriber == value("subscriber"))


def forget(transaction: Transaction, subscriber: str) -> None:
    """Remove a subscriber that will not come back: its cursor, and what it did not take."""
    for parked in (False, True):
        _forget(parked).write(transaction, subscriber=subscriber)


@prepared
def _ends() -> sa.Select[Any]:
    e = tables.events
    behind = sa.select(sa.func.min(tables.event_cursors.c.delivered_seq)).scalar_subquery()
    return sa.select(sa.func.min(e.c.seq), sa.func.max(e.c.seq), behind)


def removable(snapshot: Snapshot, now_ms: int) -> int:
    """Return the number up to which stored events may go; 0: none of them."""
    oldest, last, behind = _ends().row(snapshot)
    if oldest is None:
        return 0
    through = removable_through(
        last=last,
        consolidated=last if behind is None else behind,
        aged=_before(snapshot, now_ms - KEEP_TAKEN_MS, last),
        expired=_before(snapshot, now_ms - KEEP_WAITING_MS, last),
    )
    return through if through >= oldest else 0


@prepared
def _remove() -> sa.Delete:
    e = tables.events
    first = sa.select(e.c.seq).where(e.c.seq <= value("through"))
    first = first.order_by(e.c.seq).limit(value("limit")).correlate(None)
    return sa.delete(e).where(e.c.seq.in_(first))


def remove(transaction: Transaction, through: int, limit: int) -> int:
    """Remove events up to a number, ``limit`` at most, oldest first; gives how many."""
    return _remove().write(transaction, through=through, limit=limit)


@prepared
def _behind() -> sa.Select[Any]:
    c = tables.event_cursors
    behind = sa.select(c.c.subscriber, c.c.delivered_seq)
    return behind.where(c.c.delivered_seq < value("through")).order_by(c.c.subscriber)


def behind(snapshot: Snapshot, through: int) -> dict[str, int]:
    """Return who has not had all events up to a number, and how far each has come."""
    return dict(_behind().rows(snapshot, through=through))


def some_between(snapshot: Snapshot, seq: int, through: int, topics: Sequence[str]) -> bool:
    """Return whether there are events of these topics after a number, up to another."""
    found = after(snapshot, seq, topics, 1)
    return bool(found) and found[0].seq <= through


@prepared
def _prune_failures() -> sa.Delete:
    f, kept = tables.event_failures, tables.event_failures.alias("kept")
    over = sa.select(kept.c.seq).order_by(kept.c.seq.desc()).limit(1).offset(value("keep"))
    too_many = f.c.seq <= over.scalar_subquery()
    return sa.delete(f).where((f.c.at < value("before")) | too_many)


def prune_failures(transaction: Transaction, *, before: int, keep: int) -> int:
    """Drop parked events from before a time, and the oldest over a number; gives how many."""
    return _prune_failures().write(transaction, before=before, keep=keep)


@prepared
def _skip() -> sa.Update:
    c, through = tables.event_cursors, value("through")
    moved = {"delivered_seq": through, "attempts": 0, "next_attempt_at": 0}
    return sa.update(c).where(c.c.delivered_seq < through).values(moved)


def skip(transaction: Transaction, through: int) -> None:
    """Move on those who have not had events that are to go."""
    _skip().write(transaction, through=through)


@prepared
def _first_since() -> sa.Select[Any]:
    e = tables.events
    return sa.select(e.c.seq).where(e.c.at >= value("at")).order_by(e.c.seq).limit(1)


def _before(snapshot: Snapshot, at: int, last: int) -> int:
    """Return the number of the last event before a time, the events being in its order."""
    first = _first_since().scalar(snapshot, at=at)
    return last if first is None else int(first) - 1
