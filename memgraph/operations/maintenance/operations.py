"""Maintenance of one database: indexes, outboxes, journal, statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from memgraph.model.operation import F, local
from memgraph.operations.handle import Handle

if TYPE_CHECKING:
    from memgraph.audit.findings import VerifyReport
    from memgraph.audit.journal import JournalHead
    from memgraph.operations.maintenance.maintenance import JournalState
    from memgraph.operations.maintenance.rebuild import EmbeddingsStatus
    from memgraph.operations.write.comparisons import ComparisonRun
    from memgraph.operations.write.embedding import EmbeddingRun


Progress = Callable[[str, int, int], None]


class Maintenance(Handle[F], group="maintenance"):
    """Maintenance of the database: ``orc.maintenance``."""

    @local
    def stats(self) -> dict[str, Any]:
        """Return counts of everything stored, the sizes on disk and the embedding states."""
        from memgraph.operations.read import lookup as reading

        with self._service.opened(self.name) as opened:
            return reading.stats(opened)

    @local
    def embed_pending(
        self, *, limit: int | None = None, progress: Callable[[int], None] = lambda _: None
    ) -> EmbeddingRun:
        """Process the embedding outbox until nothing is due or the provider failed.

        Facts that wait for comparison are compared too.

        Args:
            limit: the approximate maximum number.
            progress: called with the number of memories done since the last call.
        """
        with self._service.opened(self.name) as opened:
            run = opened.worker.drain(limit=limit, progress=progress)
            opened.comparer.drain(limit=limit)
        return run

    @local
    def compare_pending(self, *, limit: int | None = None) -> ComparisonRun:
        """Compare the waiting facts with stored facts now.

        Args:
            limit: the approximate maximum number.
        """
        with self._service.opened(self.name) as opened:
            return opened.comparer.drain(limit=limit)

    @local
    def pending_embeddings(self) -> int:
        """Return the number of memories that wait to be embedded; cheap for any database size."""
        from memgraph.store import embeddings

        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return embeddings.pending_count(snapshot)

    @local
    def pending_comparisons(self) -> int:
        """Return the number of facts that wait to be compared; cheap."""
        from memgraph.store import comparisons

        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return comparisons.waiting(snapshot)

    @local
    def embedding_states(self) -> dict[str, int]:
        """Return the numbers of pending, ready and failed embeddings."""
        from memgraph.store import embeddings

        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return embeddings.state_counts(snapshot)

    @local
    def embeddings_status(self) -> EmbeddingsStatus:
        """Return the states of embeddings, the stored and configured models, and failures."""
        from memgraph.operations.maintenance.rebuild import embeddings_status

        with self._service.opened(self.name) as opened:
            return embeddings_status(opened)

    @local
    def retry_embeddings(self) -> int:
        """Make failed and postponed embeddings due immediately; return their number."""
        from memgraph.operations.maintenance.rebuild import embeddings_retry

        with self._service.opened(self.name) as opened:
            return embeddings_retry(opened, actor=self.actor)

    @local
    def rebuild_embeddings(
        self, *, progress: Progress = lambda _part, _done, _total: None
    ) -> EmbeddingRun:
        """Recompute every vector with the configured model and dimensions; online and resumable.

        Raises:
            MemoryDisabled: no embedding provider is configured.
        """
        from memgraph.operations.maintenance.rebuild import embeddings_rebuild

        with self._service.opened(self.name) as opened:
            return embeddings_rebuild(opened, actor=self.actor, progress=progress)

    @local
    def rebuild(
        self,
        parts: Sequence[str] = ("indexes", "fts", "vectors", "entities"),
        *,
        progress: Progress = lambda _part, _done, _total: None,
    ) -> dict[str, int]:
        """Rebuild indexes from their source data; return the number of rows of each.

        Raises:
            InvalidInput: a part is unknown.
        """
        from memgraph.operations.maintenance.rebuild import rebuild

        with self._service.opened(self.name) as opened:
            return rebuild(opened, parts, actor=self.actor, progress=progress)

    @local
    def journal_state(self) -> JournalState:
        """Return the head of the journal and its anchor, for example to record them elsewhere."""
        from memgraph.operations.maintenance.maintenance import journal_state

        with self._service.opened(self.name) as opened:
            return journal_state(opened)

    @local
    def accept_journal(self, *, reason: str) -> None:
        """Accept the journal although it differs from its anchor, and anchor it. Journalled."""
        from memgraph.operations.maintenance.maintenance import accept_journal

        with self._service.opened(self.name) as opened:
            accept_journal(opened, reason=reason, actor=self.actor)

    @local
    def verify_chain(self, start: JournalHead | None = None) -> tuple[VerifyReport, JournalHead]:
        """Recompute the seals of the journal and compare its head with the anchor.

        Args:
            start: an entry that was checked before. Only later entries are checked if its seal is
                unchanged. None: check all.
        """
        from memgraph.operations.maintenance.maintenance import verify_chain

        with self._service.opened(self.name) as opened:
            return verify_chain(opened, start)
