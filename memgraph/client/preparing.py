"""Contexts, remotely: what a task needs to know, what goes before a message, what a tier holds."""

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
    """The words that write what is remembered into a prompt."""

    @word
    def build_context(
        self,
        /,
        task: Task | Mapping[str, Any] | str | None = None,
        request: ContextRequest | Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Call[ContextPackage]:
        """What a task needs to know, within a budget of tokens; see ``ContextAssembler``.

        The handle takes the task among its ``session_ids``, its project among its ``project_ids``.

        Args:
            fields: of ``ContextRequest``; they win over those of ``request``.

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
        """The block of memories to put before a message, and what stands in it.

        ``get_context(message).text + message`` is a prompt; see ``Orchestrator.get_context``.

        Raises:
            InvalidInput: an argument is out of range.
            AccessDenied: the handle sees another agent's memories alone.
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
        """What a task, a project or everybody holds, the newest items first.

        Args:
            scope_id: the task or the project; None for global.
            limit: 1..1,000.

        Raises:
            InvalidInput: no such tier, a name that is missing or too many, a limit out of range.
            AccessDenied: it is not open to the handle.
        """
        path = f"/tiers/{segment(str(tier), field='tier')}"
        return self._get(path, value_of(TierPage), scope_id=scope_id, limit=limit)


_PACKAGE = value_of(ContextPackage)
