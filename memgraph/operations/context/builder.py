"""Build contexts for tasks, within a token budget, from the memories that a viewer was granted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from memgraph.context.assembly import (
    MAX_ITEMS,
    OVER_BUDGET,
    TOO_LARGE,
    AssembledContext,
    ConfirmationCallback,
    ContextPlan,
    assembled,
)
from memgraph.context.candidates import ContextCandidate
from memgraph.context.excerpts import content_stems
from memgraph.errors import AccessDenied, InvalidInput
from memgraph.graph.marks import marked, marks_of
from memgraph.ids import PACKAGE_PREFIX, RECEIPT_PREFIX
from memgraph.model.context import (
    AgentProfile,
    BlockFormat,
    ContextFields,
    ContextPackage,
    ContextRequest,
    PackedItem,
    Task,
    TierShares,
)
from memgraph.model.enums import Scope, Sensitivity
from memgraph.model.recall import RecallItem, RecallRequest, RecallTrace
from memgraph.model.values import Memory, ValueT, validated
from memgraph.operations.context.block import new_mark
from memgraph.operations.context.database_backend import DatabaseBackend
from memgraph.operations.handle import Handle, closed_to_viewer
from memgraph.operations.read.recall import reading, with_damage
from memgraph.operations.read.receipts import of_text
from memgraph.rules.blocks import MIN_RELEVANCE
from memgraph.rules.decay import confidence_at
from memgraph.rules.lifecycle import TASK_CLOSED
from memgraph.rules.lines import line_of
from memgraph.rules.marks import MarkGraph
from memgraph.rules.scope import Viewer, narrow
from memgraph.rules.sources import citation
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import graph, recall, tiers
from memgraph.store.recall import RecallFilter
from memgraph.store.receipts import NewReceipt
from memgraph.store.snapshot import Snapshot, despite_damage

if TYPE_CHECKING:
    from memgraph.context.stores import GlobalMemoryStore, ProjectMemoryStore, TaskMemoryStore
    from memgraph.operations.orchestrator import Orchestrator
    from memgraph.service.memory_service import MemoryService

MAX_TASK_ITEMS = 200
"""The maximum number of considered items of a task: the first hundred and the last hundred."""

MOST_BESIDE_RECALL = 10


def gathered(
    snapshot: Snapshot,
    narrowing: RecallFilter,
    task: Task | None,
    shares: TierShares,
    recalled: Sequence[RecallItem],
    pairs: MarkGraph,
    *,
    most: int,
    exponent: float,
) -> list[ContextCandidate]:
    """Return the candidates of a context, each memory once.

    They are the recalled memories, the items of the task, the most important memories of its
    project and of the global tier, the other sides of all their open contradictions, and what
    probably changed them.

    Args:
        pairs: the graph of the recalled memories, to which the edges of the others are added.
        most: the maximum number of useful memories; recall uses the same.
        exponent: the exponent with which confidence decays.
    """
    memories = {item.memory.memory_id: item.memory for item in recalled}
    # If recall returned enough memories, add only a few for their importance.
    limit = most if len(recalled) < most else min(MOST_BESIDE_RECALL, most)
    for candidate in _tier_memories(snapshot, narrowing, task, shares, limit):
        memories.setdefault(candidate.memory_id, candidate)
    ties = recall.read(snapshot).ties
    if not graph.PAIRED.isdisjoint(ties.edge_types):
        graph.read_pairs(snapshot, pairs, sorted(memories), narrowing.view)
    sides = {
        other: memory_id
        for memory_id in memories
        for other in (*pairs.opponents(memory_id), *pairs.changed_by(memory_id))
        if other not in memories
    }
    for side in tiers.by_ids(snapshot, narrowing, sorted(sides)):
        memories[side.memory_id] = side
    ranks = {item.memory.memory_id: rank for rank, item in enumerate(recalled, start=1)}
    brought_by = {item.memory.memory_id: item.brought_by for item in recalled}
    confidence = {item.memory.memory_id: item.effective_confidence for item in recalled}
    sources = {source.source_id: source for source in graph.sources_of(snapshot, memories.values())}
    marks = marks_of(snapshot, list(memories.values()), narrowing.view, ties, pairs)
    return [
        ContextCandidate(
            memory,
            memory.scope,
            citation(memory, sources[memory.source_id]),
            marked(line_of(memory, sources[memory.source_id]), marks, memories),
            confidence.get(memory_id) or confidence_at(memory, narrowing.at, exponent),
            None if brought_by.get(memory_id) else ranks.get(memory_id),
            brought_by.get(memory_id) or sides.get(memory_id),
            (*pairs.opponents(memory_id), *pairs.changed_by(memory_id)),
        )
        for memory_id, memory in memories.items()
    ]


def _tier_memories(
    snapshot: Snapshot,
    narrowing: RecallFilter,
    task: Task | None,
    shares: TierShares,
    limit: int,
) -> Iterable[Memory]:
    if task is not None and shares.task:
        yield from tiers.first_and_last(
            snapshot, narrowing, Scope.SESSION, task.task_id, MAX_TASK_ITEMS
        )
    if task is not None and task.project is not None and shares.project:
        yield from tiers.most_important(snapshot, narrowing, Scope.PROJECT, task.project, limit)
    if shares.global_tier:
        yield from tiers.most_important(snapshot, narrowing, Scope.GLOBAL, None, limit)


PURPOSE = "build_context"
SHARES = TierShares()
# Few lines of a block cost fewer tokens, so the budget limits the number of useful candidates.
_LEAST_LINE_TOKENS = {BlockFormat.FENCED: 25, BlockFormat.SECTIONS: 25, BlockFormat.LIST: 10}
_FEWEST_CANDIDATES, _MOST_CANDIDATES = 10, 200


def plan_of(
    opened: OpenOrchestrator, request: ContextRequest, profile: AgentProfile
) -> ContextPlan:
    """Return the plan; each value comes from the request, else the profile, else the settings."""
    settings = opened.settings.memory.context
    return ContextPlan(
        budget_tokens=_first(request.budget_tokens, profile.budget_tokens, settings.budget_tokens),
        shares=_first(request.shares, profile.shares, SHARES),
        head_tail=_first(request.head_tail, profile.head_tail, settings.head_tail),
        format=_first(request.format, profile.format, BlockFormat(settings.format)),
        max_items=request.max_items,
        mark=new_mark(opened.ids),
        zone=opened.zone,
        stems=content_stems(request.query),
        query=request.query,
    )


def built(
    opened: OpenOrchestrator,
    viewer: Viewer,
    task: Task | None,
    context_request: ContextRequest,
    plan: ContextPlan,
) -> tuple[ContextPackage, NewReceipt]:
    """Build a context; return it with its receipt.

    Args:
        viewer: sees only memories that the context may contain.
    """
    fitting = plan.budget_tokens // _LEAST_LINE_TOKENS[plan.format]
    limit = min(plan.max_items, max(fitting, _FEWEST_CANDIDATES), _MOST_CANDIDATES)
    # Not validated: the values come from the validated context request.
    request = RecallRequest.model_construct(
        query=context_request.query,
        top_n=limit,
        kinds=context_request.kinds,
        types=context_request.types,
        tags=context_request.tags,
        exclude_session_id=context_request.exclude_session_id,
        min_relevance=MIN_RELEVANCE,
    )
    with reading(opened, viewer, request) as in_snapshot:
        candidates = gathered(
            in_snapshot.snapshot,
            in_snapshot.narrowing,
            task,
            plan.shares,
            in_snapshot.items,
            in_snapshot.marks,
            most=limit,
            exponent=opened.settings.memory.decay.exponent,
        )
    context = assembled(candidates, plan)
    shown = context._asdict()
    del shown["left_out_reasons"]
    # Not validated: all values were computed here.
    package = ContextPackage.model_construct(
        context_package_id=opened.ids.new(PACKAGE_PREFIX),
        task_id=None if task is None else task.task_id,
        at=in_snapshot.narrowing.at,
        format=plan.format,
        budget_tokens=plan.budget_tokens,
        **shown,
        receipt_id=opened.ids.new(RECEIPT_PREFIX),
        degraded=in_snapshot.degraded,
    )
    new = of_text(
        package,
        in_snapshot,
        {item.memory_id: _reasons(item) for item in context.items},
        query=context_request.query,
        asked=_asked(package, context_request, task, context),
        left_out=_left_out(in_snapshot.account, context),
    )
    return package, new


def _asked(
    package: ContextPackage,
    context_request: ContextRequest,
    task: Task | None,
    context: AssembledContext,
) -> dict[str, Any]:
    """Return the request as its receipt states it."""
    receipt_fields = {
        "purpose": PURPOSE,
        "context_package_id": package.context_package_id,
        "task_id": package.task_id,
        "project_id": None if task is None else task.project,
        "budget_tokens": package.budget_tokens,
        # Numbers only: ids would reveal memories that are not among the receipt's items.
        "left_out": dict(sorted(context.left_out_reasons.items())) or None,
    }
    request = context_request.model_dump(mode="json", exclude_defaults=True, exclude={"query"})
    return request | {name: value for name, value in receipt_fields.items() if value is not None}


def _left_out(account: RecallTrace, context: AssembledContext) -> dict[str, int]:
    """Return the numbers of items that the budget and the limit left out, by reason."""
    recalled, reasons = account.left_out or {}, context.left_out_reasons
    budget = reasons.get(OVER_BUDGET, 0) + reasons.get(TOO_LARGE, 0)
    return {"budget": budget, "top_n": recalled.get("top_n", 0) + reasons.get(MAX_ITEMS, 0)}


def _reasons(packed: PackedItem) -> tuple[str, ...]:
    return (*packed.reasons, "shortened") if packed.shortened else packed.reasons


def _first(*values: Any) -> Any:
    return next(value for value in values if value is not None)


def build_context(
    handle: Handle[Any],
    task: Task | Mapping[str, Any] | str | None,
    request: ContextRequest | Mapping[str, Any],
    fields: ContextFields,
    *,
    profile: AgentProfile,
    any_task: bool = False,
) -> ContextPackage:
    """Build the context that a task needs for the caller of a handle, and keep its receipt.

    Args:
        fields: override those of the request.
        profile: defaults for the request.
        any_task: the task and its project need not be granted to the handle.

    Raises: as ``ContextAssembler.build_context``.
    """
    checked_request = value_of(ContextRequest, request)
    if fields:
        checked_request = validated(ContextRequest, {**dict(checked_request), **fields})
    task_fields = {"task_id": task} if isinstance(task, str) else task
    working = None if task_fields is None else value_of(Task, task_fields)
    with handle._service.opened(handle.name) as opened:
        if working is not None and not any_task:
            _require_granted(handle, working)
        plan = plan_of(opened, checked_request, profile)
        viewer = _viewer_of(handle, working, plan.shares)
        (package, new), damaged = despite_damage(
            lambda: built(opened, viewer, working, checked_request, plan)
        )
        package = with_damage(opened, package, damaged)
        handle._keep_receipt(opened, new, viewer=viewer)
    return package


def _require_granted(handle: Handle[Any], task: Task) -> None:
    """Raise AccessDenied if the viewer was not granted the task or its project."""
    for tier, scope_id in ((Scope.SESSION, task.task_id), (Scope.PROJECT, task.project)):
        if scope_id is not None and scope_id not in handle.viewer.scope_ids(tier):
            error = AccessDenied(closed_to_viewer(tier), field=tier.tier)
            raise handle._denied(error, field=tier.tier, asked=scope_id)


def _viewer_of(handle: Handle[Any], task: Task | None, shares: TierShares) -> Viewer:
    """Return a viewer of the task, its project and the global tier, unless their share is 0.

    Without an agent it reads as the actor, so that private memories of agents stay hidden.
    """
    project = None if task is None else task.project
    open_ = {
        Scope.SESSION: task is not None and shares.task > 0.0,
        Scope.PROJECT: project is not None and shares.project > 0.0,
        Scope.GLOBAL: shares.global_tier > 0.0,
    }
    return replace(
        handle.viewer,
        agent_id=handle.viewer.agent_id or handle.actor,
        session_ids=frozenset() if task is None else frozenset({task.task_id}),
        project_ids=frozenset() if project is None else frozenset({project}),
        scopes=handle.viewer.scopes.intersection(one for one in open_ if open_[one]),
    )


class ContextAssembler(Handle):
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
        self.profile = value_of(AgentProfile, {"name": actor} if profile is None else profile)
        agent_id = self.profile.agent_id or actor
        granted = Viewer(clearance=clearance)
        viewer = narrow(granted, clearance=self.profile.clearance, agent_id=agent_id)
        # Checks the name and the actor like every handle.
        service.orchestrator(name, viewer=viewer, actor=actor)
        super().__init__(service, name, viewer=viewer, actor=actor)
        self._callback = confirmation_callback

    def build_context(
        self,
        task: Task | Mapping[str, Any] | str | None,
        request: ContextRequest | Mapping[str, Any] | None = None,
        **fields: Unpack[ContextFields],
    ) -> ContextPackage:
        """Build the context that a task needs, within a token budget.

        The task's own items come first, its first and last items before the others. They are
        followed by items of its project and of the global tier that match the query, or else the
        most important ones. A text that does not fit into its tier's share and the unused rest is
        shortened, and its item's ``shortened`` is True.

        Args:
            task: the task, its fields, or its id; None: only the global tier.
            request: the request, or its fields.
            fields: fields of ``ContextRequest``, which override those of ``request``.

        Returns:
            The package. Its ``text`` costs at most ``budget_tokens``, and is empty if not even the
            markers of a block fit.

        Raises:
            InvalidInput: the task, the request or a field is invalid.
            StorageError: the database cannot be read.
        """
        asked = {} if request is None else request
        return build_context(self, task, asked, fields, profile=self.profile, any_task=True)

    def task_store(self, task_id: str) -> TaskMemoryStore:
        """Return the store of a task."""
        viewer = replace(self.viewer, session_ids=frozenset({task_id}))
        return self._handle(viewer).stores.task(task_id)

    def project_store(self, project_id: str) -> ProjectMemoryStore:
        """Return the store of a project."""
        viewer = replace(self.viewer, project_ids=frozenset({project_id}))
        return self._handle(viewer).stores.project(project_id)

    def global_store(self) -> GlobalMemoryStore:
        """Return the store of the global tier."""
        return self._handle(self.viewer).stores.global_tier(self._callback)

    def cleanup_task(self, task_id: str) -> int:
        """Retract all items of a finished task; return their number.

        Items of every sensitivity are retracted with the reason ``task_closed``, which is recorded
        in the journal. A second call changes nothing.
        """
        viewer = Viewer(clearance=Sensitivity.RESTRICTED, session_ids=frozenset({task_id}))
        return DatabaseBackend(self._handle(viewer), Scope.SESSION, task_id).clear(TASK_CLOSED)

    def _handle(self, viewer: Viewer) -> Orchestrator:
        return self._service.orchestrator(self.name, viewer=viewer, actor=self.actor)


def value_of(kind: type[ValueT], value: object) -> ValueT:
    """Return a value, or build it from a mapping of its fields.

    Raises:
        InvalidInput: it is neither a ``kind`` nor a mapping, or a field is invalid.
    """
    if isinstance(value, kind):
        return value
    if isinstance(value, Mapping):
        return validated(kind, dict(value))
    raise InvalidInput(
        f"expected a {kind.__name__} or its fields, not {type(value).__name__}", field=kind.__name__
    )
