"""The groups of operations that the library, its asynchronous form and the clients share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from memgraph.clock import parse_time
from memgraph.errors import NotFound
from memgraph.model.access import Permission
from memgraph.model.conversation import SessionCompleted, SessionInfo, SessionPlace
from memgraph.model.graph import Diff, History
from memgraph.model.operation import (
    F,
    MemoryId,
    Time,
    WireFormat,
    WireResult,
    operation,
    with_groups,
)
from memgraph.model.remote import Limit as PageLimit, SessionEnded, SessionPage
from memgraph.model.values import MAX_NAME_CHARS, Name
from memgraph.operations.agent_memory import AgentMemory
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
from memgraph.operations.turns import Turns
from memgraph.rules.conversations import SessionState


class HistoryOperations(Handle[F], group="history", tag="auditing"):
    """Returns changes between two times, and the history of a memory: ``orc.history``."""

    @operation(Permission.READ, "GET /diff")
    def diff(
        self,
        since: Annotated[Time, Field(description="After this time.", examples=["2026-01-01"])],
        until: Annotated[
            Time | None,
            Field(description="Up to this time; by default now.", examples=["2026-02-01"]),
        ] = None,
        *,
        limit: Annotated[int, Field(ge=1, le=1_000, description="Maximum per list.")] = 100,
    ) -> Diff:
        """Return the changes between two times, newest first.

        The changes are new, replaced, retracted and restored memories, and new and decided
        contradictions.

        Args:
            since: the start, exclusive.
            until: the end, inclusive; None: now.
            limit: the maximum length of each list, 1 to 1,000; ``counts`` has the full numbers.

        Raises:
            InvalidInput: the limit is out of range, or ``until`` is before ``since``.
        """
        from memgraph.graph.history import diff

        first = parse_time(since)
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            last = opened.clock.now_ms() if until is None else parse_time(until)
            return diff(snapshot, self._view, first, last, limit=limit)

    @operation(Permission.READ, "GET /memories/{memory_id}/history", id="history", command="")
    def get(self, memory_id: MemoryId) -> History:
        """Return all statuses that a memory had, with their times. Raises NotFound."""
        from memgraph.graph.history import history

        memory_id = self._whole_id(memory_id)
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return history(snapshot, self._view, memory_id, now_ms=opened.clock.now_ms())


MAX_CURSOR_CHARS = MAX_NAME_CHARS + 17


class Sessions(Handle[F], group="sessions", tag="conversations"):
    """Lists and ends sessions: ``orc.sessions``."""

    @operation(
        Permission.READ,
        "GET /sessions",
        id="list_sessions",
        answer=WireResult(SessionPage, cursor=lambda session: session.cursor),
        command="sessions",
    )
    def list(
        self,
        *,
        pending: Annotated[
            bool | None,
            Field(description="Only those that wait for consolidation, or only the others."),
        ] = None,
        limit: PageLimit = 100,
        before: Annotated[
            str | None,
            WireFormat(Annotated[str, Field(max_length=MAX_CURSOR_CHARS)], "cursor"),
            Field(description="`next_cursor` of the previous page."),
        ] = None,
    ) -> Sequence[SessionInfo]:
        """Return the conversations with a visible turn, latest activity first.

        With a cursor, no page repeats items of an earlier page, even if a conversation continues.

        Args:
            limit: 1..1000.
            before: the ``cursor`` of the last session of the previous page.

        Raises:
            InvalidInput: the limit is out of range, or ``before`` is no cursor.
        """
        from memgraph.store import sessions

        place = None if before is None else SessionPlace.at(before)
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return sessions.select(snapshot, self._view, pending=pending, before=place, limit=limit)

    @operation(
        Permission.WRITE, "POST /sessions/end", body="Ending", answer=SessionEnded, id="end_session"
    )
    def end(self, session_id: Name) -> bool:
        """End a session now, without waiting for the next one to begin.

        Returns:
            True if it was open. A later turn reopens it.

        Raises:
            NotFound: the session does not exist, or none of its turns is visible.
        """
        from memgraph.store import sessions

        with self._write() as (_, transaction):
            session = sessions.visible(transaction, self._view, session_id)
            if session is None:
                raise NotFound(f"no session {session_id[:80]!r}", session_id=session_id[:80])
            if session.state is not SessionState.OPEN:
                return False
            sessions.complete(transaction, [session_id])
            transaction.session_events.append(SessionCompleted(session_id=session_id))
        return True


class Maintenance(Handle[F], group="maintenance", tag="operating"):
    """Maintenance of the database: ``orc.maintenance``."""

    @operation(Permission.ADMIN, "GET /status", id="get_status", command="stats")
    def stats(self) -> dict[str, Any]:
        """Count everything stored, hidden memories too, with the sizes on disk.

        Raises:
            DatabaseCorrupt, …: the memory is disabled.
        """
        from memgraph.operations.read import lookup

        with self._service.opened(self.name) as opened:
            return lookup.stats(opened)


@with_groups
class Operations(Everyday[F]):
    """The operations of an orchestrator: the everyday ones, and the others in groups."""

    memories: Memories[F]
    contradictions: Contradictions[F]
    graph: Graph[F]
    history: HistoryOperations[F]
    sources: Sources[F]
    receipts: Receipts[F]
    sessions: Sessions[F]
    contexts: Contexts[F]
    agent_memory: AgentMemory[F]
    turns: Turns[F]
    entities: Entities[F]
    ingestion: Ingestion[F]
    jobs: Jobs[F]
    erasure: Erasure[F]
    maintenance: Maintenance[F]
