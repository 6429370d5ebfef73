"""Retract a source: its memories, and memories derived only from them.

Memories with another source or other evidence stay. Memories that had been replaced only by
retracted ones become active again, because a retracted source is not evidence against them. Hidden
evidence counts when deciding what stays, but only visible memories are reported and changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Literal

from memgraph.model.enums import MemoryStatus, SourceName
from memgraph.model.sources import (
    MAX_TOLD,
    NamedSource,
    ReinstatedMemory,
    RetainedMemory,
    RetractedMemory,
    SourceRetraction,
    WeakenedMemory,
)
from memgraph.operations.provenance.sources import no_source
from memgraph.operations.write import changes
from memgraph.rules.evidence import Origin, stands_without, weakened
from memgraph.store import edges, memories, sources, supports
from memgraph.store.snapshot import JournalledTransaction, NewEntry, Snapshot
from memgraph.store.visibility import View

Because = Literal["given", "derived"]
KeptBecause = Literal["supported", "grounds"]
SOURCE_RETRACTED: Final = "its source was retracted"
"""The prefix of the reason of each status that a retraction sets."""


def plan_retraction(snapshot: Snapshot, source: NamedSource, view: View) -> SourceRetraction:
    """Return what retracting a source would change among the visible memories, with whole lists.

    Raises:
        NotFound: no visible memory, whether active or retracted, comes from the source.
    """
    supported = sources.supported_by(snapshot, source, view)
    if not supported and sources.info(snapshot, source, view) is None:
        raise no_source(source)
    is_gone, given_ids = is_of(source), sources.memories_of(snapshot, source, view)
    own_ids = set(given_ids)
    for memory_id in (key for key in supported if key not in own_ids):
        # For a memory whose own source was retracted before, this source may be the last one.
        own, _ = supports.origins(snapshot, memory_id)
        given_ids += [memory_id] * any(map(is_gone, own))
    elsewhere = supported_elsewhere(snapshot, given_ids, is_gone)
    gone: dict[str, Because] = {key: "given" for key in given_ids if key not in elsewhere}
    kept: dict[str, KeptBecause] = {key: "supported" for key in given_ids if key in elsewhere}
    _cascade(snapshot, gone, kept, is_gone, view)
    losses = {key: rows for key, rows in supported.items() if key not in gone}
    confidences = {
        memory.memory_id: memory.confidence for memory in memories.get_many(snapshot, list(losses))
    }
    reinstated = _reinstated(snapshot, gone, view)
    reopened = sources.decided_for(snapshot, reinstated)
    summaries = sources.summaries(snapshot, [*gone, *kept, *losses, *reinstated])

    def named(memory_id: str) -> dict[str, Any]:
        return {"memory_id": memory_id, "summary": summaries[memory_id]}

    def loss_of(memory_id: str, rows: Sequence[str]) -> WeakenedMemory:
        before, gains = confidences[memory_id], supports.gained(snapshot, memory_id, rows)
        after = round(weakened(before, gains), 6)
        return WeakenedMemory(**named(memory_id), confidence_before=before, confidence_after=after)

    reasons = Counter(gone.values())
    return SourceRetraction(
        kind=source.kind,
        name=source.name,
        dry_run=True,
        given=reasons["given"],
        derived=reasons["derived"],
        kept=len(kept),
        weakened=len(losses),
        reinstated=len(reinstated),
        reopened=len(reopened),
        retracted_items=tuple(RetractedMemory(**named(key), because=gone[key]) for key in gone),
        kept_items=tuple(RetainedMemory(**named(key), because=kept[key]) for key in kept),
        weakened_items=tuple(loss_of(*loss) for loss in losses.items()),
        reinstated_items=tuple(
            ReinstatedMemory(**named(key), by=by) for key, by in reinstated.items()
        ),
        reopened_items=tuple(reopened),
        same_name=tuple(
            other.name
            for other in sources.of_same_name(snapshot, source)
            if _stated_by(snapshot, other, view) - gone.keys()
        ),
    )


def _stated_by(snapshot: Snapshot, source: NamedSource, view: View) -> set[str]:
    """Return the visible, unretracted memories that a source states, alone or with others."""
    return {
        *sources.memories_of(snapshot, source, view),
        *sources.supported_by(snapshot, source, view),
    }


def retract(
    transaction: JournalledTransaction, source: NamedSource, view: View, *, reason: str
) -> SourceRetraction:
    """Retract a source, with a journal entry for each memory and one for the source."""
    plan = plan_retraction(transaction, source, view)
    supported = sources.supported_by(transaction, source, view)
    own = set(sources.memories_of(transaction, source, view))
    details = {"reason": reason, "source": source.kind.value, "name": source.name}
    ids, why = [item.memory_id for item in plan.retracted_items], f"{SOURCE_RETRACTED}: {reason}"
    memories.set_statuses(transaction, ids, MemoryStatus.RETRACTED, reason=why)
    transaction.record(
        [
            NewEntry("retract", item.memory_id, details | {"by": item.because})
            for item in plan.retracted_items
        ]
    )
    for loss in plan.weakened_items:
        _weaken(transaction, loss, supported[loss.memory_id], details)
    for item in plan.kept_items:
        if item.because == "supported" and item.memory_id in own:
            _disown(transaction, item.memory_id, details)
    _reinstate(transaction, {item.memory_id: item.by for item in plan.reinstated_items}, reason)
    numbers = plan.model_dump(include={"given", "derived", "kept", "weakened", "reinstated"})
    entry = {"kind": source.kind.value, "name": source.name, "reason": reason}
    transaction.record([NewEntry("retract_source", None, entry | numbers)])
    return plan.model_copy(update={"dry_run": False})


def shortened(report: SourceRetraction) -> SourceRetraction:
    """Return a report with at most ``MAX_TOLD`` entries in each list."""
    lists = {name: items for name, items in report if name.endswith("_items")}
    cut = any(len(items) > MAX_TOLD for items in lists.values())
    shown = {name: items[:MAX_TOLD] for name, items in lists.items()}
    return report.model_copy(update={**shown, "cut": cut})


def supported_elsewhere(
    snapshot: Snapshot, memory_ids: Sequence[str], is_gone: Callable[[Origin], bool]
) -> set[str]:
    """Return those of the memories that a source beside their own states as well.

    Args:
        is_gone: returns True for a source that does not count.
    """
    return {
        memory_id
        for memory_id in sources.supported(snapshot, memory_ids)
        if stands_without(*supports.origins(snapshot, memory_id), is_gone)
    }


def _weaken(
    transaction: JournalledTransaction,
    loss: WeakenedMemory,
    source_ids: Sequence[str],
    details: Mapping[str, str],
) -> None:
    before, after = loss.confidence_before, loss.confidence_after
    supports.end(transaction, loss.memory_id, source_ids)
    if after != before:
        memories.update(transaction, loss.memory_id, confidence=after, updated_at=transaction.at)
    entry = {**details, "source_ids": source_ids, "confidence": {"before": before, "after": after}}
    transaction.record([NewEntry("weaken", loss.memory_id, entry)])


def _reinstate(
    transaction: JournalledTransaction, reinstated: Mapping[str, Collection[str]], reason: str
) -> None:
    decided_ids = edges.losers(transaction, list(reinstated))
    for memory_id, replacements in reinstated.items():
        # The id comes before the reason: whoever does not see the replacement reads neither.
        because = f"its replacement {min(replacements)} was retracted: {reason}"
        if memory_id in decided_ids:
            entries = changes.reinstate(transaction, memory_id, replacements, reason=because)
        else:
            memories.set_status(transaction, memory_id, MemoryStatus.ACTIVE, reason=because)
            entries = [NewEntry("restore", memory_id, {"reason": because})]
        transaction.record(entries)


def _disown(transaction: JournalledTransaction, memory_id: str, details: Mapping[str, str]) -> None:
    """Remove a memory's own source; the memory stays because of its other sources."""
    [memory] = memories.get_many(transaction, [memory_id])
    if supports.end_own(transaction, memory_id):
        same = {"before": memory.confidence, "after": memory.confidence}
        entry = {**details, "source_ids": [memory.source_id], "confidence": same}
        transaction.record([NewEntry("weaken", memory_id, entry)])


