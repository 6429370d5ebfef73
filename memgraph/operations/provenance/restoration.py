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


def plan(snapshot: Snapshot, named: NamedSource, view: View) -> RestorationPlan:
    """Return what restoring a source would change, as far as the view goes.

    Raises:
        NotFound: there is no visible memory that was retracted with it and is still retracted.
    """
    back = sources.taken_back(snapshot, named, view)
    losses = sources.lost_with(snapshot, named, view)
    if not back and not losses:
        raise NotFound("nothing is retracted with this source", name=named.name[:80])
    others = sources.taken_with_others(snapshot, {each.memory_id for each in losses})
    others = {one: other for one, other in others.items() if one not in back}
    back += others
    replaced = edges.still_replaced(snapshot, back, back=back)
    status = {
        one: MemoryStatus.SUPERSEDED if one in replaced else MemoryStatus.ACTIVE for one in back
    }
    again = edges.replaced_and_active(snapshot, back, view)
    active = [one for one, then in status.items() if then is MemoryStatus.ACTIVE]
    left_open = tuple(
        each
        for each in sources.open_since(snapshot, active, view)
        if each.from_id not in again and each.to_id not in again
    )
    return RestorationPlan(status, tuple(again), tuple(losses), others, left_open)


def restore(
    transaction: JournalledTransaction,
    named: NamedSource,
    found: RestorationPlan,
    *,
    reason: str,
    view: View,
) -> None:
    """Apply a plan, with an entry in the journal for each memory and one for all."""
    told = {"reason": reason, "source": named.kind.value, "name": named.name}
    for status in (MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED):
        ids = [one for one, then in found.back.items() if then is status]
        because = f"its source was brought back: {reason}"
        change_all(
            transaction,
            ids,
            status,
            reason=because,
            entry=lambda one: NewEntry("restore", one, told),
        )
    for loss in found.losses:
        _count_again(transaction, loss, told)
    for other in dict.fromkeys(found.others.values()):
        its = {one for one, each in found.others.items() if each == other}
        end_for(transaction, other, its, reason=reason, view=view)
    replaced = changes.replace_again(transaction, list(found.back), view=view)
    counts = {"restored": len(found.back), "replaced": len(replaced), "counted": len(found.losses)}
    whole = {"kind": named.kind.value, "name": named.name, "reason": reason, **counts}
    transaction.tell([*replaced, NewEntry("restore_source", None, whole)])


def report(
    snapshot: Snapshot, named: NamedSource, found: RestorationPlan, *, dry_run: bool
) -> SourceRestoration:
    """Return a plan as a report."""
    said = dict.fromkeys(each.memory_id for each in found.losses)
    counted = [one for one in said if one not in found.back]
    lists = (list(found.back), list(found.replaced), counted)
    back, replaced, again = (each[:MAX_TOLD] for each in lists)
    summaries = sources.summaries(snapshot, [*back, *replaced, *again])
    return SourceRestoration(
        kind=named.kind,
        name=named.name,
        dry_run=dry_run,
        restored=len(found.back),
        replaced=len(found.replaced),
        counted=len(counted),
        left_open=len(found.left_open),
        restored_items=tuple(
            RestoredMemory(memory_id=one, summary=summaries[one], status=found.back[one])
            for one in back
        ),
        replaced_items=tuple(
            MemorySummary(memory_id=one, summary=summaries[one]) for one in replaced
        ),
        counted_items=tuple(MemorySummary(memory_id=one, summary=summaries[one]) for one in again),
        left_open_items=tuple(
            DisputedPair(**each._asdict()) for each in found.left_open[:MAX_TOLD]
        ),
        cut=any(len(each) > MAX_TOLD for each in (*lists, found.left_open)),
    )


def _count_again(
    transaction: JournalledTransaction, loss: SupportLoss, told: dict[str, str]
) -> None:
    memory_id = loss.memory_id
    [memory] = memories.get_many(transaction, [memory_id])
    trust.give_back(transaction, memory_id, loss.source_ids)
    after = round(regained(memory.confidence, loss.before, loss.after), 6)
    if after != memory.confidence:
        memories.update(transaction, memory_id, confidence=after, updated_at=transaction.at)
    changed = {"confidence": {"before": memory.confidence, "after": after}}
    whole = {**told, "source_ids": list(loss.source_ids), **changed}
    transaction.tell([NewEntry("regain", memory_id, whole)])
