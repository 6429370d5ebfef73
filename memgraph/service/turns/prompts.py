"""The text before a prompt: the bulletin and the context, if available in time."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from memgraph.bulletin.board import EMPTY, STALE
from memgraph.model.context import ContextPackage, ContextRequest
from memgraph.model.receipts import Receipt
from memgraph.model.turns import StepContext, TurnWarning
from memgraph.rules.scope import Viewer
from memgraph.service.turns.base import HookCall, HookHost, once, query_of, warning_of
from memgraph.service.turns.lanes import LaneTask
from memgraph.store.receipts import NewReceipt

if TYPE_CHECKING:
    from memgraph.model.context import BuiltBulletin

MAX_VIEWS = 64
_PLACE: Final = {"conversation_id", "workflow_run_id", "step_id"}


class PromptHooks(HookHost):
    """The part of ``MemoryHooks`` that builds bulletins and contexts."""

    def _shown(
        self,
        call: HookCall[Any],
        text: str,
        wanted: ContextRequest | None,
        exclude_session_id: str | None = None,
    ) -> StepContext:
        """Build the bulletin and the context of a text; return what is available in time.

        ``wanted`` has the budget and the shares of the context.
        """
        viewer, task = self._viewer(call.turn), call.turn.task
        query = query_of(text)
        fields = {
            "query": query,
            **call.turn.model_dump(include=_PLACE),
            "exclude_session_id": exclude_session_id,
        }
        request = (wanted or ContextRequest(query=query)).model_copy(update=fields)
        bulletin_task = self._bulletins.submit(lambda: self._issue(viewer))
        context_task = self._contexts.submit(lambda: self._assembler.build_context(task, request))
        context, context_warnings = self._read("context", context_task, call.until)
        issued, warnings = self._bulletin(bulletin_task, viewer, call.until)
        bulletin = "" if issued is None else issued.bulletin.text
        prompt, receipt_id = joined(bulletin, context), None
        if issued is not None:
            receipt = self._receipt(call, request, issued, context, prompt)
            if self._aside.submit(lambda: self._keep_prompt(receipt, viewer, issued)).refusal:
                text = "the receipt could not be recorded"
                warnings += (TurnWarning(code="receipt.missing", text=text),)
            else:
                receipt_id = receipt.receipt_id
        return StepContext(
            bulletin=bulletin,
            bulletin_warning=next(
                (warning.code for warning in warnings if warning.code in (STALE, EMPTY)), None
            ),
            context=context,
            prompt=prompt,
            receipt_id=receipt_id,
            warnings=once((*warnings, *context_warnings)),
        )

    def _issue(self, viewer: Viewer) -> BuiltBulletin:
        handle = self._service.orchestrator(self.name, viewer=viewer, actor=self.actor)
        # Read the stamp before the bulletin: after an erasure in between it will not match.
        erased = self._service.paths(self.name).erased
        issued = handle.bulletin()
        if issued.warning is None:
            with self._noting:
                self._last_good[viewer] = erased, issued
                self._last_good.move_to_end(viewer)
                if len(self._last_good) > MAX_VIEWS:
                    self._last_good.popitem(last=False)
        return issued

    def _bulletin(
        self, task: LaneTask[BuiltBulletin], viewer: Viewer, until: float
    ) -> tuple[BuiltBulletin | None, tuple[TurnWarning, ...]]:
        """Return the current bulletin, or else the last good one, or None, with warnings."""
        issued = None
        try:
            issued = task.result(until)
        except Exception as error:  # noqa: BLE001 - becomes a warning: no turn fails for its memory
            cause = warning_of(error)
        else:
            if issued.warning is None:
                self._note("bulletin", None)
                return issued, ()
            text = "the bulletin is outdated"
            cause = TurnWarning(code=issued.cause or "memory.failed", text=text)
        self._note("bulletin", cause)
        options = [self._known(viewer), issued if issued and issued.warning == STALE else None]
        best = max(
            filter(None, options), key=lambda option: option.bulletin.change_seq, default=None
        )
        if best is None:
            warning = TurnWarning(code=EMPTY, text="no earlier bulletin is available")
        else:
            warning = TurnWarning(code=STALE, text="the last good bulletin, which may be outdated")
        return best, (warning, cause)

    def _known(self, viewer: Viewer) -> BuiltBulletin | None:
        """Return the last good bulletin, unless any process has erased texts since then."""
        erased = self._service.paths(self.name).erased
        with self._noting:
            stamp, last_good = self._last_good.get(viewer, (erased, None))
            if stamp != erased:
                del self._last_good[viewer]
                return None
        return last_good

    def _receipt(
        self,
        call: HookCall[Any],
        request: ContextRequest,
        issued: BuiltBulletin,
        context: ContextPackage | None,
        prompt: str,
    ) -> Receipt:
        """Return the receipt of a prompt, which keeps only digests of the query and the text."""
        bulletin = issued.bulletin
        asked = {
            **request.model_dump(include=_PLACE, exclude_none=True),
            "purpose": call.hook,
            "query_sha256": hashlib.sha256(request.query.encode()).hexdigest(),
            "bulletin": {
                "change_seq": bulletin.change_seq,
                "memory_ids": list(bulletin.memory_ids),
            },
            "sha256": hashlib.sha256(prompt.encode()).hexdigest(),
        }
        if context is not None:
            asked["context"] = context.receipt_id
        return Receipt(
            receipt_id=self._service.ids.new("rcl_"),
            at=self._service.clock.now_ms(),
            query="",
            asked=asked,
            items=(),
            counts=False,
            change_seq=bulletin.change_seq,
        )

    def _keep_prompt(self, receipt: Receipt, viewer: Viewer, issued: BuiltBulletin) -> None:
        """Write a receipt, beside that of its bulletin."""
        try:
            with self._service.opened(self.name) as opened:
                new = NewReceipt(receipt, beside=issued.receipt_id)
                self._handle(viewer)._keep_receipt(opened, new)
        except Exception as error:  # noqa: BLE001 - nobody waits for it; the failure is logged
            self._note("receipts", error)
        else:
            self._note("receipts", None)


def joined(bulletin: str, context: ContextPackage | None) -> str:
    """Return the text to put before a prompt."""
    parts = (bulletin, "" if context is None else context.text)
    return "\n".join(part for part in parts if part)
