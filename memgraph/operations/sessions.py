"""Conversations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memgraph.errors import InvalidInput, NotFound
from memgraph.model.access import Permission
from memgraph.model.events import SessionCompleted
from memgraph.model.operation import F, local, operation
from memgraph.model.remote import SessionEnded
from memgraph.model.values import Name
from memgraph.operations.handle import Handle
from memgraph.rules.conversations import SessionState

if TYPE_CHECKING:
    from memgraph.model.conversation import SessionInfo, SessionPlace
    from memgraph.store.snapshot import Snapshot


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

        found = sessions.place(snapshot, self._view, session_id)
        if found is None:
            raise _no_session(session_id)
        return found

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
            known = sessions.visible(transaction, self._view, session_id)
            if known is None:
                raise _no_session(session_id)
            if known.state is not SessionState.OPEN:
                return False
            sessions.complete(transaction, [session_id])
            events.append(transaction, transaction.at, [SessionCompleted(session_id=session_id)])
        self._dispatch_soon(opened)
        return True


def _no_session(session_id: str) -> NotFound:
    return NotFound(f"no session {session_id[:80]!r}", session_id=session_id[:80])
