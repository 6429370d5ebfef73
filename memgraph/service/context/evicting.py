"""Items that are given up: many at once, in the transaction that gives the cause."""

from __future__ import annotations

from collections.abc import Sequence

from memgraph.audit.journal import Entry
from memgraph.policy.endings import EVICTED
from memgraph.policy.eviction import excess
from memgraph.service.opened import Transaction
from memgraph.storage import decay_queries, item_queries
from memgraph.storage.item_queries import Place


def evict(
    transaction: Transaction, place: Place, max_items: int, *, new: str | None = None
) -> tuple[str, ...]:
    """Retract what is too many in a place with the reason ``evicted``; gives the items' ids.

    Counted and evicted is what the place's view shows: nobody pushes out what they may not see.
    Which go first is decided by ``memgraph.policy.eviction``.

    Args:
        new: the item for which room is made, which stays.
    """
    number = excess(item_queries.count(transaction.connection, place), max_items)
    if number == 0:
        return ()
    gone = item_queries.next_to_evict(transaction.connection, place, number, but=new)
    retract_all(transaction, [each.memory_id for each in gone], EVICTED)
    return tuple(each.item_id for each in gone)


def retract_all(transaction: Transaction, memory_ids: Sequence[str], reason: str) -> None:
    """Retract active memories, in a few statements for all of them.

    ``changes.retract`` does it for one; a hundred take it a third of a second.
    """
    decay_queries.retire(
        transaction.connection,
        item_queries.placed(transaction.connection, memory_ids),
        at=transaction.at,
        actor=transaction.actor,
        reason=reason,
    )
    transaction.tell([Entry("retract", each, {"reason": reason}) for each in memory_ids])
