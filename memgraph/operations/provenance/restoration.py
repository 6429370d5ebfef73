"""Restoring all that was retracted with a source: the reverse of ``source_retracting``.

What was restored, retracted for another reason or erased since stays as it is. A memory that this
source states, too, and that was retracted with another one only because this one was gone, is
restored. Contradictions that were reopened since stay open, and are reported: with both sides back,
they have to be decided again.
"""

from __future__ import annotations

from typing import NamedTuple

from memgraph.errors import NotFound
from memgraph.model.enums import MemoryStatus
from memgraph.model.sources import (
    MAX_TOLD,
    DisputedPair,
    MemorySummary,
    RestoredMemory,
    SourceRestoration,
)
from memgraph.operations.provenance.retraction import change_all, end_for
from memgraph.operations.write import changes
from memgraph.rules.evidence import regained
from memgraph.rules.trust import NamedSource
from memgraph.store import edges, memories, sources, trust
from memgraph.store.snapshot import JournalledTransaction, NewEntry, Snapshot
from memgraph.store.sources import JoinedContradiction, SupportLoss
from memgraph.store.visibility import View


class RestorationPlan(NamedTuple):
    """The restored memories with their statuses, what is replaced again, and where the source
    counts.

    ``others``: the source with which each memory was retracted, if it was another one.
    ``left_open``: the contradictions that were decided for restored memories, and are open now.
    """

    back: dict[str, MemoryStatus]
    replaced: tuple[str, ...]
    losses: tuple[SupportLoss, ...]
    others: dict[str, NamedSource]
    left_open: tuple[JoinedContradiction, ...]


def plan(snapshot: Snapshot, source: NamedSource, view: View) -> RestorationPlan:
    """Return what restoring a source would change, as far as the view goes.

    Raises:
        NotFound: there is no visible memory that was retracted with it and is still retracted.
    """
    back = sources.retracted_with(snapshot, source, view)
    losses = sources.support_losses(snapshot, source, view)
    if not back and not losses:
        raise NotFound("nothing is retracted with this source", name=source.name[:80])
    others = sources.retracting_sources(snapshot, {loss.memory_id for loss in losses})
    others = {memory_id: other for memory_id, other in others.items() if memory_id not in back}
    back += others
    replaced = edges.still_replaced(snapshot, back, restored=back)
    status = {
        memory_id: MemoryStatus.SUPERSEDED if memory_id in replaced else MemoryStatus.ACTIVE
        for memory_id in back
    }
    superseded_again = edges.replaced_and_active(snapshot, back, view)
    active = [memory_id for memory_id, then in status.items() if then is MemoryStatus.ACTIVE]
    left_open = tuple(
        loss
        for loss in sources.open_since(snapshot, active, view)
        if loss.from_id not in superseded_again and loss.to_id not in superseded_again
    )
    return RestorationPlan(status, tuple(superseded_again), tuple(losses), others, left_open)


def restore(
    transaction: JournalledTransaction,
    source: NamedSource,
    plan: RestorationPlan,
    *,
    reason: str,
    view: View,
) -> None:
    """Apply a plan, with an entry in the journal for each memory and one for all."""
    details = {"reason": reason, "source": source.kind.value, "name": source.name}
    for status in (MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED):
        ids = [memory_id for memory_id, then in plan.back.items() if then is status]
        because = f"its source was brought back: {reason}"
        change_all(
            transaction,
            ids,
            status,
            reason=because,
            entry=lambda one: NewEntry("restore", one, details),
        )
    for loss in plan.losses:
        _count_again(transaction, loss, details)
    for other in dict.fromkeys(plan.others.values()):
        its = {memory_id for memory_id, status in plan.others.items() if status == other}
        end_for(transaction, other, its, reason=reason, view=view)
    replaced = changes.replace_again(transaction, list(plan.back), view=view)
    counts = {"restored": len(plan.back), "replaced": len(replaced), "counted": len(plan.losses)}
    whole = {"kind": source.kind.value, "name": source.name, "reason": reason, **counts}
    transaction.record([*replaced, NewEntry("restore_source", None, whole)])


def report(
    snapshot: Snapshot, source: NamedSource, plan: RestorationPlan, *, dry_run: bool
) -> SourceRestoration:
    """Return a plan as a report."""
    summary_by_id = dict.fromkeys(loss.memory_id for loss in plan.losses)
    counted = [memory_id for memory_id in summary_by_id if memory_id not in plan.back]
    lists = (list(plan.back), list(plan.replaced), counted)
    back, replaced, again = (loss[:MAX_TOLD] for loss in lists)
    summaries = sources.summaries(snapshot, [*back, *replaced, *again])
    return SourceRestoration(
        kind=source.kind,
        name=source.name,
        dry_run=dry_run,
        restored=len(plan.back),
        replaced=len(plan.replaced),
        counted=len(counted),
        left_open=len(plan.left_open),
        restored_items=tuple(
            RestoredMemory(
                memory_id=memory_id, summary=summaries[memory_id], status=plan.back[memory_id]
            )
            for memory_id in back
        ),
        replaced_items=tuple(
            MemorySummary(memory_id=memory_id, summary=summaries[memory_id])
            for memory_id in replaced
        ),
        counted_items=tuple(
            MemorySummary(memory_id=memory_id, summary=summaries[memory_id]) for memory_id in again
        ),
        left_open_items=tuple(DisputedPair(**loss._asdict()) for loss in plan.left_open[:MAX_TOLD]),
        cut=any(len(loss) > MAX_TOLD for loss in (*lists, plan.left_open)),
    )


def _count_again(
    transaction: JournalledTransaction, loss: SupportLoss, details: dict[str, str]
) -> None:
    memory_id = loss.memory_id
    [memory] = memories.get_many(transaction, [memory_id])
    trust.reinstate(transaction, memory_id, loss.source_ids)
    after = round(regained(memory.confidence, loss.before, loss.after), 6)
    if after != memory.confidence:
        memories.update(transaction, memory_id, confidence=after, updated_at=transaction.at)
    changed = {"confidence": {"before": memory.confidence, "after": after}}
    whole = {**details, "source_ids": list(loss.source_ids), **changed}
    transaction.record([NewEntry("regain", memory_id, whole)])
