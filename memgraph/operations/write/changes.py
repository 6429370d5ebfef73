"""Changes of a memory's status: confirm, retract, restore, resolve, dismiss, reopen.

Each function works inside one write transaction and returns its journal entries.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from memgraph.config.schema import DecaySettings
from memgraph.errors import Conflict, NotFound
from memgraph.ids import short_id
from memgraph.model.enums import EdgeType, MemoryStatus
from memgraph.model.values import Edge, Memory
from memgraph.rules.evidence import independent_sources, strengthened
from memgraph.rules.lifecycle import (
    QUIET,
    MemoryChange,
    MemoryState,
    ResolutionRecord,
    StatusAction,
    dismissal,
    in_force,
    is_change_mark,
    is_dismissed,
    lost_to,
    next_status,
    plan_reopening,
    plan_resolution,
    reason_of,
)
from memgraph.store import decay, edges, entity_records, memories, sessions, supports
from memgraph.store.evidence import last_retractions
from memgraph.store.snapshot import JournalledTransaction, NewEntry, Snapshot
from memgraph.store.visibility import STANDING, View


def confirm(transaction: JournalledTransaction, memory_id: str, *, view: View) -> list[NewEntry]:
    """Confirm an active memory: full confidence, no decay. Raises Conflict."""
    memory = memories.get(transaction, memory_id, view)
    if memory.status is not MemoryStatus.ACTIVE:
        require_unreplaced(transaction, memory_id, view=view)
        raise Conflict(
            f"only an active memory can be confirmed; this one is {memory.status.value}",
            memory_id=memory_id,
        )
    memories.update(
        transaction, memory_id, confidence=1.0, decay_rate=0.0, updated_at=transaction.at
    )
    before = {"confidence": memory.confidence, "decay_rate": memory.decay_rate}
    return [NewEntry("confirm", memory_id, {"before": before})]


def is_protected(snapshot: Snapshot, memory_id: str) -> bool:
    """Return True if a person confirmed a memory, or protected an entity that it names."""
    return edges.was_confirmed(snapshot, memory_id) or any(
        entity_records.of_memory(snapshot, memory_id).values()
    )


def require_unreplaced(snapshot: Snapshot, memory_id: str, *, view: View | None) -> None:
    """Raise Conflict if an active memory has replaced another, or won a contradiction with it.

    The error names it in ``replaced_by``, unless the view hides it.
    """
    ids, _ = prevailing(snapshot, memory_id)
    active = memories.active_ids(snapshot, ids)
    if not active:
        return
    visible = sorted(memories.existing_ids(snapshot, sorted(active), view))
    by = visible[0] if visible else "a memory that you may not see"
    raise Conflict(
        f"the memory was replaced by {by}; change that one",
        memory_id=memory_id,
        replaced_by=visible,
    )


def prevailing(snapshot: Snapshot, memory_id: str) -> tuple[list[str], list[Edge]]:
    """Return the memories that replaced one or won against it, those that replaced them or won
    against them, and so on; then the contradictions that they won.
    """
    ids, decided = [memory_id, *edges.successors(snapshot, memory_id)], list[Edge]()
    for each in ids:
        for edge, record in _lost(snapshot, each):
            decided.append(edge)
            if record.winner_id not in ids:
                ids += [record.winner_id, *edges.successors(snapshot, record.winner_id)]
    return ids[1:], decided


def correction_of(
    snapshot: Snapshot, memory_id: str, is_equal: Callable[[Memory], bool], *, view: View
) -> str | None:
    """Return the memory that already replaced one with the same text, or None.

    Args:
        is_equal: returns True for a memory that is equal to the correction.

    Raises:
        Conflict: an active memory with another text has replaced it; see ``replaced_by``.
    """
    chain = edges.successors(snapshot, memory_id)
    visible = memories.existing_ids(snapshot, chain, view, statuses=STANDING)
    first = next((each for each in chain if each in visible), None)
    if first is not None and is_equal(memories.get(snapshot, first)):
        return first
    require_unreplaced(snapshot, memory_id, view=view)
    return None


def strengthen(
    transaction: JournalledTransaction,
    memory_id: str,
    *,
    source_id: str,
    evidence: Sequence[str] = (),
) -> list[NewEntry]:
    """Add evidence and a source to a memory that was stated again, unless both are known.

    Args:
        source_id: the id of a stored source.
        evidence: the ids of the turns that state it.
    """
    grounds = sessions.derived_from(transaction, memory_id) if evidence else set()
    further = [ground for ground in evidence if ground not in grounds]
    before = independent_sources(*supports.origins(transaction, memory_id))
    added = supports.add(transaction, memory_id, source_id)
    if not further and not added:
        return []
    memories.insert_derivations(
        transaction, [(memory_id, ground) for ground in further], added_at=transaction.at
    )
    [memory] = memories.get_many(transaction, [memory_id])
    after = independent_sources(*supports.origins(transaction, memory_id))
    gained = strengthened(memory.confidence, before, after)
    confidence = round(max(gained, memory.confidence), 6)
    # A repetition counts as an access, so facts that people keep mentioning do not expire.
    used = max(transaction.at, memory.last_accessed_at or 0)
    memories.update(
        transaction,
        memory_id,
        confidence=confidence,
        last_accessed_at=used,
        updated_at=transaction.at,
    )
    details = {
        "source_id": source_id,
        "turns": further,
        "sources": after,
        "confidence": {"before": memory.confidence, "after": confidence},
    }
    return [NewEntry("strengthen", memory_id, details)]


def retract(
    transaction: JournalledTransaction,
    memory_id: str,
    *,
    reason: str,
    view: View,
) -> list[NewEntry]:
    """Retract a memory. It keeps its history and is no longer recalled.

    A retracted memory stays as it is, with the first reason.

    Raises:
        Conflict: an active memory has replaced it; see ``replaced_by``.
    """
    before = memories.get(transaction, memory_id, view).status
    if before is MemoryStatus.RETRACTED:
        return []
    if before is MemoryStatus.SUPERSEDED:
        require_unreplaced(transaction, memory_id, view=view)
    status, reason = next_status(before, StatusAction.RETRACT), reason_of(before, reason)
    memories.set_status(transaction, memory_id, status, reason=reason)
    return [NewEntry("retract", memory_id, {"reason": reason})]


def restore(
    transaction: JournalledTransaction, memory_id: str, *, reason: str, view: View | None
) -> list[NewEntry]:
    """Restore a memory that was retracted, or superseded by nothing that is still active.

    A retracted memory whose successor is active becomes superseded; a memory that it had replaced
    and that was restored meanwhile is superseded again.

    A ``view`` of None means an internal call, for which every memory is visible.
    """
    memory = memories.get(transaction, memory_id, view)
    if not memory.content:
        raise Conflict("an erased memory cannot be restored", memory_id=memory_id)
    replaced = bool(edges.still_replaced(transaction, [memory_id]))
    if memory.status is not MemoryStatus.RETRACTED and replaced:
        require_unreplaced(transaction, memory_id, view=view)
    if memory.status is MemoryStatus.SUPERSEDED and not replaced:
        if lost := [edge.edge_id for edge, _ in _lost(transaction, memory_id)]:
            raise Conflict(
                f"this memory lost a contradiction; reopen {lost[0]} first", edge_ids=lost
            )
        status = next_status(memory.status, StatusAction.REACTIVATE)
    else:
        status = next_status(memory.status, StatusAction.RESTORE)
    if replaced:
        status = next_status(status, StatusAction.SUPERSEDE)
    memories.set_status(transaction, memory_id, status, reason=reason)
    return [
        NewEntry("restore", memory_id, {"reason": reason}),
        *replace_again(transaction, [memory_id], view=view),
    ]


def replace_again(
    transaction: JournalledTransaction, memory_ids: Collection[str], *, view: View | None
) -> list[NewEntry]:
    """Supersede again the memories that restored memories had replaced entirely."""
    entries = []
    for old, new in edges.replaced_and_active(transaction, memory_ids, view).items():
        status = next_status(MemoryStatus.ACTIVE, StatusAction.SUPERSEDE)
        reason = f"replaced by {new}"
        memories.set_status(transaction, old, status, reason=reason)
        entries.append(NewEntry("supersede", old, {"by": new}))
    return entries


def reinstate(
    transaction: JournalledTransaction, memory_id: str, by: Collection[str], *, reason: str
) -> list[NewEntry]:
    """Make a superseded memory active again when nothing contradicts it any more.

    Contradictions that it lost to memories in ``by`` are reopened.
    """
    entries = []
    for edge, record in _lost(transaction, memory_id):
        if record.winner_id in by:
            entries += reopen(transaction, edge, reason=reason)
    if memories.get(transaction, memory_id).status is MemoryStatus.SUPERSEDED:
        status = next_status(MemoryStatus.SUPERSEDED, StatusAction.REACTIVATE)
        memories.set_status(transaction, memory_id, status, reason=reason)
        entries.append(NewEntry("restore", memory_id, {"reason": reason}))
    return entries


def contradiction_or_mark(snapshot: Snapshot, edge_id: str, view: View) -> Edge:
    """Return the Contradicts edge, or the Updates edge that is or was a mark, with this id.

    Raises:
        NotFound: it does not exist, an end is hidden, or it is neither.
        Conflict: it is an Updates edge in force that never was a mark.
    """
    edge = _visible(snapshot, edge_id, view)
    was_mark = is_change_mark(edge) or edge.resolution is not None
    if edge.edge_type is not EdgeType.CONTRADICTS and not was_mark:
        message = f"{edge_id} is neither a contradiction nor a mark, its type is {edge.edge_type}"
        if edge.edge_type is EdgeType.UPDATES:
            newer, older = short_id(edge.from_id), short_id(edge.to_id)
            raise Conflict(
                f"{short_id(edge_id)} is in force and was no mark; to undo it, retract {newer}"
                f" and then restore {older} (the command is restore-memory)",
                edge_id=edge_id,
            )
        raise NotFound(message, edge_id=edge_id)
    return edge


def open_mark(snapshot: Snapshot, edge_id: str, view: View) -> Edge:
    """Return the open mark with this id: a change or a contradiction of a weight below 1.

    Raises:
        NotFound: it does not exist, an end is hidden, or it is neither.
        Conflict: it is decided or in force, or it is a contradiction of weight 1.
    """
    edge = contradiction_or_mark(snapshot, edge_id, view)
    if edge.edge_type is EdgeType.CONTRADICTS and edge.weight >= 1.0:
        raise Conflict(
            f"{edge_id} is a contradiction, no mark, and needs a winner:"
            f" memgraph resolve ORC {edge_id} --winner ID --reason TEXT",
            edge_id=edge_id,
        )
    if edge.resolution is not None:
        raise Conflict("this mark is decided; reopen it first", edge_id=edge_id)
    return edge


def _visible(snapshot: Snapshot, edge_id: str, view: View) -> Edge:
    edge = edges.get(snapshot, edge_id)
    if len(memories.existing_ids(snapshot, [edge.from_id, edge.to_id], view)) < 2:
        raise edges.missing(edge_id)
    return edge


def resolve(
    transaction: JournalledTransaction,
    edge: Edge,
    *,
    winner_id: str,
    reason: str,
    view: View | None,
) -> list[NewEntry]:
    """Decide an open contradiction: the loser is superseded, nothing is deleted.

    If it was resolved in favour of the same winner, nothing changes: the first reason stays. The
    resolution is a column of the edge, and a pair has one Contradicts edge, so that the transaction
    in which both are read is enough for one resolution.

    Raises:
        NotFound: it is a mark of a change.
        Conflict: it was resolved otherwise, the winner is not one of its two memories, or an active
            memory has replaced one of them; see ``replaced_by``.
    """
    if edge.edge_type is not EdgeType.CONTRADICTS:
        message = f"{edge.edge_id} is a mark of a change; accept or dismiss it"
        raise NotFound(message, edge_id=edge.edge_id)
    if winner_id not in (edge.from_id, edge.to_id):
        raise Conflict(
            "the winner must be one of the two contradicting memories:"
            f" {short_id(edge.from_id)} or {short_id(edge.to_id)}",
            winner=winner_id,
            sides=[edge.from_id, edge.to_id],
        )
    if edge.resolution is not None:
        by = edge.resolution.get("winner_id")
        if by == winner_id:
            return []
        raise Conflict(
            "this contradiction is already decided; reopen it first",
            edge_id=edge.edge_id,
            replaced_by=[by] if by else [],
        )
    loser_id = edge.to_id if winner_id == edge.from_id else edge.from_id
    winner, loser = state_of(transaction, winner_id), state_of(transaction, loser_id)
    if winner.status is MemoryStatus.SUPERSEDED:
        require_unreplaced(transaction, winner_id, view=view)
    # A memory may lose several contradictions, but a corrected one has nothing to lose.
    if memories.active_ids(transaction, edges.successors(transaction, loser_id)):
        require_unreplaced(transaction, loser_id, view=view)
    others = (
        record for each, record in _lost(transaction, loser_id) if each.edge_id != edge.edge_id
    )
    plan = plan_resolution(winner, loser, current=next(others, None))
    loss_reason = lost_to(winner_id, reason)
    for change in plan.changes:
        apply(transaction, change, reason=loss_reason)
    if set(last_retractions(transaction, loser_id)[:1]) & QUIET:
        # Housekeeping had retracted it; the resolution does not bring it back.
        status = MemoryStatus.RETRACTED
        memories.set_status(transaction, loser_id, status, reason=loss_reason)
    resolution = plan.record.as_dict() | {"reason": reason, "actor": transaction.actor}
    edges.set_resolution(transaction, edge.edge_id, resolution)
    details = {"edge_id": edge.edge_id, **resolution, **_left_with(transaction, loser_id)}
    return [NewEntry("resolve", winner_id, details)]


def dismiss(transaction: JournalledTransaction, edge: Edge, *, reason: str) -> list[NewEntry]:
    """Dismiss an open contradiction or mark: both sides hold, and it is not raised again.

    Raises:
        Conflict: it is already resolved or dismissed.
    """
    if edge.resolution is not None:
        raise Conflict("this is not open; reopen it before dismissing it", edge_id=edge.edge_id)
    resolution = dismissal(reason=reason, actor=transaction.actor)
    edges.set_resolution(transaction, edge.edge_id, resolution)
    return [NewEntry("dismiss", edge.from_id, {"edge_id": edge.edge_id, **resolution})]


def reopen(transaction: JournalledTransaction, edge: Edge, *, reason: str) -> list[NewEntry]:
    """Undo a resolution, a dismissal, or the acceptance of a mark.

    The loser becomes active again unless it lost another contradiction or is replaced.

    Raises:
        Conflict: the contradiction or the mark is open.
    """
    if edge.resolution is None:
        raise Conflict("this contradiction or mark is open", edge_id=edge.edge_id)
    if in_force(edge):
        return _reopen_change(transaction, edge, reason)
    if is_dismissed(edge.resolution):
        edges.set_resolution(transaction, edge.edge_id, None)
        nobody = {"loser_id": None}
        return [
            NewEntry("reopen", edge.from_id, {"edge_id": edge.edge_id, "reason": reason} | nobody)
        ]
    record = ResolutionRecord.from_dict(edge.resolution)
    changes = plan_reopening(
        record,
        winner=_state_or_none(transaction, record.winner_id),
        loser=_state_or_none(transaction, record.loser_id),
        replaced=bool(
            edges.still_replaced(transaction, [record.loser_id], ignored_edge=edge.edge_id)
        ),
    )
    for change in changes:
        other = record.winner_id if change.memory_id == record.loser_id else record.loser_id
        apply(transaction, change, reason=f"contradiction with {other} reopened: {reason}")
    edges.set_resolution(transaction, edge.edge_id, None)
    _retract_quietly(transaction, record.loser_id)
    details = {"edge_id": edge.edge_id, "reason": reason, "loser_id": record.loser_id}
    return [
        NewEntry("reopen", record.winner_id, details | _left_with(transaction, record.loser_id))
    ]


def _reopen_change(transaction: JournalledTransaction, edge: Edge, reason: str) -> list[NewEntry]:
    edges.reopen_mark(transaction, edge)
    old_id = edge.to_id
    details = {"edge_id": edge.edge_id, "reason": reason, "loser_id": old_id}
    entries = [NewEntry("reopen", edge.from_id, details)]
    if edges.still_replaced(transaction, [old_id]) or _lost(transaction, old_id):
        return entries
    because = f"change by {edge.from_id} reopened: {reason}"
    return entries + reinstate(transaction, old_id, (), reason=because)


def _retract_quietly(transaction: JournalledTransaction, memory_id: str) -> None:
    """Retract the loser again if housekeeping had retracted it and it lost nothing else."""
    reasons = last_retractions(transaction, memory_id)
    if len(reasons) == 2 and reasons[1] in QUIET and not _lost(transaction, memory_id):
        status = MemoryStatus.RETRACTED
        memories.set_status(transaction, memory_id, status, reason=reasons[1])


def apply(transaction: JournalledTransaction, change: MemoryChange, *, reason: str) -> None:
    """Write one planned change."""
    if change.status is not None:
        memories.set_status(transaction, change.memory_id, change.status, reason=reason)
    values: dict[str, Any] = {}
    if change.confidence is not None:
        values["confidence"] = change.confidence
    if change.supersedes is not None:
        attributes = memories.get(transaction, change.memory_id).attributes
        attributes = {
            key: attribute for key, attribute in attributes.items() if key != "supersedes"
        }
        if change.supersedes:
            attributes["supersedes"] = list(change.supersedes)
        values["attributes"] = attributes
    if values:
        memories.update(transaction, change.memory_id, updated_at=transaction.at, **values)


def _left_with(snapshot: Snapshot, loser_id: str) -> dict[str, float]:
    state = _state_or_none(snapshot, loser_id)
    return {} if state is None else {"loser_confidence": state.confidence}


def _state_or_none(snapshot: Snapshot, memory_id: str) -> MemoryState | None:
    try:
        return state_of(snapshot, memory_id)
    except NotFound:
        return None


def _lost(snapshot: Snapshot, loser_id: str) -> list[tuple[Edge, ResolutionRecord]]:
    """Return the contradictions that a memory lost, with their resolutions, oldest first."""
    reasons = []
    for edge in edges.of_memory(snapshot, loser_id, [EdgeType.CONTRADICTS]):
        if edge.resolution is None or is_dismissed(edge.resolution):
            continue
        record = ResolutionRecord.from_dict(edge.resolution)
        if record.loser_id == loser_id:
            reasons.append((edge, record))
    return reasons


def state_of(snapshot: Snapshot, memory_id: str) -> MemoryState:
    """Return the state that the lifecycle rules decide on. Raises NotFound."""
    memory = memories.get(snapshot, memory_id)
    won = memory.attributes.get("supersedes", [])
    return MemoryState(
        memory_id=memory_id,
        status=memory.status,
        confidence=memory.confidence,
        supersedes=tuple(str(memory_id) for memory_id in won) if isinstance(won, list) else (),
    )


def restore_used(
    transaction: JournalledTransaction, used: Mapping[str, int], settings: DecaySettings
) -> None:
    """Restore memories that decayed although another process had used them.

    Args:
        used: the times at which another process delivered the memories, by id.
    """
    for memory_id, at in used.items():
        retired = decay.retired(transaction, memory_id)
        if retired is None or retired[1] < at:
            continue
        row, retired_at = retired
        rule = decay.ExpiryRule(retired_at, settings.threshold, settings.exponent)
        # It may have expired again since that use.
        if not rule.ends(row._replace(last_accessed_at=at)):
            reason = "used before it was retired"
            transaction.record(restore(transaction, memory_id, reason=reason, view=None))
