"""Conversations and contexts over HTTP."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memgraph.client.batches import store_all
from memgraph.client.calls import Call, Read, part_of, segment, value_of
from memgraph.client.exchange import Course
from memgraph.client.files import Place, plain
from memgraph.client.remembering import MEMORY_ID
from memgraph.client.words import course, word
from memgraph.model.context import (
    BlockFormat,
    ContextBlock,
    ContextPackage,
    ContextRequest,
    Task,
    Tier,
)
from memgraph.model.conversation import SessionInfo, SessionPlace
from memgraph.model.enums import MemoryKind
from memgraph.model.remote import SessionEnded, SessionPage, TierPage
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


class PreparingWords(Place):
    """The methods that put memories into a prompt."""

    @word
    def build_context(
        self,
        /,
        task: Task | Mapping[str, Any] | str | None = None,
        request: ContextRequest | Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Call[ContextPackage]:
        """Build the context that a task needs, within a token budget; see ``ContextAssembler``.

        The handle needs the task among its ``session_ids``, its project among its ``project_ids``.

        Args:
            fields: of ``ContextRequest``; they override those of ``request``.

        Raises:
            InvalidInput: the task, the request or a field is wrong.
            AccessDenied: the task or its project is not open to the handle.
        """
        given = dict(request) if isinstance(request, ContextRequest | Mapping) else {}
        asked = validated(ContextRequest, given | fields)
        named = validated(Task, dict(task)) if isinstance(task, Task | Mapping) else task
        return self._look("/context", plain({"task": named, "request": asked}), _PACKAGE)

    @word
    def get_context(
        self,
        prompt: str,
        *,
        limit: int | None = None,
        format: BlockFormat | str | None = None,  # noqa: A002  the library's word
        exclude_session_id: str | None = None,
        include_insight: bool = True,
        kinds: Sequence[MemoryKind | str] = (MemoryKind.FACT,),
        agent_id: str | None = None,
    ) -> Call[ContextBlock]:
        """Return the block of memories to put before a message, and its items.

        ``get_context(message).text + message`` is a prompt; see ``Orchestrator.get_context``.

        Raises:
            InvalidInput: an argument is out of range.
            AccessDenied: the handle sees only another agent's memories.
        """
        fields = {
            "prompt": prompt,
            "limit": limit,
            "format": format,
            "exclude_session_id": exclude_session_id,
            "include_insight": include_insight,
            "kinds": list(kinds),
            "agent_id": agent_id,
        }
        return self._look("/context/block", plain(fields), value_of(ContextBlock))

    @word
    def tier(
        self, tier: Tier | str, scope_id: str | None = None, *, limit: int = 50
    ) -> Call[TierPage]:
        """Return the items of a task, a project or the global tier, newest first.

        Args:
            scope_id: the task or the project; None for global.
            limit: 1..1,000.

        Raises:
            InvalidInput: no such tier, a missing or superfluous scope id, a limit out of range.
            AccessDenied: it is not open to the handle.
        """
        path = f"/tiers/{segment(str(tier), field='tier')}"
        return self._get(path, value_of(TierPage), scope_id=scope_id, limit=limit)


_PACKAGE = value_of(ContextPackage)
