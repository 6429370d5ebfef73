"""Sources over HTTP."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from memgraph.client.calls import Call, part_of, value_of
from memgraph.client.files import Place, plain
from memgraph.client.words import word
from memgraph.model.enums import SourceName, TrustTier
from memgraph.model.erasing import ErasureReport, ErasureTarget, erasure_target
from memgraph.model.sources import (
    SourceInfo,
    SourcePage,
    SourceRestoration,
    SourceRetraction,
    TrustedList,
    TrustedSource,
)


class SourcingWords(Place):
    """The methods for sources. Reading requires the permission audit, changing admin.

    A source is named by a kind and a name: ``path`` (a file, or a folder with all below it),
    ``conversation``, ``run`` or ``content`` (a SHA-256).
    """

    @word
    def sources(
        self,
        *,
        kind: SourceName | str | None = None,
        limit: int = 50,
        after: str | None = None,
        sender: str | None = None,
    ) -> Call[SourcePage]:
        """Return sources of memories that the key sees, by kind and name; see the library.

        Raises:
            InvalidInput: an invalid kind, limit (1..500) or cursor.
        """
        return self._get(
            "/sources", value_of(SourcePage), kind=kind, limit=limit, cursor=after, sender=sender
        )

    @word
    def source(self, kind: SourceName | str, name: str) -> Call[SourceInfo]:
        """Return the memories of one source and its trust. Raises NotFound, InvalidInput."""
        fields = plain({"kind": kind, "name": name})
        return self._look("/sources/info", fields, value_of(SourceInfo))

    @word
    def trusted(self) -> Call[list[TrustedSource]]:
        """Return trust assignments that the key may see, by kind and name."""
        return self._get("/sources/trust", part_of(TrustedList, lambda told: [*told.items]))

    @word
    def trust(
        self,
        kind: SourceName | str,
        name: str,
        tier: TrustTier | str,
        *,
        max_memories: int | None = None,
        reason: str,
    ) -> Call[TrustedSource]:
        """Assign a trust tier to a source, in place of an earlier one.

        Args:
            tier: ``low``, ``standard`` or ``high``.
            max_memories: the maximum number of its memories; 0: accept nothing more; None: as in
                the settings.

        Raises:
            InvalidInput: an invalid source, tier, number or reason.
        """
        said = {"tier": tier, "max_memories": max_memories, "reason": reason}
        fields = plain({"kind": kind, "name": name, **said})
        return self._write("/sources/trust", fields, value_of(TrustedSource))

    @word
    def distrust(self, kind: SourceName | str, name: str, *, reason: str) -> Call[None]:
        """Remove the trust assigned to a source. Raises NotFound, InvalidInput."""
        return self._done(
            "/sources/distrust", plain({"kind": kind, "name": name, "reason": reason})
        )

    @word
    def retract_source(
        self,
        *,
        path: str | None = None,
        conversation_id: str | None = None,
        workflow_run_id: str | None = None,
        content_sha256: str | None = None,
        reason: str,
        dry_run: bool = True,
    ) -> Call[SourceRetraction]:
        """Retract all memories from a source, and what was derived from them alone.

        Args:
            path, conversation_id, workflow_run_id, content_sha256: exactly one of them.
            dry_run: only report what would be retracted.

        Raises:
            InvalidInput: not exactly one source, an invalid one, or an invalid reason.
            NotFound: nothing that the key sees came from it.
        """
        fields = _taken(path, conversation_id, workflow_run_id, content_sha256, reason, dry_run)
        return self._write("/sources/retract", fields, value_of(SourceRetraction))

    @word
    def restore_source(
        self,
        *,
        path: str | None = None,
        conversation_id: str | None = None,
        workflow_run_id: str | None = None,
        content_sha256: str | None = None,
        reason: str,
        dry_run: bool = True,
    ) -> Call[SourceRestoration]:
        """Restore what ``retract_source`` retracted by the same name.

        Args:
            path, conversation_id, workflow_run_id, content_sha256: exactly one of them.
            dry_run: only report what would be restored.

        Raises:
            InvalidInput: not exactly one source, an invalid one, or an invalid reason.
            NotFound: no retraction of it is visible to the key.
        """
        fields = _taken(path, conversation_id, workflow_run_id, content_sha256, reason, dry_run)
        return self._write("/sources/restore", fields, value_of(SourceRestoration))


def _taken(
    path: str | None,
    conversation_id: str | None,
    workflow_run_id: str | None,
    content_sha256: str | None,
    reason: str,
    dry_run: bool,
) -> dict[str, Any]:
    return plain(
        {
            "path": path,
            "conversation_id": conversation_id,
            "workflow_run_id": workflow_run_id,
            "content_sha256": content_sha256,
            "reason": reason,
            "dry_run": dry_run,
        }
    )


class ErasingWords(Place):
    """The methods for erasure; they require the permission admin and a key that sees everything."""

    @word
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
    ) -> Call[ErasureReport]:
        """Preview an erasure; ``dry_run=False`` performs it: see ``Orchestrator.erase``.

        Name exactly one target. The server signs the report; when it lists unfinished work, the
        same call continues.

        Raises:
            InvalidInput: not exactly one target, no reason, or one that repeats what is erased.
            NotFound: no such target.
            Conflict: it is erased already, or a name may mean several entities.
            AccessDenied: something is hidden from the key.
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
        return self._erase(target, reason=reason, dry_run=dry_run)

    @word
    def erase_target(
        self, target: ErasureTarget, *, reason: str, dry_run: bool = True
    ) -> Call[ErasureReport]:
        """Call ``erase`` for a target given as a value. Raises as ``erase``."""
        return self._erase(target, reason=reason, dry_run=dry_run)

    def _erase(self, target: ErasureTarget, *, reason: str, dry_run: bool) -> Call[ErasureReport]:
        fields = {"target": target.model_dump(mode="json"), "reason": reason, "dry_run": dry_run}
        # A repeated one that was done tells that it was: it is asked for under a key.
        return replace(self._write("/erase", fields, value_of(ErasureReport)), slow=True)
