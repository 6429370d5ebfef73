"""Retract a source: its memories, and memories derived only from them.

Memories with another source or other evidence stay. Memories that had been replaced only by
retracted ones become active again, because a retracted source is not evidence against them. Hidden
evidence counts when deciding what stays, but only visible memories are reported and changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Literal, NamedTuple, TypeVar

from memgraph.model.enums import MemoryStatus, SourceName
from memgraph.model.sources import (
    MAX_TOLD,
    DisputedPair,
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

F = TypeVar("F")
SOURCE_RETRACTED: Final = "its source was retracted"
"""The prefix of the reason of each status that a retraction sets."""


class SourceLoss(NamedTuple):
    """The confidence that a memory loses when one of its sources is retracted.

    ``source_ids`` are the rows of that source.
    """

    source_ids: tuple[str, ...]
    before: float
    after: float


@dataclass(slots=True)
class RetractionPlan:
    """The effect of a retraction, by memory id, in the order found.

    Attributes:
        gone: memories to retract: stated by the source (``given``) or ``derived`` from such ones.
        kept: memories that stay: another source or other evidence (``grounds``) supports them.
        said_own: memories that were stored from this source.
        weakened: memories that lose the support of this source.
        reinstated: superseded memories that become active again, with the retracted memories that
            had replaced them.
        reopened: contradictions that are open again.
    """

    gone: dict[str, Literal["given", "derived"]] = field(default_factory=dict)
    kept: dict[str, Literal["supported", "grounds"]] = field(default_factory=dict)
    said_own: set[str] = field(default_factory=set)
    weakened: dict[str, SourceLoss] = field(default_factory=dict)
    reinstated: dict[str, tuple[str, ...]] = field(default_factory=dict)
    reopened: list[DisputedPair] = field(default_factory=list)


def plan_retraction(snapshot: Snapshot, source: NamedSource, view: View) -> RetractionPlan:
    """Return what retracting a source would change among the visible memories.

    Raises:
        NotFound: no visible memory, whether active or retracted, comes from the source.
    """
    supported = sources.supported_by(snapshot, source, view)
    if not supported and sources.info(snapshot, source, view) is None:
        raise no_source(source)
    plan, is_gone = RetractionPlan(), is_of(source)
    given_ids = sources.memories_of(snapshot, source, view)
    plan.said_own = known_ids = set(given_ids)
    for memory_id in [key for key in supported if key not in known_ids]:
        # For a memory whose own source was retracted before, this source may be the last one.
        own, _ = supports.origins(snapshot, memory_id)
        given_ids += [memory_id] * any(map(is_gone, own))
    otherwise_supported = supported_elsewhere(snapshot, given_ids, is_gone)
    for memory_id in given_ids:
        if memory_id in otherwise_supported:
            plan.kept[memory_id] = "supported"
        else:
            plan.gone[memory_id] = "given"
    _cascade(snapshot, plan, is_gone, view)
    remaining = {key: tuple(rows) for key, rows in supported.items() if key not in plan.gone}
    plan.weakened = _weakened(snapshot, remaining)
    plan.reinstated = _reinstated(snapshot, plan.gone, view)
    plan.reopened = sources.decided_for(snapshot, plan.reinstated)
    return plan


def retract(
    transaction: JournalledTransaction, source: NamedSource, plan: RetractionPlan, *, reason: str
) -> None:
    """Apply a plan, with a journal entry for each memory and one for the source."""
    ids = list(plan.gone)
    details = {"reason": reason, "source": source.kind.value, "name": source.name}
    why = f"{SOURCE_RETRACTED}: {reason}"
    memories.set_statuses(transaction, ids, MemoryStatus.RETRACTED, reason=why)
    transaction.record([NewEntry("retract", key, details | {"by": plan.gone[key]}) for key in ids])
    for memory_id, loss in plan.weakened.items():
        _weaken(transaction, memory_id, loss, details)
    for memory_id, because in plan.kept.items():
        if because == "supported" and memory_id in plan.said_own:
            _disown(transaction, memory_id, details)
    _reinstate(transaction, plan.reinstated, reason)
    entry = {"kind": source.kind.value, "name": source.name, "reason": reason}
    counts = _counts(plan)
    del counts["reopened"]
    transaction.record([NewEntry("retract_source", None, entry | counts)])


def _counts(plan: RetractionPlan) -> dict[str, int]:
    reasons = Counter(plan.gone.values())
    return {
        "given": reasons["given"],
        "derived": reasons["derived"],
        "kept": len(plan.kept),
        "weakened": len(plan.weakened),
        "reinstated": len(plan.reinstated),
        "reopened": len(plan.reopened),
    }


def retraction_report(
    snapshot: Snapshot, source: NamedSource, plan: RetractionPlan, *, dry_run: bool
) -> SourceRetraction:
    """Return a retraction plan as a report."""
    lists = (plan.gone, plan.kept, plan.weakened, plan.reinstated)
    shown = [memory_id for found in lists for memory_id in islice(found, MAX_TOLD)]
    summaries = sources.summaries(snapshot, shown)

    def items(
        kind: Callable[..., Any], found: Mapping[str, F], fields: Callable[[F], dict[str, Any]]
    ) -> Any:
        return tuple(
            kind(memory_id=memory_id, summary=summaries[memory_id], **fields(value))
            for memory_id, value in islice(found.items(), MAX_TOLD)
        )

    return SourceRetraction(
        kind=source.kind,
        name=source.name,
        dry_run=dry_run,
        **_counts(plan),
        retracted_items=items(RetractedMemory, plan.gone, lambda why: {"because": why}),
        kept_items=items(RetainedMemory, plan.kept, lambda why: {"because": why}),
        weakened_items=items(
            WeakenedMemory,
            plan.weakened,
            lambda loss: {"confidence_before": loss.before, "confidence_after": loss.after},
        ),
        reinstated_items=items(ReinstatedMemory, plan.reinstated, lambda by: {"by": by}),
        reopened_items=tuple(plan.reopened[:MAX_TOLD]),
        cut=any(len(found) > MAX_TOLD for found in (*lists, plan.reopened)),
    )


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


def _weakened(
    snapshot: Snapshot, remaining: Mapping[str, tuple[str, ...]]
) -> dict[str, SourceLoss]:
    """Return the losses of memories that a source supported, from the gains in the journal."""
    losses: dict[str, SourceLoss] = {}
    for memory in memories.get_many(snapshot, list(remaining)):
        rows, before = remaining[memory.memory_id], memory.confidence
        gains = supports.gained(snapshot, memory.memory_id, rows)
        losses[memory.memory_id] = SourceLoss(rows, before, round(weakened(before, gains), 6))
    return {memory_id: losses[memory_id] for memory_id in remaining}


def _weaken(
    transaction: JournalledTransaction, memory_id: str, loss: SourceLoss, details: Mapping[str, str]
) -> None:
    at = transaction.at
    supports.end(transaction, memory_id, loss.source_ids)
    if loss.after != loss.before:
        memories.update(transaction, memory_id, confidence=loss.after, updated_at=at)
    changed = {"confidence": {"before": loss.before, "after": loss.after}}
    entry = {**details, "source_ids": list(loss.source_ids), **changed}
    transaction.record([NewEntry("weaken", memory_id, entry)])


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
        if source.kind is SourceName.PATH:
            path = origin.source_path or ""
            return path == source.name or path.startswith(folder)
        return (source.kind.value, source.name) in origin.keys

    return gone


def _cascade(
    snapshot: Snapshot, plan: RetractionPlan, is_gone: Callable[[Origin], bool], view: View
) -> None:
    """Add to a plan the memories that depend only on retracted ones, at any distance."""
    newly_gone = list(plan.gone)
    while newly_gone:
        evidence = sources.derived_from(snapshot, newly_gone, view)
        newly_gone = []
        new = [memory_id for memory_id in evidence if memory_id not in plan.gone]
        unsure = [memory_id for memory_id in new if plan.kept.get(memory_id) != "supported"]
        otherwise_supported = supported_elsewhere(snapshot, unsure, is_gone)
        for memory_id in new:
            if memory_id in otherwise_supported or plan.kept.get(memory_id) == "supported":
                plan.kept[memory_id] = "supported"
            elif any(ground not in plan.gone for ground in evidence[memory_id]):
                plan.kept[memory_id] = "grounds"
            else:
                plan.kept.pop(memory_id, None)
                plan.gone[memory_id] = "derived"
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
