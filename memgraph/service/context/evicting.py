"""Eviction: retracting many items at once, in the transaction that causes it."""

from __future__ import annotations

from collections.abc import Sequence

from memgraph.audit.journal import Entry
from memgraph.rules.lifecycle import EVICTED, excess
from memgraph.service.opened import JournalledTransaction
from memgraph.store import decay, items
from memgraph.store.items import Place


def evict(
    transaction: JournalledTransaction, place: Place, max_items: int, *, new: str | None = None
) -> tuple[str, ...]:
    """Retract the excess items of a place with the reason ``evicted``; return their ids.

    Only items in the place's view are counted and evicted: nobody evicts what they may not see. The
    order is decided by ``memgraph.rules.lifecycle``.

    Args:
        new: the item for which room is made, which stays.
    """
    number = excess(items.count(transaction, place), max_items)
    if number == 0:
        return ()
    gone = items.next_to_evict(transaction, place, number, but=new)
    retract_all(transaction, [each.memory_id for each in gone], EVICTED)
    return tuple(each.item_id for each in gone)


def retract_all(transaction: JournalledTransaction, memory_ids: Sequence[str], reason: str) -> None:
    """Retract active memories, in a few statements for all of them.

    ``changes.retract`` handles one; a hundred take it a third of a second.
    """
    decay.retire(
        transaction,
        memory_ids,
        at=transaction.at,
        actor=transaction.actor,
        reason=reason,
    )
    transaction.tell([Entry("retract", each, {"reason": reason}) for each in memory_ids])
