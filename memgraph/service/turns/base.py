"""The base of all hooks: lanes, deadlines, refusals, and closing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from memgraph.errors import InvalidInput, OrchestratorMissing
from memgraph.model.context import AgentProfile, ContextPackage, ContextRequest, Task
from memgraph.model.enums import Sensitivity
from memgraph.model.turns import MAX_DEADLINE_MS, TurnWarning
from memgraph.model.values import ActorReason, Outcome, validated
from memgraph.rules.scope import Viewer, narrow
from memgraph.service.denials import Denial, record_denial
from memgraph.service.turns.capture import (
    PASSING,
    CaptureHandle,
    Turn,
    TurnConditions,
    TurnPlace,
    refused,
    warning_of,
)
from memgraph.service.turns.lanes import Lane, LaneError, LaneLimit, LaneTask
from memgraph.service.turns.prompts import PromptBuilder

if TYPE_CHECKING:
    from memgraph.operations.context.assembler import ContextAssembler
    from memgraph.service.memory_service import MemoryService

T = TypeVar("T")

DEADLINE_MS = 250
"""How long a turn waits for its memory."""
MAX_ASIDE = 2_000
MAX_CAPTURES = 1_000
MAX_WRITES = 200
MAX_CONTEXTS = 256
CONTEXT_THREADS = 2
# Shared by all hooks of the process whose contexts do not wait for an external model.
CONTEXTS_AT_ONCE = LaneLimit(2)
PATIENCE_S = 5.0
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 2.0


class HookHost:
    """The base of ``MemoryHooks``."""

    def __init__(
        self,
        service: MemoryService,
        name: str,
        *,
        deadline_ms: int | None = None,
        actor: str = "orchestrator",
        clearance: Sensitivity = Sensitivity.INTERNAL,
        profile: AgentProfile | None = None,
        confined: bool = False,
    ) -> None:
        if not callable(getattr(service, "orchestrator", None)):
            raise InvalidInput("service must be a MemoryService", field="service")
        validated(ActorReason, {"actor": actor})
        self.name = name
        self.actor = actor
        self.clearance = clearance
        self.profile = profile
        # Of writes: the host recognises what is there already, others only what they may see.
        self._writing = Viewer(
            clearance=clearance if confined else Sensitivity.RESTRICTED, confined=confined
        )
        # The grants of the agent's profile, limited to those of the host.
        self._granted = narrow(
            Viewer(clearance=clearance),
            clearance=None if profile is None else profile.clearance,
            # As in contexts: without an agent in the profile, the actor is the agent.
            agent_id=(None if profile is None else profile.agent_id) or actor,
        )
        self.deadline_ms = checked_deadline(deadline_ms, DEADLINE_MS)
        self._service = service
        self._aside = Lane("aside", threads=1, waiting=MAX_ASIDE, keeps=True)
        gate = None if service.asks_outside(name) else CONTEXTS_AT_ONCE
        self._contexts = Lane("contexts", threads=CONTEXT_THREADS, waiting=MAX_CONTEXTS, gate=gate)
        self._captures = Lane("captures", threads=1, waiting=MAX_CAPTURES, keeps=True)
        # Apart from messages, which must not wait for the model that reads a step's output.
        self._writes = Lane("writes", threads=1, waiting=MAX_WRITES, keeps=True)
        self._ending = threading.Event()
        self._conditions = TurnConditions(service.log_of(name), self._aside)
        self._showing = PromptBuilder(
            service,
            name,
            actor=actor,
            build=self._build,
            contexts=self._contexts,
            aside=self._aside,
            conditions=self._conditions,
        )

    @property
    def waiting(self) -> int:
        """The number of messages that are not stored yet."""
        return self._captures.unfinished

    def close(self, patience_s: float = PATIENCE_S) -> int:
        """Accept no more turns, and store waiting messages for at most ``patience_s`` seconds.

        Returns:
            The number of messages that were not stored, and were never acknowledged.
        """
        until = time.monotonic() + patience_s
        lost = self._captures.close(patience_s)
        self._ending.set()
        for lane in (self._writes, self._contexts, self._showing, self._aside):
            lane.close(max(until - time.monotonic(), 0.0))
        return lost

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _viewer(self, place: TurnPlace) -> Viewer:
        """Return the viewer for a place: the profile's agent, in the scopes of the place."""
        return self._of_agent(place.viewer(self._granted.clearance))

    def _of_agent(self, viewer: Viewer) -> Viewer:
        """Return the viewer without other agents' private memories; used for writes as well."""
        return replace(viewer, agent_id=self._granted.agent_id)

    def _until(self, deadline_ms: int | None) -> float:
        return time.monotonic() + checked_deadline(deadline_ms, self.deadline_ms) / 1_000

    def _denied(self, place: TurnPlace, what: str, until: float) -> tuple[TurnWarning, ...]:
        """Return a warning if a caller names another orchestrator, and log the refusal there."""
        other = place.orchestrator
        if other is None or other == self.name:
            return ()
        self._conditions.tell("access.denied", actor=self.actor, field="orchestrator", hook=what)
        try:
            self._aside.submit(lambda: self._log_other(other)).result(until)
        except Exception as error:  # noqa: BLE001 - refused, logged there or not
            self._conditions.note("denials", error)
        text = "these hooks belong to another orchestrator than the requested one"
        return (TurnWarning(code="access.denied", text=text),)

    def _log_other(self, other: str) -> None:
        try:
            self._service.orchestrator(other)
        except OrchestratorMissing:
            # No such orchestrator: the refusal is only in this orchestrator's own log.
            return
        record_denial(self._service, other, Denial("orchestrator", other), actor=self.actor)

    @cached_property
    def _assembler(self) -> ContextAssembler:
        # Created on first use, because the orchestrator may be created after the hooks.
        from memgraph.operations.context.assembler import ContextAssembler

        return ContextAssembler(
            self._service,
            self.name,
            clearance=self.clearance,
            profile=self.profile,
            actor=self.actor,
        )

    def _build(self, task: Task | None, request: ContextRequest) -> ContextPackage:
        return self._assembler.build_context(task, request)

    def _capture(self, turns: Sequence[Turn]) -> LaneTask[Sequence[Outcome]]:
        """Submit messages of a conversation to be stored in one transaction, in order."""
        return self._keep("capture", self._captures, lambda: self._store_turns(turns))

    def _keep(self, part: str, lane: Lane, work: Callable[[], T]) -> LaneTask[T]:
        """Submit a write; it is retried while the database is busy or full, until the close."""

        def attempts() -> T:
            pause = FIRST_PAUSE_S
            while True:
                try:
                    value = work()
                except PASSING as error:
                    self._conditions.note(part, error)
                    if self._ending.wait(pause):
                        raise
                    pause = min(pause * 2, LONGEST_PAUSE_S)
                except Exception as error:
                    self._conditions.note(part, error)
                    raise
                else:
                    self._conditions.note(part, None)
                    return value

        task = lane.submit(attempts)
        if task.refusal is not None:
            self._conditions.note(part, task.refusal)
        return task

    def _kept(
        self, part: str, task: LaneTask[T], until: float
    ) -> tuple[T | None, tuple[TurnWarning, ...]]:
        """Return the result of a write, or warnings that explain why there is none."""
        try:
            return task.result(until), ()
        except Exception as error:  # noqa: BLE001 - becomes a warning: no turn fails for its memory
            warning = warning_of(error)
            if warning.code == "memory.slow":
                # The write continues in the background.
                text = "the write is not stored yet; it may be later"
                late = TurnWarning(code="capture.unacknowledged", text=text)
                return None, (late, warning, *self._conditions.of(part))
            reason = str(error) if isinstance(error, LaneError) else "the memory failed to store it"
            return None, (refused(reason), warning)

    def _store_turns(self, turns: Sequence[Turn]) -> Sequence[Outcome]:
        # The host sees everything in these scopes, so that a message that is passed twice is
        # recognised. A message of another agent is never taken for the same.
        projects = frozenset(turn.scope_id for turn in turns if turn.scope_id is not None)
        viewer = replace(self._writing, project_ids=projects)
        return self._handle(viewer).store(turns, live=True).memories if turns else ()

    def _handle(self, viewer: Viewer) -> CaptureHandle:
        return CaptureHandle(self._service, self.name, viewer=viewer, actor=self.actor)


def checked_deadline(deadline_ms: int | None, default: int) -> int:
    """Return the deadline in milliseconds. Raises InvalidInput unless it is 1 to 600,000."""
    if deadline_ms is None:
        return default
    if (
        isinstance(deadline_ms, bool)
        or not isinstance(deadline_ms, int)
        or not 1 <= deadline_ms <= MAX_DEADLINE_MS
    ):
        raise InvalidInput(f"deadline_ms must be 1 to {MAX_DEADLINE_MS:,}", field="deadline_ms")
    return deadline_ms
