"""Writes of the hooks: many memories and edges in one transaction, each with an outcome."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from memgraph.model.receipts import Receipt
from memgraph.model.values import EdgeInput, MemoryInput
from memgraph.service.handle import Handle
from memgraph.service.joining import Written
from memgraph.service.provenance import with_canonical_source
from memgraph.storage.graph_queries import visible_memories


class StoringHandle(Handle):
    """A handle for the host's own writes: an item that cannot be stored leaves the others alone."""

    def store(
        self, given: Sequence[MemoryInput], links: Sequence[EdgeInput] = (), *, live: bool = False
    ) -> Written:
        """Store in one transaction, durable when it returns.

        Args:
            links: their ends may be ``#key`` of one of ``given``.
            live: the turns among ``given`` are said just now, in this order.

        Raises:
            MemgraphError: the database takes nothing; nothing was stored.
        """
        with self._service.opened(self.name) as opened:
            prepared = [
                opened.writer.prepare(with_canonical_source(opened, each, self.actor))
                for each in given
            ]
            with opened.transaction(self.actor) as transaction:
                written = opened.writer.store(
                    transaction.connection,
                    prepared,
                    links,
                    at=transaction.at,
                    actor=self.actor,
                    view=self._view,
                    live=live,
                )
                transaction.tell(written.entries)
            try:
                self._embed_soon(opened)
            except RuntimeError as error:
                # No thread to be had: what is stored is stored, and the next write wakes one.
                opened.log.failure("background.wake", error)
        return written

    def visible(self, ids: Collection[str]) -> frozenset[str]:
        """Those of ``ids`` that are there, as far as this handle may see."""
        with self._service.opened(self.name) as opened, opened.database.read() as connection:
            return frozenset(visible_memories(connection, ids, self._view))

    def keep(self, receipt: Receipt) -> None:
        """Keep a receipt, to be written with others."""
        with self._service.opened(self.name) as opened:
            self._write_receipts(opened, enough=opened.receipts.add(receipt))
