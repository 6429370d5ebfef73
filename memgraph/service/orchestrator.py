"""The handle of one orchestrator: all that a program does with its memory."""

from __future__ import annotations

from memgraph.service.embedding import Drained
from memgraph.service.handle_reading import ReadingHandle
from memgraph.service.handle_writing import WritingHandle


class Orchestrator(WritingHandle, ReadingHandle):
    """What one orchestrator remembers. Made by ``MemoryService.orchestrator``; thread-safe.

    Attributes:
        name: of the orchestrator.
        viewer: what the holder of this handle may see.
        actor: whom the journal names for changes made through it.
    """

    def embed_pending(self) -> Drained:
        """Work off the embedding outbox now; returns when nothing is due or the provider failed."""
        with self._service.opened(self.name) as opened:
            return opened.worker.drain()
