"""Sessions: list the conversations, and end one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from memgraph.errors import NotFound
from memgraph.model.access import Permission
from memgraph.model.conversation import SessionInfo, SessionPlace
from memgraph.model.operation import F, WireFormat, WireResult, operation
from memgraph.model.remote import Limit as PageLimit, SessionEnded, SessionPage
from memgraph.model.values import MAX_NAME_CHARS, Name
from memgraph.operations.handle import Handle
from memgraph.rules.conversations import SessionState

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
            transaction.completed_sessions.append(session_id)
        return True
