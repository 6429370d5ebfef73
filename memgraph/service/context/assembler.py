"""Contexts for the work of agents: what a task needs to know, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memgraph.context.counting import Counters
from memgraph.errors import InvalidInput
from memgraph.model.context import (
    AgentProfile,
    BlockFormat,
    ContextPackage,
    ContextRequest,
    Shares,
    Task,
    Tier,
)
from memgraph.model.enums import Scope, Sensitivity
from memgraph.model.values import ValueT, validated
from memgraph.policy.endings import TASK_CLOSED
from memgraph.policy.scope import Viewer, narrow
from memgraph.service.context.building import built, plan_of
from memgraph.service.context.database_backend import DatabaseBackend
from memgraph.service.context.injecting import new_mark
from memgraph.service.handle import Handle

if TYPE_CHECKING:
    from memgraph.context.confirming import ConfirmationCallback
    from memgraph.context.global_store import GlobalMemoryStore
    from memgraph.context.project_store import ProjectMemoryStore
    from memgraph.context.task_store import TaskMemoryStore
    from memgraph.service.memory_service import MemoryService
    from memgraph.service.orchestrator import Orchestrator


class ContextAssembler(Handle):
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
        self.profile = _value(AgentProfile, {"name": actor} if profile is None else profile)
        granted = Viewer(clearance=clearance)
        # Who names no agent reads as the actor: what agents keep for themselves is not shown.
        agent_id = self.profile.agent_id or actor
        viewer = narrow(granted, clearance=self.profile.clearance, agent_id=agent_id)
        # As every handle is made: the name and the actor are looked at.
        service.orchestrator(name, viewer=viewer, actor=actor)
        super().__init__(service, name, viewer=viewer, actor=actor)
        self._callback = confirmation_callback
        self._counters = Counters()
        if self.profile.model is not None:
            self._counters.at_hand(self.profile.model)

    def build_context(
        self,
        task: Task | Mapping[str, Any] | str | None,
        request: ContextRequest | Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> ContextPackage:
        """What a task needs to know, within a budget.

        The task's own items come first of all, its first and last before the others; then what of
        its project and of what belongs to neither fits the query, or is most important. A text is
        whole where its tier can have it, with what the others leave; else parts of it are left out,
        and its item's ``shortened`` is True.

        Args:
            task: what is worked on, or its fields, or its id; None: only what belongs to no task.
            request: what the context is to hold, or its fields.
            fields: fields of ``ContextRequest``, which win over those of ``request``.

        Returns:
            The package; its ``text`` costs at most ``budget_tokens``, and is empty where not even
            the marks of a block fit.

        Raises:
            InvalidInput: the task, the request or a field is wrong.
            StorageError: the database cannot be read.
        """
        asked = _asked(request, fields)
        named = {"task_id": task} if isinstance(task, str) else task
        working = None if named is None else _value(Task, named)
        with self._service.opened(self.name) as opened:
            settings = opened.settings.memory.context
            plan = plan_of(asked, self.profile, settings, new_mark(opened.ids))
            counter, told = self._counters.at_hand(asked.model or self.profile.model)
            viewer = self._viewer_of(working, plan.shares)
            package, receipt = built(opened, viewer, working, asked, plan, counter, told)
            enough = opened.receipts.add(receipt)
            changed = _in_other_words(package)
            if changed:
                enough = opened.receipts.add_text(changed, receipt.at) or enough
            self._write_receipts(opened, enough=enough)
        return package

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

    def _viewer_of(self, task: Task | None, shares: Shares) -> Viewer:
        """Exactly the task, its project and everybody, as far as they have a share."""
        project = None if task is None else task.project
        open_ = {
            Scope.SESSION: task is not None and shares.task > 0.0,
            Scope.PROJECT: project is not None and shares.project > 0.0,
            Scope.GLOBAL: shares.everywhere > 0.0,
        }
        return replace(
            self.viewer,
            session_ids=frozenset() if task is None else frozenset({task.task_id}),
            project_ids=frozenset() if project is None else frozenset({project}),
            scopes=frozenset(scope for scope, is_open in open_.items() if is_open),
        )


def _in_other_words(package: ContextPackage) -> str:
    """Of a context what no memory has as a line: it would come back as if it were news."""
    if package.format is not BlockFormat.FENCED:
        return package.text
    return "\n".join(each.text for each in package.items if each.shortened)


def _asked(
    request: ContextRequest | Mapping[str, Any] | None, fields: Mapping[str, Any]
) -> ContextRequest:
    given = _value(ContextRequest, {} if request is None else request)
    return validated(ContextRequest, {**dict(given), **fields}) if fields else given


def _value(kind: type[ValueT], given: object) -> ValueT:
    """The value itself, or one of its fields.

    Raises:
        InvalidInput: it is neither.
    """
    if isinstance(given, kind):
        return given
    if isinstance(given, Mapping):
        return validated(kind, dict(given))
    raise InvalidInput(
        f"a {kind.__name__} or its fields, not {type(given).__name__}", field=kind.__name__
    )
