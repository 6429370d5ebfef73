"""Contexts for the holder of a view: what a task needs to know, within what was granted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from memgraph.context.token_counters import TokenCounters
from memgraph.errors import AccessDenied, InvalidInput
from memgraph.model.context import (
    AgentProfile,
    BlockFormat,
    ContextFields,
    ContextPackage,
    ContextRequest,
    Task,
    Tier,
    TierShares,
)
from memgraph.model.enums import Scope
from memgraph.model.values import ValueT, validated
from memgraph.operations.context.build import built, plan_of
from memgraph.operations.context.injection import new_mark
from memgraph.operations.handle import DenialRecorder, Handle
from memgraph.rules.scope import Viewer

if TYPE_CHECKING:
    from memgraph.service.memory_service import MemoryService
    from memgraph.service.open_orchestrator import OpenOrchestrator


class ContextBuilder(Handle):
    """Builds contexts from tasks and projects that a viewer was granted. Thread-safe.

    Args:
        service, name: the service and its orchestrator.
        viewer: what was granted. When it names no agent, agents' private memories are left out.
        actor: the name in journal entries.
        profile: defaults for requests.
        counters: token counters; by default its own.
        recorder: see ``Handle``.
    """

    def __init__(
        self,
        service: MemoryService,
        name: str,
        *,
        viewer: Viewer,
        actor: str,
        profile: AgentProfile | None = None,
        counters: TokenCounters | None = None,
        recorder: DenialRecorder | None = None,
    ) -> None:
        reader = replace(viewer, agent_id=viewer.agent_id or actor)
        super().__init__(service, name, viewer=reader, actor=actor, recorder=recorder)
        self.profile = AgentProfile(name=actor) if profile is None else profile
        self._counters = TokenCounters() if counters is None else counters

    def build_context(
        self,
        task: Task | Mapping[str, Any] | str | None,
        request: ContextRequest | Mapping[str, Any] | None = None,
        **fields: Unpack[ContextFields],
    ) -> ContextPackage:
        """Build the context that a task needs, within a token budget.

        The task's own items come first, the first and last of them before the others; then items of
        its project and of the global tier that match the query, or the most important. A text is
        whole when its tier's share and the unused rest allow it; else parts of it are left out, and
        its item's ``shortened`` is True.

        Args:
            task: the task, or its fields, or its id; None: only the global tier.
            request: the request, or its fields.
            fields: fields of ``ContextRequest``, which override those of ``request``.

        Returns:
            The package; its ``text`` costs at most ``budget_tokens``, and is empty when not even
            the markers of a block fit.

        Raises:
            InvalidInput: the task, the request or a field is wrong.
            AccessDenied: the task or its project was not granted; it is logged and journalled.
            StorageError: the database cannot be read.
        """
        checked_request = _asked(request, fields)
        task_fields = {"task_id": task} if isinstance(task, str) else task
        working = None if task_fields is None else value_of(Task, task_fields)
        with self._service.opened(self.name) as opened:
            self._require_granted(opened, working)
            settings = opened.settings.memory.context
            plan = plan_of(checked_request, self.profile, settings, new_mark(opened.ids))
            counter, notes = self._counters.at_hand(checked_request.model or self.profile.model)
            viewer = self._viewer_of(working, plan.shares)
            package, receipt, source_data = built(
                opened, viewer, working, checked_request, plan, counter, notes
            )
            changed = _in_other_words(package)
            texts = (changed,) if changed else ()
            self._keep_receipt(opened, receipt, source_data, viewer=viewer, texts=texts)
        return package

    def _require_granted(self, opened: OpenOrchestrator, task: Task | None) -> None:
        """Raise AccessDenied when the task or its project is not the viewer's."""
        if task is None:
            return
        for tier, scope_id in ((Tier.TASK, task.task_id), (Tier.PROJECT, task.project)):
            if scope_id is not None and scope_id not in self.viewer.scope_ids(tier.scope):
                error = AccessDenied(
                    f"this {tier.value} is not open to the handle", field=tier.value
                )
                raise self._denied(opened, error, field=tier.value, asked=scope_id)

    def _viewer_of(self, task: Task | None, shares: TierShares) -> Viewer:
        """Return a viewer of exactly the task, its project and the global tier, where they have a
        share.
        """
        project = None if task is None else task.project
        open_ = {
            Scope.SESSION: task is not None and shares.task > 0.0,
            Scope.PROJECT: project is not None and shares.project > 0.0,
            Scope.GLOBAL: shares.everywhere > 0.0,
        }
        scopes = frozenset(scope for scope, is_open in open_.items() if is_open)
        return replace(
            self.viewer,
            session_ids=frozenset() if task is None else frozenset({task.task_id}),
            project_ids=frozenset() if project is None else frozenset({project}),
            scopes=scopes & self.viewer.scopes,
        )


def value_of(kind: type[ValueT], value: object) -> ValueT:
    """Return the value itself, or one built from its fields.

    Raises:
        InvalidInput: it is neither.
    """
    if isinstance(value, kind):
        return value
    if isinstance(value, Mapping):
        return validated(kind, dict(value))
    raise InvalidInput(
        f"a {kind.__name__} or its fields, not {type(value).__name__}", field=kind.__name__
    )


def _in_other_words(package: ContextPackage) -> str:
    """Return the parts of a context's text that are no lines of memories, to recognise them
    later.
    """
    if package.format is not BlockFormat.FENCED:
        return package.text
    return "\n".join(item.text for item in package.items if item.shortened)


def _asked(
    request: ContextRequest | Mapping[str, Any] | None, fields: Mapping[str, Any]
) -> ContextRequest:
    checked = value_of(ContextRequest, {} if request is None else request)
    return validated(ContextRequest, {**dict(checked), **fields}) if fields else checked
