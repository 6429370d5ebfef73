"""Operations on events: publish turns of the host, and subscribe to events of the memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memgraph.errors import InvalidInput
from memgraph.model.operation import F, local
from memgraph.operations.batches import WritingHandle

if TYPE_CHECKING:
    from memgraph.model.conversation import AgentTurn, UserTurn
    from memgraph.model.events import EventFailure, Handler
    from memgraph.service.events import DeliveryRound, Subscriber


MOST_FAILURES = 1_000
CLAIM_S = 60.0


class Events(WritingHandle[F], group="events"):
    """Connects the memory to a host's event bus: ``orc.events``."""

    @local
    def publish(self, turn: UserTurn | AgentTurn) -> str:
        """Store a turn from the host's event bus; return its id.

        Like ``save_episode``, but the class of the turn decides whether a person or an agent spoke,
        not the name of the role.

        Raises:
            InvalidInput, NotFound, AccessDenied: see ``Orchestrator.remember``.
        """
        from memgraph.model.conversation import AgentTurn, UserTurn

        if not isinstance(turn, UserTurn | AgentTurn):
            raise InvalidInput("only a UserTurn or an AgentTurn can be published")
        return self._remember(turn, live=True).memory_id or ""

    @local
    def subscribe(
        self,
        name: str,
        handler: Handler,
        *,
        topics: Sequence[str] | None = None,
        from_start: bool = False,
        claim_s: float = CLAIM_S,
    ) -> None:
        """Call ``handler`` with every event of these topics, in order, at least once.

        The name identifies the subscriber across restarts and processes. Events that occur while
        nobody uses the name are delivered to the next subscription. If several processes use it,
        each event goes to one of them. Events are delivered in a separate thread, or by ``deliver``
        if the service has no background. If a handler raises, it gets the event again after 1, 5
        and 25 seconds, and after 2 and 10 minutes; then the event is parked, see ``failures``.
        Subscribers belong to the host: they get events of every session and memory, by id,
        whatever this handle's viewer may see.

        Args:
            topics: topics of ``memgraph.model.events.EVENTS``; None: all.
            from_start: whether a new name starts with the oldest stored event, or with new events.
            claim_s: seconds that the handler may take for an event before another process with the
                same subscriber considers it dead, 1 to 86,400.

        Raises:
            Conflict: the name is in use in this process.
            InvalidInput: the name is empty or too long, a topic is unknown, or ``claim_s`` is out
                of range.
        """
        from memgraph.model.values import MAX_NAME_CHARS
        from memgraph.service.events import Subscriber, checked_topics

        if not 0 < len(name) <= MAX_NAME_CHARS:
            raise InvalidInput(f"name must have 1 to {MAX_NAME_CHARS} characters", field="name")
        if not 1 <= claim_s <= 86_400:
            raise InvalidInput("claim_s must be between 1 and 86,400", field="claim_s")
        subscriber = Subscriber(name, handler, checked_topics(topics), int(claim_s * 1_000))
        self.subscribe_as(subscriber, from_start=from_start)

    def subscribe_as(self, subscriber: Subscriber, *, from_start: bool) -> None:
        """Subscribe a validated subscriber; see ``subscribe``. Raises Conflict."""
        from memgraph.store import events

        with self._service.opened(self.name) as opened:
            with opened.database.write() as transaction:
                events.register(transaction, subscriber.name, from_start=from_start)
            opened.subscribers.add(subscriber)
            self._dispatch_soon(opened)
            if self._service.embeds_in_background:
                self._service.stores.add(opened.settings.memory.storage.url)

    @local
    def unsubscribe(self, name: str, *, forget: bool = False) -> bool:
        """Remove a subscriber; return True if this process had one of that name.

        Args:
            forget: drop its undelivered and failed events, because it will not return in any
                process. Otherwise its events are kept for at most 30 days.
        """
        from memgraph.store import events

        with self._service.opened(self.name) as opened:
            removed = opened.subscribers.remove(name)
            opened.events.failing.discard(name)
            if forget:
                with opened.database.write() as transaction:
                    events.forget(transaction, name)
        return removed

    @local
    def deliver(self) -> DeliveryRound:
        """Deliver pending events now; for a service without background, and for tests.

        Raises:
            StorageError: the database failed; events not recorded as delivered are delivered again.
        """
        with self._service.opened(self.name) as opened:
            report = opened.events.deliver()
            opened.upkeep.run()
        return report

    @local
    def failures(self, *, limit: int = 100) -> list[EventFailure]:
        """Return the events that a subscriber failed to handle in all attempts, newest first.

        Events of sessions or memories that this handle may not see are left out.

        Args:
            limit: the maximum number of events, 1 to 1,000.
        """
        from memgraph.store import events

        if not 1 <= limit <= MOST_FAILURES:
            raise InvalidInput(f"limit must be between 1 and {MOST_FAILURES:,}", field="limit")
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return events.failures(snapshot, limit, self._view)

    @local
    def retry(self) -> int:
        """Deliver parked events once to subscribers of this process; return how many succeeded.

        Subscribers that are handling an event in any process, or that pause after a failure, are
        skipped.
        """
        with self._service.opened(self.name) as opened:
            return opened.events.retry()
