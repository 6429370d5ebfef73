"""Writes of the hooks: many memories and edges in one transaction, each with an outcome."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from memgraph.model.receipts import Receipt
from memgraph.model.values import EdgeInput, Memory, MemoryInput, StoredSource
from memgraph.providers.local import LocalEmbedding
from memgraph.service.handle import Handle
from memgraph.service.joining import Written
from memgraph.service.receipts import Behind
from memgraph.store.embeddings import embedded_text
from memgraph.store.graph import sources_of, visible_memories
from memgraph.store.memories import same_content

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memgraph.rules.scope import Viewer
    from memgraph.service.opened import Opened


class StoringHandle(Handle):
    """A handle for the host's writes: an item that cannot be stored does not affect the others."""

    def store(
        self, given: Sequence[MemoryInput], links: Sequence[EdgeInput] = (), *, live: bool = False
    ) -> Written:
        """Store in one transaction, durable on return.

        Args:
            links: their ends may be ``#key`` of one of ``given``.
            live: the turns among ``given`` are said just now, in this order.

        Raises:
            MemgraphError: the database cannot be written; nothing was stored.
        """
        with self._service.opened(self.name) as opened:
            checked = [self._canonical(opened, each) for each in given]
            model = self._model_at_hand(opened)
            vectors = iter(() if model is None else _embedded(model, checked))
            prepared = [opened.writer.prepare(each, next(vectors, None)) for each in checked]
            with opened.transaction(self.actor) as transaction:
                written = opened.writer.store(
                    transaction,
                    prepared,
                    links,
                    at=transaction.at,
                    actor=self.actor,
                    view=self._view,
                    embedding=model,
                    live=live,
                )
                transaction.tell(written.entries)
            try:
                if model is None:
                    self._embed_soon(opened)
                else:
                    # What is left is no matter of this moment: receipts, the upkeep of the index.
                    opened.background.wake_later()
                    self._tell_soon(opened)
            except RuntimeError as error:
                # No thread available: the memories are stored, and the next write wakes one.
                opened.log.failure("background.wake", error)
        return written

    def _model_at_hand(self, opened: Opened) -> LocalEmbedding | None:
        """Return the local model if it is loaded.

        Embedding a turn at once takes a part of a millisecond, doing it later several, in which
        others wait.
        """
        model = opened.embedding
        if not self._service.embeds_in_background or opened.other_model is not None:
            return None
        return model if isinstance(model, LocalEmbedding) and model.ready else None

    def visible(self, ids: Collection[str]) -> frozenset[str]:
        """Return the ids that exist, as far as this handle may see."""
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return frozenset(visible_memories(snapshot, ids, self._view))

    def saying(self, hashes: Collection[str]) -> list[tuple[Memory, StoredSource]]:
        """Return the active memories with these texts, by their hashes, that this handle sees."""
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            now = opened.clock.now_ms()
            rows = same_content(snapshot, list(hashes), self._view, at=now)
            found = visible_memories(snapshot, [each.memory_id for each in rows], self._view)
            sources = {each.source_id: each for each in sources_of(snapshot, found.values())}
        return [(each, sources[each.source_id]) for each in found.values()]

    def keep(
        self, receipt: Receipt, *, viewer: Viewer | None = None, beside: str | None = None
    ) -> None:
        """Keep a receipt, to be written with others.

        Args:
            viewer: what the reader could see; None: what this handle does.
            beside: the receipt of the bulletin that is part of what was handed out.
        """
        with self._service.opened(self.name) as opened:
            self._keep_receipt(opened, receipt, Behind(beside=beside), viewer=viewer)


def _embedded(model: LocalEmbedding, given: Sequence[MemoryInput]) -> NDArray[np.float32]:
    return model.embed([embedded_text(each.source_role, each.content) for each in given])
