"""Contexts for the work of agents: what a task needs to know, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memgraph.errors import InvalidInput
from memgraph.model.context import AgentProfile, Task
from memgraph.model.enums import Scope, Sensitivity
from memgraph.operations.context.builder import ContextBuilder, value_of
from memgraph.operations.context.database_backend import DatabaseBackend
from memgraph.rules.lifecycle import TASK_CLOSED
from memgraph.rules.scope import Viewer, narrow

if TYPE_CHECKING:
    from memgraph.context.assembly import ConfirmationCallback
    from memgraph.context.stores import GlobalMemoryStore, ProjectMemoryStore, TaskMemoryStore
    from memgraph.operations.orchestrator import Orchestrator
    from memgraph.service.memory_service import MemoryService
    from memgraph.service.open_orchestrator import OpenOrchestrator


class ContextAssembler(ContextBuilder):
    """Builds contexts from the three tiers of one orchestrator. Thread-safe.

    It belongs to the host and may open every task and project of its orchestrator. A context that
    it builds for a task sees that task, its project and the global tier; nothing else.

    Args:
        service, name: the service and its orchestrator.
        clearance: the highest sensitivity in a context.
        profile: defaults for requests. Private memories of its ``agent_id`` are shown, or, when
            it has none, those of the actor.
        confirmation_callback: asks a person before high-risk changes; see ``global_store``.
        actor: the name in journal entries.

    Raises:
        InvalidInput: the service, the profile or the clearance is invalid.
        OrchestratorMissing: there is no such orchestrator.
        AccessDenied: the profile's clearance is above ``clearance``.
    """

    def __init__(
        self,
        service: MemoryService,
        name: str,
        *,
        clearance: Sensitivity = Sensitivity.INTERNAL,
        profile: AgentProfile | Mapping[str, Any] | None = None,
        confirmation_callback: ConfirmationCallback | None = None,
        actor: str = "orchestrator",
    ) -> None:
        if not callable(getattr(service, "orchestrator", None)):
            raise InvalidInput("an assembler needs a MemoryService", field="service")
        chosen = value_of(AgentProfile, {"name": actor} if profile is None else profile)
        granted = Viewer(clearance=clearance)
        # Who names no agent reads as the actor: what agents keep for themselves is not shown.
        agent_id = chosen.agent_id or actor
        viewer = narrow(granted, clearance=chosen.clearance, agent_id=agent_id)
        # Made like every handle, so that the name and the actor are checked.
        service.orchestrator(name, viewer=viewer, actor=actor)
        super().__init__(service, name, viewer=viewer, actor=actor, profile=chosen)
        self._callback = confirmation_callback
        if self.profile.model is not None:
            self._counters.at_hand(self.profile.model)

    def load_tokenizer(self, model: str | None = None, timeout_s: float | None = None) -> str:
        """Load a model's tokenizer, which takes seconds once; return the name of the counter in
        use.

        Until it is loaded tokens are estimated, and the package notes that.

        Args:
            model: litellm's name of the model; None: the profile's.
            timeout_s: seconds; None: as long as it takes.
        """
        chosen = model or self.profile.model
        if chosen is not None:
            self._counters.wait(chosen, timeout_s)
        return self._counters.at_hand(chosen)[0].name

    def task_store(self, task_id: str) -> TaskMemoryStore:
        """Return the store of a task."""
        return self._handle(session_ids=frozenset({task_id})).stores.task(task_id)

    def project_store(self, project_id: str) -> ProjectMemoryStore:
        """Return the store of a project."""
        return self._handle(project_ids=frozenset({project_id})).stores.project(project_id)

    def global_store(self) -> GlobalMemoryStore:
        """Return the store of the global tier."""
        return self._handle().stores.global_tier(self._callback)

    def promote(
        self,
        memory_id: str,
        to: Scope | str,
        *,
        task_id: str | None = None,
        project_id: str | None = None,
        reason: str = "",
    ) -> str | None:
        """Promote a task's memory to its project, or a project's to the global tier.

        See ``Orchestrator.contexts.promote``, which it raises and returns as.

        Args:
            task_id, project_id: where the memory is, and where it goes.
        """
        handle = self._handle(
            session_ids=frozenset() if task_id is None else frozenset({task_id}),
            project_ids=frozenset() if project_id is None else frozenset({project_id}),
        )
        return handle.contexts.promote(
            memory_id,
            to,
            project_id if to == Scope.PROJECT else None,
            confirmation_callback=self._callback,
            reason=reason,
        )

    def cleanup_task(self, task_id: str) -> int:
        """Retract all items of a finished task; return their number.

        The reason is ``task_closed``, whatever their sensitivity, and it is journalled. A second
        call changes nothing.
        """
        viewer = Viewer(clearance=Sensitivity.RESTRICTED, session_ids=frozenset({task_id}))
        handle = self._service.orchestrator(self.name, viewer=viewer, actor=self.actor)
        return DatabaseBackend(handle, Scope.SESSION, task_id).clear(TASK_CLOSED)

    def _handle(
        self,
        *,
        session_ids: frozenset[str] = frozenset(),
        project_ids: frozenset[str] = frozenset(),
    ) -> Orchestrator:
        viewer = replace(self.viewer, session_ids=session_ids, project_ids=project_ids)
        return self._service.orchestrator(self.name, viewer=viewer, actor=self.actor)

    def _require_granted(self, opened: OpenOrchestrator, task: Task | None) -> None:
        """Grant everything: the host may open any task and project."""
