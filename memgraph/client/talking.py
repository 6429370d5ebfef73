"""Conversations, remotely: turns, sessions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memgraph.client.batches import store_all
from memgraph.client.calls import Call, Read, part_of
from memgraph.client.exchange import Course
from memgraph.client.places import Place
from memgraph.client.remembering import MEMORY_ID
from memgraph.client.words import course, word
from memgraph.model.conversation import SessionInfo, SessionPlace
from memgraph.model.remote import SessionEnded, SessionPage
from memgraph.model.values import EpisodeInput, Outcome, validated

_SESSIONS: Read[Sequence[SessionInfo]] = part_of(SessionPage, lambda page: page.items)
_ENDED: Read[bool] = part_of(SessionEnded, lambda told: told.ended)


class TalkingWords(Place):
    """The methods for conversations."""

    @word
    def save_episode(
        self, /, content: str, *, session_id: str, source_role: str, **fields: Any
    ) -> Call[str]:
        """Store one turn of a conversation and return its id: the path of every message.

        Args:
            content: what was said, 1 to 32,000 characters.
            source_role: who said it: ``user``, or a name, which may be an agent's.
            fields: further fields of ``EpisodeInput``.

        Raises:
            InvalidInput, NotFound, AccessDenied: see ``remember``.
        """
        given = {"content": content, "session_id": session_id, "source_role": source_role}
        turn = validated(EpisodeInput, given | fields)
        return self._write("/episodes", turn, MEMORY_ID)

    @course
    def save_episodes(
        self, batch: Iterable[EpisodeInput | Mapping[str, Any]]
    ) -> Course[list[Outcome]]:
        """Store turns as ``save_episode`` does, as many at a time as ``remember_many`` does.

        Returns:
            An outcome for each, in order; an invalid one is rejected by itself.
        """
        return store_all(self, "/episodes/batch", EpisodeInput, batch)

    @word
    def sessions(
        self,
        *,
        pending: bool | None = None,
        limit: int = 100,
        before: SessionPlace | str | None = None,
    ) -> Call[Sequence[SessionInfo]]:
        """Return the conversations of which the key may see a turn, latest activity first.

        Args:
            pending: True: only those that wait for their consolidation, False: the others.
            limit: 1 to 1,000.
            before: the last session of the page before; continues after its position then. Its id
                alone: after its position now.

        Raises:
            InvalidInput: a limit out of its bounds.
            NotFound: no session of the id ``before``.
        """
        after = (
            {"cursor": before.cursor} if isinstance(before, SessionPlace) else {"before": before}
        )
        return self._get("/sessions", _SESSIONS, pending=pending, limit=limit, **after)

    @word
    def end_session(self, session_id: str) -> Call[bool]:
        """End a conversation now, without waiting for the next one.

        Returns:
            True when it was open. A later turn opens it again.

        Raises:
            NotFound: no such session, or none of its turns is visible.
        """
        return self._write("/sessions/end", {"session_id": session_id}, _ENDED)
