r"""The life of a memory: which status may follow which, and what a change has to touch.

Values in, plans out. A plan names the rows to change; the service writes it in one transaction.

::

    active ──supersede──> superseded ──retract──> retracted
       ^ \___________________________retract________^  |
       |──reactivate──────────┘                         |
       └──────────────────restore───────────────────────┘
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final, Literal, NamedTuple

from memgraph.clock import parse_time
from memgraph.errors import Conflict, IllegalTransition, InvalidInput
from memgraph.model.context import ContextItem
from memgraph.model.enums import EdgeType, MemoryStatus, MemoryType

LOSER_CONFIDENCE = 0.3
ContradictionState = Literal["open", "resolved", "dismissed"]
DISMISSED: Final = "dismissed"
"""``outcome`` in the ``resolution`` of a Contradicts edge that is none; others have no outcome."""


class StatusAction(StrEnum):
    """An action on a memory's status. Only RESTORE brings a retracted memory back."""

    SUPERSEDE = "supersede"
    REACTIVATE = "reactivate"
    RETRACT = "retract"
    RESTORE = "restore"


_TRANSITIONS: Mapping[tuple[MemoryStatus, StatusAction], MemoryStatus] = {
    (MemoryStatus.ACTIVE, StatusAction.SUPERSEDE): MemoryStatus.SUPERSEDED,
    (MemoryStatus.ACTIVE, StatusAction.RETRACT): MemoryStatus.RETRACTED,
    (MemoryStatus.SUPERSEDED, StatusAction.REACTIVATE): MemoryStatus.ACTIVE,
    (MemoryStatus.SUPERSEDED, StatusAction.RETRACT): MemoryStatus.RETRACTED,
    (MemoryStatus.RETRACTED, StatusAction.RESTORE): MemoryStatus.ACTIVE,
}


@dataclass(frozen=True, slots=True)
class MemoryState:
    """The state of a memory, for the rules.

    Attributes:
        confidence: the stored base, 0..1.
        supersedes: ``attributes["supersedes"]``: ids of the memories it won against.
    """

    memory_id: str
    status: MemoryStatus
    confidence: float
    supersedes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """New values for one memory; None leaves a value as it is."""

    memory_id: str
    status: MemoryStatus | None = None
    confidence: float | None = None
    supersedes: tuple[str, ...] | None = None

    @property
    def is_empty(self) -> bool:
        return self.status is None and self.confidence is None and self.supersedes is None


@dataclass(frozen=True, slots=True)
class EdgePlan:
    from_memory_id: str
    to_memory_id: str
    edge_type: EdgeType


@dataclass(frozen=True, slots=True)
class SupersessionPlan:
    """An Updates edge from the newer memory, and the change of the older one (None: no change)."""

    edge: EdgePlan
    change: MemoryChange | None


