"""The outbox of events, and the cursors of its subscribers.

An event is written in the transaction of the change that it reports. Writes are serialised, so no
event appears later with a number below one that is already visible.
"""

from __future__ import annotations

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
from memgraph.store.visibility import View, params_of, shape_of

_append = InsertRows("events", ("at", "topic", "payload"))


@dataclass(frozen=True, slots=True)
class EventCursor:
    """The position of a subscriber.

    Attributes:
        delivered_seq: the last event that was delivered.
        attempts: the number of attempts to deliver the next event.
        next_attempt_at: until this time the next event is claimed by a worker or delayed.
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


def append(transaction: Transaction, at: int, events: Sequence[Event]) -> None:
    """Append events in the transaction of the change."""
    _append(transaction, [(at, event.topic, compact_json(event.model_dump())) for event in events])


@prepared
def _last_seq() -> sa.Select[Any]:
    return last_number(tables.events)


def last_seq(snapshot: Snapshot) -> int:
    """Return the number of the newest event ever written, or 0."""
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
    rows = _after().rows(snapshot, seq=seq, topics=topics, limit=limit)
    return [StoredEvent(*row) for row in rows]


@prepared
def _cursor() -> sa.Select[Any]:
    c = tables.event_cursors
    place = sa.select(c.c.delivered_seq, c.c.attempts, c.c.next_attempt_at)
    return place.where(c.c.subscriber == value("subscriber"))


def cursor(snapshot: Snapshot, subscriber: str) -> EventCursor | None:
    """Return the cursor of a subscriber, or None if it is unknown."""
    row = _cursor().row(snapshot, subscriber=subscriber)
    return None if row is None else EventCursor(*row)


@prepared
def _register() -> sa.Insert:
    row = {"subscriber": value("subscriber"), "delivered_seq": value("begin")}
    return insert(tables.event_cursors).values(row).on_conflict_do_nothing()


def register(transaction: Transaction, subscriber: str, *, from_start: bool) -> None:
    """Create a subscriber's cursor, before the oldest stored event or after the newest."""
    begin = 0 if from_start else last_seq(transaction)
    _register().write(transaction, subscriber=subscriber, begin=begin)


@prepared
def _claim() -> sa.Update:
    c = tables.event_cursors
    # The first worker to change the row gets the claim; for the others it no longer matches.
    is_unchanged = (
        c.c.delivered_seq == value("seen_seq"),
        c.c.attempts == value("seen_attempts"),
        c.c.next_attempt_at == value("seen_next"),
    )
    claimed = {"next_attempt_at": value("until"), "attempts": c.c.attempts + 1}
    return sa.update(c).where(c.c.subscriber == value("name"), *is_unchanged).values(claimed)


