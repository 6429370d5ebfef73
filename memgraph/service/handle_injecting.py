"""Memories in front of a message, through a handle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memgraph.errors import AccessDenied
from memgraph.model.context import BlockFormat, ContextBlock, ContextPackage, ContextRequest, Task
from memgraph.model.enums import MemoryKind
from memgraph.model.recall import RecallRequest
from memgraph.model.values import validated
from memgraph.rules.scope import narrow
from memgraph.service.handle_reading import ReadingHandle
from memgraph.service.reading import members


class InjectingHandle(ReadingHandle):
    """The part of ``Orchestrator`` that puts memories into a prompt."""

    def get_context(
        self,
        prompt: str,
        *,
        limit: int | None = None,
        format: BlockFormat | str | None = None,  # noqa: A002  the word that settings have for it
        exclude_session_id: str | None = None,
        include_insight: bool = True,
        kinds: Sequence[MemoryKind | str] = (MemoryKind.FACT,),
        agent_id: str | None = None,
    ) -> ContextBlock:
        """Return the block of memories to put before a message, and its items.

        ``orc.get_context(message).text + message`` is a prompt: the text is empty or ends in a
        newline. One receipt names every memory in it, the reflection's too.

        Args:
            prompt: the message; an empty one gives the most important memories.
            limit: 1..1,000 memories beside the reflection; None: ``memory.context.facts``.
            format: None: ``memory.context.format``.
            exclude_session_id: the conversation of the message, whose turns the agent has already.
            include_insight: add the latest weekly reflection.
            kinds: of memories that may be included; empty: all.
            agent_id: the agent whose prompt it is: other agents' private memories are left out.
                None: those that the handle may see.

        Raises:
            InvalidInput: an argument is out of range.
            AccessDenied: the handle sees only another agent's memories; it is logged.
        """
        from memgraph.service.context.injecting import context_for

        with self._service.opened(self.name) as opened:
            chosen = opened.settings.memory.context
            [form] = members(BlockFormat, [chosen.format if format is None else format])
            request = validated(
                RecallRequest,
                {
                    "query": prompt,
                    "top_n": chosen.facts if limit is None else limit,
                    "kinds": tuple(kinds),
                    "exclude_session_id": exclude_session_id,
                    "agent_id": agent_id,
                },
            )
            try:
                viewer = narrow(self.viewer, agent_id=agent_id)
            except AccessDenied as error:
                raise self._denied(opened, error, field="agent_id", asked=agent_id) from None
            block, receipt, behind = context_for(
                opened, viewer, request, format=form, include_insight=include_insight
            )
            # A memory of several lines stands on one in it: as such it would come back.
            texts = () if form is BlockFormat.FENCED else (block.text,)
            self._keep_receipt(opened, receipt, behind, viewer=viewer, texts=texts)
            return block

    def build_context(
        self,
        task: Task | Mapping[str, Any] | str | None = None,
        request: ContextRequest | Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> ContextPackage:
        """Build the context that a task needs, within a token budget; see ``ContextAssembler``.

        Unlike the host's own assembler it opens only what this handle's viewer was granted.

        Raises:
            InvalidInput: the task, the request or a field is wrong.
            AccessDenied: the task is not among the viewer's ``session_ids``, or its project not
                among its ``project_ids``; it is logged and journalled.
        """
        from memgraph.service.context.builder import ContextBuilder

        builder = ContextBuilder(
            self._service,
            self.name,
            viewer=self.viewer,
            actor=self.actor,
            counters=self._service.counters,
            teller=self._teller,
        )
        return builder.build_context(task, request, **fields)