@dataclass(frozen=True, slots=True)
class ResolutionRecord:
    """The ``resolution`` of a resolved Contradicts edge, enough to take it back.

    Attributes:
        loser_prior_status: the loser's status before any resolution that now stands against it.
        loser_prior_confidence: its stored confidence then, 0..1.
        supersedes_added: whether this resolution put the loser's id on the winner.
    """

    winner_id: str
    loser_id: str
    loser_prior_status: MemoryStatus
    loser_prior_confidence: float
    supersedes_added: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object to store on the edge."""
        return asdict(self) | {"loser_prior_status": self.loser_prior_status.value}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> ResolutionRecord:
        """Reads back what ``as_dict`` wrote; other keys are ignored.

        Raises:
            InvalidInput: a key is missing or has an impossible value.
        """
        try:
            record = cls(
                winner_id=str(stored["winner_id"]),
                loser_id=str(stored["loser_id"]),
                loser_prior_status=MemoryStatus(stored["loser_prior_status"]),
                loser_prior_confidence=float(stored["loser_prior_confidence"]),
                supersedes_added=bool(stored["supersedes_added"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput("the resolution of this edge cannot be read") from error
        if not 0.0 <= record.loser_prior_confidence <= 1.0:
            raise InvalidInput("the resolution's confidence must be between 0 and 1")
        return record


def dismissal(*, reason: str, actor: str) -> dict[str, Any]:
    """Return what a Contradicts edge keeps in ``resolution`` once somebody said that it is none."""
    return {"outcome": DISMISSED, "reason": reason, "actor": actor}


def is_dismissed(resolution: Mapping[str, Any] | None) -> bool:
    """Return True when a ``resolution`` is a dismissal: nobody won, and nobody lost."""
    return resolution is not None and resolution.get("outcome") == DISMISSED


def contradiction_state(resolution: Mapping[str, Any] | None) -> ContradictionState:
    """Return what a Contradicts edge with this ``resolution`` is."""
    if resolution is None:
        return "open"
    return "dismissed" if is_dismissed(resolution) else "resolved"


@dataclass(frozen=True, slots=True)
class ResolutionPlan:
    """Changes to write (empty ones left out) and the record to keep on the Contradicts edge."""

    changes: tuple[MemoryChange, ...]
    record: ResolutionRecord


@dataclass(frozen=True, slots=True)
class ReopeningPlan:
    """Changes to write (empty ones left out); the edge loses ``resolved_at`` and ``resolution``."""

    changes: tuple[MemoryChange, ...]


def next_status(current: MemoryStatus, action: StatusAction) -> MemoryStatus:
    """Return the status that ``action`` leads to.

    Raises:
        IllegalTransition: the action is not open to a memory of this status.
    """
    target = _TRANSITIONS.get((current, action))
    if target is None:
        raise IllegalTransition(
            f"cannot {action.value} a memory that is {current.value}",
            status=current.value,
            action=action.value,
        )
    return target


def may(current: MemoryStatus, action: StatusAction) -> bool:
    """Return True when ``next_status`` would answer."""
    return (current, action) in _TRANSITIONS


def plan_supersession(new: MemoryState, old: MemoryState) -> SupersessionPlan:
    """``new`` replaces ``old``. A second successor adds its edge and changes nothing else.

    Raises:
        InvalidInput: both are the same memory.
        IllegalTransition: either one is retracted.
    """
    if new.memory_id == old.memory_id:
        raise InvalidInput("a memory cannot supersede itself", memory_id=new.memory_id)
    if new.status is MemoryStatus.RETRACTED:
        raise IllegalTransition(
            "a retracted memory cannot supersede another", memory_id=new.memory_id
        )
    edge = EdgePlan(new.memory_id, old.memory_id, EdgeType.UPDATES)
    # Two records may both replace a third; whichever is read second finds it replaced.
    if old.status is MemoryStatus.SUPERSEDED:
        return SupersessionPlan(edge, None)
    status = next_status(old.status, StatusAction.SUPERSEDE)
    return SupersessionPlan(edge, MemoryChange(old.memory_id, status=status))


def plan_resolution(
    winner: MemoryState,
    loser: MemoryState,
    *,
    already_resolved: bool = False,
    current: ResolutionRecord | None = None,
) -> ResolutionPlan:
    """Decide the contradiction between two memories for ``winner``.

    The loser is superseded (one that is superseded or retracted already stays so), its stored
    confidence falls to at most 0.3, and the winner's ``supersedes`` gains its id.

    Args:
        already_resolved: the edge has ``resolved_at``.
        current: the record of another resolution that the same loser lost and that still stands.
            Its prior values are carried over, so that the last reopening restores the original
            state whatever the order.

    Raises:
        InvalidInput: both are the same memory, or ``current`` is about another loser.
        Conflict: resolved before; reopen it first.
        IllegalTransition: the winner is not active.
    """
    if winner.memory_id == loser.memory_id:
        raise InvalidInput("a memory cannot contradict itself", memory_id=winner.memory_id)
    if current is not None and current.loser_id != loser.memory_id:
        raise InvalidInput("the standing resolution is about another memory")
    if already_resolved:
        raise Conflict("this contradiction is resolved; reopen it before deciding it anew")
    if winner.status is not MemoryStatus.ACTIVE:
        raise IllegalTransition(
            f"a memory that is {winner.status.value} cannot win a contradiction",
            memory_id=winner.memory_id,
        )
    # Only an id that this resolution added is taken off again when it is reopened.
    adds = loser.memory_id not in winner.supersedes
    record = ResolutionRecord(
        winner_id=winner.memory_id,
        loser_id=loser.memory_id,
        loser_prior_status=current.loser_prior_status if current else loser.status,
        loser_prior_confidence=current.loser_prior_confidence if current else loser.confidence,
        supersedes_added=adds,
    )
    lowered = min(loser.confidence, LOSER_CONFIDENCE)
    loser_change = MemoryChange(
        loser.memory_id,
        status=MemoryStatus.SUPERSEDED if may(loser.status, StatusAction.SUPERSEDE) else None,
        confidence=lowered if lowered != loser.confidence else None,
    )
    gained = (*winner.supersedes, loser.memory_id) if adds else None
    winner_change = MemoryChange(winner.memory_id, supersedes=gained)
    return ResolutionPlan(_filled(loser_change, winner_change), record)


def plan_reopening(
    record: ResolutionRecord,
    *,
    winner: MemoryState | None,
    loser: MemoryState | None,
    replaced: bool = False,
) -> ReopeningPlan:
    """Takes a resolution back, as far as nothing else has happened to its memories since.

    The loser gets its prior status and confidence, unless something else still stands against it,
    it was retracted meanwhile (only ``restore`` undoes that), or its confidence was set anew.

    Args:
        winner, loser: their states now; None for one that was erased.
        replaced: something else still stands against the loser: it replaced it, or won.
    """
    changes = []
    if loser is not None and not replaced:
        changes.append(_restored(record, loser))
    if winner is not None and record.supersedes_added and record.loser_id in winner.supersedes:
        rest = tuple(memory_id for memory_id in winner.supersedes if memory_id != record.loser_id)
        changes.append(MemoryChange(winner.memory_id, supersedes=rest))
    return ReopeningPlan(_filled(*changes))


def _restored(record: ResolutionRecord, loser: MemoryState) -> MemoryChange:
    reactivates = record.loser_prior_status is MemoryStatus.ACTIVE and may(
        loser.status, StatusAction.REACTIVATE
    )
    # A confidence that is not what the resolution left was set by someone since: it stands.
    prior = record.loser_prior_confidence
    untouched = loser.confidence == min(prior, LOSER_CONFIDENCE)
    return MemoryChange(
        loser.memory_id,
        status=MemoryStatus.ACTIVE if reactivates else None,
        confidence=prior if untouched and prior != loser.confidence else None,
    )


def _filled(*changes: MemoryChange) -> tuple[MemoryChange, ...]:
    return tuple(change for change in changes if not change.is_empty)


# How a memory came to its end, and whether that says anything against what it said.


EVICTED: Final = "evicted"
TASK_CLOSED: Final = "task_closed"
CLEARED: Final = "cleared"
DECAYED: Final = "decayed"

QUIET: Final = frozenset({EVICTED, TASK_CLOSED, CLEARED, DECAYED})
"""Reasons of a retraction that is housekeeping: no room, task, place or reader for it any more."""


def reason_of(status: MemoryStatus, reason: str) -> str:
    """Return the reason with which a memory of a status is retracted.

    Housekeeping does not make good what was refuted before it: its word alone would say so.
    """
    if status is MemoryStatus.SUPERSEDED and reason in QUIET:
        return f"{reason} after its correction"
    return reason


def lost_to(winner_id: str, reason: str) -> str:
    """Return the reason with which a memory is superseded that lost a contradiction."""
    return f"lost to {winner_id}: {reason}"


class EndOfLife(NamedTuple):
    """The facts that tell whether a memory still holds.

    Attributes:
        status: that it has.
        reason: with which it came to that status; None: none was given.
        lost: a contradiction that it was part of was decided for the other side.
    """

    status: MemoryStatus
    reason: str | None = None
    lost: bool = False


def refuted(ending: EndOfLife) -> bool:
    """Return True when what stands on such a memory stands on nothing: it was replaced, or taken
    back.
    """
    if ending.status is MemoryStatus.ACTIVE:
        return False
    quiet = ending.status is MemoryStatus.RETRACTED and ending.reason in QUIET
    return ending.lost or not quiet


# Which items a project gives up when it holds too many.


SHARE = 10
"""Of so many items one goes at a time, so that not every write has to look for one."""

KEPT_TYPES = frozenset({MemoryType.GOAL, MemoryType.TODO, MemoryType.DECISION})
"""What a project works for and by; given up only when nothing else is left."""

_KEPT_KINDS = frozenset(each.value.lower() for each in KEPT_TYPES)


class EvictionCandidate(NamedTuple):
    """An item that may have to go.

    Attributes:
        id: of the item; ties are broken by it.
        importance: on any one scale; what nobody weighed counts 0.
        at: when it came, milliseconds.
        kept: it is of ``KEPT_TYPES``, or a person confirmed it: it goes last.
    """

    id: str
    importance: float
    at: int
    kept: bool


def evicted(
    items: Iterable[EvictionCandidate], max_items: int, *, new: str | None = None
) -> tuple[str, ...]:
    """Return the ids of what has to go, the first to go first; empty while ``max_items`` are not
    exceeded.

    A tenth of what is there, and at least as many as are too many: what is not kept before what
    is, of these the least important, of these the oldest.

    Args:
        max_items: 1 or more.
        new: the item for which room is made. It stays: whoever wrote it would be told of an item
            that is gone.

    Raises:
        InvalidInput: ``max_items`` is below 1.
    """
    present = list(items)
    number = excess(len(present), max_items)
    present = [item for item in present if item.id != new]
    present.sort(key=lambda item: (item.kept, item.importance, item.at, item.id))
    return tuple(item.id for item in present[:number])


def excess(count: int, max_items: int) -> int:
    """Return how many of so many items have to go: 0, or a tenth and at least as many as are too
    many.

    Raises:
        InvalidInput: ``max_items`` is below 1.
    """
    if max_items < 1:
        raise InvalidInput("max_items must be 1 or more", field="max_items")
    too_many = count - max_items
    return max(too_many, count // SHARE) if too_many > 0 else 0


def held(item: ContextItem) -> EvictionCandidate:
    """Return an item as it is judged where nothing else is known of it."""
    return EvictionCandidate(
        item.context_item_id,
        item.importance or 0.0,
        parse_time(item.timestamp),
        item.kind in _KEPT_KINDS,
    )
