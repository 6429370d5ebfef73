"""Capture the messages of a turn."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from memgraph.errors import (
    DatabaseBusy,
    DatabaseFull,
    DatabaseReplaced,
    InvalidInput,
    MemgraphError,
)
from memgraph.model.context import ContextRequest, Task
from memgraph.model.conversation import AgentTurn, UserTurn
from memgraph.model.enums import CapturedBy, Scope, Sensitivity, SourceType
from memgraph.model.recall import MAX_QUERY_CHARS
from memgraph.model.receipts import Receipt
from memgraph.model.turns import TurnWarning
from memgraph.model.values import (
    MAX_CONTENT_CHARS,
    EdgeInput,
    Memory,
    MemoryInput,
    Name,
    Source,
    StoredSource,
    Value,
    validated,
)
from memgraph.operations.handle import Handle
from memgraph.operations.read.receipts import ReceiptContext
from memgraph.operations.write.edges import StoredBatch
from memgraph.providers.local import LocalEmbedding
from memgraph.rules.scope import Viewer
from memgraph.service.turns.lanes import Lane, LaneError
from memgraph.store.embeddings import embedded_text
from memgraph.store.graph import sources_of, visible_memories
from memgraph.store.memories import same_content

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memgraph.log import EventLog
    from memgraph.service.open_orchestrator import OpenOrchestrator


Turn = UserTurn | AgentTurn

# A locked database or a full disk is temporary; any other error needs a person.
PASSING = (DatabaseBusy, DatabaseFull, DatabaseReplaced)


class CaptureHandle(Handle):
    """A handle for the host's writes: an item that cannot be stored does not affect the others."""

    def store(
        self, inputs: Sequence[MemoryInput], links: Sequence[EdgeInput] = (), *, live: bool = False
    ) -> StoredBatch:
        """Store memories in one transaction, durable on return.

        Args:
            links: edges, whose ends may be the ``#key`` of one of ``inputs``.
            live: True if the turns among ``inputs`` were just said, in this order.

        Raises:
            MemgraphError: the database cannot be written; nothing was stored.
        """
        with self._service.opened(self.name) as opened:
            checked = [self._canonical(opened, memory) for memory in inputs]
            model = self._model_at_hand(opened)
            vectors = iter(() if model is None else _embedded(model, checked))
            prepared = [opened.writer.prepare(memory, next(vectors, None)) for memory in checked]
            with opened.transaction(self.actor) as transaction:
                written = opened.writer.store(
                    transaction, prepared, links, view=self._view, embedding=model, live=live
                )
                transaction.record(written.entries)
            try:
                if model is None:
                    self._embed_soon(opened)
                else:
                    # The remaining work is not urgent: receipts, the upkeep of the index.
                    opened.background.wake_later()
            except RuntimeError as error:
                # No thread available: the memories are stored, and the next write wakes one.
                opened.log.failure("background.wake", error)
        return written

    def _model_at_hand(self, opened: OpenOrchestrator) -> LocalEmbedding | None:
        """Return the local model if it is loaded.

        Embedding a turn at once takes less than a millisecond; later it takes several, while others
        wait.
        """
        model = opened.embedding
        if not self._service.embeds_in_background or opened.other_model is not None:
            return None
        return model if isinstance(model, LocalEmbedding) and model.ready else None

    def visible(self, ids: Collection[str]) -> frozenset[str]:
        """Return the ids of existing memories that this handle may see."""
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return frozenset(visible_memories(snapshot, ids, self._view))

    def saying(self, hashes: Collection[str]) -> list[tuple[Memory, StoredSource]]:
        """Return the visible active memories whose texts have these hashes."""
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            now = opened.clock.now_ms()
            rows = same_content(snapshot, list(hashes), self._view, at=now)
            memories_by_id = visible_memories(snapshot, [row.memory_id for row in rows], self._view)
            sources = {
                source.source_id: source for source in sources_of(snapshot, memories_by_id.values())
            }
        return [(memory, sources[memory.source_id]) for memory in memories_by_id.values()]

    def keep(
        self,
        receipt: Receipt,
        *,
        viewer: Viewer | None = None,
        bulletin_receipt_id: str | None = None,
    ) -> None:
        """Keep a receipt, to be written with others.

        Args:
            viewer: what the reader could see; None: what this handle does.
            bulletin_receipt_id: the receipt of the bulletin that is part of what was handed out.
        """
        with self._service.opened(self.name) as opened:
            self._keep_receipt(
                opened, receipt, ReceiptContext(beside=bulletin_receipt_id), viewer=viewer
            )


def _embedded(model: LocalEmbedding, inputs: Sequence[MemoryInput]) -> NDArray[np.float32]:
    return model.embed(
        [embedded_text(memory.source_role, memory.content, memory.attributes) for memory in inputs]
    )


T = TypeVar("T")

_NOT_TEXT = {0: "\ufffd"} | dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


class TurnIds(TypedDict, total=False):
    """The ids of a turn's place, 1 to 512 characters each; see ``TurnPlace``."""

    conversation_id: str | None
    workflow_run_id: str | None
    step_id: str | None
    task_id: str | None
    project_id: str | None
    orchestrator: str | None


