"""Maintenance of one database: indexes, outboxes, journal, statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memgraph.audit.findings import JournalState
from memgraph.errors import InvalidInput
from memgraph.model.access import Permission
from memgraph.model.enums import IndexPart
from memgraph.model.operation import F, Progress, local, operation, untold
from memgraph.operations.handle import Handle

if TYPE_CHECKING:
    from memgraph.operations.maintenance.rebuild import EmbeddingsStatus
    from memgraph.operations.write.comparisons import ComparisonRun
    from memgraph.operations.write.embedding import EmbeddingRun


class Maintenance(Handle[F], group="maintenance", tag="operating"):
    """Maintenance of the database: ``orc.maintenance``."""

    @operation(Permission.ADMIN, "GET /status", id="get_status", command="stats")
    def stats(self) -> dict[str, Any]:
        """Count everything stored, hidden memories too, with the sizes on disk.

        Raises:
            DatabaseCorrupt, …: the memory is disabled.
        """
        from memgraph.operations.maintenance.maintenance import stats

        with self._service.opened(self.name) as opened:
            return stats(opened)


class LocalMaintenance(Maintenance[F]):
    """Maintenance of a database on this machine."""

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
    def embeddings_status(self) -> EmbeddingsStatus:
        """Return the states of embeddings, the stored and configured models, and failures."""
        from memgraph.operations.maintenance.rebuild import embeddings_status

        with self._service.opened(self.name) as opened:
            return embeddings_status(opened)

    @local
    def retry_embeddings(self) -> int:
        """Make failed and postponed embeddings due immediately; return their number."""
        from memgraph.store import embeddings
        from memgraph.store.snapshot import NewEntry

        with self._write() as (_, transaction):
            count = embeddings.reset_failed(transaction)
            if count:
                transaction.record([NewEntry("embeddings_retry", None, {"memories": count})])
        return count

    @local
    def rebuild_embeddings(self, *, progress: Progress = untold) -> EmbeddingRun:
        """Re-embed all memories whose vectors are of another model or other dimensions.

        The database stays in use; recall searches only texts meanwhile. The next call finishes a
        rebuild that was killed. If the provider fails, the rest stays in the outbox and
        ``error_code`` is set.

        Raises:
            MemoryDisabled: no embedding provider is configured.
        """
        from memgraph.operations.maintenance.rebuild import embeddings_rebuild

        with self._service.opened(self.name) as opened:
            return embeddings_rebuild(opened, actor=self.actor, progress=progress)

    @local
    def rebuild(
        self,
        parts: Sequence[str] = tuple(IndexPart),
        *,
        progress: Progress = untold,
    ) -> dict[str, int]:
        """Rebuild indexes from their source data; return the number of rows of each.

        Raises:
            InvalidInput: a part is unknown, or none is given.
        """
        from memgraph.operations.maintenance.rebuild import rebuild

        with self._service.opened(self.name) as opened:
            return rebuild(opened, parts, actor=self.actor, progress=progress)

    @local
    def journal_state(self) -> JournalState:
        """Return the head of the journal and its anchor, for example to record them elsewhere."""
        from memgraph.audit import anchor
        from memgraph.store import journal

        with self._service.opened(self.name) as opened:
            anchored = anchor.read(opened.anchor_file)
            with opened.database.read() as snapshot:
                state = anchor.compare(snapshot, anchored, opened.anchor_file)
                seq, sealed = journal.head(snapshot)
        remembered = anchored.seq if isinstance(anchored, journal.JournalHead) else None
        return JournalState(
            orchestrator=self.name,
            state=state,
            seq=seq,
            hash=sealed,
            anchored=remembered,
            lost=max(remembered - seq, 0) if remembered is not None else None,
        )

    @local
    def accept_journal(self, *, reason: str) -> None:
        """Accept the journal as it is, although it differs from its anchor, and anchor it again.

        Redactions that this root did not seal are sealed as accepted, the current digests of the
        tables are journalled, and erasures that earlier restores may have undone are no longer
        reported as unknown.

        Use it only if you know why they differ, for instance after losing the anchor or after a
        power failure with ``storage.synchronous = NORMAL``. A journal entry records who accepted
        it.
        """
        from memgraph.audit import anchor
        from memgraph.audit.redactions import accepted
        from memgraph.operations.maintenance.maintenance import anchor_report
        from memgraph.store import erasure, journal, metadata
        from memgraph.store.snapshot import NewEntry

        if not reason.strip():
            raise InvalidInput("a reason is required to accept a journal")
        with self._service.opened(self.name) as opened:
            path = opened.anchor_file
            with opened.transaction(self.actor, accepting=True) as transaction:
                entry = {"reason": reason, **anchor_report(path)}
                transaction.record(accepted(transaction, opened.paths.root, reason))
                transaction.record([NewEntry(erasure.ACCEPT, None, entry)])
            with opened.database.write() as writing:
                head = journal.head(writing)
                metadata.note_verification(writing, opened.clock.now_ms(), {}, head)
                anchor.write(path, head)
