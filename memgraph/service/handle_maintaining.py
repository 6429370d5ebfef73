"""An operator's work through a handle: embeddings, audit, backup."""

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
    """The part of ``Orchestrator`` that keeps a database in order."""

    def embed_pending(
        self, *, limit: int | None = None, progress: Callable[[int], None] = lambda _: None
    ) -> Drained:
        """Work off the embedding outbox now; returns when nothing is due or the provider failed.

        The facts that wait to be compared are compared, too.

        Args:
            limit: about how many at most.
            progress: called with the number of memories done since the last call.
        """
        with self._service.opened(self.name) as opened:
            drained = opened.worker.drain(limit=limit, progress=progress)
            opened.comparer.drain(limit=limit)
        return drained

    def settle(self) -> Settled:
        """Do now what writes have left to do: embed what waits, and compare the new facts.

        Returns when nothing is due, or a provider failed.
        """
        from memgraph.service.comparisons import Settled

        with self._service.opened(self.name) as opened:
            return Settled(opened.worker.drain(), opened.comparer.drain())

    def compare_pending(self, *, limit: int | None = None) -> Compared:
        """Compare now the facts that wait for it with what is stored.

        Args:
            limit: about how many at most.
        """
        with self._service.opened(self.name) as opened:
            return opened.comparer.drain(limit=limit)

    def pending_comparisons(self) -> int:
        """Return how many facts wait to be compared with what is stored; cheap."""
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return comparisons.waiting(snapshot)

    def pending_embeddings(self) -> int:
        """How many memories wait to be embedded; cheap, whatever the size of the database."""
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return embeddings.pending_count(snapshot)

    def embedding_states(self) -> dict[str, int]:
        """How many memories are pending, ready and failed to be embedded."""
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return embeddings.state_counts(snapshot)

    def embeddings_status(self) -> EmbeddingsStatus:
        """How embedding stands: states, models, whether they differ, what failed and why."""
        from memgraph.service.rebuilding import embeddings_status

        with self._service.opened(self.name) as opened:
            return embeddings_status(opened)

    def retry_embeddings(self) -> int:
        """Make what failed or was put off due at once; gives how many there are."""
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
        """Make indexes anew from what they are derived from; gives how many rows each holds.

        Raises:
            InvalidInput: no such part.
        """
        from memgraph.service.rebuilding import rebuild

        with self._service.opened(self.name) as opened:
            return rebuild(opened, parts, actor=self.actor, progress=progress)

    def verify(self, progress: Progress | None = None) -> VerifyReport:
        """Audit the database; what is wrong is in the report. Nothing is changed.

        Args:
            progress: called with the name of a stage, what is done of it, and how much there is.
        """
        from memgraph.service.maintenance import verify

        with self._service.opened(self.name) as opened:
            return verify(opened, progress)

    def journal_state(self) -> JournalState:
        """The journal's head beside what its anchor remembers; for a ledger of one's own, too."""
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
        """Copy the database into one file while it is in use, and check the copy.

        Args:
            force: replace a file that is there.
            accept_findings: also when the audit finds something; never damaged pages.
            progress: called with the pages copied and the pages in all.

        Raises:
            Conflict: there is a file already.
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
        """Everything the orchestrator knows as JSON Lines, whatever its sensitivity, from one
        snapshot; take the lines without long pauses.

        Args:
            with_vectors: embeddings too; without them an import embeds everything anew.
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
        """Write ``export_lines`` into a file, whole or not at all.

        Args:
            force: replace a file that is there.
            progress: called with the number of lines written.

        Raises:
            Conflict: there is a file already.
        """
        from memgraph.service.exchange import export_file

        with self._service.opened(self.name) as opened:
            return export_file(
                opened, Path(target), force=force, with_vectors=with_vectors, progress=progress
            )