def is_of(source: NamedSource) -> Callable[[Origin], bool]:
    """Return a function that tests if an origin is this source, or lies in its folder."""
    folder = source.name.rstrip("/") + "/"

    def gone(origin: Origin) -> bool:
        if source in origin.names:
            return True
        paths = (name for kind, name in origin.names if kind is source.kind is SourceName.PATH)
        return any(path.startswith(folder) for path in paths)

    return gone


def _cascade(
    snapshot: Snapshot,
    gone: dict[str, Because],
    kept: dict[str, KeptBecause],
    is_gone: Callable[[Origin], bool],
    view: View,
) -> None:
    """Add the memories that depend only on retracted ones, at any distance."""
    newly_gone = list(gone)
    while newly_gone:
        evidence = sources.derived_from(snapshot, newly_gone, view)
        newly_gone = []
        new = [memory_id for memory_id in evidence if memory_id not in gone]
        unsure = [memory_id for memory_id in new if kept.get(memory_id) != "supported"]
        otherwise_supported = supported_elsewhere(snapshot, unsure, is_gone)
        for memory_id in new:
            if memory_id in otherwise_supported or kept.get(memory_id) == "supported":
                kept[memory_id] = "supported"
            elif any(ground not in gone for ground in evidence[memory_id]):
                kept[memory_id] = "grounds"
            else:
                kept.pop(memory_id, None)
                gone[memory_id] = "derived"
                newly_gone.append(memory_id)


def _reinstated(
    snapshot: Snapshot, retracted: Collection[str], view: View
) -> dict[str, tuple[str, ...]]:
    """Return the superseded memories whose successors are all retracted, with those successors."""
    successors: dict[str, dict[str, None]] = {}
    ids = list(retracted)
    for old, new in sources.replaced_by(snapshot, ids, view):
        if old not in retracted:
            successors.setdefault(old, {})[new] = None
    replacers = edges.still_replaced(snapshot, list(successors), retracted=ids)
    return {old: tuple(new) for old, new in successors.items() if old not in replacers}
