"""The base of every part of a handle: the orchestrator, its viewer and its actor.

The client imports handles for their operations: what they work with is imported where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from memgraph.errors import AccessDenied, MemgraphError, NotFound
from memgraph.model.access import Permission
from memgraph.model.enums import Scope
from memgraph.model.operation import F, Methods, grouped
from memgraph.model.values import ActorReason, MemoryInput, validated
from memgraph.paths import SOURCE_FIELD
from memgraph.rules.scope import ScopeFacts, Viewer, viewer_fields, visible

if TYPE_CHECKING:
    from memgraph.model.receipts import Receipt
    from memgraph.operations.read.receipts import ReceiptContext
    from memgraph.service.denials import Denial
    from memgraph.service.memory_service import MemoryService
    from memgraph.service.open_orchestrator import OpenOrchestrator
    from memgraph.store.snapshot import JournalledTransaction
    from memgraph.store.visibility import View


class RefusalNote(NamedTuple):
    """A refusal, with the part of it that auditors may see."""

    error: MemgraphError
    denial: Denial

    @classmethod
    def of(cls, error: MemgraphError) -> RefusalNote:
        """Return the refusal of an error that was not journalled yet."""
        from memgraph.service.denials import Denial

        field = str(error.details.get("field", "write"))
        asked = error.asked
        if isinstance(error, NotFound):
            field = "id"
            asked = next(
                (str(error.details[item]) for item in ASKED if item in error.details), None
            )
        return cls(error, Denial(field, asked, error.code))


ASKED: Final = ("memory_id", "edge_id", "receipt_id", "session_id", "name", "sha256", "key")
"""The keys under which an error's details name what was requested."""

DenialRecorder = Callable[[Sequence[RefusalNote]], None]


def closed_to_viewer(scope: Scope) -> str:
    """Return the message for a task or project that a viewer does not include."""
    named = "" if scope is Scope.GLOBAL else f"; its viewer needs it in {scope.value}_ids"
    return f"this {scope.tier} is not open to the handle{named}"


GroupT = TypeVar("GroupT", bound="Handle[Any]")


