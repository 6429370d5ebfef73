"""``MemoryHooks``: what an orchestrator calls around its turns. The memory never holds it up."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

from memgraph.model.context import ContextRequest
from memgraph.model.conversation import AgentTurn, UserTurn
from memgraph.model.enums import CapturedBy, Sensitivity, SourceType
from memgraph.model.turns import StepContext, TurnContext, TurnWarning
from memgraph.model.values import validated
from memgraph.service.turns.base import Host
from memgraph.service.turns.diagnosing import Diagnosing
from memgraph.service.turns.lanes import LaneError
from memgraph.service.turns.places import Place, place_of, unfit
from memgraph.service.turns.showing import Wanted
from memgraph.service.turns.telling import once, refused
from memgraph.service.turns.writing_back import WritingBack

PREPARE_MS = 30_000


class MemoryHooks(Diagnosing, WritingBack, Host):
    """The memory of one orchestrator, as its turns use it. Thread-safe.

    No hook waits for anything of the memory beyond ``deadline_ms``; the scheduling of threads comes
    on top, which takes long on a saturated machine. What the memory could not give in time is told
    in ``warnings``. What a hook writes and could not finish in time is finished in the background,
    in order. Use it as a context manager, or call ``close``.

    Args:
        service: not closed with the hooks.
        name: of the orchestrator.
        deadline_ms: how long a hook waits, 1 to 600,000; None: ``memory.context.deadline_ms``.
        actor: whom the journal names.
        clearance: the highest sensitivity that is shown.
        profile: of the agent whose prompts these are; what other agents keep for themselves, and
            what is above its clearance, comes into none of them. Without an ``agent_id`` they are
            the actor's: memories that bear its name, and those of no agent.

    Raises:
        InvalidInput: no service, a deadline out of its bounds, or no name for an actor.
        AccessDenied: the profile's clearance is above ``clearance``.
    """

    def prepare(self, deadline_ms: int = PREPARE_MS) -> tuple[TurnWarning, ...]:
        """Load what the first turns of a process would wait for: the embedding model, the log.

        It shows nothing and counts as no access. A host that starts calls it once.

        Args:
            deadline_ms: 1 to 600,000.

        Returns:
            What turns will have to do without, as things are.

        Raises:
            InvalidInput: a deadline out of its bounds.
        """
        until = self._until(deadline_ms)
        wanted = self._wanted(Place(), ContextRequest(query="ready", budget_tokens=0), "prepare")
        pending = self._showing.begin(wanted)
        # Else the first warning of a process loads it, in the midst of turns that are slow anyway.
        with suppress(LaneError):
            self._aside.submit(partial(import_module, "structlog")).result(until)
        return once(self._showing.finish(pending, until).warnings)

    def on_message(
        self,
        content: str,
        *,
        conversation_id: str,
        speaker: str = "user",
        turn_id: str | None = None,
        task_id: str | None = None,
        project_id: str | None = None,
        orchestrator: str | None = None,
        from_agent: bool = False,
        sensitivity: Sensitivity = Sensitivity.INTERNAL,
        event_time: Any = None,
        request: ContextRequest | None = None,
        deadline_ms: int | None = None,
    ) -> TurnContext:
        """A message came: keep it, and give what the selector's prompt is to hold before it.

        The conversation itself is left out of the context: the reader has it before its eyes.

        Args:
            content: a message that cannot be stored (empty, over 32,000 characters, with a NUL)
                is answered, with the warning ``capture.refused``.
            speaker: who said it; ``from_agent``: an agent and no person.
            turn_id: the host's own id; with it a message that is handed over twice is stored once.
            project_id: the message is the project's, and is seen in it alone.
            orchestrator: whom the caller takes these hooks for; another one is refused.
            event_time: when it was said, where that was not now.
            request: the budget and shares of the context; its query and ids are set here.

        Raises:
            InvalidInput: an id is empty or too long, a deadline is out of its bounds.
        """
        until = self._until(deadline_ms)
        place = place_of(
            conversation_id=conversation_id,
            task_id=task_id,
            project_id=project_id,
            orchestrator=orchestrator,
        )
        given = {
            "session_id": conversation_id,
            "source_role": speaker,
            "turn_id": turn_id,
            "sensitivity": sensitivity,
            "event_time": event_time,
            "source": place.source(SourceType.CHANNEL_TRANSCRIPT, CapturedBy.SYSTEM),
            **place.scope,
        }
        reason = unfit(content)
        given["content"] = content if reason is None else "-"
        turn = validated(AgentTurn, given) if from_agent else validated(UserTurn, given)
        denied = self._denied(place, "on_message", until)
        if denied is not None:
            return TurnContext(warnings=(denied,))
        capture = self._capture(turn) if reason is None else refused(reason)
        asked = place.request(content, exclude_session_id=conversation_id)
        pending = self._showing.begin(self._wanted(place, _over(request, asked), "on_message"))
        shown = self._showing.finish(pending, until)
        outcome, told = self._captured(capture, until)
        return TurnContext(
            **shown.fields,
            episode_id=None if outcome is None else outcome.memory_id,
            warnings=once((*told, *shown.warnings)),
        )

    def on_step(
        self,
        prompt: str,
        *,
        workflow_run_id: str,
        step_id: str,
        conversation_id: str | None = None,
        task_id: str | None = None,
        project_id: str | None = None,
        orchestrator: str | None = None,
        exclude_conversation: bool = True,
        request: ContextRequest | None = None,
        deadline_ms: int | None = None,
    ) -> StepContext:
        """A workflow's step is to be prompted: what its prompt is to hold before it.

        Args:
            exclude_conversation: what was said in ``conversation_id`` is left out, as by
                ``on_message``: the very message that the step answers would come first. False: the
                prompt holds nothing of the conversation, and the step is to recall it.

        Raises:
            InvalidInput: as ``on_message``.
        """
        until = self._until(deadline_ms)
        place = place_of(
            workflow_run_id=workflow_run_id,
            step_id=step_id,
            conversation_id=conversation_id,
            task_id=task_id,
            project_id=project_id,
            orchestrator=orchestrator,
        )
        denied = self._denied(place, "on_step", until)
        if denied is not None:
            return StepContext(warnings=(denied,))
        left_out = conversation_id if exclude_conversation else None
        asked = place.request(prompt, exclude_session_id=left_out)
        wanted = self._wanted(place, _over(request, asked), "on_step")
        shown = self._showing.finish(self._showing.begin(wanted), until)
        return StepContext(**shown.fields, warnings=once(shown.warnings))

    def _wanted(self, place: Place, request: ContextRequest, purpose: str) -> Wanted:
        return Wanted(self._viewer(place), place.task, request, purpose)


def _over(given: ContextRequest | None, asked: ContextRequest) -> ContextRequest:
    """A request with the query and the ids of the turn."""
    if given is None:
        return asked
    set_here = ("query", "conversation_id", "workflow_run_id", "step_id", "exclude_session_id")
    return given.model_copy(update={name: getattr(asked, name) for name in set_here})
