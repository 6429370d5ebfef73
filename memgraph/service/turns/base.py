"""The base of all hooks: lanes, deadlines, refusals, and closing."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self

from memgraph.errors import InvalidInput, OrchestratorMissing
from memgraph.log import open_log
from memgraph.model.context import AgentProfile, ContextPackage, ContextRequest, Task
from memgraph.model.enums import Sensitivity
from memgraph.model.turns import MAX_DEADLINE_MS, TurnWarning
from memgraph.model.values import ActorReason, Outcome, validated
from memgraph.rules.scope import Viewer, narrow
from memgraph.service.denials import Denial, record_denial
from memgraph.service.turns.capture import (
    CapturedMessage,
    CaptureHandle,
    CaptureQueue,
    Turn,
    TurnConditions,
    TurnPlace,
    refused,
    unacknowledged,
    warning_of,
)
from memgraph.service.turns.lanes import Lane, LaneError, LaneLimit
from memgraph.service.turns.prompts import PromptBuilder

if TYPE_CHECKING:
    from memgraph.operations.context.assembler import ContextAssembler
    from memgraph.service.memory_service import MemoryService

DEADLINE_MS = 250
"""How long a turn waits for its memory."""
MAX_ASIDE = 2_000
MAX_WRITES = 200
MAX_CONTEXTS = 256
CONTEXT_THREADS = 2
# Shared by all hooks of the process whose contexts do not wait for an external model.
CONTEXTS_AT_ONCE = LaneLimit(2)
PATIENCE_S = 5.0


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
        # Imported here, because it loads the whole service, as the caller has already done.
        from memgraph.service.memory_service import MemoryService

        if not isinstance(service, MemoryService):
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
        settings = service.settings(name).memory
        self.deadline_ms = checked_deadline(deadline_ms, DEADLINE_MS)
        self._service = service
        log = open_log(
            service.paths(name).log_file,
            service.clock,
            level=settings.log.level,
            orchestrator=name,
        )
        self._aside = Lane("aside", threads=1, waiting=MAX_ASIDE, keeps=True)
        gate = None if service.asks_outside(name) else CONTEXTS_AT_ONCE
        self._contexts = Lane("contexts", threads=CONTEXT_THREADS, waiting=MAX_CONTEXTS, gate=gate)
        self._writes = Lane("writes", threads=1, waiting=MAX_WRITES, keeps=True)
        self._ending = threading.Event()
        self._conditions = TurnConditions(log, self._aside)
        self._captures = CaptureQueue(
            self._store_turns, lambda error: self._conditions.note("capture", error)
        )
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
        return self._captures.waiting

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

    def _denied(self, place: TurnPlace, what: str, until: float) -> TurnWarning | None:
        """Return a warning if a caller names another orchestrator, and log the refusal there."""
        other = place.orchestrator
        if other is None or other == self.name:
            return None
        self._conditions.tell("access.denied", actor=self.actor, field="orchestrator", hook=what)
        try:
            self._aside.submit(lambda: self._log_other(other)).result(until)
        except Exception as error:  # noqa: BLE001 - refused, logged there or not
            self._conditions.note("denials", error)
        text = "these hooks belong to another orchestrator than the requested one"
        return TurnWarning(code="access.denied", text=text)

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

    def _capture(self, turn: Turn) -> CapturedMessage | TurnWarning:
        try:
            return self._captures.add(turn)
        except LaneError as error:
            self._conditions.note("capture", error)
            return refused(f"the message is not stored: {error}")

    def _captured(
        self, capture: CapturedMessage | TurnWarning, until: float
    ) -> tuple[Outcome | None, tuple[TurnWarning, ...]]:
        """Return the outcome of a message, or warnings that explain why it is unknown."""
        if isinstance(capture, TurnWarning):
            return None, (capture,)
        try:
            outcome = capture.stored.result(max(until - time.monotonic(), 0.0))
        except TimeoutError:
            trouble = self._captures.trouble
            late = unacknowledged("the message is")
            return None, (late, *((warning_of(trouble),) if trouble is not None else ()))
        except Exception as error:  # noqa: BLE001 - becomes a warning: no turn fails for its memory
            return None, (refused("the memory could not store the message"), warning_of(error))
        return outcome, ()

    def _store_turns(self, turns: Sequence[Turn]) -> Sequence[Outcome]:
        # The host sees everything in these scopes, so that a message that is passed twice is
        # recognised. A message of another agent is never taken for the same.
        projects = frozenset(turn.scope_id for turn in turns if turn.scope_id is not None)
        viewer = replace(self._writing, project_ids=projects)
        return self._handle(viewer).store(turns, live=True).memories

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
