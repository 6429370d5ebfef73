r"""The status of a memory: the allowed transitions, and the changes that each requires.

Values in, plans out. A plan lists the rows to change; the service writes it in one transaction.

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
from typing import Any, Final, NamedTuple

from memgraph.clock import parse_time
from memgraph.errors import IllegalTransition, InvalidInput
from memgraph.model.context import ContextItem
from memgraph.model.enums import EdgeType, MemoryStatus, MemoryType
from memgraph.model.graph import CaseState
from memgraph.model.values import Edge, EdgeInput

LOSER_CONFIDENCE = 0.3
DISMISSED: Final = "dismissed"
"""The ``outcome`` in the ``resolution`` of a dismissed contradiction; others have no outcome."""


class StatusAction(StrEnum):
    """An action on a memory's status. Only RESTORE makes a retracted memory active again."""

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
        confidence: the stored base value, 0..1.
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
class ResolutionRecord:
    """The ``resolution`` of a resolved Contradicts edge, with all that is needed to undo it.

    Attributes:
        loser_prior_status: the loser's status before all resolutions in force against it.
        loser_prior_confidence: its stored confidence then, 0..1.
        supersedes_added: True if this resolution added the loser's id to the winner.
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
        """Restore a record that ``as_dict`` wrote; other keys are ignored.

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
    """Return the ``resolution`` of a Contradicts edge that is dismissed as no contradiction."""
    return {"outcome": DISMISSED, "reason": reason, "actor": actor}


def is_dismissed(resolution: Mapping[str, Any] | None) -> bool:
    """Return True if a ``resolution`` is a dismissal, without a winner and a loser."""
    return resolution is not None and resolution.get("outcome") == DISMISSED


def is_change_mark(edge: Edge | EdgeInput) -> bool:
    """Return True for an Updates edge that says what is probable and decides nothing."""
    return edge.edge_type is EdgeType.UPDATES and edge.weight < 1.0


def contradiction_state(resolution: Mapping[str, Any] | None) -> CaseState:
    """Return the state of a Contradicts edge with this ``resolution``."""
    if resolution is None:
        return "open"
    return "dismissed" if is_dismissed(resolution) else "resolved"


@dataclass(frozen=True, slots=True)
class ResolutionPlan:
    """Changes to write (empty ones left out) and the record to keep on the Contradicts edge."""

    changes: tuple[MemoryChange, ...]
    record: ResolutionRecord


def next_status(current: MemoryStatus, action: StatusAction) -> MemoryStatus:
    """Return the status that ``action`` leads to.

    Raises:
        IllegalTransition: the action is not allowed in this status.
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
    """Return True if the action is allowed in this status."""
    return (current, action) in _TRANSITIONS


def in_force(edge: Edge | EdgeInput) -> bool:
    """Return True for an Updates edge that replaces the older memory: no mark, not partial.

    A memory has at most one; see ``ix_memory_edges_successor``.
    """
    return edge.edge_type is EdgeType.UPDATES and edge.weight >= 1.0 and not edge.partial


def replaced_end(edge: Edge) -> str | None:
    """Return the memory that an edge in force, or the decision of a contradiction, replaces."""
    if in_force(edge):
        return edge.to_id
    loser = (edge.resolution or {}).get("loser_id")
    return None if loser is None or is_change_mark(edge) else str(loser)


def plan_supersession(new: MemoryState, old: MemoryState) -> MemoryChange | None:
    """Return the change of ``old`` when ``new`` replaces it; None: it stays as it is.

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
    # Its successor was retracted, or it lost a contradiction.
    if old.status is MemoryStatus.SUPERSEDED:
        return None
    return MemoryChange(old.memory_id, status=next_status(old.status, StatusAction.SUPERSEDE))


def plan_resolution(
    winner: MemoryState,
    loser: MemoryState,
    *,
    current: ResolutionRecord | None = None,
) -> ResolutionPlan:
    """Plan the resolution of a contradiction in favour of ``winner``.

    The loser is superseded (unless it is already superseded or retracted), its stored confidence
    is lowered to at most 0.3, and its id is added to the winner's ``supersedes``.

    Args:
        current: the record of another resolution in force against the same loser. Its prior values
            are carried over, so that the last reopening restores the original state in any order.

    Raises:
        InvalidInput: both are the same memory, or ``current`` is about another loser.
        IllegalTransition: the winner is not active.
    """
    if winner.memory_id == loser.memory_id:
        raise InvalidInput("a memory cannot contradict itself", memory_id=winner.memory_id)
    if current is not None and current.loser_id != loser.memory_id:
        raise InvalidInput("the current resolution is about another memory")
    if winner.status is not MemoryStatus.ACTIVE:
        raise IllegalTransition(
            f"a memory that is {winner.status.value} cannot win a contradiction: restore it first,"
            " or let the other one win",
            memory_id=winner.memory_id,
        )
    # Reopening removes the id only if this resolution added it.
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
) -> tuple[MemoryChange, ...]:
    """Return the changes that reopen a resolved contradiction, without undoing later ones.

    The loser gets back its prior status and confidence, unless ``replaced``, or it was retracted
    meanwhile (only ``restore`` undoes that), or its confidence was changed.

    Args:
        winner, loser: their current states; None for an erased memory.
        replaced: True if the loser is still replaced, or lost another contradiction.
    """
    changes = []
    if loser is not None and not replaced:
        changes.append(_restored(record, loser))
    if winner is not None and record.supersedes_added and record.loser_id in winner.supersedes:
        rest = tuple(memory_id for memory_id in winner.supersedes if memory_id != record.loser_id)
        changes.append(MemoryChange(winner.memory_id, supersedes=rest))
    return _filled(*changes)


