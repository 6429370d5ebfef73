"""Build the text before a prompt: the bulletin and the context, if available in time."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memgraph.bulletin.board import EMPTY, STALE
from memgraph.model.context import ContextPackage, ContextRequest, Task
from memgraph.model.receipts import Receipt
from memgraph.model.turns import StepContext, TurnWarning
from memgraph.paths import Stamp
from memgraph.rules.scope import DEFAULT_VIEWER, Viewer
from memgraph.service.turns.capture import CaptureHandle, TurnConditions, once, warning_of
from memgraph.service.turns.lanes import Lane, LaneTask

if TYPE_CHECKING:
    from memgraph.model.context import BuiltBulletin
    from memgraph.service.memory_service import MemoryService

MAX_VIEWS = 64
MAX_BULLETINS = 256

BuildContext = Callable[[Task | None, ContextRequest], ContextPackage]


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """A request for the text before a prompt."""

    viewer: Viewer
    task: Task | None
    request: ContextRequest
    purpose: str

    @property
    def asked(self) -> dict[str, Any]:
        """Return the fields for the receipt, which keeps only a digest of the query."""
        ids = self.request.model_dump(
            include={"conversation_id", "workflow_run_id", "step_id"}, exclude_none=True
        )
        digest = hashlib.sha256(self.request.query.encode()).hexdigest()
        return {**ids, "purpose": self.purpose, "query_sha256": digest}


class PromptBuilder:
    """Builds bulletins and contexts of one orchestrator. Thread-safe.

    Args:
        build: the function that assembles a context.
        contexts: the lane for contexts, which may call a model.
        aside: the lane for receipts.
        conditions: records failures and recoveries.
    """

    def __init__(
        self,
        service: MemoryService,
        name: str,
        *,
        actor: str,
        build: BuildContext,
        contexts: Lane,
        aside: Lane,
        conditions: TurnConditions,
    ) -> None:
        self._service = service
        self._name = name
        self._actor = actor
        self._build = build
        self._aside = aside
        self._conditions = conditions
        # Bulletins have their own lane, so that a model that hangs delays only contexts.
        self._bulletins = Lane("bulletins", threads=1, waiting=MAX_BULLETINS)
        self._contexts = contexts
        self._lock = threading.Lock()
        self._last_good: OrderedDict[Viewer, tuple[Stamp, BuiltBulletin]] = OrderedDict()

    def build(self, request: PromptRequest, until: float) -> StepContext:
        """Build the bulletin and the context in parallel; return what is available at ``until``.

        Args:
            until: when to stop waiting, in seconds of ``time.monotonic``.
        """
        bulletin_task = self._bulletins.submit(lambda: self._issue(request.viewer))
        context_task = self._contexts.submit(lambda: self._build(request.task, request.request))
        context, context_warnings = self._context(context_task, until)
        issued, warnings = self._bulletin(bulletin_task, request.viewer, until)
        receipt_id = None
        if issued is not None:
            receipt_id, receipt_warnings = self._note(request, issued, context)
            warnings += receipt_warnings
        bulletin = "" if issued is None else issued.bulletin.text
        return StepContext(
            bulletin=bulletin,
            bulletin_warning=next(
                (warning.code for warning in warnings if warning.code in (STALE, EMPTY)), None
            ),
            context=context,
            prompt=joined(bulletin, context),
            receipt_id=receipt_id,
            warnings=once((*warnings, *context_warnings)),
        )

    def close(self, patience_s: float) -> int:
        """Accept no more work; return the number of unfinished bulletins."""
        return self._bulletins.close(patience_s)

    def _issue(self, viewer: Viewer) -> BuiltBulletin:
        handle = self._service.orchestrator(self._name, viewer=viewer, actor=self._actor)
        # Read the stamp before the bulletin: after an erasure in between it will not match.
        erased = self._service.paths(self._name).erased
        issued = handle.bulletin()
        if issued.warning is None:
            with self._lock:
                self._last_good[viewer] = erased, issued
                self._last_good.move_to_end(viewer)
                while len(self._last_good) > MAX_VIEWS:
                    self._last_good.popitem(last=False)
        return issued

    def _context(
        self, task: LaneTask[ContextPackage], until: float
    ) -> tuple[ContextPackage | None, tuple[TurnWarning, ...]]:
        try:
            package = task.result(until)
        except Exception as error:  # noqa: BLE001 - becomes a warning: no turn fails for its memory
            self._conditions.note("context", error)
            return None, (warning_of(error),)
        self._conditions.note("context", None)
        return package, ()

    def _bulletin(
        self, task: LaneTask[BuiltBulletin], viewer: Viewer, until: float
    ) -> tuple[BuiltBulletin | None, tuple[TurnWarning, ...]]:
        """Return the current bulletin, or else the last good one, or None, with warnings."""
        try:
            issued = task.result(until)
        except Exception as error:  # noqa: BLE001 - as above
            return self._fallback(viewer, None, warning_of(error))
        if issued.warning is None:
            self._conditions.note("bulletin", None)
            return issued, ()
        cause = TurnWarning(code=issued.cause or "memory.failed", text="the bulletin is outdated")
        fallback = issued if issued.warning == STALE else None
        return self._fallback(viewer, fallback, cause)

    def _fallback(
        self, viewer: Viewer, built: BuiltBulletin | None, cause: TurnWarning
    ) -> tuple[BuiltBulletin | None, tuple[TurnWarning, ...]]:
        self._conditions.note("bulletin", cause)
        candidates = [
            candidate for candidate in (built, self._known(viewer)) if candidate is not None
        ]
        best = max(candidates, key=lambda candidate: candidate.bulletin.change_seq, default=None)
        if best is None:
            warning = TurnWarning(code=EMPTY, text="no earlier bulletin is available")
        else:
            warning = TurnWarning(code=STALE, text="the last good bulletin, which may be outdated")
        return best, (warning, cause)

    def _known(self, viewer: Viewer) -> BuiltBulletin | None:
        """Return the last good bulletin, unless any process has erased texts since then."""
        erased = self._service.paths(self._name).erased
        with self._lock:
            last_good = self._last_good.get(viewer)
            if last_good is not None and last_good[0] != erased:
                del self._last_good[viewer]
                return None
        return None if last_good is None else last_good[1]

    def _note(
        self, request: PromptRequest, issued: BuiltBulletin, context: ContextPackage | None
    ) -> tuple[str | None, tuple[TurnWarning, ...]]:
        """Submit a receipt of the prompt to be written in the background; return its id."""
        bulletin = issued.bulletin
        bulletin_fields = {
            "change_seq": bulletin.change_seq,
            "memory_ids": list(bulletin.memory_ids),
        }
        digest = hashlib.sha256(joined(bulletin.text, context).encode()).hexdigest()
        request_fields = {**request.asked, "bulletin": bulletin_fields, "sha256": digest}
        if context is not None:
            request_fields["context"] = context.receipt_id
        receipt = Receipt(
            receipt_id=self._service.ids.new("rcl_"),
            at=self._service.clock.now_ms(),
            query="",
            asked=request_fields,
            items=(),
            counts=False,
            change_seq=bulletin.change_seq,
        )
        kept = self._aside.submit(lambda: self._keep(receipt, request.viewer, issued.receipt_id))
        if kept.refusal is not None:
            text = "the receipt could not be recorded"
            return None, (TurnWarning(code="receipt.missing", text=text),)
        return receipt.receipt_id, ()

    def _keep(self, receipt: Receipt, viewer: Viewer, bulletin_receipt_id: str | None) -> None:
        """Write a receipt.

        Args:
            bulletin_receipt_id: the id of the bulletin's own receipt.
        """
        host = CaptureHandle(self._service, self._name, viewer=DEFAULT_VIEWER, actor=self._actor)
        try:
            host.keep(receipt, viewer=viewer, bulletin_receipt_id=bulletin_receipt_id)
        except Exception as error:  # noqa: BLE001 - nobody waits for it; the failure is logged
            self._conditions.note("receipts", error)
        else:
            self._conditions.note("receipts", None)


def joined(bulletin: str, context: ContextPackage | None) -> str:
    """Return the text to put before a prompt."""
    parts = (bulletin, "" if context is None else context.text)
    return "\n".join(part for part in parts if part)
