"""The handle of one orchestrator: all that a program does with its memory."""

from __future__ import annotations

from collections.abc import Callable

from memgraph.config import Settings
from memgraph.service.embedding import Drained
from memgraph.service.handle_ingesting import IngestingHandle
from memgraph.service.handle_reading import ReadingHandle
from memgraph.service.handle_writing import WritingHandle
from memgraph.storage import embeddings


class Orchestrator(WritingHandle, ReadingHandle, IngestingHandle):
    """What one orchestrator remembers. Made by ``MemoryService.orchestrator``; thread-safe.

    Attributes:
        name: of the orchestrator.
        viewer: what the holder of this handle may see.
        actor: whom the journal names for changes made through it.
    """

    def embed_pending(
        self, *, limit: int | None = None, progress: Callable[[int], None] = lambda _: None
    ) -> Drained:
        """Work off the embedding outbox now; returns when nothing is due or the provider failed.

        Args:
            limit: about how many at most.
            progress: called with the number of memories done since the last call.
        """
        with self._service.opened(self.name) as opened:
            return opened.worker.drain(limit=limit, progress=progress)

    def embedding_states(self) -> dict[str, int]:
        """How many memories are pending, ready and failed to be embedded."""
        with self._service.opened(self.name) as opened, opened.database.read() as connection:
            return embeddings.state_counts(connection)

    def retry_embeddings(self) -> int:
        """Make what failed or was put off due at once; gives how many there are."""
        with self._write() as (_, transaction):
            return embeddings.reset_failed(transaction.connection)

    @property
    def settings(self) -> Settings:
        """The settings in force for this orchestrator."""
        return self._service.settings(self.name)
