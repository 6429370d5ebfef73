"""Taking many memories back at once: each by itself, all in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from memgraph.errors import Conflict, InvalidInput, NotFound
from memgraph.model.remote import MAX_BATCH, Forgotten
from memgraph.service import changes
from memgraph.service.opened import Transaction
from memgraph.storage.visibility import View


def forgotten(
    transaction: Transaction, memory_ids: Sequence[str], reason: str, view: View
) -> list[Forgotten]:
    """Retract each; one that cannot be is told, and changes nothing.

    Raises:
        InvalidInput: none, or more than a thousand.
    """
    if isinstance(memory_ids, str) or not 1 <= len(memory_ids) <= MAX_BATCH:
        raise InvalidInput(f"memory_ids: 1 to {MAX_BATCH:,} ids", field="memory_ids")
    return [_forgotten(transaction, each, reason, view) for each in memory_ids]


def _forgotten(transaction: Transaction, memory_id: str, reason: str, view: View) -> Forgotten:
    try:
        entries = changes.retract(
            transaction.connection,
            memory_id,
            reason=reason,
            at=transaction.at,
            actor=transaction.actor,
            view=view,
        )
    except (NotFound, Conflict) as error:
        return Forgotten(
            memory_id=memory_id, outcome="rejected", code=error.code, message=error.message
        )
    transaction.tell(entries)
    return Forgotten(memory_id=memory_id, outcome="retracted")
