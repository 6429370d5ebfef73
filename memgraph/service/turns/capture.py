"""Store what a host writes around its turns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from memgraph.model.conversation import AgentTurn, UserTurn
from memgraph.model.values import EdgeInput, Memory, MemoryInput, StoredSource
from memgraph.operations.handle import Handle
from memgraph.operations.write.edges import StoredBatch
from memgraph.providers.local import LocalEmbedding
from memgraph.store.embeddings import embedded_text
from memgraph.store.graph import sources_of, visible_memories
from memgraph.store.memories import same_content

if TYPE_CHECKING:
    from memgraph.service.open_orchestrator import OpenOrchestrator


Turn = UserTurn | AgentTurn


class CaptureHandle(Handle):
    """A handle for the host's writes: an item that cannot be stored does not affect the others."""

    def store(
        self, inputs: Sequence[MemoryInput], links: Sequence[EdgeInput] = (), *, live: bool = False
    ) -> StoredBatch:
        """Store memories in one transaction, durable on return; on an error nothing is stored.

        The ends of ``links`` may be the ``#key`` of one of ``inputs``. With ``live`` the turns
        among these were just said, in this order.
        """
        with self._service.opened(self.name) as opened:
            checked = [self._canonical(opened, memory) for memory in inputs]
            model = self._model_at_hand(opened)
            texts = [
                embedded_text(each.source_role, each.content, each.attributes) for each in checked
            ]
            vectors = iter(() if model is None else model.embed(texts))
            prepared = [opened.writer.prepare(memory, next(vectors, None)) for memory in checked]
            with opened.transaction(self.actor) as transaction:
                written = opened.writer.store(
                    transaction, prepared, links, view=self._view, embedding=model, live=live
                )
                transaction.record(written.entries)
            try:
                if model is None:
                    opened.background.wake()
                else:
                    # The remaining work is not urgent: receipts, the upkeep of the index.
                    opened.background.wake_later()
            except RuntimeError as error:
                # No thread available: the memories are stored, and the next write wakes one.
                opened.log.failure("background.wake", error)
        return written

    def _model_at_hand(self, opened: OpenOrchestrator) -> LocalEmbedding | None:
        """Return the local model if it is loaded.

        Embedding a turn at once takes less than a millisecond; later it takes several, while others
        wait.
        """
        model = opened.embedding
        if not self._service.embeds_in_background or opened.other_model is not None:
            return None
        return model if isinstance(model, LocalEmbedding) and model.ready else None

    def visible(self, ids: Collection[str]) -> frozenset[str]:
        """Return the ids of existing memories that this handle may see."""
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return frozenset(visible_memories(snapshot, ids, self._view))

    def saying(self, hashes: Collection[str]) -> list[tuple[Memory, StoredSource]]:
        """Return the visible active memories whose texts have these hashes."""
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            now = opened.clock.now_ms()
            ids = same_content(snapshot, list(hashes), self._view, at=now).values()
            memories_by_id = visible_memories(snapshot, list(ids), self._view)
            sources = {
                source.source_id: source for source in sources_of(snapshot, memories_by_id.values())
            }
        return [(memory, sources[memory.source_id]) for memory in memories_by_id.values()]
