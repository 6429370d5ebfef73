"""Shared code of the operations that write memories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memgraph.errors import Conflict, InvalidInput, MemgraphError, NotFound
from memgraph.model.access import Permission
from memgraph.model.operation import F
from memgraph.model.remote import MAX_BATCH, ForgetOutcome
from memgraph.model.values import EdgeInput, MemoryInput, Outcome, validated
from memgraph.operations.handle import Handle

if TYPE_CHECKING:
    from memgraph.operations.write.edges import StoredBatch
    from memgraph.service.open_orchestrator import OpenOrchestrator
    from memgraph.store.snapshot import JournalledTransaction
    from memgraph.store.visibility import View


def within_batch(memory_ids: Sequence[str]) -> Sequence[str]:
    """Return the ids unchanged. Raises InvalidInput unless they are a list of 1 to 1,000 ids."""
    if isinstance(memory_ids, str) or not 1 <= len(memory_ids) <= MAX_BATCH:
        raise InvalidInput(f"memory_ids must have 1 to {MAX_BATCH:,} ids", field="memory_ids")
    return memory_ids


def forgotten(
    transaction: JournalledTransaction,
    memory_ids: Sequence[str],
    reason: str,
    view: View,
    refused: Callable[[MemgraphError], None],
) -> list[ForgetOutcome]:
    """Retract each memory; only those that cannot be retracted are rejected.

    Args:
        refused: called with the error of each rejected memory.
    """
    outcomes = []
    for memory_id in memory_ids:
        error = _try_retract(transaction, memory_id, reason, view)
        if error is None:
            outcomes.append(ForgetOutcome(memory_id=memory_id, outcome="retracted"))
            continue
        refused(error)
        problem = {"code": error.code, "message": error.message}
        outcomes.append(ForgetOutcome(memory_id=memory_id, outcome="rejected", **problem))
    return outcomes


def _try_retract(
    transaction: JournalledTransaction, memory_id: str, reason: str, view: View
) -> MemgraphError | None:
    from memgraph.operations.write import changes

    try:
        entries = changes.retract(transaction, memory_id, reason=reason, view=view)
    except (NotFound, Conflict) as error:
        return error
    transaction.record(entries)
    return None


class WritingHandle(Handle[F]):
    """The base class of operations that write memories."""

    def _edge_input(self, fields: dict[str, Any]) -> EdgeInput:
        """Return an edge whose memories are given by full or short ids."""
        edge = validated(EdgeInput, fields)
        from_id, to_id = self._whole_ids([edge.from_id, edge.to_id])
        return validated(EdgeInput, {**fields, "from_id": from_id, "to_id": to_id})

    def _remember(self, memory: MemoryInput, *, live: bool = False) -> Outcome:
        with self._service.opened(self.name) as opened:
            [stored] = self._store(opened, [memory], [], live=live).memories
            self._embed_soon(opened)
        return stored

    def _readable(self, outcome: Outcome) -> Outcome:
        """Return an outcome, without references to other memories if the caller may not read."""
        if Permission.READ in self.permissions:
            return outcome
        return outcome.model_copy(update={"reasons": {}})

    def _remember_all(
        self,
        kind: type[MemoryInput],
        items: Iterable[MemoryInput | Mapping[str, Any]],
        *,
        embeds: bool,
    ) -> list[Outcome]:
        from memgraph.operations.write.bulk_load import BulkLoader

        with self._service.opened(self.name) as opened:
            loader = BulkLoader(
                opened,
                kind,
                actor=self.actor,
                view=self._view,
                embeds=embeds,
                rejected=self._record_rejected,
            )
            try:
                return loader.load(items)
            finally:
                # Memories stored before an error must be embedded as well.
                self._embed_soon(opened)

    def _store(
        self,
        opened: OpenOrchestrator,
        inputs: Sequence[MemoryInput],
        links: Sequence[EdgeInput],
        *,
        live: bool = False,
    ) -> StoredBatch:
        """Store all items or none: the first error rolls the transaction back."""
        prepared = [opened.writer.prepare(self._canonical(opened, memory)) for memory in inputs]
        with opened.transaction(self.actor) as transaction:
            return opened.writer.store_all(
                transaction,
                prepared,
                links,
                view=self._view,
                live=live,
            )
