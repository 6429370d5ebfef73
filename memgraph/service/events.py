"""Delivery of events to subscribers."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from memgraph.clock import Clock
from memgraph.errors import Conflict, InvalidInput, MemgraphError
from memgraph.log import EventLog
from memgraph.model.events import EVENTS, DeliveredEvent, Handler, event_of
from memgraph.rules.conversations import MOST_ATTEMPTS, gives_up, pause_ms
from memgraph.service.background import BackgroundWork
from memgraph.store import events
from memgraph.store.engine import Database
from memgraph.store.events import EventCursor, StoredEvent

PAGE: Final = 64
MOST_RETRIED: Final = 1_000
# With a fast handler the cursor need not be written after every event.
SAVE_AFTER_MS: Final = 500
INTERRUPTED: Final = "events.interrupted"


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A named subscriber of this process.

    Attributes:
        topics: its topics, sorted.
        claim_ms: how long it may take for one event before another process tries it too.
        threaded: True if a thread of the service delivers to it; otherwise its owner does.
        at_work: a lock held during delivery, so that it gets one event at a time.
    """

    name: str
    handler: Handler
    topics: tuple[str, ...]
    claim_ms: int
    threaded: bool = True
    at_work: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)


class DeliverLater(Exception):
    """Raised by a handler that cannot accept an event now; the attempt does not count.

    Args:
        pause_ms: the minimum pause before a retry; 0 if another process may try at once.
    """

    def __init__(self, pause_ms: int = 0) -> None:
        super().__init__(pause_ms)
        self.pause_ms = pause_ms


