"""Operations on contexts and on the tiers that they are built from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Unpack

from pydantic import Field

from memgraph.context.assembly import ConfirmationCallback
from memgraph.errors import AccessDenied
from memgraph.model.access import Permission
from memgraph.model.context import (
    AgentProfile,
    ContextBody,
    ContextFields,
    ContextPackage,
    ContextTier,
    Task,
    tier_of,
)
from memgraph.model.enums import Scope
from memgraph.model.operation import F, MemoryId, WireFormat, operation
from memgraph.model.remote import Limit as PageLimit, PromotedId, TierItem, TierPage
from memgraph.model.values import Name, Reason
from memgraph.operations.handle import Handle, closed_to_viewer

if TYPE_CHECKING:
    from memgraph.context.stores import GlobalMemoryStore, ProjectMemoryStore, TaskMemoryStore


class Contexts(Handle[F], group="contexts"):
    """Builds contexts, and lists and promotes the items of tiers: ``orc.contexts``."""

    @operation(Permission.READ, "POST /context", id="build_context", body=ContextBody, command="")
    def build(
        self,
        task: Task | Mapping[str, Any] | str | None = None,
        **fields: Unpack[ContextFields],
    ) -> ContextPackage:
        """Build the context that a task needs, within a token budget; see ``ContextAssembler``.

        Unlike the host's assembler, it opens only tasks and projects granted to this handle.

        Args:
            task: the task, or its id.
            fields: those of ``ContextRequest``.

        Raises:
            InvalidInput: the task or a field is invalid.
            AccessDenied: the task is not among the viewer's ``session_ids``, or its project not
                among its ``project_ids``. The denial is logged.
        """
        from memgraph.operations.context.builder import build_context

        return build_context(self, task, {}, fields, profile=AgentProfile(name=self.actor))

    @operation(Permission.READ, "GET /tiers/{tier}", id="list_tier", command="tier")
    def tier(
        self,
        tier: Annotated[
            Scope | str, WireFormat(ContextTier, write=lambda tier: tier_of(tier).tier)
        ],
        scope_id: Annotated[
            Name | None, Field(description="The task or project; omit for global.")
        ] = None,
        *,
        limit: PageLimit = 50,
    ) -> TierPage:
        """Return the items of a task, a project or the global tier, newest first.

        Args:
            scope_id: the task or the project; None for global.
            limit: the maximum number of items, 1 to 1,000.

        Raises:
            InvalidInput: the tier is unknown, the scope id is missing or not allowed, or the limit
                is out of range.
            AccessDenied: the handle may not open it. The denial is logged.
        """
        from memgraph.operations.context.database_backend import DatabaseBackend

        scope = tier_of(tier)
        backend = DatabaseBackend(self, scope, scope_id)
        items = tuple(
            TierItem.model_construct(memory_id=memory_id, **dict(item))
            for memory_id, item in backend.newest(limit)
        )
        return TierPage(tier=scope, scope_id=scope_id, count=backend.count(), items=items)

    @operation(
        Permission.WRITE,
        "POST /memories/{memory_id}/promote",
        body="Promotion",
        answer=PromotedId,
        command="",
    )
    def promote(
        self,
        memory_id: MemoryId,
        to: Annotated[Scope | str, WireFormat(ContextTier)],
        scope_id: Name | None = None,
        confirmation_callback: ConfirmationCallback | None = None,
        reason: Reason = "",
        *,
        confirmed: bool | None = None,
    ) -> str | None:
        """Promote a task's memory to its project, or a project's to global; return the new id.

        The promoted memory is a new one with the same text, type, tags, sensitivity, agent and
        source. It is derived from the old memory, which stays. Promoting a memory again returns the
        same id.

        Args:
            to: ``project`` for a task's memory, ``global`` for a project's.
            scope_id: the project; None for global.
            confirmation_callback: called before a Preference or an Identity becomes global.
            reason: the reason, which is recorded in the journal.
            confirmed: the answer of a person who was asked already.

        Returns:
            The id; None if the person declined.

        Raises:
            NotFound: the memory does not exist, or this handle may not see it.
            InvalidInput: the target is invalid, or the memory is a turn, a reflection or an item of
                a key-value store.
            Conflict: a scope would be skipped, the memory is no longer active or valid, or its
                promoted copy was replaced since.
            AccessDenied: the handle may not open the target. The denial is logged.
            ConfirmationMissing: the callback returned no answer.
        """
        from memgraph.operations.context.promotion import promote, target_of

        because = self._because(reason)
        target = target_of(to, scope_id)
        memory_id = self._whole_id(memory_id)
        if target.scope is Scope.PROJECT and target.scope_id not in self.viewer.project_ids:
            error = AccessDenied(closed_to_viewer(target.scope), field=target.scope.tier)
            raise self._denied(error, field=target.scope.tier, asked=target.scope_id)
        with self._service.opened(self.name) as opened:
            promoted = promote(
                opened,
                memory_id,
                target,
                view=self._view,
                actor=self.actor,
                reason=because,
                callback=confirmation_callback if confirmed is None else lambda _: confirmed,
            )
            opened.background.wake()
        return promoted


class Stores(Handle[F], group="stores", tag="memories"):
    """The item stores of the tiers: ``orc.stores``."""

    def task(self, task_id: str) -> TaskMemoryStore:
        """Return the store of a task.

        Raises:
            AccessDenied: the task is not among the viewer's ``session_ids``. The denial is logged.
        """
        from memgraph.context.stores import TaskMemoryStore

        return TaskMemoryStore(task_id, **self._store_fields(Scope.SESSION, task_id))

    def project(self, project_id: str) -> ProjectMemoryStore:
        """Return the store of a project, with at most ``MAX_PROJECT_ITEMS`` items.

        Raises:
            AccessDenied: the project is not among the viewer's ``project_ids``. The denial
                is logged.
        """
        from memgraph.context.stores import ProjectMemoryStore
        from memgraph.operations.context import promotion

        return ProjectMemoryStore(
            project_id,
            max_items=promotion.MAX_PROJECT_ITEMS,
            **self._store_fields(Scope.PROJECT, project_id),
        )

    def global_tier(
        self, confirmation_callback: ConfirmationCallback | None = None
    ) -> GlobalMemoryStore:
        """Return the store of the global tier.

        Args:
            confirmation_callback: asks a person a question and returns True or False; without one,
                changes that require a person's consent are refused.

        Raises:
            AccessDenied: the viewer does not see global memories. The denial is logged.
        """
        from memgraph.context.stores import GlobalMemoryStore

        return GlobalMemoryStore(
            confirmation_callback=confirmation_callback, **self._store_fields(Scope.GLOBAL, None)
        )

    def _store_fields(self, tier: Scope, scope_id: str | None) -> dict[str, Any]:
        """Return the arguments for a store of this tier. Raises AccessDenied if it is not
        granted.
        """
        from memgraph.operations.context.database_backend import DatabaseBackend

        return {
            "backend": DatabaseBackend(self, tier, scope_id),
            "clock": self._service.clock,
            "ids": self._service.ids,
        }
