"""Retract a source: its memories, and memories derived only from them.

Memories with another source or other evidence stay. Memories that had been replaced only by
retracted ones become active again, because a retracted source is not evidence against them. Hidden
evidence counts when deciding what stays, but only visible memories are reported and changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

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
from memgraph.store.sources import JoinedContradiction
from memgraph.store.visibility import View

BATCH: Final = 500
"""Memories per statement, all within one transaction."""
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
    reopened: list[JoinedContradiction] = field(default_factory=list)


def plan_retraction(snapshot: Snapshot, source: NamedSource, view: View) -> RetractionPlan:
    """Return what retracting a source would change among the visible memories.

    Raises:
        NotFound: no visible memory, whether active or retracted, comes from the source.
    """
    supported = sources.supported_by(snapshot, source, view)
    if not supported and not sources.is_visible(snapshot, source, view):
        raise no_source(source)
    plan = RetractionPlan()
    evidence = _Stands(snapshot, source)
    given_ids = sources.memories_of(snapshot, source, view)
    # For a memory whose own source was retracted before, this source may be the last one.
    plan.said_own = known_ids = set(given_ids)
    given_ids += [
        memory_id
        for memory_id in supported
        if memory_id not in known_ids and evidence.rests_on_it(memory_id)
    ]
    otherwise_supported = evidence.among(given_ids)
    for memory_id in given_ids:
        if memory_id in otherwise_supported:
            plan.kept[memory_id] = "supported"
        else:
            plan.gone[memory_id] = "given"
    _cascade(snapshot, plan, evidence, view)
    remaining = {
        memory_id: tuple(rows)
        for memory_id, rows in supported.items()
        if memory_id not in plan.gone
    }
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
    change_all(
        transaction,
        ids,
        MemoryStatus.RETRACTED,
        reason=f"{SOURCE_RETRACTED}: {reason}",
        entry=lambda key: NewEntry("retract", key, details | {"by": plan.gone[key]}),
    )
    for memory_id, loss in plan.weakened.items():
        _weaken(transaction, memory_id, loss, details)
    for memory_id, why in plan.kept.items():
        if why == "supported" and memory_id in plan.said_own:
            _disown(transaction, memory_id, details)
    _reinstate(transaction, plan.reinstated, f"its replacement was retracted: {reason}")
    counts = {"given": number(plan.gone, "given"), "derived": number(plan.gone, "derived")}
    entry = {"kind": source.kind.value, "name": source.name, "reason": reason, **counts}
    transaction.record(
        [
            NewEntry(
                "retract_source",
                None,
                entry
                | {
                    "kept": len(plan.kept),
                    "weakened": len(plan.weakened),
                    "reinstated": len(plan.reinstated),
                },
            )
        ]
    )


def retraction_report(
    snapshot: Snapshot, source: NamedSource, plan: RetractionPlan, *, dry_run: bool
) -> SourceRetraction:
    """Return a retraction plan as a report."""
    lists: Sequence[Collection[str]] = (plan.gone, plan.kept, plan.weakened, plan.reinstated)
    retracted, retained, weakened_ids, reinstated_ids = (list(ids)[:MAX_TOLD] for ids in lists)
    reopened = plan.reopened[:MAX_TOLD]
    summaries = sources.summaries(snapshot, [*retracted, *retained, *weakened_ids, *reinstated_ids])
    return SourceRetraction(
        kind=source.kind,
        name=source.name,
        dry_run=dry_run,
        given=number(plan.gone, "given"),
        derived=number(plan.gone, "derived"),
        kept=len(plan.kept),
        weakened=len(plan.weakened),
        reinstated=len(plan.reinstated),
        reopened=len(plan.reopened),
        retracted_items=tuple(
            RetractedMemory(
                memory_id=memory_id, summary=summaries[memory_id], because=plan.gone[memory_id]
            )
            for memory_id in retracted
        ),
        kept_items=tuple(
            RetainedMemory(
                memory_id=memory_id, summary=summaries[memory_id], because=plan.kept[memory_id]
            )
            for memory_id in retained
        ),
        weakened_items=tuple(
            WeakenedMemory(
                memory_id=memory_id,
                summary=summaries[memory_id],
                confidence_before=plan.weakened[memory_id].before,
                confidence_after=plan.weakened[memory_id].after,
            )
            for memory_id in weakened_ids
        ),
        reinstated_items=tuple(
            ReinstatedMemory(
                memory_id=memory_id, summary=summaries[memory_id], by=plan.reinstated[memory_id]
            )
            for memory_id in reinstated_ids
        ),
        reopened_items=tuple(DisputedPair(**pair._asdict()) for pair in reopened),
        cut=any(len(pair) > MAX_TOLD for pair in (*lists, plan.reopened)),
    )


class _Stands:
    """Decide which memories have support other than one source."""

    def __init__(self, snapshot: Snapshot, source: NamedSource) -> None:
        self._snapshot = snapshot
        self._gone = is_of(source)

    def rests_on_it(self, memory_id: str) -> bool:
        """Return True if the memory still counts this source among its own origins."""
        own, _ = supports.origins(self._snapshot, memory_id)
        return any(self._gone(row) for row in own)

    def among(self, memory_ids: Sequence[str]) -> set[str]:
        """Return those of the memories that another source states as well."""
        return supported_elsewhere(self._snapshot, memory_ids, self._gone)


def supported_elsewhere(
    snapshot: Snapshot, memory_ids: Sequence[str], is_gone: Callable[[Origin], bool]
) -> set[str]:
    """Return those of the memories that a source beside their own states as well.

    Args:
        is_gone: returns True for a source that does not count.
    """
    return {
        memory_id
        for start in range(0, len(memory_ids), BATCH)
        for memory_id in sources.supported(snapshot, memory_ids[start : start + BATCH])
        if stands_without(*supports.origins(snapshot, memory_id), is_gone)
    }


def _weakened(
    snapshot: Snapshot, remaining: Mapping[str, tuple[str, ...]]
) -> dict[str, SourceLoss]:
    """Return the losses of memories that a source supported, from the gains in the journal."""
    losses: dict[str, SourceLoss] = {}
    ids = list(remaining)
    for start in range(0, len(ids), BATCH):
        for memory in memories.get_many(snapshot, ids[start : start + BATCH]):
            rows, before = remaining[memory.memory_id], memory.confidence
            gains = supports.gained(snapshot, memory.memory_id, rows)
            after = weakened(before, gains)
            losses[memory.memory_id] = SourceLoss(rows, before, round(after, 6))
    return {memory_id: losses[memory_id] for memory_id in ids}


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


def change_all(
    transaction: JournalledTransaction,
    memory_ids: Sequence[str],
    status: MemoryStatus,
    *,
    reason: str,
    entry: Callable[[str], NewEntry],
) -> None:
    """Set the status of many memories in batches, with a journal entry for each."""
    for start in range(0, len(memory_ids), BATCH):
        batch = memory_ids[start : start + BATCH]
        memories.set_statuses(transaction, batch, status, reason=reason)
        transaction.record([entry(memory_id) for memory_id in batch])


def _reinstate(
    transaction: JournalledTransaction, reinstated: Mapping[str, Collection[str]], reason: str
) -> None:
    decided_ids = edges.losers(transaction, list(reinstated))
    for memory_id in decided_ids:
        transaction.record(
            changes.reinstate(transaction, memory_id, reinstated[memory_id], reason=reason)
        )
    change_all(
        transaction,
        [memory_id for memory_id in reinstated if memory_id not in decided_ids],
        MemoryStatus.ACTIVE,
        reason=reason,
        entry=lambda key: NewEntry("restore", key, {"reason": reason}),
    )


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


def _cascade(snapshot: Snapshot, plan: RetractionPlan, evidence: _Stands, view: View) -> None:
    """Add to a plan the memories that depend only on retracted ones, at any distance."""
    newly_gone = list(plan.gone)
    while newly_gone:
        evidence_by_id: dict[str, list[str]] = {}
        for start in range(0, len(newly_gone), BATCH):
            evidence_by_id |= sources.derived_from(
                snapshot, newly_gone[start : start + BATCH], view
            )
        newly_gone = []
        new = [memory_id for memory_id in evidence_by_id if memory_id not in plan.gone]
        otherwise_supported = evidence.among(
            [memory_id for memory_id in new if plan.kept.get(memory_id) != "supported"]
        )
        for memory_id in new:
            if memory_id in otherwise_supported or plan.kept.get(memory_id) == "supported":
                plan.kept[memory_id] = "supported"
            elif any(ground not in plan.gone for ground in evidence_by_id[memory_id]):
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
    for start in range(0, len(ids), BATCH):
        batch = ids[start : start + BATCH]
        for old, new in sources.replaced_by(snapshot, batch, view):
            if old not in retracted:
                successors.setdefault(old, {})[new] = None
    replacers = edges.still_replaced(snapshot, list(successors), retracted=ids)
    return {old: tuple(new) for old, new in successors.items() if old not in replacers}


def number(reasons: Mapping[str, str], because: str) -> int:
    return sum(item == because for item in reasons.values())
