"""The groups of operations that the library, its asynchronous form and the clients share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from memgraph.clock import parse_time
from memgraph.errors import InvalidInput, NotFound
from memgraph.model.access import Permission, StoreHealth
from memgraph.model.events import SessionCompleted
from memgraph.model.graph import Diff, History
from memgraph.model.operation import F, MemoryId, Time, WireFormat, local, operation, with_groups
from memgraph.model.remote import SessionEnded
from memgraph.model.values import Name
from memgraph.operations.contexts import Contexts
from memgraph.operations.contradictions import Contradictions
from memgraph.operations.entities import Entities
from memgraph.operations.erasure.operations import Erasure
from memgraph.operations.everyday import Everyday
from memgraph.operations.graph import Graph
from memgraph.operations.handle import Handle
from memgraph.operations.ingestion.operations import Ingestion
from memgraph.operations.jobs import Jobs
from memgraph.operations.memories import Memories
from memgraph.operations.receipts import Receipts
from memgraph.operations.sources import Sources
from memgraph.rules.conversations import SessionState

if TYPE_CHECKING:
    from memgraph.model.conversation import SessionInfo, SessionPlace
    from memgraph.store.snapshot import Snapshot


class Audit(Handle[F], group="audit"):
    """Measures of what is stored: ``orc.audit``."""

    @operation(
        Permission.AUDIT,
        "POST",
        "/audit",
        tag="auditing",
        body="AuditWanted",
        slow=True,
        id="audit",
    )
    def measure(
        self,
        *,
        fail_on: Annotated[Sequence[str], WireFormat(tuple[Name, ...]), Field(max_length=20)] = (),
        examples: Annotated[int, Field(ge=0, le=100)] = 5,
        progress: Callable[[str, int, int], None] = lambda _part, _done, _total: None,
    ) -> StoreHealth:
        """Return rates of what this handle sees, each with examples. Nothing is changed.

        Of the active memories that are no raw turns: ``duplicate`` have the same text as another
        one of the same place, ``near_duplicate`` nearly (of 20,000 at most), ``contradiction`` are
        in an open one, ``stale`` depend on superseded or retracted evidence, ``unsourced`` have no
        known source, ``orphan`` have no edge, ``echo`` only repeat what had been handed out before
        they were stored (of 20,000 at most). Of all active memories: ``unembedded`` have no vector
        yet, or none could be made.

        Args:
            fail_on: limits, such as ``stale=0.05``, ``stale=5%``, ``echo`` (none at all) or
                ``all``; a rate above its limit makes ``ok`` False.
            examples: 0..100, of each measure.
            progress: called with the measure, how much is done, and how much there is.

        Raises:
            InvalidInput: an invalid limit, or too many examples.
        """
        from memgraph.operations.read.store_health import store_health

        with self._service.opened(self.name) as opened:
            return store_health(
                opened, self._view, fail_on=fail_on, examples=examples, progress=progress
            )


class HistoryOperations(Handle[F], group="history"):
    """What changed: ``orc.history``."""

    @operation(Permission.READ, "GET", "/diff", tag="auditing")
    def diff(
        self,
        since: Annotated[Time, Field(description="After this time.", examples=["2026-01-01"])],
        until: Annotated[
            Time | None,
            Field(description="Up to this time; now, if none is.", examples=["2026-02-01"]),
        ] = None,
        *,
        limit: Annotated[int, Field(ge=1, le=1_000, description="Of each list.")] = 100,
    ) -> Diff:
        """Return the changes between two times, newest first.

        They are memories learnt, replaced, retracted and restored, contradictions found and
        decided, and changes of confidence.

        Args:
            since: exclusive; ``until`` is inclusive.
            until: None: now.
            limit: 1..1000 of each list; ``counts`` are complete.

        Raises:
            InvalidInput: a limit out of range, or an end before the beginning.
        """
        from memgraph.graph.history import diff

        first = parse_time(since)
        with self._service.opened(self.name) as opened:
            last = opened.clock.now_ms() if until is None else parse_time(until)
            return diff(opened.database, first, last, limit=limit, viewer=self.viewer)

    @operation(
        Permission.READ, "GET", "/memories/{memory_id}/history", tag="auditing", id="history"
    )
    def get(self, memory_id: MemoryId) -> History:
        """Return every status and value that a memory had, with their times. Raises NotFound."""
        from memgraph.graph.history import history

        memory_id = self._whole_id(memory_id)
        with self._service.opened(self.name) as opened:
            return history(
                opened.database,
                memory_id,
                now_ms=opened.clock.now_ms(),
                exponent=opened.settings.memory.decay.exponent,
                viewer=self.viewer,
            )


MOST_SESSIONS = 1_000


class Sessions(Handle[F], group="sessions"):
    """Conversations: ``orc.sessions``."""

    @local
    def list(
        self,
        *,
        pending: bool | None = None,
        limit: int = 100,
        before: SessionPlace | str | None = None,
    ) -> Sequence[SessionInfo]:
        """Return the conversations of which this handle may see a turn, latest activity first.

        Args:
            pending: True: only those that wait for their consolidation, False: the others.
            limit: 1 to 1,000.
            before: the last session of the page before; continues after its position then. Its id
                alone: after its position now.

        Raises:
            InvalidInput: a limit out of its bounds.
            NotFound: no session of the id ``before``.
        """
        from memgraph.store import sessions

        if not 1 <= limit <= MOST_SESSIONS:
            raise InvalidInput(f"limit: 1 to {MOST_SESSIONS:,}", field="limit")
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            if isinstance(before, str):
                before = self._place(snapshot, before)
            return sessions.select(
                snapshot, self._view, pending=pending, before=before, limit=limit
            )

    def _place(self, snapshot: Snapshot, session_id: str) -> SessionPlace:
        from memgraph.store import sessions

        place = sessions.place(snapshot, self._view, session_id)
        if place is None:
            raise _no_session(session_id)
        return place

    @operation(
        Permission.WRITE,
        "POST",
        "/sessions/end",
        tag="conversations",
        body="Ending",
        answer=SessionEnded,
        id="end_session",
    )
    def end(self, session_id: Name) -> bool:
        """End a conversation now, without waiting for the next one.

        Returns:
            True when it was open. A later turn opens it again.

        Raises:
            NotFound: no such session, or none of its turns is visible.
        """
        from memgraph.store import events, sessions

        with self._write() as (opened, transaction):
            session = sessions.visible(transaction, self._view, session_id)
            if session is None:
                raise _no_session(session_id)
            if session.state is not SessionState.OPEN:
                return False
            sessions.complete(transaction, [session_id])
            events.append(transaction, transaction.at, [SessionCompleted(session_id=session_id)])
        self._dispatch_soon(opened)
        return True


def _no_session(session_id: str) -> NotFound:
    return NotFound(f"no session {session_id[:80]!r}", session_id=session_id[:80])


@with_groups
class Operations(Everyday[F]):
    """The operations of an orchestrator: the everyday ones, and groups of others."""

    memories: Memories[F]
    contradictions: Contradictions[F]
    graph: Graph[F]
    history: HistoryOperations[F]
    sources: Sources[F]
    receipts: Receipts[F]
    sessions: Sessions[F]
    contexts: Contexts[F]
    entities: Entities[F]
    ingestion: Ingestion[F]
    jobs: Jobs[F]
    audit: Audit[F]
    erasure: Erasure[F]
