"""Operations that erase texts permanently."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memgraph.model.access import Permission
from memgraph.model.enums import SourceName
from memgraph.model.erasure import (
    ErasureList,
    ErasureReport,
    ErasureTargetKind,
    UnfinishedErasure,
    erasure_target,
)
from memgraph.model.operation import F, operation
from memgraph.model.values import Name, Reason
from memgraph.operations.handle import Handle
from memgraph.paths import naming_full_disk


class Erasure(Handle[F], group="erasure"):
    """Erases texts permanently: ``orc.erasure``."""

    @operation(
        Permission.ADMIN, "POST /erase", body="ErasureRequest", whole="an erasure", slow=True
    )
    def erase(
        self,
        *,
        memory_id: Name | None = None,
        entity: Name | None = None,
        text: Name | None = None,
        session_id: Name | None = None,
        path: Name | None = None,
        conversation_id: Name | None = None,
        workflow_run_id: Name | None = None,
        content_sha256: Name | None = None,
        reason: Reason,
        dry_run: bool = True,
    ) -> ErasureReport:
        """Preview an erasure, or erase texts for good.

        The texts of the named memories, and of what was derived from them alone, go everywhere:
        from the database and its copies in the orchestrator's folder, the journal, logs, and the
        files in ``processed`` and ``rejected``, also if the caller does not see these memories.
        Ids, times and edges stay. Other memories with the same text stay too; the report lists
        them. The report is kept in the journal. If it lists unfinished work, run the erasure again.

        Args:
            memory_id: a single memory.
            entity: an entity, by id or name, and all memories that mention it.
            text: a literal text, in any case, wherever it occurs: all memories that contain it, the
                entities named by it, and its occurrences in rows, files and logs.
            session_id: all turns of a session, and everything extracted from them.
            path: all memories from a file, or from the files in a folder.
            conversation_id, workflow_run_id, content_sha256: all memories from this source; the
                digest is that of a file's bytes.
            reason: recorded in the journal; it must not repeat the erased text.
            dry_run: only report what would go and what would stay; nothing is written.

        Raises:
            InvalidInput: there is not exactly one target, or the reason is missing or repeats the
                erased text.
            NotFound: the target does not exist.
            Conflict: the target is already erased, its name may mean several entities, or an
                earlier erasure cannot be finished.
            StorageError: the database failed; run it again to continue.
        """
        from memgraph.operations.erasure.erase import erase
        from memgraph.operations.provenance.sources import named_of

        target = erasure_target(
            memory_id=memory_id,
            entity=entity,
            text=text,
            session_id=session_id,
            path=path,
            conversation_id=conversation_id,
            workflow_run_id=workflow_run_id,
            content_sha256=content_sha256,
        )
        if target.kind is ErasureTargetKind.PATH:
            labels = named_of(self._service.paths(self.name), SourceName.PATH, target.value)
            target = target.model_copy(update={"value": labels.name})
        because = self._because(reason)
        folder = self._service.paths(self.name).memory
        with self._service.opened(self.name) as opened, naming_full_disk(folder):
            return erase(opened, target, reason=because, actor=self.actor, dry_run=dry_run)

    @operation(
        Permission.ADMIN,
        "GET /erasures",
        id="list_erasures",
        command="erasures",
        whole="the reports of erasures",
    )
    def reports(
        self,
        *,
        limit: Annotated[int, Field(ge=1, le=200, description="Reports at most.")] = 20,
    ) -> ErasureList:
        """Return the reports of finished erasures from the journal, the newest first, and what
        remains of an unfinished one.

        Erasures that a restore has undone are listed until they are done again, and that some are
        not known, until the journal is accepted (``repair``).
        """
        from memgraph.store import erasure

        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            reports = map(ErasureReport.model_validate, erasure.reports(snapshot, limit))
            row = erasure.unfinished(snapshot)
            unfinished = None
            if row is not None:
                fields = {name: row["report"][name] for name in UnfinishedErasure.model_fields}
                unfinished = UnfinishedErasure.model_validate(fields)
            return ErasureList(
                erasures=tuple(reports),
                unfinished=unfinished,
                undone=tuple(erasure.undone(snapshot)),
                unknown_at=erasure.unknown_at(snapshot),
            )