def _restored(record: ResolutionRecord, loser: MemoryState) -> MemoryChange:
    reactivates = record.loser_prior_status is MemoryStatus.ACTIVE and may(
        loser.status, StatusAction.REACTIVATE
    )
    # A confidence that differs from the one after the resolution was changed since and is kept.
    prior = record.loser_prior_confidence
    untouched = loser.confidence == min(prior, LOSER_CONFIDENCE)
    return MemoryChange(
        loser.memory_id,
        status=MemoryStatus.ACTIVE if reactivates else None,
        confidence=prior if untouched and prior != loser.confidence else None,
    )


def _filled(*changes: MemoryChange) -> tuple[MemoryChange, ...]:
    return tuple(change for change in changes if not change.is_empty)


# How a memory ended, and whether its content is refuted by that.


EVICTED: Final = "evicted"
TASK_CLOSED: Final = "task_closed"
CLEARED: Final = "cleared"
DECAYED: Final = "decayed"

QUIET: Final = frozenset({EVICTED, TASK_CLOSED, CLEARED, DECAYED})
"""Reasons of a retraction by housekeeping, which does not refute the memory."""


def reason_of(status: MemoryStatus, reason: str) -> str:
    """Return the reason with which a memory of a status is retracted.

    A superseded memory stays refuted, which the reason of housekeeping alone would hide.
    """
    if status is MemoryStatus.SUPERSEDED and reason in QUIET:
        return f"{reason} after its correction"
    return reason


def replaced_by(memory_id: str, reason: str | None) -> str:
    """Return the reason for superseding a memory that another replaced."""
    return f"replaced by {memory_id}" + (f": {reason}" if reason else "")


def lost_to(winner_id: str, reason: str) -> str:
    """Return the reason for superseding a memory that lost a contradiction."""
    return f"lost to {winner_id}: {reason}"


ENDED_BY: Final = "ended by "


def ended_by(memory_id: str) -> str:
    """Return the reason for superseding a memory that a turn says is over."""
    return f"{ENDED_BY}{memory_id}"


class EndOfLife(NamedTuple):
    """The facts that decide whether a memory is refuted.

    Attributes:
        status: its current status.
        reason: the reason for this status; None if there is none.
        lost: True if it lost a contradiction.
        since: when it got this status, milliseconds; 0 for an active memory.
        actor: who gave it this status; empty for an active memory.
    """

    status: MemoryStatus
    reason: str | None = None
    lost: bool = False
    since: int = 0
    actor: str = ""


def refuted(ending: EndOfLife) -> bool:
    """Return True if a memory no longer supports others: it was replaced, or retracted as wrong."""
    if ending.status is MemoryStatus.ACTIVE:
        return False
    quiet = ending.status is MemoryStatus.RETRACTED and ending.reason in QUIET
    return ending.lost or not quiet


# Which items of a project are evicted when there are too many.


SHARE = 10
"""One of this many items is evicted at a time, so that not every write has to evict."""

KEPT_TYPES = frozenset({MemoryType.GOAL, MemoryType.TODO, MemoryType.DECISION})
"""The goals, todos and decisions of a project, which are evicted last."""

_KEPT_KINDS = frozenset(each.value.lower() for each in KEPT_TYPES)


def evicted(
    items: Iterable[ContextItem], max_items: int, *, new: str | None = None
) -> tuple[str, ...]:
    """Return the ids of the items to evict, in order; empty while ``max_items`` is not exceeded.

    Goals, todos and decisions go last; among the others and among these the least important goes
    first, then the oldest.

    Args:
        max_items: 1 or more.
        new: the item for which room is made. It is not evicted: its writer expects to find it.

    Raises:
        InvalidInput: ``max_items`` is below 1.
    """
    present = list(items)
    number = excess(len(present), max_items)
    old = [item for item in present if item.context_item_id != new]
    old.sort(key=_worth)
    return tuple(item.context_item_id for item in old[:number])


def _worth(item: ContextItem) -> tuple[bool, int, int, str]:
    # In hundredths, as the importance of a memory is stored.
    importance = round((item.importance or 0.0) * 100)
    is_kept = item.kind in _KEPT_KINDS
    return is_kept, importance, parse_time(item.timestamp), item.context_item_id


def excess(count: int, max_items: int) -> int:
    """Return the number of items to evict: 0, or a tenth and at least as many as are too many.

    Raises:
        InvalidInput: ``max_items`` is below 1.
    """
    if max_items < 1:
        raise InvalidInput("max_items must be 1 or more", field="max_items")
    too_many = count - max_items
    return max(too_many, count // SHARE) if too_many > 0 else 0
