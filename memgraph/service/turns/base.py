"""What all hooks share: the lanes, the deadline, who is refused, and the end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from memgraph.errors import InvalidInput, OrchestratorMissing
from memgraph.log import open_log
from memgraph.model.context import AgentProfile, BlockFormat, ContextPackage, ContextRequest, Task
from memgraph.model.enums import MemoryKind, Sensitivity
from memgraph.model.recall import RecallRequest
from memgraph.model.turns import TurnWarning
from memgraph.model.values import Change, validated
from memgraph.policy.scope import Viewer
from memgraph.service.context.injecting import context_for
from memgraph.service.denials import tell_denial
from memgraph.service.turns.capturing import Captures, Turn
from memgraph.service.turns.lanes import Lane
from memgraph.service.turns.places import Place
from memgraph.service.turns.showing import Showing
from memgraph.service.turns.storing import StoringHandle
from memgraph.service.turns.telling import Conditions

if TYPE_CHECKING:
    from memgraph.service.memory_service import MemoryService

MAX_DEADLINE_MS = 600_000
MAX_ASIDE = 2_000
MAX_WRITES = 200
PATIENCE_S = 5.0


class Host:
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
    ) -> None:
        validated(Change, {"actor": actor})
        self.name = name
        self.actor = actor
        self.clearance = clearance
        self.profile = profile
        settings = service.settings(name).memory
        self.deadline_ms = checked_deadline(deadline_ms, settings.context.deadline_ms)
        self._service = service
        log = open_log(
            service.paths(name).log_file,
            service.clock,
            level=settings.log.level,
            max_bytes=settings.log.max_bytes,
            keep_files=settings.log.keep_files,
            orchestrator=name,
        )
        self._aside = Lane("aside", threads=1, waiting=MAX_ASIDE, keeps=True)
        self._writes = Lane("writes", threads=1, waiting=MAX_WRITES, keeps=True)
        self._conditions = Conditions(log, self._aside)
        self._captures = Captures(
            self._store_turns, lambda error: self._conditions.note("capture", error)
        )
        self._showing = Showing(
            service,
            name,
            actor=actor,
            build=self._build,
            aside=self._aside,
            conditions=self._conditions,
        )

    @property
    def waiting(self) -> int:
        """How many messages are not stored yet."""
        return self._captures.waiting

    def close(self, patience_s: float = PATIENCE_S) -> int:
        """Take no more turns, and store what waits, for a few seconds at most.

        Returns:
            How many messages were not stored. They were never acknowledged.
        """
        until = time.monotonic() + patience_s
        lost = self._captures.close(patience_s)
        self._showing.close(max(until - time.monotonic(), 0.0))
        self._writes.close(max(until - time.monotonic(), 0.0))
        self._aside.close(max(until - time.monotonic(), 0.0))
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

    def _until(self, deadline_ms: int | None) -> float:
        return time.monotonic() + checked_deadline(deadline_ms, self.deadline_ms) / 1_000

    def _denied(self, place: Place, what: str, until: float) -> TurnWarning | None:
        """A warning where somebody takes these hooks for another orchestrator's; it is told there.

        Where it cannot be told the answer is still no.
        """
        other = place.orchestrator
        if other is None or other == self.name:
            return None
        self._conditions.tell("access.denied", actor=self.actor, field="orchestrator", hook=what)
        try:
            self._aside.submit(lambda: self._tell_other(other)).result(until)
        except Exception as error:  # noqa: BLE001 - the answer is no, told or not
            self._conditions.note("denials", error)
        text = "these hooks are of another orchestrator than the one that was named"
        return TurnWarning(code="access.denied", text=text)

    def _tell_other(self, other: str) -> None:
        try:
            with self._service.opened(other) as opened:
                tell_denial(opened, actor=self.actor, field="orchestrator", asked=other)
        except OrchestratorMissing:
            # Nobody there to be told; it stands in this orchestrator's own log.
            return

    def _build(self, task: Task | None, request: ContextRequest) -> ContextPackage:
        granted = frozenset(filter(None, [task.project if task else None]))
        viewer = Viewer(clearance=self.clearance, project_ids=granted)
        asked = RecallRequest(
            query=request.query,
            kinds=request.kinds or (MemoryKind.FACT,),
            exclude_session_id=request.exclude_session_id,
        )
        with self._service.opened(self.name) as opened:
            block, receipt = context_for(
                opened, viewer, asked, format=BlockFormat.FENCED, include_insight=False
            )
            opened.receipts.add(receipt)
        return ContextPackage(
            context_package_id=receipt.receipt_id,
            task_id=None if task is None else task.task_id,
            at=receipt.at,
            items=(),
            text=block.text,
            format=block.format,
            token_cost=block.token_cost,
            budget_tokens=block.token_cost,
            counter="estimate",
            tiers={},
            left_out=(),
            left_out_count=0,
            compression_ratio=1.0,
            receipt_id=receipt.receipt_id,
        )

    def _store_turns(self, turns: Sequence[Turn]) -> Sequence[str]:
        # All that is ours is seen, so that a message handed over twice is known again.
        projects = frozenset(each.scope_id for each in turns if each.scope_id is not None)
        viewer = Viewer(clearance=Sensitivity.RESTRICTED, project_ids=projects)
        written = self._handle(viewer).store(turns, live=True)
        if written.errors:
            raise written.errors[0]
        return [each.memory_id or "" for each in written.memories]

    def _handle(self, viewer: Viewer) -> StoringHandle:
        return StoringHandle(self._service, self.name, viewer=viewer, actor=self.actor)


def checked_deadline(given: int | None, default: int) -> int:
    """Milliseconds. Raises InvalidInput: not 1 to 600,000."""
    if given is None:
        return default
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MAX_DEADLINE_MS:
        raise InvalidInput(f"deadline_ms: 1 to {MAX_DEADLINE_MS:,}", field="deadline_ms")
    return given
