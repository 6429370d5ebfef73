"""The private memory of one agent, whose requests are served in order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memgraph.errors import AccessDenied, Conflict
from memgraph.model.entities import (
    DEFAULT_LIMIT,
    METADATA,
    ForgetRequest,
    ForgetResult,
    ListRequest,
    MemoryItemRecord,
    RetrieveRequest,
    StoreItemInput,
    StoreRequest,
    StoreResult,
    kinds_of,
)
from memgraph.model.enums import (
    CapturedBy,
    MemoryKind,
    MemoryStatus,
    MemoryType,
    Scope,
    Sensitivity,
)
from memgraph.model.recall import RecallRequest
from memgraph.model.values import MemoryInput, Source, validated
from memgraph.operations.context.promotion import retract_all
from memgraph.operations.handle import Handle
from memgraph.operations.read.recall import answer
from memgraph.operations.read.receipts import of_recall
from memgraph.operations.write.writer import PreparedMemory
from memgraph.rules.proposals import MAX_CONFIDENCE
from memgraph.rules.scope import Viewer, narrow
from memgraph.store import items as items_rows, memories
from memgraph.store.graph import sources_of
from memgraph.store.memories import MemoryFilter
from memgraph.store.rows import json_text
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import STANDING, View

if TYPE_CHECKING:
    from memgraph.service.memory_service import MemoryService


DEFAULT_PROJECT = "default"
"""The project of a ``ProjectScope`` where neither the entity nor the request names one."""
FORGOTTEN = "forgotten"
MAX_FORGOTTEN = 1_000_000
"""The maximum number of items that one request forgets."""
PURPOSE = "retrieve"
_ITEM_DIGITS = 40
# The roles as interpreted by ``memgraph.model.conversation``.
_ROLES = {
    CapturedBy.USER: "user",
    CapturedBy.SYSTEM: "system",
    CapturedBy.EXTRACTOR: "assistant",
}


class MemoryEntity(Handle):
    """The private memory of one agent of an orchestrator.

    It sees and changes only memories with its ``agent_id``, neither those of other agents nor those
    without an agent. Requests take effect one after another, across all objects and processes: each
    is one transaction, or reads one snapshot. Thread-safe.

    Args:
        agent_id: the agent; also the actor in the journal.
        project_id: the project in which the agent works; without one, a request may name any, and
            ``DEFAULT_PROJECT`` is meant where it names none.
        clearance: the highest sensitivity that it may see and forget. It may store memories of a
            higher one.

    Raises:
        OrchestratorMissing: the orchestrator does not exist.
        InvalidInput: an id is invalid.
    """

    def __init__(
        self,
        service: MemoryService,
        name: str,
        agent_id: str,
        *,
        project_id: str | None = None,
        clearance: Sensitivity = Sensitivity.INTERNAL,
    ) -> None:
        service.orchestrator(name, actor=agent_id)
        validated(ListRequest, {"project_id": project_id})
        projects = frozenset(() if project_id is None else (project_id,))
        viewer = Viewer(clearance=clearance, project_ids=projects, agent_id=agent_id, shared=False)
        super().__init__(service, name, viewer=viewer, actor=agent_id)
        self.agent_id = agent_id
        self.project_id = project_id

    @classmethod
    def of(cls, handle: Handle[Any], agent_id: str) -> MemoryEntity:
        """Return the memory of an agent as far as the caller of a handle may see and write it.

        If the handle is open to one project only, it is the entity's. The actor is the handle's.

        Raises:
            AccessDenied: the handle is another agent's. The denial is logged.
        """
        try:
            viewer = narrow(handle.viewer, agent_id=agent_id)
        except AccessDenied as error:
            raise handle._denied(error) from None
        entity = cls(handle._service, handle.name, agent_id)
        entity._like(handle)
        entity.viewer = replace(viewer, shared=False)
        projects = viewer.project_ids
        single = len(projects) == 1 and Scope.PROJECT not in handle.opens
        entity.project_id = next(iter(projects)) if single else None
        return entity

    def store(
        self,
        items: Iterable[StoreItemInput | Mapping[str, Any]],
        *,
        call_id: str | None = None,
    ) -> StoreResult:
        """Store 0 to 1,000 items, all or none.

        An item that exists with all fields equal is not stored again; its id is returned. The
        agent's own statements (``AgentSource``) have a slightly lower confidence.

        Args:
            call_id: the caller's id of this request. A request that is repeated with it stores
                nothing, even if its items were forgotten since; one with another id stores equal
                items again.

        Raises:
            Conflict: ``call_id`` is that of an earlier request with other items.
            InvalidInput: names each invalid field; nothing was stored.
            AccessDenied: an item belongs to another project than the entity.
        """
        request = validated(StoreRequest, {"items": tuple(items), "call_id": call_id})
        call = None if request.call_id is None else f"call_{_digest(request.call_id)}_"
        with self._service.opened(self.name) as opened:
            inputs = [self._input(item, call, at) for at, item in enumerate(request.items)]
            prepared: dict[str, PreparedMemory] = {}
            for given in inputs:
                prepared.setdefault(str(given.item_id), opened.writer.prepare(given))
            with opened.transaction(self.actor) as transaction:
                ids = items_rows.items(transaction, self.agent_id, call or list(prepared))
                if call and ids and ids.keys() != prepared.keys():
                    message = "callId: stored other items before; a call has its own id"
                    raise Conflict(message, call_id=request.call_id)
                new = {item_id: item for item_id, item in prepared.items() if item_id not in ids}
                written = opened.writer.store_all(transaction, list(new.values()), [])
            stored = (outcome.memory_id or "" for outcome in written.memories)
            ids.update(zip(new, stored, strict=True))
            opened.background.wake()
        return StoreResult(stored_ids=tuple(ids[str(given.item_id)] for given in inputs))

    def retrieve(
        self,
        query: str,
        tier: MemoryKind | str | None = None,
        scope: Scope | str | None = None,
        limit: int = DEFAULT_LIMIT,
        *,
        session_id: str | None = None,
        project_id: str | None = None,
    ) -> tuple[MemoryItemRecord, ...]:
        """Return the items that match a query, best first; a receipt records them.

        Args:
            query: words or a sentence; an empty one returns the most important items.
            tier, scope: only items of this tier or scope; None: all.
            limit: 1..1,000.
            session_id: the session whose ``SessionScope`` items are visible; None: all of this
                agent.
            project_id: the project whose items are visible; None: the entity's, or else
                ``DEFAULT_PROJECT``.

        Raises:
            InvalidInput: an argument is wrong.
            AccessDenied: another project than the entity's.
        """
        values = {"query": query, "tier": tier, "scope": scope, "limit": limit}
        places = {"session_id": session_id, "project_id": project_id}
        asked = validated(RetrieveRequest, values | places)
        with self._service.opened(self.name) as opened:
            request = RecallRequest(
                query=asked.query,
                top_n=asked.limit,
                kinds=_kinds(asked.tier),
            )
            with opened.database.read() as snapshot:
                viewer = self._viewer_of(snapshot, asked)
            bundle, narrowing = answer(opened, viewer, request)
            new = of_recall(request, bundle, narrowing)
            provenance = {
                "purpose": PURPOSE,
                "agent_id": self.agent_id,
                "request": asked.model_dump(
                    mode="json", by_alias=False, exclude_none=True, exclude={"query", "limit"}
                ),
            }
            full = {**new.receipt.asked, **provenance}
            new.receipt = replace(new.receipt, asked=full, purpose=PURPOSE)
            self._keep_receipt(opened, new, viewer=viewer)
        return tuple(
            MemoryItemRecord.of(item.memory, item.source.captured_by) for item in bundle.items
        )

    def forget(
        self,
        cutoff_date: str | int | datetime | None = None,
        scope: Scope | str | None = None,
        item_ids: Sequence[str] | None = None,
        *,
        session_id: str | None = None,
        project_id: str | None = None,
    ) -> ForgetResult:
        """Retract the items that meet every criterion; ``restore`` can undo it.

        It covers the agent's memories of all sessions within its clearance. If the entity has a
        project, memories of other projects are excluded. Ids of other agents are ignored.

        Args:
            cutoff_date: items stored before this time; ISO 8601 or milliseconds.
            scope: items of this scope.
            item_ids: items with these ids; an empty list matches nothing.
            session_id, project_id: within session or project scopes, only items of this one.

        Raises:
            InvalidInput: none of ``cutoff_date``, ``scope`` and ``item_ids`` is given.
            AccessDenied: the project is not the entity's.
        """
        values = {"cutoff_date": cutoff_date, "scope": scope, "item_ids": item_ids}
        places = {"session_id": session_id, "project_id": project_id}
        request = validated(ForgetRequest, values | places)
        if request.item_ids == ():
            return ForgetResult(deleted_count=0)
        chosen = MemoryFilter(
            memory_ids=request.item_ids or (),
            until=None if request.cutoff_date is None else request.cutoff_date - 1,
        )
        with (
            self._service.opened(self.name) as opened,
            opened.transaction(self.actor) as transaction,
        ):
            view = View(self._viewer_of(transaction, request), statuses=STANDING)
            rows = memories.select(transaction, view, chosen, limit=MAX_FORGOTTEN)
            retract_all(transaction, [memory.memory_id for memory in rows], FORGOTTEN)
        return ForgetResult(deleted_count=len(rows))

    def list_items(
        self,
        tier: MemoryKind | str | None = None,
        scope: Scope | str | None = None,
        limit: int = DEFAULT_LIMIT,
        *,
        session_id: str | None = None,
        project_id: str | None = None,
    ) -> tuple[MemoryItemRecord, ...]:
        """Return the items, newest first. Args, Raises: see ``retrieve``."""
        values = {"tier": tier, "scope": scope, "limit": limit}
        places = {"session_id": session_id, "project_id": project_id}
        request = validated(ListRequest, values | places)
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            viewer = self._viewer_of(snapshot, request)
            view = View(viewer, statuses=frozenset({MemoryStatus.ACTIVE}))
            chosen = MemoryFilter(kinds=_kinds(request.tier))
            rows = memories.select(snapshot, view, chosen, limit=request.limit)
            sources = {source.source_id: source for source in sources_of(snapshot, rows)}
        return tuple(
            MemoryItemRecord.of(memory, sources[memory.source_id].captured_by) for memory in rows
        )

    def _input(self, item: StoreItemInput, call: str | None, at: int) -> MemoryInput:
        scope_id = None
        if item.scope is Scope.SESSION:
            scope_id = self._named(Scope.SESSION, item.session_id or "")
        elif item.scope is Scope.PROJECT:
            named = item.project_id or self.project_id or DEFAULT_PROJECT
            scope_id = self._named(Scope.PROJECT, named)
        if self.viewer.confined and item.sensitivity.level > self.viewer.clearance.level:
            error = AccessDenied("the item is above the clearance", field="sensitivity")
            raise self._denied(error, field="sensitivity", asked=item.sensitivity)
        episode = item.tier is MemoryKind.EPISODE
        agents_own = item.source is CapturedBy.EXTRACTOR
        return MemoryInput(
            content=item.content,
            kind=item.tier,
            type=MemoryType.OBSERVATION if episode else MemoryType.FACT,
            confidence=MAX_CONFIDENCE if agents_own else 1.0,
            sensitivity=item.sensitivity,
            scope=item.scope,
            scope_id=scope_id,
            agent_id=self.agent_id,
            session_id=item.session_id,
            turn_id=item.generated_by_turn_id,
            item_id=_item_id(item, scope_id, call, at),
            source_role=_ROLES[item.source] if episode else None,
            attributes={} if item.metadata_json is None else {METADATA: item.metadata_json},
            source=Source(captured_by=item.source),
        )

    def _viewer_of(self, snapshot: Snapshot, request: ListRequest | ForgetRequest) -> Viewer:
        """Return the viewer of a request: of the session and the project that it means.

        Without a project, ``forget`` means any of the agent.
        """
        sessions = self._ids(Scope.SESSION, request.session_id)
        if sessions is None:
            sessions = items_rows.scope_ids_of_agent(snapshot, self.agent_id, Scope.SESSION)
        projects = self._ids(Scope.PROJECT, request.project_id or self.project_id)
        if projects is None and isinstance(request, ForgetRequest):
            projects = items_rows.scope_ids_of_agent(snapshot, self.agent_id, Scope.PROJECT)
        return replace(
            self.viewer,
            session_ids=frozenset(sessions),
            project_ids=frozenset((DEFAULT_PROJECT,) if projects is None else projects),
            scopes=self.viewer.scopes if request.scope is None else frozenset((request.scope,)),
        )

    def _ids(self, scope: Scope, scope_id: str | None) -> Sequence[str] | None:
        """Return the ids of a scope that a request is about; None: any."""
        if scope_id is not None:
            return (self._named(scope, scope_id),)
        return None if scope in self.opens else sorted(self.viewer.scope_ids(scope))

    def _named(self, scope: Scope, scope_id: str) -> str:
        """Return an id that a request names. Raises AccessDenied if it is not open to it."""
        is_other = scope is Scope.PROJECT and self.project_id not in (None, scope_id)
        if self._may_open(scope, scope_id) and not is_other:
            return scope_id
        field = f"{scope.value}Id"
        error = AccessDenied(f"the entity may not open this {scope.value}", field=field)
        raise self._denied(error, field=scope.value, asked=scope_id)


def _kinds(tier: MemoryKind | None) -> tuple[MemoryKind, ...]:
    return tuple(MemoryKind) if tier is None else kinds_of(tier)


def _item_id(item: StoreItemInput, scope_id: str | None, call: str | None, at: int) -> str:
    """Return an id that equal items have; with a call, equal items in this place of the call."""
    digest = _digest(item.model_dump(mode="json", exclude={"project_id"}), scope_id, call and at)
    return f"{call or 'item_'}{digest}"


def _digest(*values: Any) -> str:
    return hashlib.sha256(json_text(values).encode()).hexdigest()[:_ITEM_DIGITS]
