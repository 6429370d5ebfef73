"""Operator's work through a handle: embeddings, audit, backup."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memgraph.service.embedding import Drained
from memgraph.service.handle import Handle
from memgraph.store import comparisons, embeddings

if TYPE_CHECKING:
    from memgraph.audit.findings import Progress, VerifyReport
    from memgraph.service.comparisons import Compared, Settled
    from memgraph.service.exchange import ExportReport
    from memgraph.service.maintenance import BackupReport, JournalState
    from memgraph.service.rebuilding import EmbeddingsStatus

Told = Callable[[str, int, int], None]


class MaintainingHandle(Handle):
    """The part of ``Orchestrator`` for maintaining a database."""

    def embed_pending(
        self, *, limit: int | None = None, progress: Callable[[int], None] = lambda _: None
    ) -> Drained:
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

    def settle(self) -> Settled:
        """Finish the pending work of writes now: embed and compare what waits.

        Returns when nothing is due, or a provider failed.
        """
        from memgraph.service.comparisons import Settled

        with self._service.opened(self.name) as opened:
            return Settled(opened.worker.drain(), opened.comparer.drain())

    def compare_pending(self, *, limit: int | None = None) -> Compared:
        """Compare waiting facts with the stored ones now.

        Args:
            limit: about how many at most.
        """
        with self._service.opened(self.name) as opened:
            return opened.comparer.drain(limit=limit)

    def pending_comparisons(self) -> int:
        """Return how many facts wait to be compared; cheap."""
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return comparisons.waiting(snapshot)

    def pending_embeddings(self) -> int:
        """Return how many memories wait to be embedded; cheap for any size of database."""
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return embeddings.pending_count(snapshot)

    def embedding_states(self) -> dict[str, int]:
        """Return how many memories have a pending, ready and failed embedding."""
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return embeddings.state_counts(snapshot)

    def embeddings_status(self) -> EmbeddingsStatus:
        """Return embedding states, the models and whether they differ, and failures with
        reasons.
        """
        from memgraph.service.rebuilding import embeddings_status

        with self._service.opened(self.name) as opened:
            return embeddings_status(opened)

    def retry_embeddings(self) -> int:
        """Make failed and postponed embeddings due at once; return their number."""
        from memgraph.service.rebuilding import embeddings_retry

        with self._service.opened(self.name) as opened:
            return embeddings_retry(opened, actor=self.actor)

    def rebuild_embeddings(self, *, progress: Told = lambda _part, _done, _total: None) -> Drained:
        """Bring every vector to the configured model and dimensions, online and resumably.

        Raises:
            MemoryDisabled: no embedding provider is configured.
        """
        from memgraph.service.rebuilding import embeddings_rebuild

        with self._service.opened(self.name) as opened:
            return embeddings_rebuild(opened, actor=self.actor, progress=progress)

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
        from memgraph.service.rebuilding import rebuild

        with self._service.opened(self.name) as opened:
            return rebuild(opened, parts, actor=self.actor, progress=progress)

    def verify(self, progress: Progress | None = None) -> VerifyReport:
        """Audit the database; problems are in the report. Nothing is changed.

        Args:
            progress: called with the name of a stage, what is done of it, and how much there is.
        """
        from memgraph.service.maintenance import verify

        with self._service.opened(self.name) as opened:
            return verify(opened, progress)

    def journal_state(self) -> JournalState:
        """Return the journal's head and its anchor; also for a ledger of one's own."""
        from memgraph.service.maintenance import journal_state

        with self._service.opened(self.name) as opened:
            return journal_state(opened)

    def accept_journal(self, *, reason: str) -> None:
        """Anchor the journal as it is, for an operator who knows why it differs; journalled."""
        from memgraph.service.maintenance import accept_journal

        with self._service.opened(self.name) as opened:
            accept_journal(opened, reason=reason, actor=self.actor)

    def backup(
        self,
        target: str | Path,
        *,
        force: bool = False,
        accept_findings: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> BackupReport:
        """Copy the database into one file while it is in use, and audit the copy.

        Args:
            force: replace an existing file.
            accept_findings: accept findings of the audit; damaged pages never.
            progress: called with the pages copied and the pages in all.

        Raises:
            Conflict: the file exists.
            DatabaseCorrupt, JournalBroken: the copy does not pass the audit.
        """
        from memgraph.service.maintenance import backup

        with self._service.opened(self.name) as opened:
            return backup(
                opened,
                Path(target),
                force=force,
                accept_findings=accept_findings,
                progress=progress,
            )

    def export_lines(self, *, with_vectors: bool = False) -> Iterator[bytes]:
        """Yield all data as JSON Lines, whatever its sensitivity, from one snapshot.

        Take the lines without long pauses.

        Args:
            with_vectors: include embeddings; without them an import embeds everything again.
        """
        from memgraph.service.exchange import export_lines

        with self._service.opened(self.name) as opened:
            yield from export_lines(opened, with_vectors=with_vectors)

    def export(
        self,
        target: str | Path,
        *,
        force: bool = False,
        with_vectors: bool = False,
        progress: Callable[[int], None] = lambda _lines: None,
    ) -> ExportReport:
        """Write ``export_lines`` to a file, atomically.

        Args:
            force: replace an existing file.
            progress: called with the number of lines written.

        Raises:
            Conflict: the file exists.
        """
        from memgraph.service.exchange import export_file

        with self._service.opened(self.name) as opened:
            return export_file(
                opened, Path(target), force=force, with_vectors=with_vectors, progress=progress
            )
