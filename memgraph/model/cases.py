"""Cases an auditor decides: contradictions, and what stands on a ground that fell."""

from __future__ import annotations

from typing import Literal

from memgraph.model.enums import EdgeType, TrustTier
from memgraph.model.graph import JournalNote, Support
from memgraph.model.values import Edge, Memory, Millis, StoredSource, Unit, Value

CaseState = Literal["open", "resolved", "dismissed"]
EndedHow = Literal["replaced", "lost", "retracted"]


class PremiseStep(Value):
    """``memory_id`` stands on ``ground_id``. ``edge_type`` None: it was derived from it."""

    memory_id: str
    ground_id: str
    edge_type: EdgeType | None
    edge_id: str | None


class Premise(Value):
    """A ground that no longer holds, and the way down to it.

    Attributes:
        ground: the memory that was replaced or taken back.
        path: from the memory that stands on it, step by step; the last one's ground is ``ground``.
        ended: ``replaced`` by another memory, ``lost`` a contradiction, or ``retracted``.
        ended_at, actor, reason: of that; where it was taken back since, and is back, of that still.
        replaced_by: ids of visible memories that took its place, sorted.
    """

    ground: Memory
    path: tuple[PremiseStep, ...]
    ended: EndedHow
    ended_at: Millis
    actor: str
    reason: str | None
    replaced_by: tuple[str, ...]


class Stale(Value):
    """An active memory that stands on a ground that no longer holds: the one that ended last."""

    memory: Memory
    premise: Premise


class StalePage(Value):
    """By when the grounds ended, the newest first; what is back from being taken back, by that.

    Attributes:
        next_after: what to pass as ``after`` for the next page; None at the end. A page may be
            shorter than was asked for and go on: so many endings are looked at, and no more.
        cut_reasons: ``max_rows``: more stands on a ground than is read.
    """

    items: tuple[Stale, ...]
    next_after: str | None
    cut: bool
    cut_reasons: tuple[str, ...]


class Influence(Value):
    """What a memory reached, as far as the reader may see it.

    Attributes:
        recalls: how many receipts name it, of the newest that are looked at.
        receipts: their ids, the newest first; none are named to who may not audit.
        runs, conversations: for which it was handed out, sorted; nor are these.
        derived: how many memories stand on it, directly or not.
        cut: there is more than is counted or listed.
    """

    recalls: int
    receipts: tuple[str, ...]
    runs: tuple[str, ...]
    conversations: tuple[str, ...]
    derived: int
    cut: bool


class CaseSide(Value):
    """One of the two memories that contradict each other, and what speaks for it.

    Attributes:
        supports: further sources that said the same, the first one first.
        independent_sources: its own among them; see ``Trace``.
        said_at: when it was so, or else when it was stored.
        effective_confidence: 0..1, after decay.
        trust: the tier of its source; ``trust_is_todays``: that of now, in a case as it was, for
            nothing tells which it was then.
        confirmed: a person confirmed it.
        premise: a ground of it that no longer holds; None: all hold.
    """

    memory: Memory
    source: StoredSource
    supports: tuple[Support, ...]
    independent_sources: int
    said_at: Millis
    effective_confidence: Unit
    trust: TrustTier
    trust_is_todays: bool = False
    confirmed: bool
    premise: Premise | None
    influence: Influence


class SuggestionReason(Value):
    """Why one side is more likely to hold.

    Attributes:
        code: ``confirmed``, ``other_ended``, ``other_stale``, ``more_sources``, ``higher_trust``,
            ``higher_confidence`` or ``newer``.
        favours: the id of the memory it speaks for.
        weight: of the evidence, natural log of the odds, above 0.
    """

    code: str
    favours: str
    weight: float


class Suggestion(Value):
    """How a contradiction might be decided; a person decides it.

    Attributes:
        winner_id: None: the evidence does not tell, or neither side can win.
        confidence: 0.5..1, that the side with more evidence holds.
        reasons: the weightiest first, those against the winner among them.
    """

    winner_id: str | None
    confidence: Unit
    reasons: tuple[SuggestionReason, ...]


class Case(Value):
    """A contradiction with all that helps to decide it.

    Attributes:
        sides: the older memory and the newer one.
        moot: still open, and one of the two was replaced or retracted meanwhile.
        suggestion: None once it is resolved or dismissed.
        journal: what was written down about this contradiction, the first entry first.
        at: the time that the case is shown at.
    """

    edge: Edge
    state: CaseState
    moot: bool
    sides: tuple[CaseSide, CaseSide]
    suggestion: Suggestion | None
    journal: tuple[JournalNote, ...]
    at: Millis
    cut: bool