class Subscribers:
    """The subscribers of one orchestrator in this process, in order of arrival; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, Subscriber] = {}

    def add(self, subscriber: Subscriber) -> None:
        """Add a subscriber. Raises Conflict if its name is in use in this process."""
        with self._lock:
            if subscriber.name in self._known:
                raise Conflict(
                    f"{subscriber.name!r} is already subscribed", subscriber=subscriber.name
                )
            self._known[subscriber.name] = subscriber

    def remove(self, name: str) -> bool:
        with self._lock:
            return self._known.pop(name, None) is not None

    def all(self) -> tuple[Subscriber, ...]:
        with self._lock:
            return tuple(self._known.values())

    def find(self, name: str) -> Subscriber | None:
        with self._lock:
            return self._known.get(name)


@dataclass(slots=True)
class DeliveryRound:
    """The result of one round of deliveries.

    Attributes:
        handled: events that a subscriber accepted.
        failed: events that a subscriber did not accept; they are delivered again.
        parked: events that were parked after all attempts.
    """

    handled: int = 0
    failed: int = 0
    parked: int = 0

    @property
    def passed(self) -> int:
        """The number of events that the cursor passed."""
        return self.handled + self.parked


@dataclass(slots=True)
class _Turn:
    """One subscriber's page: its claim, and the cursor to write.

    ``settled``: the cursor needs no write, or the claim was lost to another process.
    """

    subscriber: Subscriber
    claimed: int
    cursor: EventCursor
    saved_at: int
    settled: bool = False


class EventBus:
    """Delivers the outbox of one database to the subscribers of this process."""

    def __init__(
        self, database: Database, clock: Clock, log: EventLog, subscribers: Subscribers
    ) -> None:
        self._database = database
        self._clock = clock
        self._log = log
        self.subscribers = subscribers
        # The names of subscribers that did not accept the last event from this process.
        self.failing: set[str] = set()

    @property
    def wanted(self) -> bool:
        """True when this process has subscribers."""
        return bool(self.subscribers.all())

    def deliver(
        self,
        stop: Callable[[], bool] = lambda: False,
        *,
        only: str | None = None,
        limit: int | None = None,
    ) -> DeliveryRound:
        """Deliver new events to every subscriber; no transaction is open meanwhile.

        A subscriber that raises gets the event again after a pause, without delaying the others. A
        subscriber to which another thread delivers is skipped.

        Args:
            only: the name of the only subscriber to deliver to.
            limit: the maximum number of events for each subscriber.

        Raises:
            StorageError: the database failed; events not recorded as delivered are repeated.
        """
        total = DeliveryRound()
        for subscriber in self._chosen(only):
            round_ = DeliveryRound()
            # If it is taken, another thread delivers, or a handler has called this method.
            if subscriber.at_work.acquire(blocking=False):
                try:
                    while not stop() and self._page(subscriber, round_, stop, limit):
                        pass
                finally:
                    subscriber.at_work.release()
            total.handled += round_.handled
            total.failed += round_.failed
            total.parked += round_.parked
        return total

    def retry(self, stop: Callable[[], bool] = lambda: False, *, only: str | None = None) -> int:
        """Deliver parked events to subscribers of this process; return how many succeeded.

        A subscriber that is handling an event, in any process, or that is paused, is skipped.
        """
        count = 0
        for subscriber in self._chosen(only):
            if subscriber.at_work.acquire(blocking=False):
                try:
                    count += self._retry(subscriber, stop)
                finally:
                    subscriber.at_work.release()
        return count

    def _chosen(self, only: str | None) -> Sequence[Subscriber]:
        return [
            subscriber
            for subscriber in self.subscribers.all()
            if only is None or subscriber.name == only
        ]

    def _retry(self, subscriber: Subscriber, stop: Callable[[], bool]) -> int:
        with self._database.read() as snapshot:
            cursor = events.cursor(snapshot, subscriber.name)
            parked = events.parked(snapshot, subscriber.name, MOST_RETRIED)
        if not parked or cursor is None or (turn := self._begin(subscriber, cursor)) is None:
            return 0
        count = 0
        for event in parked:
            if stop():
                break
            try:
                code = self._handle(subscriber, event)
            except DeliverLater as later:
                retry_at = self._clock.now_ms() + later.pause_ms
                self._save(turn, EventCursor(cursor.delivered_seq, cursor.attempts, retry_at))
                return count
            if code is None:
                count += 1
                with self._database.write() as transaction:
                    events.unpark(transaction, subscriber.name, event.seq)
            if not self._advance(turn, turn.cursor):
                return count
        self._save(turn, EventCursor(cursor.delivered_seq, cursor.attempts, 0))
        return count

    def _begin(self, subscriber: Subscriber, cursor: EventCursor) -> _Turn | None:
        """Take a claim; return None if another process has one, or during a pause."""
        now = self._clock.now_ms()
        if _is_put_off(cursor, now, subscriber.claim_ms):
            return None
        until = now + subscriber.claim_ms
        with self._database.write(durable=False) as transaction:
            if not events.claim(transaction, subscriber.name, cursor, until):
                return None
        begun = EventCursor(cursor.delivered_seq, cursor.attempts + 1, until)
        return _Turn(subscriber, until, begun, now)

    def _page(
        self,
        subscriber: Subscriber,
        round_: DeliveryRound,
        stop: Callable[[], bool],
        limit: int | None,
    ) -> bool:
        """Deliver one page of a subscriber's events; return True if there may be more."""
        room = PAGE if limit is None else min(PAGE, limit - round_.passed)
        with self._database.read() as snapshot:
            cursor = events.cursor(snapshot, subscriber.name)
            if cursor is None or room <= 0:
                return False
            # After an attempt that did not end, one event at a time shows which one is at fault.
            size = 1 if cursor.attempts else room
            page = events.after(snapshot, cursor.delivered_seq, subscriber.topics, size)
            last = events.last_seq(snapshot)
        # The cursor passes events of other topics from time to time, so that they can be removed.
        if not page and last - cursor.delivered_seq < PAGE:
            return False
        if (turn := self._begin(subscriber, cursor)) is None:
            return False
        for event in page:
            if stop() or not self._one(turn, event, round_):
                break
        else:
            if len(page) < size:
                turn.cursor = EventCursor(last, 0, 0)
        if turn.settled:
            return False
        return self._save(turn, EventCursor(turn.cursor.delivered_seq, 0, 0)) and len(page) == size

    def _one(self, turn: _Turn, event: StoredEvent, round_: DeliveryRound) -> bool:
        """Deliver one event; return True when the next one may follow."""
        subscriber, attempts = turn.subscriber, turn.cursor.attempts
        # An event with so many unfinished attempts has crashed its process each time.
        code = INTERRUPTED if attempts > 1 and gives_up(attempts - 1) else None
        try:
            code = code or self._handle(subscriber, event)
        except DeliverLater as later:
            retry_at = self._clock.now_ms() + later.pause_ms
            self._save(turn, EventCursor(turn.cursor.delivered_seq, attempts - 1, retry_at))
            turn.settled = True
            return False
        if code is None:
            round_.handled += 1
            return self._advance(turn, EventCursor(event.seq, 1, turn.claimed))
        if gives_up(attempts) or code == INTERRUPTED:
            round_.parked += 1
            return self._park(turn, event, code)
        round_.failed += 1
        retry_at = self._clock.now_ms() + pause_ms(attempts)
        self._save(turn, EventCursor(turn.cursor.delivered_seq, attempts, retry_at))
        turn.settled = True
        return False

    def _handle(self, subscriber: Subscriber, stored: StoredEvent) -> str | None:
        """Call the handler; return the code of its error, or None. Raises DeliverLater."""
        try:
            event = event_of(stored.topic, json.loads(stored.payload))
            subscriber.handler(DeliveredEvent(stored.seq, stored.at, event))
        except DeliverLater:
            raise
        # The error is logged, counted and reported by health, and the event is delivered again;
        # other subscribers and the rest of the background work go on.
        except Exception as error:  # noqa: BLE001 - a handler may raise anything
            self.failing.add(subscriber.name)
            self._log.failure(
                "event.handler",
                error,
                subscriber=subscriber.name,
                topic=stored.topic,
                seq=stored.seq,
            )
            return error.code if isinstance(error, MemgraphError) else type(error).__name__
        self.failing.discard(subscriber.name)
        return None

    def _advance(self, turn: _Turn, cursor: EventCursor) -> bool:
        """Advance the cursor, and save it if ``SAVE_AFTER_MS`` have passed since the last time."""
        turn.cursor = cursor
        now = self._clock.now_ms()
        if now - turn.saved_at < SAVE_AFTER_MS:
            return True
        claimed = now + turn.subscriber.claim_ms
        saved = self._save(turn, EventCursor(cursor.delivered_seq, cursor.attempts, claimed))
        turn.claimed, turn.saved_at = claimed, now
        return saved

    def _park(self, turn: _Turn, event: StoredEvent, code: str) -> bool:
        with self._database.write() as transaction:
            cursor = EventCursor(event.seq, 1, turn.claimed)
            is_holder = events.move(transaction, turn.subscriber.name, turn.claimed, cursor)
            if is_holder:
                events.park(transaction, turn.subscriber.name, event, code)
        # From now on the failure is recorded in the database.
        self.failing.discard(turn.subscriber.name)
        turn.cursor, turn.settled = cursor, not is_holder
        return is_holder

    def _save(self, turn: _Turn, cursor: EventCursor) -> bool:
        """Write the cursor; return True if the claim was still valid."""
        # Losing the last cursor in a power failure only repeats events.
        with self._database.write(durable=False) as transaction:
            is_holder = events.move(transaction, turn.subscriber.name, turn.claimed, cursor)
        turn.cursor, turn.settled = cursor, not is_holder
        return is_holder


