"""Build contexts for the tasks of agents, within a token budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

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


class ContextAssembler(ContextBuilder):
    """Builds contexts from the three tiers of one orchestrator. Thread-safe.

    It belongs to the host and may open every task and project of its orchestrator. A context for a
    task contains only that task, its project and the global tier.

    Args:
        service, name: the service and its orchestrator.
        clearance: the highest sensitivity in a context.
        profile: defaults for requests. Private memories of its ``agent_id`` are visible; without
            one, those of the actor.
        confirmation_callback: asks a person before high-risk changes; see ``global_store``.
        actor: the name in journal entries.

    Raises:
        InvalidInput: the profile or the clearance is invalid.
        OrchestratorMissing: the orchestrator does not exist.
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
        chosen = value_of(AgentProfile, {"name": actor} if profile is None else profile)
        granted = Viewer(clearance=clearance)
        # Without an agent it reads as the actor, so that private memories of agents stay hidden.
        agent_id = chosen.agent_id or actor
        viewer = narrow(granted, clearance=chosen.clearance, agent_id=agent_id)
        # Checks the name and the actor like every handle.
        service.orchestrator(name, viewer=viewer, actor=actor)
        super().__init__(service, name, viewer=viewer, actor=actor, profile=chosen)
        self._callback = confirmation_callback
        if self.profile.model is not None:
            self._counters.at_hand(self.profile.model)

    def load_tokenizer(self, model: str | None = None, timeout_s: float | None = None) -> str:
        """Load a model's tokenizer, and return the name of the counter in use.

        The first time takes seconds. Until then tokens are estimated, which the package notes.

        Args:
            model: litellm's name of the model; None: the profile's.
            timeout_s: the time to wait, in seconds; None: no limit.
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

    def cleanup_task(self, task_id: str) -> int:
        """Retract all items of a finished task; return their number.

        Items of every sensitivity are retracted with the reason ``task_closed``, which is recorded
        in the journal. A second call changes nothing.
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

    def _require_granted(self, task: Task | None) -> None:
        """Do nothing: the host may open any task and project."""
