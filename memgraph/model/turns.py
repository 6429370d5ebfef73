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

    Codes: ``memory.slow`` (the deadline passed), ``memory.full`` (too much waits already),
    ``memory.failed`` (a part of it broke), ``memory.closed``, ``access.denied``,
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
        """Return the codes of the warnings, in order."""
        return tuple(warning.code for warning in self.warnings)


class StepContext(ResultWithWarnings):
    """The context of a workflow step.

    Attributes:
        bulletin: Markdown; the last good one or empty where ``bulletin_warning`` says so.
        context: None where there was no time or no memory for it.
        prompt: the bulletin and the block of the context, to be put before the prompt.
        receipt_id: of a receipt that names the bulletin's memories; those of the context are in
            the receipt of the package. None: nothing was shown.
    """

    bulletin: str = ""
    bulletin_warning: str | None = None
    context: ContextPackage | None = None
    prompt: str = ""
    receipt_id: str | None = None


class TurnContext(StepContext):
    """The context of a message, and the id of the stored message.

    ``episode_id``: of the stored message; None: not stored until now, see ``warnings``.
    """

    episode_id: str | None = None

    @property
    def acknowledged(self) -> bool:
        """Return True when the message is stored durably."""
        return self.episode_id is not None


class RejectedPart(Value):
    """A part of an output that was not written, or not as it is.

    Attributes:
        locator: lines (``L3-L4``), a JSON pointer, or the place in a list (``/0``).
        code: stable, see ``memgraph.rules.workflow``; or that of an error.
    """

    locator: str
    code: str


class WriteBackResult(ResultWithWarnings):
    """The outcome of writing outputs, turns or findings.

    Attributes:
        memory_ids: of what was stored and of what was there already, in order.
        outcomes: one for each that was to be stored; empty where ``acknowledged`` is false.
        edges: of the edges that were asked for.
        rejected: what was not stored, or not as it says.
        acknowledged: whether the write is durable; else ``warnings`` says whether it goes on.
    """

    memory_ids: tuple[str, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    edges: tuple[Outcome, ...] = ()
    rejected: tuple[RejectedPart, ...] = ()
    acknowledged: bool = True


class EvidenceItem(Value):
    """One memory of an evidence, with where it comes from.

    Attributes:
        effective_confidence: 0..1, after decay.
        reasons: of ``asked``, ``recall:<rank>``, ``hop:<distance>``, ``ground:<memory id>``,
            ``contradicts:<memory id>``.
    """

    memory: Memory
    source: StoredSource
    citation: str
    effective_confidence: float
    reasons: tuple[str, ...]


class EvidenceBundle(ResultWithWarnings):
    """The evidence for a question, bounded, with the source of every part.

    Attributes:
        items: ``max_nodes`` at most; what was asked for first, then what answers, then neighbours.
        edges: between two of ``items``.
        contradictions: unresolved, of one of ``items`` at least.
        grounds: what the memories asked for stand on, by memory id; both ends are in ``items``.
        missing: ids that were asked for and are not there, or not to be seen.
        cut, cut_reasons: whether a bound left something out: ``max_nodes``, ``budget_tokens`` …
        text: the rendered block; ``token_cost`` is its estimate.
        receipt_id: names exactly the memories of ``text``.
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
        caused_by: ids of the memories that brought it about; None: those that the evidence names
            and the finding cites, or all that were asked for.
        importance, confidence: taken up to what a proposal may have.
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
        promoted: the id of the new memory by that of the task's own.
        cleared: how many memories of the task were retracted.
        rejected: ids that could not be promoted; then nothing is cleared.
    """

    task_id: str
    promoted: dict[str, str] = Field(default_factory=dict)
    cleared: int = 0
    rejected: tuple[RejectedPart, ...] = ()
    acknowledged: bool = True