def _is_put_off(cursor: EventCursor, now_ms: int, claim_ms: int) -> bool:
    """Return True while there is a claim or a pause.

    A time further ahead than any claim or pause was written by a fast clock, and is ignored.
    """
    longest = max(claim_ms, pause_ms(MOST_ATTEMPTS))
    return now_ms < cursor.next_attempt_at <= now_ms + longest


def checked_topics(topics: Sequence[str] | None) -> tuple[str, ...]:
    """Return the topics of a subscriber, sorted; None means all topics.

    Raises:
        InvalidInput: a topic is unknown, or there are none.
    """
    names = tuple(sorted(set(EVENTS if topics is None else topics)))
    if not names or any(name not in EVENTS for name in names):
        raise InvalidInput(f"topics must be among {', '.join(sorted(EVENTS))}", field="topics")
    return names


class EventDispatcher:
    """Delivers to each subscriber in its own thread: a blocked one does not delay the others."""

    def __init__(self, bus: EventBus, log: EventLog) -> None:
        self._bus = bus
        self._log = log
        self._lock = threading.Lock()
        self._known: dict[str, BackgroundWork] = {}
        self._stopped = False

    def wake(self) -> None:
        """Start delivering soon; returns at once."""
        names = {
            subscriber.name for subscriber in self._bus.subscribers.all() if subscriber.threaded
        }
        with self._lock:
            if self._stopped:
                return
            ended = [self._known.pop(name) for name in set(self._known) - names]
            for name in names - set(self._known):
                self._known[name] = BackgroundWork((self._delivering(name),), self._failed)
            for thread in self._known.values():
                thread.wake()
        for thread in ended:
            thread.stop(0)

    def stop(self, patience_s: float) -> None:
        """End the threads after the current event.

        Args:
            patience_s: how long to wait for handlers, in seconds. A slower one goes on in its
                thread; its event is not recorded as delivered, and is repeated.
        """
        with self._lock:
            self._stopped = True
            threads = dict(self._known)
        until = time.monotonic() + patience_s
        # All are signalled first, so that they end concurrently.
        for thread in threads.values():
            thread.stop(0)
        for name, thread in threads.items():
            if not thread.stop(max(until - time.monotonic(), 0)):
                self._log.warning("events.subscriber_blocks", subscriber=name)

    def _delivering(self, name: str) -> Callable[[Callable[[], bool]], object]:
        return partial(self._bus.deliver, only=name)

    def _failed(self, error: MemgraphError) -> None:
        self._log.failure("events", error)
