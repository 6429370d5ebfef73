"""Copies of everything: exports and backups."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from memgraph.model.operation import F, local
from memgraph.operations.handle import Handle

if TYPE_CHECKING:
    from memgraph.operations.exchange.export import ExportReport
    from memgraph.operations.maintenance.maintenance import BackupReport


class Exchange(Handle[F], group="exchange"):
    """Copies of all data: ``orc.exchange``."""

    @local
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
        from memgraph.operations.exchange.export import export_file

        with self._service.opened(self.name) as opened:
            return export_file(
                opened, Path(target), force=force, with_vectors=with_vectors, progress=progress
            )

    def export_lines(self, *, with_vectors: bool = False) -> Iterator[bytes]:
        """Yield all data as JSON Lines, whatever its sensitivity, from one snapshot.

        Take the lines without long pauses.

        Args:
            with_vectors: include embeddings; without them an import embeds everything again.
        """
        from memgraph.operations.exchange.export import export_lines

        with self._service.opened(self.name) as opened:
            yield from export_lines(opened, with_vectors=with_vectors)

    @local
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
        from memgraph.operations.maintenance.maintenance import backup

        with self._service.opened(self.name) as opened:
            return backup(
                opened,
                Path(target),
                force=force,
                accept_findings=accept_findings,
                progress=progress,
            )
