"""``MemoryHooks``: called by an orchestrator around its turns; never blocks on the memory."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Unpack

from memgraph.bulletin.board import EMPTY, STALE
from memgraph.ids import RECEIPT_PREFIX
from memgraph.model.context import AgentProfile, BuiltBulletin, ContextPackage, ContextRequest
from memgraph.model.receipts import Receipt
from memgraph.model.turns import (
    MessageFields,
    MessageInput,
    StepContext,
    StepInput,
    TurnContext,
    TurnFields,
    TurnInput,
    TurnWarning,
)
from memgraph.model.values import Outcome
from memgraph.rules.scope import Viewer
from memgraph.service.turns.base import HookCall, once, query_of, refused, warning_of
from memgraph.service.turns.diagnosis import DiagnosisHooks
from memgraph.service.turns.lanes import LaneTask
from memgraph.service.turns.write_back import turn_of
from memgraph.store.receipts import NewReceipt

if TYPE_CHECKING:
    from memgraph.service.memory_service import MemoryService

PREPARE_MS = 30_000
MAX_CALLERS = 256
MAX_VIEWS = 64
_PLACE: Final = {"conversation_id", "workflow_run_id", "step_id"}
_OF_TURN = ("content", "speaker", "turn_id", "from_agent", "sensitivity", "event_time")


class MemoryHooks(DiagnosisHooks):
    """The memory of one orchestrator for its turns. Thread-safe.

    A hook waits for the memory for at most ``deadline_ms``, plus thread scheduling, which is slow
    on a saturated machine. ``warnings`` list what the memory could not deliver in time. Writes that
    do not finish in time continue in the background, in order. Use the hooks as a context manager,
    or call ``close``.

    Args:
        service: the service; closing the hooks does not close it.
        name: the orchestrator's name.
        deadline_ms: the maximum wait of a hook, 1 to 600,000; None: ``DEADLINE_MS``.
        actor: the name to record in the journal.
        clearance: the highest sensitivity to return.
        profile: the agent that the prompts are for. Other agents' private memories, and memories
            above its clearance, are left out. Without an ``agent_id`` the actor's name is the
            agent id.
        confined: refuse writes that could not be seen through these hooks; for a caller who is not
            the host.

    Raises:
        InvalidInput: ``service`` is not a MemoryService, the deadline is out of range, or the
            actor is invalid.
        AccessDenied: the profile's clearance is above ``clearance``.
    """

    def prepare(self, deadline_ms: int = PREPARE_MS) -> tuple[TurnWarning, ...]:
        """Load the embedding model, so that the first turn need not wait.

        Call it once when the host starts. It returns no memories and counts as no access.

        Args:
            deadline_ms: the maximum wait, 1 to 600,000.

        Returns:
            Warnings about the parts that are not available yet.

        Raises:
            InvalidInput: the deadline is out of range.
        """
        call = self._begin("prepare", TurnInput, {"deadline_ms": deadline_ms})
        return self._shown(call, "ready", ContextRequest(query="", budget_tokens=0)).warnings

    def on_message(self, content: str, **turn: Unpack[MessageFields]) -> TurnContext:
        """Store a message, and return the context to put before its prompt.

        The context leaves out the conversation itself, which the reader has already. A message that
        cannot be stored (empty, over 32,000 characters, with a NUL) still gets a context, with the
        warning ``capture.refused``. With a ``project_id`` the message is visible only in that
        project.

        Args:
            turn: the fields of ``MessageInput``, with ``conversation_id``.

        Raises:
            InvalidInput: a field is invalid or missing.
        """
        call = self._begin("on_message", MessageInput, turn, content=content)
        if call.denied:
            return TurnContext(warnings=call.denied)
        message = call.turn
        said = turn_of({name: getattr(message, name) for name in _OF_TURN}, message)
        capture = None if isinstance(said, str) else self._capture([said])
        prompt = self._shown(call, content, message.request, message.conversation_id)
        outcomes: Sequence[Outcome] | None = None
        if capture is not None:
            outcomes, warnings = self._kept("capture", capture, call.until)
        else:
            warnings = (refused(str(said)),)
        return TurnContext(
            **dict(prompt) | {"warnings": once((*warnings, *prompt.warnings))},
            episode_id=outcomes[0].memory_id if outcomes else None,
        )

    def on_step(
        self,
        prompt: str,
        *,
        exclude_conversation: bool = True,
        request: ContextRequest | None = None,
        **turn: Unpack[TurnFields],
    ) -> StepContext:
        """Return the context to put before the prompt of a workflow step.

        Args:
            exclude_conversation, request, turn: see ``StepInput``; with ``workflow_run_id`` and
                ``step_id``.

        Raises:
            InvalidInput: a field is invalid or missing.
        """
        fields = {"exclude_conversation": exclude_conversation, "request": request}
        call = self._begin("on_step", StepInput, turn, prompt=prompt, **fields)
        if call.denied:
            return StepContext(warnings=call.denied)
        left_out = call.turn.conversation_id if exclude_conversation else None
        return self._shown(call, prompt, request, left_out)

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
            receipt_id=self._service.ids.new(RECEIPT_PREFIX),
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


class CallersHooks:
    """The hooks of the callers of a service, one for each; made when first needed. Thread-safe."""

    def __init__(self, service: MemoryService) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._hooks: OrderedDict[tuple[Any, ...], MemoryHooks] = OrderedDict()

    def of(self, name: str, actor: str, viewer: Viewer) -> MemoryHooks:
        """Return the hooks of a caller; the least recently used beyond ``MAX_CALLERS`` are closed.

        Args:
            viewer: the caller's; its projects and sessions are those of each turn.
        """
        key = (name, actor, viewer.clearance, viewer.agent_id, viewer.confined)
        unused: MemoryHooks | None = None
        with self._lock:
            if key not in self._hooks:
                agent = viewer.agent_id
                self._hooks[key] = MemoryHooks(
                    self._service,
                    name,
                    actor=actor,
                    clearance=viewer.clearance,
                    profile=None if agent is None else AgentProfile(name=agent, agent_id=agent),
                    confined=viewer.confined,
                )
                if len(self._hooks) > MAX_CALLERS:
                    _, unused = self._hooks.popitem(last=False)
            self._hooks.move_to_end(key)
            hooks = self._hooks[key]
        if unused is not None:
            unused.close()
        return hooks

    def close(self) -> None:
        """Close all hooks, and store the messages that wait."""
        with self._lock:
            hooks = list(self._hooks.values())
            self._hooks.clear()
        for one in hooks:
            one.close()