class TurnPlace(Value):
    """The place of a turn.

    Attributes:
        conversation_id: the conversation.
        workflow_run_id, step_id: the run and the step of a workflow.
        task_id, project_id: the task and the project whose memories are seen besides global ones.
        orchestrator: the orchestrator that the caller expects; another one is refused.
    """

    conversation_id: Name | None = None
    workflow_run_id: Name | None = None
    step_id: Name | None = None
    task_id: Name | None = None
    project_id: Name | None = None
    orchestrator: Name | None = None

    @property
    def task(self) -> Task | None:
        """The task that contexts are built for. Without a task id it is the conversation."""
        task_name = self.task_id or self.conversation_id or self.workflow_run_id
        return None if task_name is None else Task(task_id=task_name, project_id=self.project_id)

    @property
    def scope(self) -> dict[str, Any]:
        """The scope of writes: the project, or global without one."""
        if self.project_id is None:
            return {"scope": Scope.GLOBAL}
        return {"scope": Scope.PROJECT, "scope_id": self.project_id}

    def viewer(self, clearance: Sensitivity) -> Viewer:
        """Return a viewer of this task, this project and the global tier."""
        return Viewer(
            clearance=clearance,
            project_ids=frozenset(filter(None, [self.project_id])),
            session_ids=frozenset(filter(None, [self.task_id])),
        )

    def source(
        self, source_type: SourceType, captured_by: CapturedBy, *, locator: str | None = None
    ) -> Source:
        """Return the source of memories written in this place."""
        return Source(
            source_type=source_type,
            captured_by=captured_by,
            conversation_id=self.conversation_id,
            workflow_run_id=self.workflow_run_id,
            step_id=self.step_id,
            locator=locator,
        )

    def request(
        self, text: str, wanted: ContextRequest | None = None, *, exclude_session_id: str | None
    ) -> ContextRequest:
        """Return the request for a context of any text, with the budget and shares of ``wanted``.

        Raises:
            InvalidInput: it is not text.
        """
        query = storable(checked_text(text, "prompt"))[:MAX_QUERY_CHARS]
        fields = {
            "query": query,
            "conversation_id": self.conversation_id,
            "workflow_run_id": self.workflow_run_id,
            "step_id": self.step_id,
            "exclude_session_id": exclude_session_id,
        }
        return (wanted or ContextRequest(query=query)).model_copy(update=fields)


def place_of(ids: TurnIds, *required: str) -> TurnPlace:
    """Return the place of these ids.

    Raises:
        InvalidInput: an id is empty, too long, unknown or not text, or a required one is missing.
    """
    place = validated(TurnPlace, dict(ids))
    for name in required:
        if getattr(place, name) is None:
            raise InvalidInput(f"{name} is required", field=name)
    return place


def checked_text(text: str, name: str) -> str:
    """Return the text. Raises InvalidInput if it is not a string."""
    if not isinstance(text, str):
        raise InvalidInput(f"{name} must be text", field=name)
    return text


def several(items: Iterable[T], name: str) -> list[T]:
    """Return the items of an iterable; strings and mappings are not accepted.

    Raises:
        InvalidInput: it is not a list.
    """
    if isinstance(items, str | bytes | Mapping | Value) or not isinstance(items, Iterable):
        raise InvalidInput(f"{name} must be a list", field=name)
    return list(items)


def storable(text: str) -> str:
    """Replace NUL and lone surrogates in a text, which cannot be stored."""
    return text.translate(_NOT_TEXT)


def unfit(content: str) -> str | None:
    """Return why a message cannot be stored as it is; None if it can.

    Raises:
        InvalidInput: it is not text.
    """
    if not isinstance(content, str):
        raise InvalidInput("content: a message must be text", field="content")
    if not content.strip():
        return "a message without words is not stored"
    if len(content) > MAX_CONTENT_CHARS:
        return f"a message of over {MAX_CONTENT_CHARS:,} characters is not stored"
    if storable(content) != content:
        return "a message with a NUL or a lone surrogate is not stored"
    return None


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


class TurnConditions:
    """The state of each part of a turn; changes are logged, repetitions are not.

    Args:
        log: where changes are logged.
        lane: the lane in which they are written, so that a slow disk does not delay turns.
    """

    def __init__(self, log: EventLog, lane: Lane) -> None:
        self._log = log
        self._lane = lane
        self._lock = threading.Lock()
        self._troubles: dict[str, TurnWarning] = {}

    def of(self, part: str) -> tuple[TurnWarning, ...]:
        """Return why a part does not work; nothing if it does."""
        trouble = self._troubles.get(part)
        return () if trouble is None else (trouble,)

    def note(self, part: str, error: BaseException | TurnWarning | None) -> None:
        """Record that a part failed for a reason, or works."""
        trouble = warning_of(error) if isinstance(error, BaseException) else error
        code = None if trouble is None else trouble.code
        with self._lock:
            before = self._troubles.get(part)
            if code == (None if before is None else before.code):
                return
            if self._lane.submit(lambda: self._log_change(part, code, before)).refusal:
                # It was not logged, so it is not recorded: the next turn tries again.
                return
            if trouble is None:
                del self._troubles[part]
            else:
                self._troubles[part] = trouble

    def tell(self, event: str, **fields: str) -> None:
        """Log an event each time it happens."""
        self._lane.submit(lambda: self._log.warning(event, **fields))

    def _log_change(self, part: str, code: str | None, before: TurnWarning | None) -> None:
        if code is None:
            self._log.info("turn.recovered", part=part, after=before and before.code)
        else:
            self._log.warning("turn.degraded", part=part, code=code)