def claim(transaction: Transaction, subscriber: str, cursor: EventCursor, until: int) -> bool:
    """Claim the events after ``cursor`` until a time; return False if another worker has them."""
    claimed = _claim().write(
        transaction,
        name=subscriber,
        seen_seq=cursor.delivered_seq,
        seen_attempts=cursor.attempts,
        seen_next=cursor.next_attempt_at,
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
    """Move the cursor under a claim; return False if the claim expired and was taken over."""
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
    """Park an event that a subscriber repeatedly failed to handle."""
    _park().write(transaction, asdict(event), subscriber=subscriber, error_code=error_code)


@prepared
def _parked() -> sa.Select[Any]:
    f = tables.event_failures
    return _stored(f).where(f.c.subscriber == value("subscriber")).limit(value("limit"))


def parked(snapshot: Snapshot, subscriber: str, limit: int) -> list[StoredEvent]:
    """Return a subscriber's parked events, oldest first."""
    rows = _parked().rows(snapshot, subscriber=subscriber, limit=limit)
    return [StoredEvent(*row) for row in rows]


@prepared
def _unpark() -> sa.Delete:
    f = tables.event_failures
    return sa.delete(f).where(f.c.subscriber == value("subscriber"), f.c.seq == value("seq"))


def unpark(transaction: Transaction, subscriber: str, seq: int) -> None:
    """Remove a parked event, after it was delivered."""
    _unpark().write(transaction, subscriber=subscriber, seq=seq)


@prepared
def _waits() -> sa.Select[Any]:
    s = tables.sessions
    waits = (s.c.session_id == value("session_id"), s.c.consolidated_at.is_(None))
    return sa.select(s.c.session_id).where(*waits)


def is_pending(snapshot: Snapshot, session_id: str) -> bool:
    """Return True if a session is pending consolidation."""
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
    """Remove parked end-of-session events of consolidated sessions; return their number."""
    return _drop_settled().write(transaction, subscriber=subscriber)


@prepared
def _failures(view: View | None) -> sa.Select[Any]:
    f = tables.event_failures.alias("f")
    parked = sa.select(f.c.subscriber, f.c.seq, f.c.topic, f.c.at, f.c.error_code)
    visible = () if view is None else _shows_subject(view, f)
    newest = parked.where(*visible).order_by(f.c.seq.desc(), f.c.subscriber)
    return newest.limit(value("limit"))


def failures(snapshot: Snapshot, limit: int, view: View | None = None) -> list[EventFailure]:
    """Return parked events, newest first, without those about hidden memories."""
    rows = _failures(shape_of(view)).rows(snapshot, params_of(view), limit=limit)
    return [
        EventFailure(subscriber=name, seq=seq, topic=topic, at=at, error_code=code)
        for name, seq, topic, at, code in rows
    ]


def _shows_subject(view: View, f: sa.FromClause) -> Iterator[Column]:
    """Yield the conditions under which a parked event refers only to visible memories."""
    m = tables.memories.alias("m")
    is_visible = sa.exists().where(view.where(m)).correlate(f)
    session = member(f.c.payload, "session_id")
    yield session.is_(None) | is_visible.where(
        m.c.kind == MemoryKind.EPISODE, m.c.session_id == session
    )
    for name in ("memory_id", "from_id", "to_id"):
        memory_id = member(f.c.payload, name)
        yield memory_id.is_(None) | is_visible.where(m.c.memory_id == memory_id)


@prepared
def _failing() -> sa.Select[Any]:
    f, c = tables.event_failures, tables.event_cursors
    return sa.select(sa.exists(sa.select(f.c.seq)) | sa.exists().where(c.c.attempts > 1))


def failing(snapshot: Snapshot) -> bool:
    """Return True if events are parked or being retried."""
    return bool(_failing().scalar(snapshot))


@prepared
def _forget(parked: bool) -> sa.Delete:
    table = tables.event_failures if parked else tables.event_cursors
    return sa.delete(table).where(table.c.subscriber == value("subscriber"))


def forget(transaction: Transaction, subscriber: str) -> None:
    """Remove a subscriber with its cursor and its parked events."""
    for parked in (False, True):
        _forget(parked).write(transaction, subscriber=subscriber)


@prepared
def _ends() -> sa.Select[Any]:
    e = tables.events
    slowest = sa.select(sa.func.min(tables.event_cursors.c.delivered_seq)).scalar_subquery()
    return sa.select(sa.func.min(e.c.seq), sa.func.max(e.c.seq), slowest)


def removable(snapshot: Snapshot, now_ms: int) -> int:
    """Return the number up to which stored events may be removed, or 0."""
    oldest, last, slowest = _ends().row(snapshot)
    if oldest is None:
        return 0
    through = removable_through(
        last=last,
        consolidated=last if slowest is None else slowest,
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
    """Remove events up to a number, at most ``limit``, oldest first; return how many."""
    return _remove().write(transaction, through=through, limit=limit)


@prepared
def _behind() -> sa.Select[Any]:
    c = tables.event_cursors
    query = sa.select(c.c.subscriber, c.c.delivered_seq)
    return query.where(c.c.delivered_seq < value("through")).order_by(c.c.subscriber)


def behind(snapshot: Snapshot, through: int) -> dict[str, int]:
    """Return the subscribers behind a number, with their last delivered event."""
    return dict(_behind().rows(snapshot, through=through))


def some_between(snapshot: Snapshot, seq: int, through: int, topics: Sequence[str]) -> bool:
    """Return True if there are events of these topics between two numbers."""
    events = after(snapshot, seq, topics, 1)
    return bool(events) and events[0].seq <= through


@prepared
def _prune_failures() -> sa.Delete:
    f, newer = tables.event_failures, tables.event_failures.alias("kept")
    over = sa.select(newer.c.seq).order_by(newer.c.seq.desc()).limit(1).offset(value("keep"))
    too_many = f.c.seq <= over.scalar_subquery()
    return sa.delete(f).where((f.c.at < value("before")) | too_many)


def prune_failures(transaction: Transaction, *, before: int, keep: int) -> int:
    """Remove parked events before a time, and the oldest beyond ``keep``; return their number."""
    return _prune_failures().write(transaction, before=before, keep=keep)


@prepared
def _skip() -> sa.Update:
    c, through = tables.event_cursors, value("through")
    moved = {"delivered_seq": through, "attempts": 0, "next_attempt_at": 0}
    return sa.update(c).where(c.c.delivered_seq < through).values(moved)


def skip(transaction: Transaction, through: int) -> None:
    """Move cursors past events that are to be removed."""
    _skip().write(transaction, through=through)


@prepared
def _first_since() -> sa.Select[Any]:
    e = tables.events
    return sa.select(e.c.seq).where(e.c.at >= value("at")).order_by(e.c.seq).limit(1)


def _before(snapshot: Snapshot, at: int, last: int) -> int:
    """Return the number of the last event before a time; events are ordered by time."""
    first = _first_since().scalar(snapshot, at=at)
    return last if first is None else int(first) - 1
