"""Contexts, remotely: what a task needs to know, the block before a message, items of a tier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memgraph.client.calls import Call, segment, value_of
from memgraph.client.places import Place, plain
from memgraph.client.words import word
from memgraph.model.context import (
    BlockFormat,
    ContextBlock,
    ContextPackage,
    ContextRequest,
    Task,
    Tier,
)
from memgraph.model.enums import MemoryKind
from memgraph.model.remote import TierPage
from memgraph.model.values import validated


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
