"""Taking many memories back at once: each by itself, all in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memgraph.errors import Conflict, InvalidInput, MemgraphError, NotFound
from memgraph.model.remote import MAX_BATCH, Forgotten
from memgraph.service import changes
from memgraph.service.opened import Transaction
from memgraph.storage.visibility import View


def within_batch(memory_ids: Sequence[str]) -> Sequence[str]:
    """The same ids. Raises InvalidInput: none, or more than a thousand, or one text."""
    if isinstance(memory_ids, str) or not 1 <= len(memory_ids) <= MAX_BATCH:
        raise InvalidInput(f"memory_ids: 1 to {MAX_BATCH:,} ids", field="memory_ids")
    return memory_ids


def forgotten(
    transaction: Transaction,
    memory_ids: Sequence[str],
    reason: str,
    view: View,
    refused: Callable[[MemgraphError], None],
) -> list[Forgotten]:
    """Retract each; one that cannot be is told, and changes nothing.

    Args:
        refused: called with the error of each that cannot be.
    """
    outcomes = []
    for memory_id in memory_ids:
        error = _refusal(transaction, memory_id, reason, view)
        if error is None:
            outcomes.append(Forgotten(memory_id=memory_id, outcome="retracted"))
            continue
        refused(error)
        told = {"code": error.code, "message": error.message}
        outcomes.append(Forgotten(memory_id=memory_id, outcome="rejected", **told))
    return outcomes


def _refusal(
    transaction: Transaction, memory_id: str, reason: str, view: View
) -> MemgraphError | None:
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
        return error
    transaction.tell(entries)
    return None
