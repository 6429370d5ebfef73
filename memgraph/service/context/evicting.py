"""A project that holds too much gives up a tenth, in the transaction that made it too much."""

from __future__ import annotations

from memgraph.audit.journal import Entry
from memgraph.policy.endings import EVICTED
from memgraph.policy.eviction import KEPT_TYPES, Held, evicted
from memgraph.service.opened import Transaction
from memgraph.storage import decay_queries, eviction_queries
from memgraph.storage.visibility import View


def evict(
    transaction: Transaction, project_id: str, max_items: int, *, view: View, new: str | None = None
) -> tuple[str, ...]:
    """Retract what is too many with the reason ``evicted``; gives the ids.

    Counted and evicted is what the view shows: nobody pushes out what they may not see.

    Args:
        new: the memory that the transaction added, which stays.
    """
    connection = transaction.connection
    if eviction_queries.count(connection, project_id, view) <= max_items:
        return ()
    rows = {row.memory_id: row for row in eviction_queries.held(connection, project_id, view)}
    there = [
        Held(row.memory_id, row.importance, row.at, row.type in KEPT_TYPES or row.decay_rate == 0.0)
        for row in rows.values()
    ]
    gone = evicted(there, max_items, new=new)
    decay_queries.retire(
        connection,
        [rows[one] for one in gone],
        at=transaction.at,
        actor=transaction.actor,
        reason=EVICTED,
    )
    transaction.tell([Entry("retract", one, {"reason": EVICTED}) for one in gone])
    return gone
