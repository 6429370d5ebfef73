"""What changed: between two times, and over the life of one memory."""

from __future__ import annotations

from memgraph.model.enums import MemoryKind, MemoryType
from memgraph.model.values import Memory, Millis, StatusPeriod, Value


class MemoryEvent(Value):
    """Something that happened to a memory.

    Attributes:
        text: the beginning of what it says; empty once it was erased.
        reason: ids that the reader may not see are blanked out.
    """

    memory_id: str
    kind: MemoryKind
    type: MemoryType
    text: str
    at: Millis
    actor: str
    reason: str | None


class PairEvent(Value):
    """Something that happened to a contradiction.

    Attributes:
        first_id, second_id: the older edge end and the newer one, as the edge has them.
        winner_id: for whom it was decided; None: it was not, or a side of it is hidden.
        actor: None where the journal tells nobody.
    """

    edge_id: str
    first_id: str
    second_id: str
    first_text: str
    second_text: str
    at: Millis
    actor: str | None
    reason: str | None
    winner_id: str | None = None


class ConfidenceChange(Value):
    """A stored confidence, 0..1, at the two times. ``at``: when it changed last between them."""

    memory_id: str
    text: str
    at: Millis
    before: float
    after: float


class Diff(Value):
    """What happened after ``since`` until ``until``, as far as the reader may see; newest first.

    Attributes:
        learnt: facts and reflections that were stored; turns are only counted, as ``said``.
        replaced, retracted: what took their place, or why they went, says ``reason``.
        restored: what is active again.
        contradicted: contradictions that were found.
        resolved, dismissed, reopened: what became of contradictions.
        confidence: memories that were there before and are believed more now, or less.
        counts: of each list by its name, whole, and of ``said``.
        cut: whether a list is longer than what is shown.
    """

    since: Millis
    until: Millis
    learnt: tuple[MemoryEvent, ...]
    replaced: tuple[MemoryEvent, ...]
    retracted: tuple[MemoryEvent, ...]
    restored: tuple[MemoryEvent, ...]
    contradicted: tuple[PairEvent, ...]
    resolved: tuple[PairEvent, ...]
    dismissed: tuple[PairEvent, ...]
    reopened: tuple[PairEvent, ...]
    confidence: tuple[ConfidenceChange, ...]
    counts: dict[str, int]
    cut: bool


class ValuePeriod(Value):
    """The values of a memory from ``since`` until ``until``; None: they still hold."""

    since: Millis
    until: Millis | None
    importance: int
    confidence: float
    decay_rate: float
    valid_until: Millis | None
    tags: tuple[str, ...]


class History(Value):
    """The life of one memory: its statuses and its values, each the first one first.

    Attributes:
        at: when it was read: what has no end held until then.
        decay_exponent: of the decay of confidence here; see ``policy.decay``.
    """

    memory: Memory
    periods: tuple[StatusPeriod, ...]
    values: tuple[ValuePeriod, ...]
    at: Millis
    decay_exponent: float