class Handle(Methods[F]):
    """The base of ``Orchestrator`` and of its groups.

    Args:
        recorder: journals refusals; None: equal refusals are counted, see ``record_denial``.
        permissions: those of the holder. Without ``read`` it learns nothing of what is
            stored, without ``audit`` not what a memory reached.
        whole: True when nothing in the orchestrator is hidden from the holder; None: True for a
            host's own handle, False for a confined one.
    """

    def __init__(
        self,
        service: MemoryService,
        name: str,
        *,
        viewer: Viewer,
        actor: str,
        recorder: DenialRecorder | None = None,
        permissions: Collection[Permission] = tuple(Permission),
        whole: bool | None = None,
    ) -> None:
        self._service = service
        self.name = name
        self.viewer = viewer
        self.actor = actor
        self._recorder = recorder
        self.permissions = frozenset(permissions)
        self.whole = not viewer.confined if whole is None else whole

    def __init_subclass__(cls, group: str | None = None) -> None:
        """Args:
        group: the attribute of an orchestrator under which these methods are.
        """
        super().__init_subclass__()
        if group:
            grouped(cls, group)

    def _like(self, handle: Handle[Any]) -> None:
        """Initialise this handle for the caller of another one."""
        Handle.__init__(
            self,
            handle._service,
            handle.name,
            viewer=handle.viewer,
            actor=handle.actor,
            recorder=handle._recorder,
        )

    def _as(self, kind: type[GroupT]) -> GroupT:
        """Return the methods of another class for the same caller."""
        other = kind.__new__(kind)
        # Shared and not copied: a handle has one state.
        other.__dict__ = self.__dict__
        return other

    @property
    def _view(self) -> View:
        """Return what may be read and therefore changed: an invisible memory does not exist."""
        from memgraph.store.visibility import View

        return View(self.viewer)

    def _whole_id(self, memory_id: str) -> str:
        """Return the full id for a short one of a prompt; any other text unchanged."""
        return self._whole_ids([memory_id])[0]

    def _whole_ids(self, memory_ids: Sequence[str]) -> list[str]:
        """Return the full ids for short ones of a prompt, in order; other texts unchanged."""
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
        """Return the validated reason of a change, for the journal. Raises InvalidInput."""
        return validated(ActorReason, {"actor": self.actor, "reason": reason}).reason

    def _denied(
        self, opened: OpenOrchestrator, error: AccessDenied, *, field: str, asked: str | None = None
    ) -> AccessDenied:
        """Journal a refusal and return the error to raise: ``raise self._denied(…)``."""
        from memgraph.service.denials import Denial, record_denial

        if self._recorder is not None:
            self._recorder([RefusalNote(error, Denial(field, asked))])
        else:
            record_denial(opened, actor=self.actor, field=field, requested=asked)
        return error

    def _require_visible(self, facts: ScopeFacts, message: str, *, field: str = "scope") -> None:
        """Check that the viewer sees what is stored with these facts.

        Raises:
            AccessDenied: it does not; this is logged and journalled.
        """
        verdict = visible(self.viewer, facts)
        if verdict.allowed:
            return
        error = AccessDenied(message, field=field, reason=verdict.reason.value)
        with self._service.opened(self.name) as opened:
            raise self._denied(opened, error, field=field, asked=facts.scope_id)

    def _record_rejected(self, errors: Sequence[MemgraphError]) -> None:
        """Journal the refused items of a batch; nothing is raised for them."""
        from memgraph.service.denials import record_denial

        refused = [error for error in errors if isinstance(error, AccessDenied | NotFound)]
        if self._recorder is not None:
            self._recorder([RefusalNote.of(item) for item in refused])
            return
        with self._service.opened(self.name) as opened:
            for item in refused:
                if isinstance(item, AccessDenied):
                    denial = RefusalNote.of(item).denial
                    record_denial(
                        opened, actor=self.actor, field=denial.field, requested=denial.asked
                    )

    def _canonical(self, opened: OpenOrchestrator, memory: MemoryInput) -> MemoryInput:
        """Return the memory with the source that it may name. Raises AccessDenied: journalled."""
        from memgraph.operations.write.checks import with_canonical_source

        try:
            return with_canonical_source(opened, memory)
        except AccessDenied as error:
            path = memory.source.source_path
            raise self._denied(opened, error, field=SOURCE_FIELD, asked=path) from None

    def _embed_soon(self, opened: OpenOrchestrator) -> None:
        if self._service.embeds_in_background and opened.other_model is None:
            opened.background.wake()
        self._dispatch_soon(opened)

    def _dispatch_soon(self, opened: OpenOrchestrator) -> None:
        if self._service.embeds_in_background and opened.events.wanted:
            opened.courier.wake()

    def _keep_receipt(
        self,
        opened: OpenOrchestrator,
        receipt: Receipt,
        context: ReceiptContext | None = None,
        *,
        viewer: Viewer | None = None,
        texts: Sequence[str] = (),
        enough: bool = False,
    ) -> None:
        """Keep a receipt, to be written with others outside the caller's request.

        Args:
            viewer: what the caller could see; None: what this handle does.
            texts: handed-out text that no memory has as a line.
            enough: write now, as there is enough.
        """
        from memgraph.operations.read.receipts import NOTHING

        viewer_details = viewer_fields(self.viewer if viewer is None else viewer)
        settings = opened.settings_sha256
        complete = replace(
            receipt, actor=self.actor, viewer=viewer_details, settings_sha256=settings
        )
        enough = opened.receipts.add(complete, NOTHING if context is None else context) or enough
        for text in texts:
            enough = opened.receipts.add_text(text, receipt.at) or enough
        self._write_receipts(opened, enough=enough)

    def _write_receipts(self, opened: OpenOrchestrator, *, enough: bool) -> None:
        if self._service.embeds_in_background:
            # A few are written soon, too: another process may be about to retire what they name.
            if enough:
                opened.background.wake()
            elif opened.receipts.waiting:
                opened.background.wake_later()
            return
        if not enough:
            return
        try:
            opened.receipts.flush()
        except MemgraphError as error:
            # They are kept for the next try; the answer does not depend on them.
            opened.log.failure("receipts.flush", error)
