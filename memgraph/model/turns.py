"""An orchestrator's turn: the contexts of its hooks, and the outcome of its outputs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memgraph.model.context import ContextPackage
from memgraph.model.enums import MemoryType
from memgraph.model.graph import Contradiction, Link
from memgraph.model.recall import Degraded
from memgraph.model.values import (
    MAX_CONTENT_CHARS,
    Edge,
    Memory,
    Name,
    Outcome,
    StoredSource,
    Text,
    Unit,
    Value,
)

MAX_REFERENCES = 64


class TurnWarning(Value):
    """A warning of a turn. ``code`` is stable, ``text`` is for people.

    Codes: ``memory.slow`` (the deadline passed), ``memory.full`` (too many requests wait),
    ``memory.failed`` (a part of it failed), ``memory.closed``, ``access.denied``,
    ``capture.unacknowledged`` (it may still be stored), ``capture.refused`` (it will not be),
    ``bulletin.stale``, ``bulletin.empty``, ``receipt.missing``, and the code of any other error of
    ``memgraph.errors``, such as ``memory.disabled``, ``storage.busy`` or ``storage.corrupt``.
    """

    code: str
    text: str


class ResultWithWarnings(Value):
    """A result with warnings about missing parts."""

    warnings: tuple[TurnWarning, ...] = ()

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of the warnings, in order."""
        return tuple(warning.code for warning in self.warnings)


class StepContext(ResultWithWarnings):
    """The context of a workflow step.

    Attributes:
        bulletin: Markdown; with a ``bulletin_warning`` an earlier one, or empty.
        context: None if there was no time or no memory for it.
        prompt: the bulletin and the context block, to be put before the prompt.
        receipt_id: the receipt of the bulletin; that of the context is in its package. None: there
            was no bulletin.
    """

    bulletin: str = ""
    bulletin_warning: str | None = None
    context: ContextPackage | None = None
    prompt: str = ""
    receipt_id: str | None = None


class TurnContext(StepContext):
    """The context of a message, and the id of the stored message.

    ``episode_id``: the id of the stored message; None: it is not stored yet, see ``warnings``.
    """

    episode_id: str | None = None

    @property
    def acknowledged(self) -> bool:
        """True if the message is stored durably."""
        return self.episode_id is not None


class RejectedPart(Value):
    """A part of an output that was not stored, or not unchanged.

    Attributes:
        locator: lines (``L3-L4``), a JSON pointer, or the index in a list (``/0``).
        code: a stable code of ``memgraph.rules.workflow``, or the code of an error.
    """

    locator: str
    code: str


class WriteBackResult(ResultWithWarnings):
    """The outcome of writing outputs, turns or findings.

    Attributes:
        memory_ids: the ids of the stored memories and of existing duplicates, in order.
        outcomes: the outcome of each memory to store; empty if ``acknowledged`` is False.
        edges: the outcomes of the requested edges.
        rejected: the parts that were not stored, or not unchanged.
        acknowledged: whether the write is durable; if not, ``warnings`` tells whether it continues.
    """

    memory_ids: tuple[str, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    edges: tuple[Outcome, ...] = ()
    rejected: tuple[RejectedPart, ...] = ()
    acknowledged: bool = True


class EvidenceItem(Value):
    """A memory of an evidence bundle, with its source.

    Attributes:
        effective_confidence: 0..1, after decay.
        reasons: any of ``asked``, ``recall:<rank>``, ``hop:<distance>``, ``ground:<memory id>``
            and ``contradicts:<memory id>``.
    """

    memory: Memory
    source: StoredSource
    citation: str
    effective_confidence: float
    reasons: tuple[str, ...]


class EvidenceBundle(ResultWithWarnings):
    """Bounded evidence for a question, with the source of every memory.

    Attributes:
        items: at most ``max_nodes``: the requested memories, then matches of the question, then
            neighbours.
        edges: edges between two of ``items``.
        contradictions: open contradictions of at least one of ``items``.
        grounds: the evidence of the requested memories, by memory id; both ends are in ``items``.
        missing: requested ids that do not exist or are not visible.
        cut: whether a limit left something out.
        cut_reasons: the limits that did: ``max_nodes``, ``budget_tokens`` …
        text: the rendered block.
        token_cost: the estimated number of tokens of ``text``.
        receipt_id: the id of the receipt, which lists exactly the memories of ``text``.
    """

    question: str
    items: tuple[EvidenceItem, ...] = ()
    edges: tuple[Edge, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    grounds: dict[str, tuple[Link, ...]] = Field(default_factory=dict)
    missing: tuple[str, ...] = ()
    cut: bool = False
    cut_reasons: tuple[str, ...] = ()
    text: str = ""
    token_cost: int = 0
    receipt_id: str | None = None
    degraded: tuple[Degraded, ...] = ()

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """The ids of the items, in order."""
        return tuple(item.memory.memory_id for item in self.items)


class DiagnosisFinding(Value):
    """A finding of a diagnosis.

    Attributes:
        caused_by: ids of the memories that caused it; None: those of the evidence that the finding
            cites, or else all that were requested.
        importance, confidence: capped at the maximum of a proposal.
    """

    content: Annotated[Text, Field(min_length=1, max_length=MAX_CONTENT_CHARS)]
    type: MemoryType = MemoryType.OBSERVATION
    importance: Annotated[int, Field(ge=0, le=100)] | None = None
    confidence: Unit | None = None
    caused_by: Annotated[tuple[Name, ...], Field(max_length=MAX_REFERENCES)] | None = None
    tags: Annotated[tuple[Name, ...], Field(max_length=MAX_REFERENCES)] = ()


class TaskOutcome(ResultWithWarnings):
    """The outcome of a task.

    Attributes:
        promoted: the id of the new memory by the id of the task's memory.
        cleared: the number of the task's memories that were retracted.
        rejected: memories that could not be promoted; if there are any, nothing is cleared.
    """

    task_id: str
    promoted: dict[str, str] = Field(default_factory=dict)
    cleared: int = 0
    rejected: tuple[RejectedPart, ...] = ()
    acknowledged: bool = True
