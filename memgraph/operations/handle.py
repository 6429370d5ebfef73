"""The base class of handles: an orchestrator, with a viewer and an actor.

The client imports handles for their declarations only, so their dependencies are imported where
they are used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from memgraph.clock import parse_time
from memgraph.errors import AccessDenied, MemgraphError, NotFound
from memgraph.model.access import Permission
from memgraph.model.enums import Scope
from memgraph.model.operation import F, Methods, Time, grouped
from memgraph.model.values import ActorReason, EdgeInput, MemoryInput, Outcome, validated
from memgraph.paths import SOURCE_FIELD
from memgraph.rules.scope import ScopeFacts, Viewer, viewer_fields, visible

if TYPE_CHECKING:
    from memgraph.operations.write.edges import StoredBatch
    from memgraph.service.memory_service import MemoryService
    from memgraph.service.open_orchestrator import OpenOrchestrator
    from memgraph.store.receipts import NewReceipt
    from memgraph.store.snapshot import JournalledTransaction
    from memgraph.store.visibility import View


def closed_to_viewer(scope: Scope) -> str:
    """Return the message for a task or project that a viewer does not include."""
    named = "" if scope is Scope.GLOBAL else f"; its viewer needs it in {scope.value}_ids"
    return f"the handle may not open this {scope.tier}{named}"


GroupT = TypeVar("GroupT", bound="Handle[Any]")


class Handle(Methods[F]):
    """The base class of ``Orchestrator`` and of its groups.

    Args:
        permissions: the permissions of the caller. Without ``read`` no stored memories are
            revealed, without ``audit`` not what a memory has reached.
        whole: True if nothing in the orchestrator is hidden from the caller; None: True for a
            host's own handle, False for a confined one.
        opens: the scopes of which a request may name any id, beside those of the viewer; None: for
            a host's own handle projects and sessions, for a confined one neither.
    """

    def __init__(
        self,
        service: MemoryService,
        name: str,
        *,
        viewer: Viewer,
        actor: str,
        permissions: Collection[Permission] = tuple(Permission),
        whole: bool | None = None,
        opens: Collection[Scope] | None = None,
    ) -> None:
        self._service = service
        self.name = name
        self.viewer = viewer
        self.actor = actor
        self.permissions = frozenset(permissions)
        self.whole = not viewer.confined if whole is None else whole
        if opens is None:
            opens = () if viewer.confined else (Scope.PROJECT, Scope.SESSION)
        self.opens = frozenset(opens)

    def __init_subclass__(cls, group: str | None = None, tag: str | None = None) -> None:
        """Register the operations of a group.

        Args:
            group: the attribute of an orchestrator that has these methods.
            tag: the group in the reference; by default ``group``.
        """
        super().__init_subclass__()
        if group:
            grouped(cls, group, tag or group)

    def _like(self, handle: Handle[Any]) -> None:
        """Initialise this handle for the caller of another one."""
        Handle.__init__(
            self,
            handle._service,
            handle.name,
            viewer=handle.viewer,
            actor=handle.actor,
            opens=handle.opens,
        )

    def _as(self, kind: type[GroupT]) -> GroupT:
        """Return the methods of another class for the same caller."""
        other = kind.__new__(kind)
        # Shared, not copied, so that all groups of a handle have the same state.
        other.__dict__ = self.__dict__
        return other

    def _may_open(self, scope: Scope, scope_id: str) -> bool:
        """Return True if a request may name this project or session."""
        return scope in self.opens or scope_id in self.viewer.scope_ids(scope)

    @property
    def _view(self) -> View:
        """The view of the caller, for reads and for changes: hidden memories do not exist."""
        from memgraph.store.visibility import View

        return View(self.viewer)

    def _view_at(self, as_of: Time | None) -> View:
        """Return the view of the caller as of a time; None: now. Raises InvalidInput."""
        return self._view if as_of is None else replace(self._view, as_of=parse_time(as_of))

    def _whole_id(self, memory_id: str) -> str:
        """Return the full id for a short id from a prompt; other texts are unchanged."""
        return self._whole_ids([memory_id])[0]

    def _whole_ids(self, memory_ids: Sequence[str]) -> list[str]:
        """Return the full ids for short ids from a prompt, in order; other texts are unchanged.

        Raises:
            Conflict: a short id has become ambiguous.
        """
        from memgraph.store import memories

        if not any(memories.is_short(item) for item in memory_ids):
            return list(memory_ids)
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return memories.full_ids(snapshot, memory_ids, self._view)

    @contextmanager
    def _write(self) -> Iterator[tuple[OpenOrchestrator, JournalledTransaction]]:
        with (
            self._service.opened(self.name) as opened,
            opened.transaction(self.actor) as transaction,
        ):
            yield opened, transaction

    def _because(self, reason: str) -> str:
        """Return the validated reason for a change, for the journal. Raises InvalidInput."""
        return validated(ActorReason, {"actor": self.actor, "reason": reason}).reason

    def _denied(
        self, error: AccessDenied, *, field: str | None = None, asked: str | None = None
    ) -> AccessDenied:
        """Log a refusal, and return the error: ``raise self._denied(…)``."""
        from memgraph.service.denials import record_denial

        record_denial(self._service, self.name, error, actor=self.actor, field=field, asked=asked)
        return error

    def _require_visible(self, facts: ScopeFacts, message: str, *, field: str = "scope") -> None:
        """Raise AccessDenied if the viewer would not see a memory with these facts.

        The denial is logged.
        """
        reason = visible(self.viewer, facts)
        if not reason.allowed:
            error = AccessDenied(message, field=field, reason=reason.value)
            raise self._denied(error, field=field, asked=facts.scope_id)

    def _record_rejected(self, errors: Sequence[MemgraphError]) -> None:
        """Log the refused items of a batch.

        For a confined caller an unknown id is a refusal: it may be that of a hidden memory.
        """
        from memgraph.service.denials import record_denial

        refused = AccessDenied | NotFound if self.viewer.confined else AccessDenied
        for error in errors:
            if isinstance(error, refused) and not error.logged:
                record_denial(self._service, self.name, error, actor=self.actor)

    def _canonical(self, opened: OpenOrchestrator, memory: MemoryInput) -> MemoryInput:
        """Return the memory with its source's canonical path.

        Raises AccessDenied, which is logged, if the file may not be its source.
        """
        from memgraph.operations.write.writer import with_canonical_source

        try:
            return with_canonical_source(
                memory, opened.paths, opened.settings.memory.ingest.allowed_roots
            )
        except AccessDenied as error:
            path = memory.source.source_path
            raise self._denied(error, field=SOURCE_FIELD, asked=path) from None

    def _keep_receipt(
        self,
        opened: OpenOrchestrator,
        new: NewReceipt,
        *,
        viewer: Viewer | None = None,
    ) -> None:
        """Queue a receipt, to be written with others outside the caller's request.

        Args:
            viewer: the view of the caller; None: the view of this handle.
        """
        viewer_details = viewer_fields(self.viewer if viewer is None else viewer)
        new.receipt = replace(new.receipt, actor=self.actor, viewer=viewer_details)
        enough = opened.receipts.add(new)
        if self._service.embeds_in_background:
            # Even a few are written soon: another process may be about to let their memories decay.
            wake = opened.background.wake if enough else opened.background.wake_later
            wake()
        elif enough:
            try:
                opened.receipts.flush()
            except MemgraphError as error:
                # The receipts stay queued for the next attempt; the answer does not depend on them.
                opened.log.failure("receipts.flush", error)


class WritingHandle(Handle[F]):
    """The base class of operations that write memories."""

    def _edge_input(self, fields: dict[str, Any]) -> EdgeInput:
        """Return an edge whose memories are given by full or short ids."""
        edge = validated(EdgeInput, fields)
        from_id, to_id = self._whole_ids([edge.from_id, edge.to_id])
        return validated(EdgeInput, {**fields, "from_id": from_id, "to_id": to_id})

    def _remember(self, memory: MemoryInput, *, live: bool = False) -> Outcome:
        with self._service.opened(self.name) as opened:
            [stored] = self._store(opened, [memory], [], live=live).memories
            opened.background.wake()
        return stored

    def _readable(self, outcome: Outcome) -> Outcome:
        """Return an outcome, without references to other memories if the caller may not read."""
        if Permission.READ in self.permissions:
            return outcome
        return outcome.model_copy(update={"reasons": {}})

    def _remember_all(
        self,
        kind: type[MemoryInput],
        items: Iterable[MemoryInput | Mapping[str, Any]],
        *,
        embeds: bool,
    ) -> list[Outcome]:
        from memgraph.operations.write.bulk_load import BulkLoader

        with self._service.opened(self.name) as opened:
            loader = BulkLoader(
                opened,
                kind,
                actor=self.actor,
                view=self._view,
                embeds=embeds,
                rejected=self._record_rejected,
            )
            try:
                return loader.load(items)
            finally:
                # Memories stored before an error must be embedded as well.
                opened.background.wake()

    def _store(
        self,
        opened: OpenOrchestrator,
        inputs: Sequence[MemoryInput],
        links: Sequence[EdgeInput],
        *,
        live: bool = False,
    ) -> StoredBatch:
        """Store all items or none: the first error rolls the transaction back."""
        prepared = [opened.writer.prepare(self._canonical(opened, memory)) for memory in inputs]
        with opened.transaction(self.actor) as transaction:
            return opened.writer.store_all(
                transaction,
                prepared,
                links,
                view=self._view,
                live=live,
            )
