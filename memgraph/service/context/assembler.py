"""Contexts for the work of agents: what a task needs to know, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memgraph.errors import InvalidInput
from memgraph.model.context import AgentProfile, Task, Tier
from memgraph.model.enums import Sensitivity
from memgraph.rules.lifecycle import TASK_CLOSED
from memgraph.rules.scope import Viewer, narrow
from memgraph.service.context.builder import ContextBuilder, value_of
from memgraph.service.context.database_backend import DatabaseBackend

if TYPE_CHECKING:
    from memgraph.context.confirming import ConfirmationCallback
    from memgraph.context.global_store import GlobalMemoryStore
    from memgraph.context.project_store import ProjectMemoryStore
    from memgraph.context.task_store import TaskMemoryStore
    from memgraph.service.memory_service import MemoryService
    from memgraph.service.opened import Opened
    from memgraph.service.orchestrator import Orchestrator


class ContextAssembler(ContextBuilder):
    """Builds contexts from the three tiers of one orchestrator. Thread-safe.

    The host's own part: it may open every task and project of its orchestrator. What it builds for
    a task sees that task, its project and what belongs to neither; nothing else.

    Args:
        service: whose orchestrator.
        name: of the orchestrator.
        clearance: the highest sensitivity in a context.
        profile: what requests have that say nothing themselves. Of what agents keep for
            themselves its ``agent_id``'s is shown, or where it has none the actor's.
        confirmation_callback: asks a person before high-risk changes; see ``global_store``.
        actor: whom the journal names.

    Raises:
        InvalidInput: the service, the profile or the clearance is none.
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
        # As every handle is made: the name and the actor are looked at.
        service.orchestrator(name, viewer=viewer, actor=actor)
        super().__init__(service, name, viewer=viewer, actor=actor, profile=chosen)
        self._callback = confirmation_callback
        if self.profile.model is not None:
            self._counters.at_hand(self.profile.model)

    def load_tokenizer(self, model: str | None = None, timeout_s: float | None = None) -> str:
        """Wait for a model's tokenizer, which takes seconds once; gives what counts from now on.

        Without this the estimate counts until the tokenizer is there, and the package says so.

        Args:
            model: as litellm names it; None: the profile's.
            timeout_s: seconds; None: as long as it takes.
        """
        chosen = model or self.profile.model
        if chosen is not None:
            self._counters.wait(chosen, timeout_s)
        return self._counters.at_hand(chosen)[0].name

    def task_store(self, task_id: str) -> TaskMemoryStore:
        """What a task holds."""
        return self._handle(session_ids=frozenset({task_id})).task(task_id)

    def project_store(self, project_id: str) -> ProjectMemoryStore:
        """What a project holds."""
        return self._handle(project_ids=frozenset({project_id})).project(project_id)

    def global_store(self) -> GlobalMemoryStore:
        """What holds in every project."""
        return self._handle().everywhere(self._callback)

    def promote(
        self,
        memory_id: str,
        to: Tier | str,
        *,
        task_id: str | None = None,
        project_id: str | None = None,
        reason: str = "",
    ) -> str | None:
        """Make a task's memory its project's, or a project's everybody's.

        See ``Orchestrator.promote``, which it raises and returns as.

        Args:
            task_id, project_id: where the memory is, and where it is to go.
        """
        handle = self._handle(
            session_ids=frozenset() if task_id is None else frozenset({task_id}),
            project_ids=frozenset() if project_id is None else frozenset({project_id}),
        )
        return handle.promote(
            memory_id,
            to,
            project_id if to == Tier.PROJECT else None,
            confirmation_callback=self._callback,
            reason=reason,
        )

    def cleanup_task(self, task_id: str) -> int:
        """Give up all that a task holds: it is done; gives the number of its items.

        They are retracted with the reason ``task_closed``, whatever their sensitivity, and the
        journal tells it. Done twice it changes nothing.
        """
        viewer = Viewer(clearance=Sensitivity.RESTRICTED, session_ids=frozenset({task_id}))
        handle = self._service.orchestrator(self.name, viewer=viewer, actor=self.actor)
        return DatabaseBackend(handle, Tier.TASK, task_id).clear(TASK_CLOSED)

    def _handle(
        self,
        *,
        session_ids: frozenset[str] = frozenset(),
        project_ids: frozenset[str] = frozenset(),
    ) -> Orchestrator:
        viewer = replace(self.viewer, session_ids=session_ids, project_ids=project_ids)
        return self._service.orchestrator(self.name, viewer=viewer, actor=self.actor)

    def _require_granted(self, opened: Opened, task: Task | None) -> None:
        """The host opens whatever it names."""
