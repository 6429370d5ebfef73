"""Maintenance of one database: indexes, outboxes, journal, statistics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
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


Told = Callable[[str, int, int], None]


class Maintenance(Handle[F], group="maintenance"):
    """Maintenance of the database: ``orc.maintenance``."""

    @local
    def stats(self) -> dict[str, Any]:
        """Return counts over everything stored, sizes on disk, and the state of the embeddings."""
        from memgraph.operations.read import lookup as reading

        with self._service.opened(self.name) as opened:
            return reading.stats(opened)

    @local
    def embed_pending(
        self, *, limit: int | None = None, progress: Callable[[int], None] = lambda _: None
    ) -> EmbeddingRun:
        """Process the embedding outbox now; returns when nothing is due or the provider failed.

        Facts that wait to be compared are compared, too.

        Args:
            limit: about how many at most.
            progress: called with the number of memories done since the last call.
        """
        with self._service.opened(self.name) as opened:
            drained = opened.worker.drain(limit=limit, progress=progress)
            opened.comparer.drain(limit=limit)
        return drained

    @local
    def compare_pending(self, *, limit: int | None = None) -> ComparisonRun:
        """Compare waiting facts with the stored ones now.

        Args:
            limit: about how many at most.
        """
        with self._service.opened(self.name) as opened:
            return opened.comparer.drain(limit=limit)

    @local
    def pending_embeddings(self) -> int:
        """Return how many memories wait to be embedded; cheap for any size of database."""
        from memgraph.store import embeddings

        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return embeddings.pending_count(snapshot)

    @local
    def pending_comparisons(self) -> int:
        """Return how many facts wait to be compared; cheap."""
        from memgraph.store import comparisons

        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return comparisons.waiting(snapshot)

    @local
    def embedding_states(self) -> dict[str, int]:
        """Return how many memories have a pending, ready and failed embedding."""
        from memgraph.store import embeddings

        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return embeddings.state_counts(snapshot)

    @local
    def embeddings_status(self) -> EmbeddingsStatus:
        """Return embedding states, the models and whether they differ, and failures with
        reasons.
        """
        from memgraph.operations.maintenance.rebuild import embeddings_status

        with self._service.opened(self.name) as opened:
            return embeddings_status(opened)

    @local
    def retry_embeddings(self) -> int:
        """Make failed and postponed embeddings due at once; return their number."""
        from memgraph.operations.maintenance.rebuild import embeddings_retry

        with self._service.opened(self.name) as opened:
            return embeddings_retry(opened, actor=self.actor)

    @local
    def rebuild_embeddings(
        self, *, progress: Told = lambda _part, _done, _total: None
    ) -> EmbeddingRun:
        """Bring every vector to the configured model and dimensions, online and resumably.

        Raises:
            MemoryDisabled: no embedding provider is configured.
        """
        from memgraph.operations.maintenance.rebuild import embeddings_rebuild

        with self._service.opened(self.name) as opened:
            return embeddings_rebuild(opened, actor=self.actor, progress=progress)

    @local
    def rebuild(
        self,
        parts: Sequence[str] = ("fts", "vectors", "entities"),
        *,
        progress: Told = lambda _part, _done, _total: None,
    ) -> dict[str, int]:
        """Rebuild indexes from their source data; return how many rows each holds.

        Raises:
            InvalidInput: no such part.
        """
        from memgraph.operations.maintenance.rebuild import rebuild

        with self._service.opened(self.name) as opened:
            return rebuild(opened, parts, actor=self.actor, progress=progress)

    @local
    def journal_state(self) -> JournalState:
        """Return the journal's head and its anchor; also for a ledger of one's own."""
        from memgraph.operations.maintenance.maintenance import journal_state

        with self._service.opened(self.name) as opened:
            return journal_state(opened)

    @local
    def accept_journal(self, *, reason: str) -> None:
        """Anchor the journal as it is, for an operator who knows why it differs; journalled."""
        from memgraph.operations.maintenance.maintenance import accept_journal

        with self._service.opened(self.name) as opened:
            accept_journal(opened, reason=reason, actor=self.actor)

    @local
    def verify_chain(self, start: JournalHead | None = None) -> tuple[VerifyReport, JournalHead]:
        """Recompute the seals of the journal and compare its end with the anchor.

        Args:
            start: an entry that was checked before; its seal has to be the same still, else all
                are checked. None: all.
        """
        from memgraph.operations.maintenance.maintenance import verify_chain

        with self._service.opened(self.name) as opened:
            return verify_chain(opened, start)

    @local
    def journal_seals(self, seqs: Collection[int]) -> dict[int, str]:
        """Return the seals of some journal entries; a seal tells nothing of what its entry says."""
        from memgraph.store.journal import hash_of

        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            seals = {seq: hash_of(snapshot, seq) for seq in seqs}
        return {seq: seal for seq, seal in seals.items() if seal is not None}
