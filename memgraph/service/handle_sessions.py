"""Conversations and events through a handle: sessions, subscribers, and what a host hands over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memgraph.errors import InvalidInput, NotFound
from memgraph.model.events import SessionCompleted
from memgraph.rules.conversations import SessionState
from memgraph.service.handle_writing import WritingHandle
from memgraph.store import events, sessions

if TYPE_CHECKING:
    from memgraph.model.conversation import AgentTurn, SessionInfo, SessionPlace, UserTurn
    from memgraph.model.events import EventFailure, Handler
    from memgraph.service.life.events import Delivery, Subscriber
    from memgraph.store.snapshot import Snapshot

MOST_SESSIONS = 1_000
MOST_FAILURES = 1_000
CLAIM_S = 60.0


class SessionsHandle(WritingHandle):
    """The part of ``Orchestrator`` that knows of conversations and tells what happens."""

    def publish(self, turn: UserTurn | AgentTurn) -> str:
        """Store a turn that the host's own bus hands over; gives its id.

        As ``save_episode``, but the kind of the turn says whether a person spoke or an agent,
        whatever the role is called.

        Raises:
            InvalidInput, NotFound, AccessDenied: see ``remember``.
        """
        from memgraph.model.conversation import AgentTurn, UserTurn

        if not isinstance(turn, UserTurn | AgentTurn):
            raise InvalidInput("what can be published: a UserTurn or an AgentTurn")
        return self._remember(turn, live=True).memory_id or ""

    def sessions(
        self,
        *,
        pending: bool | None = None,
        limit: int = 100,
        before: SessionPlace | str | None = None,
    ) -> Sequence[SessionInfo]:
        """The conversations of which this handle may see a turn, the last one talked in first.

        Args:
            pending: True: only those that wait for their consolidation, False: the others.
            limit: 1 to 1,000.
            before: the last session of the page before: what comes after the place that it had
                there. Its id alone: after the place that it has now.

        Raises:
            InvalidInput: a limit out of its bounds.
            NotFound: no session of the id ``before``.
        """
        if not 1 <= limit <= MOST_SESSIONS:
            raise InvalidInput(f"limit: 1 to {MOST_SESSIONS:,}", field="limit")
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            if isinstance(before, str):
                before = self._place(snapshot, before)
            return sessions.select(
                snapshot, self._view, pending=pending, before=before, limit=limit
            )

    def _place(self, snapshot: Snapshot, session_id: str) -> SessionPlace:
        found = sessions.place(snapshot, self._view, session_id)
        if found is None:
            raise _no_session(session_id)
        return found

    def end_session(self, session_id: str) -> bool:
        """Say that a conversation is over, without waiting for the next one.

        Returns:
            Whether it was open until now. A turn that comes later opens it again.

        Raises:
            NotFound: no such session, or none of its turns is to be seen.
        """
        with self._write() as (opened, transaction):
            known = sessions.visible(transaction, self._view, session_id)
            if known is None:
                raise _no_session(session_id)
            if known.state is not SessionState.OPEN:
                return False
            sessions.complete(transaction, [session_id], at=transaction.at)
            events.append(transaction, transaction.at, [SessionCompleted(session_id=session_id)])
        self._tell_soon(opened)
        return True

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

        The name stands for the subscriber across restarts and processes: what happened while
        nobody had it comes when somebody subscribes under it again, and of several processes that
        have it one gets an event. Delivered in a thread of its own, or by ``deliver_events`` where
        the service has no background. A handler that raises gets the event again after 1 s, 5 s,
        25 s, 2 and 10 minutes; then it is put aside, see ``event_failures``. Subscribers are the
        host's own: they hear of every session and memory, by id, whatever this handle's viewer may
        see.

        Args:
            topics: of ``memgraph.model.events.EVENTS``; None: all.
            from_start: a name that is new begins at the oldest event that is kept; else it gets
                what happens from now on.
            claim_s: how long the handler may take over an event before another process, that has
                the same subscriber, takes it for dead. At least 1.

        Raises:
            Conflict: the name is taken in this process.
            InvalidInput: an empty or overlong name, an unknown topic, too short a claim.
        """
        from memgraph.model.values import MAX_NAME_CHARS
        from memgraph.service.life.events import Subscriber, checked_topics

        if not 0 < len(name) <= MAX_NAME_CHARS:
            raise InvalidInput(f"name: 1 to {MAX_NAME_CHARS} characters", field="name")
        if not 1 <= claim_s <= 86_400:
            raise InvalidInput("claim_s: 1 to 86,400", field="claim_s")
        given = Subscriber(name, handler, checked_topics(topics), int(claim_s * 1_000))
        self.subscribe_as(given, from_start=from_start)

    def subscribe_as(self, given: Subscriber, *, from_start: bool) -> None:
        """``subscribe`` with a subscriber that is checked already. Raises Conflict."""
        with self._service.opened(self.name) as opened:
            with opened.database.write() as transaction:
                events.register(transaction, given.name, from_start=from_start)
            opened.subscribers.add(given)
            self._tell_soon(opened)

    def unsubscribe(self, name: str, *, forget: bool = False) -> bool:
        """Call a subscriber no more; gives whether this process had one of that name.

        Args:
            forget: it will not come back anywhere: what it has not had, and what it did not take,
                is dropped. Else events are kept for it, 30 days at most.
        """
        with self._service.opened(self.name) as opened:
            found = opened.subscribers.remove(name)
            opened.events.failing.discard(name)
            if forget:
                with opened.database.write() as transaction:
                    events.forget(transaction, name)
        return found

    def deliver_events(self) -> Delivery:
        """Deliver what waits now; for a service without background, and for tests.

        Raises:
            StorageError: the database failed; what was not noted as taken comes again.
        """
        with self._service.opened(self.name) as opened:
            told = opened.events.deliver()
            opened.upkeep.run()
        return told

    def event_failures(self, *, limit: int = 100) -> list[EventFailure]:
        """Events that a subscriber did not take after all attempts, newest first.

        Those about sessions or memories that this handle may not see are left out.

        Args:
            limit: 1 to 1,000.
        """
        if not 1 <= limit <= MOST_FAILURES:
            raise InvalidInput(f"limit: 1 to {MOST_FAILURES:,}", field="limit")
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return events.failures(snapshot, limit, self._view)

    def retry_events(self) -> int:
        """Hand subscribers of this process what was put aside, once; gives how many they took.

        One that is at work on an event, here or in another process, is left out, and so is one
        that has a pause after a failure.
        """
        with self._service.opened(self.name) as opened:
            return opened.events.retry()


def _no_session(session_id: str) -> NotFound:
    return NotFound(f"no session {session_id[:80]!r}", session_id=session_id[:80])
