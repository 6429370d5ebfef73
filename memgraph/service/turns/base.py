"""The base of all hooks: their lanes, deadlines, refusals and warnings, and closing."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from memgraph.errors import (
    AccessDenied,
    DatabaseBusy,
    DatabaseFull,
    DatabaseReplaced,
    InvalidInput,
    MemgraphError,
    OrchestratorMissing,
)
from memgraph.model.context import AgentProfile, BuiltBulletin
from memgraph.model.enums import Sensitivity
from memgraph.model.recall import MAX_QUERY_CHARS
from memgraph.model.turns import ResultWithWarnings, TurnInput, TurnWarning
from memgraph.model.values import MAX_CONTENT_CHARS, ActorReason, Outcome, validated
from memgraph.paths import Stamp
from memgraph.rules.scope import Viewer, narrow
from memgraph.service.denials import record_denial
from memgraph.service.turns.capture import CaptureHandle, Turn
from memgraph.service.turns.lanes import Lane, LaneError, LaneTask

if TYPE_CHECKING:
    from memgraph.operations.context.builder import ContextAssembler
    from memgraph.service.memory_service import MemoryService

T = TypeVar("T")
TurnT = TypeVar("TurnT", bound=TurnInput)
ResultT = TypeVar("ResultT", bound=ResultWithWarnings)

DEADLINE_MS = 250
"""How long a turn waits for its memory."""
MAX_ASIDE = 2_000
MAX_CAPTURES = 1_000
MAX_WRITES = 200
MAX_CONTEXTS = 256
MAX_BULLETINS = 256
CONTEXT_THREADS = 2
# Shared by all hooks of the process whose contexts do not wait for an external model.
CONTEXTS_AT_ONCE = threading.Semaphore(2)
PATIENCE_S = 5.0
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 2.0
# A locked database or a full disk is temporary; any other error needs a person.
PASSING = (DatabaseBusy, DatabaseFull, DatabaseReplaced)

_NOT_TEXT = {0: "\ufffd"} | dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


@dataclass(frozen=True, slots=True)
class HookCall(Generic[TurnT]):
    """A call of a hook, which has to return at ``until``, in the time of ``time.monotonic``.

    ``denied``: the warning if the caller expects another orchestrator.
    """

    hook: str
    turn: TurnT
    until: float
    denied: tuple[TurnWarning, ...]


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
        self.deadline_ms = (
            validated(TurnInput, {"deadline_ms": deadline_ms}).deadline_ms or DEADLINE_MS
        )
        self._service = service
        self._aside = Lane("aside", threads=1, waiting=MAX_ASIDE, keeps=True)
        gate = None if service.asks_outside(name) else CONTEXTS_AT_ONCE
        self._contexts = Lane("contexts", threads=CONTEXT_THREADS, waiting=MAX_CONTEXTS, gate=gate)
        # Apart from contexts, which a model that hangs may delay.
        self._bulletins = Lane("bulletins", threads=1, waiting=MAX_BULLETINS)
        self._captures = Lane("captures", threads=1, waiting=MAX_CAPTURES, keeps=True)
        # Apart from messages, which must not wait for the model that reads a step's output.
        self._writes = Lane("writes", threads=1, waiting=MAX_WRITES, keeps=True)
        self._ending = threading.Event()
        self._log = service.log_of(name)
        self._noting = threading.Lock()
        self._troubles: dict[str, TurnWarning] = {}
        # The last good bulletins, each with the stamp of the last erasure.
        self._last_good: OrderedDict[Viewer, tuple[Stamp, BuiltBulletin]] = OrderedDict()

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
        for lane in (self._writes, self._contexts, self._bulletins, self._aside):
            lane.close(max(until - time.monotonic(), 0.0))
        return lost

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(
        self, hook: str, kind: type[TurnT], turn: Mapping[str, Any], **fields: Any
    ) -> HookCall[TurnT]:
        """Check what a hook was given, and log it if the call is refused.

        Raises:
            InvalidInput: a field is invalid, unknown or missing.
        """
        begun, given = time.monotonic(), {**turn, **fields}
        other = given.pop("orchestrator", None)
        checked = validated(kind, given)
        until = begun + (checked.deadline_ms or self.deadline_ms) / 1_000
        if other is None or other == self.name:
            return HookCall(hook, checked, until, ())
        logged = {"actor": self.actor, "field": "orchestrator", "hook": hook}
        self._aside.submit(lambda: self._log.warning("access.denied", **logged))
        try:
            self._aside.submit(partial(self._log_other, other)).result(until)
        except Exception as error:  # noqa: BLE001 - refused, logged there or not
            self._note("denials", error)
        text = "these hooks belong to another orchestrator than the requested one"
        return HookCall(hook, checked, until, (TurnWarning(code="access.denied", text=text),))

    def _log_other(self, other: str) -> None:
        try:
            self._service.orchestrator(other)
        except OrchestratorMissing:
            # No such orchestrator: the refusal is only in this orchestrator's own log.
            return
        denied = AccessDenied("another orchestrator was requested")
        record_denial(
            self._service, other, denied, actor=self.actor, field="orchestrator", asked=other
        )

    def _viewer(self, place: TurnInput, granted: Viewer | None = None) -> Viewer:
        """Return a viewer of the global tier and the place's task and project, for the agent.

        Other agents' private memories are left out, also for writes. Without ``granted`` it sees
        what the profile may read.
        """
        return replace(
            granted or self._granted,
            agent_id=self._granted.agent_id,
            project_ids=frozenset(filter(None, [place.project_id])),
            session_ids=frozenset(filter(None, [place.task_id])),
        )

    @cached_property
    def _assembler(self) -> ContextAssembler:
        # Created on first use, because the orchestrator may be created after the hooks.
        from memgraph.operations.context.builder import ContextAssembler

        return ContextAssembler(
            self._service,
            self.name,
            clearance=self.clearance,
            profile=self.profile,
            actor=self.actor,
        )

    def _handle(self, viewer: Viewer) -> CaptureHandle:
        return CaptureHandle(self._service, self.name, viewer=viewer, actor=self.actor)

    def _capture(self, turns: Sequence[Turn]) -> LaneTask[Sequence[Outcome]]:
        """Submit messages of a conversation to be stored in one transaction, in order."""
        # The host sees everything in these scopes, so that a message that is passed twice is
        # recognised. A message of another agent is never taken for the same.
        projects = frozenset(turn.scope_id for turn in turns if turn.scope_id is not None)
        handle = self._handle(replace(self._writing, project_ids=projects))
        return self._keep(
            "capture",
            self._captures,
            lambda: handle.store(turns, live=True).memories if turns else (),
        )

    def _keep(self, part: str, lane: Lane, work: Callable[[], T]) -> LaneTask[T]:
        """Submit a write; it is retried while the database is busy or full, until the close."""

        def attempts() -> T:
            pause = FIRST_PAUSE_S
            while True:
                try:
                    value = work()
                except Exception as error:
                    self._note(part, error)
                    if not isinstance(error, PASSING) or self._ending.wait(pause):
                        raise
                    pause = min(pause * 2, LONGEST_PAUSE_S)
                else:
                    self._note(part, None)
                    return value

        task = lane.submit(attempts)
        if task.refusal is not None:
            self._note(part, task.refusal)
        return task

    def _write(self, call: HookCall[Any], work: Callable[[], ResultT], failed: ResultT) -> ResultT:
        """Return the result of a write, or ``failed`` with warnings that explain why."""
        warnings = call.denied
        if not warnings:
            task = self._keep("writes", self._writes, work)
            result, warnings = self._kept("writes", task, call.until)
            if result is not None:
                return result
        return failed.model_copy(update={"warnings": warnings})

    def _read(
        self, part: str, task: LaneTask[T], until: float
    ) -> tuple[T | None, tuple[TurnWarning, ...]]:
        """Return the result of a read, or a warning that explains why there is none."""
        try:
            result = task.result(until)
        except Exception as error:  # noqa: BLE001 - becomes a warning: no turn fails for its memory
            self._note(part, error)
            return None, (warning_of(error),)
        self._note(part, None)
        return result, ()

    def _kept(
        self, part: str, task: LaneTask[T], until: float
    ) -> tuple[T | None, tuple[TurnWarning, ...]]:
        """Return the result of a write, or warnings that explain why there is none."""
        try:
            return task.result(until), ()
        except Exception as error:  # noqa: BLE001 - as above
            warning = warning_of(error)
            if warning.code == "memory.slow":
                # The write continues in the background.
                text = "the write is not stored yet; it may be later"
                late = TurnWarning(code="capture.unacknowledged", text=text)
                trouble = self._troubles.get(part)
                return None, (late, warning, *(() if trouble is None else (trouble,)))
            reason = str(error) if isinstance(error, LaneError) else "the memory failed to store it"
            return None, (refused(reason), warning)

    def _note(self, part: str, error: BaseException | TurnWarning | None) -> None:
        """Record that a part failed for a reason, or works; changes are logged, in a lane."""
        trouble = warning_of(error) if isinstance(error, BaseException) else error
        with self._noting:
            before = self._troubles.get(part)
            if (trouble and trouble.code) == (before and before.code):
                return
            if self._aside.submit(lambda: self._log_change(part, trouble, before)).refusal:
                # It was not logged, so it is not recorded: the next turn tries again.
                return
            if trouble is None:
                del self._troubles[part]
            else:
                self._troubles[part] = trouble

    def _log_change(
        self, part: str, trouble: TurnWarning | None, before: TurnWarning | None
    ) -> None:
        if trouble is None:
            self._log.info("turn.recovered", part=part, after=before and before.code)
        else:
            self._log.warning("turn.degraded", part=part, code=trouble.code)


def warning_of(error: BaseException) -> TurnWarning:
    """Return an error as a warning; for a foreign error, with its class alone."""
    if isinstance(error, MemgraphError):
        return TurnWarning(code=error.code, text=error.message)
    if isinstance(error, LaneError):
        return TurnWarning(code=error.code, text=str(error))
    return TurnWarning(
        code="memory.failed", text=f"a part of the memory failed: {type(error).__name__}"
    )


def refused(reason: str) -> TurnWarning:
    """Return the warning that something will not be stored."""
    return TurnWarning(code="capture.refused", text=reason)


def once(warnings: Iterable[TurnWarning]) -> tuple[TurnWarning, ...]:
    """Return the first warning of each code, in order."""
    first: dict[str, TurnWarning] = {}
    for warning in warnings:
        first.setdefault(warning.code, warning)
    return tuple(first.values())


def query_of(text: str) -> str:
    """Return a query for a text, without NUL and lone surrogates."""
    return text.translate(_NOT_TEXT)[:MAX_QUERY_CHARS]


def unfit(content: str) -> str | None:
    """Return why a message cannot be stored as it is; None if it can."""
    if not content.strip():
        return "a message without words is not stored"
    if len(content) > MAX_CONTENT_CHARS:
        return f"a message of over {MAX_CONTENT_CHARS:,} characters is not stored"
    if content.translate(_NOT_TEXT) != content:
        return "a message with a NUL or a lone surrogate is not stored"
    return None
