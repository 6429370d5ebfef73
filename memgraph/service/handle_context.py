"""Tiers through a handle: the stores of a task, a project and the global tier, and promotion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memgraph.errors import AccessDenied, InvalidInput
from memgraph.model.context import Tier
from memgraph.service.handle_writing import WritingHandle
from memgraph.service.reading import members

if TYPE_CHECKING:
    from memgraph.context.confirming import ConfirmationCallback
    from memgraph.context.global_store import GlobalMemoryStore
    from memgraph.context.project_store import ProjectMemoryStore
    from memgraph.context.task_store import TaskMemoryStore
    from memgraph.model.remote import TierPage
    from memgraph.service.opened import Opened


class ContextHandle(WritingHandle):
    """The part of ``Orchestrator`` that opens tiers."""

    def task(self, task_id: str) -> TaskMemoryStore:
        """Return the store of a task.

        Raises:
            AccessDenied: the task is not among the viewer's ``session_ids``; it is logged and
                journalled.
        """
        from memgraph.context.task_store import TaskMemoryStore

        return TaskMemoryStore(task_id, **self._store_fields(Tier.TASK, task_id))

    def project(self, project_id: str) -> ProjectMemoryStore:
        """Return the store of a project, with at most ``memory.context.max_project_items`` items.

        Raises:
            AccessDenied: the project is not among the viewer's ``project_ids``; it is logged and
                journalled.
        """
        from memgraph.context.project_store import ProjectMemoryStore

        return ProjectMemoryStore(
            project_id,
            max_items=self._service.settings(self.name).memory.context.max_project_items,
            **self._store_fields(Tier.PROJECT, project_id),
        )

    def everywhere(
        self, confirmation_callback: ConfirmationCallback | None = None
    ) -> GlobalMemoryStore:
        """Return the store of the global tier.

        Args:
            confirmation_callback: asks a person a question and returns True or False; without one,
                changes that require a person's consent are refused.

        Raises:
            AccessDenied: the viewer does not see global memories; it is logged and journalled.
        """
        from memgraph.context.global_store import GlobalMemoryStore

        return GlobalMemoryStore(
            confirmation_callback=confirmation_callback, **self._store_fields(Tier.GLOBAL, None)
        )

    def tier(self, tier: Tier | str, scope_id: str | None = None, *, limit: int = 50) -> TierPage:
        """Return the items of a task, a project or the global tier, newest first.

        Args:
            scope_id: the task or the project; None for global.
            limit: 1..1,000.

        Raises:
            InvalidInput: no such tier, a missing or superfluous scope id, a limit out of range.
            AccessDenied: it is not open to the handle; it is logged and journalled.
        """
        from memgraph.model.remote import MAX_BATCH, HeldItem, TierPage
        from memgraph.service.context.database_backend import DatabaseBackend

        [which] = members(Tier, [tier])
        if not 1 <= limit <= MAX_BATCH:
            raise InvalidInput(f"limit: 1 to {MAX_BATCH:,}", field="limit")
        backend = DatabaseBackend(self, which, scope_id)
        items = tuple(
            HeldItem.model_construct(memory_id=each.memory_id, **dict(each.item))
            for each in backend.query_held({}, limit=limit)
        )
        return TierPage(tier=which, scope_id=scope_id, count=backend.count(), items=items)

    def promote(
        self,
        memory_id: str,
        to: Tier | str,
        scope_id: str | None = None,
        confirmation_callback: ConfirmationCallback | None = None,
        reason: str = "",
    ) -> str | None:
        """Promote a task's memory to its project, or a project's to global; return the new id.

        The promoted memory is a new one with the same text, type, tags, sensitivity, agent and
        source, derived from the old one, which stays where it is. Promoting twice returns the same
        id.

        Args:
            to: ``project`` (of a task's memory) or ``global`` (of a project's).
            scope_id: the project; None for global.
            confirmation_callback: called before a Preference or an Identity becomes global.
            reason: why; kept in the journal.

        Returns:
            The id; None: the person declined.

        Raises:
            NotFound: there is no such memory that this handle may see.
            InvalidInput: no such target, or it is a turn, a reflection or a key-value store's.
            Conflict: it skips a step, the memory is no longer active or valid, or its earlier
                promotion was replaced since.
            AccessDenied: the target is not open to the handle; it is logged and journalled.
            ConfirmationMissing: the callback gave no answer.
        """
        from memgraph.service.context.promoting import promote, target_of

        because = self._because(reason)
        target = target_of(to, scope_id)
        memory_id = self._whole_id(memory_id)
        with self._service.opened(self.name) as opened:
            self._require_open(opened, target.tier, target.scope_id)
            promoted = promote(
                opened,
                memory_id,
                target,
                view=self._view,
                actor=self.actor,
                reason=because,
                callback=confirmation_callback,
            )
            self._embed_soon(opened)
        return promoted

    def _store_fields(self, tier: Tier, scope_id: str | None) -> dict[str, Any]:
        """Return the arguments for a store of this tier. Raises AccessDenied."""
        from memgraph.service.context.database_backend import DatabaseBackend

        with self._service.opened(self.name) as opened:
            self._require_open(opened, tier, scope_id)
        return {
            "backend": DatabaseBackend(self, tier, scope_id),
            "clock": self._service.clock,
            "ids": self._service.ids,
        }

    def _require_open(self, opened: Opened, tier: Tier, scope_id: str | None) -> None:
        if (tier is Tier.GLOBAL) != (scope_id is None) or not isinstance(scope_id, str | None):
            raise InvalidInput("a task or a project has a name, global has none", field=tier.value)
        granted = scope_id is None or scope_id in self.viewer.scope_ids(tier.scope)
        if tier.scope in self.viewer.scopes and granted:
            return
        error = AccessDenied(f"this {tier.value} is not open to the handle", field=tier.value)
        raise self._denied(opened, error, field=tier.value, asked=scope_id)
