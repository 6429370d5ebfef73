"""Erasing texts for good."""

from __future__ import annotations

from collections.abc import Callable

from memgraph.model.access import Permission
from memgraph.model.enums import SourceName
from memgraph.model.erasure import (
    ErasureReport,
    ErasureRequest,
    ErasureTarget,
    ErasureTargetKind,
    erasure_target,
)
from memgraph.model.operation import F, local, operation
from memgraph.operations.handle import Handle
from memgraph.paths import naming_full_disk


class Erasure(Handle[F], group="erasure"):
    """The removal of texts: ``orc.erasure``."""

    @local
    def erase(
        self,
        *,
        memory_id: str | None = None,
        entity: str | None = None,
        session_id: str | None = None,
        path: str | None = None,
        conversation_id: str | None = None,
        workflow_run_id: str | None = None,
        content_sha256: str | None = None,
        reason: str,
        dry_run: bool = True,
        progress: Callable[[str, int, int], None] = lambda _step, _done, _total: None,
    ) -> ErasureReport:
        """Preview an erasure; with ``dry_run=False`` perform it, with a signed report.

        Whatever the viewer of this handle sees, the texts of the named memories and of those
        derived from them alone are removed: from rows, indexes, vectors, receipts, bulletins, the
        journal, manifests, files in the drop zone's ``processed`` and ``rejected``, logs, and
        copies of the database in the folder of the orchestrator. Their ids, times and edges stay.
        Other memories with the same text are listed in the report and stay. Run it again when the
        report lists unfinished work.

        Args:
            memory_id: one memory.
            entity: all memories that name it, by id or name; and the entity.
            session_id: all turns of a session and all that was extracted from them.
            path: all memories from a file, or from the files in a folder; see ``sources.retract``.
            conversation_id, workflow_run_id, content_sha256: all memories from it; the digest is of
                a file's bytes.
            reason: journalled; it must not repeat what is erased.
            dry_run: only report what would go and what would stay; nothing is written.
            progress: called with the name of a step, its number and the number of steps.

        Raises:
            InvalidInput: not exactly one target, no reason, or one that repeats what is erased.
            NotFound: no such target.
            Conflict: it is already erased, or a name may mean several entities.
            StorageError: the database failed; running it again continues.
        """
        target = erasure_target(
            memory_id=memory_id,
            entity=entity,
            session_id=session_id,
            path=path,
            conversation_id=conversation_id,
            workflow_run_id=workflow_run_id,
            content_sha256=content_sha256,
        )
        return self.erase_target(target, reason=reason, dry_run=dry_run, progress=progress)

    @operation(
        Permission.ADMIN,
        "POST",
        "/erase",
        tag="erasure",
        id="erase",
        body=ErasureRequest,
        whole="an erasure",
        slow=True,
    )
    def erase_target(
        self,
        target: ErasureTarget,
        *,
        reason: str,
        dry_run: bool = True,
        progress: Callable[[str, int, int], None] = lambda _step, _done, _total: None,
    ) -> ErasureReport:
        """Call ``erase`` for a target given as a value."""
        from memgraph.operations.erasure.erase import erase
        from memgraph.operations.provenance.sources import named_of

        if target.kind is ErasureTargetKind.PATH:
            labels = named_of(self._service.paths(self.name), SourceName.PATH, target.value)
            target = target.model_copy(update={"value": labels.name})
        because = self._because(reason)
        folder = self._service.paths(self.name).memory
        with self._service.opened(self.name) as opened, naming_full_disk(folder):
            return erase(
                opened, target, reason=because, actor=self.actor, dry_run=dry_run, progress=progress
            )
