"""``MemoryHooks``: called by an orchestrator around its turns; never blocks on the memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from memgraph.model.context import AgentProfile, ContextRequest
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
from memgraph.service.turns.base import once, refused
from memgraph.service.turns.diagnosis import DiagnosisHooks
from memgraph.service.turns.prompts import PromptHooks
from memgraph.service.turns.write_back import WriteBackHooks, turn_of

if TYPE_CHECKING:
    from memgraph.rules.scope import Viewer
    from memgraph.service.memory_service import MemoryService

PREPARE_MS = 30_000
MAX_CALLERS = 256
_OF_TURN = ("content", "speaker", "turn_id", "from_agent", "sensitivity", "event_time")


class MemoryHooks(PromptHooks, DiagnosisHooks, WriteBackHooks):
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
